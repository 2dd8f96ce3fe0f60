# SPDX-License-Identifier: Apache-2.0
"""`make witness`, first part: whether time that is spent in a layer is attributed to that layer.

A library below the probe (tests/preload/delayed_layer.c) makes one layer of each message 50 µs longer in
every other tenth of a second. A pair is such a tenth and the one before. The median of the pairs' differences
must be 50 ± 5 µs in that layer, and within 5 µs of zero in every other layer, or within the layer's own
spread if that is larger: the interquartile range of its differences in a trial without a delay. The benchmark
also measures the cost of the probes with paired trials.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from results import ROOT, write_result

from lagometer.stats.trial.way import LAYERS
from lagometer.store.reader import open_campaign
from lagometer.study import discover_adapters
from lagometer.summary.layers import layer_tables, probe_cost

HALF_NS = 100_000_000  # as in the library
MARGIN_NS = 10_000_000  # before the end of a half: such a message may reach the next half
DELAY_NS, TOLERANCE_NS = 50_000, 5_000
# At a valid trial: a machine that stalls for a moment makes it miss its rate. In the short form, also at one
# in which the delay is what changed most.
ATTEMPTS = 4
SMOKE_DELAY_NS = 1_000_000
PAIRS_MIN = 12
RATE_HZ = 200
OPTIONS: Mapping[str, Mapping[str, str]] = {"fastdds": {"transport": "udp"}}
DDS_PLACES = ("send_path", "transport", "receiving_thread", "wake", "notify", "take")
# The layers with code below the probe: (de)serialising is the adapter's own code, and so is everything on a
# bare socket's path except the system calls. Of a library that is not known here, only the system calls are.
PLACES = {
    "udp": ("transport", "receive"),
    "tcp": ("transport", "receive"),
    "uds": ("transport", "receive"),
    "cyclonedds": DDS_PLACES,
    "cyclonedds11": ("transport", "receiving_thread"),
    "fastdds": DDS_PLACES,
    "rustdds": ("transport",),
    "dust_dds": ("transport",),
    "zenoh": ("transport",),
    "zeromq": ("transport", "receiving_thread"),
    "nng": ("transport", "receiving_thread"),
    "lcm": ("transport",),
    "ros1": ("transport",),
}
SMOKE_PLACES = {"cyclonedds": ("receiving_thread",)}


@dataclass(frozen=True)
class Differences:
    """By layer, the differences of all pairs: the half with the delay minus the one before."""

    pairs: int
    of_layer: Mapping[str, np.ndarray]

    def middle_ns(self, layer: str) -> float:
        """The median difference; 0 for a layer that no message went through."""
        return float(np.median(self.of_layer[layer])) if layer in self.of_layer else 0.0

    def spread_ns(self, layer: str) -> float:
        """The interquartile range of the differences."""
        if layer not in self.of_layer:
            return 0.0
        low, high = np.quantile(self.of_layer[layer], (0.25, 0.75))
        return float(high - low)


def carried_out(
    folder: Path, adapter: str, seconds: float, layers: str, environment: Mapping[str, str], **more: Any
) -> Path:
    """Runs one trial; returns its folder. more: further keys of the study. Raises RuntimeError if none of the
    attempts is valid."""
    study = {
        "name": "witness",
        "duration": f"{seconds:g}s",
        "trials": 1,
        "layers": layers,
        "machine_floor": "off",
        "options": {name: dict(given) for name, given in OPTIONS.items() if name == adapter},
        "matrix": {"adapter": [adapter], "workload": ["pipeline-2"], "rate": [f"{RATE_HZ}Hz"]},
        **more,
    }
    path = Path(tempfile.mkdtemp(dir=folder)) / "study.yaml"
    path.write_text(json.dumps(study))
    told = {**os.environ, **environment}
    for attempt in range(ATTEMPTS):
        out = path.with_name(f"out{attempt}")
        command = (
            sys.executable,
            "-m",
            "lagometer.cli.main",
            "run",
            str(path),
            "--no-report",
            "--out",
            str(out),
        )
        done = subprocess.run(command, check=False, env=told, capture_output=True, text=True, cwd=ROOT)
        if done.returncode == 0:
            return out
    raise RuntimeError(f"no valid trial of {adapter}: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def measured(
    folder: Path, library: Path, adapter: str, layer: str, delay_ns: int, seconds: float
) -> Differences:
    """Runs one trial with a delay in a layer."""
    environment = {
        "LD_PRELOAD": str(library),
        "LAGOMETER_TEST_LAYER": layer,
        "LAGOMETER_TEST_DELAY_NS": str(delay_ns),
    }
    return differences(carried_out(folder, adapter, seconds, "on", environment))


def differences(directory: Path) -> Differences:
    """The pairs of a campaign's only trial."""
    campaign = open_campaign(directory)
    cell, trial = campaign.cells.select("cell", "trial").row(0)
    samples = campaign.samples(cell, trial, ("edge", "sequence", "publish_ns", "phase"))
    edge = pl.col("edge").cast(pl.String()) == "source→sink"
    messages = samples.filter(edge & (pl.col("phase") == "measure")).select("sequence", "publish_ns")
    times = pl.read_parquet(campaign.layers_path(cell, trial), glob=False)
    spent = times.select(
        "sequence",
        pl.col("layer").cast(pl.String()),
        (pl.col("end_ns") - pl.col("begin_ns")).alias("spent_ns"),
    ).pivot(on="layer", index="sequence", values="spent_ns", aggregate_function="sum")
    half = pl.col("publish_ns") // HALF_NS
    halves = (
        messages.join(spent, on="sequence")
        .filter(pl.col("publish_ns") % HALF_NS < HALF_NS - MARGIN_NS)
        .with_columns(half.alias("half"))
        .group_by("half")
        .agg(pl.col(name).fill_null(0).median() for name in spent.columns if name != "sequence")
    )
    by_half = {row["half"]: row for row in halves.iter_rows(named=True)}
    pairs = [(by_half[at], by_half[at - 1]) for at in sorted(by_half) if at % 2 and at - 1 in by_half]
    found = {
        name: np.array([late[name] - plain[name] for late, plain in pairs])
        for name in LAYERS
        if name in spent
    }
    return Differences(len(pairs), found)


def judged(
    adapter: str, layer: str, found: Differences, plain: Differences, delay_ns: int
) -> Mapping[str, Any]:
    """The result of a delay in one layer."""
    middles = {name: found.middle_ns(name) for name in LAYERS}
    others = {name: value for name, value in middles.items() if name != layer}
    bounds = {name: max(TOLERANCE_NS, plain.spread_ns(name)) for name in others}
    worst = max(others, key=lambda name: abs(others[name]) / bounds[name])
    return {
        "adapter": adapter,
        "layer": layer,
        "pairs": found.pairs,
        "difference_ns": middles[layer],
        "other": worst,
        "other_ns": others[worst],
        "other_bound_ns": bounds[worst],
        "grew_most": max(middles, key=lambda name: middles[name]),
        "found": abs(middles[layer] - delay_ns) <= TOLERANCE_NS and found.pairs >= PAIRS_MIN,
        "alone": all(abs(value) <= bounds[name] for name, value in others.items()),
    }


def cost(folder: Path, adapter: str, pairs: int) -> Mapping[str, Any]:
    """The cost of the probes, from paired trials."""
    found = []
    for pair in range(pairs):
        order = ("on", "off") if pair % 2 else ("off", "on")
        sides = {layers: open_campaign(carried_out(folder, adapter, 2.0, layers, {})) for layers in order}
        found.append((sides["on"], sides["off"]))
    told = probe_cost(found)
    (table,) = layer_tables([probed for probed, _ in found])
    return {
        "adapter": adapter,
        "layer": "(probes)",
        "pairs": told.pairs,
        "probe_cost_ns": told.probe_cost_ns,
        "probe_cost_share": told.probe_cost_share,
        "unattributed_p50_share": table.figures.unattributed_p50_share,
    }


def witnessed(places: Mapping[str, Sequence[str]], smoke: bool, pairs: int) -> list[Mapping[str, Any]]:
    """All adapters and layers; prints each as it arrives."""
    delay_ns = SMOKE_DELAY_NS if smoke else DELAY_NS
    seconds = (1.0 if smoke else pairs / 5 + 0.4) + 0.2
    rows: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="lagometer-witness-") as name:
        folder = Path(name)
        library = folder / "delayed_layer.so"
        source = ROOT / "tests" / "preload" / "delayed_layer"
        versions = f"-Wl,--version-script={source}.map"  # versions of C library symbols in the probe
        command = ["cc", "-O1", "-shared", "-fPIC", versions, "-o", str(library), f"{source}.c"]
        subprocess.run(command, check=True)
        for adapter, layers in places.items():
            plain = measured(folder, library, adapter, "none", 0, seconds)
            for layer in layers:
                for _ in range(ATTEMPTS if smoke else 1):
                    found = measured(folder, library, adapter, layer, delay_ns, seconds)
                    row = judged(adapter, layer, found, plain, delay_ns)
                    show(row)
                    if row["grew_most"] == layer:  # five pairs, on a machine that may stall for longer
                        break
                rows.append(row)
            if not smoke:
                rows.append(cost(folder, adapter, 6))
                show(rows[-1])
    return rows


def absent_here() -> Mapping[str, str]:
    """The adapters that can't run on this machine, and why."""
    adapters = discover_adapters()
    missing = {name: "no such adapter" for name in PLACES if name not in adapters}
    return missing | {name: each.missing for name, each in adapters.items() if each.missing is not None}


def show(row: Mapping[str, Any]) -> None:
    """Prints one row."""
    head = f"{row['adapter']:>12} {row['layer']:>17} {row['pairs']:>4} pairs"
    if "difference_ns" not in row:
        shares = (
            f"{row['probe_cost_share']:+.1%} of the median; unattributed {row['unattributed_p50_share']:.1%}"
        )
        print(f"{head}  cost {row['probe_cost_ns'] / 1000:+8.1f} µs, {shares}", flush=True)
        return
    other = f"{row['other']} {row['other_ns'] / 1000:+.1f} µs of ± {row['other_bound_ns'] / 1000:.1f}"
    verdict = "ok" if row["found"] and row["alone"] else "-"
    print(f"{head}       {row['difference_ns'] / 1000:+8.1f} µs, worst other: {other}  {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--smoke", action="store_true", help="few layers; only the layer that grew most counts"
    )
    parser.add_argument(
        "--adapter", action="append", choices=sorted(PLACES), help="this one; may be repeated"
    )
    parser.add_argument("--pairs", type=int, default=24, help="pairs of tenths of a second for each layer")
    given = parser.parse_args()
    absent = absent_here()
    chosen = SMOKE_PLACES if given.smoke else {name: PLACES[name] for name in given.adapter or PLACES}
    for name in chosen.keys() & absent.keys():
        print(f"{name:>12} skipped: {absent[name]}")
    here = {name: layers for name, layers in chosen.items() if name not in absent}
    rows = witnessed(here, given.smoke, given.pairs)
    delayed = [row for row in rows if "difference_ns" in row]
    if given.smoke:
        passed = all(row["grew_most"] == row["layer"] for row in delayed)
    else:
        passed = all(row["found"] and row["alone"] for row in delayed)
    skipped = sorted(chosen.keys() & absent.keys())
    print(write_result("witness", passed, rows, smoke=given.smoke, skipped=skipped))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
