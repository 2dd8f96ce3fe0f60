# SPDX-License-Identifier: Apache-2.0
"""Code that all benchmarks share: writing results, and intervals of ratios."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import stats

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of ratios with its 95 % interval (Student's t on the logarithms)."""

    value: float
    low: float
    high: float


def geometric_mean(values: Sequence[float]) -> float:
    """Returns the geometric mean of positive numbers."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


def ratio_of_pairs(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Compares two sides of the same blocks: pairing removes drift from block to block.

    The interval is Student's t on the logarithms of the ratios; with one pair it is unbounded.
    """
    logarithms = [math.log(a / b) for a, b in zip(above, below, strict=True)]
    mean = sum(logarithms) / len(logarithms)
    if len(logarithms) < 2:
        return Ratio(math.exp(mean), 0.0, math.inf)
    spread = math.sqrt(sum((each - mean) ** 2 for each in logarithms) / (len(logarithms) - 1))
    half = float(stats.t.ppf(0.975, len(logarithms) - 1)) * spread / math.sqrt(len(logarithms))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def machine() -> dict[str, Any]:
    """Returns the facts about the machine that a reader of the result needs."""
    return {
        "machine": platform.machine(),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load": list(os.getloadavg()),
    }


def commit(root: Path = ROOT) -> str | None:
    """Returns the checkout's commit, with `-dirty` if a file differs from it or is new; None elsewhere."""
    git = ["git", "-C", str(root)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode != 0:
        return None
    changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return head.stdout.strip() + ("-dirty" if changes.stdout or changes.returncode != 0 else "")


# The benchmark measures the tree as it was when it began, even if there are new commits while it runs.
COMMIT_MEASURED = commit()


def results_folder() -> Path:
    """The folder for results."""
    return Path(os.environ.get("LAGOMETER_BENCHMARKS_OUT", ROOT / "out" / "bench"))


def write_result(name: str, passed: bool, rows: Sequence[Mapping[str, Any]], **more: Any) -> Path:
    """Writes `out/bench/NAME.json` as `{pass, rows, machine, commit}` and the benchmark's own keys.

    `commit` is that of the benchmark's start. LAGOMETER_BENCHMARKS_OUT names another folder.
    """
    path = results_folder() / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = {"pass": passed, "rows": list(rows), "machine": machine(), "commit": COMMIT_MEASURED}
    document = {**measured, **more}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path
