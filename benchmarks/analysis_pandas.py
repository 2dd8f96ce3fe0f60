# SPDX-License-Identifier: Apache-2.0
"""The report's figures from a campaign's samples, as fast as pandas allows; run as a program.

`python analysis_pandas.py DIR FIGURES.json`: reads only the necessary columns, stores edges as integers, uses
no text per message, and sorts each group's latencies once. `make bench-analysis` compares `lagometer report`
with it and checks the report's figures against it, so it shares no code with the package.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = ["edge", "publish_ns", "taken_ns", "cpu_publish", "cpu_taken", "phase", "outcome"]
CURVE_COLUMNS = ["edge", "publish_ns", "taken_ns", "phase", "outcome"]
BEYOND = 10  # samples that must lie beyond a quantile
SLOWEST = 20
SERIES_MAX = 1200  # the number of series in the report; beyond it only curves are computed


def probabilities(count: int) -> np.ndarray:
    """The grid of a curve: 20 steps per nine, the usual quantiles, the first and last supported."""
    last = (count - BEYOND) / count
    nines = np.arange(0, -np.log10(1 - last) + 1e-9, 1 / 20)
    usual = (0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999)
    grid = np.unique(np.round(np.concatenate([1 - 10.0**-nines, usual, [(BEYOND + 1) / count, last]]), 7))
    ranks = np.ceil(grid * count - 1e-9)
    return grid[(ranks > BEYOND) & (count - ranks >= BEYOND)]


def curve(latency: pd.Series) -> dict[str, Any]:
    """Order statistics of type 1 on the grid."""
    ordered = np.sort(latency.to_numpy())
    grid = probabilities(len(ordered))
    ranks = np.ceil(grid * len(ordered) - 1e-9).astype(np.int64)
    return {"n": len(ordered), "latency_ns": ordered[ranks - 1].tolist()}


def series(rows: pd.DataFrame, delivered: pd.DataFrame) -> dict[str, Any]:
    """The report's figures for one trial's edge: lost, slowest messages, CPU changes."""
    slowest = delivered["latency"].nlargest(SLOWEST)
    sender, receiver = rows["cpu_publish"].to_numpy(), delivered["cpu_taken"].to_numpy()
    return {
        "n": len(delivered),
        "lost": len(rows) - len(delivered),
        "slowest_ns": slowest.tolist(),
        "migrations_sender": int((sender[1:] != sender[:-1]).sum()),
        "migrations_receiver": int((receiver[1:] != receiver[:-1]).sum()),
    }


def read(path: Path, columns: list[str], edges: dict[str, int]) -> pd.DataFrame:
    """The measured rows of one file, edges as integers."""
    frame = pd.read_parquet(path, columns=columns, engine="pyarrow")
    phase, outcome = frame["phase"].cat, frame["outcome"].cat
    measure = phase.codes.to_numpy() == phase.categories.get_loc("measure")
    frame = frame[measure]
    names = [edges.setdefault(str(name), len(edges)) for name in frame["edge"].cat.categories]
    return pd.DataFrame(
        {
            "edge": np.array(names, dtype=np.int8)[frame["edge"].cat.codes.to_numpy()],
            "latency": frame["taken_ns"] - frame["publish_ns"],
            "delivered": outcome.codes.to_numpy()[measure] == outcome.categories.get_loc("delivered"),
            **{name: frame[name] for name in columns if name in ("cpu_publish", "cpu_taken")},
        }
    )


def main() -> int:
    """Writes `{curves: {cell: {edge: …}}, series: {cell: {trial: {edge: …}}}}`."""
    directory, target = Path(sys.argv[1]), Path(sys.argv[2])
    cells = pd.read_parquet(directory / "cells.parquet", columns=["cell", "trial", "edge", "valid", "n"])
    wanted = cells[cells["valid"] & (cells["n"] > 0)]
    order = wanted.assign(first=wanted["edge"] != "end-to-end").sort_values(["first", "trial"], kind="stable")
    fitting = set(order[["cell", "trial", "edge"]].head(SERIES_MAX).itertuples(index=False, name=None))
    with_series = {(cell, trial) for cell, trial, _ in fitting}
    edges: dict[str, int] = {}
    curves: dict[str, dict[str, Any]] = {}
    drawn: dict[str, dict[int, dict[str, Any]]] = {}
    for cell, trials in wanted[["cell", "trial"]].drop_duplicates().groupby("cell", sort=False)["trial"]:
        parts = []
        for trial in trials:
            columns = COLUMNS if (cell, trial) in with_series else CURVE_COLUMNS
            rows = read(directory / "samples" / cell / f"{trial}.parquet", columns, edges)
            arrived = rows[rows["delivered"]]
            parts.append(arrived[["edge", "latency"]])
            for name, code in edges.items():
                if (cell, trial, name) in fitting:
                    here, took = rows[rows["edge"] == code], arrived[arrived["edge"] == code]
                    drawn.setdefault(cell, {}).setdefault(trial, {})[name] = series(here, took)
        pooled = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        names = {code: name for name, code in edges.items()}
        curves[cell] = {
            names[code]: curve(latency) for code, latency in pooled.groupby("edge", sort=False)["latency"]
        }
    target.write_text(json.dumps({"curves": curves, "series": drawn}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
