# SPDX-License-Identifier: Apache-2.0
"""The messages of trials as curves and series, few enough for a page."""
