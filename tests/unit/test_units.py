# SPDX-License-Identifier: Apache-2.0
"""Quantities: read exactly, refused by name, written so that they read back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lagometer import units
from lagometer.units import UnitError

# A shared machine may be slow; that is no failure.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("2s", 2000000000),
        ("300ms", 300000000),
        ("1.5s", 1500000000),
        ("10us", 10000),
        ("10µs", 10000),
        ("10m", 600000000000),
        ("10min", 600000000000),
        ("1h", 3600000000000),
        ("0", 0),
        ("7 ns", 7),
    ],
)
def test_durations(text: str, duration_ns: int) -> None:
    assert units.parse_duration_ns(text) == duration_ns


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("64B", 64),
        ("32KB", 32768),
        ("1MB", 1048576),
        ("1KiB", 1024),
        ("1.5KB", 1536),
        ("100", 100),
        ("8 kB", 8192),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert units.parse_payload_bytes(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "rate_hz"), [("200Hz", 200.0), ("1kHz", 1000.0), ("0.5Hz", 0.5), ("30", 30.0)]
)
def test_rates(text: str, rate_hz: float) -> None:
    assert units.parse_rate_hz(text) == rate_hz


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("010B", "octal"),
        ("1:30", "sexagesimal"),
        ("1e3", "exponent"),
        ("1_000", "underscores"),
        ("0x10", "hexadecimal"),
        ("1,5KB", "comma"),
        (".nan", "finite"),
        ("nan", "finite"),
        ("-.inf", "finite"),
        ("-5", "negative"),
        ("64kb", "did you mean KB?"),
        ("64mb", "did you mean MB?"),
        ("64parsec", "known are"),
        ("0.3B", "whole number of bytes"),
        ("9" * 60, "too long"),
        ("many", "not a size"),
        ("", "not a size"),
        ("６４B", "not a size"),
    ],
)
def test_traps_are_named(text: str, said: str) -> None:
    with pytest.raises(UnitError, match=said.replace("?", r"\?")):
        units.parse_payload_bytes(text)


def test_a_duration_needs_a_unit_and_a_count_has_none() -> None:
    with pytest.raises(UnitError, match="has no unit"):
        units.parse_duration_ns("2")
    with pytest.raises(UnitError, match="without a unit"):
        units.parse_count("2s")
    with pytest.raises(UnitError, match="not a whole number"):
        units.parse_count("2.5")


@PATIENT
@given(st.integers(min_value=0, max_value=10**15))
def test_what_is_written_reads_back(number: int) -> None:
    assert units.parse_duration_ns(units.format_duration(number)) == number
    assert units.parse_payload_bytes(units.format_bytes(number)) == number


@PATIENT
@given(st.integers(min_value=1, max_value=10**9).map(lambda thousandths: thousandths / 1000))
def test_a_rate_reads_back(rate_hz: float) -> None:
    assert units.parse_rate_hz(units.format_rate(rate_hz)) == rate_hz


@PATIENT
@given(st.text(max_size=50))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (units.parse_duration_ns, units.parse_payload_bytes, units.parse_rate_hz, units.parse_count):
        try:
            assert parse(text) >= 0
        except UnitError as error:
            assert str(error)


# An agent has only the standard library; an import quotes what another tool printed, in that tool's unit; a
# reading of the clock takes ns wherever it is.
WITH_UNITS_OF_THEIR_OWN = ("units.py", "agent/", "exchange/imports/", "stats/verdict/health.py")


def test_no_other_module_gives_a_duration_its_unit() -> None:
    """One place formats what people read, so that all views have the same digits."""
    package = Path(units.__file__).parent
    own_format = re.compile(r':[^{}"]*[fg]\} ?(?:µs|us|ms|ns)\b')
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if own_format.search(path.read_text(encoding="utf-8"))
    }
    assert found and sorted(name for name in found if not name.startswith(WITH_UNITS_OF_THEIR_OWN)) == []
