# SPDX-License-Identifier: Apache-2.0
"""`lagometer compare`: is B slower than A, cell by cell, and can that be known?"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli import conditions
from lagometer.cli.common import JsonFlag, SelectGlobs, message_console, output_console, print_json
from lagometer.cli.conditions import FailIf, Strict
from lagometer.errors import BadInput, NotComparable, Regression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lagometer.cli.conditions import Conditions
    from lagometer.stats.cell.limits import AbsoluteLimit
    from lagometer.stats.compare.comparable import Choice, Comparison
    from lagometer.store.reader import Campaign
    from lagometer.summary.compared_layers import LayersOfBoth
    from lagometer.summary.data import Finding

ALPHA_MAX = 0.2

By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="X:Y", help="Compare cells with X in their id with those that have Y instead."
    ),
]
AcrossMachines = Annotated[
    bool, typer.Option("--across-machines", help="Compare even if two machines measured.")
]
Page = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Also write the comparison as one HTML file."),
]
Alpha = Annotated[
    float,
    typer.Option("--alpha", metavar="P", help="Probability of any false alarm, over all cells together."),
]


def command(
    a: Annotated[Path, typer.Argument(metavar="A", help="Campaign folder A: before the change.")],
    b: Annotated[
        Path | None,
        typer.Argument(metavar="B", help="Campaign folder B: after the change. With --by, A if not given."),
    ] = None,
    select: SelectGlobs = None,
    by: By = None,
    fail_if: FailIf = None,
    strict: Strict = False,
    alpha: Alpha = 0.02,
    across_machines: AcrossMachines = False,
    report: Page = None,
    json: JsonFlag = False,
) -> int:
    """Compare two campaigns cell by cell: ratios of p50 and p99 with intervals, and a verdict.

    A difference is shown if a permutation test over trials finds it, corrected for the number of cells.
    Exit code 0: compared, whatever the verdict; 8: a --fail-if condition is met; 9: nothing comparable.

    Example: lagometer compare out/before out/after --fail-if 'p99 > +5%'

    Example: lagometer compare out/quick --by cyclonedds:fastdds
    """
    if b is None and by is None:
        raise BadInput("only one campaign is given", where="B", hint="give another folder, or --by X:Y")
    wanted = conditions.parse(fail_if or [])
    choice = choice_of(select, by, wanted, alpha, across_machines)
    absolute_limits = wanted.absolute
    return carry_out(
        a, b if b is not None else a, choice, absolute_limits, strict=strict, page=report, as_json=json
    )


def choice_of(
    select: list[str] | None, by: str | None, wanted: Conditions, alpha: float, across_machines: bool
) -> Choice:
    """The checked options. Raises BadInput."""
    from lagometer.stats.compare.comparable import Choice

    parts = by.split(":") if by is not None else None
    if parts is not None and (len(parts) != 2 or not all(parts) or parts[0] == parts[1]):
        raise BadInput(f"'{by}' is not two values", where="--by", hint="write X:Y, e.g. cyclonedds:fastdds")
    if not 0.0 < alpha <= ALPHA_MAX:
        raise BadInput(f"{alpha} is not above 0 and at most {ALPHA_MAX}", where="--alpha")
    return Choice(
        select=tuple(select or ()),
        by=(parts[0], parts[1]) if parts else None,
        across_machines=across_machines,
        alpha=alpha,
        limits=wanted.relative,
    )


def carry_out(
    a: Path,
    b: Path,
    choice: Choice,
    absolute_limits: Sequence[AbsoluteLimit] = (),
    *,
    strict: bool,
    as_json: bool,
    page: Path | None = None,
) -> int:
    """Compares, prints, and returns the exit code. absolute_limits: limits that apply only to B.

    Raises BadInput if a folder is not a campaign, if a limit names no cell, or if the page can't be a file.
    """
    from lagometer.cli.pages import check_page
    from lagometer.stats.cell.limits import cell_ids, judge_limits
    from lagometer.stats.compare.comparable import compare_campaigns
    from lagometer.store.errors import StoreError
    from lagometer.store.reader import open_campaign
    from lagometer.summary.compared_layers import compared_layers
    from lagometer.summary.findings.footnotes import footnotes

    if page is not None:
        check_page(page, "--report")
    try:
        campaigns = open_campaign(a), open_campaign(b)
        conditions.check_cells([*choice.limits, *absolute_limits], cell_ids(campaigns[1]))
        comparison = compare_campaigns(*campaigns, choice)
    except StoreError as error:
        raise BadInput(str(error)) from error
    if page is not None:
        _write_page(comparison, *campaigns, page)
    judgements = judge_limits(campaigns[1], absolute_limits)
    failed = [*conditions.met(comparison, strict), *conditions.failed(judgements, strict)]
    undecided = conditions.undecided(comparison, choice.limits)
    findings_by_side = _findings(comparison, *campaigns)
    notes = footnotes(findings_by_side["findings_a"]), footnotes(findings_by_side["findings_b"])
    layers = compared_layers(comparison, *campaigns)
    if as_json:
        sides = {
            side: [finding.model_dump() for finding in side_findings]
            for side, side_findings in findings_by_side.items()
        }
        outcome = {"limits": [asdict(judgement) for judgement in judgements], "failed_conditions": failed}
        document = as_dict(comparison)
        for cell in document["cells"]:
            cell["findings_a"] = notes[0].get(cell["cell_a"], [])
            cell["findings_b"] = notes[1].get(cell["cell_b"], [])
            cell["layers"] = _layers_as_json(layers.get((cell["cell_a"], cell["cell_b"])))
        print_json({**document, **outcome, **sides, "undecided": undecided})
    else:
        from lagometer.cli.show.comparison import render
        from lagometer.cli.show.findings import render_findings
        from lagometer.cli.show.limits import render_limits

        console = output_console()
        render(comparison, console, notes, layers)
        render_limits(judgements, console)
        for side, side_findings in findings_by_side.items():
            render_findings(
                side_findings,
                console,
                side.replace("_", " in ").replace("in a", "in A").replace("in b", "in B"),
            )
    return _exit_code(comparison, failed, undecided, quiet=as_json)


def _layers_as_json(both: LayersOfBoth | None) -> dict[str, Any] | None:
    """The layers of both sides; null unless both have them."""
    if both is None:
        return None
    layers = [{**asdict(change), "difference_ns": change.difference_ns} for change in both.layers]
    share_a, share_b = both.unattributed_shares()
    return {"of": both.of, "layers": layers, "unattributed_share_a": share_a, "unattributed_share_b": share_b}


def _findings(comparison: Comparison, a: Campaign, b: Campaign) -> dict[str, list[Finding]]:
    """`findings_a` and `findings_b`: the findings in the compared cells."""
    from lagometer.summary.findings.derive import findings_of_both

    findings_a, findings_b = findings_of_both(comparison, a, b)
    return {"findings_a": findings_a, "findings_b": findings_b}


def _write_page(comparison: Comparison, a: Campaign, b: Campaign, page: Path) -> None:
    """Writes the HTML file. Raises SetupMissing, CannotStore."""
    from lagometer.cli.pages import writing_page
    from lagometer.report.comparison import write_comparison

    with writing_page(page, "the same command with another --report FILE"):
        write_comparison(comparison, a, b, page)


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison for JSON; an interval without an end has null there."""
    document: dict[str, Any] = finite(asdict(comparison))
    return document


def finite(value: object) -> Any:
    """The same value for JSON, with null instead of infinity."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _exit_code(comparison: Comparison, failed: list[str], undecided: list[str], quiet: bool) -> int:
    """0, or the code of Regression or NotComparable; prints the reason to stderr."""
    say = (lambda _text: None) if quiet else _say
    if failed:
        for line in failed:
            say(f"failed: {line}")
        return Regression.exit_code
    if undecided or comparison.verdict == "not-comparable":
        for line in undecided or ["no cell could be compared"]:
            say(line)
        return NotComparable.exit_code
    return 0


def _say(text: str) -> None:
    message_console().print(f"lagometer: {text}", markup=False, soft_wrap=True)
