# SPDX-License-Identifier: Apache-2.0
"""From a comparison of two campaigns to the data of its page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from lagometer.report.build import DATA_FORMAT
from lagometer.report.comparison_data import (
    ComparedCell,
    ComparedQuantity,
    ComparisonReport,
    Difference,
    SettingDifference,
)
from lagometer.report.page import write_page
from lagometer.stats.compare.comparable import Comparison
from lagometer.stats.compare.compare import CellComparison
from lagometer.store.effective import effective_of_both
from lagometer.store.reader import Campaign
from lagometer.summary.campaign import campaign_head, cell_factors
from lagometer.units import plain_text


def write_comparison(comparison: Comparison, a: Campaign, b: Campaign, output: Path) -> Path:
    """Writes the page of a comparison, whole or not at all. Raises BundleMissing, OSError."""
    return write_page(build_comparison(comparison, a, b), output)


def build_comparison(comparison: Comparison, a: Campaign, b: Campaign) -> ComparisonReport:
    """Everything that the page shows; `a` and `b` are the campaigns that were compared."""
    control = comparison.control
    return ComparisonReport(
        format=DATA_FORMAT,
        kind="comparison",
        a=campaign_head(a.manifest, a.environment),
        b=campaign_head(b.manifest, b.environment),
        directory_a=a.directory.name,
        directory_b=b.directory.name,
        alpha=comparison.alpha,
        verdict=comparison.verdict,
        cells=[_cell(each, b) for each in comparison.cells],
        control=_cell(control, b.control or b) if control is not None else None,
        only_a=comparison.only_a,
        only_b=comparison.only_b,
        differences=[
            Difference(what=each.what, a=plain_text(each.a), b=plain_text(each.b))
            for each in comparison.differences
        ],
        settings=list(_settings(comparison, a, b)),
    )


def _cell(compared: CellComparison, b: Campaign) -> ComparedCell:
    factors = cell_factors(b.manifest).get(compared.cell_b, {})
    payload = factors.get("payload_bytes")
    return ComparedCell(
        cell_a=compared.cell_a,
        cell_b=compared.cell_b,
        adapter=str(factors.get("adapter", compared.cell_b.partition("/")[0])),
        payload_bytes=payload if isinstance(payload, int) else None,
        trials_a=compared.trials_a,
        trials_b=compared.trials_b,
        paired=compared.paired,
        verdict=compared.verdict,
        why=compared.why,
        notes=list(compared.notes),
        quantities=[
            ComparedQuantity(
                quantity=name,
                a_ns=found.a_ns,
                a_low_ns=found.a_low_ns,
                a_high_ns=found.a_high_ns,
                b_ns=found.b_ns,
                b_low_ns=found.b_low_ns,
                b_high_ns=found.b_high_ns,
                ratio=_finite(found.ratio),
                low=_finite(found.low),
                high=_finite(found.high),
                p=found.p_corrected,
                detectable=_finite(found.detectable),
                verdict=found.verdict,
                why=found.why,
            )
            for name, found in compared.quantities.items()
        ],
        cpu_per_message_a_ns=compared.cpu_per_message_a.value_ns,
        cpu_per_message_a_low_ns=compared.cpu_per_message_a.low_ns,
        cpu_per_message_a_high_ns=compared.cpu_per_message_a.high_ns,
        cpu_per_message_b_ns=compared.cpu_per_message_b.value_ns,
        cpu_per_message_b_low_ns=compared.cpu_per_message_b.low_ns,
        cpu_per_message_b_high_ns=compared.cpu_per_message_b.high_ns,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _settings(comparison: Comparison, a: Campaign, b: Campaign) -> Iterator[SettingDifference]:
    """The effective settings that differ, each with the number of compared cells where it does."""
    counted: dict[tuple[str, str, str, str | None, str | None], int] = {}
    for each in comparison.cells:
        of_a, of_b = effective_of_both((a.manifest, each.cell_a), (b.manifest, each.cell_b))
        for place in dict.fromkeys((*of_a, *of_b)):
            one, other = (plain_text(told[place]) if place in told else None for told in (of_a, of_b))
            if one != other:
                counted[(*place, one, other)] = counted.get((*place, one, other), 0) + 1
    for (adapter, described, name, one, other), cells in counted.items():
        yield SettingDifference(adapter=adapter, object=described, name=name, a=one, b=other, cells=cells)
