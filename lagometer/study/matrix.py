# SPDX-License-Identifier: Apache-2.0
"""From a study to its cells: every combination of its factors' values, except those that cannot exist."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lagometer import units
from lagometer.errors import BadInput, Problem, SetupMissing
from lagometer.study.adapter import Adapter
from lagometer.study.adapters import available_cpus
from lagometer.study.bridges import NONE as NO_BRIDGE
from lagometer.study.bridges import BridgeProgram, find_bridge
from lagometer.study.cell import Cell, Excluded, Expansion, Factors
from lagometer.study.exclusion import reasons
from lagometer.study.factors import FACTORS_BY_NAME, Factor
from lagometer.study.graph import Graph, Group
from lagometer.study.hosts import host_of_nodes
from lagometer.study.load_shape import spread_of
from lagometer.study.own_installation import PRODUCTS, look_for
from lagometer.study.schedule import RECORDED, schedule_of
from lagometer.study.schema import Study
from lagometer.study.sidecar import Option, OptionValue
from lagometer.study.surroundings import Surroundings
from lagometer.study.traffic import TOPIC_FIELDS, TopicSettings, Traffic, traffic_of
from lagometer.study.transfer import TRANSFER, transfers, without_extras
from lagometer.study.values import closest, listed_twice, nearest
from lagometer.study.variants import NONE, PLAIN, Options
from lagometer.study.way_out import way_out
from lagometer.units import UnitError

# From spawning the workers to their first message, and from their last to the end; measured on two cores with
# five processes. Only the predicted time depends on it.
TRIAL_OVERHEAD_NS = 150_000_000
# An emulated link is measured before each trial, which takes 2 to 7 s (docs/methodology/links.md).
LINK_OVERHEAD_NS = 4_500_000_000


def overhead_ns(cell: Cell) -> int:
    """What a trial of this cell typically takes in addition to its phases."""
    return TRIAL_OVERHEAD_NS + (LINK_OVERHEAD_NS if cell.link is not None else 0)


def expand(study: Study, adapters: Mapping[str, Adapter], cpus: tuple[int, ...] | None = None) -> Expansion:
    """The cells of a study on this machine, in matrix order, and the excluded ones, with reasons.

    cpus: those that workers may use; None asks the system. Raises BadInput for an unknown adapter of a cell
    or the control, an option that an adapter does not have, or a glob that matches no cell; SetupMissing if
    there is no adapter at all.
    """
    for part_study in study.parts.values() or (study,):
        _check_adapters(part_study, adapters)
        check_options(part_study, adapters)
    around = Surroundings(adapters, available_cpus() if cpus is None else cpus, study.hosts)
    left_out = _LeftOut(study)
    if not study.parts:
        return _expand(study, adapters, around, left_out.has)
    parts = [_expand(part, adapters, around, left_out.has) for part in study.parts.values()]
    candidates = [(cell, left_out.why(cell.id)) for part in parts for cell in part.cells]
    left_out.check()
    return Expansion(
        tuple(cell for cell, reason in candidates if not reason),
        (
            *(excluded for part in parts for excluded in part.excluded),
            *(Excluded(cell.id, reason) for cell, reason in candidates if reason),
        ),
    )


class _LeftOut:
    """The globs of a study's `exclude`, and which of them matched a cell."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._patterns = [_pattern(glob) for glob in study.exclude]
        self._matched = [False] * len(self._patterns)

    def has(self, cell: str) -> bool:
        """Whether the study excludes this cell. Counts as no match."""
        return any(pattern.fullmatch(cell) for pattern in self._patterns)

    def why(self, cell: str) -> str:
        """Why the study excludes this cell, or ''."""
        hits = [index for index, pattern in enumerate(self._patterns) if pattern.fullmatch(cell)]
        for index in hits:
            self._matched[index] = True
        return f"left out by the study: {self._study.exclude[hits[0]]}" if hits else ""

    def check(self) -> None:
        """Raises BadInput for a glob that matched nothing."""
        problems = [
            Problem(
                f"'{glob}' matches no cell", self._study.where("exclude"), "`lagometer plan` lists the ids"
            )
            for glob, hit in zip(self._study.exclude, self._matched, strict=True)
            if not hit
        ]
        if problems:
            raise BadInput.of(problems)


def _expand(
    study: Study,
    adapters: Mapping[str, Adapter],
    surroundings: Surroundings,
    left_out_above: Callable[[str], bool],
) -> Expansion:
    """The cells of a study without parts, or of one part. left_out_above: whether the whole study excludes a
    cell."""
    left_out = _LeftOut(study)
    surroundings = replace(surroundings, captures=study.capture, layers=study.layers)
    cells: list[Cell] = []
    excluded: list[Excluded] = []
    for cell, needless in _candidates(
        study, adapters, lambda cell_id: left_out.has(cell_id) or left_out_above(cell_id)
    ):
        omission = left_out.why(cell.id)
        cell_reasons = [omission] if omission else []
        cell_reasons = cell_reasons or [f"needs {study.needs}"] * bool(study.needs)
        cell_reasons = cell_reasons or [needless] * bool(needless)
        cell_reasons = cell_reasons or reasons(
            cell, study.graphs[cell.factors.workload], study.warmup_ns, study.duration_ns, surroundings
        )
        if cell_reasons:
            alternatives = tuple(str(alternative) for alternative in way_out(cell, adapters))
            excluded.append(Excluded(cell.id, "; ".join(cell_reasons), alternatives))
        else:
            cells.append(cell)
    for cell in _transfers(study, cells, adapters):
        graph = study.graphs[cell.factors.workload]
        why = left_out.why(cell.id) or "; ".join(
            reasons(cell, graph, study.warmup_ns, study.duration_ns, surroundings)
        )
        if why:
            excluded.append(Excluded(cell.id, f"a transfer beside other cells: {why}"))
        else:
            cells.append(cell)
    left_out.check()
    return Expansion(tuple(cells), tuple(excluded))


def _transfers(study: Study, cells: Sequence[Cell], adapters: Mapping[str, Adapter]) -> Iterator[Cell]:
    """Plain TCP of the same bytes, once for each work that crosses a network."""
    if not study.transfer or TRANSFER not in adapters:
        return
    for cell, point in transfers(tuple(cells), study.matrix, study.hosts):
        values = {name: getattr(point, FACTORS_BY_NAME[name].field) for name in study.matrix}
        graph = without_extras(cell.graph)
        yield replace(
            cell,
            id=cell_id(values),
            factors=point,
            graph=graph,
            traffic=_traffic(graph, point, study.seed),
            options=_as_declared(study.options, adapters),
            environment=PLAIN.environment,
            bridge=None,
        )


def select(cells: Iterable[Cell], select_globs: Sequence[str], skip_globs: Sequence[str]) -> tuple[Cell, ...]:
    """The cells whose id matches one of `select_globs` (all if it is empty) and none of `skip_globs`.

    `*` also matches `/`.
    """
    is_selected = _selection(select_globs, skip_globs)
    return tuple(cell for cell in cells if is_selected(cell.id))


def select_excluded(
    excluded: Iterable[Excluded], select_globs: Sequence[str], skip_globs: Sequence[str]
) -> tuple[Excluded, ...]:
    """The same for cells that are excluded."""
    is_selected = _selection(select_globs, skip_globs)
    return tuple(item for item in excluded if is_selected(item.cell))


def _selection(select_globs: Sequence[str], skip_globs: Sequence[str]) -> Callable[[str], bool]:
    wanted = [_pattern(glob) for glob in select_globs or ["*"]]
    unwanted = [_pattern(glob) for glob in skip_globs]

    def is_selected(cell: str) -> bool:
        return any(pattern.fullmatch(cell) for pattern in wanted) and not any(
            pattern.fullmatch(cell) for pattern in unwanted
        )

    return is_selected


def check_options(study: Study, adapters: Mapping[str, Adapter]) -> None:
    """Raises BadInput for an option, of the study or a variant, that its adapter does not declare."""
    problems = _wrong_options(study, study.options, "options", adapters)
    for name, variant in study.variants.items():
        problems += _wrong_options(study, variant.options, f"variants.{name}", adapters)
    problems = problems or list(_alike(study, adapters))
    if problems:
        raise BadInput.of(list(dict.fromkeys(problems)))


def _wrong_options(
    study: Study, options: Options, prefix: str, adapters: Mapping[str, Adapter]
) -> list[Problem]:
    problems: list[Problem] = []
    for name, settings in options.items():
        adapter = adapters.get(name)
        if adapter is None:
            problems.append(_no_adapter(name, adapters, study.where(f"{prefix}.{name}")))
            continue
        for key, value in settings.items():
            declared = adapter.sidecar.options.get(key)
            in_matrix = f"matrix.{name}.{key}"
            where = study.where(in_matrix if in_matrix in study.lines else f"{prefix}.{name}.{key}")
            if declared is None:
                hint = nearest(key, adapter.sidecar.options)
                problems.append(Problem(f"{name} has no option '{key}'", where, hint))
            elif not declared.accepts(_typed(value, declared)):
                near = closest(str(value), map(str, declared.choices))
                meant = f"did you mean '{near}'? " if near is not None else ""
                message = f"'{value}' is not {declared.wanted()}"
                problems.append(Problem(message, where, meant + declared.description))
    return problems


def _alike(study: Study, adapters: Mapping[str, Adapter]) -> Iterator[Problem]:
    """The values of options in the matrix that are one for the adapter, such as 512KB and 524288."""
    variants = [study.variants.get(str(name), PLAIN) for name in study.matrix.get("variant", ())]
    for key in study.lines:
        name, _, option = key.removeprefix("matrix.").partition(".")
        if not key.startswith("matrix.") or not option:
            continue
        first_by_meaning: dict[OptionValue, str] = {}
        settings = [variant.options.get(name, {}) for variant in variants]
        values = {str(setting[option]): setting[option] for setting in settings if option in setting}
        for text, value in values.items():
            meaning = _typed(value, adapters[name].sidecar.options[option])
            first = first_by_meaning.setdefault(meaning, text)
            if first != text:
                message, _, _, hint = listed_twice(text, first, None, key)
                yield Problem(message, study.where(key), hint)


def cell_id(values: Mapping[str, object]) -> str:
    """The id of a combination: `values` by factor name, in the fixed order."""
    return "/".join(FACTORS_BY_NAME[name].label(value) for name, value in values.items())


def _candidates(
    study: Study, adapters: Mapping[str, Adapter], left_out: Callable[[str], bool]
) -> Iterator[tuple[Cell, str]]:
    """All combinations, each with the reason why it would only repeat another one, or ''.

    A variant that sets nothing for a cell's adapters would repeat a measurement under another name. Such
    cells are measured once, as the variant `none`; those that differ only in a factor that no topic follows,
    or in options that their adapters don't have, once under the first name. left_out: whether the study
    excludes a cell: then another one is measured.
    """
    name_of: dict[tuple[object, ...], str] = {}  # the variant under which it is measured
    measured: set[tuple[object, ...]] = set()
    for cell in _combinations(study, adapters):
        overridden = [name for name in study.matrix if FACTORS_BY_NAME[name].field not in cell.named]
        if not _followed(cell.graph, "adapter"):
            overridden.append("adapter")
            if not set(cell.factors.adapter.split("+")) <= set(cell.adapters):
                remark = f"none has {cell.factors.adapter}: write `adapter: {cell.adapters[0]}`"
                yield cell, f"every topic of {cell.graph.name} has its own adapter, and {remark}"
                continue
        columns, variant = cell.columns(), cell.factors.variant
        point = (cell.graph.name, *(columns[field] for field in cell.named if field != "variant"))
        if overridden and (*point, variant) in measured:
            message = f"every topic of {cell.graph.name} has its own {' and '.join(overridden)}"
            yield cell, f"{message}: measured once"
            continue
        is_left_out = left_out(cell.id)
        if not is_left_out:
            measured.add((*point, variant))
        if variant not in study.variants:  # none, or a study without variants
            sets, own_name = True, NONE
        else:
            sets = study.variants[variant].concerns(cell.adapters)
            own_name = variant if sets else NONE
        settings = (*point, *_settings(cell))
        is_new = settings not in name_of
        first = name_of.get(settings, own_name)
        if not (sets and is_left_out):
            name_of[settings] = first
        if not sets:
            message = f"variant '{variant}' sets nothing for {' and '.join(cell.adapters)}"
            yield cell, f"{message}: measured once, as '{first}'"
            if is_new and NONE not in study.matrix["variant"]:
                yield _plain(cell, study), ""
        elif first != own_name:
            message = f"variant '{variant}' sets the same for {' and '.join(cell.adapters)} as '{first}'"
            yield cell, f"{message}: measured once, as '{first}'"
        else:
            yield cell, ""


def _settings(cell: Cell) -> tuple[object, ...]:
    """What a variant may change, in a form that can be compared: the options of the cell's adapters, and the
    environment."""
    options = tuple((name, *sorted(cell.options.get(name, {}).items())) for name in cell.adapters)
    return options, tuple(sorted(cell.environment.items()))


def _plain(cell: Cell, study: Study) -> Cell:
    """The same cell as the variant `none`."""
    point = replace(cell.factors, variant=NONE)
    values = {name: getattr(point, FACTORS_BY_NAME[name].field) for name in study.matrix}
    return replace(cell, id=cell_id(values), factors=point)


def _followed(graph: Graph, field: str) -> bool:
    """Whether a topic uses the cell's factor rather than its own setting."""
    if not graph.topics:
        return True
    topics = {stream.topic for stream in graph.streams}
    settings = [graph.topics.get(topic, TopicSettings()) for topic in topics]
    overridden = [getattr(topic_settings, field) is not None for topic_settings in settings]
    if field == "payload_bytes":
        overridden = [
            is_set or topic_settings.payload is not None
            for is_set, topic_settings in zip(overridden, settings, strict=True)
        ]
    return not all(overridden)


def _combinations(study: Study, adapters: Mapping[str, Adapter]) -> Iterator[Cell]:
    factors: list[Factor] = [FACTORS_BY_NAME[name] for name in study.matrix]
    graphs: dict[tuple[str, float, int, str, str], Graph] = {}
    bridges: dict[str, BridgeProgram | None] = {}
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
        if point.bridge not in bridges:
            bridges[point.bridge] = find_bridge(point.bridge)
        variant, graph = study.variants.get(point.variant, PLAIN), graphs[key]
        placed = _placed(graph, point.placement)
        yield Cell(
            id=cell_id(dict(zip(study.matrix, values, strict=True))),
            factors=point,
            named=tuple(
                factor.field
                for factor in factors
                if factor.field not in TOPIC_FIELDS - {"adapter"} or _followed(graph, factor.field)
            ),
            graph=graph,
            workers=tuple(nodes for nodes, _ in placed),
            traffic=_traffic(graph, point, study.seed),
            groups=tuple(group for _, group in placed),
            options=_as_declared(variant.over(study.options), adapters),
            environment=variant.environment,
            host_of=host_of_nodes(point.hosts, study.hosts, graph, point.placement),
            link=study.links.get(point.link),
            bridge=bridges[point.bridge],
        )


def _as_declared(options: Options, adapters: Mapping[str, Adapter]) -> dict[str, dict[str, OptionValue]]:
    """Options as their adapters expect them: sizes such as 512KB as numbers, words as the adapter spells
    them."""
    return {
        name: {
            key: _typed(value, adapters[name].sidecar.options.get(key)) if name in adapters else value
            for key, value in settings.items()
        }
        for name, settings in options.items()
    }


def _typed(value: OptionValue, declared: Option | None) -> OptionValue:
    if declared is None:
        return value
    value = declared.meant(value)
    if not isinstance(value, str) or declared.type not in ("integer", "number"):
        return value
    try:
        return units.parse_payload_bytes(value)
    except UnitError:
        return value


def _placed(graph: Graph, placement: str) -> list[tuple[tuple[str, ...], Group | None]]:
    """The nodes of each worker, and its group."""
    if placement == "single-process":
        return [(graph.node_names, None)]
    groups = graph.groups_of(placement)
    grouped = {node for group in groups for node in group.nodes}
    ungrouped: list[tuple[tuple[str, ...], Group | None]] = [
        ((node,), None) for node in graph.node_names if node not in grouped
    ]
    return [*((group.nodes, group) for group in groups), *ungrouped]


def _traffic(graph: Graph, point: Factors, seed: int) -> dict[str, Traffic]:
    """What each topic carries. Drawn sizes are the same in all cells and trials of a study. Without a bridge
    no topic goes to another domain."""
    default = point.traffic()
    topics = dict.fromkeys(stream.topic for stream in graph.streams)
    traffic = {
        topic: traffic_of(graph.topics[topic], default, f"{seed}/payload/{topic}")
        if topic in graph.topics
        else default
        for topic in topics
    }
    if point.bridge == NO_BRIDGE:
        return {topic: each.in_one_domain() for topic, each in traffic.items()}
    return traffic


def _check_adapters(study: Study, adapters: Mapping[str, Adapter]) -> None:
    if not adapters:
        raise SetupMissing(
            "no adapter found", hint="run `make setup`, or name a folder in LAGOMETER_ADAPTER_PATH"
        )
    problems = []
    values = [("matrix.adapter", value) for value in study.matrix["adapter"]]
    if study.control is not None and "control" in study.lines:
        values.append(("control.adapter", study.control["adapter"]))
    for key, value in values:
        for name in str(value).split("+"):
            if name not in adapters and name not in PRODUCTS:
                problems.append(_no_adapter(name, adapters, study.where(key)))
    for graph in study.graphs.values():
        for topic, settings in graph.topics.items():
            for name in (settings.adapter or "").split("+"):
                if name and name not in adapters and name not in PRODUCTS:
                    where = f"workload {graph.name}: topics.{topic}.adapter"
                    problems.append(_no_adapter(name, adapters, where))
    if problems:
        raise BadInput.of(problems)


def _no_adapter(name: str, adapters: Mapping[str, Adapter], where: str) -> Problem:
    if name in PRODUCTS:
        return Problem(
            f"'{name}' has no adapter here, and so no options", where, look_for(PRODUCTS[name]).says
        )
    return Problem(f"unknown adapter '{name}'", where, nearest(name, [*adapters, *PRODUCTS]))


def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))
