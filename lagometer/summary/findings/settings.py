# SPDX-License-Identifier: Apache-2.0
"""Findings about settings: requested values compared with what an adapter reports as in force."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lagometer.store.in_force import Confirmation, confirmation
from lagometer.summary.findings.evidence import CellEvidence, Said

SOURCE = "the adapter's own report (`settings` in manifest.json)"


def settings(cell: CellEvidence) -> Iterator[Said]:
    """Options and environment variables whose value in force differs from the study's, or for which nothing
    shows whether they are in force."""
    for adapter in cell.adapters:
        for name, value in cell.asked.get(adapter, {}).items():
            declared = cell.options.get(adapter, {}).get(name)
            if declared is not None and _has_effect(cell, declared.get("only_with") or {}):
                outcome = confirmation(name, value, declared, partial(cell.reported, adapter))
                yield from _said(cell, f"{adapter}: {name}", value, outcome)
    for name, value in cell.environment.items():
        reported = [
            reported_value for adapter in cell.adapters for reported_value in cell.reported(adapter, name)
        ]
        others = [reported_value for reported_value in reported if str(reported_value) != value]
        outcome = Confirmation(
            not others if reported else None, name, others[0] if others else None, silent=(name,)
        )
        yield from _said(cell, f"environment variable {name}", value, outcome)


def _has_effect(cell: CellEvidence, only_with: dict[str, list[str]]) -> bool:
    return all(str(cell.factors.get(factor)) in values for factor, values in only_with.items())


def _said(cell: CellEvidence, label: str, value: object, outcome: Confirmation) -> Iterator[Said]:
    trials = len(cell.trials)
    if outcome.in_force is False:
        prefix = "" if label.endswith(f" {outcome.setting}") else f"{outcome.setting} "
        yield Said(
            "setting-not-in-force",
            trials,
            "an option has another value in force than the study asks for",
            f"{label} {value} asked for, {prefix}{outcome.value} in force",
            "read the adapter's page under adapters/: the middleware may round, bound or ignore it",
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
