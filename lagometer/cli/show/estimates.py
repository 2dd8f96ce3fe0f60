# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: whole cells: quantiles with intervals, the control, the long trials."""

from __future__ import annotations

import fnmatch
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from lagometer.cli.show.figures import new_table, print_wide, with_interval
from lagometer.stats.cell.long_trials import INSIDE, known_of, long_checks
from lagometer.stats.interval.medians import TrialMedian, median_of_trials
from lagometer.summary.campaign import cell_factors
from lagometer.units import duration_text, span_text

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.stats.cell.long_trials import LongCheck, LongFigure
    from lagometer.store.reader import Campaign

Row = dict[str, Any]
QUANTITIES = ("latency_p50", "latency_p99")


def estimate_rows(campaign: Campaign, edge: str | None, cell: str | None) -> list[Row]:
    """The rows of estimates.parquet for the selected cells and edges; empty if no cell has enough trials.

    Raises CampaignError if they must be computed from samples that are missing or unreadable.
    """
    from lagometer.stats.cell.campaign_estimates import campaign_estimates

    if campaign.imported_from is None and most_valid_trials(campaign) < 2:
        return []
    rows = [
        row
        for row in campaign_estimates(campaign).iter_rows(named=True)
        if fnmatch.fnmatchcase(row["cell"], cell or "*")
        and fnmatch.fnmatchcase(row["edge"], edge or "end-to-end")
    ]
    order = {name: index for index, name in enumerate(cell_factors(campaign.manifest))}
    return sorted(rows, key=lambda row: order.get(row["cell"], len(order)))


def most_valid_trials(campaign: Campaign) -> int:
    """The largest number of valid trials of any cell."""
    valid = campaign.cells.filter("valid").group_by("cell").agg(pl.col("trial").n_unique())
    return int(valid["trial"].max() or 0) if valid.height else 0  # type: ignore[arg-type]


def beside_rows(campaign: Campaign | None) -> list[Row]:
    """The trials of the control, or the long ones: cell, trial, time, verdict, and end-to-end figures."""
    if campaign is None:
        return []
    chosen = campaign.cells.filter(pl.col("edge") == "end-to-end").sort("started", "trial")
    figures = ("latency_p50_ns", "cpu_per_message_ns", "latency_p99_ns")
    return chosen.select("cell", "trial", "started", "valid", "n", *figures).to_dicts()


def long_rows(campaign: Campaign) -> list[Row]:
    """The same for the long trials; each valid one has `short`: the figures of its cell's short trials."""
    checks = {check.cell: asdict(check) for check in checks_of(campaign)}
    rows = beside_rows(campaign.long_trials)
    for row in rows:
        check = checks.get(row["cell"]) if row["valid"] else None
        row["short"] = (
            {**check["figures"], "cpu_per_message": check["short_cpu_per_message"]} if check else None
        )
    return rows


def render_estimates(campaign: Campaign, console: Console, edge: str | None, cell: str | None) -> None:
    """Prints p50 and p99 of each cell with their intervals, or how many trials would be enough."""
    from lagometer.store.errors import CampaignError

    try:
        rows = estimate_rows(campaign, edge, cell)
    except CampaignError as error:
        console.print(f"\nno intervals: {error}", markup=False)
        return
    chosen = [row for row in rows if row["quantity"] in QUANTITIES]
    if not chosen:
        return
    if all(row["status"] != "ok" for row in chosen):
        needed = max(row["needed_trials"] or 0 for row in chosen if row["quantity"] == QUANTITIES[0])
        console.print(
            f"\nintervals: not enough samples ({needed} trials of each cell would be enough for p50)"
        )
        return
    caption = "with 95 % intervals; CPU/msg: median over trials, with the median's"
    console.print(f"\n[bold]of all valid trials[/], {caption}", soft_wrap=True)
    print_wide(_table(chosen, _cpu_per_message(campaign)), console)


def _cpu_per_message(campaign: Campaign) -> dict[str, TrialMedian]:
    """Cell → the median of its valid trials."""
    chosen = campaign.cells.filter(pl.col("valid") & (pl.col("edge") == "end-to-end"))
    rows = chosen.group_by("cell").agg("cpu_per_message_ns")
    return {cell: median_of_trials(values) for cell, values in rows.iter_rows()}


def _table(rows: list[Row], cpu_per_message: dict[str, TrialMedian]) -> Any:
    from rich.markup import escape

    by_place: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        by_place.setdefault((row["cell"], row["edge"]), {})[row["quantity"]] = row
    edges = len({edge for _, edge in by_place}) > 1
    adaptive = any(row["stopped"] for row in rows)
    table = new_table()
    table.add_column("cell", overflow="fold")
    if edges:
        table.add_column("edge")
    for heading in ("trials", "n", "p50", "±", "p50 interval", "CPU/msg", "p99", "p99 interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    if adaptive:
        table.add_column("ended by")
    for (cell, edge), by_quantity in by_place.items():
        median, tail = (by_quantity[quantity] for quantity in QUANTITIES)
        cpu_cost = cpu_per_message.get(cell, TrialMedian())
        cost = with_interval(cpu_cost.value_ns, cpu_cost.low_ns, cpu_cost.high_ns)
        counts = [str(median["trials"]), str(median["n"])]
        figures = [*counts, *_figures(median), cost, *_figures(tail, plus=False)]
        stop_reason = [median["stopped"] or "-"] * adaptive
        table.add_row(escape(cell), *([escape(edge)] * edges), *figures, *stop_reason)
    return table


def _figures(row: Row, plus: bool = True) -> list[str]:
    """A quantile, its interval's half-width relative to it, and the interval."""
    if row["status"] != "ok":
        return ["-", *(["-"] * plus), _wanting(row)]
    low, high, estimate = row["low_ns"], row["high_ns"], row["estimate_ns"]
    half = 50 * (high - low) / estimate if estimate else None
    text = "-" if half is None else f"{half:.0f} %" if half >= 10 else f"{half:.2g} %"
    return [duration_text(estimate), *([text] * plus), span_text(low, high)]


def _wanting(row: Row) -> str:
    trials = row["needed_trials"]
    return f"not enough samples ({trials} trials would be enough)" if trials else "not enough samples"


def render_beside(campaign: Campaign, console: Console) -> None:
    """Prints how steady the control was over the campaign, and the long trials next to the short ones."""
    control = [row for row in beside_rows(campaign.control) if row["valid"] and row["latency_p50_ns"]]
    if control:
        first, last = control[0]["latency_p50_ns"], control[-1]["latency_p50_ns"]
        ends = f"{duration_text(first)} in the first and {duration_text(last)} in the last"
        console.print(
            f"\n[bold]control[/] {control[0]['cell']}: p50 {_range(control, 'latency_p50_ns')} over "
            f"{len(control)} blocks, {ends}; CPU/msg {_range(control, 'cpu_per_message_ns')}",
            soft_wrap=True,
        )
    _render_long_trials(campaign, console)


def _render_long_trials(campaign: Campaign, console: Console) -> None:
    """Prints a line for each long trial, and a warning for each figure outside the short trials' interval."""
    checks = checks_of(campaign)
    if checks:
        console.print("\n[bold]long trials[/], beside the estimates from the short ones", soft_wrap=True)
    for check in checks:
        parts = [_beside(name, figure) for name, figure in check.figures.items()]
        cpu_cost = check.short_cpu_per_message
        short = with_interval(cpu_cost.value_ns, cpu_cost.low_ns, cpu_cost.high_ns)
        parts.insert(1, f"CPU/msg {duration_text(check.cpu_per_message_ns)} against {short}")
        console.print(f"  {check.cell}: {'; '.join(parts)}", soft_wrap=True, markup=False)
        for remark in check.remarks():
            console.print(f"    warning: {remark}", style="yellow", soft_wrap=True, markup=False)


def checks_of(campaign: Campaign) -> list[LongCheck]:
    """The long trials next to the estimates, or next to medians of the short trials without estimates."""
    from lagometer.stats.cell.campaign_estimates import campaign_estimates
    from lagometer.store.errors import CampaignError

    if campaign.long_trials is None:
        return []
    try:
        known = known_of(campaign_estimates(campaign))
    except CampaignError:  # `render_estimates` has already reported it
        known = {}
    return long_checks(campaign, known)


def _beside(name: str, figure: LongFigure) -> str:
    """p50 50.6 µs against 50.3 µs (49.8 – 50.9 µs), +0.6 %, inside the interval."""
    short = with_interval(figure.short_ns, figure.low_ns, figure.high_ns)
    change = ""
    if figure.long_ns is not None and figure.short_ns:
        change = f", {100.0 * (figure.long_ns / figure.short_ns - 1.0):+.1f} %"
    inside = ", inside the interval" if figure.place == INSIDE else ""
    return f"{name} {duration_text(figure.long_ns)} against {short}{change}{inside}"


def _range(rows: list[Row], column: str) -> str:
    """The smallest and the largest of a figure; `-` if no row has it."""
    known = [row[column] for row in rows if row[column] is not None]
    return f"{duration_text(min(known))} to {duration_text(max(known))}" if known else "-"
