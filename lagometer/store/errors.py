# SPDX-License-Identifier: Apache-2.0
"""Errors in stored results. Each message says what is wrong, where, and what to do."""

from __future__ import annotations


class StoreError(Exception):
    """A campaign or a record cannot be read. The command line treats it as bad input (exit code 2)."""


class CampaignError(StoreError):
    """A folder is not a campaign, or this version cannot read it."""


class RecordsError(StoreError):
    """A block of records does not match docs/PROTOCOL.md."""
