# SPDX-License-Identifier: Apache-2.0
"""From a hundred million samples to a report: `lagometer report` against well-written pandas, in turns.

The same samples are stored as one cell of 20 trials and as 3,630 cells. Both sides are fresh processes on the
same files, which have just been read, so that neither side waits for a disk that the other does not wait for.
Ours writes the whole report, pandas (analysis_pandas.py) only the figures that a report needs from the
samples. Every figure is compared. Passes if ours is at least three times as fast in both layouts, stays
within 4 GiB resident, and no figure differs by more than 1 ns. `--smoke`: a million samples; only the figures
count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis_data import Layout, write_campaign
from results import ROOT, ratio_of_pairs, results_folder, write_result

from lagometer.store.format import MANIFEST

ROWS, SMOKE_ROWS = 100_000_000, 200_000
ROUNDS, SMOKE_ROUNDS = 3, 1
FASTER_MIN = 3.0
FASTER_AIM = 10.0
RESIDENT_MAX_BYTES = 4 * 1024**3
DIFFERENCE_MAX_NS = 1
COUNTED = ("n", "lost", "migrations_sender", "migrations_receiver")
READ_BYTES = 1 << 20
BYTES_PER_ROW = 25  # on the disk, a generous estimate
DATA = re.compile(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Run:
    """One process: its time and its peak memory."""

    seconds: float
    resident_bytes: int


@dataclass
class Differences:
    """The results of a comparison of figures. worst_ns: the largest difference of two latencies."""

    compared: int = 0
    worst_ns: int = 0
    wrong: list[str] = field(default_factory=list)

    def compare(
        self, what: str, ours: dict[str, Any], theirs: dict[str, Any], latencies: str, counts: tuple[str, ...]
    ) -> None:
        """One curve or series: counts must be equal, latencies are subtracted."""
        same = len(ours[latencies]) == len(theirs[latencies])
        if not same or any(ours.get(name) != theirs[name] for name in counts):
            self.wrong.append(f"{what}: absent, or of other messages")
            return
        self.compared += len(counts) + len(theirs[latencies])
        pairs = zip(ours[latencies], theirs[latencies], strict=True)
        self.worst_ns = max([self.worst_ns, *(abs(mine - other) for mine, other in pairs)])


def layouts(rows: int, smoke: bool) -> list[Layout]:
    """The two layouts of the samples."""
    return [
        Layout("one cell", rows, cells=1, trials=4 if smoke else 20),
        Layout("many cells", rows, cells=36 if smoke else 3630, trials=1),
    ]


def warm(directory: Path) -> None:
    """Reads every file once, and flushes pending writes: some kernels evict files that are unused for a
    while, so the first side would pay for both.
    """
    os.sync()
    for path in directory.rglob("*.parquet"):
        with path.open("rb") as file:
            while file.read(READ_BYTES):
                pass


def timed(command: list[str], directory: Path) -> Run:
    """Runs a program to its end on warm files. Raises RuntimeError with its output if it fails."""
    warm(directory)
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}: {said.read().decode()}")
    return Run(seconds, usage.ru_maxrss * 1024)


def differences(report: dict[str, Any], pandas: dict[str, Any]) -> Differences:
    """Compares every figure from pandas with the report's."""
    found = Differences()
    curves = {(each["cell"], each["edge"]): each for each in report["curves"]}
    for cell, edges in pandas["curves"].items():
        for edge, theirs in edges.items():
            ours = curves.pop((cell, edge), {"n": None, "latency_ns": []})
            found.compare(f"curve of {cell}, {edge}", ours, theirs, "latency_ns", ("n",))
    series = {(each["cell"], each["trial"], each["edge"]): each for each in report["series"]}
    for cell, trials in pandas["series"].items():
        for trial, edges in trials.items():
            for edge, theirs in edges.items():
                ours = series.pop((cell, int(trial), edge), {"slowest": []})
                ours["slowest_ns"] = [each["latency_ns"] for each in ours["slowest"]]
                found.compare(f"series of {cell}, trial {trial}, {edge}", ours, theirs, "slowest_ns", COUNTED)
    found.wrong += [f"only in the report: {key}" for key in (*curves, *series)]
    return found


def measure(layout: Layout, directory: Path, place: Path, rounds: int, smoke: bool) -> dict[str, Any]:
    """Both sides in turns on one layout; returns the row of the result. They write into `place`."""
    page, figures = place / "report.html", place / "figures.json"
    lagometer = [sys.executable, "-m", "lagometer.cli.main", "report", str(directory), "--out", str(page)]
    pandas = [sys.executable, str(ROOT / "benchmarks" / "analysis_pandas.py"), str(directory), str(figures)]
    ours: list[Run] = []
    theirs: list[Run] = []
    for number in range(rounds):
        for side, command in ((ours, lagometer), (theirs, pandas))[:: 1 if number % 2 == 0 else -1]:
            side.append(timed(command, directory))
    found = DATA.search(page.read_text(encoding="utf-8"))
    assert found is not None, "the report holds no data"
    both = json.loads(found[1]), json.loads(figures.read_text(encoding="utf-8"))
    compared = differences(*both)
    ratio = ratio_of_pairs([run.seconds for run in theirs], [run.seconds for run in ours])
    resident = max(run.resident_bytes for run in ours)
    equal = compared.compared > 0 and not compared.wrong and compared.worst_ns <= DIFFERENCE_MAX_NS
    fast = ratio.value >= FASTER_MIN and resident <= RESIDENT_MAX_BYTES
    return {
        "what": f"{layout.rows:,} samples as {layout.name} ({layout.cells:,} × {layout.trials} trials)",
        "lagometer_s": [round(run.seconds, 3) for run in ours],
        "pandas_s": [round(run.seconds, 3) for run in theirs],
        "times_faster": round(ratio.value, 2),
        "times_faster_interval": [round(ratio.low, 2), None if rounds < 2 else round(ratio.high, 2)],
        "resident_bytes": resident,
        "pandas_resident_bytes": max(run.resident_bytes for run in theirs),
        "figures_compared": compared.compared,
        "difference_max_ns": compared.worst_ns,
        "wrong": compared.wrong[:20],
        "report_bytes": page.stat().st_size,
        "pass": equal and (fast or smoke),
    }


def show(row: dict[str, Any]) -> None:
    """Prints one layout for people."""
    middle = sorted(row["lagometer_s"])[len(row["lagometer_s"]) // 2]
    pandas = sorted(row["pandas_s"])[len(row["pandas_s"]) // 2]
    print(f"{row['what']}: {'pass' if row['pass'] else 'FAIL'}")
    print(
        f"  lagometer {middle:.1f} s, {row['resident_bytes'] / 1024**3:.2f} GiB · "
        f"pandas {pandas:.1f} s, {row['pandas_resident_bytes'] / 1024**3:.2f} GiB · "
        f"{row['times_faster']:.1f} times faster (at least {FASTER_MIN:g}, aim {FASTER_AIM:g})"
    )
    print(
        f"  {row['figures_compared']:,} figures compared, largest difference {row['difference_max_ns']:g} ns"
    )
    for line in row["wrong"]:
        print(f"  {line}")


def main() -> int:
    """Makes the samples, measures, prints, writes out/bench/bench-analysis.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="short; only the figures are judged")
    parser.add_argument("--rows", type=int, help="how many samples")
    parser.add_argument("--rounds", type=int, help="how often each side runs")
    parser.add_argument(
        "--samples", type=Path, help="keep the samples in this folder, use those that are there"
    )
    arguments = parser.parse_args()
    rows = arguments.rows or (SMOKE_ROWS if arguments.smoke else ROWS)
    place = arguments.samples or results_folder()
    place.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(place).free < rows * BYTES_PER_ROW:
        print(f"{place}: {rows * BYTES_PER_ROW / 1e9:.1f} GB are needed for the samples", file=sys.stderr)
        return 2
    table = []
    for layout in layouts(rows, arguments.smoke):
        with tempfile.TemporaryDirectory(dir=place, prefix="analysis-") as folder:
            directory = (arguments.samples or Path(folder)) / layout.name.replace(" ", "-")
            if not (directory / MANIFEST).is_file():
                write_campaign(directory, layout)
            rounds = arguments.rounds or (SMOKE_ROUNDS if arguments.smoke else ROUNDS)
            table.append(measure(layout, directory, Path(folder), rounds, arguments.smoke))
        show(table[-1])
    passed = all(row["pass"] for row in table)
    path = write_result("bench-analysis", passed, table, smoke=arguments.smoke)
    print(f"{'pass' if passed else 'FAIL'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
