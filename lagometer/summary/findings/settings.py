# SPDX-License-Identifier: Apache-2.0
"""Findings about settings: what was asked for, and what an adapter says is in force."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.summary.findings.evidence import CellEvidence, Said
from lagometer.units import UnitError, parse_payload_bytes


def settings(cell: CellEvidence) -> Iterator[Said]:
    """An option that the adapter reports by the same name, with another value than the study gave."""
    for adapter, asked in cell.asked.items():
        if adapter not in cell.adapter.split("+"):
            continue
        for name, value in asked.items():
            in_force = cell.settings.get(name)
            if in_force is None or _alike(value, in_force):
                continue
            yield Said(
                "setting-not-in-force",
                len(cell.trials),
                "an option has another value in force than the study asks for",
                f"{adapter}: {name} {value} asked for, {in_force} in force",
                "read the adapter's page under adapters/: the middleware may round, bound or ignore it",
                "the adapter's own report (`settings` in manifest.json)",
            )


def _alike(asked: object, in_force: object) -> bool:
    """Whether a value as a study writes it is the one that is reported: sizes may have units."""
    if isinstance(asked, str) and isinstance(in_force, (int, float)) and not isinstance(in_force, bool):
        try:
            return parse_payload_bytes(asked) == in_force
        except UnitError:
            return False
    if isinstance(asked, bool) or isinstance(in_force, bool):
        return str(asked).lower() == str(in_force).lower()
    return asked == in_force or str(asked) == str(in_force)
