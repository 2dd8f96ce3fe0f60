# SPDX-License-Identifier: Apache-2.0
"""`lagometer run`: runs a study and prints the results."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lagometer.cli.common import (
    DEFAULT_FOLDER,
    JsonFlag,
    ScaleOption,
    SelectGlobs,
    SkipGlobs,
    WideFlag,
    message_console,
    opened,
    output_console,
    print_json,
    result_told_by_exit_code,
)
from lagometer.cli.conditions import FailIf, Strict, check_cells, parse_absolute
from lagometer.cli.judged import Judged, judged_limits
from lagometer.cli.pages import hindered_report
from lagometer.errors import BadInput, Interrupted, LagometerError, SetupMissing, TrialsFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.run.campaign import Assignment, Tally
    from lagometer.stats.cell.limits import AbsoluteLimit


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study's file.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="The campaign folder; an existing DIR moves to DIR.1. [out/<name>]"
        ),
    ] = None,
    select: SelectGlobs = None,
    skip: SkipGlobs = None,
    scale: ScaleOption = None,
    max_time: Annotated[
        str | None,
        typer.Option(
            "--max-time", metavar="TIME", help="Start no trial that would end after this time, e.g. 10m."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue DIR: run only the missing trials.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html at the end.")
    ] = True,
    fail_if: FailIf = None,
    strict: Strict = False,
    wide: WideFlag = False,
    json: JsonFlag = False,
) -> int:
    """Run a study: every trial of every cell. Store each result, then show the table and write the report.

    Exit code 0: all trials are valid; 3: some failed; 5: the results, or only the report, can't be written;
    8: a --fail-if condition is met; 130: interrupted, finished trials are kept.

    Example: lagometer run studies/tiny.yaml --out out/tiny --select '*/64B/*' --max-time 10m

    Example: lagometer run studies/tiny.yaml --fail-if 'p99 > 2ms' --fail-if '*/64B/*: lost > 0.1%'
    """
    from lagometer.run.campaign import Assignment
    from lagometer.study import discover_adapters, expand, load_study
    from lagometer.study.adapters import refuse_misnamed
    from lagometer.study.matrix import select as selected
    from lagometer.study.matrix import select_excluded

    limits = parse_absolute(fail_if or [])
    loaded = load_study(study, scale)
    adapters = discover_adapters(loaded.options)
    expansion = expand(loaded, adapters)
    assignment = Assignment(
        study=loaded,
        cells=selected(expansion.cells, select or [], skip or []),
        excluded=select_excluded(expansion.excluded, select or [], skip or []),
        adapters=adapters,
        directory=out if out is not None else DEFAULT_FOLDER / loaded.name,
        resume=resume,
        max_s=_seconds(max_time),
    )
    check_cells(limits, [cell.id for cell in assignment.cells])
    refuse_misnamed(assignment.cells, adapters)
    return carry_out(assignment, limits, strict, report=report, as_json=json, wide=wide)


def carry_out(
    assignment: Assignment,
    limits: Sequence[AbsoluteLimit] = (),
    strict: bool = False,
    *,
    report: bool,
    as_json: bool,
    kept: bool = True,
    wide: bool = False,
) -> int:
    """Runs a campaign and prints the results; returns the exit code. `kept`: its folder stays."""
    from lagometer.run.campaign import CampaignRun

    campaign = CampaignRun(assignment)
    try:
        campaign.carry_out()
    except Interrupted as interruption:
        _say(str(interruption))
    tally = campaign.tally
    wanted = report and tally.finished > 0
    hindrance = hindered_report(assignment.directory) if wanted else None
    judged = judged_limits(opened(assignment.directory), limits, strict) if limits else Judged()
    try:
        with result_told_by_exit_code():
            if as_json:
                print_json({**_as_dict(tally, wanted, hindrance), **judged.as_json()})
            else:
                console = output_console(wide)
                _print(tally, assignment.directory, kept, console)
                judged.render(console)
    finally:
        if hindrance is not None:
            _say(str(hindrance))
    return exit_code(tally, hindrance, judged)


def exit_code(tally: Tally, hindrance: LagometerError | None = None, judged: Judged | None = None) -> int:
    """Returns the exit code of a campaign: 0 all valid, 3 some failed, 130 interrupted.

    judged: the result of `--fail-if`. Its code comes next, since it answers the user's question. hindrance:
    why the report could not be written. It has its own code, unless only the page's bundle is missing: setup
    continues without the bundle by design.
    """
    if tally.interrupted:
        return Interrupted.exit_code
    if judged is not None and judged.exit_code:
        return judged.exit_code
    if hindrance is not None and not isinstance(hindrance, SetupMissing):
        return hindrance.exit_code
    return TrialsFailed.exit_code if tally.failed else 0


def _as_dict(tally: Tally, wanted: bool, hindrance: LagometerError | None) -> dict[str, object]:
    """The output of `--json`: the tally, the report's path, or why there is no report."""
    from dataclasses import asdict

    from lagometer.report.page import REPORT_NAME

    written = wanted and hindrance is None
    report = {
        "report": str(Path(tally.dir) / REPORT_NAME) if written else None,
        "report_problem": str(hindrance) if hindrance is not None else None,
    }
    return {**asdict(tally), **report}


def _print(tally: Tally, directory: Path, keeps_folder: bool, console: Console) -> None:
    from lagometer.cli.show.command import render

    render(directory, console)
    where = f": {directory}" if keeps_folder else ""
    if tally.stopped:
        endings = ", ".join(f"{reason} {count}" for reason, count in tally.stopped.items())
        console.print(f"cells ended by: {endings}")
    saturated = f", {tally.saturated} saturated" if tally.saturated else ""
    console.print(
        f"{tally.valid} valid{saturated}, {tally.failed} failed, {len(tally.excluded)} excluded{where}"
    )


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # standard error may be a full disk
        message_console().print(f"lagometer: {text}", markup=False, soft_wrap=True)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    from lagometer.units import UnitError, parse_duration_ns

    try:
        return parse_duration_ns(text) / 1e9
    except UnitError as error:
        raise BadInput(str(error), where="--max-time") from error
