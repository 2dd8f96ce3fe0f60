# SPDX-License-Identifier: Apache-2.0
"""Whether the 95 % interval of the share of missed deadlines contains the truth: a part of coverage.py.

Draws a number of cells from each family, and computes their intervals as for estimates.parquet. Judges the
cells in which a message missed. For the others the limit bounds how often runs of misses begin, so it is
compared with that; with independent misses that is the share itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from lagometer.stats.interval.misses import Mask, miss_limits

COVERAGE_MIN = 0.93
CONFIDENCE = 0.95
UNLIKELY = 1e-4  # a short run fails only if so few hits are this improbable at 95 % coverage
MESSAGES = 500  # per trial
TRIALS = (6, 30)


@dataclass(frozen=True)
class Family:
    """How misses occur. share: of messages, the truth; run: how many follow each other on average."""

    name: str
    share: float
    run: float
    draw: Callable[[np.random.Generator], Mask]


def independent(share: float) -> Callable[[np.random.Generator], Mask]:
    """Each message misses with the same probability."""
    return lambda generator: generator.random(MESSAGES) < share


def of_its_own(share: float) -> Callable[[np.random.Generator], Mask]:
    """Each trial has its own share, drawn from a gamma distribution of shape 2."""
    return lambda generator: generator.random(MESSAGES) < generator.gamma(2.0, share / 2.0)


def in_runs(share: float, run: float) -> Callable[[np.random.Generator], Mask]:
    """A two-state Markov chain."""
    enter = share / (1.0 - share) / run

    def draw(generator: np.random.Generator) -> Mask:
        first = bool(generator.random() < share)
        lengths: list[int] = []
        while sum(lengths) < MESSAGES:
            missing = first == (len(lengths) % 2 == 0)
            lengths.append(int(generator.geometric(1.0 / run if missing else enter)))
        states = np.arange(len(lengths)) % 2 == (0 if first else 1)
        return np.repeat(states, lengths)[:MESSAGES]

    return draw


FAMILIES = (
    Family("independent", 0.001, 1.0, independent(0.001)),
    Family("independent", 0.02, 1.0, independent(0.02)),
    Family("by trial", 0.05, 1.0, of_its_own(0.05)),
    Family("runs of 5", 0.05, 5.0, in_runs(0.05, 5.0)),
    Family("runs of 20", 0.02, 20.0, in_runs(0.02, 20.0)),
    Family("runs of 50", 0.1, 50.0, in_runs(0.1, 50.0)),
)


def carry_out(place: int, cells: int) -> list[dict[str, Any]]:
    """The rows of the family at this index, one for each number of trials."""
    family = FAMILIES[place]
    generator = np.random.default_rng((4_711, place))
    return [_row(family, trials, cells, generator) for trials in TRIALS]


def _row(family: Family, trials: int, cells: int, generator: np.random.Generator) -> dict[str, Any]:
    missed, held, widths, begun = 0, 0, [], 0
    for _ in range(cells):
        drawn = [family.draw(generator) for _ in range(trials)]
        shares = [float(each.mean()) for each in drawn]
        due = trials * MESSAGES
        low, high = miss_limits(shares, drawn, due, float(due), 1.0 - CONFIDENCE)
        if max(shares) > 0.0:
            missed += 1
            held += low <= family.share <= high
            widths.append((high - low) / family.share)
        else:
            begun += family.share / family.run <= high
    return {
        "family": f"misses, {family.name}",
        "share": family.share,
        "trials": trials,
        "cells": cells,
        "with_misses": missed,
        "covered_share": held / missed if missed else None,
        "without_misses_covered_share": begun / (cells - missed) if missed < cells else None,
        "width_share": float(np.median(widths)) if widths else None,
        "held": held,
    }


HEAD = f"{'deadlines missed':<20}{'share':>8}{'trials':>8}{'any':>8}{'covered':>9}{'of none':>9}{'width':>8}"


def line(row: dict[str, Any]) -> str:
    """One row of the table, shares in percent; `of none`: coverage in cells without a miss."""

    def percent(value: float | None) -> str:
        return "-" if value is None else f"{100.0 * value:.1f}"

    return (
        f"{row['family'].removeprefix('misses, '):<20}{percent(row['share']):>8}{row['trials']:>8}"
        f"{percent(row['with_misses'] / row['cells']):>8}{percent(row['covered_share']):>9}"
        f"{percent(row['without_misses_covered_share']):>9}{percent(row['width_share']):>8}"
        f"{'' if row['pass'] else '  FAIL'}"
    )


def judged(rows: list[dict[str, Any]], smoke: bool) -> Iterator[dict[str, Any]]:
    """The rows with their verdicts; a short run fails only on gross undercoverage."""
    for row in rows:
        counted, held = row["with_misses"], row.pop("held")
        if smoke:
            passed = not counted or bool(stats.binom.cdf(held, counted, CONFIDENCE) > UNLIKELY)
        else:
            passed = not counted or held / counted >= COVERAGE_MIN
        yield {**row, "pass": passed}
