# SPDX-License-Identifier: Apache-2.0
"""Lateness caused by lagometer: the share of sends more than 100 µs late in a graph of 191 nodes, minus that
of a program that only sleeps until the same times, in as many threads or processes; both in turn.

The graph has 95 nodes with a timer. One node receives from each, two from the first; these have no
counterpart in the program, since they do not sleep until a time. Passes if the difference is below one
percentage point, on the adapters null (one process) and shm (a process for each node).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from results import write_result
from scipy import stats

from lagometer.run.events import EventLog
from lagometer.run.interruption import Interruption
from lagometer.run.results.trial_store import TrialStore
from lagometer.run.trial import TrialRunner
from lagometer.run.worker.conductor import Conductor
from lagometer.study import discover_adapters, expand, study_from_mapping

SIDES = {"null": ("single-process", "threads"), "shm": ("process-per-node", "processes")}
TIMERS, SMOKE_TIMERS = 95, 10
PERIOD_NS = 100_000_000
LATE_NS = 100_000
BLOCKS, SMOKE_BLOCKS = 12, 2
SECONDS, SMOKE_SECONDS = 5, 1
DIFFERENCE_MAX = 0.01


def graph(timers: int) -> dict[str, Any]:
    """The workload file: the first times of the timers are evenly spaced within a period."""
    nodes: dict[str, Any] = {}
    for number in range(timers):
        offset = f"{number * (PERIOD_NS // timers)}ns"
        nodes[f"source-{number}"] = {"trigger": "timer", "offset": offset, "publishes": [f"t{number}"]}
        nodes[f"sink-{number}"] = {"trigger": "any", "subscribes": [f"t{number}"]}
    nodes["second-sink"] = {"trigger": "any", "subscribes": ["t0"]}
    return {"name": "timers", "nodes": nodes}


class Sides:
    """Runs either side once. `folder`: for the program, the workload and the trials."""

    def __init__(self, folder: Path, timers: int, seconds: int, conductor: Conductor) -> None:
        self._folder, self._timers, self._seconds = folder, timers, seconds
        self._conductor = conductor
        self._adapters = discover_adapters()
        self.runner = TrialRunner(self._adapters)
        self._program = folder / "bare_sleep"
        source = Path(__file__).with_name("bare_sleep.c")
        subprocess.run(["cc", "-O2", "-pthread", "-o", str(self._program), str(source)], check=True)
        (folder / "timers.yaml").write_text(yaml.safe_dump(graph(timers)), encoding="utf-8")
        self._trials = 0

    def bare(self, how: str) -> float:
        """The share of times that the program reached late."""
        numbers = (self._timers, PERIOD_NS, self._seconds, LATE_NS)
        command = [str(self._program), *map(str, numbers), how]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        count, late = map(int, done.stdout.split())
        return late / count

    def ours(self, adapter: str, placement: str) -> float:
        """The share of messages that were published late, by their schedule."""
        mapping = {
            "name": "late",
            "duration": f"{self._seconds}s",
            "warmup": "1s",
            "matrix": {
                "adapter": adapter,
                "workload": str(self._folder / "timers.yaml"),
                "rate": f"{10**9 // PERIOD_NS}Hz",
                "placement": placement,
            },
        }
        study = study_from_mapping(mapping, "late")
        (cell,) = expand(study, self._adapters).cells
        store = TrialStore(self._folder / f"trial-{self._trials}")
        self._trials += 1
        trial = self.runner.run(self._conductor, study, cell, 0, store)
        if not trial.valid:
            raise RuntimeError(f"the trial failed: {trial.reasons}")
        sent = trial.samples.filter((pl.col("phase") == "measure") & (pl.col("edge") != "end-to-end"))
        late_ns = (sent["publish_ns"] - sent["intended_ns"]).to_numpy()
        return float(np.mean(late_ns > LATE_NS))


def row_of(adapter: str, ours: list[float], bare: list[float]) -> dict[str, Any]:
    """The mean of the paired differences with its 95 % interval (Student's t)."""
    differences = np.array(ours) - np.array(bare)
    half = float(stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences))
    mean = float(differences.mean())
    return {
        "adapter": adapter,
        "ours": float(np.mean(ours)),
        "bare": float(np.mean(bare)),
        "difference": mean,
        "difference_low": mean - half,
        "difference_high": mean + half,
    }


def measured(blocks: int, timers: int, seconds: int) -> list[dict[str, Any]]:
    """A row for each adapter; within a block the sides take turns at being first."""
    found: dict[str, tuple[list[float], list[float]]] = {adapter: ([], []) for adapter in SIDES}
    events = EventLog()
    with tempfile.TemporaryDirectory() as folder, Interruption() as interruption:
        sides = Sides(Path(folder), timers, seconds, Conductor(interruption, events))
        try:
            for block in range(blocks):
                for adapter, (placement, how) in SIDES.items():
                    ours, bare = found[adapter]
                    if block % 2:
                        bare.append(sides.bare(how))
                    ours.append(sides.ours(adapter, placement))
                    if not block % 2:
                        bare.append(sides.bare(how))
        finally:
            sides.runner.close()
    return [row_of(adapter, *both) for adapter, both in found.items()]


def show(rows: list[Mapping[str, Any]]) -> None:
    """Prints the rows, in percent."""
    print(f"{'adapter':>8} {'ours':>8} {'bare':>8} {'difference (95 %), percentage points':>38}")
    for row in rows:
        low, high = 100 * row["difference_low"], 100 * row["difference_high"]
        difference = f"{100 * row['difference']:+.2f} [{low:+.2f}, {high:+.2f}]"
        print(f"{row['adapter']:>8} {row['ours']:>8.2%} {row['bare']:>8.2%} {difference:>38}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="few nodes and blocks, nothing is judged")
    smoke = parser.parse_args().smoke
    rows = measured(
        SMOKE_BLOCKS if smoke else BLOCKS,
        SMOKE_TIMERS if smoke else TIMERS,
        SMOKE_SECONDS if smoke else SECONDS,
    )
    show(rows)
    passed = smoke or all(row["difference"] < DIFFERENCE_MAX for row in rows)
    print(write_result("bench-late", passed, rows, late_ns=LATE_NS, smoke=smoke))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
