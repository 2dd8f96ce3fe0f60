# SPDX-License-Identifier: Apache-2.0
"""`lagometer plan`: what a study comes to, before anything is run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lagometer.cli.common import JsonFlag, SelectGlobs, SkipGlobs, output_console, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lagometer.study import Adapter, Cell, Excluded, Expansion, Study


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study's file.")],
    select: SelectGlobs = None,
    skip: SkipGlobs = None,
    worker: Annotated[
        tuple[str, int] | None,
        typer.Option(
            "--worker", metavar="CELL N", help="Print the plan of worker N of this cell, to run it by hand."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print the cells of a study, what is excluded and why, and the predicted time.

    Example: lagometer plan studies/tiny.yaml --select '*/64B/*'

    Example: lagometer plan STUDY --worker CELL 0 | lagometer-worker
    """
    from lagometer.study import discover_adapters, expand, load_study
    from lagometer.study.matrix import predicted_ns
    from lagometer.study.matrix import select as selected

    loaded = load_study(study)
    adapters = discover_adapters(loaded.options)
    expansion = expand(loaded, adapters)
    if worker is not None:
        _print_worker(loaded, expansion, worker, adapters)
        return
    cells = selected(expansion.cells, select or [], skip or [])
    predicted_s = predicted_ns(loaded, cells) / 1e9
    if json:
        _print_json(loaded, cells, expansion.excluded, predicted_s)
    else:
        _print_table(loaded, cells, expansion.excluded, predicted_s)


def _print_json(
    study: Study, cells: tuple[Cell, ...], excluded: tuple[Excluded, ...], predicted_s: float
) -> None:
    print_json(
        {
            "study": study.name,
            "trials": study.trials,
            "predicted_s": round(predicted_s, 3),
            "cells": [
                {
                    "cell": cell.id,
                    "factors": cell.columns(),
                    "workers": [list(nodes) for nodes in cell.workers],
                }
                for cell in cells
            ],
            "excluded": [{"cell": item.cell, "reason": item.reason} for item in excluded],
        }
    )


def _print_table(
    study: Study, cells: tuple[Cell, ...], excluded: tuple[Excluded, ...], predicted_s: float
) -> None:
    from rich.markup import escape

    console = output_console()
    trials = f"{study.trials} trial{'s' if study.trials > 1 else ''} each"
    console.print(
        f"[bold]{escape(study.name)}[/]: {len(cells)} cells, {trials}, about {_minutes(predicted_s)}"
    )
    for cell in cells:
        console.print(f"  {escape(cell.id)}", style="green", soft_wrap=True)
    if not excluded:
        return
    console.print(f"[bold]excluded:[/] {len(excluded)}")
    by_reason: dict[str, list[str]] = {}
    for item in excluded:
        by_reason.setdefault(item.reason, []).append(item.cell)
    for reason, names in by_reason.items():
        console.print(f"  {escape(reason)}", style="yellow", soft_wrap=True)
        for name in names:
            console.print(f"    {escape(name)}", style="dim", soft_wrap=True)


def _print_worker(
    study: Study, expansion: Expansion, worker: tuple[str, int], adapters: Mapping[str, Adapter]
) -> None:
    """The plan that one worker would get, as it would get it, but standing on its own."""
    from lagometer.run.plans import worker_plans

    cell = _find_cell(expansion, worker[0])
    plans = worker_plans(study, cell, trial=0, adapters=adapters, standalone=True)
    if not 0 <= worker[1] < len(plans):
        from lagometer.errors import BadInput

        raise BadInput(
            f"there is no worker {worker[1]}", where=cell.id, mend=f"its workers are 0 to {len(plans) - 1}"
        )
    sys.stdout.write(plans[worker[1]].model_dump_json() + "\n")


def _find_cell(expansion: Expansion, name: str) -> Cell:
    from lagometer.errors import BadInput
    from lagometer.study.values import nearest

    for cell in expansion.cells:
        if cell.id == name:
            return cell
    for item in expansion.excluded:
        if item.cell == name:
            raise BadInput(f"this cell is excluded: {item.reason}", where=name)
    hint = nearest(name, [cell.id for cell in expansion.cells][:1000])
    raise BadInput(f"there is no cell '{name}'", where="--worker", mend=hint)


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
