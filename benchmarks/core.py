# SPDX-License-Identifier: Apache-2.0
"""What measuring costs: nanoseconds per message and side, and seconds per cell.

Per message: CPU numbers and the stored record, in addition to the clock reads and what an application touches
anyway (see stamping_cost.cpp), in a tight loop and at 2 kHz with 4 MB of other memory touched between
messages. Both the mean and the median over messages must hold: the median alone would hide what happens once
in 63. Per cell: `overhead_s` of a pipeline of five nodes in five processes, including namespaces. `--smoke`
is short and only checks that it works.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from results import ROOT, write_result

BUILD = Path(os.environ.get("LAGOMETER_BUILD", ROOT / "build" / "release"))
TIGHT_MAX_NS = 8.0
COLD_MAX_NS = 25.0
OVERHEAD_MAX_S = {"cyclonedds": (0.12, 0.30), "fastdds": (0.50, None)}
TRIALS = 40
SMOKE_TRIALS = 2


def stamping(smoke: bool) -> list[dict[str, Any]]:
    """Builds and runs the timed loops; one row per mode and side."""
    target = "lagometer-stamping-cost"
    subprocess.run(
        ["cmake", "--build", str(BUILD), "--target", target], check=True, stdout=subprocess.DEVNULL
    )
    command = [str(BUILD / "benchmarks" / target), *(["--smoke"] if smoke else [])]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rows = []
    for mode, maximum in (("tight", TIGHT_MAX_NS), ("cold", COLD_MAX_NS)):
        for row in figures[mode]["rows"]:
            worst = max(row["added_mean_ns"], row["added_median_ns"])
            judged = row["judged"]
            rows.append(
                {
                    **row,
                    "what": f"{mode}: {row['what']}",
                    "unit": "ns",
                    "value": worst,
                    "clock_read_ns": figures[mode]["clock_read_ns"],
                    "maximum": maximum if judged else None,
                    "pass": worst <= maximum if judged else None,
                }
            )
    return rows


def overhead(adapter: str, trials: int) -> list[dict[str, Any]]:
    """Runs short trials of a five-process pipeline; rows for the median and the 95th percentile."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "overhead.yaml"
        study.write_text(
            "name: overhead\nduration: 100ms\nwarmup: 20ms\ndrain: 20ms\n"
            f"trials: {trials}\nmatrix:\n  adapter: [{adapter}]\n  workload: [pipeline-5]\n"
            "  rate: [100Hz]\n  placement: [process-per-node]\n",
            encoding="utf-8",
        )
        command = [
            sys.executable,
            "-m",
            "lagometer.cli.main",
            "run",
            str(study),
            "--out",
            f"{folder}/out",
            "--json",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
        cells = pl.read_parquet(f"{folder}/out/cells.parquet").filter(pl.col("edge") == "end-to-end")
    median_max, high_max = OVERHEAD_MAX_S[adapter]
    rows = []
    for name, quantile, maximum in (("median", 0.5, median_max), ("p95", 0.95, high_max)):
        value = cells["overhead_s"].quantile(quantile, interpolation="higher")
        assert value is not None
        judged = maximum is not None
        rows.append(
            {
                "what": f"overhead of a cell, {adapter}, 5 processes, {name}",
                "unit": "s",
                "value": value,
                "trials": trials,
                "maximum": maximum,
                "pass": value <= maximum if judged else None,
            }
        )
    return rows


def detail(row: dict[str, Any]) -> str:
    """The components of a row of the timed loops."""
    if "clock_read_ns" not in row:
        return ""
    return (
        f"  (mean {row['bare_mean_ns']:.1f} -> {row['measured_mean_ns']:.1f}, added:"
        f" mean {row['added_mean_ns']:.1f} ± {row['added_mean_error_ns']:.1f},"
        f" median {row['added_median_ns']:.1f} ± {row['added_median_error_ns']:.1f},"
        f" a clock read {row['clock_read_ns']:.1f})"
    )


def main() -> int:
    """Measures, prints, writes out/bench/bench-core.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="short; passes if it works")
    arguments = parser.parse_args()
    rows = stamping(arguments.smoke)
    for adapter in OVERHEAD_MAX_S:
        rows += overhead(adapter, SMOKE_TRIALS if arguments.smoke else TRIALS)
    for row in rows:
        limit = f"at most {row['maximum']:g}" if row["maximum"] is not None else "for information"
        verdict = {True: "pass", False: "NOT REACHED", None: ""}[row["pass"]]
        print(f"{row['what']:<55} {row['value']:>9.3f} {row['unit']:<2}  {limit:<16} {verdict}{detail(row)}")
    reached = all(row["pass"] is not False for row in rows)
    passed = reached or arguments.smoke
    path = write_result("bench-core", passed, rows, smoke=arguments.smoke)
    print(f"{'pass' if passed else 'NOT REACHED'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
