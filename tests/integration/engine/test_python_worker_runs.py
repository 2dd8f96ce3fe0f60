# SPDX-License-Identifier: Apache-2.0
"""The worker in Python against real middleware: conversation, schedules, how it ends, whole campaigns."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from campaign_support import (
    ENDED_S,
    arguments_of,
    journal,
    lagometer,
    reach,
    running,
    signal_a_worker,
    wait_until,
    write_study,
)
from needs import IN_PYTHON, adapter_library, as_offered, need
from plan_parts import (
    MILLISECOND_NS,
    Mapping,
    any_message,
    node,
    pipeline,
    plan,
    reader,
    timer,
    writer,
)
from worker_support import Said, grandchild, machine, run_private, run_together

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

pytestmark = pytest.mark.by_turn

DIRECTORY = "/dev/shm/lagometer"
CONVERSATION = ["hello", "ready", "matched", "done", "records", "bye"]
EACH = pytest.mark.parametrize("adapter", IN_PYTHON)
LONG_DRAIN_NS = 2_000 * MILLISECOND_NS


def carried_out(build: Path, adapter: str, nodes: list[Mapping], **phases: int) -> Said:
    """One worker with all these nodes, in a private machine."""
    need("netns")
    need(adapter)
    given = plan(adapter_library(adapter, build), DIRECTORY, nodes, **phases)
    (said,) = run_private(build, [as_offered(adapter, given, build)])
    return said


@EACH
@pytest.mark.parametrize("dispatch", ["waitset", "poll"])
def test_the_events_come_in_the_order_of_the_phases(build: Path, adapter: str, dispatch: str) -> None:
    said = carried_out(
        build, adapter, pipeline(dispatch, period_ns=20 * MILLISECOND_NS), drain_ns=LONG_DRAIN_NS
    )
    assert said.code == 0, said.events[-1]
    assert said.names == CONVERSATION
    done = said.event("done")
    sent, received = said.lane(KIND_SENT, 0, 0), said.lane(KIND_RECEIVED, 2, 0)
    assert len(sent) == len(received) == 9
    assert (np.diff(sent["intended_ns"]) == 20 * MILLISECOND_NS).all()
    assert sent["intended_ns"].min() == done["at_ns"]
    assert (sent["publish_ns"] >= sent["intended_ns"]).all()
    assert (sent["published_ns"] >= sent["publish_ns"]).all()
    assert (received["handled_ns"] >= received["taken_ns"]).all()
    assert (received["woken_ns"] > 0).all() == (dispatch == "waitset")
    relayed = said.lane(KIND_SENT, 1, 1)
    assert (relayed["cause_stream"] == 0).all() and relayed["cause_sequence"].tolist() == list(range(9))
    (written, _), (read, _) = done["writers"], done["readers"]
    assert (written["sent"], written["due"], written["skipped"], written["rejected"]) == (9, 8, 0, 0)
    assert (read["received"], read["corrupted"], read["recorder_full"]) == (9, 0, False)
    assert done["cpu_ns"] > 0 and done["resident_bytes_max"] > 0
    assert any(thread["name"] == "node:source" for thread in done["threads"])


@EACH
def test_an_interpreter_without_its_collector_says_so(build: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    given = plan(adapter_library(adapter, build), DIRECTORY, pipeline("waitset"))
    given["adapters"][0]["options"] = {"garbage_collection": False, "switch_interval_us": 100}
    (said,) = run_private(build, [as_offered(adapter, given, build)])
    settings = said.event("ready")["settings"][0]["effective"]["settings"]
    assert settings["python.gc"] == {"value": False, "default": True}
    assert settings["python.switch_interval_us"] == {"value": 100, "default": 5000}


@EACH
def test_a_process_has_room_for_many_topics(build: Path, adapter: str) -> None:
    numbers = tuple(range(100))
    writers = [writer(f"t{number}", number, capacity=100) for number in numbers]
    readers = [reader(f"t{number}", [number], capacity=100) for number in numbers]
    source = node("source", 0, [], writers, [timer(100 * MILLISECOND_NS, writers=numbers)], "waitset")
    sink = node("sink", 1, readers, [], [any_message() | {"readers": list(numbers)}], "waitset")
    said = carried_out(build, adapter, [source, sink], drain_ns=LONG_DRAIN_NS)
    assert said.code == 0, said.events[-1]
    for number in numbers:
        assert len(said.lane(KIND_RECEIVED, 1, number)) == len(said.lane(KIND_SENT, 0, number)) > 0


def test_a_listener_of_cyclone_is_refused(build: Path) -> None:
    said = carried_out(build, "cyclonedds-py", pipeline("listener"))
    failed = said.event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert "no listeners" in failed["message"]


def test_what_a_plain_publisher_of_zenoh_does_not_keep_is_refused(build: Path) -> None:
    qos = {"reliability": "reliable", "durability": "transient_local"}
    failed = carried_out(build, "zenoh-py", pipeline("waitset", qos=qos)).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert "late joiners" in failed["message"]


def lonely(build: Path, adapter: str) -> Mapping:
    need("netns")
    need(adapter)
    nodes = pipeline("waitset", period_ns=5 * MILLISECOND_NS)
    given = plan(adapter_library(adapter, build), DIRECTORY, nodes, measure_ns=60_000 * MILLISECOND_NS)
    return as_offered(adapter, given, build)


@EACH
def test_records_are_readable_after_kill_9(build: Path, adapter: str) -> None:
    with machine(build, 1, libraries=[adapter_library(adapter, build)]) as private:
        worker = private.workers[0]
        worker.send(lonely(build, adapter))
        worker.wait_for_records(KIND_RECEIVED, 20)
        os.kill(grandchild(private.process.pid, 2), signal.SIGKILL)
        (said,) = private.finish()
        assert said.code == -signal.SIGKILL
        lanes = {(lane.kind, lane.node): lane.records for lane in worker.lanes()}
    sent, received = lanes[KIND_SENT, 0], lanes[KIND_RECEIVED, 1]
    # A message is sent before that is recorded: the last one may have come in and its sender been killed.
    assert 10 <= len(received) <= len(sent) + 1
    both = min(len(received), len(sent))
    assert (received["sequence"][:both] == sent["sequence"][:both]).all()


@pytest.mark.crossed
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@EACH
def test_an_interrupted_campaign_leaves_nothing(tmp_path: Path, adapter: str, number: signal.Signals) -> None:
    need("netns")
    need(adapter)
    matrix = {"adapter": adapter, "workload": "pipeline-3", "rate": "10Hz"}
    study, out = write_study(tmp_path, trials=30, matrix=matrix), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, "measure")
        run.process.send_signal(number)
        code, _, errors = run.end()
        assert code == 130, errors
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    assert (journal(out)[0]["trial"], journal(out)[0]["reasons"]) == (0, [])


@pytest.mark.crossed
@pytest.mark.parametrize("phase", ["discover", "measure"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
@EACH
def test_a_worker_that_is_ended_fails_its_trial_alone(
    tmp_path: Path, adapter: str, phase: str, number: signal.Signals
) -> None:
    need("netns")
    need(adapter)
    matrix = {"adapter": adapter, "workload": "pipeline-3", "rate": "10Hz"}
    phases = {"warmup": "300ms", "drain": "500ms"}
    study, out = write_study(tmp_path, trials=3, matrix=matrix, **phases), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, phase)
        assert signal_a_worker(run, number)
        code, _, errors = run.end()
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    assert code == 3, errors
    entries = journal(out)
    assert [entry["valid"] for entry in entries] == [True, False, True], [e["reasons"] for e in entries]
    first = entries[1]["reasons"][0]
    assert first.startswith("worker-hung" if number == signal.SIGSTOP else "worker-died"), first
    assert number.name in first


def test_a_node_can_t_be_in_two_languages(tmp_path: Path) -> None:
    need("cyclonedds")
    need("cyclonedds-py")
    study = write_study(
        tmp_path,
        matrix={
            "adapter": ["cyclonedds+cyclonedds-py"],
            "workload": ["pipeline-2", "pipeline-3"],
            "rate": "10Hz",
            "placement": ["process-per-node", "single-process"],
        },
    )
    code, output, errors = lagometer(tmp_path, "plan", str(study), "--json")
    assert code == 0, errors
    answer = json.loads(output)
    (cell,) = [each["cell"] for each in answer["cells"]]
    assert cell == "cyclonedds+cyclonedds-py/pipeline-2/10Hz/process-per-node"
    assert len(answer["excluded"]) == 3
    for each in answer["excluded"]:
        assert "different workers (lagometer-worker, python)" in each["reason"]


def test_both_languages_in_one_trial(build: Path) -> None:
    """What the C++ worker sends through Cyclone DDS, the one in Python hears, octet for octet, and back."""
    need("netns")
    need("cyclonedds")
    need("cyclonedds-py")
    both = ("cyclonedds", "cyclonedds-py")
    for sender, receiver in (both, both[::-1]):
        nodes = [
            node(
                "source", 0, [], [writer("t", 0, payload_bytes=4000)], [timer(10 * MILLISECOND_NS)], "waitset"
            ),
            node("sink", 1, [reader("t", [0], payload_bytes=4000)], [], [any_message()], "waitset"),
        ]
        plans = [
            {
                **plan(adapter_library(name, build), DIRECTORY, [each], drain_ns=LONG_DRAIN_NS),
                "standalone": False,
            }
            for name, each in zip((sender, receiver), nodes, strict=True)
        ]
        plans[1]["worker"] = {"index": 1, "name": "sink"}
        sent, received = run_together(build, plans)
        assert (sent.code, received.code) == (0, 0), (sent.events[-1], received.events[-1])
        assert received.event("done")["readers"][0]["corrupted"] == 0
        sequences = received.lane(KIND_RECEIVED, 1, 0)["sequence"].tolist()
        assert sequences == sent.lane(KIND_SENT, 0, 0)["sequence"].tolist() == list(range(17))


@EACH
def test_what_is_stored_says_which_library_it_was(tmp_path: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    matrix = {"adapter": adapter, "workload": "pipeline-2", "rate": "10Hz"}
    study, out = write_study(tmp_path, matrix=matrix), tmp_path / "out"
    code, _, errors = lagometer(tmp_path, *arguments_of(study, out))
    assert code == 0, errors
    assert (pl.read_parquet(out / "cells.parquet")["n"] > 0).all()
    text = (out / "manifest.json").read_text() + (out / "journal.jsonl").read_text()
    assert adapter in text
