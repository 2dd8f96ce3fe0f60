# SPDX-License-Identifier: Apache-2.0
"""`lagometer plan`: what a study contains, before anything runs."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lagometer.cli.common import (
    DEFAULT_FOLDER,
    JsonFlag,
    ScaleOption,
    SelectGlobs,
    SkipGlobs,
    output_console,
    print_json,
)
from lagometer.cli.excluded import render_excluded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lagometer.run.prediction import Prediction
    from lagometer.stats.compare.detection import CellDetection, Detection, PairDetection
    from lagometer.study import Adapter, Cell, Excluded, Expansion, Study


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study's file.")],
    select: SelectGlobs = None,
    skip: SkipGlobs = None,
    scale: ScaleOption = None,
    worker: Annotated[
        tuple[str, int] | None,
        typer.Option(
            "--worker", metavar="CELL N", help="Print the plan of worker N of this cell, to run it by hand."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="The campaign folder; an earlier campaign there shows how long trials take. [out/<name>]",
        ),
    ] = None,
    detect: Annotated[
        str | None,
        typer.Option(
            "--detect",
            metavar="PERCENT",
            help="How many trials show a change of p50, and of p99, by e.g. 5%; from the earlier campaign.",
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print the cells of a study, what is excluded and why, and the predicted time.

    The time is based on an earlier campaign in the folder, if there is one: what its trials took beyond their
    phases, and for a study with `precision` how much they vary. --detect uses it, too, to say how many
    trials of each campaign `compare` needs to find a change with 95 % probability.

    Example: lagometer plan studies/tiny.yaml --select '*/64B/*'

    Example: lagometer plan STUDY --worker CELL 0 | lagometer-worker
    """
    from lagometer.run.order import control_cell
    from lagometer.run.prediction import predict
    from lagometer.study import discover_adapters, expand, load_study
    from lagometer.study.matrix import select as selected
    from lagometer.study.matrix import select_excluded

    loaded = load_study(study, scale)
    adapters = discover_adapters(loaded.options)
    expansion = expand(loaded, adapters)
    if worker is not None:
        _print_worker(loaded, expansion, worker, adapters)
        return
    cells = selected(expansion.cells, select or [], skip or [])
    excluded = select_excluded(expansion.excluded, select or [], skip or [])
    earlier = out if out is not None else DEFAULT_FOLDER / loaded.name
    prediction = predict(loaded, cells, adapters, earlier)
    detection = _detection(earlier, cells, detect) if detect is not None else None
    control = control_cell(loaded, adapters)[1]
    if json:
        _print_json(loaded, cells, excluded, control, prediction, detection)
        return
    _print_table(loaded, cells, excluded, prediction)
    _print_control(control)
    if detection is not None:
        _print_detection(detection)


def _detection(earlier: Path, cells: tuple[Cell, ...], text: str) -> Detection:
    """The number of trials needed, from the earlier campaign. Raises BadInput if there is none."""
    from lagometer.errors import BadInput
    from lagometer.stats.compare.detection import trials_to_detect
    from lagometer.store.errors import StoreError
    from lagometer.store.reader import open_campaign

    number = re.fullmatch(r"\+?(\d+(?:\.\d+)?) ?%", text.strip())
    if number is None or not float(number[1]) > 0.0:
        raise BadInput(f"'{text}' is not a change", where="--detect", hint="write it in percent, such as 5%")
    try:
        return trials_to_detect(open_campaign(earlier), [cell.id for cell in cells], float(number[1]) / 100.0)
    except StoreError as error:
        raise BadInput(
            str(error), where="--detect", hint="run a few trials first, and name them: --out"
        ) from error


def _print_detection(detection: Detection) -> None:
    from rich.markup import escape

    console = output_console()
    effect, power = f"{100 * detection.effect:g} %", f"{100 * detection.power:g} %"
    if detection.trials is None:
        console.print(f"to find a change by {effect}: no cell has two valid trials to estimate from")
        return
    for quantile, count in (("a median", detection.trials), ("a p99", detection.trials_p99)):
        console.print(
            f"[bold]to find a change of {quantile} by {effect}[/] with {power} probability: {count} "
            "trials of each cell, before and after",
            soft_wrap=True,
        )
    for cell in detection.cells:
        summary = f"{_counts_and_spreads(cell)}, from {cell.trials_found} trials"
        console.print(f"  {escape(cell.cell)}: {summary}", style="dim", soft_wrap=True)
    if detection.pairs:
        console.print("[bold]between two cells of one campaign[/], block by block (compare --by), each:")
    for pair in detection.pairs:
        summary = f"{_counts_and_spreads(pair)}, from {pair.blocks_found} blocks"
        console.print(
            f"  {escape(pair.cell_a)} and {escape(pair.cell_b)}: {summary}", style="dim", soft_wrap=True
        )


def _counts_and_spreads(detection: CellDetection | PairDetection) -> str:
    parts = [
        f"{name} {count} trials" + (f" (one trial's spreads by {100 * spread:.2g} %)" if spread else "")
        for name, count, spread in (
            ("p50", detection.trials, detection.relative_sd),
            ("p99", detection.trials_p99, detection.relative_sd_p99),
        )
        if count is not None
    ]
    return ", ".join(parts) or "not known"


def _print_json(
    study: Study,
    cells: tuple[Cell, ...],
    excluded: tuple[Excluded, ...],
    control: Cell | Excluded | None,
    prediction: Prediction,
    detection: Detection | None,
) -> None:
    trials_min, trials_max = _trials(study, cells)
    print_json(
        {
            "study": study.name,
            "trials": trials_min,
            "trials_max": trials_max,
            "predicted_s": round(prediction.seconds, 3),
            "predicted_min_s": round(prediction.least_s, 3),
            "predicted_max_s": round(prediction.most_s, 3),
            "predicted_trials": prediction.trials,
            "predicted_from": str(prediction.earlier) if prediction.earlier is not None else None,
            "cells": [
                {
                    "cell": cell.id,
                    "factors": cell.columns(),
                    "workers": [list(nodes) for nodes in cell.workers],
                }
                for cell in cells
            ],
            "excluded": [{"cell": item.cell, "reason": item.reason} for item in excluded],
            "control": _control_as_json(control),
            "detect": asdict(detection) if detection is not None else None,
        }
    )


def _control_as_json(control: Cell | Excluded | None) -> dict[str, str | None] | None:
    """The control's cell, and the reason if it can't run; null without a control."""
    from lagometer.study import Excluded

    if control is None:
        return None
    if isinstance(control, Excluded):
        return {"cell": control.cell, "excluded": control.reason}
    return {"cell": control.id, "excluded": None}


def _print_control(control: Cell | Excluded | None) -> None:
    """Names a control that can't run; one that can is in the predicted time."""
    from lagometer.study import Excluded

    if isinstance(control, Excluded):
        text = f"\nno control, {control.cell} can't run here: {control.reason}"
        output_console().print(text, style="yellow", markup=False, soft_wrap=True)


def _print_table(
    study: Study, cells: tuple[Cell, ...], excluded: tuple[Excluded, ...], prediction: Prediction
) -> None:
    from rich.markup import escape

    console = output_console()
    how_long = _how_long(study, cells, prediction)
    console.print(f"[bold]{escape(study.name)}[/]: {len(cells)} cells, {how_long}")
    if prediction.earlier is not None:
        console.print(f"  as trials took in {escape(str(prediction.earlier))}", style="dim", soft_wrap=True)
    for cell in cells:
        console.print(f"  {escape(cell.id)}", style="green", soft_wrap=True)
    render_excluded([(item.cell, item.reason) for item in excluded], console)


def _trials(study: Study, cells: Sequence[Cell]) -> tuple[int, int]:
    """The fewest and the most trials of any of the cells, whose parts may have different ones."""
    studies = [study.of(cell) for cell in cells] or [study]
    return min(each.fewest_trials() for each in studies), max(each.most_trials() for each in studies)


def _how_long(study: Study, cells: Sequence[Cell], prediction: Prediction) -> str:
    from lagometer.units import minutes_text

    trials_min, trials_max = _trials(study, cells)
    several = f"{trials_min} to {trials_max}" if trials_max > trials_min else str(trials_min)
    each = f"{several} trial{'s' if trials_max > 1 else ''} each"
    if study.precision is None:
        return f"{each}, about {minutes_text(prediction.seconds)}"
    bounds = f"{minutes_text(prediction.least_s)} to {minutes_text(prediction.most_s)}"
    if prediction.earlier is None:
        return f"{each}, {bounds}"
    about = f"about {prediction.trials} trials, about {minutes_text(prediction.seconds)}"
    return f"{each}, {about} ({bounds})"


def _print_worker(
    study: Study, expansion: Expansion, worker: tuple[str, int], adapters: Mapping[str, Adapter]
) -> None:
    """Prints the plan of one worker as the worker would get it, but self-contained."""
    from lagometer.run.worker.layout import worker_plans

    cell = _find_cell(expansion, worker[0])
    plans = worker_plans(study.of(cell), cell, trial=0, adapters=adapters, standalone=True)
    if not 0 <= worker[1] < len(plans):
        from lagometer.errors import BadInput

        raise BadInput(
            f"there is no worker {worker[1]}", where=cell.id, hint=f"its workers are 0 to {len(plans) - 1}"
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
    raise BadInput(f"there is no cell '{name}'", where="--worker", hint=hint)
