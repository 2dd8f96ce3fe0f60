# SPDX-License-Identifier: Apache-2.0
"""How the values of a study's top-level keys are parsed, and what the JSON schema says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lagometer import units
from lagometer.units import UnitError

PRECISION_MIN, PRECISION_MAX = 0.001, 0.5
HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS
TEXT_SCHEMA = {"type": "string"}
TIME_SCHEMA = {"type": ["string", "integer"]}
# `auto`: the steady state is searched from this time on, and no later than half of the measure phase.
WARMUP_AUTO = "auto"
WARMUP_AUTO_NS = 100_000_000
WARMUP_BOUNDS_SCHEMA = {
    "type": "object",
    "properties": {"min": TIME_SCHEMA, "max": TIME_SCHEMA},
    "required": ["min", "max"],
    "additionalProperties": False,
}


def duration_between(minimum_ns: int, maximum_ns: int) -> Callable[[str], int]:
    """A parser of times in ns, which raises UnitError."""

    def parse(text: str) -> int:
        duration_ns = units.parse_duration_ns(text)
        if not minimum_ns <= duration_ns <= maximum_ns:
            longest = f"{maximum_ns // HOUR_NS}h"
            raise UnitError(f"'{text}' is not between {units.format_duration(minimum_ns)} and {longest}")
        return duration_ns

    return parse


def parse_precision(text: str) -> float:
    """A share like 5 %. Raises UnitError."""
    share = units.parse_share(text)
    if not PRECISION_MIN <= share <= PRECISION_MAX:
        between = f"{units.format_share(PRECISION_MIN)} and {units.format_share(PRECISION_MAX)}"
        raise UnitError(f"'{text}' is not between {between}")
    return share


def parse_switch(text: str) -> bool:
    """On or off. Raises UnitError."""
    words = {"on": True, "true": True, "off": False, "false": False}
    if text not in words:
        raise UnitError(f"'{text}' is neither on nor off")
    return words[text]


def parse_resources(text: str) -> str:
    """On, off or counters. Raises UnitError."""
    words = {"on": "on", "true": "on", "off": "off", "false": "off", "counters": "counters"}
    if text not in words:
        raise UnitError(f"'{text}' is neither on nor off nor counters")
    return words[text]


def unless_told(parse: Callable[[str], int]) -> Callable[[str], int | None]:
    """A time, 0 for `off`, None for `auto`."""

    def parse_or_word(text: str) -> int | None:
        return {"auto": None, "off": 0}[text] if text in ("auto", "off") else parse(text)

    return parse_or_word


def parse_discovery_ns(text: str) -> int | None:
    """A time, None for `auto`. Raises UnitError."""
    return None if text == "auto" else duration_between(1_000_000, HOUR_NS)(text)


def whole_schema(minimum: int, maximum: int) -> Mapping[str, object]:
    """What the JSON schema says of a whole number."""
    return {"type": "integer", "minimum": minimum, "maximum": maximum}


def parse_warmup_ns(text: str) -> int:
    """A time of warm-up, or `auto` for the time from which the steady state is searched. Raises
    UnitError."""
    return WARMUP_AUTO_NS if text == WARMUP_AUTO else duration_between(0, HOUR_NS)(text)
