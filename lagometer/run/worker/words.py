# SPDX-License-Identifier: Apache-2.0
"""Puts the end of a process, and its messages, into the words of a reason."""

from __future__ import annotations

import contextlib
import json
import signal
from typing import Any


def text_of(value: object) -> str:
    """Returns a text unchanged, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def exit_text(notice: Any) -> str:
    """Returns how a process ended, from the supervisor's notice."""
    if "signal" in notice:
        return f"was killed by {signal_name(notice['signal'])}"
    return f"exited with code {notice.get('code')}"


def signal_name(number: int) -> str:
    """Returns a signal's name, or its number if it has no name."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
