# SPDX-License-Identifier: Apache-2.0
"""Errors of an export or an import. Each message says what is wrong, where, and how to fix it."""

from __future__ import annotations

from lagometer.store.errors import StoreError


class ExchangeError(StoreError):
    """A campaign cannot be written in a format, or another tool's file cannot be read."""
