# SPDX-License-Identifier: Apache-2.0
"""The quality-of-service policies that are off unless a study sets them: how each is written and read."""

from __future__ import annotations

import re
from typing import Literal

from lagometer.units import UnitError, format_duration, parse_duration_ns

Policy = Literal["deadline", "lifespan", "liveliness", "partition", "instances"]

NONE = "none"
PERIOD_NS_MIN = 1_000
PERIOD_NS_MAX = 3_600 * 10**9
INSTANCES_MAX = 10_000
PARTITION = re.compile(r"[A-Za-z0-9_.]{1,64}")
LIVELINESS_PATTERN = "^(none|automatic-.+|manual-.+)$"


def parse_period_ns(text: str) -> int:
    """A deadline's period or a lifespan in nanoseconds; 0 for `none`. Raises UnitError."""
    if text == NONE:
        return 0
    period_ns = parse_duration_ns(text)
    if not PERIOD_NS_MIN <= period_ns <= PERIOD_NS_MAX:
        raise UnitError(f"'{text}' is not between 1us and 1h")
    return period_ns


def write_period(period_ns: object) -> str:
    """The inverse."""
    return format_duration(int(str(period_ns))) if period_ns else NONE


def canonical_liveliness(text: str) -> str:
    """`none`, or how a publisher asserts liveliness, and its lease: `automatic-1s`. Raises UnitError."""
    if text == NONE:
        return NONE
    kind, _, lease = text.partition("-")
    if kind not in ("automatic", "manual") or not lease:
        raise UnitError(f"'{text}' is not 'none', or a kind and a lease like 'automatic-1s' or 'manual-1s'")
    return f"{kind}-{write_period(parse_period_ns(lease))}"


def liveliness_of(canonical: str) -> tuple[Literal["automatic", "manual"], int] | None:
    """The kind and the lease in nanoseconds of a text from `canonical_liveliness`; None for `none`."""
    if canonical == NONE:
        return None
    kind, _, lease = canonical.partition("-")
    return "manual" if kind == "manual" else "automatic", parse_period_ns(lease)


def parse_partition(text: str) -> str:
    """A partition's name, or `none`. Raises UnitError."""
    if PARTITION.fullmatch(text) is None:
        raise UnitError(f"'{text}' is not a partition: use letters, digits, _ and . (at most 64), or 'none'")
    return text


def parse_instances(text: str) -> int:
    """How many instances a keyed topic has; 0 for `none`, a topic without a key. Raises UnitError."""
    if text == NONE:
        return 0
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= INSTANCES_MAX:
        raise UnitError(f"'{text}' is not 'none', or a number of instances from 1 to {INSTANCES_MAX}")
    return int(text)


def write_instances(instances: object) -> str:
    """The inverse."""
    return str(instances) if instances else NONE
