# SPDX-License-Identifier: Apache-2.0
"""Findings about settings: requested values compared with what an adapter reports as in force."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.store.in_force import Asked, Confirmation, confirmations, difference
from lagometer.summary.findings.evidence import CellEvidence, Said

SOURCE = "the adapter's own report (`settings` in manifest.json)"


def settings(cell: CellEvidence) -> Iterator[Said]:
    """Options and environment variables whose value in force differs from the study's, or for which nothing
    shows whether they are in force."""
    asked = Asked(cell.adapters, cell.asked, cell.options, cell.environment, cell.factors)
    for label, value, outcome in confirmations(asked, cell.objects):
        yield from _said(cell, label, value, outcome)


def _said(cell: CellEvidence, label: str, value: object, outcome: Confirmation) -> Iterator[Said]:
    trials = len(cell.trials)
    if outcome.in_force is False:
        yield Said(
            "setting-not-in-force",
            trials,
            "an option has another value in force than the study asks for",
            difference(label, value, outcome),
            "read the adapter's page under adapters/: the middleware may round, bound or ignore it; the "
            "kernel bounds buffers (`sysctl net.core.rmem_max net.core.wmem_max`)",
            SOURCE,
        )
    elif outcome.in_force is None and cell.described:
        silent = (
            f"no object reports {' or '.join(outcome.silent)}" if outcome.silent else "no object reports it"
        )
        yield Said(
            "setting-not-confirmed",
            trials,
            "it is not confirmed that an option is in force",
            f"{label} {value} asked for, not confirmed: {silent}",
            "compare with a cell without the option, or check the middleware's own log",
            SOURCE,
        )
