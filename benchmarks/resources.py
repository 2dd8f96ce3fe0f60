# SPDX-License-Identifier: Apache-2.0
"""The cost of observing processes: the p50 of trials with `resources: on`, and with `counters`, over that of
trials with `off`, in turn. `on` passes unless the whole interval of its ratio is above 1.02.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from results import ratio_of_pairs, write_result

from lagometer.agent.observe.hardware import unavailable
from lagometer.run.events import EventLog
from lagometer.run.interruption import Interruption
from lagometer.run.results.trial_store import TrialStore
from lagometer.run.trial import Trial, TrialRunner
from lagometer.run.worker.conductor import Conductor
from lagometer.study import discover_adapters, expand, study_from_mapping

ADAPTERS = ("shm", "cyclonedds")
SIDES = ("off", "on", "counters")
BLOCKS, SMOKE_BLOCKS = 12, 2
DURATION, SMOKE_DURATION = "2s", "200ms"
RATIO_MAX = 1.02
ATTEMPTS = 5  # at a trial, in case the machine stalls for a moment


class Trials:
    """Runs single trials, each with its own number. `folder`: where they are stored."""

    def __init__(self, folder: Path, conductor: Conductor, duration: str) -> None:
        self._folder, self._conductor, self._duration = folder, conductor, duration
        self._adapters = discover_adapters()
        self.runner = TrialRunner(self._adapters)
        self._count = 0

    def p50_ns(self, adapter: str, side: str, block: int) -> int:
        """Returns the median end-to-end latency of the first valid trial."""
        for _ in range(ATTEMPTS):
            trial = self._trial(adapter, side, block)
            if trial.valid:
                (found,) = trial.rows.filter(trial.rows["edge"] == "end-to-end")["latency_p50_ns"]
                return int(found)
        raise RuntimeError(f"{ATTEMPTS} trials failed, the last one: {trial.reasons}")

    def _trial(self, adapter: str, side: str, block: int) -> Trial:
        mapping = {
            "name": "resources",
            "duration": self._duration,
            "seed": str(block + 1),  # both of a pair use the same memory addresses
            "resources": side,
            "matrix": {
                "adapter": adapter,
                "workload": "pipeline-3",
                "payload": "64B",
                "rate": "1kHz",
                "placement": "process-per-node",
            },
        }
        study = study_from_mapping(mapping, "resources")
        (cell,) = expand(study, self._adapters).cells
        self._count += 1
        store = TrialStore(self._folder / f"trial-{self._count}")
        return self.runner.run(self._conductor, study, cell, 0, store)


def measured(blocks: int, duration: str) -> list[dict[str, Any]]:
    """A row for each adapter and side except `off`; the sides take turns at being first."""
    found: dict[tuple[str, str], list[float]] = {}
    events = EventLog()
    with tempfile.TemporaryDirectory() as folder, Interruption() as interruption:
        trials = Trials(Path(folder), Conductor(interruption, events), duration)
        try:
            for block in range(blocks):
                for adapter in ADAPTERS:
                    for place in range(len(SIDES)):
                        side = SIDES[(place + block) % len(SIDES)]
                        found.setdefault((adapter, side), []).append(trials.p50_ns(adapter, side, block))
        finally:
            trials.runner.close()
    return [
        _row(adapter, side, found[adapter, side], found[adapter, "off"])
        for adapter in ADAPTERS
        for side in SIDES[1:]
    ]


def _row(adapter: str, side: str, watched_ns: list[float], alone_ns: list[float]) -> dict[str, Any]:
    ratio = ratio_of_pairs(watched_ns, alone_ns)
    return {
        "adapter": adapter,
        "resources": side,
        "pairs": len(watched_ns),
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
    }


def show(rows: list[Mapping[str, Any]]) -> None:
    """Prints the rows."""
    print(f"{'adapter':>12} {'resources':>10} {'pairs':>6} {'p50 over that without (95 %)':>30}")
    for row in rows:
        ratio = f"{row['ratio']:.3f} [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}]"
        print(f"{row['adapter']:>12} {row['resources']:>10} {row['pairs']:>6} {ratio:>30}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="few short trials, nothing is judged")
    smoke = parser.parse_args().smoke
    rows = measured(SMOKE_BLOCKS if smoke else BLOCKS, SMOKE_DURATION if smoke else DURATION)
    show(rows)
    missing = unavailable()
    for name, why in missing.items():
        print(f"not counted: {name}: {why}")
    passed = smoke or all(row["ratio_low"] <= RATIO_MAX for row in rows if row["resources"] == "on")
    print(write_result("bench-resources", passed, rows, not_counted=missing, smoke=smoke))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
