# SPDX-License-Identifier: Apache-2.0
"""`lagometer explain`: why do two cells differ?"""

from __future__ import annotations

import fnmatch
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli.common import JsonFlag, output_console, print_json
from lagometer.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.stats.compare.comparable import Difference
    from lagometer.stats.compare.explain import CellOf, Explanation
    from lagometer.summary.scheduling_data import CellScheduling

CELL_HELP = "DIR:CELL. CELL may be a glob that matches one cell; DIR is enough if it has only one cell."


def command(
    a: Annotated[str, typer.Argument(metavar="A", help=CELL_HELP)],
    b: Annotated[str, typer.Argument(metavar="B", help="As A; `:CELL` is in A's folder.")],
    json: JsonFlag = False,
) -> None:
    """Say where on a message's path two cells differ, by how much in each part, and what else differs.

    The parts are measured and add up: layers if both cells have them (`layers: on`), otherwise what lies
    between our own stamps. The other listed differences (settings, CPUs, wake-ups, bytes) are not necessarily
    the cause.

    Example: lagometer explain 'out/quick:shm/*/64B/*' ':udp/*/64B/*'
    """
    from lagometer.cli.show.findings import mark, render_findings
    from lagometer.stats.compare.explain import explain
    from lagometer.store.errors import StoreError
    from lagometer.summary.findings.derive import findings
    from lagometer.summary.floor_change import floor_change
    from lagometer.summary.scheduling import scheduling

    try:
        cell_a = _cell(a, None)
        cell_b = _cell(b, cell_a)
        explanation = explain(cell_a, cell_b)
        floor = floor_change((cell_a.campaign, cell_a.cell), (cell_b.campaign, cell_b.cell))
        sides = {
            f"findings_{side}": findings(cell.campaign, {cell.cell})
            for side, cell in (("a", cell_a), ("b", cell_b))
        }
        shares = [scheduling([cell.campaign], {cell.cell}) for cell in (cell_a, cell_b)]
    except StoreError as error:
        raise BadInput(str(error)) from error
    if json:
        from lagometer.cli.compare import finite

        document = asdict(explanation)
        for part, measured_part in zip(document["parts"], explanation.parts, strict=True):
            part["difference_ns"] = measured_part.difference_ns
        document["floor"] = None
        if floor is not None:
            document["floor"] = {**asdict(floor), "verdict": floor.verdict, "sentence": floor.sentence}
        for side, side_findings in sides.items():
            document[side] = [finding.model_dump() for finding in side_findings]
        for side, side_shares in zip("ab", shares, strict=True):
            document[f"scheduling_{side}"] = [share.model_dump() for share in side_shares]
        print_json(finite(document))
    else:
        console = output_console()
        notes = [sorted({finding.footnote for finding in side_findings}) for side_findings in sides.values()]
        _render(explanation, console, [mark(side_notes) for side_notes in notes])
        if floor is not None:
            console.print(f"\n{floor.sentence}", markup=False, soft_wrap=True)
        _render_scheduling(shares, console)
        for name, side_findings in zip("AB", sides.values(), strict=True):
            render_findings(side_findings, console, f"findings in {name}")


def _cell(text: str, other: CellOf | None) -> CellOf:
    """The only cell that an argument names. Raises BadInput, StoreError."""
    from lagometer.stats.compare.explain import CellOf
    from lagometer.store.reader import open_campaign

    if Path(text).is_dir():
        folder, glob = text, "*"
    else:
        folder, _, glob = text.partition(":")
    campaign = other.campaign if other is not None and not folder else open_campaign(Path(folder or "."))
    cells = campaign.cells["cell"].unique(maintain_order=True).to_list()
    matches = [glob] if glob in cells else [cell for cell in cells if fnmatch.fnmatchcase(cell, glob)]
    if len(matches) != 1:
        examples = ", ".join((matches or cells)[:5])
        message = f"'{glob}' matches {len(matches)} cells" if matches else f"no cell matches '{glob}'"
        raise BadInput(message, where=str(campaign.directory), hint=f"known: {examples}")
    return CellOf(campaign, matches[0])


def _render(explanation: Explanation, console: Console, marks: Sequence[str]) -> None:
    """Prints it. marks: the footnotes of A's and B's findings."""
    from lagometer.cli.show.comparison import cost_line, quantity_lines
    from lagometer.stats.compare.compare import NO_DIFFERENCE, NOT_COMPARABLE

    names = f"A {explanation.a}{marks[0]}\nB {explanation.b}{marks[1]}"
    console.print(names, markup=False, style="bold", soft_wrap=True)
    summary_lines = [*quantity_lines(explanation.comparison), cost_line(explanation.comparison)]
    console.print("; ".join(summary_lines), markup=False, soft_wrap=True)
    for note in explanation.comparison.notes:
        console.print(f"  {note}", markup=False, soft_wrap=True)
    if explanation.comparison.verdict in (NO_DIFFERENCE, NOT_COMPARABLE):
        warning = "no difference between these cells is shown: the following may be chance"
        console.print(warning, style="yellow", soft_wrap=True)
    for note in explanation.comparison.notes:
        console.print(note, markup=False, style="yellow", soft_wrap=True)
    if explanation.parts:
        _render_parts(explanation, console)
    else:
        console.print("no common stamps: the path of the messages can't be split into parts", style="yellow")
    _render_differences("factors", explanation.factors, console)
    _render_differences("settings", explanation.settings, console)
    _render_differences("machine, build and study", explanation.environment, console)
    if explanation.facts:
        console.print("\n[bold]also differs[/] (not necessarily the cause)")
    for fact in explanation.facts:
        values = f"{_figure(fact.a, fact.unit)} → {_figure(fact.b, fact.unit)}"
        console.print(f"  {fact.what}: {values}", markup=False, soft_wrap=True)


def _render_parts(explanation: Explanation, console: Console) -> None:
    from lagometer.cli.show.figures import new_table, print_wide
    from lagometer.units import duration_text

    table = new_table()
    for heading in (
        "where the time goes, for messages around the median",
        "A",
        "B",
        "B - A",
        "of all",
        "95 %",
    ):
        table.add_column(heading, justify="left" if heading.startswith("where") else "right")
    for part in explanation.parts:
        share = f"{part.share:.0%}" if part.share is not None else "-"
        interval = "-"
        if part.low_ns is not None and part.high_ns is not None:
            interval = f"{duration_text(part.low_ns)} … {duration_text(part.high_ns)}"
        figures = (
            duration_text(part.a_ns),
            duration_text(part.b_ns),
            duration_text(part.difference_ns),
            share,
            interval,
        )
        table.add_row(f"{part.edge}: {part.what}", *figures)
    console.print()
    print_wide(table, console)
    if len(explanation.parts) > 1 and all(part.share is None for part in explanation.parts):
        console.print("these edges lie beside each other, so their parts have no share of the whole")


def _render_scheduling(shares: Sequence[Sequence[CellScheduling]], console: Console) -> None:
    """Says what messages of A and of B waited for, if the scheduler was recorded."""
    if any(shares):
        console.print("\n[bold]the scheduler's share[/]")
    for name, side_shares in zip("AB", shares, strict=True):
        for share in side_shares:
            console.print(f"  {name} {share.edge}: {share.because}", markup=False, soft_wrap=True)


def _render_differences(title: str, differences: Sequence[Difference], console: Console) -> None:
    if differences:
        console.print(f"\n[bold]{title}[/]")
    for difference in differences:
        values = f"{_figure(difference.a)} → {_figure(difference.b)}"
        console.print(f"  {difference.what}: {values}", markup=False, soft_wrap=True)


def _figure(value: Any, unit: str = "") -> str:
    from lagometer.units import duration_text

    if value is None:
        return "not set" if not unit else "-"
    if isinstance(value, float):
        return duration_text(value) if unit == "ns" else f"{value:,.4g} {unit}".rstrip()
    return str(value)
