# SPDX-License-Identifier: Apache-2.0
"""What a worker says and when: the phases in their order, a common start, nothing that middleware prints."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from needs import adapter_library, need, require
from plan_parts import (
    MILLISECOND_NS,
    Mapping,
    any_message,
    apart,
    node,
    pipeline,
    plan,
    reader,
    timer,
    writer,
)
from worker_support import machine, run_worker

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

CONVERSATION = ["hello", "ready", "matched", "done", "records", "bye"]
# Time for what is overdue, on a machine that stood still just before the sources' end.
LONG_DRAIN_NS = 2_000 * MILLISECOND_NS


def test_the_events_come_in_the_order_of_the_phases(build: Path, tmp_path: Path) -> None:
    said = run_worker(build, plan(adapter_library("null", build), tmp_path, pipeline("waitset")))
    assert said.code == 0
    assert said.names == CONVERSATION
    phases = plan("x", tmp_path, [])["phases"]
    done = said.event("done")
    assert done["measure_begin_ns"] == done["at_ns"] + phases["warmup_ns"]
    assert done["measure_end_ns"] == done["measure_begin_ns"] + phases["measure_ns"]
    assert done["drain_end_ns"] == done["measure_end_ns"] + phases["drain_ns"]
    sent = said.lane(KIND_SENT, 0, 0)
    assert sent["publish_ns"].min() >= done["at_ns"]
    assert sent["intended_ns"].max() < done["measure_end_ns"]
    assert said.lane(KIND_RECEIVED, 2, 0)["taken_ns"].max() <= done["drain_end_ns"] + 100 * MILLISECOND_NS
    (written, _), (read, _) = done["writers"], done["readers"]
    assert (written["sent"], written["rejected"], written["recorder_full"]) == (len(sent), 0, False)
    assert (read["received"], read["corrupted"]) == (len(sent), 0)


def test_what_an_adapter_prints_does_not_reach_the_conversation(build: Path, tmp_path: Path) -> None:
    library = build / "tests" / "adapters" / "liblagometer_noisy.so"
    said = run_worker(build, plan(library, tmp_path, pipeline("waitset"), drain_ns=LONG_DRAIN_NS))
    assert said.code == 0
    assert said.garbage == []
    assert said.names == CONVERSATION
    assert len(said.lane(KIND_RECEIVED, 2, 0)) == len(said.lane(KIND_SENT, 0, 0)) == 34
    for place in ("load", "create", "commit", "delivery"):
        assert f"noise at {place}" in said.errors


def test_a_worker_without_standard_error_keeps_noise_out_too(build: Path, tmp_path: Path) -> None:
    library = build / "tests" / "adapters" / "liblagometer_noisy.so"
    line = json.dumps(plan(library, tmp_path, pipeline("waitset"), measure_ns=20 * MILLISECOND_NS))
    worker = build / "engine" / "lagometer-worker"
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" 2>&-', str(worker)], input=line.encode(), capture_output=True, timeout=30
    )
    assert closed.returncode == 0
    assert b"noise" not in closed.stdout


def parts(build: Path) -> list[Mapping]:
    """The nodes of a pipeline over shared memory, each in a plan of its own."""
    return apart(adapter_library("shm", build), "/dev/shm/lagometer", pipeline("waitset"))


def test_all_workers_start_at_a_common_instant(build: Path) -> None:
    need("netns")
    plans = parts(build)
    with machine(build, len(plans)) as private:
        private.match(plans)
        assert all("done" not in worker.said.names for worker in private.workers)
        at_ns = private.go()
        said = private.finish()
    for each in said:
        assert each.code == 0
        assert each.names == CONVERSATION
        done = each.event("done")
        assert done["at_ns"] == at_ns
        assert done["measure_begin_ns"] == at_ns + plans[0]["phases"]["warmup_ns"]
    first = said[0].lane(KIND_SENT, 0, 0)
    assert first[0]["intended_ns"] == at_ns
    assert len(said[2].lane(KIND_RECEIVED, 2, 0)) == len(first)


def test_who_is_missing_is_named(build: Path) -> None:
    need("netns")
    _, relay, sink = parts(build)
    for each in (relay, sink):
        each["phases"]["discovery_timeout_ns"] = 100 * MILLISECOND_NS
    with machine(build, 2) as private:
        for worker, each in zip(private.workers, (relay, sink), strict=True):
            worker.send(each)
        private.workers[0].end()
        private.workers[1].wait_for("hello")
        private.workers[1].send({"command": "stop"})
        said, _ = private.finish()
    failed = said.event("failed")
    assert (said.code, failed["phase"], failed["reason"]) == (1, "discover", "endpoints-missing")
    assert failed["missing"] == [{"node": "relay", "reader": 0, "topic": "t0", "streams": [0]}]
    assert "relay" in failed["message"]


def test_a_worker_whose_conductor_is_gone_ends_and_says_why(build: Path, tmp_path: Path) -> None:
    conducted = plan(adapter_library("null", build), tmp_path, pipeline("waitset"))
    conducted["standalone"] = False
    said = run_worker(build, conducted)
    failed = said.event("failed")
    assert (said.code, failed["phase"], failed["reason"]) == (1, "discover", "internal")
    assert "conductor is gone" in failed["message"]


def test_a_worker_that_is_stopped_still_says_bye(build: Path) -> None:
    need("netns")
    source = parts(build)[0]
    with machine(build, 1) as private:
        private.workers[0].send(source)
        private.workers[0].wait_for("matched")
        private.workers[0].send({"command": "stop"})
        (said,) = private.finish()
    assert (said.code, said.names[-1]) == (0, "bye")


def test_a_worker_that_is_stopped_while_it_measures_hands_over_its_records(build: Path) -> None:
    need("netns")
    source = parts(build)[0]
    source["phases"]["measure_ns"] = 60_000 * MILLISECOND_NS
    with machine(build, 1) as private:
        private.match([source])
        private.go()
        worker = private.workers[0]
        worker.wait_for_records(KIND_SENT, 3)
        worker.send({"command": "stop"})
        (said,) = private.finish()
    assert (said.code, said.names[-2:]) == (0, ["records", "bye"])
    assert len(said.lane(KIND_SENT, 0, 0)) > 0


def test_a_timer_without_a_reader_needs_nobody(build: Path, tmp_path: Path) -> None:
    nodes = [
        node("source", 0, [], [writer("t0", 0)], [timer(MILLISECOND_NS)], "poll"),
        node("deaf", 1, [reader("t1", [])], [], [any_message()], "poll"),
    ]
    said = run_worker(build, plan(adapter_library("null", build), tmp_path, nodes, drain_ns=LONG_DRAIN_NS))
    assert said.code == 0
    assert len(said.lane(KIND_SENT, 0, 0)) == 170
    assert len(said.lane(KIND_RECEIVED, 1, 0)) == 0


@pytest.mark.parametrize(
    ("capacity", "address_space", "said"),
    [(1 << 26, None, "a worker may have"), (1 << 20, 256 << 20, "Cannot allocate memory")],
)
def test_a_worker_without_room_for_its_records_says_how_much_it_wanted(
    build: Path, tmp_path: Path, capacity: int, address_space: int | None, said: str
) -> None:
    nodes = [
        node(
            f"n{index}", index, [], [writer("t0", index, capacity=capacity)], [timer(MILLISECOND_NS)], "poll"
        )
        for index in range(4)
    ]
    streams = [each["index"] for each in nodes]
    nodes.append(node("sink", 4, [reader("t0", streams, capacity=1000)], [], [any_message()], "poll"))
    limit = [] if address_space is None else ["prlimit", f"--as={address_space}"]
    if limit:
        need("prlimit")
        limited = os.environ.get("LAGOMETER_ADDRESS_SPACE") != "unlimited"
        require("address-space", limited, "an address space that can be limited (shadow memory fills it)")
    result = subprocess.run(
        [*limit, str(build / "engine" / "lagometer-worker")],
        input=json.dumps(plan(adapter_library("null", build), tmp_path, nodes)).encode() + b"\n",
        capture_output=True,
        timeout=60,
    )
    failed = json.loads(result.stdout.splitlines()[-1])
    assert (result.returncode, failed["phase"], failed["reason"]) == (1, "create", "no-memory")
    wanted = int(re.findall(r"no room for (\d+) bytes of records", failed["message"])[0])
    assert 4 * 64 * capacity < wanted < 4 * 64 * capacity * 1.02 + 10 * 4096
    assert said in failed["message"]


def test_null_refuses_a_listener_instead_of_waiting_for_one(build: Path, tmp_path: Path) -> None:
    said = run_worker(build, plan(adapter_library("null", build), tmp_path, pipeline("listener")))
    failed = said.event("failed")
    assert (said.code, failed["phase"], failed["reason"]) == (1, "create", "adapter-failed")
    assert "null has no listener" in failed["message"]
