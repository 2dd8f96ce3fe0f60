# SPDX-License-Identifier: Apache-2.0
"""Searches for the highest rate that a cell sustains."""
