# SPDX-License-Identifier: Apache-2.0
"""The scheduler's share of each stay of a message in a layer (docs/methodology/scheduler.md).

Of a stay that one thread hands over to another, the one that is waited for counts: it sleeps until it is
woken, waits in the run queue of a CPU, and runs until the stay's end. So the three times add up to the stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import polars as pl

from lagometer.stats.trial.run_queue import ASLEEP, RUNNING, UNKNOWN, WAITING, Other, RunQueues
from lagometer.stats.trial.way import edge_workers
from lagometer.store.facts import TrialFacts
from lagometer.store.format import SCHEDULER_SCHEMA
from lagometer.store.records import Lane
from lagometer.store.scheduler import SchedulerLog

INSTEAD_MAX = 5  # of a stay, who ran longest instead of its thread
OF_SENDER = ("serialise", "send_path", "send_hand_over", "send")
# A message goes over to the receiver's process within `transport`; the thread waited for is the receiver's.
OF_RECEIVER = ("transport", "receive", "receiving_thread", "wake", "notify", "take", "deserialise")
SENDER, RECEIVER = "sender", "receiver"

Numbers = Mapping[int, int]  # of threads, by those that records have: those that the machine has


@dataclass(frozen=True)
class Scheduled:
    """What the scheduler of one host did, on the conductor's clock. threads: of each worker there."""

    log: SchedulerLog
    threads: Mapping[int, Numbers]


@dataclass(frozen=True)
class SchedulerCounts:
    """How it went. stays: of messages in layers; known: those of which the scheduler tells everything; lost:
    events that found no room; unavailable: why nothing was recorded, by host."""

    stays: int = 0
    known: int = 0
    lost: int = 0
    unavailable: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> Mapping[str, object]:
        """For the journal."""
        return asdict(self)

    def warnings(self) -> Iterator[str]:
        """What a reader of the figures must know."""
        for host, why in self.unavailable.items():
            yield f"scheduler: not available on host {host}: {why}"
        if self.lost:
            yield f"scheduler: {self.lost} events found no room; stays that they may concern are left out"


@dataclass(frozen=True)
class SchedulerTimes:
    """The stays of a trial as `SCHEDULER_SCHEMA`, and how they were found."""

    frame: pl.DataFrame
    counts: SchedulerCounts


@dataclass(frozen=True)
class _Thread:
    queues: RunQueues
    number: int


def scheduler_times(
    layers: pl.DataFrame,
    lanes: Sequence[Lane],
    facts: TrialFacts,
    scheduled: Sequence[Scheduled],
    unavailable: Mapping[str, str],
) -> SchedulerTimes:
    """Takes apart each stay of the layers (as `LAYERS_SCHEMA`). unavailable: why, by host."""
    threads = _threads(scheduled)
    workers = {edge.name: ends for edge in facts.edges if (ends := edge_workers(edge, lanes)) is not None}
    parts = [pl.DataFrame(schema=SCHEDULER_SCHEMA)]
    sided = with_side(layers)
    for key, stays in sided.partition_by("edge", "side", "end_thread", as_dict=True).items():
        edge, side, number = key
        ends = workers.get(str(edge))
        if ends is None or side is None:
            continue
        found = threads.get((ends[side == RECEIVER], int(str(number))))
        if found is not None:
            parts.append(_taken_apart(stays, found))
    frame = pl.concat(parts)
    lost = sum(each.log.lost + each.log.overflow for each in scheduled)
    return SchedulerTimes(frame, SchedulerCounts(layers.height, frame.height, lost, dict(unavailable)))


def _threads(scheduled: Sequence[Scheduled]) -> dict[tuple[int, int], _Thread]:
    """Every worker's threads, by the numbers that records have."""
    found: dict[tuple[int, int], _Thread] = {}
    for each in scheduled:
        queues = RunQueues(each.log)
        for worker, numbers in each.threads.items():
            found |= {(worker, there): _Thread(queues, number) for there, number in numbers.items()}
    return found


def with_side(layers: pl.DataFrame) -> pl.DataFrame:
    """Adds in which process each stay ends, `sender` or `receiver`: where a layer's name does not say it, the
    side of what follows, or else of what was before."""
    text = pl.col("layer").cast(pl.String())
    named = (
        pl.when(text.is_in(OF_SENDER))
        .then(pl.lit(SENDER))
        .when(text.is_in(OF_RECEIVER))
        .then(pl.lit(RECEIVER))
        .otherwise(None)
    )
    known = layers.with_columns(pl.col("edge").cast(pl.String()), named.alias("side"))
    ordered = known.sort("edge", "sequence", "begin_ns", maintain_order=True)
    message = ("edge", "sequence")
    return ordered.with_columns(pl.col("side").backward_fill().over(message).forward_fill().over(message))


def _taken_apart(stays: pl.DataFrame, thread: _Thread) -> pl.DataFrame:
    """The rows of stays that end on one thread; those that are not known whole are left out."""
    timeline = thread.queues.timeline(thread.number)
    begins, ends = stays["begin_ns"].to_numpy(), stays["end_ns"].to_numpy()
    spent = timeline.spent(begins, ends)
    instead = [
        _instead(thread, int(begin_ns), int(end_ns)) if waited else []
        for begin_ns, end_ns, waited in zip(begins, ends, spent[:, WAITING] > 0, strict=True)
    ]
    return stays.select(
        pl.col("edge").cast(SCHEDULER_SCHEMA["edge"]),
        "sequence",
        "layer",
        "begin_ns",
        "end_ns",
        pl.col("end_thread").alias("thread"),
        pl.Series("asleep_ns", spent[:, ASLEEP]),
        pl.Series("waiting_ns", spent[:, WAITING]),
        pl.Series("running_ns", spent[:, RUNNING]),
        pl.Series("instead", instead, dtype=SCHEDULER_SCHEMA["instead"]),
    ).filter(pl.Series(spent[:, UNKNOWN] == 0))


def _instead(thread: _Thread, begin_ns: int, end_ns: int) -> list[dict[str, object]]:
    """Who ran on its CPU while a thread waited, the longest first."""
    spent: dict[Other, int] = {}
    for from_ns, until_ns, cpu in thread.queues.timeline(thread.number).waits(begin_ns, end_ns):
        for other, ran_ns in thread.queues.ran(cpu, from_ns, until_ns):
            spent[other] = spent.get(other, 0) + ran_ns
    ranked = sorted(spent.items(), key=lambda each: (-each[1], each[0].name))[:INSTEAD_MAX]
    return [{**asdict(other), "ran_ns": ran_ns} for other, ran_ns in ranked]
