# SPDX-License-Identifier: Apache-2.0
"""Findings about settings: what was asked for, and what an adapter says is in force."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lagometer.store.in_force import Confirmation, confirmation
from lagometer.summary.findings.evidence import CellEvidence, Said

SOURCE = "the adapter's own report (`settings` in manifest.json)"


def settings(cell: CellEvidence) -> Iterator[Said]:
    """Options and environment variables that have another value in force than the study gives, or of which
    nothing tells whether they are in force."""
    for adapter in cell.adapters:
        for name, value in cell.asked.get(adapter, {}).items():
            declared = cell.options.get(adapter, {}).get(name)
            if declared is not None and _has_effect(cell, declared.get("only_with") or {}):
                told = confirmation(name, value, declared, partial(cell.reported, adapter))
                yield from _said(cell, f"{adapter}: {name}", value, told)
    for name, value in cell.environment.items():
        found = [each for adapter in cell.adapters for each in cell.reported(adapter, name)]
        others = [each for each in found if str(each) != value]
        told = Confirmation(
            not others if found else None, name, others[0] if others else None, silent=(name,)
        )
        yield from _said(cell, f"environment variable {name}", value, told)


def _has_effect(cell: CellEvidence, only_with: dict[str, list[str]]) -> bool:
    return all(str(cell.factors.get(factor)) in values for factor, values in only_with.items())


def _said(cell: CellEvidence, what: str, value: object, told: Confirmation) -> Iterator[Said]:
    trials = len(cell.trials)
    if told.in_force is False:
        of = "" if what.endswith(f" {told.setting}") else f"{told.setting} "
        yield Said(
            "setting-not-in-force",
            trials,
            "an option has another value in force than the study asks for",
            f"{what} {value} asked for, {of}{told.value} in force",
            "read the adapter's page under adapters/: the middleware may round, bound or ignore it",
            SOURCE,
        )
    elif told.in_force is None and cell.described:
        silent = f"no object reports {' or '.join(told.silent)}" if told.silent else "no object reports it"
        yield Said(
            "setting-not-confirmed",
            trials,
            "it is not confirmed that an option is in force",
            f"{what} {value} asked for, not confirmed: {silent}",
            "hold the cell against one without the option, or look at the middleware's own log",
            SOURCE,
        )
