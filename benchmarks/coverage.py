# SPDX-License-Identifier: Apache-2.0
"""Whether a 95 % interval contains the truth, including the decision when to stop.

Each series is a separate cell. It ends as cells of campaigns end: trials are added until
`lagometer.stats.interval.sequential` stops it, by precision or at the most trials; or their number is fixed.
Then p50 and p99 are estimated. The latencies have known quantiles (coverage_families.py). For each figure the
table contains: how often it was printed, the median width over the truth, the width of an oracle (the middle
95 % of the estimates of all series at as many trials), and the coverage of the i.i.d. bootstrap of the same
messages (percentile interval, exactly: its limits are order statistics of binomial rank). Passes if every
family covers at least 93 % of the times that it prints, and the bootstrap does not; the interval of the share
of missed deadlines must, too (coverage_misses.py). `--smoke` takes few series and judges only what so few can
show.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import coverage_misses
import numpy as np
from coverage_families import PHIS, SHAPES, Floats, draw, true_quantile
from results import write_result
from scipy import stats

from lagometer.stats.interval.confidence import Numbers, Pool
from lagometer.stats.interval.sequential import Rule, decide, looks

COVERAGE_MIN = 0.93
CONFIDENCE = 0.95
UNLIKELY = 1e-4  # a short run fails only if so few hits are this improbable at 95 % coverage
SERIES, SMOKE_SERIES = 1000, 25
SERIES_AT_ONCE = 20  # in memory
MESSAGES = 500  # per trial
RULE = Rule(precision=0.05, trials_min=6, trials_max=60)
LOOKS = tuple(looks(RULE))
FIXED = (6, 30)  # trials of cells with a fixed number
COUNTS = tuple(sorted({*LOOKS, *FIXED}))
PERMILLE = {"p50": 500, "p99": 990}
PROCESSES = 2


@dataclass(frozen=True)
class Task:
    """Some series of one family. The seed makes them the same in every run."""

    shape: str
    phi: float
    series: int
    seed: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """One series and quantile: what was printed at the end of the cell. Limits are None if nothing was."""

    ending: str
    quantity: str
    precise: bool | None  # whether the precision was reached; None without one
    trials: int
    limits: tuple[float, float] | None
    naive: tuple[float, float]


def carry_out(task: Task) -> tuple[Task, list[Outcome], dict[str, Floats]]:
    """All series of a task; for the oracle, the estimates of each at each number of trials."""
    generator = np.random.default_rng(task.seed)
    outcomes: list[Outcome] = []
    estimates: dict[str, list[Floats]] = {name: [] for name in PERMILLE}
    most = LOOKS[-1]
    for begin in range(0, task.series, SERIES_AT_ONCE):
        count = min(SERIES_AT_ONCE, task.series - begin)
        drawn = draw(task.shape, task.phi, count * most, MESSAGES, generator)
        latencies = np.rint(drawn).astype(np.int64).reshape(count, most, MESSAGES)
        for one in latencies:
            outcomes += one_series(list(one))
        at_looks = [
            np.partition(latencies[:, :number].reshape(count, -1), _ranks(number)) for number in COUNTS
        ]
        for name, permille in PERMILLE.items():
            ranks = [_rank(number * MESSAGES, permille) for number in COUNTS]
            columns = [ordered[:, rank] for ordered, rank in zip(at_looks, ranks, strict=True)]
            estimates[name].append(np.stack(columns, axis=1).astype(np.float64))
    return task, outcomes, {name: np.concatenate(parts) for name, parts in estimates.items()}


def one_series(trials: list[Numbers]) -> Iterator[Outcome]:
    """The whole procedure on one cell. It decides nothing between looks, so only looks are evaluated."""
    for look in LOOKS:
        decision = decide(trials[:look], RULE)
        if decision.stop:
            break
    assert decision.alpha is not None, "the most trials stop every cell"
    yield from printed_of(trials[:look], decision.alpha, "adaptive", decision.why == "precision")
    for number in FIXED:
        yield from printed_of(trials[:number], 1.0 - CONFIDENCE, f"{number} trials", None)


def printed_of(trials: list[Numbers], alpha: float, ending: str, precise: bool | None) -> Iterator[Outcome]:
    """What is printed for a cell that ended this way."""
    pool = Pool(trials)
    for name, permille in PERMILLE.items():
        found = pool.estimate(permille, alpha)
        limits = None
        if found.low_ns is not None and found.high_ns is not None:
            limits = float(found.low_ns), float(found.high_ns)
        yield Outcome(ending, name, precise, len(trials), limits, naive_interval(pool, permille))


def naive_interval(pool: Pool, permille: int) -> tuple[float, float]:
    """The percentile interval of the bootstrap that treats all messages as independent, without drawing."""
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = (float(stats.binom.ppf(each, pool.n, permille / 1000.0)) for each in (tail, 1.0 - tail))
    return float(pool.quantile(low / pool.n)), float(pool.quantile(high / pool.n))


def _rank(count: int, permille: int) -> int:
    return -(-count * permille // 1000) - 1


def _ranks(trials: int) -> list[int]:
    return [_rank(trials * MESSAGES, permille) for permille in PERMILLE.values()]


# --- the table


def summarise(
    task: Task, outcomes: list[Outcome], estimates: dict[str, Floats], smoke: bool
) -> Iterator[dict[str, Any]]:
    """One row per ending and quantile of a family."""
    for ending in dict.fromkeys(each.ending for each in outcomes):
        for name in PERMILLE:
            chosen = [each for each in outcomes if (each.ending, each.quantity) == (ending, name)]
            yield {"family": task.shape, "phi": task.phi, "ending": ending, "quantity": name} | figures(
                chosen,
                true_quantile(task.shape, PERMILLE[name] / 1000.0),
                oracle_widths(estimates[name]),
                smoke,
            )


def figures(chosen: list[Outcome], truth: float, oracle: dict[int, float], smoke: bool) -> dict[str, Any]:
    """The results of one quantile in all series of a family."""
    printed = [each for each in chosen if each.limits is not None]
    limits = [each.limits for each in printed if each.limits is not None]
    covered = sum(low <= truth <= high for low, high in limits)
    precise = [each.precise for each in chosen if each.precise is not None]
    return {
        "series": len(chosen),
        "printed": len(printed),
        "abstained_share": 1.0 - len(printed) / len(chosen),
        "covered_share": covered / len(printed) if printed else None,
        "naive_covered_share": sum(low <= truth <= high for low, high in (e.naive for e in chosen))
        / len(chosen),
        "width_share": _median([high - low for low, high in limits], truth),
        "oracle_width_share": _median([oracle[each.trials] for each in printed], truth),
        "reached_precision_share": sum(precise) / len(precise) if precise else None,
        "trials_median": float(np.median([each.trials for each in chosen])),
        "pass": _holds(covered, len(printed), smoke),
    }


def oracle_widths(estimates: Floats) -> dict[int, float]:
    """Number of trials → the width that contains the middle 95 % of the estimates."""
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(estimates, (tail, 1.0 - tail), axis=0)
    return dict(zip(COUNTS, (high - low).tolist(), strict=True))


def _median(widths: list[float], truth: float) -> float | None:
    return float(np.median(widths)) / truth if widths else None


def _holds(covered: int, printed: int, smoke: bool) -> bool:
    if not printed:
        return True
    if smoke:
        return bool(stats.binom.cdf(covered, printed, CONFIDENCE) > UNLIKELY)
    return covered / printed >= COVERAGE_MIN


HEAD = (
    f"{'family':<10}{'phi':>5} {'ending':<10}{'':<4}{'printed':>8}{'covered':>9}{'i.i.d.':>8}"
    f"{'width':>8}{'oracle':>8}{'precise':>9}{'trials':>7}"
)


def line(row: dict[str, Any]) -> str:
    """One row of the table, shares in percent."""

    def percent(key: str) -> str:
        return "-" if row[key] is None else f"{100.0 * row[key]:.1f}"

    printed = 100.0 * (1.0 - row["abstained_share"])
    return (
        f"{row['family']:<10}{row['phi']:>5g} {row['ending']:<10}{row['quantity']:<4}{printed:>8.1f}"
        f"{percent('covered_share'):>9}{percent('naive_covered_share'):>8}{percent('width_share'):>8}"
        f"{percent('oracle_width_share'):>8}{percent('reached_precision_share'):>9}{row['trials_median']:>7.0f}"
        f"{'' if row['pass'] else '  FAIL'}"
    )


def tasks(series: int, parts: int) -> list[Task]:
    """Each family in `parts` parts, the costly ones (many trials) first."""
    each = math.ceil(series / parts)
    return [
        Task(shape, phi, min(each, series - part * each), (SHAPES.index(shape), round(100 * phi), part))
        for phi in reversed(PHIS)
        for shape in SHAPES
        for part in range(parts)
    ]


def main() -> int:
    """Simulates, prints, writes out/bench/coverage.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="few series; fails only on gross undercoverage")
    smoke: bool = parser.parse_args().smoke
    began = time.monotonic()
    series, parts = (SMOKE_SERIES, 1) if smoke else (SERIES, 5)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        done = pool.map(carry_out, tasks(series, parts), chunksize=1)
        of_misses = pool.starmap(
            coverage_misses.carry_out,
            [(place, series) for place in range(len(coverage_misses.FAMILIES))],
            chunksize=1,
        )
    print(HEAD)
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        for phi in PHIS:
            mine = [each for each in done if (each[0].shape, each[0].phi) == (shape, phi)]
            outcomes = [outcome for _, part, _ in mine for outcome in part]
            estimates = {name: np.concatenate([each[2][name] for each in mine]) for name in PERMILLE}
            for row in summarise(mine[0][0], outcomes, estimates, smoke):
                rows.append(row)
                print(line(row), flush=True)
    misses = list(coverage_misses.judged([row for part in of_misses for row in part], smoke))
    print("\n".join(["", coverage_misses.HEAD, *map(coverage_misses.line, misses), ""]))
    return conclude(rows, misses, smoke, time.monotonic() - began)


def conclude(rows: list[dict[str, Any]], misses: list[dict[str, Any]], smoke: bool, seconds: float) -> int:
    """The verdict; the i.i.d. bootstrap must fail, otherwise the families would prove nothing."""
    worst = min((row["covered_share"] for row in rows if row["printed"]), default=None)
    naive_worst = min(row["naive_covered_share"] for row in rows)
    every = [*rows, *misses]
    passed = worst is not None and all(row["pass"] for row in every) and naive_worst < COVERAGE_MIN
    path = write_result("coverage", passed, every, smoke=smoke, messages=MESSAGES, seconds=round(seconds, 1))
    shown = "-" if worst is None else f"{100.0 * worst:.1f} %"
    print(f"worst coverage {shown} (at least {100.0 * COVERAGE_MIN:.0f} %), of the i.i.d. bootstrap ", end="")
    print(f"{100.0 * naive_worst:.1f} %; {seconds:.0f} s")
    print(f"{'pass' if passed else 'FAIL'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
