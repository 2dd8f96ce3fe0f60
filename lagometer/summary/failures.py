# SPDX-License-Identifier: Apache-2.0
"""The trials that did not count, and how often each reason, warning and kind of noise occurred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lagometer.stats.verdict.noise import NOISES
from lagometer.stats.verdict.validity import REASONS, WARNINGS, is_saturated
from lagometer.summary.data import Failure, ReasonCount, Row
from lagometer.summary.limits import LOG_CHARACTERS_MAX

Json = Mapping[str, Any]


def failures(directory: Path, journal: Iterable[Json]) -> list[Failure]:
    """The failed trials, each with the end of its workers' output."""
    failed = []
    for line in journal:
        if line.get("valid") or is_saturated(line.get("reasons") or ()):
            continue
        log = directory / "samples" / str(line["cell"]) / f"{line['trial']}.log"
        text = log.read_text(encoding="utf-8", errors="replace").strip() if log.is_file() else ""
        reasons = [str(reason) for reason in line.get("reasons") or ["no reason was recorded"]]
        failed.append(
            Failure(
                cell=str(line["cell"]),
                trial=int(line["trial"]),
                reasons=reasons,
                log=text[-LOG_CHARACTERS_MAX:] or None,
            )
        )
    return failed


def reason_counts(journal: Iterable[Json], rows: Sequence[Row]) -> list[ReasonCount]:
    """How many trials had each reason, warning and kind of noise, the most frequent first."""
    trials: dict[tuple[str, str], set[tuple[str, object]]] = {}

    def add(kind: str, texts: Iterable[object], trial: tuple[str, object]) -> None:
        for text in texts:
            trials.setdefault((kind, str(text).partition(":")[0]), set()).add(trial)

    for line in journal:
        add("failure", line.get("reasons") or (), (str(line["cell"]), line["trial"]))
    for row in rows:
        add("warning", row.warnings, (row.cell, row.trial))
        add("noise", row.noise, (row.cell, row.trial))
    meanings = {"failure": REASONS, "warning": WARNINGS, "noise": NOISES}
    counted = [
        ReasonCount(kind=kind, word=word, meaning=meanings[kind].get(word, ""), trials=len(trial_keys))
        for (kind, word), trial_keys in trials.items()
    ]
    return sorted(
        counted, key=lambda failure: (tuple(meanings).index(failure.kind), -failure.trials, failure.word)
    )
