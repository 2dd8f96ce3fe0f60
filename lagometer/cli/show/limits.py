# SPDX-License-Identifier: Apache-2.0
"""The results of `--fail-if` limits on one campaign: a few lines for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lagometer.units import duration_text, span_text

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.stats.cell.limits import Judgement

SIZES = ((1024**3, "GB"), (1024**2, "MB"), (1024, "KB"))


def render_limits(judgements: Sequence[Judgement], console: Console) -> None:
    """Prints each limit with the cells that meet it or can't be judged, and counts the others."""
    if not judgements:
        return
    console.print("\n[bold]limits[/], met where the whole 95 % interval lies beyond", soft_wrap=True)
    for limit in dict.fromkeys(judgement.limit for judgement in judgements):
        console.print(f"  {limit}", style="bold", markup=False, soft_wrap=True)
        for line, style in _lines([judgement for judgement in judgements if judgement.limit == limit]):
            console.print(line, style=style, markup=False, soft_wrap=True)


def _lines(judgements: Sequence[Judgement]) -> Iterator[tuple[str, str]]:
    groups = {
        verdict: [judgement for judgement in judgements if judgement.verdict == verdict]
        for verdict in ("met", "unknown", "not-met")
    }
    for verdict, word, style in (("met", "met", "bold red"), ("unknown", "can't be judged", "yellow")):
        for judgement in groups[verdict]:
            yield f"    {word}: {judgement.cell}", style
            yield f"      {figure_text(judgement)}", style
    passed = groups["not-met"]
    if passed:
        nearest = max(passed, key=_nearness)
        yield (
            f"    not met in {len(passed)} cell{'s' if len(passed) > 1 else ''}, nearest: {nearest.cell}",
            "",
        )
        yield f"      {figure_text(nearest)}", ""


def _nearness(judgement: Judgement) -> float:
    """The larger this is, the closer a figure is to a limit that is not met."""
    end = judgement.high if judgement.high is not None else judgement.value
    start = judgement.low if judgement.low is not None else judgement.value
    return (end if ">" in judgement.limit else -(start or 0.0)) or 0.0


def figure_text(judgement: Judgement) -> str:
    """A figure with its interval, or why there is none: 1.90 ms (1.52 – 2.40 ms), the interval crosses …"""
    value, low, high = (
        _text(figure, judgement.unit) for figure in (judgement.value, judgement.low, judgement.high)
    )
    interval = f" ({low} – {high})" if judgement.low is not None else ""
    if judgement.unit == "ns" and judgement.low is not None and judgement.high is not None:
        interval = f" ({span_text(judgement.low, judgement.high)})"
    reason = f", {judgement.why}" if judgement.why else ""
    return f"{value}{interval}{reason}" if judgement.value is not None else str(judgement.why)


def _text(value: float | None, unit: str) -> str:
    if value is None or unit == "ns":
        return duration_text(value)
    if unit == "share":
        return f"{100.0 * value:.3g} %"
    for size, name in SIZES:
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.0f} B"
