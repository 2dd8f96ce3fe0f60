# SPDX-License-Identifier: Apache-2.0
"""Tunes the machine for low latency. Records each change before it makes it, and reverts it afterwards."""
