# SPDX-License-Identifier: Apache-2.0
"""Quantities that differ from message to message: drawn from a distribution with a seed, or recorded.

In a workload file: `{lognormal: {median: 600KB, sigma: 0.2}}`, `{normal: {mean: 2ms, deviation: 200us}}`,
`{uniform: {min: 1KB, max: 4KB}}`, `{recorded: FILE}` with one value on each line of the file.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lagometer.study.document import Entries, Scalar, Tree, is_file
from lagometer.study.values import Problems, nearest, parsed, single
from lagometer.units import UnitError

DRAWS = 1024  # reused in a cycle: enough for any quantile that a trial can resolve
VALUES_MAX = 1 << 16
SIGMA_MAX = 10.0
_KEYS = {"normal": ("mean", "deviation"), "lognormal": ("median", "sigma"), "uniform": ("min", "max")}
KINDS = (*_KEYS, "recorded")

Parse = Callable[[str], int]


@dataclass(frozen=True)
class Distribution:
    """centre: mean, median, or minimum; spread: standard deviation, that of the logarithm, or maximum;
    values: recorded values, in order. All in the unit of the quantity."""

    kind: Literal["normal", "lognormal", "uniform", "recorded"]
    centre: float = 0.0
    spread: float = 0.0
    values: tuple[int, ...] = ()

    def draw(self, seed: str) -> tuple[int, ...]:
        """The values to use in a cycle: the same for the same seed. Values below 0 are drawn again."""
        if self.kind == "recorded":
            return self.values
        source = random.Random(seed)
        return tuple(round(self._one(source)) for _ in range(DRAWS))

    def _one(self, source: random.Random) -> float:
        if self.kind == "uniform":
            return source.uniform(self.centre, self.spread)
        if self.kind == "lognormal":
            return self.centre * math.exp(source.gauss(0.0, self.spread))
        while (value := source.gauss(self.centre, self.spread)) < 0.0:
            pass
        return value


def read_distribution(
    value: Entries, key: str, parse: Parse, folder: Path, problems: Problems
) -> Distribution | None:
    """A distribution of quantities that `parse` reads; None after reporting a problem."""
    if len(value.entries) != 1:
        problems.add("is not one distribution", value.line, key, f"write one of {', '.join(KINDS)} under it")
        return None
    kind, item = value.entries[0]
    where = f"{key}.{kind.text}"
    if kind.text == "recorded":
        scalar = single(item, where, problems)
        return _recorded(scalar, where, parse, folder, problems) if scalar is not None else None
    if kind.text not in _KEYS:
        problems.add(f"unknown distribution '{kind.text}'", kind.line, key, nearest(kind.text, KINDS))
        return None
    names = _KEYS[kind.text]
    if not isinstance(item, Entries) or {entry.text for entry, _ in item.entries} != set(names):
        problems.add(f"takes the keys '{names[0]}' and '{names[1]}', both of them", kind.line, where)
        return None
    parameters = {entry.text: parameter for entry, parameter in item.entries}
    centre = _quantity(parameters[names[0]], f"{where}.{names[0]}", parse, problems)
    spread_of: Callable[[str], float] = _sigma if kind.text == "lognormal" else parse
    spread = _quantity(parameters[names[1]], f"{where}.{names[1]}", spread_of, problems)
    if centre is None or spread is None:
        return None
    if kind.text == "uniform" and spread < centre:
        problems.add("has a 'max' below its 'min'", kind.line, where)
        return None
    return Distribution(kind.text, float(centre), float(spread))  # type: ignore[arg-type]


def _quantity(value: Tree, key: str, parse: Callable[[str], float], problems: Problems) -> float | None:
    scalar = single(value, key, problems)
    return parsed(scalar, key, parse, problems) if scalar is not None else None


def _sigma(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,6})?", text) or not 0.0 < float(text) <= SIGMA_MAX:
        raise UnitError(f"the sigma '{text}' is not a number between 0 and {SIGMA_MAX:g}")
    return float(text)


def _recorded(file: Scalar, key: str, parse: Parse, folder: Path, problems: Problems) -> Distribution | None:
    path = next((path for path in (folder / file.text, Path(file.text)) if is_file(path)), None)
    if path is None:
        message = f"the file '{file.text}' is neither in {folder} nor in the working directory"
        problems.add(message, file.line, key)
        return None
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        values = tuple(parse(text) for line in lines if (text := line.partition("#")[0].strip()))
    except (OSError, ValueError, UnitError) as error:
        problems.add(f"the file '{file.text}' can't be read: {error}", file.line, key, "one value a line")
        return None
    if not 0 < len(values) <= VALUES_MAX:
        problems.add(
            f"the file '{file.text}' has {len(values)} values, not 1 to {VALUES_MAX}", file.line, key
        )
        return None
    return Distribution("recorded", values=values)
