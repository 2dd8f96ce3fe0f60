# SPDX-License-Identifier: Apache-2.0
"""Changes to the machine for low latency, each written down before it is made and put back afterwards."""
