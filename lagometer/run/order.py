# SPDX-License-Identifier: Apache-2.0
"""The order of a campaign's trials, and which cells run in addition to the study's own."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lagometer.study import Adapter, Cell, Excluded, Study
from lagometer.study.matrix import TRIAL_OVERHEAD_NS, expand

CONTROL_DURATION_MAX_NS = 500_000_000
# Long trials, unless the study sets their length: all of them together take this share of the campaign's
# time, but each is at least this many times as long as a short one, and at most a minute.
LONG_SHARE = 0.1
LONG_TIMES_MIN = 3
LONG_MAX_NS = 60_000_000_000


def blocks(cells: Sequence[Cell], seed: int) -> Iterator[list[Cell]]:
    """Yields randomised complete blocks without end: each contains every cell once, in its own order.

    So a drift of the machine spreads over all cells and is not mistaken for a difference between them.
    """
    generator = random.Random(seed)
    while True:
        block = list(cells)
        generator.shuffle(block)
        yield block


def trial_order(cells: Sequence[Cell], trials: int, seed: int) -> list[tuple[Cell, int]]:
    """Returns all trials of a campaign with this many blocks."""
    in_turn = zip(range(trials), blocks(cells, seed), strict=False)
    return [(cell, trial) for trial, block in in_turn for cell in block]


def control_cell(
    study: Study, adapters: Mapping[str, Adapter]
) -> tuple[Study, Cell] | tuple[None, Excluded | None]:
    """Returns the control cell and the study to run it with; or why there is none.

    Its trials are no longer than half a second: it shows the machine's drift, not a tail. Both are None if
    the study asks for no control.
    """
    if study.control is None:
        return None, None
    alone = replace(
        study,
        matrix={name: (value,) for name, value in study.control.items()},
        parts={},
        exclude=(),
        options={name: values for name, values in study.options.items() if name in adapters},
        duration_ns=min(study.duration_ns, CONTROL_DURATION_MAX_NS),
        warmup_ns=min(study.warmup_ns, CONTROL_DURATION_MAX_NS),
        warmup_max_ns=None,
        discard=0,
        transfer=False,
    )
    expansion = expand(alone, adapters)
    # Of a variant that sets nothing for its adapter the last one is the plain cell, with the reason itself.
    return (alone, expansion.cells[0]) if expansion.cells else (None, expansion.excluded[-1])


def least_ns(study: Study, cells: Sequence[Cell]) -> int:
    """The approximate time that the minimum number of trials of these cells takes, from the study only."""
    studies = [study.of(cell) for cell in cells]
    return sum(
        cell_study.fewest_trials() * (cell_study.trial_ns() + TRIAL_OVERHEAD_NS) for cell_study in studies
    )


def long_trial_ns(study: Study, cells: Sequence[Cell]) -> int:
    """The measure phase of each long trial; 0 for none. By default, studies with `precision` have long
    trials."""
    if study.long_trial_ns is not None or study.precision is None:
        return study.long_trial_ns or 0
    beside_ns = study.trial_ns() - study.duration_ns + TRIAL_OVERHEAD_NS
    share_ns = round(LONG_SHARE * least_ns(study, cells) / max(1, len(_families(cells)))) - beside_ns
    return max(LONG_TIMES_MIN * study.duration_ns, min(share_ns, LONG_MAX_NS))


def long_trial_cells(study: Study, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Returns one cell of each family (the cells of one adapter and workload), drawn with the study's
    seed."""
    if not long_trial_ns(study, cells):
        return ()
    generator = random.Random(study.seed)
    return tuple(generator.choice(family) for family in _families(cells))


def _families(cells: Sequence[Cell]) -> list[list[Cell]]:
    families: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        families.setdefault((cell.factors.adapter, cell.factors.workload), []).append(cell)
    return list(families.values())
