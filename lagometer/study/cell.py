# SPDX-License-Identifier: Apache-2.0
"""A cell: one point of a study's matrix, with everything that is needed to carry it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lagometer.study.graph import Graph
from lagometer.study.payload import PayloadType
from lagometer.study.sidecar import OptionValue


@dataclass(frozen=True)
class Factors:
    """The value of every factor in one cell, with the defaults where the study is silent.

    docs/WORKLOADS.md says what each means. adapter: a name, or `publisher+subscriber`; rate_hz: of the timers
    that follow the study's rate; schedule: of the same timers, in its canonical spelling; work_ns: busy time
    of each relay; work_spread, content: in their canonical spelling; cpus: `any`, `spread` or numbers like
    `0,1`.
    """

    adapter: str
    workload: str
    work_ns: int = 0
    work_spread: str = "none"
    payload_bytes: int = 64
    content: str = "any"
    type: PayloadType = "bytes"
    rate_hz: float = 100.0
    schedule: str = "periodic"
    late: Literal["burst", "skip", "shift"] = "burst"
    reliability: Literal["best_effort", "reliable"] = "best_effort"
    history: Literal["keep_last", "keep_all"] = "keep_last"
    depth: int = 16
    durability: Literal["volatile", "transient_local"] = "volatile"
    dispatch: Literal["listener", "waitset", "poll"] = "waitset"
    touch: Literal["header", "write", "read", "write+read"] = "write+read"
    profile: Literal["default", "matched"] = "default"
    placement: Literal["process-per-node", "single-process"] = "process-per-node"
    scheduling: Literal["other", "fifo"] = "other"
    cpus: str = "any"
    network: Literal["private", "host"] = "private"
    domain: int = 0
    interference: str = "none"
    tuning: Literal["none", "latency"] = "none"
    variant: str = "none"

    @property
    def publisher_adapter(self) -> str:
        """The adapter that every publisher of the cell uses."""
        return self.adapter.split("+")[0]

    @property
    def subscriber_adapter(self) -> str:
        """The adapter that every subscriber of the cell uses."""
        return self.adapter.split("+")[-1]


@dataclass(frozen=True)
class Cell:
    """One point of the matrix.

    id: unique in the study, the folder name under `samples/`; named: the fields of `factors` that the study
    varies or sets; graph: the workload with rate and work filled in; workers: for each worker (a process),
    its nodes' names; options: adapter → option → value, the variant's over the study's; environment: the
    variant's, of the workers.
    """

    id: str
    factors: Factors
    named: tuple[str, ...]
    graph: Graph
    workers: tuple[tuple[str, ...], ...]
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def columns(self) -> dict[str, object]:
        """The factors as the columns of cells.parquet: null where the study neither varies nor sets one."""
        return {
            field: getattr(self.factors, field) if field in self.named else None
            for field in Factors.__dataclass_fields__
        }

    def worker_cpus(self, worker: int, available: tuple[int, ...]) -> tuple[int, ...]:
        """The CPUs that a worker is pinned to, empty for none; `available`: those that this process
        may use."""
        if self.factors.cpus == "any":
            return ()
        if self.factors.cpus == "spread":
            return (available[worker % len(available)],)
        return tuple(int(cpu) for cpu in self.factors.cpus.split(","))


@dataclass(frozen=True)
class Excluded:
    """A combination that cannot exist, or that the study leaves out, and why.

    instead: options of `lagometer measure` with which its adapters' declared limits allow it.
    """

    cell: str
    reason: str
    instead: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expansion:
    """What a study comes to on this machine: the cells to carry out, and those that are excluded."""

    cells: tuple[Cell, ...]
    excluded: tuple[Excluded, ...]
