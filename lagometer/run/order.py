# SPDX-License-Identifier: Apache-2.0
"""In which order a campaign's trials are carried out, and which cells stand beside the study's own."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lagometer.study import Adapter, Cell, Excluded, Study
from lagometer.study.matrix import expand

CONTROL_DURATION_MAX_NS = 500_000_000


def blocks(cells: Sequence[Cell], seed: int) -> Iterator[list[Cell]]:
    """Gives randomised complete blocks without end: each holds every cell once, in an order of its own.

    So a drift of the machine spreads over all cells instead of being mistaken for a difference between them.
    """
    generator = random.Random(seed)
    while True:
        block = list(cells)
        generator.shuffle(block)
        yield block


def trial_order(cells: Sequence[Cell], trials: int, seed: int) -> list[tuple[Cell, int]]:
    """Returns all trials of a campaign that has so many blocks."""
    in_turn = zip(range(trials), blocks(cells, seed), strict=False)
    return [(cell, trial) for trial, block in in_turn for cell in block]


def control_cell(
    study: Study, adapters: Mapping[str, Adapter]
) -> tuple[Study, Cell] | tuple[None, Excluded | None]:
    """Returns the control cell and the study that it is carried out by; or why there is none.

    Its trials are no longer than half a second: it shows the machine's drift, not a tail. None beside None:
    the study asks for no control.
    """
    if study.control is None:
        return None, None
    alone = replace(
        study,
        matrix={name: (value,) for name, value in study.control.items()},
        exclude=(),
        options={name: given for name, given in study.options.items() if name in adapters},
        duration_ns=min(study.duration_ns, CONTROL_DURATION_MAX_NS),
        warmup_ns=min(study.warmup_ns, CONTROL_DURATION_MAX_NS),
        warmup_max_ns=None,
        discard=0,
    )
    expansion = expand(alone, adapters)
    return (alone, expansion.cells[0]) if expansion.cells else (None, expansion.excluded[0])


def long_trial_cells(study: Study, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Returns one cell of each family (the cells of one adapter and workload), drawn under the seed."""
    if not study.long_trial_ns:
        return ()
    families: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        families.setdefault((cell.factors.adapter, cell.factors.workload), []).append(cell)
    generator = random.Random(study.seed)
    return tuple(generator.choice(family) for family in families.values())
