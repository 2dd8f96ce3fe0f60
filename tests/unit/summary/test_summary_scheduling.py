# SPDX-License-Identifier: Apache-2.0
"""The scheduler's share in every view: the table, single messages, and the trace."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from way_campaign import CELL, FIRST, IN_NODE_NS, SECOND, Made, write_ways

from lagometer.exchange.perfetto import write_chosen
from lagometer.stats.cell.scheduling import edge_scheduling
from lagometer.store import format as form
from lagometer.store.reader import Campaign, open_campaign
from lagometer.summary.findings.derive import findings
from lagometer.summary.scheduling import because, scheduling
from lagometer.summary.summarise import summarise
from lagometer.summary.ways import message_ways

SLOW_NS, OTHERS_NS = 5_000_000, 20_000
LATENCIES = [[OTHERS_NS] * 985 + [SLOW_NS] * 15]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A thousand messages; the slowest waited in `transport` for a hog, of `take` nothing is known."""
    directory = write_ways(tmp_path_factory.mktemp("scheduling"), Made(LATENCIES))
    layers = pl.read_parquet(directory / form.LAYER_FILES / CELL / "0.parquet")
    stay_ns = pl.col("end_ns") - pl.col("begin_ns")
    waits = (pl.col("layer").cast(pl.String()) == "transport") & (stay_ns > OTHERS_NS)
    waiting_ns = pl.when(waits).then(stay_ns - 1_000).otherwise(0)
    ran = pl.struct(
        pl.lit("hog").alias("name"),
        pl.lit(4711, pl.Int64()).alias("thread"),
        pl.lit(1, pl.UInt16()).alias("cpu"),
        (stay_ns - 1_000).alias("ran_ns"),
    )
    instead = pl.when(waits).then(pl.concat_list(ran)).otherwise(pl.lit([], form.SCHEDULER_SCHEMA["instead"]))
    stays = layers.filter(pl.col("layer").cast(pl.String()) != "take").select(
        "edge",
        "sequence",
        "layer",
        "begin_ns",
        "end_ns",
        pl.col("end_thread").alias("thread"),
        (stay_ns - waiting_ns).alias("asleep_ns"),
        waiting_ns.alias("waiting_ns"),
        pl.lit(0, pl.Int64()).alias("running_ns"),
        instead.alias("instead"),
    )
    path = directory / form.SCHEDULER / CELL / "0.parquet"
    path.parent.mkdir(parents=True)
    form.write_scheduler(stays.cast({**form.SCHEDULER_SCHEMA}), path)
    return open_campaign(directory)


def test_each_edge_has_a_row(campaign: Campaign) -> None:
    found = {each.edge: each for each in scheduling([campaign])}
    first = found[FIRST]
    assert first.slowest is not None
    assert (first.whole.messages, first.slowest.messages) == (1000, 10)
    assert first.slowest.known_share == pytest.approx(0.96)
    assert first.slowest.waiting_share == pytest.approx((SLOW_NS / 2 - 1_000) / (0.96 * SLOW_NS))
    assert first.because.startswith(
        "p99 is 5.00 ms: of the slowest 1 %, 52% is waiting for a CPU, while hog ran"
    )
    assert first.because.endswith("(of the 96% that the scheduler recorded).")
    take = next(layer for layer in first.whole.layers if layer.name == "take")
    assert (take.stays, take.known) == (1000, 0)
    assert summarise(campaign).scheduling == list(found.values())


def test_the_finding_is_there_in_every_view(campaign: Campaign) -> None:
    said = [each for each in findings(campaign, {CELL}) if each.kind == "waited-for-a-cpu"]
    assert len(said) == 2  # of each edge
    assert said == [each for each in summarise(campaign).findings if each.kind == "waited-for-a-cpu"]
    assert findings(campaign, {"another"}) == []


def test_single_messages_say_who_ran(campaign: Campaign) -> None:
    ways, _ = message_ways(campaign, [CELL])
    slowest = next(way for way in ways if way.place == 1)
    transport = next(stay for stay in slowest.stays if stay.layer == "transport")
    assert transport.scheduler is not None
    share = transport.scheduler
    assert share.asleep_ns + share.waiting_ns + share.running_ns == transport.end_ns - transport.begin_ns
    assert [(each.name, each.cpu) for each in share.instead] == [("hog", 1)]
    assert all(stay.scheduler is None for stay in slowest.stays if stay.layer in ("take", "computation"))


@pytest.mark.parametrize("recorded_as", ["bridge", "computation"])
def test_in_a_bridge_the_threads_share_is_known_too(tmp_path: Path, recorded_as: str) -> None:
    """In older campaigns the stay has the name that it has in any other node."""
    directory = write_ways(tmp_path, Made([[20_000]], layers=False))
    manifest = json.loads((directory / form.MANIFEST).read_text())
    manifest["cells"][0]["forwarding"] = [[FIRST, SECOND]]
    (directory / form.MANIFEST).write_text(json.dumps(manifest))
    samples = pl.read_parquet(directory / form.SAMPLES / CELL / "0.parquet", glob=False)
    taken_ns = samples.filter(pl.col("edge").cast(pl.String) == FIRST)["taken_ns"][0]
    times = {"asleep_ns": 0, "waiting_ns": 1_000, "running_ns": IN_NODE_NS - 1_000, "instead": []}
    span = {"begin_ns": taken_ns, "end_ns": taken_ns + IN_NODE_NS}
    stay = {"edge": FIRST, "sequence": 0, "layer": recorded_as, **span, "thread": None, **times}
    path = directory / form.SCHEDULER / CELL / "0.parquet"
    path.parent.mkdir(parents=True)
    form.write_scheduler(pl.DataFrame([stay], schema=form.SCHEDULER_SCHEMA), path)
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    (inside,) = [each.scheduler for each in way.stays if each.end_ns - each.begin_ns == IN_NODE_NS]
    assert inside is not None and inside.waiting_ns == 1_000


def test_the_trace_says_who_ran(campaign: Campaign, tmp_path: Path) -> None:
    (path,) = write_chosen(campaign, tmp_path)
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    notes = [
        {note.name: note.string_value or note.int_value for note in packet.track_event.debug_annotations}
        for packet in trace.packet
        if packet.HasField("track_event")
    ]
    told = [each for each in notes if "ran_instead" in each]
    assert told[0]["ran_instead"] == "hog (4711) on CPU 1 for 2.50 ms"
    assert told[0]["waiting_for_cpu_ns"] == 2_499_000


def test_unknown_stays_are_no_share_of_nothing() -> None:
    """All that is known is of messages that are not among the slowest."""
    ends_ns = [2_000] * 1_980 + [50_000] * 20
    stays = [("e", number, "transport", 0, end_ns, 1, 2) for number, end_ns in enumerate(ends_ns)]
    known = [("e", number, "transport", 0, 2_000, 2, 1_000, 0, 1_000, []) for number in range(1_900)]
    layers = pl.DataFrame(stays, schema=form.LAYERS_SCHEMA, orient="row")
    found = edge_scheduling([(layers, pl.DataFrame(known, schema=form.SCHEDULER_SCHEMA, orient="row"))])
    assert found is not None and found.slowest is not None
    assert found.slowest.known_share == 0
    assert because(found) == (
        "p99 is 2.00 µs: of the slowest 1 %, it is not known how much is waiting for a CPU."
    )


def kept(frame: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Stays as `SCHEDULER_SCHEMA`, for the messages of a frame."""
    nobody = pl.lit([], form.SCHEDULER_SCHEMA["instead"])
    all_columns = {"asleep_ns": pl.lit(0), "waiting_ns": pl.lit(0), "instead": nobody, **columns}
    named = [expression.alias(name) for name, expression in all_columns.items()]
    return frame.with_columns(named).select(
        pl.col(name).cast(dtype) for name, dtype in form.SCHEDULER_SCHEMA.items()
    )


def test_what_a_node_does_counts_in_the_measure_phase_alone(tmp_path: Path) -> None:
    """The file has the stays of all phases: those of the warm-up are ten times as long here."""
    directory = write_ways(tmp_path, Made([[OTHERS_NS] * 40]))
    path = directory / form.SAMPLES / CELL / "0.parquet"
    warms_up = pl.col("sequence") < 10
    phase = pl.when(warms_up).then(pl.lit("warmup")).otherwise(pl.lit("measure"))
    samples = pl.read_parquet(path)
    form.write_samples(samples.with_columns(phase.cast(pl.Categorical).alias("phase")), path)
    in_node_ns = pl.when(warms_up).then(10 * IN_NODE_NS).otherwise(IN_NODE_NS)
    computation = kept(
        samples.filter(pl.col("edge").cast(pl.String()) == FIRST),
        layer=pl.lit("computation"),
        begin_ns=pl.col("taken_ns"),
        end_ns=pl.col("taken_ns") + in_node_ns,
        thread=pl.lit(7),
        running_ns=in_node_ns,
    )
    layers = pl.read_parquet(directory / form.LAYER_FILES / CELL / "0.parquet")
    transport = kept(
        layers.filter(pl.col("layer").cast(pl.String()) == "transport"),
        thread=pl.col("end_thread"),
        running_ns=pl.col("end_ns") - pl.col("begin_ns"),
    )
    path = directory / form.SCHEDULER / CELL / "0.parquet"
    path.parent.mkdir(parents=True)
    form.write_scheduler(pl.concat([transport, computation]), path)
    first = next(each for each in scheduling([open_campaign(directory)]) if each.edge == FIRST)
    assert first.whole.messages == 30
    (in_node,) = first.in_node
    assert (in_node.stays, in_node.known) == (30, 30)
    assert in_node.running_ns == pytest.approx(IN_NODE_NS)
