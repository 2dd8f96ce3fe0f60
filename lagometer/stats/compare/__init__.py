# SPDX-License-Identifier: Apache-2.0
"""Compares cells and campaigns."""
