# SPDX-License-Identifier: Apache-2.0
"""Quantities as people write them: durations, sizes, rates; read exactly and written in one canonical form.

A number is plain decimal (`64`, `1.5`). Spellings that YAML readers disagree on (octal `010`, sexagesimal
`1:30`, `1e3`, `1_000`, hexadecimal) are rejected by name instead of guessed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from decimal import Decimal

DURATION_UNITS_NS: Mapping[str, int] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
NS_PER_US = 1_000
# KB is 1024 bytes, as is usual for payloads in latency studies; KiB is the unambiguous spelling.
SIZE_UNITS_BYTES: Mapping[str, int] = {
    "B": 1,
    "KB": 1024,
    "kB": 1024,
    "KiB": 1024,
    "MB": 1024**2,
    "MiB": 1024**2,
    "GB": 1024**3,
    "GiB": 1024**3,
}
RATE_UNITS_HZ: Mapping[str, int] = {"Hz": 1, "kHz": 1_000, "MHz": 1_000_000}

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµμ]*|%)")
_TRAPS = (
    (re.compile(r"[+-]?0[0-9]+(\.[0-9]+)?[A-Za-z]*"), "has a leading zero (octal in some YAML readers)"),
    (
        re.compile(r"[+-]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?"),
        "is in sexagesimal notation (base 60 in some YAML readers)",
    ),
    (re.compile(r"[+-]?0[xob][0-9A-Fa-f_]+"), "is in hexadecimal, octal or binary notation"),
    (re.compile(r"[+-]?[0-9.]+[eE][+-]?[0-9]+[A-Za-z]*"), "has an exponent"),
    (re.compile(r"[+-]?[0-9]+(_[0-9]+)+[A-Za-z]*"), "has digits grouped by underscores"),
    (re.compile(r"[+-]?[0-9]+,[0-9]+.*"), "has a comma"),
    (re.compile(r"[+-]?\.?(nan|inf|infinity)", re.IGNORECASE), "is not a finite number"),
    (re.compile(r"-.*"), "is negative"),
)


class UnitError(ValueError):
    """Text that is not the expected quantity; the message says why and gives an example."""


def parse_duration_ns(text: str) -> int:
    """A duration such as `2s`, `300ms`, `1.5s`, `10m`, in whole nanoseconds. `0` needs no unit.

    Raises UnitError.
    """
    if text.strip() == "0":
        return 0
    return _parse(text, DURATION_UNITS_NS, None, "duration", "300ms")


def parse_payload_bytes(text: str) -> int:
    """A size such as `64B`, `32KB`, `1MB` (KB = 1024 B) or a plain number of bytes. Raises UnitError."""
    return _parse(text, SIZE_UNITS_BYTES, 1, "size", "32KB")


def parse_rate_hz(text: str) -> float:
    """A rate such as `200Hz`, `1kHz` or a plain number of hertz. Raises UnitError."""
    number, factor = _split(text, RATE_UNITS_HZ, 1, "rate", "200Hz")
    return float(number * factor)


def parse_count(text: str) -> int:
    """A whole number that is not negative. Raises UnitError."""
    number, _ = _split(text, {}, 1, "whole number", "5")
    if number != number.to_integral_value():
        raise UnitError(f"'{text}' is not a whole number")
    return int(number)


def parse_share(text: str) -> float:
    """A percentage such as `5%`, as a share of one. Raises UnitError."""
    number, factor = _split(text, {"%": 1}, None, "percentage", "5%")
    return float(number * factor / 100)


def format_share(share: float) -> str:
    """The shortest exact spelling: `5%`, `0.5%`."""
    return f"{format((Decimal(repr(share)) * 100).normalize(), 'f')}%"


def format_duration(duration_ns: int) -> str:
    """The shortest exact spelling: `300ms`, `2s`, `1500us`."""
    for unit in ("s", "ms", "us"):
        if duration_ns % DURATION_UNITS_NS[unit] == 0:
            return f"{duration_ns // DURATION_UNITS_NS[unit]}{unit}"
    return f"{duration_ns}ns"


def format_bytes(size_bytes: int) -> str:
    """The shortest exact spelling: `64B`, `32KB`, `1MB`."""
    for unit in ("GB", "MB", "KB"):
        if size_bytes and size_bytes % SIZE_UNITS_BYTES[unit] == 0:
            return f"{size_bytes // SIZE_UNITS_BYTES[unit]}{unit}"
    return f"{size_bytes}B"


def format_rate(rate_hz: float) -> str:
    """The shortest exact spelling: `200Hz`, `1kHz`, `0.5Hz`."""
    if rate_hz >= 1_000 and rate_hz % 1_000 == 0:
        return f"{rate_hz / 1_000:.0f}kHz"
    return f"{format(Decimal(repr(rate_hz)).normalize(), 'f')}Hz"


# ---- As people read them ----
_SHOWN_NS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def duration_text(duration_ns: float | None) -> str:
    """A measured time, three digits and a unit: 812 ns, 48.2 µs, 1.05 ms; `-` for null."""
    if duration_ns is None:
        return "-"
    for size, unit in _SHOWN_NS:
        if abs(duration_ns) >= 0.9995 * size:
            value = duration_ns / size
            digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
            return f"{value:.{digits}f} {unit}"
    return f"{duration_ns:.0f} ns"


def signed_duration_text(duration_ns: float) -> str:
    """The same with its sign, even a positive one: +62.0 µs."""
    return ("+" if duration_ns > 0 else "") + duration_text(duration_ns)


def span_text(low_ns: float, high_ns: float) -> str:
    """Both ends of an interval, with a shared unit only once: 37.9 – 38.6 µs, 940 ns – 1.25 µs."""
    low, high = duration_text(low_ns), duration_text(high_ns)
    number, _, unit = low.rpartition(" ")
    return f"{number} – {high}" if high.endswith(f" {unit}") else f"{low} – {high}"


def size_text(size_bytes: int) -> str:
    """64 B, 32 KB, 1 MB (powers of 1024, as in studies)."""
    for unit, factor in (("MB", 1024**2), ("KB", 1024)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes:,} B"


def plain_duration_text(duration_ns: float) -> str:
    """0, 250 µs, 1 ms: a value that somebody chose, with all its digits."""
    for factor, unit in _SHOWN_NS:
        if duration_ns >= factor:
            return f"{duration_ns / factor:g} {unit}"
    return f"{duration_ns:g} ns"


def minutes_text(seconds: float) -> str:
    """How long a campaign takes, to the second: 45 s, 12 min 5 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def factor_text(column: str, value: object) -> str:
    """The value of a factor, with the unit from its column's name."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if column.endswith("_bytes"):
            return size_text(int(value))
        if column.endswith("_hz"):
            return f"{value:g} Hz"
        if column.endswith("_ns"):
            return plain_duration_text(value) if value else "none"  # no work, no deadline, no lifespan
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
        flat = all(not isinstance(item, (dict, list)) for item in value)
        return (", " if flat else "; ").join(plain_text(item) or "unknown" for item in value) or "none"
    if isinstance(value, dict) and all(not isinstance(item, (dict, list)) for item in value.values()):
        return ", ".join(f"{key} {plain_text(item) or 'unknown'}" for key, item in value.items()) or "none"
    return json.dumps(value, ensure_ascii=False)


# ---- Parsing ----
def _parse(text: str, units: Mapping[str, int], plain: int | None, quantity: str, example: str) -> int:
    number, factor = _split(text, units, plain, quantity, example)
    product = number * factor
    if product != product.to_integral_value():
        raise UnitError(
            f"'{text}' is not a whole number of {'bytes' if units is SIZE_UNITS_BYTES else 'nanoseconds'}"
        )
    return int(product)


def _split(
    text: str, units: Mapping[str, int], plain: int | None, quantity: str, example: str
) -> tuple[Decimal, int]:
    """The number and its unit's factor; `plain` is the factor without a unit, None if a unit is
    required."""
    text = text.strip()
    if len(text) > 40:
        raise UnitError(f"'{text[:20]}…' is too long for a {quantity}; write it like {example}")
    for trap, name in _TRAPS:
        if trap.fullmatch(text):
            raise UnitError(f"'{text}' {name}; write a {quantity} like {example}")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(f"'{text}' is not a {quantity}; write it like {example}")
    number, unit = Decimal(match[1]), match[2].replace("μ", "µ")  # two code points look like micro
    if not unit and plain is not None:
        return number, plain
    if unit in units:
        return number, units[unit]
    if not unit:
        raise UnitError(f"'{text}' has no unit; write a {quantity} like {example}")
    if not units:
        raise UnitError(f"'{text}' is not a {quantity}; write it without a unit, like {example}")
    raise UnitError(f"'{text}' has the unknown unit '{unit}'; {_nearest_unit(unit, units)}")


def _nearest_unit(unit: str, units: Mapping[str, int]) -> str:
    by_folded = {name.lower(): name for name in reversed(list(units))}
    matches = difflib.get_close_matches(unit.lower(), by_folded, n=1, cutoff=0.4)
    if matches:
        return f"did you mean {by_folded[matches[0]]}?"
    return f"known are {', '.join(units)}"
