# SPDX-License-Identifier: Apache-2.0
"""Keys of a study whose values depend on each other: warm-up, and how many trials a cell gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lagometer import units
from lagometer.study.document import Entries, Scalar, Tree
from lagometer.study.schema import ADAPTIVE_TRIALS_MIN, TRIALS_MAX, TRIES_PER_VALID
from lagometer.study.schema_values import WARMUP_AUTO, parse_warmup_ns
from lagometer.study.values import Problems, parsed, single


def warmup_bounds(entries: dict[str, Tree], problems: Problems) -> Scalar | str | None:
    """Splits `{min: …, max: …}`: the minimum stays as the key's value, and this returns the maximum.

    Returns the word `auto` as it is; None without a steady-state test.
    """
    value = entries.get("warmup")
    if isinstance(value, Scalar):
        return WARMUP_AUTO if value.text == WARMUP_AUTO else None
    if not isinstance(value, Entries):
        return None
    bounds = {key.text: bound for key, bound in value.entries}
    if set(bounds) != {"min", "max"}:
        problems.add(
            "takes the keys 'min' and 'max', both of them", value.line, "warmup", "{min: 100ms, max: 1s}"
        )
    entries["warmup"] = bounds.get("min", Scalar("0", True, value.line))
    return single(bounds["max"], "warmup.max", problems) if "max" in bounds else None


def warmup_max_ns(bound: Scalar | str | None, values: Mapping[str, Any], problems: Problems) -> int | None:
    """The latest end of warm-up that the steady-state test may find, counted from the common start."""
    least_ns, duration_ns = values["warmup_ns"], values["duration_ns"]
    if bound is None or least_ns is None or duration_ns is None:
        return None
    if not isinstance(bound, Scalar):
        return int(least_ns + duration_ns // 2)
    most_ns = parsed(bound, "warmup.max", parse_warmup_ns, problems)
    if most_ns is not None and not least_ns <= most_ns < least_ns + duration_ns:
        least, most = units.format_duration(least_ns), units.format_duration(least_ns + duration_ns)
        problems.add(
            f"'{bound.text}' is not between warmup.min and warmup.min + duration ({least} and {most})",
            bound.line,
            "warmup.max",
            "something must be left to measure",
        )
    return most_ns


def check_together(
    entries: Mapping[str, Tree],
    values: dict[str, Any],
    lines: Mapping[str, int | None],
    problems: Problems,
) -> None:
    """Reports keys that contradict each other, or that mean nothing without another one. Sets `trials_max` of
    a study with `trials_valid`."""
    _check_valid(entries, values, lines, problems)
    _check_adaptive(entries, values, lines, problems)
    if "deadline_k" in entries and "deadline" not in entries:
        message = "'deadline_k' is for studies with `deadline`"
        problems.add(message, lines["deadline_k"], "", "add it")
    if values["scheduler"] and not values["layers"]:
        message = "'scheduler: on' takes layers apart, and the study has none"
        problems.add(message, lines.get("scheduler"), "", "add `layers: on`")


def _check_valid(
    entries: Mapping[str, Tree],
    values: dict[str, Any],
    lines: Mapping[str, int | None],
    problems: Problems,
) -> None:
    """`trials_valid` sets the number of trials alone; without `trials_max`, tries three times as many."""
    wanted = values["trials_valid"]
    if "trials_valid" not in entries:
        return
    for name in ("trials", "precision"):
        if name in entries:
            message = f"'{name}' and 'trials_valid' both say how many trials a cell gets"
            problems.add(message, lines[name], "", "keep one")
    if wanted is not None and "trials_max" not in entries:
        values["trials_max"] = min(TRIALS_MAX, TRIES_PER_VALID * wanted)
    elif wanted is not None and values["trials_max"] is not None and values["trials_max"] < wanted:
        message = f"'{values['trials_max']}' is fewer than the {wanted} valid trials of each cell"
        problems.add(message, lines["trials_max"], "trials_max")


def _check_adaptive(
    entries: Mapping[str, Tree],
    values: Mapping[str, Any],
    lines: Mapping[str, int | None],
    problems: Problems,
) -> None:
    """The bounds of an adaptive campaign depend on each other, and mean nothing without `precision`."""
    if values["precision"] is None:
        if "precision" not in entries:
            for name in ("trials_min", "trials_max", "cell_time"):
                if name in entries and not (name == "trials_max" and "trials_valid" in entries):
                    problems.add(f"'{name}' is for studies with `precision`", lines[name], "", "add it")
        return
    trials_min, trials_max = values["trials_min"], values["trials_max"]
    if trials_min is not None and trials_min < ADAPTIVE_TRIALS_MIN:
        problems.add(
            f"'{trials_min}' is fewer than {ADAPTIVE_TRIALS_MIN}",
            lines.get("trials_min"),
            "trials_min",
            "fewer trials don't show how much trials differ",
        )
    needed = max(trials_min or 0, values["trials"] or 0)
    if trials_max is not None and trials_max < needed:
        problems.add(
            f"'{trials_max}' is fewer than the {needed} trials of each cell",
            lines.get("trials_max"),
            "trials_max",
        )
