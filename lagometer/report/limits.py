# SPDX-License-Identifier: Apache-2.0
"""Limits on the data in the page, so that its file stays small enough to mail and to open on a phone."""

SERIES_POINTS_TOTAL = 240_000
SERIES_POINTS_MAX = 2_000
SERIES_POINTS_MIN = 200
SLOWEST = 20
LOST_MARKS_MAX = 200
MIGRATION_MARKS_MAX = 200
CURVES_MAX = 8_000
ROWS_MAX = 6_000
