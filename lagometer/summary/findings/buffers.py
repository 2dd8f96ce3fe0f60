# SPDX-License-Identifier: Apache-2.0
"""Sizes of socket buffers, in the words of findings: which option of an adapter sets them."""

from __future__ import annotations

import re

from lagometer.summary.findings.evidence import CellEvidence

# Names that sidecars give to options for a buffer in bytes; a queue counted in messages has another name.
_RECEIVE = re.compile(r"socket_(?:receive_)?buffer(?:_bytes)?|receive_buffer_bytes")
_SEND = re.compile(r"socket_(?:send_)?buffer(?:_bytes)?|send_buffer_bytes")


def receive_buffer_option(cell: CellEvidence) -> str:
    """What sets a socket's receive buffer, by the options that the adapters' sidecars declare."""
    return _option(cell, _RECEIVE)


def send_buffer_option(cell: CellEvidence) -> str:
    """What of the cell's adapters sets a socket's send buffer."""
    return _option(cell, _SEND)


def _option(cell: CellEvidence, pattern: re.Pattern[str]) -> str:
    named = [
        f"`{name}` (options of {adapter})"
        for adapter in cell.adapters
        for name in cell.options.get(adapter, {})
        if pattern.fullmatch(name)
    ]
    without = f"the manifest names no option of {cell.adapter} for it"
    matched = [] if cell.factors.get("profile") == "matched" else ["`profile: matched`"]
    return ", or ".join([" and ".join(named) or without, *matched])
