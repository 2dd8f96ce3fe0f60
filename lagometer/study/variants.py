# SPDX-License-Identifier: Apache-2.0
"""Variants: named sets of adapters' options and environment variables, compared within one study.

A variant is a value of the factor `variant`, so trials of all variants are in the same randomised blocks.
`none` is the study without one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lagometer.study.document import Entries, Scalar, Tree
from lagometer.study.sidecar import OptionValue
from lagometer.study.values import (
    Names,
    Problems,
    is_null,
    listed_twice,
    named_parts,
    option_value,
    scalars,
    single,
)

NONE = "none"
ENVIRONMENT = "env"
ENVIRONMENT_CHARACTERS_MAX = 4096  # of a variable, in a worker's plan
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMES = Names(
    key="variants",
    a_part="a variant",
    taken=(NONE, "the study without a variant"),
    empty="sets nothing",
    write="adapter: {option: value}",
)

Options = Mapping[str, Mapping[str, OptionValue]]


@dataclass(frozen=True)
class Variant:
    """options: adapter → option → value, over the study's own; environment: variables of the workers."""

    options: Options = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def concerns(self, adapters: tuple[str, ...]) -> bool:
        """Whether it changes anything for a cell of these adapters."""
        return bool(self.environment) or any(self.options.get(name) for name in adapters)

    def over(self, options: Options) -> dict[str, dict[str, OptionValue]]:
        """These options, overridden by the variant's."""
        names = dict.fromkeys((*options, *self.options))
        return {name: {**options.get(name, {}), **self.options.get(name, {})} for name in names}

    def joined(self, other: Variant) -> Variant:
        """Both variants at once."""
        return Variant(other.over(self.options), {**self.environment, **other.environment})

    def as_json(self) -> dict[str, object]:
        """For manifest.json."""
        return {
            "options": {name: dict(settings) for name, settings in self.options.items()},
            "environment": dict(self.environment),
        }


PLAIN = Variant()


def read_variants(value: Tree, problems: Problems, lines: dict[str, int | None]) -> dict[str, Variant]:
    """The key `variants`: `{name: {adapter: {option: value}, env: {NAME: value}}}`."""
    return {
        name: _variant(item, f"variants.{name}", problems, lines)
        for name, item in named_parts(value, _NAMES, problems, lines)
    }


def _variant(value: Entries, where: str, problems: Problems, lines: dict[str, int | None]) -> Variant:
    options: dict[str, dict[str, OptionValue]] = {}
    environment: dict[str, str] = {}
    for key, item in value.entries:
        name = "null" if is_null(key) else key.text
        lines[f"{where}.{name}"] = key.line
        if not isinstance(item, Entries):
            problems.add("has nothing under it", key.line, f"{where}.{name}", "write `option: value`")
            continue
        for setting, setting_value in item.entries:
            key_path = f"{where}.{name}.{setting.text}"
            lines[key_path] = setting.line
            scalar = single(setting_value, key_path, problems)
            if scalar is None:
                continue
            if name != ENVIRONMENT:
                options.setdefault(name, {})[setting.text] = option_value(scalar.text, scalar.plain)
            elif not _VARIABLE.fullmatch(setting.text):
                problems.add(f"'{setting.text}' is not the name of a variable", setting.line, key_path)
            elif len(scalar.text) > ENVIRONMENT_CHARACTERS_MAX:
                message = f"has {len(scalar.text)} characters, more than {ENVIRONMENT_CHARACTERS_MAX}"
                hint = "write a long configuration, such as XML, to a file, and name the file here"
                problems.add(message, setting.line, key_path, hint)
            else:
                environment[setting.text] = scalar.text
    return Variant(options, environment)


def is_option(key: str) -> bool:
    """Whether a key of the matrix names an adapter's option, as `adapter.option`."""
    adapter, dot, option = key.partition(".")
    return bool(adapter and dot and option)


def read_option(key: Scalar, value: Tree, problems: Problems) -> dict[str, Variant]:
    """The key `adapter.option` of the matrix: a variant for each value, named `option=value`."""
    adapter, _, option = key.text.partition(".")
    where = f"matrix.{key.text}"
    variants: dict[str, Variant] = {}
    texts: dict[tuple[type, OptionValue], str] = {}
    for scalar in scalars(value, where, problems):
        if is_null(scalar):
            problems.add("has no value", scalar.line, where, "write one, or leave it out")
            continue
        setting = option_value(scalar.text, scalar.plain)
        typed = (type(setting), setting)
        if typed in texts:
            problems.add(*listed_twice(scalar.text, texts[typed], scalar.line, where))
        texts.setdefault(typed, scalar.text)
        name = re.sub(r"[^A-Za-z0-9._=+-]", "_", f"{option}={scalar.text}")
        variant = Variant({adapter: {option: setting}})
        if variants.setdefault(name, variant) != variant:
            message = f"'{scalar.text}' has the name '{name}' in ids, as another value has"
            problems.add(message, scalar.line, where, "give it a name of its own under `variants:`")
    return variants


def combined(chosen: Mapping[str, Variant], by_option: list[dict[str, Variant]]) -> dict[str, Variant]:
    """Every combination of the study's named variants and the values of single options."""
    sets = [chosen, *by_option] if chosen else by_option
    variants: dict[str, Variant] = {}
    for parts in itertools.product(*(variant_set.items() for variant_set in sets)):
        variant = PLAIN
        for _, part in parts:
            variant = variant.joined(part)
        variants["+".join(name for name, _ in parts)] = variant
    return variants
