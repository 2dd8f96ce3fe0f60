# SPDX-License-Identifier: Apache-2.0
"""From a study to its cells: every combination of its factors' values, less those that cannot exist."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lagometer.errors import BadInput, Problem, SetupMissing
from lagometer.study.adapter import Adapter
from lagometer.study.adapters import available_cpus
from lagometer.study.cell import Cell, Excluded, Expansion, Factors
from lagometer.study.exclusion import Surroundings, reasons
from lagometer.study.factors import FACTORS_BY_NAME, Factor
from lagometer.study.graph import Graph
from lagometer.study.load_shape import spread_of
from lagometer.study.own_installation import PRODUCTS, look_for
from lagometer.study.schedule import RECORDED, schedule_of
from lagometer.study.schema import Study
from lagometer.study.sidecar import OptionValue
from lagometer.study.values import nearest
from lagometer.study.way_out import way_out

# From spawning the workers to their first message and from their last to the end; seen on two cores with five
# processes. Only the predicted time rests on it.
TRIAL_OVERHEAD_NS = 150_000_000


def expand(study: Study, adapters: Mapping[str, Adapter], cpus: tuple[int, ...] | None = None) -> Expansion:
    """The cells of a study on this machine, in matrix order, and those that are excluded, with reasons.

    cpus: those that workers may use; None asks the system. Raises BadInput for an adapter that nobody knows,
    an option that it does not have, or a glob that matches no cell; SetupMissing if there is no adapter at
    all.
    """
    _check_adapters(study, adapters)
    resolved_options(study, adapters)
    around = Surroundings(adapters, available_cpus() if cpus is None else cpus, study.options)
    patterns = [_pattern(glob) for glob in study.exclude]
    matched = [False] * len(patterns)
    cells: list[Cell] = []
    excluded: list[Excluded] = []
    for cell in _combinations(study):
        hits = [index for index, pattern in enumerate(patterns) if pattern.fullmatch(cell.id)]
        for index in hits:
            matched[index] = True
        found = [f"left out by the study: {study.exclude[hits[0]]}"] if hits else []
        found = found or reasons(cell, study.graphs[cell.factors.workload], study.duration_ns, around)
        if found:
            instead = tuple(str(each) for each in way_out(cell, adapters))
            excluded.append(Excluded(cell.id, "; ".join(found), instead))
        else:
            cells.append(cell)
    _check_globs(study, matched)
    return Expansion(tuple(cells), tuple(excluded))


def select(cells: Iterable[Cell], select_globs: Sequence[str], skip_globs: Sequence[str]) -> tuple[Cell, ...]:
    """The cells whose id matches one of `select_globs` (all, if there is none) and none of `skip_globs`.

    `*` crosses `/`.
    """
    wanted = [_pattern(glob) for glob in select_globs or ["*"]]
    unwanted = [_pattern(glob) for glob in skip_globs]
    return tuple(
        cell
        for cell in cells
        if any(pattern.fullmatch(cell.id) for pattern in wanted)
        and not any(pattern.fullmatch(cell.id) for pattern in unwanted)
    )


def resolved_options(study: Study, adapters: Mapping[str, Adapter]) -> dict[str, dict[str, OptionValue]]:
    """The study's options by adapter, checked against what each adapter declares. Raises BadInput."""
    problems: list[Problem] = []
    for name, given in study.options.items():
        adapter = adapters.get(name)
        if adapter is None:
            problems.append(_no_adapter(name, adapters, study.where(f"options.{name}")))
            continue
        for key, value in given.items():
            declared = adapter.sidecar.options.get(key)
            where = study.where(f"options.{name}.{key}")
            if declared is None:
                hint = nearest(key, adapter.sidecar.options)
                problems.append(Problem(f"{name} has no option '{key}'", where, hint))
            elif not declared.accepts(value):
                problems.append(Problem(f"'{value}' is not {declared.wanted()}", where, declared.description))
    if problems:
        raise BadInput.of(problems)
    return {name: dict(given) for name, given in study.options.items()}


def cell_id(values: Mapping[str, object]) -> str:
    """The id of a combination: `values` by factor name, in the fixed order."""
    return "/".join(FACTORS_BY_NAME[name].label(value) for name, value in values.items())


def _combinations(study: Study) -> Iterator[Cell]:
    factors: list[Factor] = [FACTORS_BY_NAME[name] for name in study.matrix]
    graphs: dict[tuple[str, float, int, str, str], Graph] = {}
    for values in itertools.product(*study.matrix.values()):
        fields: dict[str, Any] = {factor.field: value for factor, value in zip(factors, values, strict=True)}
        point = Factors(**fields)
        key = (point.workload, point.rate_hz, point.work_ns, point.schedule, point.work_spread)
        if key not in graphs:
            recording = study.recordings.get(point.schedule.removeprefix(RECORDED))
            schedule = schedule_of(point.schedule, recording)
            period_ns = round(1e9 / point.rate_hz)
            graphs[key] = study.graphs[point.workload].resolved(
                period_ns, point.work_ns, schedule, spread_of(point.work_spread)
            )
        yield Cell(
            id=cell_id(dict(zip(study.matrix, values, strict=True))),
            factors=point,
            named=tuple(factor.field for factor in factors),
            graph=graphs[key],
            workers=_workers(graphs[key], point.placement),
        )


def _workers(graph: Graph, placement: str) -> tuple[tuple[str, ...], ...]:
    if placement == "single-process":
        return (graph.node_names,)
    return tuple((name,) for name in graph.node_names)


def _check_adapters(study: Study, adapters: Mapping[str, Adapter]) -> None:
    if not adapters:
        raise SetupMissing(
            "no adapter found", hint="run `make setup`, or name a folder in LAGOMETER_ADAPTER_PATH"
        )
    problems = []
    for value in study.matrix["adapter"]:
        for name in str(value).split("+"):
            if name not in adapters and name not in PRODUCTS:
                problems.append(_no_adapter(name, adapters, study.where("matrix.adapter")))
    if problems:
        raise BadInput.of(problems)


def _no_adapter(name: str, adapters: Mapping[str, Adapter], where: str) -> Problem:
    if name in PRODUCTS:
        return Problem(
            f"'{name}' has no adapter here, and so no options", where, look_for(PRODUCTS[name]).says
        )
    return Problem(f"unknown adapter '{name}'", where, nearest(name, [*adapters, *PRODUCTS]))


def _check_globs(study: Study, matched: Sequence[bool]) -> None:
    problems = [
        Problem(f"'{glob}' matches no cell", study.where("exclude"), "`lagometer plan` lists the ids")
        for glob, hit in zip(study.exclude, matched, strict=True)
        if not hit
    ]
    if problems:
        raise BadInput.of(problems)


def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))
