# SPDX-License-Identifier: Apache-2.0
"""Options and environment variables of a cell: whether the middleware of a trial confirms them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lagometer.run.results.effective import described
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store.in_force import Asked, confirmations, difference
from lagometer.study.adapter import Adapter
from lagometer.study.cell import Cell


def asked_noted(cell: Cell, adapters: Mapping[str, Adapter], outcome: TrialOutcome) -> TrialOutcome:
    """The outcome of the trial, with a reason for each value in force that differs from the cell's.

    Otherwise its figures would stand under a setting that they do not belong to. What no object reports
    stays a finding (`setting-not-confirmed`).
    """
    asked = Asked(
        cell.adapters,
        cell.options,
        {
            name: {
                key: option.model_dump(mode="json") for key, option in adapters[name].sidecar.options.items()
            }
            for name in cell.adapters
        },
        cell.environment,
        {key: value for key, value in cell.columns().items() if value is not None},
    )
    reasons = [
        f"not-in-force: {difference(label, value, found)}"
        for label, value, found in confirmations(asked, described(outcome))
        if found.in_force is False
    ]
    return replace(outcome, reasons=(*outcome.reasons, *reasons)) if reasons else outcome
