# SPDX-License-Identifier: Apache-2.0
"""`lagometer search`: the highest rate that each cell of a study sustains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli.common import (
    DEFAULT_FOLDER,
    JsonFlag,
    SelectGlobs,
    SkipGlobs,
    output_console,
    print_json,
    result_told_by_exit_code,
)
from lagometer.errors import BadInput, Interrupted, NothingRunnable, TrialsFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from lagometer.run.search.rate_search import Bounds
    from lagometer.run.search.searching import RateSearch
    from lagometer.study import Study

RESULT = "search.json"
MESSAGES_MIN = 20  # per trial, at the lowest tested rate


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study's file; its rates are ignored.")],
    select: SelectGlobs = None,
    skip: SkipGlobs = None,
    low: Annotated[str, typer.Option("--low", metavar="RATE", help="The first rate to try.")] = "100Hz",
    high: Annotated[str, typer.Option("--high", metavar="RATE", help="The highest rate to try.")] = "1MHz",
    loss: Annotated[
        str, typer.Option("--loss", metavar="PERCENT", help="Share of messages that may not arrive.")
    ] = "0.1%",
    precision: Annotated[
        str,
        typer.Option(
            "--precision", metavar="PERCENT", help="Width of the bracket, relative to its lower end."
        ),
    ] = "5%",
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats", metavar="N", min=1, max=99, help="Trials per rate at the border; an odd number."
        ),
    ] = 3,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help=f"Where {RESULT} goes. [out/<name>-search]"),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Find the highest rate that each cell of a study sustains.

    A cell sustains a rate if a trial at that rate is valid, at most --loss of its messages did not arrive,
    and response times grow by at most 1 % of the time that passes. The bracket is the highest rate that most
    trials sustained, and a rate higher by --precision that most did not. The interval extends until all
    repeated trials of two neighbouring rates agree.

    Example: lagometer search studies/tiny.yaml --select 'udp/*/64B/*' --high 100kHz
    """
    from lagometer.run.search.searching import RateSearch, rateless
    from lagometer.study import discover_adapters, expand, load_study
    from lagometer.study.adapters import refuse_misnamed
    from lagometer.study.matrix import select as selected

    loaded = rateless(load_study(study))
    adapters = discover_adapters(loaded.options)
    cells = selected(expand(loaded, adapters).cells, select or [], skip or [])
    if not cells:
        raise NothingRunnable("no cell to search in", where=str(study), hint="`lagometer plan` says why")
    bounds = _bounds(loaded, low, high, precision, repeats)
    refuse_misnamed(cells, adapters)
    search = RateSearch(loaded, adapters, bounds, _option("--loss", loss, _share), cells)
    directory = out if out is not None else DEFAULT_FOLDER / f"{loaded.name}-search"
    return _carry_out(search, cells, directory, _settings(loaded, bounds, loss), json)


def _carry_out(
    search: RateSearch, cells: Any, directory: Path, settings: dict[str, object], as_json: bool
) -> int:
    from lagometer.store.format import write_json_atomic
    from lagometer.store.storing import ROOM_OR_ELSEWHERE, prepare_folder, storing

    prepare_folder(directory, resume=False)
    interrupted = False

    def result() -> dict[str, object]:
        return {
            **settings,
            "cells": [cell_result.as_json() for cell_result in search.results],
            "interrupted": interrupted,
        }

    def write() -> None:
        with storing(directory, ROOM_OR_ELSEWHERE):
            write_json_atomic(result(), directory / RESULT)

    try:
        search.carry_out(cells, write)
    except Interrupted:
        interrupted = True
    write()
    with result_told_by_exit_code():
        if as_json:
            print_json({"dir": str(directory), **result()})
        else:
            _print(search, directory)
    if interrupted:
        return Interrupted.exit_code
    return (
        TrialsFailed.exit_code if any(cell_result.status == "failed" for cell_result in search.results) else 0
    )


def _print(search: RateSearch, directory: Path) -> None:
    from rich.markup import escape

    console = output_console()
    for cell_result in search.results:
        bracket = f"sustained {_rate(cell_result.sustained_hz)}, not {_rate(cell_result.failed_hz)}"
        interval = f"interval {_rate(cell_result.low_hz)} to {_rate(cell_result.high_hz)}"
        outcome = (
            cell_result.reason
            if cell_result.status == "failed"
            else f"{bracket}; {interval}; {len(cell_result.trials)} trials"
        )
        console.print(
            f"{escape(cell_result.cell)}: {cell_result.status or 'interrupted'}: {escape(outcome)}",
            soft_wrap=True,
        )
    console.print(f"[dim]{escape(str(directory / RESULT))}[/]", soft_wrap=True)


def _rate(rate_hz: float | None) -> str:
    from lagometer import units

    return units.format_rate(rate_hz) if rate_hz is not None else "(none)"


def _bounds(study: Study, low: str, high: str, precision: str, repeats: int) -> Bounds:
    from lagometer import units
    from lagometer.run.search.rate_search import Bounds
    from lagometer.study.factors import RATE_HZ_MAX

    low_hz, high_hz = (
        _option(name, text, units.parse_rate_hz) for name, text in (("--low", low), ("--high", high))
    )
    floor_hz = MESSAGES_MIN * 1e9 / study.duration_ns
    if not floor_hz <= low_hz <= high_hz <= RATE_HZ_MAX:
        raise BadInput(
            f"{low} and {high} must be in rising order between {units.format_rate(floor_hz)} and 1 MHz",
            where="--low, --high",
            hint=f"a trial needs {MESSAGES_MIN} messages: a longer duration allows lower rates",
        )
    if repeats % 2 == 0:
        raise BadInput(f"{repeats} is even: there may be no majority", where="--repeats")
    width = _option("--precision", precision, _share)
    if not 0.005 <= width <= 1.0:
        raise BadInput(f"'{precision}' is not between 0.5% and 100%", where="--precision")
    return Bounds(low_hz, floor_hz, high_hz, width, repeats)


def _share(text: str) -> float:
    from lagometer import units

    return units.parse_share(text)


def _option(name: str, text: str, parse: Callable[[str], float]) -> float:
    from lagometer.units import UnitError

    try:
        return parse(text)
    except UnitError as error:
        raise BadInput(str(error), where=name) from error


def _settings(study: Study, bounds: Bounds, loss: str) -> dict[str, object]:
    from dataclasses import asdict

    import lagometer
    from lagometer.stats.verdict.growth import GROWTH_MAX

    return {
        "study": study.as_json(),
        "lagometer_version": lagometer.__version__,
        "bounds": asdict(bounds),
        "loss_max": _share(loss),
        "growth_max": GROWTH_MAX,
    }
