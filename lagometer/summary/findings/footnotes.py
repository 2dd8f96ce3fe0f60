# SPDX-License-Identifier: Apache-2.0
"""Footnotes: which findings belong beside a cell's figures."""

from __future__ import annotations

from collections.abc import Iterable

from lagometer.summary.data import Finding


def footnotes(findings: Iterable[Finding]) -> dict[str, list[int]]:
    """The footnotes of each cell with findings, each once, in ascending order."""
    by_cell: dict[str, set[int]] = {}
    for finding in findings:
        by_cell.setdefault(finding.cell, set()).add(finding.footnote)
    return {cell: sorted(notes) for cell, notes in by_cell.items()}
