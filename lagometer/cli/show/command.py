# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: the table of a campaign in the terminal."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from lagometer.cli.common import JsonFlag, WideFlag, opened, output_console, print_json
from lagometer.cli.conditions import FailIf, Strict, parse_absolute
from lagometer.cli.judged import judged_limits
from lagometer.cli.show.figures import (
    FIGURES,
    IMPORTED_FIGURES,
    figures,
    named_figures,
    names_of,
    new_table,
    print_wide,
)

__all__ = ["as_json", "command", "figures", "render"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from lagometer.store.reader import Campaign
    from lagometer.summary.cell_data import (
        Bridge,
        ChainRow,
        Daemons,
        Joined,
        OnTheWire,
        Queue,
        Saturated,
        Served,
    )
    from lagometer.summary.data import Finding, ReasonCount, Summary, WithoutNoise
    from lagometer.summary.data import Row as SummaryRow
    from lagometer.summary.layers import LayerTable
    from lagometer.summary.scheduling_data import CellScheduling
    from lagometer.summary.way_data import CellLayers

Row = dict[str, Any]
OfCell = TypeVar(
    "OfCell",
    "Bridge",
    "CellLayers",
    "CellScheduling",
    "ChainRow",
    "Daemons",
    "Finding",
    "Joined",
    "LayerTable",
    "OnTheWire",
    "Queue",
    "Saturated",
    "Served",
    "SummaryRow",
    "WithoutNoise",
)
EdgeGlob = Annotated[
    str | None,
    typer.Option("--edge", metavar="GLOB", help="Which edges; end-to-end if not given, '*' for all."),
]
CellGlob = Annotated[
    str | None, typer.Option("--cell", metavar="GLOB", help="Only cells whose id matches; `*` crosses `/`.")
]


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a campaign.")],
    edge: EdgeGlob = None,
    cell: CellGlob = None,
    fail_if: FailIf = None,
    strict: Strict = False,
    wide: WideFlag = False,
    json: JsonFlag = False,
) -> int:
    """Print what a campaign measured: a row per cell, trial and edge; what failed or was excluded, and why.

    A campaign with several adapters also shows them at a glance, as multiples of the fastest bare transport.
    For cells with several trials p50 and p99 follow with their 95 % intervals, then the machine's wake-up
    latency, the control and the long trials if there are any. Latency is publish to taken. `-` is a quantile
    with fewer than 10 samples beyond it. Deadlines, losses, and load beside the workers have tables of their
    own.

    Example: lagometer show out/tiny

    Example: lagometer show out/tiny --cell 'cyclonedds/*' --edge '*'

    Example: lagometer show out/tiny --fail-if 'p99 > 2ms' --fail-if '*/64B/*: lost > 0.1%'
    """
    limits = parse_absolute(fail_if or [])
    campaign = opened(directory)
    judged = judged_limits(campaign, limits, strict)
    if json:
        print_json({**as_json(campaign, edge, cell), **judged.as_json()})
    else:
        console = output_console(wide)
        _render(campaign, console, edge, cell)
        judged.render(console)
    return judged.exit_code


def render(directory: Path, console: Console, edge: str | None = None, cell: str | None = None) -> None:
    """Prints the table of a campaign. Raises BadInput if the folder is not a campaign."""
    _render(opened(directory), console, edge, cell)


def as_json(campaign: Campaign, edge: str | None = None, cell: str | None = None) -> Row:
    """The same as one JSON object: `dir`, `rows`, `estimates`, …; `valid` and `failed` count trials."""
    from lagometer.cli.show.cells import cells_as_json
    from lagometer.cli.show.estimates import estimate_rows, rows_over_trials
    from lagometer.cli.show.findings import with_footnotes
    from lagometer.cli.show.layers import layers_as_json
    from lagometer.summary.cell_layers import campaign_layers
    from lagometer.summary.intervals import known
    from lagometer.summary.summarise import summarise
    from lagometer.summary.ways import message_ways

    chosen = _chosen(campaign, edge, cell)
    confidence, layers = known(campaign), campaign_layers(campaign)
    summary = summarise(campaign, confidence, layers)
    rows = with_footnotes(_in_order(chosen, summary), summary.findings)
    messages, messages_notes = message_ways(campaign, list(dict.fromkeys(row["cell"] for row in rows)))
    verdicts = {(row["cell"], row["trial"]): _verdict(row) for row in rows}
    return {
        "dir": str(campaign.directory),
        "name": campaign.name,
        "state": campaign.manifest.get("state"),
        **{word: list(verdicts.values()).count(word) for word in ("valid", "saturated", "failed")},
        "rows": rows,
        "excluded": _excluded(campaign, cell),
        "over_trials": [row.model_dump() for row in rows_over_trials(summary, edge, cell)],
        "estimates": estimate_rows(summary, confidence, edge, cell),
        "no_estimates": summary.intervals_absent,
        "trials_needed": summary.trials_needed,
        "control": summary.control.model_dump() if summary.control is not None else None,
        "long_trials": [trial.model_dump() for trial in summary.long_trials],
        "daemons": [daemons.model_dump() for daemons in _of_cells(summary.daemons, cell)],
        "machine_floor": summary.machine_floor.model_dump() if summary.machine_floor is not None else None,
        "glance": summary.glance.model_dump() if summary.glance is not None else None,
        "fastest": [answer.model_dump() for answer in summary.fastest],
        "findings": [finding.model_dump() for finding in _of_cells(summary.findings, cell)],
        "without_noise": [compared.model_dump() for compared in _of_cells(summary.without_noise, cell)],
        "queues": [queue.model_dump() for queue in _of_cells(summary.queues, cell)],
        "preemption": summary.preemption.model_dump() if summary.preemption is not None else None,
        "saturation": [saturated.model_dump() for saturated in _of_cells(summary.saturated, cell)],
        "feasibility": [series.model_dump() for series in summary.feasibility],
        "chains": [chain.model_dump() for chain in _of_cells(summary.chains, cell)],
        "served": [served.model_dump() for served in _of_cells(summary.served, cell)],
        "joined": [joined.model_dump() for joined in _of_cells(summary.joined, cell)],
        "node_costs": summary.node_costs.model_dump() if summary.node_costs is not None else None,
        "bridges": [bridge.model_dump() for bridge in _of_cells(summary.bridges, cell)],
        "wire": [wire.model_dump() for wire in _of_cells(summary.wire, cell)],
        "layers": [
            {
                "cell": layer_table.cell,
                "edge": layer_table.edge,
                "trials": layer_table.trials,
                **layers_as_json(layer_table.figures),
            }
            for layer_table in _of_cells(layers.edges, cell)
        ],
        "scheduling": [scheduling.model_dump() for scheduling in _of_cells(summary.scheduling, cell)],
        "layers_of_cells": [cell_layers.model_dump() for cell_layers in _of_cells(summary.layers, cell)],
        "messages": [message.model_dump() for message in messages],
        "messages_notes": messages_notes,
        **cells_as_json(summary, edge, cell),
    }


def _verdict(row: Row) -> str:
    from lagometer.stats.verdict.validity import is_saturated

    return "valid" if row["valid"] else "saturated" if is_saturated(row["reasons"] or ()) else "failed"


def _chosen(campaign: Campaign, edge: str | None, cell: str | None) -> list[Row]:
    """The selected rows of trials, as stored. Raises BadInput if a glob matches nothing."""
    from lagometer.errors import BadInput

    rows = campaign.cells.to_dicts()
    for column, glob in (("cell", cell), ("edge", edge or "end-to-end")):
        known = sorted({row[column] for row in rows})
        rows = [row for row in rows if fnmatch.fnmatchcase(row[column], glob or "*")]
        if known and not rows:
            raise BadInput(
                f"no {column} matches '{glob}'", where=f"--{column}", hint=f"known: {', '.join(known[:5])}"
            )
    return rows


def _in_order(rows: list[Row], summary: Summary) -> list[Row]:
    """The rows in the summary's order of cells, then by trial."""
    order = {cell.id: place for place, cell in enumerate(summary.cells)}
    return sorted(rows, key=lambda row: (order[row["cell"]], row["trial"]))


def _of_cells(rows: Sequence[OfCell], cell: str | None) -> list[OfCell]:
    """The rows of the selected cells."""
    return [row for row in rows if fnmatch.fnmatchcase(row.cell, cell or "*")]


def _excluded(campaign: Campaign, cell: str | None) -> list[dict[str, str]]:
    return [item for item in campaign.excluded if fnmatch.fnmatchcase(item.get("cell", ""), cell or "*")]


def _render(campaign: Campaign, console: Console, edge: str | None, cell: str | None) -> None:
    from rich.markup import escape

    from lagometer.cli.excluded import render_excluded
    from lagometer.cli.show.answer import render_answer
    from lagometer.cli.show.bridges import render_bridges
    from lagometer.cli.show.cells import render_cells
    from lagometer.cli.show.chains import render_chains
    from lagometer.cli.show.daemons import render_daemons
    from lagometer.cli.show.disturbed import render_preemption, render_queues
    from lagometer.cli.show.estimates import render_beside, render_estimates
    from lagometer.cli.show.feasibility import render_feasibility
    from lagometer.cli.show.findings import CELLS_NAMED_MAX, render_findings, with_footnotes
    from lagometer.cli.show.glance import render_glance
    from lagometer.cli.show.layers import render_cell_layers, render_layers
    from lagometer.cli.show.node_costs import render_node_costs
    from lagometer.cli.show.noise import render_lost, render_noise
    from lagometer.cli.show.saturated import render_saturated
    from lagometer.cli.show.scheduling import render_scheduling
    from lagometer.cli.show.subscribers import render_joined, render_served
    from lagometer.cli.show.wakeup import render_wakeup
    from lagometer.cli.show.wire import render_wire
    from lagometer.summary.cell_layers import campaign_layers
    from lagometer.summary.failures import warning_counts
    from lagometer.summary.summarise import summarise

    layers = campaign_layers(campaign)
    summary = summarise(campaign, layers=layers)
    rows = with_footnotes(_in_order(_chosen(campaign, edge, cell), summary), summary.findings)
    growing = {queue.cell for queue in summary.queues}
    state = campaign.manifest.get("state")
    console.print(f"[bold]{escape(campaign.name)}[/]" + ("" if state == "finished" else f" ({state})"))
    valid = [row for row in rows if row["valid"]]
    unfiltered = edge is None and cell is None
    if unfiltered:
        render_answer(summary.fastest, console)
    if valid:
        _print_table(valid, console)
    elif not rows:
        console.print("no finished trial")
    if unfiltered:
        render_glance(summary.glance, console, summary.findings, growing)
    render_estimates(summary, console, edge, cell)
    render_wakeup(summary, console)
    render_beside(summary, console)
    render_daemons(_of_cells(summary.daemons, cell), console)
    render_cells(summary, console, edge, cell)
    render_node_costs(summary.node_costs if unfiltered else None, console)
    render_bridges(_of_cells(summary.bridges, cell), console)
    render_chains(_of_cells(summary.chains, cell), console)
    render_served(_of_cells(summary.served, cell), console)
    render_joined(_of_cells(summary.joined, cell), console)
    render_wire(_of_cells(summary.wire, cell), console)
    render_layers(_of_cells(layers.edges, cell), console)
    render_scheduling(_of_cells(summary.scheduling, cell), console)
    render_cell_layers(_of_cells(summary.layers, cell), console)
    render_feasibility(summary.feasibility if unfiltered else (), console)
    render_lost(valid, console)
    render_queues(_of_cells(summary.queues, cell), console)
    render_preemption(summary.preemption if unfiltered else None, console)
    compared = _of_cells(summary.without_noise, cell)
    render_noise(_of_cells(summary.rows, cell), compared, console, growing)
    _render_warnings(warning_counts(_of_cells(summary.rows, cell)), console)
    render_saturated(_of_cells(summary.saturated, cell), console)
    _render_failed(rows, console)
    render_findings(_of_cells(summary.findings, cell), console)
    excluded = [(item.get("cell", ""), item.get("reason", "")) for item in _excluded(campaign, cell)]
    render_excluded(excluded, console, CELLS_NAMED_MAX)


def _print_table(rows: list[Row], console: Console) -> None:
    """Prints the full width in a file, a pipe or a wide terminal; in a narrower terminal, cell by cell."""
    if not print_wide(_wide(rows), console, or_not=True):
        console.print(_stacked(rows, console.width))


def _render_failed(rows: list[Row], console: Console) -> None:
    """Prints each failed trial once, with the reasons and without its figures."""
    from rich.markup import escape

    from lagometer.stats.verdict.reasons import in_few

    failed = {
        (row["cell"], row["trial"]): list(row["reasons"] or []) for row in rows if _verdict(row) == "failed"
    }
    if failed:
        console.print(f"\n[bold red]failed[/] {len(failed)}")
    for (cell, trial), reasons in failed.items():
        console.print(f"  {escape(cell)} #{trial}")
        for reason in in_few(reasons):
            console.print(f"      [red]{escape(reason)}[/]")


def _render_warnings(counts: Sequence[ReasonCount], console: Console) -> None:
    from rich.markup import escape

    from lagometer.stats.verdict.validity import WARNINGS

    if counts:
        console.print("\n[bold yellow]warnings[/]")
    for count in counts:
        known = count.word in WARNINGS  # what it means is in a finding, and in the report
        text = count.word if known else ": ".join(filter(None, (count.word, count.meaning)))
        trials = "1 trial" if count.trials == 1 else f"{count.trials} trials"
        console.print(f"  {escape(text)} [dim]({trials})[/]")


def _wide(rows: list[Row]) -> Table:
    from rich.markup import escape

    from lagometer.cli.show.findings import mark

    table = new_table()
    edges = len({row["edge"] for row in rows}) > 1 or rows[0]["edge"] != "end-to-end"
    trials = any(row["trial"] for row in rows)
    table.add_column("cell", overflow="fold")
    if trials:
        table.add_column("#", justify="right")
    if edges:
        table.add_column("edge")
    names = names_of(rows, IMPORTED_FIGURES if _imported(rows) else FIGURES)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        identity = [escape(row["cell"] + mark(row["findings"]))]
        identity += [str(row["trial"])] * trials + [escape(row["edge"])] * edges
        shown = figures(row)
        table.add_row(*identity, *(shown[name] for name in names))
    return table


def _imported(rows: list[Row]) -> bool:
    """Whether all rows come from another tool."""
    return all(row.get("imported_from") for row in rows)


def _stacked(rows: list[Row], width: int) -> Table:
    """For a narrow terminal: each cell's id on its own line, and fewer figures below it."""
    from rich.markup import escape

    from lagometer.cli.show.findings import mark

    few = IMPORTED_FIGURES if _imported(rows) else ("n", "lost", "p50", "CPU/msg", "p90", "p99", "max")
    names = names_of(rows, few)
    grid = new_table()
    grid.show_header = False
    grid.add_column(overflow="fold")
    for row in rows:
        trial = f" #{row['trial']}" if row["trial"] else ""
        edge = "" if row["edge"] == "end-to-end" else f" {row['edge']}"
        shown = figures(row)
        text = named_figures([(name, shown[name]) for name in names], width)
        name = escape(row["cell"] + trial + edge + mark(row["findings"]))
        grid.add_row(f"[bold]{name}[/]\n{text}")
    return grid
