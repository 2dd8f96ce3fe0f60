# SPDX-License-Identifier: Apache-2.0
"""Values as people read them: sizes, rates, durations, and any JSON value as one line."""

from __future__ import annotations

import json


def size_text(size_bytes: int) -> str:
    """64 B, 32 KB, 1 MB (powers of 1024, as in studies)."""
    for unit, factor in (("MB", 1024**2), ("KB", 1024)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes:,} B"


def duration_text(duration_ns: float) -> str:
    """0, 250 µs, 1 ms."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if duration_ns >= factor:
            return f"{duration_ns / factor:g} {unit}"
    return f"{duration_ns:g} ns"


def factor_text(column: str, value: object) -> str:
    """The value of a factor, by the unit that its column's name ends in."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if column.endswith("_bytes"):
            return size_text(int(value))
        if column.endswith("_hz"):
            return f"{value:g} Hz"
        if column.endswith("_ns"):
            return duration_text(value)
    return plain_text(value) or "unset"


def plain_text(value: object) -> str | None:
    """Any JSON value on one line; None for null."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        flat = all(not isinstance(each, (dict, list)) for each in value)
        return (", " if flat else "; ").join(plain_text(each) or "unknown" for each in value) or "none"
    if isinstance(value, dict) and all(not isinstance(each, (dict, list)) for each in value.values()):
        return ", ".join(f"{key} {plain_text(each) or 'unknown'}" for key, each in value.items()) or "none"
    return json.dumps(value, ensure_ascii=False)
