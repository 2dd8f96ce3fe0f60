# SPDX-License-Identifier: Apache-2.0
"""What a trial costs the conductor by its number of workers: time, CPU time and memory, from 10 to 1,000.

An agent that simulates the workers costs almost nothing, so the rest is ours: plans, the conversation with
each worker, records, figures, files. Passes if ten times the workers take at most `GROWTH_MAX` times the CPU
time and the memory beyond those of a trial with ten.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import ROOT, write_result

from lagometer.run.events import EventLog
from lagometer.run.interruption import Interruption
from lagometer.run.results.trial_store import TrialStore
from lagometer.run.trial import TrialRunner
from lagometer.run.worker.conductor import Conductor
from lagometer.study import discover_adapters, expand, study_from_mapping

COUNTS, SMOKE_COUNTS = (10, 30, 100, 300, 1000), (10, 100)
GROWTH_MAX = 15.0  # 10 is linear
MOCK = [sys.executable, str(Path(__file__).with_name("mock_workers.py"))]
PHASES = {"duration": "1s", "warmup": "0s", "drain": "0s"}


def one(workers: int) -> dict[str, float]:
    """Runs one trial in this process, and returns its cost."""
    mapping = {
        "name": "conductor",
        **PHASES,
        "hosts": {"mock": {"before": MOCK}},
        "matrix": {"adapter": "shm", "workload": f"pipeline-{workers}", "rate": "10Hz"},
    }
    began_s, used_s = time.monotonic(), time.process_time()
    adapters = discover_adapters()
    study = study_from_mapping(mapping, "conductor")
    (cell,) = expand(study, adapters).cells
    runner, events = TrialRunner(adapters), EventLog()
    with tempfile.TemporaryDirectory() as folder, Interruption() as interruption:
        store = TrialStore(Path(folder))
        trial = runner.run(Conductor(interruption, events), study, cell, 0, store)
    runner.close()
    if not trial.valid:
        raise RuntimeError(f"the trial failed: {trial.reasons}")
    return {
        "workers": workers,
        "seconds": time.monotonic() - began_s - 1,
        "cpu_s": time.process_time() - used_s,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_a_process(workers: int) -> dict[str, float]:
    """The same in a new process, whose memory nothing else has used before."""
    command = [sys.executable, __file__, "--one", str(workers)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def growth(rows: list[dict[str, float]], name: str) -> float:
    """Growth from a tenth of the most workers to the most; both figures minus that of the fewest."""
    base = rows[0][name]
    last = rows[-1]
    tenth = next(row for row in rows if row["workers"] * 10 == last["workers"])
    if tenth is rows[0]:
        return last[name] / base
    return (last[name] - base) / max(1e-9, tenth[name] - base)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="two sizes, nothing is judged")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments.one)))
        return 0
    rows = [in_a_process(count) for count in (SMOKE_COUNTS if arguments.smoke else COUNTS)]
    print(f"{'workers':>8} {'seconds':>9} {'CPU s':>9} {'MiB':>9}")
    for row in rows:
        print(f"{row['workers']:>8.0f} {row['seconds']:>9.2f} {row['cpu_s']:>9.2f} {row['memory_mib']:>9.0f}")
    grown = {name: growth(rows, name) for name in ("cpu_s", "memory_mib")}
    passed = arguments.smoke or max(grown.values()) <= GROWTH_MAX
    print(f"ten times the workers: CPU time × {grown['cpu_s']:.1f}, memory × {grown['memory_mib']:.1f}")
    print(write_result("bench-conductor", passed, rows, growth=grown, growth_max=GROWTH_MAX))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
