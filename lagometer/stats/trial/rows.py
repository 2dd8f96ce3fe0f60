# SPDX-License-Identifier: Apache-2.0
"""The rows of one edge or chain before they become a frame, and the codes for what happened to messages."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.stats.trial.sent import Index, Mask
from lagometer.store import format as form
from lagometer.store.records import Records

Codes = npt.NDArray[np.int8]
Times = npt.NDArray[np.int64]
(DELIVERED, LOST, OVERWRITTEN, CENSORED, REJECTED, DUPLICATE, UNMATCHED, UNANSWERED, UNREACHABLE) = range(
    len(form.OUTCOMES)
)
# If a chain broke in several places, the code that says most about it.
SEVERITY = {REJECTED: 1, CENSORED: 2, OVERWRITTEN: 3, LOST: 4, UNANSWERED: 5}
UNKNOWN_NS = -1


@dataclass(frozen=True)
class ChainParts:
    """The parts of the time of each row of a chain; UNKNOWN_NS if a part is unknown."""

    communication_ns: Times
    computation_ns: Times
    idle_ns: Times


@dataclass(frozen=True)
class EdgeRows:
    """The rows of one edge, or of a chain. All arrays have the same length."""

    name: str
    sent: Index  # in the sent table; NOWHERE if the sending was not recorded
    taken: Index  # in `received`; NOWHERE if the message was not taken
    outcome: Codes
    reordered: Mask
    received: Records
    payload_bytes: int  # of messages that were not taken, if `sizes_bytes` does not contain it
    sizes_bytes: tuple[int, ...] = ()
    parts: ChainParts | None = None
    receiver_clock: str = ""  # as in the `EdgeSpec` of its last edge
    # When the callback of each of `received` began; empty for a chain.
    started_ns: Times = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Calls in the sent table that were made while nobody could answer, and that a server took later.
    kept: Index = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def by_edge(samples: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The samples of each edge, in one pass; filtering edge by edge would be quadratic in their number."""
    parts = samples.partition_by("edge", as_dict=True, maintain_order=True)
    return {str(name): part for (name,), part in parts.items()}


def codes(code: int, count: int) -> Codes:
    """This many copies of the same code."""
    return np.full(count, code, dtype=np.int8)


def worst_codes(severity: Codes) -> Codes:
    """The code for each degree of severity; 0 has none."""
    code_of = np.zeros(max(SEVERITY.values()) + 1, dtype=np.int8)
    code_of[list(SEVERITY.values())] = list(SEVERITY)
    return code_of[severity]


def overtaken(sequences: npt.NDArray[np.uint64], groups: Index) -> Mask:
    """Whether an earlier message of the same group has a higher sequence; all are in the order of taking."""
    is_overtaken = np.zeros(len(sequences), dtype=np.bool_)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        highest = np.maximum.accumulate(sequences[members])
        is_overtaken[members] = sequences[members] < highest
    return is_overtaken
