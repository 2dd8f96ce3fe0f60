# SPDX-License-Identifier: Apache-2.0
"""A comparison in the terminal: one verdict per cell, a chart of the ratios, and an overall verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lagometer.cli.show.figures import with_interval
from lagometer.cli.show.findings import sides_mark
from lagometer.stats.compare.compare import FASTER, MIXED, NO_DIFFERENCE, NOT_COMPARABLE, SLOWER
from lagometer.units import duration_text

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.stats.compare.comparable import Comparison
    from lagometer.stats.compare.compare import CellComparison, QuantityComparison
    from lagometer.summary.compared_layers import LayersOfBoth

STYLES = {SLOWER: "red", FASTER: "green", MIXED: "yellow", NO_DIFFERENCE: "", NOT_COMPARABLE: "dim"}
CHART_WIDTH = 41  # columns; odd, so that "as fast" has its own column
REACH_MIN = 0.01  # of the logarithm: a chart spans at least ±1 %
REACH_MAX = math.log(4.0)
VALUE_LENGTH_MAX = 60
LAYERS_MAX = 3  # in the line of a cell
IN_PAIRS = ", in pairs: p50's change is that within a pair"

Notes = tuple[Mapping[str, Sequence[int]], Mapping[str, Sequence[int]]]


def render(
    comparison: Comparison,
    console: Console,
    notes: Notes = ({}, {}),
    layers: Mapping[tuple[str, str], LayersOfBoth] | None = None,
) -> None:
    """Prints the whole comparison. notes: the footnotes of A's and B's cells with findings. layers: those of
    both sides, by a cell of A and one of B."""
    console.print(f"A {comparison.a}\nB {comparison.b}", markup=False, style="dim", soft_wrap=True)
    for difference in comparison.differences:
        values = f"{_short(difference.a)} → {_short(difference.b)}"
        console.print(f"  differs in {difference.what}: {values}", markup=False, soft_wrap=True)
    reach = chart_reach(comparison.cells)
    for cell in comparison.cells:
        _render_cell(cell, console, reach, notes)
        if layers is not None and (both := layers.get((cell.cell_a, cell.cell_b))) is not None:
            console.print(f"  {layers_line(both)}", markup=False, soft_wrap=True)
    if any(cell.verdict != NOT_COMPARABLE for cell in comparison.cells):
        console.print(f"[dim]{axis(reach)}[/]", soft_wrap=True)
    for name, cells in (("A", comparison.only_a), ("B", comparison.only_b)):
        for cell_id in cells:
            console.print(f"only in {name}: {cell_id}", markup=False, soft_wrap=True)
    if comparison.control is not None:
        text = "; ".join([*quantity_lines(comparison.control), cost_line(comparison.control)])
        console.print(f"control (the machine itself): {text}", markup=False, soft_wrap=True)
    compared = sum(cell.verdict != NOT_COMPARABLE for cell in comparison.cells)
    suffix = f", {compared} of {len(comparison.cells)} cells compared"
    suffix += f" (any false alarm: at most {comparison.alpha:.2g}; intervals: 95 % each)"
    console.print(f"[bold]{overall_words(comparison)}[/]{suffix if compared else ''}", soft_wrap=True)


def _render_cell(cell: CellComparison, console: Console, reach: float, notes: Notes) -> None:
    name = cell.cell_b if cell.cell_a == cell.cell_b else f"{cell.cell_a} → {cell.cell_b}"
    if marks := sides_mark(notes, (cell.cell_a, cell.cell_b)):
        name += f"  findings: {marks}"
    trials = f"{cell.trials_a} and {cell.trials_b} trials{IN_PAIRS if cell.paired else ''}"
    console.print(name, markup=False, style="bold", soft_wrap=True)
    if cell.verdict == NOT_COMPARABLE:
        console.print(f"  can't be compared: {cell.why}", markup=False, style="yellow", soft_wrap=True)
    else:
        for quantity, line in zip(cell.quantities.values(), quantity_lines(cell), strict=True):
            bar = f"{chart(quantity, reach)}  " if quantity.ratio is not None else ""
            figures = f"  {_sides(quantity)}" if quantity.ratio is not None else ""
            text = f"  {bar}{line}{figures}"
            console.print(text, markup=False, style=STYLES[quantity.verdict], soft_wrap=True)
        console.print(f"  {cost_line(cell)}", markup=False, soft_wrap=True)
        console.print(f"  {trials}", style="dim", soft_wrap=True)
    for note in cell.notes:
        console.print(f"  {note}", markup=False, style="yellow", soft_wrap=True)


def _sides(quantity: QuantityComparison) -> str:
    a = with_interval(quantity.a_ns, quantity.a_low_ns, quantity.a_high_ns)
    return f"{a} → {with_interval(quantity.b_ns, quantity.b_low_ns, quantity.b_high_ns)}"


def quantity_lines(cell: CellComparison) -> Iterator[str]:
    """A verdict for each quantity: p50 slower +5.1 % (+3.2 … +7.0 %)."""
    for name, quantity in cell.quantities.items():
        if quantity.ratio is None or quantity.low is None or quantity.high is None:
            yield f"{name} can't be compared: {quantity.why}"
            continue
        interval = f"{percent(quantity.ratio)} ({percent(quantity.low)} … {percent(quantity.high)})"
        if quantity.verdict == NO_DIFFERENCE:
            detectable = f" (could have seen ≥ {_effect(quantity.detectable)})" if quantity.detectable else ""
            yield f"{name} no difference shown{detectable} {interval}"
        else:
            yield f"{name} {quantity.verdict} {interval}"


def cost_line(cell: CellComparison) -> str:
    """The cost of a message on both sides, since busy polling wins every comparison of latencies."""
    a, b = cell.cpu_per_message_a, cell.cpu_per_message_b
    sides = " → ".join(with_interval(cost.value_ns, cost.low_ns, cost.high_ns) for cost in (a, b))
    if not a.value_ns or b.value_ns is None:
        return f"CPU/msg {sides}"
    return f"CPU/msg {percent(b.value_ns / a.value_ns)}  {sides}"


def layers_line(both: LayersOfBoth) -> str:
    """The layers that changed most, on average over all messages, and what is in no layer."""
    changes = [
        f"{change.name.replace('_', ' ')} {duration_text(change.a_ns)} → {duration_text(change.b_ns)}"
        for change in both.largest[:LAYERS_MAX]
    ]
    unattributed = " → ".join(f"{share:.1%}" for share in both.unattributed_shares())
    scope = "" if both.of == "chain" else " on each edge"
    return f"layers{scope} (means) {', '.join([*changes, f'unattributed {unattributed}'])}"


def _effect(effect: float) -> str:
    return f"{100.0 * effect:.1f} %" if effect < 0.0995 else f"{100.0 * effect:.0f} %"


def percent(ratio: float) -> str:
    """A ratio as a change: +5.1 %; ∞ without an end."""
    if ratio == math.inf:
        return "+∞"
    change = 100.0 * (ratio - 1.0)
    return f"{change:+.1f} %" if abs(change) < 99.95 else f"{change:+.0f} %"


def overall_words(comparison: Comparison) -> str:
    """The verdict over all cells: how many are slower and how many faster."""
    counts = {name: sum(cell.verdict == name for cell in comparison.cells) for name in STYLES}
    if comparison.verdict == NOT_COMPARABLE:
        return "nothing can be compared"
    if comparison.verdict == NO_DIFFERENCE:
        return "no difference shown"
    counted = [f"{counts[name]} {name}" for name in (SLOWER, FASTER, MIXED) if counts[name]]
    return f"{comparison.verdict}: {', '.join(counted)}"


def chart_reach(cells: Sequence[CellComparison]) -> float:
    """The charts' half-width, as a logarithm: includes all intervals, up to a limit."""
    ends = [
        abs(math.log(end))
        for cell in cells
        for quantity in cell.quantities.values()
        for end in (quantity.low, quantity.high)
        if end is not None and 0.0 < end < math.inf
    ]
    return min(max([REACH_MIN, *ends]), REACH_MAX)


def chart(quantity: QuantityComparison, reach: float) -> str:
    """The interval as a bar with the ratio on it. │ marks equal speed; ‹ › mark a bar that goes on."""
    assert quantity.ratio is not None and quantity.low is not None and quantity.high is not None

    def column(ratio: float) -> int:
        logarithm = math.log(ratio) if 0.0 < ratio < math.inf else (reach if ratio else -reach)
        share = (min(max(logarithm, -reach), reach) / reach + 1.0) / 2.0
        return round(share * (CHART_WIDTH - 1))

    row = [" "] * CHART_WIDTH
    row[CHART_WIDTH // 2] = "│"
    low, high = column(quantity.low), column(quantity.high)
    for position in range(low, high + 1):
        row[position] = "┼" if position == CHART_WIDTH // 2 else "─"
    if quantity.low < math.exp(-reach):
        row[low] = "‹"
    if quantity.high > math.exp(reach):
        row[high] = "›"
    row[column(quantity.ratio)] = "●"
    return "".join(row)


def axis(reach: float) -> str:
    """The labels for the ends of the charts."""
    left, right = f"{percent(math.exp(-reach))} faster", f"slower {percent(math.exp(reach))}"
    return f"  {left}{right.rjust(CHART_WIDTH - len(left))}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 1] + "…"
