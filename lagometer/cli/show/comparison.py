# SPDX-License-Identifier: Apache-2.0
"""A comparison in the terminal: a verdict in a line per cell, a chart of the ratios, one verdict over all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lagometer.cli.show.figures import with_interval
from lagometer.stats.compare.compare import FASTER, MIXED, NO_DIFFERENCE, NOT_COMPARABLE, SLOWER

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.stats.compare.comparable import Comparison
    from lagometer.stats.compare.compare import CellComparison, QuantityComparison

STYLES = {SLOWER: "red", FASTER: "green", MIXED: "yellow", NO_DIFFERENCE: "", NOT_COMPARABLE: "dim"}
CHART_WIDTH = 41  # columns; odd, so that "as fast" has one of its own
REACH_MIN = 0.01  # of the logarithm: a chart spans at least ±1 %
REACH_MAX = math.log(4.0)
VALUE_LENGTH_MAX = 60


def render(comparison: Comparison, console: Console) -> None:
    """Prints all of it."""
    console.print(f"A {comparison.a}\nB {comparison.b}", markup=False, style="dim", soft_wrap=True)
    for difference in comparison.differences:
        values = f"{_short(difference.a)} → {_short(difference.b)}"
        console.print(f"  differs in {difference.what}: {values}", markup=False, soft_wrap=True)
    reach = chart_reach(comparison.cells)
    for cell in comparison.cells:
        _render_cell(cell, console, reach)
    if any(cell.verdict != NOT_COMPARABLE for cell in comparison.cells):
        console.print(f"[dim]{axis(reach)}[/]", soft_wrap=True)
    for name, cells in (("A", comparison.only_a), ("B", comparison.only_b)):
        for only in cells:
            console.print(f"only in {name}: {only}", markup=False, soft_wrap=True)
    if comparison.control is not None:
        text = "; ".join([*quantity_lines(comparison.control), cost_line(comparison.control)])
        console.print(f"control (the machine itself): {text}", markup=False, soft_wrap=True)
    compared = sum(cell.verdict != NOT_COMPARABLE for cell in comparison.cells)
    beside = f", {compared} of {len(comparison.cells)} cells compared"
    beside += f" (any false alarm: at most {comparison.alpha:.2g}; intervals: 95 % each)"
    console.print(f"[bold]{overall_words(comparison)}[/]{beside if compared else ''}", soft_wrap=True)


def _render_cell(cell: CellComparison, console: Console, reach: float) -> None:
    name = cell.cell_b if cell.cell_a == cell.cell_b else f"{cell.cell_a} → {cell.cell_b}"
    trials = f"{cell.trials_a} and {cell.trials_b} trials{', in pairs' if cell.paired else ''}"
    console.print(name, markup=False, style="bold", soft_wrap=True)
    if cell.verdict == NOT_COMPARABLE:
        console.print(f"  can't be compared: {cell.why}", markup=False, style="yellow", soft_wrap=True)
    else:
        for found, line in zip(cell.quantities.values(), quantity_lines(cell), strict=True):
            bar = f"{chart(found, reach)}  " if found.ratio is not None else ""
            figures = f"  {_sides(found)}" if found.ratio is not None else ""
            text = f"  {bar}{line}{figures}"
            console.print(text, markup=False, style=STYLES[found.verdict], soft_wrap=True)
        console.print(f"  {cost_line(cell)}", markup=False, soft_wrap=True)
        console.print(f"  {trials}", style="dim", soft_wrap=True)
    for note in cell.notes:
        console.print(f"  {note}", markup=False, style="yellow", soft_wrap=True)


def _sides(found: QuantityComparison) -> str:
    a = with_interval(found.a_ns, found.a_low_ns, found.a_high_ns)
    return f"{a} → {with_interval(found.b_ns, found.b_low_ns, found.b_high_ns)}"


def quantity_lines(cell: CellComparison) -> Iterator[str]:
    """A verdict for each quantity: p50 slower +5.1 % (+3.2 … +7.0 %)."""
    for name, found in cell.quantities.items():
        if found.ratio is None or found.low is None or found.high is None:
            yield f"{name} can't be compared: {found.why}"
            continue
        interval = f"{percent(found.ratio)} ({percent(found.low)} … {percent(found.high)})"
        if found.verdict == NO_DIFFERENCE:
            seen = f" (could have seen ≥ {_effect(found.detectable)})" if found.detectable else ""
            yield f"{name} no difference shown{seen} {interval}"
        else:
            yield f"{name} {found.verdict} {interval}"


def cost_line(cell: CellComparison) -> str:
    """What a message costs on both sides, since busy polling wins every comparison of latencies."""
    a, b = cell.cpu_per_message_a, cell.cpu_per_message_b
    sides = " → ".join(with_interval(each.value_ns, each.low_ns, each.high_ns) for each in (a, b))
    if not a.value_ns or b.value_ns is None:
        return f"CPU/msg {sides}"
    return f"CPU/msg {percent(b.value_ns / a.value_ns)}  {sides}"


def _effect(effect: float) -> str:
    return f"{100.0 * effect:.1f} %" if effect < 0.0995 else f"{100.0 * effect:.0f} %"


def percent(ratio: float) -> str:
    """A ratio as a change: +5.1 %; without an end ∞."""
    if ratio == math.inf:
        return "+∞"
    change = 100.0 * (ratio - 1.0)
    return f"{change:+.1f} %" if abs(change) < 99.95 else f"{change:+.0f} %"


def overall_words(comparison: Comparison) -> str:
    """The verdict over all cells: how many are slower, faster."""
    counts = {name: sum(cell.verdict == name for cell in comparison.cells) for name in STYLES}
    if comparison.verdict == NOT_COMPARABLE:
        return "nothing can be compared"
    if comparison.verdict == NO_DIFFERENCE:
        return "no difference shown"
    told = [f"{counts[name]} {name}" for name in (SLOWER, FASTER, MIXED) if counts[name]]
    return f"{comparison.verdict}: {', '.join(told)}"


def chart_reach(cells: Sequence[CellComparison]) -> float:
    """How far the charts reach to both sides, as a logarithm: all intervals are in, as far as sensible."""
    ends = [
        abs(math.log(end))
        for cell in cells
        for found in cell.quantities.values()
        for end in (found.low, found.high)
        if end is not None and 0.0 < end < math.inf
    ]
    return min(max([REACH_MIN, *ends]), REACH_MAX)


def chart(found: QuantityComparison, reach: float) -> str:
    """The interval as a bar with the ratio on it; │ is where B is as fast as A, ‹ › where it goes on."""
    assert found.ratio is not None and found.low is not None and found.high is not None

    def column(ratio: float) -> int:
        logarithm = math.log(ratio) if 0.0 < ratio < math.inf else (reach if ratio else -reach)
        share = (min(max(logarithm, -reach), reach) / reach + 1.0) / 2.0
        return round(share * (CHART_WIDTH - 1))

    row = [" "] * CHART_WIDTH
    row[CHART_WIDTH // 2] = "│"
    low, high = column(found.low), column(found.high)
    for place in range(low, high + 1):
        row[place] = "┼" if place == CHART_WIDTH // 2 else "─"
    if found.low < math.exp(-reach):
        row[low] = "‹"
    if found.high > math.exp(reach):
        row[high] = "›"
    row[column(found.ratio)] = "●"
    return "".join(row)


def axis(reach: float) -> str:
    """What the ends of the charts stand for."""
    left, right = f"{percent(math.exp(-reach))} faster", f"slower {percent(math.exp(reach))}"
    return f"  {left}{right.rjust(CHART_WIDTH - len(left))}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 1] + "…"
