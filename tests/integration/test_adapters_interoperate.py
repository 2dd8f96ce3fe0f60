# SPDX-License-Identifier: Apache-2.0
"""Cyclone DDS and Fast DDS with each other; all middleware with late joiners, domains, many processes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from campaign_support import run_cells
from needs import DDS, MIDDLEWARE, adapter_library, declares, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, apart, node, plan, reader, timer, writer
from worker_support import daemons_beside, machine, run_private, run_together

from lagometer.store.records import KIND_RECEIVED, KIND_SENT
from lagometer.study.adapters import load_adapter

DIRECTORY = "/dev/shm/lagometer"
KEEP_ALL: Mapping = {"reliability": "reliable", "history": "keep_all"}
WITHOUT_DEPTH = ("mqtt",)  # keep-last is a queue of the broker's there, whatever the depth
DEPTH = 8
EARLY = 20  # messages that are sent before the late joiner is there


PAIRS = pytest.mark.parametrize("pair", ["cyclonedds+fastdds", "fastdds+cyclonedds"])


def pair_rows(build: Path, folder: Path, pair: str, **factors: list[str]) -> pl.DataFrame:
    """The rows of both reliabilities; of what was sent reliably, all came, and nothing was damaged."""
    for name in DDS:
        need(name)
    matrix = {"adapter": [pair], "reliability": ["best_effort", "reliable"], **factors}
    rows = run_cells(build, folder, matrix)
    reliable = rows.filter(pl.col("reliability") == "reliable")
    assert (reliable["n"] == reliable["sent"]).all(), reliable.select("cell", "edge", "n", "sent").rows()
    assert (rows["n"] > 0).all()
    assert (rows["corrupted"] == 0).all()
    return rows


@pytest.mark.parametrize("kind", ["bytes", "fixed"])
@PAIRS
def test_the_two_talk_to_each_other(build: Path, tmp_path: Path, pair: str, kind: str) -> None:
    rows = pair_rows(
        build, tmp_path, pair, workload=["pipeline-2"], payload=["64B", "64KB"], type=[kind], rate=["100Hz"]
    )
    assert rows["cell"].n_unique() == 4


@PAIRS
def test_the_two_answer_each_other(build: Path, tmp_path: Path, pair: str) -> None:
    """A closed loop: each of the two publishes and subscribes in the same process."""
    rows = pair_rows(build, tmp_path, pair, workload=["pingpong"], payload=["64B", "64KB"])
    assert set(rows["edge"]) == {"ping→pong", "pong→ping", "end-to-end"}


@PAIRS
def test_one_of_the_two_is_heard_by_three_of_the_other(build: Path, tmp_path: Path, pair: str) -> None:
    rows = pair_rows(build, tmp_path, pair, workload=["fanout-3"], payload=["64B", "64KB"], rate=["50Hz"])
    edges = rows.filter(pl.col("edge") != "end-to-end")
    assert edges["edge"].n_unique() == 3
    assert len(edges) == 2 * 2 * 3


def one_way(build: Path, adapter: str, qos: Mapping) -> tuple[Mapping, Mapping]:
    """A plan that sends every 5 ms and expects nobody, and one that listens and expects nobody."""
    library = adapter_library(adapter, build)
    source = node("source", 0, [], [writer("late", 0, qos=qos)], [timer(5 * MILLISECOND_NS)], "waitset")
    sink = node("sink", 1, [reader("late", [], qos=qos)], [], [any_message()], "waitset")
    send = plan(library, DIRECTORY, [source], measure_ns=20_000 * MILLISECOND_NS)
    return send, plan(library, DIRECTORY, [sink], measure_ns=20_000 * MILLISECOND_NS)


@pytest.mark.parametrize("durability", ["transient_local", "volatile"])
@pytest.mark.parametrize("adapter", MIDDLEWARE)
def test_a_late_joiner_gets_what_durability_promises(build: Path, adapter: str, durability: str) -> None:
    need("netns")
    need(adapter)
    if not declares(adapter, build, "durability", durability):
        return
    limits = load_adapter(adapter_library(adapter, build).parent).sidecar.limits
    if durability == "transient_local" and limits.transient_local_depth_max is not None:
        return  # keeps less than is sent here: in a test of its own
    depth = min(4_000, limits.depth_max or 4_000)
    qos = {"reliability": "reliable", "history": "keep_last", "depth": depth, "durability": durability}
    send, listen = one_way(build, adapter, qos)
    with machine(build, 2, beside=daemons_beside(adapter_library(adapter, build))) as private:
        first, late = private.workers
        first.send(send)
        first.wait_for("matched")
        first.wait_for_records(KIND_SENT, EARLY)
        late.send(listen)
        late.wait_for("matched")
        late.wait_for_records(KIND_RECEIVED, 2 * EARLY)
        for worker in private.workers:
            worker.send({"command": "stop"})
        _, said = private.finish()
    sequences = said.lane(KIND_RECEIVED, 1, 0)["sequence"].tolist()
    if durability == "transient_local":
        assert sequences == list(range(len(sequences)))
    else:
        assert min(sequences) >= EARLY


@pytest.mark.parametrize("adapter", MIDDLEWARE)
def test_two_domains_do_not_hear_each_other(build: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    if not declares(adapter, build, "domains", "1"):
        return
    nodes = [
        node("source", 0, [], [writer("t", 0)], [timer(5 * MILLISECOND_NS)], "waitset"),
        node("same", 1, [reader("t", [0])], [], [any_message()], "waitset"),
        node("other", 2, [reader("t", [], context=1)], [], [any_message()], "waitset"),
    ]
    both = plan(adapter_library(adapter, build), DIRECTORY, nodes)
    both["contexts"].append({"adapter": 0, "domain": 1, "name": "other"})
    (said,) = run_private(build, [both])
    assert said.code == 0, said.events[-1:]
    assert len(said.lane(KIND_RECEIVED, 1, 0)) == len(said.lane(KIND_SENT, 0, 0)) > 20
    assert len(said.lane(KIND_RECEIVED, 2, 0)) == 0


def burst(build: Path, adapter: str, qos: Mapping, work_ns: int) -> tuple[list[int], list[int]]:
    """300 messages in 30 ms for a reader that works on each: the sequences that were accepted, and taken."""
    source = node("source", 0, [], [writer("t", 0, qos=qos)], [timer(MILLISECOND_NS // 10)], "waitset")
    sink = node("sink", 1, [reader("t", [0], qos=qos)], [], [any_message(work_ns=work_ns)], "waitset")
    phases = {"warmup_ns": 0, "measure_ns": 30 * MILLISECOND_NS, "drain_ns": 2_000 * MILLISECOND_NS}
    plans = apart(adapter_library(adapter, build), DIRECTORY, [source, sink], **phases)
    send, listen = run_together(build, plans)
    sent, received = send.lane(KIND_SENT, 0, 0), listen.lane(KIND_RECEIVED, 1, 0)
    return sent[sent["status"] == 0]["sequence"].tolist(), received["sequence"].tolist()


@pytest.mark.parametrize("adapter", ["shm", *MIDDLEWARE])
def test_keep_all_loses_nothing_to_a_slow_reader(build: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    if not declares(adapter, build, "history", "keep_all"):
        return
    accepted, received = burst(build, adapter, KEEP_ALL, MILLISECOND_NS)
    assert len(accepted) > 0
    assert received == accepted


@pytest.mark.parametrize("adapter", ["shm", *MIDDLEWARE])
def test_keep_last_gives_a_slow_reader_the_newest(build: Path, adapter: str) -> None:
    """The reader works for longer than the burst lasts: of what comes meanwhile it finds the newest eight."""
    need("netns")
    need(adapter)
    if adapter in WITHOUT_DEPTH:
        return
    qos = {"reliability": "reliable", "history": "keep_last", "depth": DEPTH}
    accepted, received = burst(build, adapter, qos, 50 * MILLISECOND_NS)
    assert len(accepted) == 300
    assert received == sorted(set(received)) and set(received) < set(accepted)
    assert received[-DEPTH:] == accepted[-DEPTH:]
    assert len(received) < len(accepted) // 2


@pytest.mark.parametrize("adapter", MIDDLEWARE)
def test_23_nodes_in_23_processes_find_each_other(build: Path, tmp_path: Path, adapter: str) -> None:
    need(adapter)
    matrix = {
        "adapter": [adapter],
        "workload": ["pipeline-23"],
        "rate": ["20Hz"],
        "reliability": ["reliable"],
        "placement": ["process-per-node"],
    }
    rows = run_cells(build, tmp_path, matrix)
    whole = rows.filter(pl.col("edge") == "end-to-end")
    assert len(rows) == 23
    assert (whole["n"] == whole["sent"]).all()
    assert (whole["n"] > 0).all()
