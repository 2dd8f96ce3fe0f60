# SPDX-License-Identifier: Apache-2.0
"""Is `compare` right about real trials: no alarm where nothing changed, and +5 % found where it was injected?

*False alarms.* A build against itself: trials of three cells, in randomised blocks, by the ordinary run. Each
comparison takes the next 12 valid trials of each cell (in the order of time), draws for each two neighbours
which is A and which is B, and compares the three cells as one family. No trial is in two comparisons and none
is resampled. It passes with at most 10 false alarms in 200 comparisons (alpha is 2 %).

*Power.* Short pilots measure cells of four adapters wrapped by the adapter `faulty`, twice in each block, and
pick the cell whose two trials of a block differ least. A long pilot with new trials (the first was picked for
a small difference) measures that cell's median, and how the two differ. It takes some minutes, since one
minute of a virtual machine may spread half as much as the next. These determine the number of trials for a
comparison, as in `plan --detect 5%` for two cells of one campaign. Then two cells run in randomised blocks:
the same one, and one whose worker spins within publish for 5 % of that median (the fault `spin`: after the
stamp of publishing, before the middleware sees the message). Each comparison takes this number of further
blocks and goes block by block, as `compare --by` does; again no trial is reused. It passes if the +5 % is
found in at least 95 % of the comparisons: 60 of them, or fewer (at least 20) if the machine is so unsteady
that 60 would take more than 40 minutes. If 20 would take more than two hours, it fails. No CPU sleeps
meanwhile (awake.py): on a virtual machine, wake-ups alone make a median spread by a fifth.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from awake import awake_cpus
from results import write_result

from lagometer.run.campaign import Assignment, CampaignRun
from lagometer.stats.compare.comparable import cell_trials
from lagometer.stats.compare.compare import ALPHA, NO_DIFFERENCE, NOT_COMPARABLE, SLOWER, Pair, compare_pairs
from lagometer.stats.compare.detection import PairDetection, trials_to_detect
from lagometer.stats.interval.confidence import TRIALS_MIN, Numbers, Pool
from lagometer.store.reader import Campaign, open_campaign
from lagometer.study import discover_adapters, expand, study_from_mapping
from lagometer.study.adapter import Adapter

# Pinned: if threads may migrate, a median mixes their random placements.
FACTORS = {"workload": "pipeline-3", "payload": "64B", "rate": "1kHz", "cpus": "spread"}
ONE_PUBLISH = {"workload": "pipeline-2"}  # so that the spin is in each latency once
FAULTY, SPINNING = "faulty", "faulty-spinning"  # the adapter without a fault, and with the injected one
PHASES = {"duration": "200ms", "warmup": "30ms", "drain": "10ms", "control": "none"}
ADAPTERS = ("shm", "udp", "cyclonedds")
STEADY_ADAPTERS = (*ADAPTERS, "zeromq")
# Candidates for the steadiest cell, in addition to the adapters. Fast messages find warm caches, and a busy
# poll waits for no wake-up: both vary less if neighbours use the same host.
CANDIDATES: tuple[Mapping[str, str], ...] = ({}, {"dispatch": "poll", "rate": "5kHz"})
EFFECT, SMOKE_EFFECT = 0.05, 1.0
FOUND_MIN = 0.95
FOUND_OF_LEAST, POWER_S = 20, 40 * 60
POWER_S_MAX = 2 * 60 * 60
ALARMS_MAX_OF_200 = 10
PICK_BLOCKS, PILOT_BLOCKS = 12, 240
AT_ONCE = 5  # comparisons from one campaign, whose samples occupy the disk
CAMPAIGNS_MAX_FACTOR = 3  # of the number needed if all trials were valid
TRIAL_S = 0.35  # the approximate total time of a trial


Block = Mapping[str, Numbers]  # the latencies of one trial of each cell, in the study's order


@dataclass(frozen=True)
class Size:
    """The size of the benchmark."""

    comparisons: int
    adapters: tuple[str, ...]
    steady_adapters: tuple[str, ...]  # the effect is injected into the steadiest of them
    found_of: int  # comparisons with the effect injected
    pick: int  # blocks of each of the short pilots
    pilot: int  # and of the long one
    effect: float
    trials_max: int | None = None  # of one comparison with the effect, regardless of the prediction


WHOLE = Size(200, ADAPTERS, STEADY_ADAPTERS, 60, PICK_BLOCKS, PILOT_BLOCKS, EFFECT)
# Pilots of twice the blocks that are needed: on a busy machine a trial may miss its rate.
SMOKE = Size(1, ("shm", "udp"), ("shm",), 1, 2 * TRIALS_MIN, 2 * TRIALS_MIN, SMOKE_EFFECT, 8)


def valid_blocks(campaign: Campaign) -> list[Block]:
    """The blocks of a campaign in which all cells are valid, in the order of time."""
    cells = [str(item["id"]) for item in campaign.manifest["cells"]]
    found: dict[str, dict[int, Numbers]] = {}
    for cell in cells:
        numbers, _, latencies = cell_trials(campaign, cell)
        found[cell] = dict(zip(numbers, latencies, strict=True))
    common = sorted(set.intersection(*(set(each) for each in found.values())))
    return [{cell: found[cell][number] for cell in cells} for number in common]


@dataclass(frozen=True)
class Trials:
    """The definition of trials. over: the adapter below `faulty`; spin_ns: the spin of `faulty-spinning`."""

    matrix: Mapping[str, Any]
    over: str | None = None
    spin_ns: int = 0

    def blocks(self, trials: int, seed: int) -> list[Block]:
        """The blocks in which all cells are valid, from an ordinary campaign."""
        with tempfile.TemporaryDirectory(prefix="lagometer-calibration-") as folder:
            return valid_blocks(open_campaign(self.run(trials, seed, Path(folder))))

    def run(self, trials: int, seed: int, folder: Path) -> Path:
        """Runs a campaign; returns its folder."""
        keys = {"name": "calibration", "trials": str(trials), "seed": str(seed), **PHASES}
        options = {} if self.over is None else {"options": {FAULTY: {"over": self.over}}}
        mapping = {**keys, **options, "matrix": {**FACTORS, **self.matrix}}
        study = study_from_mapping(mapping, "calibration benchmark")
        adapters = self._adapters()
        expansion = expand(study, adapters)
        if not expansion.cells or expansion.excluded:
            raise RuntimeError(f"can't be measured here: {expansion.excluded[0].reason}")
        CampaignRun(Assignment(study, expansion.cells, (), adapters, folder / "out")).carry_out()
        return folder / "out"

    def _adapters(self) -> dict[str, Adapter]:
        """A study gives an adapter one set of options, so the adapter with the fault has its own name.

        Without spin_ns the two behave the same.
        """
        if self.over is None:
            return discover_adapters()
        adapters = discover_adapters({FAULTY: {"over": self.over}})
        plain = adapters[FAULTY]
        injected = (
            {**plain.fixed_options, "spin": 1, "spin_ns": self.spin_ns}
            if self.spin_ns
            else plain.fixed_options
        )
        sidecar = plain.sidecar.model_copy(update={"name": SPINNING})
        return {**adapters, SPINNING: replace(plain, sidecar=sidecar, fixed_options=injected)}


def comparisons(made: Trials, trials: int, wanted: int, seed: int) -> Iterator[list[Block]]:
    """Yields `wanted` times the next `trials` valid blocks, each block once.

    Raises RuntimeError if too many trials fail.
    """
    left: list[Block] = []
    given = campaigns = 0
    campaigns_max = CAMPAIGNS_MAX_FACTOR * -(-wanted // AT_ONCE)
    while given < wanted:
        if campaigns >= campaigns_max:
            raise RuntimeError(f"only {given} of {wanted} comparisons: too many trials are not valid")
        left += made.blocks(trials * min(AT_ONCE, wanted - given), seed + campaigns)
        campaigns += 1
        while given < wanted and len(left) >= trials:
            yield left[:trials]
            left = left[trials:]
            given += 1


def false_alarms(size: Size, seed: int) -> dict[str, Any]:
    """Compares a build with itself `size.comparisons` times."""
    generator = random.Random(seed)
    alarms: list[dict[str, Any]] = []
    judged = {"p50": 0, "p99": 0}
    made = Trials({"adapter": list(size.adapters)})
    for number, blocks in enumerate(comparisons(made, 2 * TRIALS_MIN, size.comparisons, seed)):
        cells = compare_pairs(
            [_drawn(cell, [block[cell] for block in blocks], generator) for cell in blocks[0]]
        )
        for cell in cells:
            for name, quantity in cell.quantities.items():
                judged[name] += quantity.verdict != NOT_COMPARABLE
        alarmed = [cell for cell in cells if cell.verdict not in (NO_DIFFERENCE, NOT_COMPARABLE)]
        if alarmed:
            alarms.append({"comparison": number, "cells": [asdict(cell) for cell in alarmed]})
            print(f"  false alarm in comparison {number}: {alarmed[0].cell_a}", flush=True)
        if (number + 1) % 10 == 0:
            print(f"  {number + 1} comparisons, {len(alarms)} false alarms", flush=True)
    allowed = ALARMS_MAX_OF_200 * size.comparisons / 200
    return {
        "what": "false alarms",
        "comparisons": size.comparisons,
        "cells": len(size.adapters),
        "trials": TRIALS_MIN,
        "alpha": ALPHA,
        "judged": judged,
        "alarms": alarms,
        "pass": len(alarms) <= allowed and judged["p50"] == size.comparisons * len(size.adapters),
    }


def _drawn(cell: str, trials: Sequence[Numbers], generator: random.Random) -> Pair:
    """Of each two neighbours in time, one is A and the other B, at random."""
    a, b = [], []
    for one, other in zip(trials[::2], trials[1::2], strict=True):
        first, second = (one, other) if generator.random() < 0.5 else (other, one)
        a.append(first)
        b.append(second)
    return Pair(cell, cell, a, b)


def steadiest(size: Size, seed: int) -> Trials:
    """The cell, twice in each block, whose two trials of a block differ least."""
    found: list[tuple[float, Trials]] = []
    for factors, adapter in itertools.product(CANDIDATES, size.steady_adapters):
        made = Trials({**ONE_PUBLISH, **factors, "adapter": [FAULTY, SPINNING]}, over=adapter)
        try:
            _, detection = _pilot(made, size.pick, size.effect, seed)
        except RuntimeError as error:
            print(f"  {adapter} {dict(factors)}: {error}", flush=True)
            continue
        print(f"  {adapter} {dict(factors)}: {detection.relative_sd:.1%}", flush=True)
        found.append((detection.relative_sd, made))
    if not found:
        raise RuntimeError("no cell has enough valid trials")
    return min(found, key=lambda each: each[0])[1]


def power(size: Size, seed: int) -> dict[str, Any]:
    """Injects the effect and counts how often it is found at the predicted number of trials."""
    made = steadiest(size, seed + 3000)
    median_ns, detection = _pilot(made, size.pilot, size.effect, seed + 2000)
    spin_ns = max(1, round(size.effect * median_ns))
    trials = min(detection.trials, size.trials_max or detection.trials)
    affordable = max(FOUND_OF_LEAST, int(POWER_S / (2 * trials * TRIAL_S)))
    count = min(size.found_of, affordable)
    print(
        f"{detection.cell_a} over {made.over}: median {median_ns / 1000:.2f} µs, spin {spin_ns} ns "
        f"(+{size.effect:.0%}); within a block one trial's median spreads by {detection.relative_sd:.1%}; "
        f"predicted: {detection.trials} trials of each, about {2 * trials * count * TRIAL_S / 60:.1f} min",
        flush=True,
    )
    if 2 * trials * count * TRIAL_S > POWER_S_MAX:
        raise RuntimeError(f"power not judged on this machine: it takes {trials} trials of each")
    found, ratios = 0, []
    for blocks in comparisons(replace(made, spin_ns=spin_ns), trials, count, seed + 1000):
        median = compare_pairs([_side_by_side(blocks)])[0].quantities["p50"]
        found += median.verdict == SLOWER
        ratios.append(median.ratio)
        if len(ratios) % AT_ONCE == 0:
            print(f"  {len(ratios)} comparisons, found in {found}", flush=True)
    return {
        "what": "power",
        "comparisons": count,
        "cell": detection.cell_a,
        "over": made.over,
        "effect": size.effect,
        "median_ns": median_ns,
        "spin_ns": spin_ns,
        "pilot_blocks": detection.blocks_found,
        "relative_sd": detection.relative_sd,
        "trials_predicted": detection.trials,
        "trials": trials,
        "found": found,
        "ratios": ratios,
        "pass": found >= FOUND_MIN * count,
    }


def _pilot(made: Trials, blocks: int, effect: float, seed: int) -> tuple[float, PairDetection]:
    """The median in ns without the effect, and the number of trials that find it."""
    with tempfile.TemporaryDirectory(prefix="lagometer-calibration-") as folder:
        pilot = open_campaign(made.run(blocks, seed, Path(folder)))
        cells = [str(item["id"]) for item in pilot.manifest["cells"]]
        pairs = trials_to_detect(pilot, cells, effect).pairs
        if not pairs:
            raise RuntimeError(f"too few of the pilot's {blocks} blocks are valid")
        return Pool(cell_trials(pilot, cells[0])[2]).quantile(0.5), pairs[0]


def _side_by_side(blocks: Sequence[Block]) -> Pair:
    """The two cells of these blocks, for a comparison block by block."""
    before, after = blocks[0]  # in the study's order: without the spin, and with it
    a, b = ([block[cell] for block in blocks] for cell in (before, after))
    return Pair(before, after, a, b, blocks=[(place, place) for place in range(len(blocks))])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, writes out/bench/calibration.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="a few trials; passes if it works")
    parser.add_argument("--comparisons", type=int, help="of a build with itself [200]")
    parser.add_argument("--found-of", type=int, help="comparisons with the effect injected [60]")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    usual = SMOKE if given.smoke else WHOLE
    size = Size(
        usual.comparisons if given.comparisons is None else given.comparisons,
        usual.adapters,
        usual.steady_adapters,
        usual.found_of if given.found_of is None else given.found_of,
        usual.pick,
        usual.pilot,
        usual.effect,
        usual.trials_max,
    )
    count = 2 * TRIALS_MIN * size.comparisons * len(size.adapters)
    print(f"a build against itself: {count} trials, about {count * TRIAL_S / 60:.1f} min", flush=True)
    began_s = time.monotonic()
    rows: list[dict[str, Any]] = []
    problem = None
    try:
        rows.append(false_alarms(size, given.seed))
        alarms = f"{len(rows[0]['alarms'])} false alarms in {size.comparisons} comparisons"
        print(f"{alarms} (at most {ALARMS_MAX_OF_200} in 200); judged {rows[0]['judged']}", flush=True)
        with awake_cpus():
            rows.append(power(size, given.seed))
        row = rows[1]
        print(
            f"+{size.effect:.0%} found in {row['found']} of {row['comparisons']} comparisons "
            f"of {row['trials']} trials (at least {FOUND_MIN:.0%})"
        )
    except RuntimeError as error:
        problem = str(error)
        print(problem)
    whole = (
        size.comparisons >= WHOLE.comparisons and size.found_of >= WHOLE.found_of
    )  # the machine may have allowed fewer
    reached = problem is None and all(row["pass"] for row in rows)
    passed = problem is None if given.smoke else reached and whole
    more = {"smoke": given.smoke, "seed": given.seed, "seconds": time.monotonic() - began_s}
    path = write_result("calibration", passed, rows, problem=problem, **more)
    if reached and not whole and not given.smoke:
        print("as far as it goes: fewer comparisons than the criterion asks for")
    print(f"{'pass' if passed else 'FAIL'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
