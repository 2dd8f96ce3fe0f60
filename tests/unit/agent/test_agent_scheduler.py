# SPDX-License-Identifier: Apache-2.0
"""The agent's part of recording the scheduler: a program of its own, and the numbers of threads."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from needs import need

from lagometer.agent.observe.scheduler import (
    Recorded,
    SchedulerWatch,
    ThreadNumbers,
    thread_numbers,
    unavailable,
)
from lagometer.installation import scheduler_path
from lagometer.run.results.scheduled import numbers_of
from lagometer.stats.trial.run_queue import ASLEEP, RunQueues
from lagometer.store.scheduler import EXCHANGE, decode, encode

READY = """print('{"event":"ready"}', flush=True)"""
BEGAN = """sys.stdin.readline(); print('{"event":"began"}', flush=True); sys.stdin.read()"""


def program(folder: Path, text: str) -> str:
    path = folder / "recorder"
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{text}\n")
    path.chmod(0o755)
    return str(path)


def recorded(watch: SchedulerWatch) -> bool:
    """Whether it records by now, by the time in its header."""
    return any(os.pread(watch._file, 8, 40))


def ended(watch: SchedulerWatch) -> Recorded:
    try:
        watch.begin()
        return watch.end()
    finally:
        watch.close()
        watch.close()


def test_what_a_thread_did_is_recorded() -> None:
    need("scheduler")
    watch = SchedulerWatch(str(scheduler_path()))
    try:
        watch.begin()
        while not recorded(watch):
            time.sleep(0.001)
        asked, answered = threading.Event(), threading.Event()
        other = threading.Thread(target=lambda: (answered.set(), asked.wait()))
        other.start()
        answered.wait()
        watch.look_at_threads([None, os.getpid()])
        begin_ns = time.monotonic_ns()
        for _ in range(20):
            time.sleep(0.002)
        end_ns = time.monotonic_ns()
        asked.set()
        other.join()
        found = watch.end()
    finally:
        watch.close()
    assert found.why is None
    assert {each.worker for each in found.threads} == {1}
    assert {os.getpid(), other.native_id} <= {each.here for each in found.threads}
    log = decode(found.content)
    assert log.begin_ns < begin_ns < end_ns < log.end_ns
    numbers = numbers_of(found.threads, log)[1]
    own = next(each for each in found.threads if each.here == os.getpid())
    timeline = RunQueues(log).timeline(numbers[own.there])
    inside = (timeline.begins > begin_ns) & (timeline.ends < end_ns) & (timeline.states == ASLEEP)
    assert inside.sum() > 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('print(\'{"event":"failed","reason":"EPERM: no"}\')', "EPERM: no"),
        ("print('hello')", "wrote b'hello"),
        ("", "ended before it recorded anything"),
        (f"{READY}; sys.exit(2)", "ended before it recorded anything"),
        (f"{READY}\n{BEGAN}; sys.exit(2)", "ended with 2"),
        (f"{READY}\n{BEGAN}; os.kill(os.getpid(), 9)", "ended with -9"),
    ],
)
def test_a_program_that_can_not_record_has_a_reason(tmp_path: Path, text: str, why: str) -> None:
    found = ended(SchedulerWatch(program(tmp_path, text)))
    assert found.why is not None and why in found.why
    assert (found.threads, found.content) == ((), b"")


def test_a_program_that_is_not_there_has_a_reason() -> None:
    assert "can't be started" in str(unavailable("/nowhere/lagometer-scheduler"))


def test_threads_have_the_numbers_that_the_kernel_tells() -> None:
    found = {each.here: each for each in thread_numbers(3, os.getpid())}
    assert found[os.getpid()].worker == 3
    assert found[os.getpid()].there > 0
    assert thread_numbers(0, 2**22 + 1) == []


def test_numbers_of_a_container_are_translated() -> None:
    """What is 4711 on the machine is 12 for the agent, and 5 for the trial."""
    event = {"time_ns": 10, "kind": EXCHANGE, "thread": 4711, "other": 1, "seen_as": 12}
    log = decode(encode([event], 1, 100))
    threads = [ThreadNumbers(0, 12, 5, "node:sink"), ThreadNumbers(0, 13, 6, "silent")]
    assert numbers_of(threads, log) == {0: {5: 4711}}
