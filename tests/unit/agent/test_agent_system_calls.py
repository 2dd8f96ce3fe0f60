# SPDX-License-Identifier: Apache-2.0
"""The kernel's count of another process's system calls: exact for a process whose calls are known."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest
from needs import need

from lagometer.agent.observe import system_calls
from lagometer.agent.observe.scheduler import SchedulerWatch
from lagometer.agent.observe.system_calls import (
    NO_TRACEPOINT,
    NOT_READ,
    NOT_WANTED,
    NUMBERS,
    Called,
    SystemCallWatch,
    filter_of,
)
from lagometer.installation import scheduler_path

# Waits for a line, makes its calls on a thread that exists and on a new one, waits again.
PROGRAM = """
import os, socket, sys, threading
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
b.setblocking(False)
asked, done = threading.Event(), threading.Event()
def talk(count):
    for _ in range(count):
        a.send(b"x")
        b.recv(8)
def fail():
    try: b.recv(8)
    except BlockingIOError: pass
thread = threading.Thread(target=lambda: (asked.wait(), talk(20), done.set()))
thread.start()
print("ready", flush=True)
sys.stdin.readline()
asked.set()
done.wait()
other = threading.Thread(target=talk, args=(7,))
other.start()
other.join()
fail()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def talker() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def say(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def tracepoint() -> int | None:
    """Its number, as the program finds it that records the scheduler."""
    watch = SchedulerWatch(str(scheduler_path()))
    try:
        watch.begin()
        assert watch.end().why is None
        return watch.system_calls()
    finally:
        watch.close()


def test_the_calls_of_all_threads_are_counted_if_they_succeed(talker: subprocess.Popen[str]) -> None:
    need("scheduler")
    number = tracepoint()
    assert number is not None and number > 0
    watch = SystemCallWatch()
    try:
        watch.attach([talker.pid, None], lambda: number)
        watch.look_before()
        say(talker)
        assert talker.stdout is not None and talker.stdout.readline() == "done\n"
        watch.look_after()
        found, absent = watch.result(0), watch.result(1)
    finally:
        watch.close()
        watch.close()
    assert found.why is None
    assert (found.counts["send"], found.counts["receive"]) == (27, 27)
    assert found.counts["read"] >= 1 and found.counts["write"] >= 1  # the line, and the word
    assert found.first[0] <= found.first[1] <= found.last[0] <= found.last[1]
    assert absent == Called(NOT_READ)
    assert Called.from_frame(found.as_frame()) == found


def test_what_can_not_be_counted_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = SystemCallWatch()
    assert watch.result(0) == Called(NOT_WANTED)
    watch.attach([os.getpid()], lambda: None)
    assert watch.result(0) == Called(NO_TRACEPOINT)
    watch.attach([os.getpid()], lambda: 65_000)
    why = watch.result(0).why
    assert why is not None and why.startswith("E")
    monkeypatch.setattr(system_calls, "DESCRIPTORS_MAX", 1)
    watch.attach([os.getpid()], lambda: 65_000)
    assert "at most 1 are opened" in str(watch.result(0).why)
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    watch.attach([os.getpid()], lambda: 65_000)
    assert "not known for pdp11" in str(watch.result(0).why)
    watch.close()


def test_a_process_that_ended_has_its_reason() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    watch = SystemCallWatch()
    watch.attach([child.pid], lambda: 65_000)
    assert watch.result(0) == Called(NOT_READ)


def test_the_filter_names_every_call_of_a_group() -> None:
    assert filter_of((44, 46)) == b"(id == 44 || id == 46) && ret > 0\0"
    for groups in NUMBERS.values():
        assert set(groups) == {"send", "receive", "write", "read", "wait"}
        assert all(len(filter_of(numbers)) <= 1024 for numbers in groups.values())


def test_the_readings_frame_the_measure_phase() -> None:
    (first_ns, _), (last_ns, _) = SystemCallWatch().looks(0, 100_000_000, 200_000_000)
    assert 0 < first_ns < 100_000_000 and last_ns > 200_000_000
    (first_ns, _), _ = SystemCallWatch().looks(0, 1_000_000, 200_000_000)
    assert 0 < first_ns < 1_000_000
