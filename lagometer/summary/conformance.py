# SPDX-License-Identifier: Apache-2.0
"""The conformance matrix for a campaign: what its adapters were shown to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from lagometer.store.format import CONFORMANCE
from lagometer.store.reader import Campaign
from lagometer.summary.data import AbilityVerdict, Conformance


def conformance(campaign: Campaign) -> tuple[list[Conformance], list[str]]:
    """Each adapter's findings from `conformance.json`, and a note if the file can't be read.

    An adapter that the suite did not run has none.
    """
    path = campaign.directory / CONFORMANCE
    if not path.is_file():
        return [], []
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        entries = [
            Conformance(
                adapter=" ".join([adapter["adapter"], *_options(adapter)]),
                version=adapter["version"],
                findings=[
                    AbilityVerdict(
                        ability=ability["ability"], verdict=ability["verdict"], reason=ability["reason"]
                    )
                    for ability in adapter["abilities"]
                ],
            )
            for adapter in document["adapters"]
        ]
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        return [], [f"The adapters' conformance is not shown: {path.name} could not be read ({error})."]
    return [entry for entry in entries if any(finding.verdict != "not-run" for finding in entry.findings)], []


def _options(adapter: Mapping[str, Any]) -> list[str]:
    """The options it was set up with, in command-line form."""
    return [f"{key}={json.dumps(value)}" for key, value in adapter.get("options", {}).items()]
