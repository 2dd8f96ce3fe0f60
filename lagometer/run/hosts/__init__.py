# SPDX-License-Identifier: Apache-2.0
"""The hosts of a trial as the conductor sees them: how an agent is reached, and the link to it."""
