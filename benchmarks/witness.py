# SPDX-License-Identifier: Apache-2.0
"""`make witness`, first part: whether time that is spent in a layer is attributed to that layer.

A library below the probe (tests/preload/delayed_layer.c) makes one layer of each message 50 µs longer in
every other tenth of a second. Such a tenth is compared with the mean of the two beside it, which cancels a
steady drift. The median of these differences must be 50 ± 5 µs in that layer, and within 5 µs of zero in
every other layer, or within the layer's own spread if that is larger: the interquartile range of its
differences in a trial without a delay.

The cost of the probes is the same comparison of a trial in which they record in every other tenth of a second
and rest otherwise. It may be 3 % of the median latency, or two clock reads for each stamp on a message's way
if that is more. It is over this limit if the interval of the median (95 %, signs) is.

Each worker has a CPU of its own, and no CPU sleeps (awake.py). nng runs with SCHED_FIFO (`FACTORS`).
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
from awake import awake_cpus
from results import ROOT, write_result

from lagometer.stats.interval.medians import median_interval
from lagometer.stats.trial.way import LAYERS, UNATTRIBUTED
from lagometer.store.reader import Campaign, open_campaign
from lagometer.study import discover_adapters
from lagometer.summary.layers import layer_tables

HALF_NS = 100_000_000  # as in the library
MARGIN_NS = 10_000_000  # before the end of a half: such a message may reach the next half
DELAY_NS, TOLERANCE_NS = 50_000, 5_000
LATENCY = "latency"
# At a valid trial: a machine that stalls for a moment makes it miss its rate. In the short form, also at one
# in which the delay is what changed most.
ATTEMPTS = 4
SMOKE_DELAY_NS = 1_000_000
PAIRS_MIN = 12
COST_SHARE = 0.03
READS_PER_STAMP, STAMPS_PER_LAYER = 2, 2
RATE_HZ = 200
OPTIONS: Mapping[str, Mapping[str, str]] = {"fastdds": {"transport": "udp"}}
# nng's own thread wakes the node's while it still holds a lock that the call that takes needs. A delay before
# that changes whom the scheduler lets run first, and so how long the call waits for the lock: another layer
# really becomes shorter. With SCHED_FIFO the thread that runs goes on, with and without the delay.
FACTORS: Mapping[str, Mapping[str, str]] = {"nng": {"scheduling": "fifo"}}
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
    """By layer, the differences of all pairs: the half with the delay minus the mean of its neighbours."""

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
        "matrix": {
            "adapter": [adapter],
            "workload": ["pipeline-2"],
            "rate": [f"{RATE_HZ}Hz"],
            "cpus": ["spread"],
            **{name: [value] for name, value in FACTORS.get(adapter, {}).items()},
        },
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


def measured(folder: Path, library: Path, adapter: str, layer: str, delay_ns: int, seconds: float) -> Path:
    """Runs one trial with a delay in a layer; returns its folder."""
    environment = {
        "LD_PRELOAD": str(library),
        "LAGOMETER_TEST_LAYER": layer,
        "LAGOMETER_TEST_DELAY_NS": str(delay_ns),
    }
    return carried_out(folder, adapter, seconds, "on", environment)


def differences(directory: Path) -> Differences:
    """The pairs of a campaign's only trial."""
    campaign = open_campaign(directory)
    cell, trial = campaign.cells.select("cell", "trial").row(0)
    times = pl.read_parquet(campaign.layers_path(cell, trial), glob=False)
    spent = times.select(
        "sequence",
        pl.col("layer").cast(pl.String()),
        (pl.col("end_ns") - pl.col("begin_ns")).alias("spent_ns"),
    ).pivot(on="layer", index="sequence", values="spent_ns", aggregate_function="sum")
    return pairs_of(messages_of(campaign).join(spent, on="sequence"))


def messages_of(campaign: Campaign) -> pl.DataFrame:
    """Sequence, time and latency of the measured messages of a campaign's only trial."""
    cell, trial = campaign.cells.select("cell", "trial").row(0)
    samples = campaign.samples(cell, trial, ("edge", "sequence", "publish_ns", "taken_ns", "phase"))
    measured = (pl.col("edge").cast(pl.String()) == "source→sink") & (pl.col("phase") == "measure")
    latency = (pl.col("taken_ns") - pl.col("publish_ns")).alias(LATENCY)
    return samples.filter(measured).select("sequence", "publish_ns", latency)


def pairs_of(messages: pl.DataFrame) -> Differences:
    """Each odd tenth of a second against the mean of its neighbours, by their medians."""
    names = [name for name in (*LAYERS, LATENCY) if name in messages.columns]
    halves = (
        messages.filter(pl.col("publish_ns") % HALF_NS < HALF_NS - MARGIN_NS)
        .group_by((pl.col("publish_ns") // HALF_NS).alias("half"))
        .agg(pl.col(name).fill_null(0).median() for name in names)
    )
    by_half = {row["half"]: row for row in halves.iter_rows(named=True)}
    odd = [at for at in sorted(by_half) if at % 2 and {at - 1, at + 1} <= by_half.keys()]
    found = {
        name: np.array(
            [by_half[at][name] - (by_half[at - 1][name] + by_half[at + 1][name]) / 2 for at in odd]
        )
        for name in names
    }
    return Differences(len(odd), found)


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


def cost(folder: Path, adapter: str, plain: Campaign, seconds: float) -> Mapping[str, Any]:
    """The cost of the probes, and what it may be. plain: a trial in which nothing was delayed."""
    turns = {"LAGOMETER_PROBE_TURN_NS": str(HALF_NS)}
    campaign = open_campaign(carried_out(folder, adapter, seconds, "on", turns))
    found = pairs_of(messages_of(campaign))
    cost_ns = found.middle_ns(LATENCY)
    low_ns, high_ns = median_interval(found.of_layer[LATENCY].tolist()) or (cost_ns, cost_ns)
    (table,) = layer_tables([plain])
    latency_ns = float(messages_of(campaign)[LATENCY].median())
    stamps = STAMPS_PER_LAYER * sum(layer.name != UNATTRIBUTED for layer in table.figures.layers)
    reading_ns = float(campaign.environment["clock_read_ns"])
    bound_ns = max(COST_SHARE * latency_ns, READS_PER_STAMP * stamps * reading_ns)
    return {
        "adapter": adapter,
        "layer": "(probes)",
        "pairs": found.pairs,
        "probe_cost_ns": cost_ns,
        "probe_cost_low_ns": low_ns,
        "probe_cost_high_ns": high_ns,
        "probe_cost_bound_ns": bound_ns,
        "probe_cost_share": cost_ns / latency_ns,
        "within": low_ns <= bound_ns,
        "unattributed_p50_share": table.figures.unattributed_p50_share,
    }


def witnessed(places: Mapping[str, Sequence[str]], smoke: bool, pairs: int) -> list[Mapping[str, Any]]:
    """All adapters and layers; prints each as it arrives."""
    delay_ns = SMOKE_DELAY_NS if smoke else DELAY_NS
    seconds = (1.0 if smoke else pairs / 5 + 0.4) + 0.4
    rows: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="lagometer-witness-") as name, awake_cpus():
        folder = Path(name)
        library = folder / "delayed_layer.so"
        source = ROOT / "tests" / "preload" / "delayed_layer"
        versions = f"-Wl,--version-script={source}.map"  # versions of C library symbols in the probe
        command = ["cc", "-O1", "-shared", "-fPIC", versions, "-o", str(library), f"{source}.c"]
        subprocess.run(command, check=True)
        for adapter, layers in places.items():
            undelayed = measured(folder, library, adapter, "none", 0, seconds)
            plain = differences(undelayed)
            for layer in layers:
                for _ in range(ATTEMPTS if smoke else 1):
                    found = differences(measured(folder, library, adapter, layer, delay_ns, seconds))
                    row = judged(adapter, layer, found, plain, delay_ns)
                    show(row)
                    if row["grew_most"] == layer:  # five pairs, on a machine that may stall for longer
                        break
                rows.append(row)
            if not smoke:
                rows.append(cost(folder, adapter, open_campaign(undelayed), seconds))
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
        low, high, bound = (row[f"probe_cost_{name}_ns"] / 1000 for name in ("low", "high", "bound"))
        interval = f"{low:+.1f} to {high:+.1f}, limit {bound:.1f}"
        shares = (
            f"{row['probe_cost_share']:+.1%} of the median; unattributed {row['unattributed_p50_share']:.1%}"
        )
        verdict = "ok" if row["within"] else "-"
        print(
            f"{head}  cost {row['probe_cost_ns'] / 1000:+8.1f} µs ({interval}), {shares}  {verdict}",
            flush=True,
        )
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
        within = all(row["within"] for row in rows if "probe_cost_ns" in row)
        passed = within and all(row["found"] and row["alone"] for row in delayed)
    skipped = sorted(chosen.keys() & absent.keys())
    print(write_result("witness", passed, rows, smoke=given.smoke, skipped=skipped))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
