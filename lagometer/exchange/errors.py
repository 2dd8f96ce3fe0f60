# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with an export or an import. Each message says what, where, and what to do."""

from __future__ import annotations

from lagometer.store.errors import StoreError


class ExchangeError(StoreError):
    """A campaign cannot be written in a format, or a file of another tool cannot be read."""
