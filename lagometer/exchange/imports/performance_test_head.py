# SPDX-License-Identifier: Apache-2.0
"""The head of a performance_test log: what was run. CSV and JSON name the same things differently."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOOL = "performance_test"
# Switches that make a different cell when on: in CSV's words, in JSON's, and in the cell's id.
SWITCHES = (
    (("Zero copy transfer",), ("is_zero_copy_transfer",), "zero-copy"),
    (("Loaned samples",), ("use_loaned_samples",), "loaned"),
    (("Shared memory transfer", "Shared memory"), ("use_shared_memory",), "shared-memory"),
    (("With security",), ("with_security",), "security"),
    (("Unbounded message size",), ("unbounded_msg_size",), "unbounded"),
    ((), ("is_rt_init_required",), "real-time"),
)
_QUALITY = {
    "reliability": "qos_reliability",
    "durability": "qos_durability",
    "history": "qos_history_kind",
    "depth": "qos_history_depth",
}
# These differ between two processes of one run, and do not describe the measurement.
OF_PROCESS = frozenset(
    {"Experiment id", "Logfile name", "Number of publishers", "Number of subscribers", "Publishing rate"}
    | {"id", "final_logfile_name", "number_of_publishers", "number_of_subscribers", "rate"}
)


@dataclass(frozen=True)
class Head:
    """The content of a log's head. Null: it does not contain this. `raw` is the head itself."""

    raw: Mapping[str, Any]
    version: str
    communicator: str
    implementation: str | None
    message: str | None
    rate_hz: float | None
    quality: Mapping[str, str]
    publishers: int | None
    subscribers: int | None
    roundtrip: str  # none, main, relay
    switches: tuple[str, ...]

    @property
    def run(self) -> tuple[tuple[str, str], ...]:
        """What the logs of the two processes of one run have in common."""
        return tuple(sorted((key, str(value)) for key, value in self.raw.items() if key not in OF_PROCESS))

    @property
    def depth(self) -> int | None:
        """The depth of the history, if it has one."""
        text = self.quality.get("depth", "")
        return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def of_csv(head: Mapping[str, str]) -> Head:
    """The head of a CSV log: `key: value` lines."""
    quality = head.get("QOS", "")
    names = {"Reliability": "reliability", "Durability": "durability"}
    names |= {"History kind": "history", "History depth": "depth"}
    matches = {mine: re.search(rf"{theirs}: (\S+)", quality) for theirs, mine in names.items()}
    implementation = head.get("RMW Implementation") or head.get("rmw_implementation") or ""
    return Head(
        raw=head,
        version=head.get("Performance Test Version", ""),
        communicator=head.get("Communicator") or head.get("Communication mean") or "unknown",
        implementation=implementation if implementation not in ("", "N/A") else None,
        message=head.get("Msg name") or head.get("Topic name") or None,
        rate_hz=_rate(head.get("Publishing rate")),
        quality={
            mine: qos_match[1].lower()
            for mine, qos_match in matches.items()
            if qos_match and qos_match[1] != "DEFAULT"
        },
        publishers=_entities(head.get("Number of publishers")),
        subscribers=_entities(head.get("Number of subscribers")),
        roundtrip=head.get("Roundtrip Mode", "none").lower(),
        switches=tuple(
            name for keys, _, name in SWITCHES if any(head.get(key, "0") not in ("0", "") for key in keys)
        ),
    )


def of_json(head: Mapping[str, Any]) -> Head:
    """The head of a JSON log: everything but `analysis_results`."""

    def text(key: str) -> str:
        value = head.get(key)
        return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""

    implementation = text("rmw_implementation")
    quality = {mine: text(theirs).lower() for mine, theirs in _QUALITY.items()}
    return Head(
        raw=head,
        version=text("perf_test_version"),
        communicator=text("com_mean_str") or "unknown",
        implementation=implementation if implementation not in ("", "N/A") else None,
        message=text("msg_name") or text("topic_name") or None,
        rate_hz=_rate(text("rate")),
        quality={name: value for name, value in quality.items() if value not in ("", "default")},
        publishers=_entities(text("number_of_publishers")),
        subscribers=_entities(text("number_of_subscribers")),
        roundtrip=(text("roundtrip_mode") or "none").lower(),
        switches=tuple(name for _, keys, name in SWITCHES if any(head.get(key) in (True, 1) for key in keys)),
    )


def _rate(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _entities(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,6}", text, re.ASCII) else None
