# SPDX-License-Identifier: Apache-2.0
"""Findings about captured packets that no message needed, though the bytes per payload byte include them."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.summary.findings.evidence import CellEvidence, Said
from lagometer.units import size_text

DISCOVERY_SHARE_MIN = 0.1  # of the bytes on the wire; less hardly moves the bytes per payload byte
SOURCE = "docs/methodology/wire.md"
LONGER = "use a longer `warmup`, so that the first announcements are over, or a longer `duration`"


def wire(cell: CellEvidence) -> Iterator[Said]:
    """What else than messages the wire carried in the measure phase, or that nobody can tell."""
    yield from _discovery(cell)
    yield from _hidden(cell)


def _discovery(cell: CellEvidence) -> Iterator[Said]:
    shares = [
        (share, discovery)
        for trial in cell.trials
        if (discovery := trial.figure("wire_discovery_bytes")) is not None
        and (sent := trial.figure("wire_bytes"))
        and (share := discovery / sent) >= DISCOVERY_SHARE_MIN
    ]
    if shares:
        share, discovery = max(shares)
        yield Said(
            "discovery-while-measuring",
            len(shares),
            "the middleware's own traffic (discovery, liveliness) is much of what was sent in the measure "
            "phase, and the bytes per payload byte include it",
            f"{share:.0%} of the bytes, {size_text(round(discovery))}",
            f"{LONGER}; the bytes of messages alone are `wire_data_bytes`",
            SOURCE,
        )


def _hidden(cell: CellEvidence) -> Iterator[Said]:
    trials = [
        trial
        for trial in cell.trials
        if trial.figure("wire_bytes") and trial.figure("wire_discovery_bytes") is None
    ]
    if trials:
        sent = max(trial.figure("wire_bytes") or 0.0 for trial in trials)
        yield Said(
            "discovery-hidden",
            len(trials),
            "nobody can tell what encrypted packets are for, so the bytes per payload byte include an "
            "unknown amount of discovery",
            f"{size_text(round(sent))} sent in the measure phase",
            f"{LONGER}, before comparing with a cell that does not encrypt",
            SOURCE,
        )
