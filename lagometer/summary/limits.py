# SPDX-License-Identifier: Apache-2.0
"""How much of a campaign a summary holds, so that it stays small enough to show and to mail."""

LOG_CHARACTERS_MAX = 4_000
LOAD_POINTS_MAX = 2_000
# Intervals need every message of a cell at once and look at each some fifty times. Of more messages they are
# not made here, and bands are made of what is counted for the curves.
ESTIMATED_MESSAGES_MAX = 20_000_000
