# SPDX-License-Identifier: Apache-2.0
"""What came of one trial, as the conductor saw it; nothing here is judged yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lagometer.run.companions import interference
from lagometer.run.companions.daemons import Done as DaemonDone
from lagometer.run.observe.witness import Evidence
from lagometer.run.worker.messages import Done, Ready

# What a worker says when it has come so far: its process, its participants and endpoints, all matched.
STARTUP = {"hello": "process", "ready": "participant", "matched": "matched"}
PHASES = ("create", "discover", "warm-up", "measure", "drain", "tear-down")


@dataclass(frozen=True)
class WorkerOutcome:
    """One worker: what it said, and its records even if it did not live to hand them over.

    startup_ns: from when the workers were started until its process was up, its endpoints were created, and
    all that they expect was heard; as far as it came.
    """

    index: int
    name: str
    ready: Ready | None
    done: Done | None
    records: bytes | bytearray | memoryview | None
    stderr: str
    startup_ns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialOutcome:
    """One trial. `reasons` is empty if everything went as the protocol wants it.

    Each reason begins with its code (docs/methodology/validity.md) and a colon. Times named `_ns` are on
    CLOCK_MONOTONIC and 0 where the trial didn't get that far; `overhead_s` is first spawn to last exit, less
    warm-up, measure and drain.
    """

    workers: tuple[WorkerOutcome, ...]
    begin_ns: int
    measure_begin_ns: int
    measure_end_ns: int
    drain_end_ns: int
    started: str
    seconds: float
    overhead_s: float
    phases_s: Mapping[str, float]
    isolation: Mapping[str, Any] = field(default_factory=dict)
    evidence: Evidence | None = None  # None if it ended before the common start
    load: interference.Done | None = None  # None without interference
    daemons: tuple[DaemonDone, ...] = ()
    workers_started_ns: int = 0  # on CLOCK_MONOTONIC
    discovery_ns: int | None = None  # from the last worker's `ready` to the last one's `matched`
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
