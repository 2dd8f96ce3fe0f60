# SPDX-License-Identifier: Apache-2.0
"""The key `control`: one cell beside the study's own, to see whether the machine drifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lagometer.study.document import Entries, Tree, tree_of
from lagometer.study.factors import FACTORS, FACTORS_BY_NAME, PART, Factor
from lagometer.study.graph import Graph
from lagometer.study.hosts import Host, check_hosts
from lagometer.study.schema import CONTROL_FLOOR, CONTROL_NONE, FLOOR
from lagometer.study.values import Problems, is_null, nearest, parsed, single, word_parser
from lagometer.study.variants import NONE, Variant, is_option
from lagometer.study.workload_groups import check_placements

KEY = "control"
ReadFactor = Callable[[Factor, Tree, str], tuple[object, ...]]


def read_control(
    value: Tree | None,
    adaptive: bool,
    read_factor: ReadFactor,
    lines: dict[str, int | None],
    problems: Problems,
) -> dict[str, object] | None:
    """The factors of the control cell, each with one value; without the key it depends on `precision`."""
    if not isinstance(value, Entries):
        word = CONTROL_FLOOR if adaptive else CONTROL_NONE
        if value is not None:
            scalar = single(value, KEY, problems)
            parse = word_parser((CONTROL_NONE, CONTROL_FLOOR))
            word = (parsed(scalar, KEY, parse, problems) if scalar else None) or word
        if word == CONTROL_NONE:
            return None
        value = tree_of({name: str(factor) for name, factor in FLOOR.items()})
        assert isinstance(value, Entries)
    known = {name: factor for name, factor in FACTORS_BY_NAME.items() if name != PART}
    control = {}
    for key, item in value.entries:
        where = f"{KEY}.{key.text}"
        lines[where] = key.line
        if key.text == PART:
            problems.add("a control is no part's", key.line, where, "leave it out: it runs beside all parts")
            continue
        if key.text not in known:
            problems.add(f"unknown factor '{key.text}'", key.line, KEY, _hint(key.text, known))
            continue
        item_scalar = item if is_null(item) else single(item, where, problems)
        if item_scalar is not None:
            values = read_factor(known[key.text], item_scalar, where)
            control[key.text] = values[0] if values else None
    for name in ("adapter", "workload"):
        if name not in control:
            problems.add(f"the factor '{name}' is missing", value.line, KEY)
    return {factor.name: control[factor.name] for factor in FACTORS if factor.name in control}


def _hint(name: str, known: Mapping[str, Factor]) -> str:
    if is_option(name):
        return "write the option in a variant, and `variant: NAME` here"
    return nearest(name, known)


def check_control(
    control: Mapping[str, object],
    variants: Mapping[str, Variant],
    hosts: Mapping[str, Host],
    graphs: Mapping[str, Graph],
    lines: Mapping[str, int | None],
    problems: Problems,
) -> None:
    """Reports names in the control that the study does not have, and placements that its workload lacks:
    otherwise another cell would run under its name."""
    variant = str(control.get("variant") or NONE)
    if variant != NONE and variant not in variants:
        hint = nearest(variant, [*variants, NONE]) if variants else "write it under `variants:`"
        key = f"{KEY}.variant"
        problems.add(f"unknown variant '{variant}'", lines.get(key), key, hint)
    if control.get("hosts") is not None:
        key = f"{KEY}.hosts"
        check_hosts((control["hosts"],), hosts, lines.get(key), problems, key)
    workload = str(control.get("workload"))
    if control.get("placement") is not None and workload in graphs:
        key, own = f"{KEY}.placement", {workload: graphs[workload]}
        check_placements((control["placement"],), own, lines.get(key), problems, key)
