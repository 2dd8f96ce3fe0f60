# SPDX-License-Identifier: Apache-2.0
"""A cell over its trials."""
