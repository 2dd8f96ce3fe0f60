# SPDX-License-Identifier: Apache-2.0
"""Known traps of a middleware: conditions that its sidecar declares, checked against each of its cells.

A condition is `LEFT OP RIGHT` with OP among `=`, `!=`, `>`, `>=`, `<`, `<=`, `has` and `in`. A side is a
number (with a unit of size or time: `512KB`, `35ms`), a word, or a name with a dot: `factor.X`, `setting.X`
(an effective one), `figure.X` (a column of cells.parquet: the median over valid trials), `count.X` (the sum
over all trials), `kernel.X`, `sysctl.X`; or `transport`, `warnings`, `version`, `hosts` (how many the cell
has). The right side of `in` is words joined by commas. `NAME|VALUE` stands for VALUE if the name is unknown.
A condition with an unknown side does not hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lagometer.summary.findings.evidence import CellEvidence, Said
from lagometer.units import UnitError, duration_text, parse_duration_ns, parse_payload_bytes, size_text

Value = float | str | frozenset[str] | None
_CONDITION = re.compile(r"(\S+) (=|!=|>=|<=|>|<|has|in) (\S+)")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_ORDERED: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def traps(cell: CellEvidence, declared: Mapping[str, Any]) -> Iterator[Said]:
    """The traps of the cell's adapters (`manifest.traps`) whose conditions all hold."""
    for adapter in cell.adapters:
        for trap in declared.get(adapter) or []:
            if cell.trials and all(holds(cell, adapter, condition) for condition in trap["when"]):
                yield Said(
                    kind=str(trap["kind"]),
                    trials=len(cell.trials),
                    what=filled(cell, adapter, trap["what"]),
                    number=filled(cell, adapter, trap["number"]),
                    fix=filled(cell, adapter, trap["fix"]),
                    source=str(trap["source"]),
                )


def holds(cell: CellEvidence, adapter: str, condition: str) -> bool:
    """Whether a condition holds. Raises ValueError for text that is not a condition."""
    match = _CONDITION.fullmatch(condition)
    if match is None:
        raise ValueError(f"'{condition}' is not a condition: write LEFT OP RIGHT, such as factor.depth > 1")
    left = value_of(cell, adapter, match[1])
    if match[2] == "in":
        return isinstance(left, str) and left in match[3].split(",")
    right = value_of(cell, adapter, match[3])
    if left is None or right is None:
        return False
    if match[2] == "has":
        return isinstance(left, frozenset) and right in left
    if match[2] in ("=", "!="):
        same = right in left if isinstance(left, frozenset) else left == right
        return same == (match[2] == "=")
    return isinstance(left, float) and isinstance(right, float) and _ORDERED[match[2]](left, right)


def value_of(cell: CellEvidence, adapter: str, term: str) -> Value:
    """The value of one side of a condition; None if unknown."""
    name, _, default = term.partition("|")
    value = _named(cell, adapter, name)
    if value is None and default:
        return _plain(default)
    return value


def _named(cell: CellEvidence, adapter: str, name: str) -> Value:
    if name == "transport":
        return frozenset(cell.transports) or None
    if name == "warnings":
        texts = [text for trial in cell.trials for text in trial.line.get("warnings") or []]
        return frozenset(str(text).partition(":")[0] for text in texts)
    if name == "version":
        version = cell.versions.get(adapter)
        return None if version is None else str(version)
    if name == "hosts":
        return float(len(str(cell.factor("hosts") or "here").split("+")))
    kind, dot, rest = name.partition(".")
    sources: dict[str, Callable[[str], object]] = {
        "factor": cell.factor,
        "setting": cell.settings.get,
        "figure": cell.middle,
        "count": lambda column: sum(trial.count(column) for trial in cell.trials),
        "kernel": lambda counter: cell.kernel(counter)[1],
        "sysctl": cell.sysctl,
    }
    if not dot or kind not in sources:
        return _plain(name)
    return _typed(sources[kind](rest))


def _typed(value: object) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return float(value)
    return str(value) if value is not None else None


def _plain(text: str) -> Value:
    for parse in (float, parse_payload_bytes, parse_duration_ns):
        try:
            return float(parse(text))
        except (ValueError, UnitError):
            continue
    return text


def filled(cell: CellEvidence, adapter: str, text: str) -> str:
    """The text with its placeholders `{term}` filled in, sizes and times in readable form."""

    def shown(match: re.Match[str]) -> str:
        name, value = match[1], value_of(cell, adapter, match[1])
        if isinstance(value, frozenset):
            return ", ".join(sorted(value))
        if not isinstance(value, float):
            return "unknown" if value is None else value
        plain = name.partition("|")[0]
        if plain.endswith("_bytes") or ".rmem" in plain or ".wmem" in plain:
            return size_text(int(value))
        return duration_text(value) if plain.endswith("_ns") else f"{value:,g}"

    return _PLACEHOLDER.sub(shown, text)
