# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals, and when there are enough trials."""
