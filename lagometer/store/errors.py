# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with stored results. Each message says what, where, and what to do."""

from __future__ import annotations


class StoreError(Exception):
    """A campaign or a record cannot be read. The command line treats it as bad input (exit code 2)."""


class CampaignError(StoreError):
    """A folder is no campaign, or one that this version cannot read."""


class RecordsError(StoreError):
    """A block of records is not what docs/PROTOCOL.md describes."""
