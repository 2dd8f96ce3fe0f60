# SPDX-License-Identifier: Apache-2.0
"""Reads a study's file, or an equivalent mapping, into a checked `Study`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from lagometer.study.document import (
    Entries,
    Scalar,
    Tree,
    entry_of,
    read_document,
    replaced,
    tree_of,
    without,
)
from lagometer.study.factors import FACTORS, FACTORS_BY_NAME, PART, Factor
from lagometer.study.graph import Graph
from lagometer.study.hosts import Host, chosen_hosts, hosts_of_study
from lagometer.study.links import NONE as NO_LINK
from lagometer.study.links import Link, chosen_links, read_links
from lagometer.study.load_shape import ContentFile, load_content
from lagometer.study.parts import KEY as PARTS
from lagometer.study.parts import MATRIX, part_documents
from lagometer.study.scales import scale_names, scaled
from lagometer.study.schedule import RECORDED, Recording, load_recording
from lagometer.study.schema import (
    ADAPTIVE_TRIALS_MIN,
    CELLS_MAX,
    CONTROL_FLOOR,
    CONTROL_NONE,
    FLOOR,
    KEY_NAMES,
    TOP_LEVEL_KEYS,
    TRIALS_MAX,
    TRIES_PER_VALID,
    WARMUP_AUTO,
    Study,
    parse_warmup_ns,
)
from lagometer.study.sidecar import OptionValue
from lagometer.study.values import (
    Problems,
    boolean_hint,
    is_null,
    nearest,
    option_value,
    parsed,
    scalars,
    single,
    word_parser,
)
from lagometer.study.variants import NONE, PLAIN, Variant, combined, is_option, read_option, read_variants
from lagometer.study.workload import find_workload
from lagometer.study.workload_groups import check_placements
from lagometer.units import UnitError

File = TypeVar("File", Recording, ContentFile)


def load_study(path: Path, scale: str | None = None) -> Study:
    """Reads a study's file, at one of its scales or unscaled. Raises BadInput with every problem: file, line,
    key, nearest valid word. Checks the other scales too, whose problems would only show up later."""
    document, text = read_document(path)
    study = replace(_read(document, str(path), path.parent, scale), path=path, text=text)
    for other in scale_names(document):
        if other != scale:
            _read(document, str(path), path.parent, other)
    return study


def study_from_mapping(mapping: Mapping[str, Any], source: str) -> Study:
    """The same from Python values, keys as in a file; `source` replaces the file in errors. Raises
    BadInput."""
    tree = tree_of(mapping)
    assert isinstance(tree, Entries)
    return _read(tree, source, Path.cwd(), None)


def _read(document: Entries, source: str, folder: Path, scale: str | None) -> Study:
    """The study that a document describes at a scale, with its parts."""
    problems = Problems(source)
    document = scaled(document, scale, problems)
    documents = part_documents(document, problems)
    problems.raise_if_any()
    if not documents:
        return replace(_Loader(document, source, folder).study(), scale=scale)
    studies = {name: _Loader(part, source, folder, name).study() for name, part in documents.items()}
    # Read the campaign's own keys with the first part's matrix: its own may lack factors that the parts set.
    first, campaign = next(iter(documents.values())), without(document, (PARTS,))
    matrix = entry_of(first, MATRIX)
    study = _Loader(
        replaced(campaign, Scalar(MATRIX, True, None), matrix) if matrix else campaign,
        source,
        folder,
        variants_in_parts=any("variant" in part.matrix for part in studies.values()),
    ).study()
    return replace(
        study,
        scale=scale,
        parts=studies,
        matrix=_united(studies.values()),
        graphs={name: graph for part in studies.values() for name, graph in part.graphs.items()},
        variants={name: variant for part in studies.values() for name, variant in part.variants.items()},
        links={name: link for part in studies.values() for name, link in part.links.items()},
        recordings={name: file for part in studies.values() for name, file in part.recordings.items()},
        contents={name: file for part in studies.values() for name, file in part.contents.items()},
    )


def _united(studies: Iterable[Study]) -> dict[str, tuple[object, ...]]:
    """The values of each factor in any part, in the order of ids."""
    values_by_factor: dict[str, dict[object, None]] = {}
    for study in studies:
        for name, values in study.matrix.items():
            values_by_factor.setdefault(name, {}).update(dict.fromkeys(values))
    return {
        factor.name: tuple(values_by_factor[factor.name])
        for factor in FACTORS
        if factor.name in values_by_factor
    }


class _Loader:
    """Walks one study and collects its problems; every method reports what is wrong and continues."""

    def __init__(
        self,
        document: Entries,
        source: str,
        folder: Path,
        part: str | None = None,
        variants_in_parts: bool = False,
    ) -> None:
        self._problems = Problems(source)
        self._document = document
        self._part = part
        self._variants_in_parts = variants_in_parts
        self._folder = folder
        self._source = source
        self._lines: dict[str, int | None] = {}
        self._graphs: dict[str, Graph] = {}
        self._recordings: dict[str, Recording] = {}
        self._contents: dict[str, ContentFile] = {}
        self._variants: dict[str, Variant] = {}
        self._hosts: dict[str, Host] = {}
        self._links: dict[str, Link] = {}

    def study(self) -> Study:
        entries = self._known_keys()
        warmup = self._warmup_bounds(entries)
        values = {key.field: self._top_level(entries.get(key.name), key.name) for key in TOP_LEVEL_KEYS}
        values["warmup_max_ns"] = self._warmup_max_ns(warmup, values)
        self._check_valid(entries, values)
        self._check_adaptive(entries, values)
        self._check_deadline(entries)
        self._check_scheduler(values)
        if "variants" in entries:
            self._variants = read_variants(entries["variants"], self._problems, self._lines)
        if "hosts" in entries:
            self._hosts = hosts_of_study(entries["hosts"], self._problems, self._lines, self._folder)
        if "links" in entries:
            self._links = read_links(entries["links"], self._problems, self._lines, self._folder)
        matrix = self._matrix(entries.get("matrix"))
        adaptive = values["precision"] is not None
        control = self._control(entries.get("control"), adaptive)
        link_names = (*matrix.get("link", ()), (control or {}).get("link", NO_LINK))
        links = chosen_links(link_names, self._links, self._problems, self._lines)
        options = self._options(entries["options"]) if "options" in entries else {}
        exclude = self._exclude(entries["exclude"]) if "exclude" in entries else ()
        self._problems.raise_if_any()
        return Study(
            **values,  # type: ignore[arg-type]
            matrix=matrix,
            control=control,
            graphs=self._graphs,
            recordings=self._recordings,
            contents=self._contents,
            options=options,
            variants=self._variants,
            hosts=self._hosts,
            links=links,
            exclude=exclude,
            source=self._source,
            lines=self._lines,
        )

    def _known_keys(self) -> dict[str, Tree]:
        entries = {}
        for key, value in self._document.entries:
            self._lines[key.text] = key.line
            if key.text in KEY_NAMES:
                entries[key.text] = value
                continue
            hint = nearest(key.text, KEY_NAMES)
            if key.text in FACTORS_BY_NAME:
                hint = f"'{key.text}' is a factor; write it under `matrix:`"
            self._problems.add(f"unknown key '{key.text}'", key.line, hint=hint)
        return entries

    def _top_level(self, value: Tree | None, name: str) -> object:
        key = next(key for key in TOP_LEVEL_KEYS if key.name == name)
        if value is None and key.default is None:
            self._problems.add(
                f"the key '{name}' is missing", None, hint=f"write `{name}:`, {key.description}"
            )
            return None
        if value is None:
            return key.parse(key.default) if key.default else key.absent
        scalar = single(value, name, self._problems)
        return parsed(scalar, name, key.parse, self._problems) if scalar else None

    def _warmup_bounds(self, entries: dict[str, Tree]) -> Scalar | str | None:
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
            self._problems.add(
                "takes the keys 'min' and 'max', both of them", value.line, "warmup", "{min: 100ms, max: 1s}"
            )
        entries["warmup"] = bounds.get("min", Scalar("0", True, value.line))
        return single(bounds["max"], "warmup.max", self._problems) if "max" in bounds else None

    def _warmup_max_ns(self, bound: Scalar | str | None, values: Mapping[str, Any]) -> int | None:
        """The latest end of warm-up that the steady-state test may find, counted from the common start."""
        least_ns, duration_ns = values["warmup_ns"], values["duration_ns"]
        if bound is None or least_ns is None or duration_ns is None:
            return None
        if not isinstance(bound, Scalar):
            return int(least_ns + duration_ns // 2)
        most_ns = parsed(bound, "warmup.max", parse_warmup_ns, self._problems)
        if most_ns is not None and not least_ns <= most_ns < least_ns + duration_ns:
            self._problems.add(
                f"'{bound.text}' is not between warmup.min and warmup.min + duration",
                bound.line,
                "warmup.max",
                "something must be left to measure",
            )
        return most_ns

    def _check_valid(self, entries: Mapping[str, Tree], values: dict[str, Any]) -> None:
        """`trials_valid` sets the number of trials alone; without `trials_max`, tries three times as many."""
        wanted = values["trials_valid"]
        if "trials_valid" not in entries:
            return
        for name in ("trials", "precision"):
            if name in entries:
                message = f"'{name}' and 'trials_valid' both say how many trials a cell gets"
                self._problems.add(message, self._lines[name], "", "keep one")
        if wanted is not None and "trials_max" not in entries:
            values["trials_max"] = min(TRIALS_MAX, TRIES_PER_VALID * wanted)
        elif wanted is not None and values["trials_max"] is not None and values["trials_max"] < wanted:
            message = f"'{values['trials_max']}' is fewer than the {wanted} valid trials of each cell"
            self._problems.add(message, self._lines["trials_max"], "trials_max")

    def _check_scheduler(self, values: Mapping[str, Any]) -> None:
        """The scheduler's record splits layers, so it needs `layers`."""
        if values["scheduler"] and not values["layers"]:
            message = "'scheduler: on' takes layers apart, and the study has none"
            self._problems.add(message, self._lines.get("scheduler"), "", "add `layers: on`")

    def _check_adaptive(self, entries: Mapping[str, Tree], values: Mapping[str, Any]) -> None:
        """The bounds of an adaptive campaign depend on each other, and mean nothing without `precision`."""
        if values["precision"] is None:
            if "precision" not in entries:
                for name in ("trials_min", "trials_max", "cell_time"):
                    if name in entries and not (name == "trials_max" and "trials_valid" in entries):
                        self._problems.add(
                            f"'{name}' is for studies with `precision`", self._lines[name], "", "add it"
                        )
            return
        trials_min, trials_max = values["trials_min"], values["trials_max"]
        if trials_min is not None and trials_min < ADAPTIVE_TRIALS_MIN:
            self._problems.add(
                f"'{trials_min}' is fewer than {ADAPTIVE_TRIALS_MIN}",
                self._lines.get("trials_min"),
                "trials_min",
                "fewer trials don't show how much trials differ",
            )
        needed = max(trials_min or 0, values["trials"] or 0)
        if trials_max is not None and trials_max < needed:
            self._problems.add(
                f"'{trials_max}' is fewer than the {needed} trials of each cell",
                self._lines.get("trials_max"),
                "trials_max",
            )

    def _check_deadline(self, entries: Mapping[str, Tree]) -> None:
        """Keys about deadlines have no meaning without a deadline."""
        if "deadline_k" in entries and "deadline" not in entries:
            message = "'deadline_k' is for studies with `deadline`"
            self._problems.add(message, self._lines["deadline_k"], "", "add it")

    def _control(self, value: Tree | None, adaptive: bool) -> dict[str, object] | None:
        """The factors of the control cell, each with one value; without the key it depends on `precision`."""
        if not isinstance(value, Entries):
            word = CONTROL_FLOOR if adaptive else CONTROL_NONE
            if value is not None:
                scalar = single(value, "control", self._problems)
                parse = word_parser((CONTROL_NONE, CONTROL_FLOOR))
                word = (parsed(scalar, "control", parse, self._problems) if scalar else None) or word
            if word == CONTROL_NONE:
                return None
            value = tree_of({name: str(factor) for name, factor in FLOOR.items()})
            assert isinstance(value, Entries)
        control = {}
        for key, item in value.entries:
            where = f"control.{key.text}"
            if key.text not in FACTORS_BY_NAME:
                hint = nearest(key.text, FACTORS_BY_NAME)
                self._problems.add(f"unknown factor '{key.text}'", key.line, "control", hint)
                continue
            item_scalar = item if is_null(item) else single(item, where, self._problems)
            if item_scalar is not None:
                values = self._factor(FACTORS_BY_NAME[key.text], item_scalar, where)
                control[key.text] = values[0] if values else None
        for name in ("adapter", "workload"):
            if name not in control:
                self._problems.add(f"the factor '{name}' is missing", value.line, "control")
        return {factor.name: control[factor.name] for factor in FACTORS if factor.name in control}

    def _matrix(self, value: Tree | None) -> dict[str, tuple[object, ...]]:
        if not isinstance(value, Entries):
            line = value.line if value is not None else None
            self._problems.add(
                "has no factors" if value is not None else "the key 'matrix' is missing",
                line,
                "matrix" if value is not None else "",
                "write `matrix:` and under it `adapter: […]` and `workload: […]`",
            )
            return {}
        matrix = {}
        by_option: list[dict[str, Variant]] = []
        for key, item in value.entries:
            self._lines[f"matrix.{key.text}"] = key.line
            if is_option(key.text):
                by_option.append(read_option(key, item, self._problems))
                continue
            if key.text in FACTORS_BY_NAME and key.text != PART:
                matrix[key.text] = self._factor(FACTORS_BY_NAME[key.text], item, f"matrix.{key.text}")
                continue
            hint = nearest(key.text, FACTORS_BY_NAME)
            if key.text == PART:
                hint = "write `parts:` at the top level"
            elif key.text in KEY_NAMES:
                hint = f"'{key.text}' is not a factor; write it at the top level"
            self._problems.add(f"unknown factor '{key.text}'", key.line, "matrix", hint)
        for name in ("adapter", "workload"):
            if name not in matrix:
                description = FACTORS_BY_NAME[name].description
                self._problems.add(
                    f"the factor '{name}' is missing", value.line, "matrix", f"{name}: {description}"
                )
        self._choose_variants(matrix, by_option)
        line = self._lines.get("matrix.placement")
        check_placements(matrix.get("placement", ()), self._graphs, line, self._problems)
        if self._hosts or "hosts" in matrix:
            matrix["hosts"] = chosen_hosts(
                matrix.get("hosts"), self._hosts, self._graphs, self._problems, self._lines
            )
        if self._part is not None:
            matrix[PART] = (self._part,)
        self._check_size(matrix)
        return {factor.name: matrix[factor.name] for factor in FACTORS if factor.name in matrix}

    def _choose_variants(
        self, matrix: dict[str, tuple[object, ...]], by_option: list[dict[str, Variant]]
    ) -> None:
        """Makes the values of single options part of the factor `variant`."""
        names = [str(name) for name in matrix.get("variant", ())]
        for name in names:
            if name != NONE and name not in self._variants:
                hint = (
                    nearest(name, [*self._variants, NONE]) if self._variants else "write it under `variants:`"
                )
                self._problems.add(
                    f"unknown variant '{name}'", self._lines["matrix.variant"], "matrix.variant", hint
                )
        unused = [name for name in self._variants if name not in names]
        if unused and "variant" not in matrix and self._part is None and not self._variants_in_parts:
            message = "no cell has a variant"
            self._problems.add(
                message,
                self._lines["variants"],
                "variants",
                f"add `variant: [{', '.join(unused)}]` to the matrix",
            )
        if by_option:
            chosen = {name: self._variants.get(name, PLAIN) for name in names}
            self._variants = combined(chosen, by_option)
            matrix["variant"] = tuple(self._variants)

    def _factor(self, factor: Factor, value: Tree, key: str) -> tuple[object, ...]:
        """The values of one factor, under a dotted key; each may be written once."""
        values: dict[object, str] = {}
        for scalar in scalars(value, key, self._problems):
            result: object
            if factor.name == "adapter" and is_null(scalar) and scalar.text:
                result = "null"  # the adapter of that name: YAML reads the unquoted word as nothing
            elif factor.name == "workload" and not is_null(scalar):
                result = self._workload(scalar.text, key, scalar.line, boolean_hint(scalar))
            elif factor.name == "schedule" and scalar.text.startswith(RECORDED):
                result = self._from_file(scalar, key, load_recording, self._recordings)
            elif factor.name == "content" and scalar.text.startswith(RECORDED):
                result = self._from_file(scalar, key, load_content, self._contents)
            else:
                result = parsed(scalar, key, factor.parse, self._problems)
            if result is None:
                continue
            if result in values:
                same = f" (as '{values[result]}')" if values[result] != scalar.text else ""
                self._problems.add(
                    f"'{scalar.text}' is listed twice{same}", scalar.line, key, "list each value once"
                )
            values.setdefault(result, scalar.text)
        return tuple(values)

    def _workload(self, text: str, key: str, line: int | None, hint: str) -> str | None:
        try:
            graph = find_workload(text, self._folder)
        except UnitError as error:
            self._problems.add(str(error), line, key, hint)
            return None
        self._graphs.setdefault(graph.name, graph)
        return graph.name

    def _from_file(
        self, value: Scalar, key: str, load: Callable[[str, Path], File], known: dict[str, File]
    ) -> str | None:
        """Reads the file of `recorded-FILE` and returns its text for ids."""
        try:
            file = load(value.text, self._folder)
        except UnitError as error:
            self._problems.add(str(error), value.line, key)
            return None
        if known.setdefault(file.name, file) != file:
            self._problems.add(
                f"two recordings have the name '{file.name}'",
                value.line,
                key,
                "rename one: cell ids contain it",
            )
        return RECORDED + file.name

    def _check_size(self, matrix: Mapping[str, tuple[object, ...]]) -> None:
        cells = math.prod(len(values) for values in matrix.values())
        if cells > CELLS_MAX:
            sizes = " × ".join(f"{len(values)} {name}" for name, values in matrix.items() if len(values) > 1)
            line = self._lines.get("matrix")
            self._problems.add(
                f"{sizes} = {cells} cells, more than {CELLS_MAX}",
                line,
                "matrix",
                "split it into several studies",
            )

    def _options(self, value: Tree) -> dict[str, dict[str, OptionValue]]:
        if not isinstance(value, Entries):
            self._problems.add(
                "has no adapters under it", value.line, "options", "write `adapter: {option: value}`"
            )
            return {}
        options: dict[str, dict[str, OptionValue]] = {}
        for adapter, item in value.entries:
            name = "null" if is_null(adapter) else adapter.text
            key = f"options.{name}"
            self._lines[key] = adapter.line
            if not isinstance(item, Entries):
                self._problems.add("has no options under it", item.line, key, "write `option: value`")
                continue
            settings = options[name] = {}
            for option, setting in item.entries:
                self._lines[f"{key}.{option.text}"] = option.line
                scalar = single(setting, f"{key}.{option.text}", self._problems)
                if scalar is not None:
                    settings[option.text] = option_value(scalar.text, scalar.plain)
        return options

    def _exclude(self, value: Tree) -> tuple[str, ...]:
        return tuple(scalar.text for scalar in scalars(value, "exclude", self._problems))
