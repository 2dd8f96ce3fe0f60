# SPDX-License-Identifier: Apache-2.0
"""Each benchmark works, in its short form, which judges nothing that takes a quiet machine.

`make nightly` has the long ones. kills.py has its test in test_resume_cut.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from needs import ROOT, need

pytestmark = pytest.mark.by_turn

SMOKES = {
    "core": "bench-core",
    "analysis": "bench-analysis",
    "conductor": "bench-conductor",
    "late": "bench-late",
    "resources": "bench-resources",
    "coverage": "coverage",
    "calibration": "calibration",
    "truth": "truth",
    "packets": "packets",
}
# One tunes the machine, one compares bytes on the loopback with what a round trip needs, one fails on a
# finding that others' load may raise, and one asks which of a message's layers a delay of 1 ms is in.
ALONE = {"adaptive": "adaptive", "fidelity": "fidelity", "alarms": "alarms", "witness": "witness"}
NEEDS = {
    "late": ("netns", "cc"),
    "resources": ("netns", "cyclonedds"),
    "truth": ("netns", "timens", "cc"),
    "witness": ("netns", "cyclonedds", "cc"),
    "packets": ("netns", "cyclonedds", "dumpcap", "tshark"),
    "core": ("netns", "cyclonedds", "fastdds"),
    "calibration": ("netns", "cyclonedds", "zeromq"),
    "adaptive": ("netns", "cyclonedds", "fastdds", "zeromq"),
    "fidelity": ("netns", "cyclonedds"),
    "alarms": ("netns", "cyclonedds", "fastdds"),
}


def run_short(benchmark: str, result: str, folder: Path) -> None:
    for name in NEEDS.get(benchmark, ()):
        need(name)
    if benchmark == "fidelity":
        need("ddsperf")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / f"{benchmark}.py"), "--smoke"],
        env={**os.environ, "LAGOMETER_BENCHMARKS_OUT": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    told = json.loads((folder / f"{result}.json").read_text())
    assert told["pass"] is True and told["rows"]


@pytest.mark.cpu_heavy
@pytest.mark.parametrize("benchmark", SMOKES)
def test_a_benchmark_works(build: Path, tmp_path: Path, benchmark: str) -> None:
    run_short(benchmark, SMOKES[benchmark], tmp_path)


@pytest.mark.alone
@pytest.mark.parametrize("benchmark", ALONE)
def test_a_benchmark_that_needs_the_machine_works(build: Path, tmp_path: Path, benchmark: str) -> None:
    run_short(benchmark, ALONE[benchmark], tmp_path)


def test_every_benchmark_is_tried() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    made = set(re.findall(r"benchmarks/(\w+)\.py", text))
    assert made == {*SMOKES, *ALONE, "kills"}
