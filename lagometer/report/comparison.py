# SPDX-License-Identifier: Apache-2.0
"""Converts a comparison of two campaigns to the data of its page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from lagometer.report.build import DATA_FORMAT
from lagometer.report.comparison_data import (
    ComparedCell,
    ComparedLayer,
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
from lagometer.summary.compared_layers import LayersOfBoth, compared_layers
from lagometer.summary.findings.derive import findings_of_both
from lagometer.units import plain_text


def write_comparison(comparison: Comparison, a: Campaign, b: Campaign, output: Path) -> Path:
    """Writes the page of a comparison, completely or not at all. Raises BundleMissing, OSError."""
    return write_page(build_comparison(comparison, a, b), output)


def build_comparison(comparison: Comparison, a: Campaign, b: Campaign) -> ComparisonReport:
    """Everything that the page shows; `a` and `b` are the compared campaigns."""
    control = comparison.control
    findings_a, findings_b = findings_of_both(comparison, a, b)
    layers = compared_layers(comparison, a, b)
    return ComparisonReport(
        format=DATA_FORMAT,
        kind="comparison",
        a=campaign_head(a.manifest, a.environment),
        b=campaign_head(b.manifest, b.environment),
        directory_a=a.directory.name,
        directory_b=b.directory.name,
        alpha=comparison.alpha,
        verdict=comparison.verdict,
        cells=[_cell(cell, b, layers.get((cell.cell_a, cell.cell_b))) for cell in comparison.cells],
        control=_cell(control, b.control or b, None) if control is not None else None,
        only_a=comparison.only_a,
        only_b=comparison.only_b,
        differences=[
            Difference(what=difference.what, a=plain_text(difference.a), b=plain_text(difference.b))
            for difference in comparison.differences
        ],
        settings=list(_settings(comparison, a, b)),
        findings_a=findings_a,
        findings_b=findings_b,
    )


def _cell(compared: CellComparison, b: Campaign, both: LayersOfBoth | None) -> ComparedCell:
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
                a_ns=quantity.a_ns,
                a_low_ns=quantity.a_low_ns,
                a_high_ns=quantity.a_high_ns,
                b_ns=quantity.b_ns,
                b_low_ns=quantity.b_low_ns,
                b_high_ns=quantity.b_high_ns,
                ratio=_finite(quantity.ratio),
                low=_finite(quantity.low),
                high=_finite(quantity.high),
                p=quantity.p_corrected,
                detectable=_finite(quantity.detectable),
                verdict=quantity.verdict,
                why=quantity.why,
            )
            for name, quantity in compared.quantities.items()
        ],
        cpu_per_message_a_ns=compared.cpu_per_message_a.value_ns,
        cpu_per_message_a_low_ns=compared.cpu_per_message_a.low_ns,
        cpu_per_message_a_high_ns=compared.cpu_per_message_a.high_ns,
        cpu_per_message_b_ns=compared.cpu_per_message_b.value_ns,
        cpu_per_message_b_low_ns=compared.cpu_per_message_b.low_ns,
        cpu_per_message_b_high_ns=compared.cpu_per_message_b.high_ns,
        layers_of=both.of if both is not None else None,
        layers=[
            ComparedLayer(name=change.name, a_ns=change.a_ns, b_ns=change.b_ns)
            for change in (both.layers if both is not None else ())
        ],
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _settings(comparison: Comparison, a: Campaign, b: Campaign) -> Iterator[SettingDifference]:
    """The effective settings that differ, each with the number of compared cells in which it does."""
    counted: dict[tuple[str, str, str, str | None, str | None], int] = {}
    for cell in comparison.cells:
        settings_a, settings_b = effective_of_both((a.manifest, cell.cell_a), (b.manifest, cell.cell_b))
        for setting in dict.fromkeys((*settings_a, *settings_b)):
            value_a, value_b = (
                plain_text(settings[setting]) if setting in settings else None
                for settings in (settings_a, settings_b)
            )
            if value_a != value_b:
                counted[(*setting, value_a, value_b)] = counted.get((*setting, value_a, value_b), 0) + 1
    for (adapter, object_name, name, value_a, value_b), cells in counted.items():
        yield SettingDifference(
            adapter=adapter, object=object_name, name=name, a=value_a, b=value_b, cells=cells
        )
