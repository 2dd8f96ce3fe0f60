# SPDX-License-Identifier: Apache-2.0
"""The trials that did not count, and how often each reason, warning and kind of noise occurred."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lagometer.stats.verdict.noise import NOISES
from lagometer.stats.verdict.reasons import in_few
from lagometer.stats.verdict.validity import REASONS, WARNINGS, is_saturated
from lagometer.summary.data import Failure, ReasonCount, Row
from lagometer.summary.disturbed import noisy_trials
from lagometer.summary.limits import LOG_CHARACTERS_MAX

Json = Mapping[str, Any]
_CODE_WORD = re.compile(r"[a-z][a-z0-9-]*")


def failures(directory: Path, journal: Iterable[Json]) -> list[Failure]:
    """The failed trials, each with its reasons, in few lines, and the end of its workers' output."""
    failed = []
    for line in journal:
        if line.get("valid") or is_saturated(line.get("reasons") or ()):
            continue
        text = log_text(directory, line)
        reasons = [str(reason) for reason in line.get("reasons") or ["no reason was recorded"]]
        failed.append(
            Failure(
                cell=str(line["cell"]),
                trial=int(line["trial"]),
                reasons=in_few(reasons),
                log=text[-LOG_CHARACTERS_MAX:] or None,
            )
        )
    return failed


def log_text(directory: Path, line: Json) -> str:
    """What the workers of a trial wrote at last, by its line in the journal; empty if nothing was kept."""
    log = directory / "samples" / str(line["cell"]) / f"{line['trial']}.log"
    return log.read_text(encoding="utf-8", errors="replace").strip() if log.is_file() else ""


def warning_counts(rows: Iterable[Row]) -> list[ReasonCount]:
    """How many trials had each warning, the most frequent first.

    rows: of single trials, or a summary's. A warning that WARNINGS lacks means what its text says: several
    texts with one code word count together, and one without a code word stands alone.
    """
    listed = list(rows)
    singly = {row.cell for row in listed if row.trial is not None}
    trials: dict[str, set[tuple[str, int | None]]] = {}
    texts: dict[str, dict[str, None]] = {}
    for row in listed:
        if row.trial is None and row.cell in singly:
            continue  # the row over the trials of a cell repeats theirs
        for text in row.warnings:
            word = _code_word(text)
            trials.setdefault(word or text, set()).add((row.cell, row.trial))
            texts.setdefault(word or text, {})[text] = None
    counted = [_warning_count(key, list(texts[key]), len(of_trials)) for key, of_trials in trials.items()]
    return sorted(counted, key=lambda each: (-each.trials, each.word, each.meaning))


def _code_word(text: str) -> str | None:
    word, colon, _ = text.partition(":")
    return word if word in WARNINGS or (colon and _CODE_WORD.fullmatch(word)) else None


def _warning_count(key: str, texts: Sequence[str], trials: int) -> ReasonCount:
    if key in WARNINGS:
        return ReasonCount(kind="warning", word=key, meaning=WARNINGS[key], trials=trials)
    word = _code_word(texts[0]) or ""
    meaning = texts[0].removeprefix(f"{word}:").strip()
    if len(texts) > 1:
        meaning += f" (and {len(texts) - 1} other texts)" if len(texts) > 2 else " (and another text)"
    return ReasonCount(kind="warning", word=word, meaning=meaning, trials=trials)


def reason_counts(journal: Iterable[Json], rows: Sequence[Row]) -> list[ReasonCount]:
    """How many trials had each reason, each warning, and (of the valid ones) each kind of noise, the most
    frequent first."""
    failed: dict[str, set[tuple[str, object]]] = {}
    for line in journal:
        for reason in line.get("reasons") or ():
            word = str(reason).partition(":")[0]
            failed.setdefault(word, set()).add((str(line["cell"]), line["trial"]))
    counts = {word: len(trials) for word, trials in failed.items()}
    return [
        *_known_counts("failure", counts, REASONS),
        *warning_counts(rows),
        *_known_counts("noise", noisy_trials(rows).causes, NOISES),
    ]


def _known_counts(kind: str, counts: Mapping[str, int], meanings: Mapping[str, str]) -> list[ReasonCount]:
    return [
        ReasonCount(kind=kind, word=word, meaning=meanings.get(word, ""), trials=trials)
        for word, trials in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
