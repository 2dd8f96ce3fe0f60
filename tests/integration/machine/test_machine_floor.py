# SPDX-License-Identifier: Apache-2.0
"""The machine's floor, measured by the real worker."""

from __future__ import annotations

import os
import subprocess

import pytest

from lagometer.installation import worker_path
from lagometer.run.interruption import Interruption
from lagometer.run.wakeup import measure_wakeup

pytestmark = pytest.mark.alone


def test_every_cpu_is_woken_every_millisecond() -> None:
    with Interruption() as interruption:
        floor = measure_wakeup(worker_path(), 200_000_000, 20, interruption)
    assert [core["cpu"] for core in floor["cores"]] == sorted(os.sched_getaffinity(0))
    assert floor["policy"] in ("fifo", "other")
    assert floor["duration_s"] == 0.2
    for core in floor["cores"]:
        assert core["n"] == 200
        # Nobody is woken before the time that was asked for.
        assert 0 <= core["p50_ns"] <= core["p99_ns"] <= core["p999_ns"] <= core["max_ns"]


def test_only_the_cpus_that_may_be_used_are_measured() -> None:
    only = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {only})
    try:
        with Interruption() as interruption:
            floor = measure_wakeup(worker_path(), 20_000_000, 20, interruption)
    finally:
        os.sched_setaffinity(0, before)
    assert [core["cpu"] for core in floor["cores"]] == [only]


def test_what_makes_no_sense_is_refused() -> None:
    for arguments in (("0", "20"), ("x", "20"), ("10", "0"), ("10", "100")):
        done = subprocess.run([worker_path(), "--wake-up", *arguments], capture_output=True, check=False)
        assert done.returncode == 2
        assert b"--wake-up takes" in done.stderr
