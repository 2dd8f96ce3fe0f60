# SPDX-License-Identifier: Apache-2.0
"""How much of a campaign a summary contains, so that it stays small enough to display and mail."""

LOG_CHARACTERS_MAX = 4_000
LOAD_POINTS_MAX = 2_000
# Intervals need every message of a cell in memory and read each about fifty times. For more messages than
# this, they are not computed here, and bands use the curves' counts.
ESTIMATED_MESSAGES_MAX = 20_000_000
