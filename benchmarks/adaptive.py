# SPDX-License-Identifier: Apache-2.0
"""Does an adaptive cell reach the figure of a run of 60 s, in at most a fifteenth of its time?

For each of the named cells the adaptive run, a run of 60 s and a second run of 60 s follow one another (or in
reverse order, by the seed). The error is the adaptive p50 over that of the adjacent run, minus one; the noise
floor is the same for the two long runs. A cell agrees if its error is at most the larger of 5 % and the
floor. The benchmark passes if at least 90 % of the cells agree, each in at most a fifteenth of the long run's
time: both times count from the first process to the samples on the disk. The adaptive runs have no control
cell, since a campaign shares one among all its cells.

It also prints what the machine allows: each long run is cut into fifteen parts, and `parts` is the share of
them whose p50 agrees with that of the whole run by the same limit. No run that spends a fifteenth of the time
in one piece can be expected to do better.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import numpy as np
import polars as pl
from results import write_result

from lagometer.run.campaign import Assignment, CampaignRun
from lagometer.stats.compare.comparable import cell_trials
from lagometer.store.reader import Campaign, open_campaign
from lagometer.study import discover_adapters, expand, study_from_mapping

ADAPTERS = ("cyclonedds", "fastdds", "zeromq")  # middleware; a bare transport is an easier case
# From a bare hop at a high rate to pipelines whose relays work, as a robot's nodes do, at a low rate. With
# bare hops the long run's own parts often differ by more than the tolerance (`parts`), so there is only one.
DESIGNS = (
    ("pipeline-2", "none", "1KB", "5kHz"),
    ("pipeline-3", "busy-200us", "64B", "1kHz"),
    ("pipeline-3", "busy-500us", "1KB", "500Hz"),
    ("pipeline-3", "busy-1ms", "4KB", "200Hz"),
    ("pipeline-4", "busy-500us", "64B", "200Hz"),
    ("pipeline-3", "busy-2ms", "4KB", "100Hz"),
    ("pipeline-3", "busy-5ms", "16KB", "50Hz"),
)
VARIED = ("workload", "work", "payload", "rate")
# Pinned: if threads may migrate, a median mixes their random placements. Tuned, since idle states cause most
# of the variation from second to second.
FACTORS = {"placement": "process-per-node", "cpus": "spread", "tuning": "latency"}
CELLS = [
    {"adapter": adapter, **dict(zip(VARIED, design, strict=True)), **FACTORS}
    for adapter, design in itertools.product(ADAPTERS, DESIGNS)
]
COUNT = 20
LONG_S, SMOKE_LONG_S = 60, 3
TIME_SHARE = 15
CELL_TIME_SHARE = 0.95  # of its limit: the last trial may take longer than the earlier ones
CELL_TIME_MIN_S = 3.8
ERROR_MAX = 0.05
SHARE_MIN = 0.9
ATTEMPTS = 2
ADAPTIVE = {
    "duration": "200ms",
    "warmup": "50ms",
    "drain": "10ms",
    "precision": "2%",
    "control": "none",
    "long_trial": "off",
}
Read = TypeVar("Read")


@dataclass(frozen=True)
class LongRun:
    """One long trial: its p50 in ns, the p50 of each of its parts, and its total time in s."""

    p50_ns: float
    parts_ns: list[float]
    spent_s: float


def run(cell: Mapping[str, Any], read: Callable[[Campaign], Read], **keys: Any) -> Read:
    """Runs one cell as a campaign, and reads its results before they are removed."""
    named = {"name": "adaptive", "machine_floor": "off", "matrix": dict(cell)}
    study = study_from_mapping({**named, **keys}, "adaptive benchmark")
    adapters = discover_adapters()
    expansion = expand(study, adapters)
    if not expansion.cells:
        raise RuntimeError(f"can't be measured here: {expansion.excluded[0].reason}")
    with tempfile.TemporaryDirectory(prefix="lagometer-adaptive-") as folder:
        out = Path(folder) / "out"
        CampaignRun(Assignment(study, expansion.cells, expansion.excluded, adapters, out)).carry_out()
        return read(open_campaign(out))


def read_long(campaign: Campaign) -> LongRun | str:
    """The only trial of a long run, or why it is not valid."""
    row = campaign.cells.filter(pl.col("edge") == "end-to-end").row(0, named=True)
    if not row["valid"]:
        return str(row["reasons"])
    _, _, (latencies,) = cell_trials(campaign, row["cell"])
    parts = [float(np.median(part)) for part in np.array_split(latencies, TIME_SHARE)]
    return LongRun(float(row["latency_p50_ns"]), parts, float(campaign.journal[0]["spent_s"]))


def long_run(cell: Mapping[str, Any], seconds: int) -> LongRun:
    """One long trial; retries a failed one once."""
    for _ in range(ATTEMPTS):
        found = run(cell, read_long, duration=f"{seconds}s", warmup="300ms", drain="100ms")
        if isinstance(found, LongRun):
            return found
    raise RuntimeError(f"the long run is not valid: {found}")


def read_adaptive(campaign: Campaign) -> dict[str, Any]:
    """The results of an adaptive run."""
    estimates = pl.read_parquet(campaign.directory / "estimates.parquet")
    chosen = (pl.col("edge") == "end-to-end") & (pl.col("quantity") == "latency_p50")
    row = estimates.filter(chosen).row(0, named=True)
    return {
        "p50_ns": row["estimate_ns"],
        "low_ns": row["low_ns"],
        "high_ns": row["high_ns"],
        "status": row["status"],
        "stopped": row["stopped"],
        "trials": len(campaign.journal),
        "trials_valid": row["trials"],
        "seconds": sum(float(entry["spent_s"]) for entry in campaign.journal),
    }


def measure(cell: Mapping[str, Any], seconds: int, forward: bool) -> dict[str, Any]:
    """The three runs of one cell, adjacent; `forward`: the adaptive one first, else last."""
    cell_time_s = max(CELL_TIME_MIN_S, CELL_TIME_SHARE * seconds / TIME_SHARE)
    adaptive_keys = {**ADAPTIVE, "cell_time": f"{round(cell_time_s * 1000)}ms"}
    adaptive: dict[str, Any] = run(cell, read_adaptive, **adaptive_keys) if forward else {}
    longs = [long_run(cell, seconds) for _ in range(2)]
    if not forward:
        adaptive = run(cell, read_adaptive, **adaptive_keys)
        longs.reverse()
    beside, second = longs
    error = adaptive["p50_ns"] / beside.p50_ns - 1 if adaptive["p50_ns"] else None
    floor = second.p50_ns / beside.p50_ns - 1
    limit = max(ERROR_MAX, abs(floor))
    agreeing = [abs(part_ns / long.p50_ns - 1) <= limit for long in longs for part_ns in long.parts_ns]
    return {
        **adaptive,
        "long_ns": beside.p50_ns,
        "second_ns": second.p50_ns,
        "error": error,
        "floor": floor,
        "parts_agreeing": sum(agreeing) / len(agreeing),
        "agrees": error is not None and abs(error) <= limit,
        "covers": error is not None and adaptive["low_ns"] <= beside.p50_ns <= adaptive["high_ns"],
        "time_share": adaptive["seconds"] / beside.spent_s,
    }


def attempt(cell: Mapping[str, Any], seconds: int, forward: bool) -> dict[str, Any]:
    """A row of the table; a cell that can't be measured does not agree."""
    name = "/".join(str(cell[key]) for key in ("adapter", *VARIED))
    try:
        return {"cell": name, **measure(cell, seconds, forward), "problem": None}
    except RuntimeError as error:
        return {"cell": name, "agrees": False, "time_share": None, "problem": str(error)}


def print_row(row: Mapping[str, Any]) -> None:
    """One line of the table."""
    if row["problem"]:
        print(f"{row['cell']:<41} {row['problem']}", flush=True)
        return
    p50 = f"{row['p50_ns'] / 1000:9.2f}" if row["p50_ns"] else f"{'-':>9}"
    error = f"{row['error']:+8.1%}" if row["error"] is not None else f"{'-':>8}"
    print(
        f"{row['cell']:<41} {p50} {row['long_ns'] / 1000:9.2f} {row['second_ns'] / 1000:9.2f} {error} "
        f"{row['floor']:+8.1%} {row['parts_agreeing']:6.0%} {row['trials']:>6} {row['stopped'] or '-':<9} "
        f"{1 / row['time_share']:6.1f} {'yes' if row['agrees'] else 'NO'}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, writes out/bench/adaptive.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="two cells, runs of 3 s; passes if it works")
    parser.add_argument("--cells", type=int, default=COUNT, help="so many cells, drawn by the seed")
    parser.add_argument("--long", type=int, default=LONG_S, metavar="SECONDS", help="of the long runs")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    generator = random.Random(given.seed)
    seconds, count = (SMOKE_LONG_S, 2) if given.smoke else (given.long, given.cells)
    cells = generator.sample(CELLS, count)
    # A fifteenth of a shorter run is too short for six trials: then the time is not judged.
    whole = seconds >= LONG_S
    print(
        f"{'cell':<41} {'adaptive':>9} {'long, µs':>9} {'second':>9} {'error':>8} {'floor':>8}  parts trials",
        "ended by   faster agrees",
        flush=True,
    )
    rows = []
    for cell in cells:
        rows.append(attempt(cell, seconds, generator.random() < 0.5))
        print_row(rows[-1])
    agreeing = sum(row["agrees"] for row in rows) / len(rows)
    shares = [row["time_share"] for row in rows if row["time_share"] is not None]
    in_time = not whole or (len(shares) == len(rows) and max(shares) <= 1 / TIME_SHARE)
    reached = agreeing >= SHARE_MIN and in_time
    passed = reached or (given.smoke and all(row["problem"] is None for row in rows))
    if shares:
        parts = fmean(row["parts_agreeing"] for row in rows if not row["problem"])
        print(
            f"{agreeing:.0%} of {len(rows)} cells agree (at least {SHARE_MIN:.0%}); "
            f"{parts:.0%} of the parts of long runs do; slowest: 1/{1 / max(shares):.1f} of the time"
        )
    else:
        print("nothing could be measured")
    path = write_result("adaptive", passed, rows, smoke=given.smoke, seed=given.seed, long_s=seconds)
    print(f"{'pass' if passed else 'FAIL'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
