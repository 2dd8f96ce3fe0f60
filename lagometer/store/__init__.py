# SPDX-License-Identifier: Apache-2.0
"""Stores what was measured: decoded worker records, the files of a campaign, and its machine."""
