# SPDX-License-Identifier: Apache-2.0
"""The highest rate that a cell sustains."""
