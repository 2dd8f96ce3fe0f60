# SPDX-License-Identifier: Apache-2.0
"""Messaging libraries without a broker: transports, what a full queue drops, what an end leaves."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import polars as pl
import pytest
from campaign_support import (
    ENDED_S,
    journal,
    lagometer,
    run_cells,
    running,
    signal_a_worker,
    wait_until,
    write_study,
)
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, apart, node, pingpong, reader, timer, writer
from worker_support import run_together

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

ADAPTERS = ("zeromq", "nng", "lcm")
THREE_TRANSPORTS = ("zeromq", "nng")
DIRECTORY = "/dev/shm/lagometer"
CARRIES = {"ipc": "unix-socket", "tcp": "tcp", "inproc": "process"}
BEST_EFFORT: Mapping = {"reliability": "best_effort", "history": "keep_last", "depth": 16}


def programs(build: Path) -> dict[str, str]:
    return {
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }


@pytest.mark.by_turn
@pytest.mark.parametrize("transport", CARRIES)
@pytest.mark.parametrize("adapter", THREE_TRANSPORTS)
def test_each_transport_carries_what_is_claimed(
    build: Path, tmp_path: Path, adapter: str, transport: str
) -> None:
    need(adapter)
    # Large enough that the loopback's counters tell TCP from what does not go over it.
    matrix = {
        "adapter": [adapter],
        "workload": ["pipeline-3"],
        "payload": ["16B", "100KB", "2MB"],
        "rate": ["20Hz"],
        "dispatch": ["waitset"],
        "placement": ["single-process" if transport == "inproc" else "process-per-node"],
    }
    options = {adapter: {"transport": transport}}
    rows = run_cells(build, tmp_path, matrix, options=options, duration="300ms", drain="500ms")
    rows = rows.filter(pl.col("edge") != "end-to-end")
    assert (rows["n"] > 0).all()
    assert rows["transport"].unique().to_list() == [CARRIES[transport]]


@pytest.mark.parametrize("adapter", THREE_TRANSPORTS)
def test_inproc_reaches_no_other_process_and_says_so(build: Path, tmp_path: Path, adapter: str) -> None:
    need(adapter)
    study = write_study(
        tmp_path,
        matrix={"adapter": adapter, "workload": "pingpong"},
        options={adapter: {"transport": "inproc"}},
    )
    _, said, errors = lagometer(tmp_path, "plan", str(study), "--json", environment=programs(build))
    (excluded,) = json.loads(said)["excluded"]
    assert f"{adapter} with transport inproc works only within one process" in excluded["reason"], errors


def to_a_slow_reader(
    build: Path, adapter: str, options: Mapping, endpoint: Mapping, work_ns: int, **phases: int
) -> tuple[list[int], list[int], int]:
    """The sequences that the writer's library accepted, those that the reader got, how many were rejected."""
    need("netns")
    need(adapter)
    source = node("source", 0, [], [writer("t", 0, **endpoint)], [timer(MILLISECOND_NS)], "waitset")
    sink = node("sink", 1, [reader("t", [0], **endpoint)], [], [any_message(work_ns=work_ns)], "waitset")
    plans = apart(adapter_library(adapter, build), DIRECTORY, [source, sink], warmup_ns=0, **phases)
    for each in plans:
        each["adapters"][0]["options"] = options
    send, listen = run_together(build, plans)
    assert listen.event("done")["readers"][0]["corrupted"] == 0
    sent, received = send.lane(KIND_SENT, 0, 0), listen.lane(KIND_RECEIVED, 1, 0)
    accepted = sent[sent["status"] == 0]["sequence"].tolist()
    return accepted, received["sequence"].tolist(), len(sent) - len(accepted)


@pytest.mark.parametrize("adapter", ["zeromq", "lcm"])
def test_a_full_queue_drops_the_newest(build: Path, adapter: str) -> None:
    """A hundred messages while the reader works on the first: what it finds then are the next few."""
    # Of ZeroMQ's, large ones, since the kernel's buffers come before its queues; LCM empties them by itself.
    payload_bytes = 1 << 20 if adapter == "zeromq" else 64
    endpoint = {"qos": {**BEST_EFFORT, "depth": 2}, "payload_bytes": payload_bytes, "capacity": 1_000}
    phases = {"measure_ns": 100 * MILLISECOND_NS, "drain_ns": 3_000 * MILLISECOND_NS}
    work_ns = 300 * MILLISECOND_NS
    accepted, received, rejected = to_a_slow_reader(build, adapter, {}, endpoint, work_ns, **phases)
    assert rejected == 0
    assert len(accepted) == 100
    assert 3 <= len(received) == len(set(received))
    assert received == sorted(received)
    assert received[-1] < accepted[50]


def test_a_full_queue_of_nng_drops_the_oldest(build: Path) -> None:
    """A hundred messages while the reader works on the first: what it finds then are the last ones."""
    endpoint = {"qos": {**BEST_EFFORT, "depth": 2}, "payload_bytes": 64, "capacity": 1_000}
    phases = {"measure_ns": 100 * MILLISECOND_NS, "drain_ns": 3_000 * MILLISECOND_NS}
    work_ns = 300 * MILLISECOND_NS
    accepted, received, rejected = to_a_slow_reader(build, "nng", {}, endpoint, work_ns, **phases)
    assert rejected == 0
    assert len(accepted) == 100
    assert 2 <= len(received) < 50
    assert received == sorted(set(received))
    assert received[-1] == accepted[-1]


def test_the_queues_of_nng_are_as_long_as_the_options_say(build: Path) -> None:
    """As above, with a queue that holds all that come meanwhile."""
    endpoint = {"qos": {**BEST_EFFORT, "depth": 2}, "payload_bytes": 64, "capacity": 1_000}
    phases = {"measure_ns": 100 * MILLISECOND_NS, "drain_ns": 3_000 * MILLISECOND_NS}
    queues = {"send_buffer_messages": 200, "receive_buffer_messages": 200}
    work_ns = 10 * MILLISECOND_NS
    accepted, received, _ = to_a_slow_reader(build, "nng", queues, endpoint, work_ns, **phases)
    assert received == accepted
    assert len(accepted) == 100


def test_a_queue_of_zeromq_that_has_been_read_is_not_full(build: Path) -> None:
    """One message under way at a time, and far more of them in a millisecond than the queue holds."""
    need("netns")
    need("zeromq")
    nodes = pingpong("waitset", qos={**BEST_EFFORT, "depth": 2})
    plans = apart(adapter_library("zeromq", build), DIRECTORY, nodes, measure_ns=500 * MILLISECOND_NS)
    ping, _ = run_together(build, plans)
    assert len(ping.lane(KIND_RECEIVED, 0, 0)) == len(ping.lane(KIND_SENT, 0, 0)) > 100


@pytest.mark.parametrize(
    "qos", [("reliable", "keep_all"), ("reliable", "keep_last"), ("best_effort", "keep_all")]
)
def test_zeromq_holds_back_where_it_promises_every_message(build: Path, qos: tuple[str, str]) -> None:
    reliability, history = qos
    endpoint = {
        "qos": {"reliability": reliability, "history": history, "depth": 2},
        "payload_bytes": 8 << 20,
        "capacity": 10_000,
    }
    # A reliable writer waits for a second, so the reader stalls for longer than that at each message.
    work_ns = (1_500 if reliability == "reliable" else 100) * MILLISECOND_NS
    phases = {"measure_ns": 2_000 * MILLISECOND_NS, "drain_ns": 2_000 * MILLISECOND_NS}
    marks = {"send_hwm": 2, "receive_hwm": 2}
    accepted, received, rejected = to_a_slow_reader(build, "zeromq", marks, endpoint, work_ns, **phases)
    assert rejected > 0
    # When the drain ends some are still under way; up to there, all that was accepted came and nothing else.
    assert len(received) >= 2
    assert received == accepted[: len(received)]


@pytest.mark.by_turn
@pytest.mark.crossed
@pytest.mark.parametrize("phase", ["discover", "measure", "tear-down"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_nothing_is_left_of_an_interrupted_trial(
    build: Path, tmp_path: Path, adapter: str, number: signal.Signals, phase: str
) -> None:
    """SIGINT for the conductor, SIGKILL for a worker."""
    need("netns")
    need(adapter)
    matrix = {"adapter": adapter, "workload": "pipeline-3", "rate": "10Hz"}
    trials = 30 if number == signal.SIGINT else 2  # so that there is still something to interrupt
    study, out = write_study(tmp_path, matrix=matrix, trials=trials), tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    with running(tmp_path, *arguments, environment=programs(build)) as run:
        assert wait_until(lambda: run.reached(phase, 1) or run.process.poll() is not None)
        run.note_namespaces()
        if number == signal.SIGINT:
            run.process.send_signal(number)
        else:
            signal_a_worker(run, number)
        code, _, errors = run.end()
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    assert code in ((130,) if number == signal.SIGINT else (0, 3)), errors
    assert journal(out)[0]["valid"], journal(out)[0]["reasons"]
