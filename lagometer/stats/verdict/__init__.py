# SPDX-License-Identifier: Apache-2.0
"""Whether a trial counts, and what disturbed it."""
