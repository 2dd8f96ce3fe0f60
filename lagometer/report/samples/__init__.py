# SPDX-License-Identifier: Apache-2.0
"""The messages of trials as curves and series, reduced to fit a page."""
