# SPDX-License-Identifier: Apache-2.0
"""What a worker says and when, whoever wrote it: phases in order, a common start, and each way it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from both_workers import CONVERSATION, Kind
from plan_parts import (
    MILLISECOND_NS,
    Mapping,
    any_message,
    closed_loop,
    node,
    pipeline,
    reader,
    timer,
    writer,
)
from worker_support import Machine, Worker, line_of, worker_command

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

PERIOD_NS = 20 * MILLISECOND_NS
# Time for what is overdue, on a machine that stood still just before the sources' end.
LONG_DRAIN_NS = 2_000 * MILLISECOND_NS
LONG_NS = 60_000 * MILLISECOND_NS


def source() -> list[Mapping]:
    return [node("source", 0, [], [writer("t0", 0)], [timer(MILLISECOND_NS)], "waitset")]


def sink() -> list[Mapping]:
    return [node("sink", 0, [reader("nowhere", [9])], [], [any_message()], "waitset")]


@pytest.mark.parametrize("dispatch", ["waitset", "poll", "listener"])
def test_the_events_come_in_the_order_of_the_phases(kind: Kind, folder: Path, dispatch: str) -> None:
    given = kind.plan(folder, pipeline(dispatch, period_ns=PERIOD_NS), drain_ns=LONG_DRAIN_NS)
    said = kind.run(given)
    assert (said.code, said.names, said.garbage) == (0, CONVERSATION, []), said.events[-1:]
    hello, ready, done = (said.event(name) for name in ("hello", "ready", "done"))
    assert (hello["protocol"], hello["worker"]) == (1, 0)
    assert [each["name"] for each in ready["adapters"]] == [given["adapters"][0]["name"]]
    assert [(each["adapter"], each["object"]) for each in ready["settings"]] == [
        (given["adapters"][0]["name"], name)
        for name in ("context", "writer t0", "writer t1", "reader t0", "reader t1")
    ]
    phases = given["phases"]
    assert done["measure_begin_ns"] == done["at_ns"] + phases["warmup_ns"]
    assert done["measure_end_ns"] == done["measure_begin_ns"] + phases["measure_ns"]
    assert done["drain_end_ns"] == done["measure_end_ns"] + phases["drain_ns"]
    sent, relayed, received = (said.lane(*lane) for lane in ((1, 0, 0), (1, 1, 1), (2, 2, 0)))
    assert sent["intended_ns"].tolist() == [done["at_ns"] + PERIOD_NS * number for number in range(9)]
    assert (sent["publish_ns"] >= sent["intended_ns"]).all()
    assert (sent["published_ns"] >= sent["publish_ns"]).all()
    assert relayed["cause_sequence"].tolist() == received["sequence"].tolist() == list(range(9))
    assert (relayed["intended_ns"] == 0).all() and (relayed["cause_count"] == 1).all()
    assert (received["handled_ns"] >= received["taken_ns"]).all()
    assert (received["woken_ns"] > 0).all() == (dispatch == "waitset")
    assert (received["signalled_ns"] > 0).all() == (dispatch == "listener")
    (written, _), (_, read) = done["writers"], done["readers"]
    assert (written["sent"], written["due"], written["skipped"], written["shift_ns"]) == (9, 8, 0, 0)
    assert (written["rejected"], written["resent_after_timeout"], written["recorder_full"]) == (0, 0, False)
    assert (read["received"], read["corrupted"], read["recorder_full"]) == (9, 0, False)
    assert written.keys() - {"due", "skipped", "shift_ns"} == done["writers"][1].keys()
    assert done["cpu_ns"] > 0 and done["resident_bytes_max"] > 0
    keys = {"tid", "name", "policy", "priority", "cpus", "timer_slack_ns"}
    assert all(thread.keys() == keys for thread in done["threads"]), "accounts are FIFO's alone"
    assert any(thread["name"] == "node:source" for thread in done["threads"])


@pytest.mark.parametrize("ahead_ns", [0, 2_000_000_000])
def test_all_workers_start_at_a_common_instant(kind: Kind, ahead_ns: int) -> None:
    """Also if they hear of it seconds before, as over a slow way to their host."""
    plans = kind.apart(pipeline("waitset", period_ns=PERIOD_NS), drain_ns=LONG_DRAIN_NS)
    with kind.machine(len(plans)) as private:
        private.match(plans)
        assert all(worker.said.names == CONVERSATION[:3] for worker in private.workers)
        at_ns = private.go(offsets_ns=[ahead_ns] * len(plans)) + ahead_ns
        said = private.finish()
    for each in said:
        assert (each.code, each.names) == (0, CONVERSATION)
        assert each.event("done")["at_ns"] == at_ns
    first = said[0].lane(KIND_SENT, 0, 0)[0]
    assert first["intended_ns"] == at_ns <= first["publish_ns"]
    assert len(said[2].lane(KIND_RECEIVED, 2, 0)) == len(said[0].lane(KIND_SENT, 0, 0)) == 9


def reaches(machine: Machine, kind: Kind, phase: str) -> Worker:
    """A worker that waits for a stream that never comes, for its start, or one that measures."""
    worker = machine.workers[0]
    worker.send(kind.apart(sink() if phase == "unmatched" else source(), measure_ns=LONG_NS)[0])
    worker.wait_for("ready" if phase == "unmatched" else "matched")
    if phase == "measure":
        machine.go()
        worker.wait_for_records(KIND_SENT, 100)
    return worker


@pytest.mark.parametrize("phase", ["unmatched", "discover", "measure"])
def test_a_worker_whose_conductor_is_gone_ends_and_says_why(kind: Kind, phase: str) -> None:
    with kind.machine(1) as private:
        worker = reaches(private, kind, phase)
        os.close(worker.input)
        worker.input = os.open(os.devnull, os.O_WRONLY)
        (said,) = private.finish()
    failed = said.event("failed")
    assert (said.code, failed["reason"]) == (1, "internal")
    assert failed["phase"] == ("measure" if phase == "measure" else "discover")
    assert failed["message"] == "standard input ended: the conductor is gone"
    assert "records" not in said.names


@pytest.mark.parametrize("phase", ["unmatched", "discover", "measure"])
def test_a_worker_that_is_told_to_stop_hands_over_what_it_has(kind: Kind, phase: str) -> None:
    with kind.machine(1) as private:
        reaches(private, kind, phase).send({"command": "stop"})
        (said,) = private.finish()
    assert said.code == 0
    before = CONVERSATION[: 2 if phase == "unmatched" else 3]
    assert said.names == [*before, *(["records"] if phase == "measure" else []), "bye"]
    if phase == "measure":
        assert len(said.lane(KIND_SENT, 0, 0)) >= 100


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"command":"go"}', "not a command: "),
        (b'{"command":"go","at_ns":0}', "not a command: "),
        (b'{"command":"go","at_ns":-5}', "not a command: "),
        (b'{"command":"go","at_ns":1.5}', "not a command: "),
        (b'{"command":"go","at_ns":true}', "not a command: "),
        (b'{"command":"go","at_ns":4611686018427387905}', "not a command: "),
        (b'{"command":"go","at_ns":18446744073709551616}', "not a command: "),
        (b'{"command":5}', "not a command: "),
        (b'{"command":"halt"}', "not a command: "),
        (b"[]", "not a command: "),
        (b"", "not a command: "),
        (b"go", "not a command: "),
    ],
)
def test_what_is_no_command_ends_it(kind: Kind, line: bytes, said: str) -> None:
    with kind.machine(1) as private:
        private.match(kind.apart(source()))
        os.write(private.workers[0].input, line + b"\n")
        (heard,) = private.finish()
    failed = heard.event("failed")
    assert (heard.code, failed["phase"], failed["reason"]) == (1, "discover", "internal")
    assert failed["message"] == f"standard input: {said}{line.decode()}"


def test_a_start_comes_once_and_after_matching(kind: Kind) -> None:
    with kind.machine(2) as private:
        early, twice = private.workers
        early.send(kind.apart(sink())[0])
        early.wait_for("ready")
        twice.send(kind.apart(source(), measure_ns=LONG_NS)[0])
        twice.wait_for("matched")
        private.go(0, 1)
        twice.wait_for_records(KIND_SENT, 1)
        private.go(1)
        said = private.finish()
    messages = [(each.code, each.event("failed")["reason"], each.event("failed")["message"]) for each in said]
    assert messages == [
        (1, "internal", "told to go before it was matched"),
        (1, "internal", "told to go twice"),
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_records_are_readable_after_a_signal(kind: Kind, folder: Path, number: signal.Signals) -> None:
    """No signal is handled: whatever ends the worker, its records lie in the memory that it was given."""
    given = kind.plan(folder, pipeline("waitset", period_ns=5 * MILLISECOND_NS), measure_ns=LONG_NS)
    worker = Worker()
    process = subprocess.Popen(
        worker_command(kind.build, kind.library),
        stdin=worker.input_read,
        stdout=worker.output_write,
        stderr=worker.error_write,
        pass_fds=[worker.records],
        env={**os.environ, **kind.environment, "LAGOMETER_RECORDS_FD": str(worker.records)},
    )
    try:
        worker.started()
        worker.send(given)
        worker.wait_for_records(KIND_RECEIVED, 20)
        process.send_signal(number)
        assert process.wait() == -number
        assert worker.end().names == CONVERSATION[:3]
        lanes = {(lane.kind, lane.node): lane.records for lane in worker.lanes()}
    finally:
        process.kill()
        process.wait()
        worker.close()
    sent, received = lanes[KIND_SENT, 0], lanes[KIND_RECEIVED, 1]
    # A message is sent before that is recorded: the last one may have come in and its sender been killed.
    assert 10 <= len(received) <= len(sent) + 1
    both = min(len(received), len(sent))
    assert (received["sequence"][:both] == sent["sequence"][:both]).all()
    assert (received["taken_ns"][:both] >= sent["publish_ns"][:both]).all()


@pytest.mark.parametrize("given", ["", "none", "-1", "7 "])
def test_memory_that_is_no_number_is_not_used(kind: Kind, folder: Path, given: str) -> None:
    """Standard input and output are descriptors, too."""
    said = kind.run(kind.plan(folder, source()), LAGOMETER_RECORDS_FD=given)
    assert (said.code, said.names) == (0, CONVERSATION), said.events[-1:]


def test_a_worker_that_nobody_listens_to_ends(kind: Kind, folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        worker_command(kind.build, kind.library),
        input=line_of(kind.plan(folder, source())),
        stdout=write,
        stderr=subprocess.PIPE,
        env={**os.environ, **kind.environment},
        timeout=60,
    )
    os.close(write)
    assert ended.returncode == 1


@pytest.mark.parametrize(
    ("what", "phase"),
    [
        ("context", "create"),
        ("writer", "create"),
        ("reader", "create"),
        ("enable", "create"),
        ("matched", "discover"),
        ("probe", "discover"),
        ("data", "drain"),
        ("counters", "drain"),
    ],
)
def test_an_adapter_that_fails_ends_the_trial(kind: Kind, folder: Path, what: str, phase: str) -> None:
    said = kind.run(kind.plan(folder, pipeline("waitset")), LAGOMETER_BREAK=f"fail-{what}")
    failed = said.event("failed")
    assert (said.code, failed["phase"], failed["reason"]) == (1, phase, "adapter-failed")
    assert failed["message"].endswith("the cable is cut")
    before = {"create": 1, "discover": 2, "drain": 3}[phase]
    assert said.names == [*CONVERSATION[:before], "failed"]


def test_an_adapter_that_is_not_there_is_said(kind: Kind, folder: Path) -> None:
    given = kind.plan(folder, pipeline("waitset"))
    given["adapters"][0]["library"] = "/nowhere/absent.so"
    failed = kind.run(given).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-missing")
    assert "/nowhere/absent.so" in failed["message"]


def test_a_runtime_directory_that_cannot_be_made_is_said(kind: Kind, folder: Path) -> None:
    (folder / "file").touch()
    failed = kind.run(kind.plan(folder / "file" / "below", source())).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert failed["message"] == f"can't make runtime_directory {folder}/file/below: Not a directory"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't be read: No such file or directory"),
        (b"", "is empty or larger than 64 MiB"),
        (b"other", "is not the file that the study was made with"),
    ],
)
def test_content_that_is_not_what_the_study_means_is_said(
    kind: Kind, folder: Path, content: bytes | None, said: str
) -> None:
    path = folder / "content"
    if content is not None:
        path.write_bytes(content)
    given = kind.plan(folder, source())
    given["content"] = {"kind": "recorded", "path": str(path), "crc32": 1}
    failed = kind.run(given).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "internal")
    assert failed["message"] == f"content: {path} {said}"


def test_a_waitset_of_two_contexts_is_refused(kind: Kind, folder: Path) -> None:
    if kind.name == "C++":  # sockets can wait for several contexts at once
        alone = kind.build / "tests" / "adapters" / "liblagometer_waiting_1_0.so"
        kind = replace(kind, library=alone, environment={})
    nodes = [node("sink", 0, [reader("a", []), reader("b", [], context=1)], [], [any_message()], "waitset")]
    given = kind.plan(folder, nodes)
    given["contexts"].append({"adapter": 0, "domain": 1, "name": "other"})
    failed = kind.run(given).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert failed["message"].startswith("node sink: a waitset of ")
    assert "can't wait for readers of several contexts (waitset_contexts)" in failed["message"]


def test_records_that_find_no_room_are_refused(kind: Kind, folder: Path) -> None:
    capacity = 1 << 26
    writers = [writer("t", number, capacity=capacity) for number in range(3)]
    nodes = [node("source", 0, [], writers, [timer(MILLISECOND_NS, writers=(0, 1, 2))], "poll")]
    failed = kind.run(kind.plan(folder, nodes)).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "no-memory")
    assert "a worker may have 8589934592" in failed["message"]


def test_what_an_adapter_prints_does_not_reach_the_conversation(
    kind: Kind, build: Path, folder: Path, tmp_path: Path
) -> None:
    """With and without a standard error that it could go to."""
    noisy = build / "tests" / "adapters" / "liblagometer_noisy.so"
    if kind.name == "Python":
        noisy = tmp_path / "noisy.py"
        noise = "import os, sys\nprint('noise', flush=True)\nos.write(1, b'raw noise {')\n"
        noisy.write_text(kind.library.read_text().replace("import os\n", noise, 1))
    given = kind.plan(folder, pipeline("waitset", period_ns=PERIOD_NS), drain_ns=LONG_DRAIN_NS)
    given["adapters"][0]["library"] = str(noisy)
    said = kind.run(given)
    assert (said.code, said.names, said.garbage) == (0, CONVERSATION, [])
    assert len(said.lane(KIND_RECEIVED, 2, 0)) == 9
    assert "noise" in said.errors
    command = worker_command(kind.build, kind.library)
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" 2>&-', *command], input=line_of(given), capture_output=True, timeout=60
    )
    assert closed.returncode == 0
    assert b"noise" not in closed.stdout


def test_a_loop_that_is_out_of_records_says_so(kind: Kind, folder: Path) -> None:
    few = {"capacity": 10}
    answer = any_message(writers=(0,), echo=True)
    nodes = [
        node("ping", 0, [reader("b", [1])], [writer("a", 0, **few)], [closed_loop()], "waitset"),
        node("pong", 1, [reader("a", [0])], [writer("b", 1)], [answer], "waitset"),
    ]
    done = kind.run(kind.plan(folder, nodes)).event("done")
    assert done["warnings"] == [
        "the closed loop of node ping ended early, after 10 messages: no room for more records"
    ]
    assert done["writers"][0]["recorder_full"] is False


def test_both_are_the_same_program_to_a_user(build: Path) -> None:
    """Arguments, and what is asked of an adapter."""
    commands = [worker_command(build, ""), worker_command(build, "x.py")]
    for argument, code in (("--help", 0), ("--version", 0), ("--no-such", 2), ("--probe", 2)):
        ended = [subprocess.run([*each, argument], capture_output=True, timeout=60) for each in commands]
        assert [each.returncode for each in ended] == [code, code], argument
        assert all(b"lagometer" in (each.stdout or each.stderr) for each in ended)
    for command in commands:
        missing = subprocess.run([*command, "--probe", "/nowhere"], capture_output=True, timeout=60)
        assert missing.returncode == 1 and missing.stdout.startswith(b'{"error":')
