# SPDX-License-Identifier: Apache-2.0
"""The scheduler's share of each stay of a message in a layer (docs/methodology/scheduler.md).

If one thread hands a stay over to another, the awaited thread counts: it sleeps until it is woken, waits in a
CPU's run queue, and runs until the end of the stay. So the three times add up to the stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import polars as pl

from lagometer.stats.trial.layer_times import edge_workers
from lagometer.stats.trial.run_queue import ASLEEP, RUNNING, UNKNOWN, WAITING, Other, RunQueues
from lagometer.stats.trial.way import NODE_THREAD, THREAD_NAME_MAX
from lagometer.store.facts import TrialFacts
from lagometer.store.format import LAYERS_SCHEMA, SCHEDULER_SCHEMA
from lagometer.store.records import Lane
from lagometer.store.scheduler import SchedulerLog

INSTEAD_MAX = 32  # per stay, the threads that ran longest in its place
OF_SENDER = ("serialise", "send_path", "send_hand_over", "send")
# Within these layers a message moves to the receiver's process; the awaited thread is the receiver's.
ACROSS = ("transport", "unseen_transport")
OF_RECEIVER = (
    *ACROSS,
    "receive",
    "receiving_thread",
    "receive_hand_over",
    "wake",
    "notify",
    "until_polled",
    "take",
    "deserialise",
)
SENDER, RECEIVER = "sender", "receiver"
# Between two edges: in a bridge between domains or adapters, where a message is still on its way, or in any
# other node: behind the callbacks of messages that the same call took, in its own, and until a callback uses
# the data.
BRIDGE, QUEUE, COMPUTATION, IDLE = "bridge", "callback_queue", "computation", "idle"
IN_NODE = (BRIDGE, QUEUE, COMPUTATION, IDLE)

Numbers = Mapping[int, int]  # thread ids: from those in records to those on the machine


@dataclass(frozen=True)
class Scheduled:
    """The scheduler data of one host, on the conductor's clock. threads: of each worker there."""

    log: SchedulerLog
    threads: Mapping[int, Numbers]

    def of_node(self, worker: int, node: str) -> int | None:
        """The machine's id of a node's thread; None unless exactly one thread has its name."""
        name = f"{NODE_THREAD}{node}"[:THREAD_NAME_MAX]
        numbers = self.threads.get(worker, {}).values()
        matching = [number for number in numbers if self.log.names.get(number) == name]
        return matching[0] if len(matching) == 1 else None


@dataclass(frozen=True)
class SchedulerCounts:
    """The result of the analysis. stays: of messages in layers. known: those the scheduler data cover
    completely. lost: events that did not fit. unavailable: why nothing was recorded, by host."""

    stays: int = 0
    known: int = 0
    lost: int = 0
    unavailable: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> Mapping[str, object]:
        """For the journal."""
        return asdict(self)

    def warnings(self) -> Iterator[str]:
        """What a reader of the figures needs to know."""
        for host, reason in self.unavailable.items():
            yield f"scheduler: not available on host {host}: {reason}"
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
    samples: pl.DataFrame,
    lanes: Sequence[Lane],
    facts: TrialFacts,
    scheduled: Sequence[Scheduled],
    unavailable: Mapping[str, str],
) -> SchedulerTimes:
    """Splits each stay in the layers (as `LAYERS_SCHEMA`), and each stay in the nodes between. samples: those
    of the trial. unavailable: why, by host."""
    threads = _threads(scheduled)
    workers = {edge.name: ends for edge in facts.edges if (ends := edge_workers(edge, lanes)) is not None}
    parts = [pl.DataFrame(schema=SCHEDULER_SCHEMA)]
    sided = with_side(layers)
    for key, stays in sided.partition_by("edge", "side", "end_thread", as_dict=True).items():
        edge, side, number = key
        ends = workers.get(str(edge))
        if ends is None or side is None:
            continue
        thread = threads.get((ends[side == RECEIVER], int(str(number))))
        if thread is not None:
            parts.append(_taken_apart(stays, thread))
    known = sum(part.height for part in parts)
    parts += _in_nodes(samples, facts, scheduled, workers)
    frame = pl.concat(parts)
    lost = sum(host.log.lost + host.log.overflow for host in scheduled)
    return SchedulerTimes(frame, SchedulerCounts(layers.height, known, lost, dict(unavailable)))


def _threads(scheduled: Sequence[Scheduled]) -> dict[tuple[int, int], _Thread]:
    """Every worker's threads, by the ids in records."""
    threads: dict[tuple[int, int], _Thread] = {}
    for host in scheduled:
        queues = RunQueues(host.log)
        for worker, numbers in host.threads.items():
            threads |= {
                (worker, record_number): _Thread(queues, number) for record_number, number in numbers.items()
            }
    return threads


def with_side(layers: pl.DataFrame) -> pl.DataFrame:
    """Adds the process in which each stay ends, `sender` or `receiver`. If a layer's name does not say it,
    the side where the next layer begins counts, or else that where the previous one ends."""
    text = pl.col("layer").cast(pl.String())
    named = (
        pl.when(text.is_in(OF_SENDER))
        .then(pl.lit(SENDER))
        .when(text.is_in(OF_RECEIVER))
        .then(pl.lit(RECEIVER))
        .otherwise(None)
    )
    begins = pl.when(text.is_in(ACROSS)).then(pl.lit(SENDER)).otherwise(named)
    known = layers.with_columns(pl.col("edge").cast(pl.String()), named.alias("side"), begins.alias("begins"))
    ordered = known.sort("edge", "sequence", "begin_ns", maintain_order=True)
    message = ("edge", "sequence")
    next_side = pl.col("begins").backward_fill().over(message)
    return ordered.with_columns(
        pl.coalesce("side", next_side, pl.col("side").forward_fill().over(message)).alias("side")
    ).drop("begins")


def _in_nodes(
    samples: pl.DataFrame,
    facts: TrialFacts,
    scheduled: Sequence[Scheduled],
    workers: Mapping[str, tuple[int, int]],
) -> Iterator[pl.DataFrame]:
    """Rows for what nodes do between taking a message and publishing the one it causes, on each edge."""
    rows = in_nodes(samples, facts)
    queues = [(host, RunQueues(host.log)) for host in scheduled]
    for edge in facts.edges:
        ends = workers.get(edge.name)
        for host, host_queues in queues if ends is not None else ():
            assert ends is not None
            number = host.of_node(ends[1], edge.receiver)
            if number is not None:
                yield _taken_apart(rows.filter(pl.col("edge") == edge.name), _Thread(host_queues, number))


def in_nodes(samples: pl.DataFrame, facts: TrialFacts) -> pl.DataFrame:
    """From `taken` until the message it causes is published: `callback_queue` until its callback begins,
    `computation`, and `idle` if another callback uses its data; or `bridge`, if the node is one
    (docs/methodology/chains.md). The rows look like stays in layers, with the edge and sequence of the taken
    message."""
    text = pl.col("edge").cast(pl.String())
    delivered = samples.filter(pl.col("outcome").cast(pl.String()) == "delivered").with_columns(text)
    first_cause = pl.struct(
        pl.col("cause_stream").alias("stream"), pl.col("cause_sequence").alias("sequence")
    )
    caused = (
        delivered.filter(pl.col("cause_stream").is_not_null())
        .select(
            "edge",
            "publish_ns",
            "begun_ns",
            pl.coalesce("causes", pl.concat_list(first_cause)).alias("cause"),
        )
        .explode("cause")
        .unnest("cause")
    )
    ends = pl.DataFrame(
        [(edge.name, edge.sender, edge.receiver, edge.stream) for edge in facts.edges],
        schema={"edge": pl.String, "sender": pl.String, "receiver": pl.String, "stream": pl.UInt32},
        orient="row",
    )
    taken = delivered.join(ends, on="edge").select(
        pl.col("edge").alias("taken_edge"),
        *("receiver", "stream", "sequence", "taken_ns", "handled_ns"),
        pl.coalesce("started_ns", "taken_ns").alias("started_ns"),
    )
    published = caused.join(ends.select("edge", "sender"), on="edge")
    pairs = taken.join(
        published, left_on=("receiver", "stream", "sequence"), right_on=("sender", "stream", "sequence")
    ).filter(pl.col("taken_ns") <= pl.col("publish_ns"))
    bridges = pl.DataFrame(
        sorted(facts.forwarding), schema={"taken_edge": pl.String, "edge": pl.String}, orient="row"
    )
    on_the_way = pairs.join(bridges, on=("taken_edge", "edge"), how="semi", maintain_order="left")
    pairs = pairs.join(bridges, on=("taken_edge", "edge"), how="anti", maintain_order="left")
    waits = (
        (pl.col("started_ns") <= pl.col("handled_ns"))
        & (pl.col("handled_ns") < pl.col("begun_ns"))
        & (pl.col("begun_ns") <= pl.col("publish_ns"))
    ).fill_null(False)
    later = pairs.filter(waits)
    return pl.concat(
        [
            _stays(on_the_way, BRIDGE, "taken_ns", "publish_ns"),
            _stays(pairs, QUEUE, "taken_ns", "started_ns"),
            _stays(pairs.filter(~waits), COMPUTATION, "started_ns", "publish_ns"),
            _stays(later, COMPUTATION, "started_ns", "handled_ns"),
            _stays(later, IDLE, "handled_ns", "begun_ns"),
            _stays(later, COMPUTATION, "begun_ns", "publish_ns"),
        ]
    ).unique(("edge", "sequence", "layer", "begin_ns"), maintain_order=True)


def _stays(pairs: pl.DataFrame, layer: str, begin: str, end: str) -> pl.DataFrame:
    return pairs.select(
        pl.col("taken_edge").alias("edge"),
        "sequence",
        pl.lit(layer).cast(LAYERS_SCHEMA["layer"]).alias("layer"),
        pl.col(begin).alias("begin_ns"),
        pl.col(end).alias("end_ns"),
        pl.lit(None, pl.UInt32()).alias("end_thread"),
    ).filter(pl.col("begin_ns") < pl.col("end_ns"))


def _taken_apart(stays: pl.DataFrame, thread: _Thread) -> pl.DataFrame:
    """The rows of stays that end on one thread; stays that are not completely known are left out."""
    timeline = thread.queues.timeline(thread.number)
    begins, ends = stays["begin_ns"].to_numpy(), stays["end_ns"].to_numpy()
    durations_ns = timeline.spent(begins, ends)
    instead = [
        _instead(thread, int(begin_ns), int(end_ns)) if waited else []
        for begin_ns, end_ns, waited in zip(begins, ends, durations_ns[:, WAITING] > 0, strict=True)
    ]
    return stays.select(
        pl.col("edge").cast(SCHEDULER_SCHEMA["edge"]),
        "sequence",
        "layer",
        "begin_ns",
        "end_ns",
        pl.col("end_thread").alias("thread"),
        pl.Series("asleep_ns", durations_ns[:, ASLEEP]),
        pl.Series("waiting_ns", durations_ns[:, WAITING]),
        pl.Series("running_ns", durations_ns[:, RUNNING]),
        pl.Series("instead", instead, dtype=SCHEDULER_SCHEMA["instead"]),
    ).filter(pl.Series(durations_ns[:, UNKNOWN] == 0))


def _instead(thread: _Thread, begin_ns: int, end_ns: int) -> list[dict[str, object]]:
    """What ran on its CPU while a thread waited, the longest first."""
    total_ns: dict[Other, int] = {}
    for from_ns, until_ns, cpu in thread.queues.timeline(thread.number).waits(begin_ns, end_ns):
        for other, ran_ns in thread.queues.ran(cpu, from_ns, until_ns):
            total_ns[other] = total_ns.get(other, 0) + ran_ns
    ranked = sorted(total_ns.items(), key=lambda item: (-item[1], item[0].name))[:INSTEAD_MAX]
    return [{**asdict(other), "ran_ns": ran_ns} for other, ran_ns in ranked]
