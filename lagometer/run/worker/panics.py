# SPDX-License-Identifier: Apache-2.0
"""The text of a panic in Rust, among what a process wrote on standard error."""

from __future__ import annotations

LINES_MAX = 5
_BEGIN = " panicked at "
_AFTER = ("note: run with ", "note: Some details ", "stack backtrace:", "thread ")


def panic_in(text: str) -> str:
    """The first panic in one line: where, and with which message; empty if there is none. Later ones, such as
    `panic in a function that cannot unwind`, only follow from it."""
    lines = text.splitlines()
    begins = (number for number, line in enumerate(lines) if line.startswith("thread ") and _BEGIN in line)
    begin = next(begins, None)
    if begin is None:
        return ""
    told = [lines[begin].strip()]
    for line in lines[begin + 1 : begin + LINES_MAX]:
        if not line.strip() or line.startswith(_AFTER):
            break
        told.append(line.strip())
    return " ".join(told)
