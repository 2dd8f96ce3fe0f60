# SPDX-License-Identifier: Apache-2.0
"""Reads a study's file, or an equivalent mapping, into a checked `Study`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from lagometer.errors import BadInput, Problem
from lagometer.study.contexts import only_there, problems_of
from lagometer.study.control import check_control, read_control
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
from lagometer.study.key_checks import check_together, warmup_bounds, warmup_max_ns
from lagometer.study.links import NONE as NO_LINK
from lagometer.study.links import Link, chosen_links, read_links
from lagometer.study.load_shape import ContentFile, load_content
from lagometer.study.parts import KEY as PARTS
from lagometer.study.parts import MATRIX, part_documents
from lagometer.study.scales import check_scales, scale_names, scaled
from lagometer.study.schedule import RECORDED, Recording, load_recording
from lagometer.study.schema import CELLS_MAX, KEY_NAMES, TOP_LEVEL_KEYS, Study
from lagometer.study.sidecar import OptionValue
from lagometer.study.values import (
    Problems,
    boolean_hint,
    is_null,
    listed_twice,
    nearest,
    option_value,
    parsed,
    scalars,
    single,
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
    studies: dict[str | None, Study] = {}
    problems: list[Problem] = []
    for name in dict.fromkeys((scale, *scale_names(document))):
        try:
            studies[name] = _read(document, str(path), path.parent, name)
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput.of(list(dict.fromkeys(problems)))
    return replace(studies[scale], path=path, text=text)


def study_from_mapping(mapping: Mapping[str, Any], source: str) -> Study:
    """The same from Python values, keys as in a file; `source` replaces the file in errors. Raises
    BadInput."""
    tree = tree_of(mapping)
    assert isinstance(tree, Entries)
    return _read(tree, source, Path.cwd(), None)


def _read(document: Entries, source: str, folder: Path, scale: str | None) -> Study:
    """The study that a document describes at a scale, with its parts."""
    problems = Problems(source)
    check_scales(document, problems)
    problems.raise_if_any()
    at_scale = scaled(document, scale, problems)
    problems.raise_if_any()
    try:
        return replace(_with_parts(at_scale, source, folder), scale=scale)
    except BadInput as error:
        if scale is None:
            raise
        unscaled = problems_of(lambda: _with_parts(document, source, folder))
        raise BadInput.of(only_there(error.problems, unscaled, f"at the scale {scale}")) from error


def _with_parts(document: Entries, source: str, folder: Path) -> Study:
    problems = Problems(source)
    documents = part_documents(document, problems)
    problems.raise_if_any()
    if not documents:
        return _Loader(document, source, folder).study()
    campaign = without(document, (PARTS,))
    studies: dict[str, Study] = {}
    found: list[Problem] = []
    for name, part in documents.items():
        try:
            studies[name] = _Loader(part, source, folder, name).study()
        except BadInput as error:
            above = problems_of(lambda: _Loader(campaign, source, folder).study())
            found += only_there(error.problems, above, f"in the part {name}")
    if found:
        raise BadInput.of(list(dict.fromkeys(found)))
    # Read the campaign's own keys with the first part's matrix: its own may lack factors that the parts set.
    matrix = entry_of(next(iter(documents.values())), MATRIX)
    if matrix is not None:
        campaign = replaced(campaign, Scalar(MATRIX, True, None), matrix)
    study = _Loader(campaign, source, folder, parts=studies).study()
    return replace(
        study,
        parts=studies,
        matrix=_united(studies.values()),
        graphs={name: graph for part in studies.values() for name, graph in part.graphs.items()},
        variants={**_variants_of(studies), **study.variants},
        links={name: link for part in studies.values() for name, link in part.links.items()},
        recordings={name: file for part in studies.values() for name, file in part.recordings.items()},
        contents={name: file for part in studies.values() for name, file in part.contents.items()},
    )


def _variants_of(parts: Mapping[str, Study]) -> dict[str, Variant]:
    return {name: variant for part in parts.values() for name, variant in part.variants.items()}


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
        parts: Mapping[str, Study] | None = None,
    ) -> None:
        self._problems = Problems(source)
        self._document = document
        self._part = part
        self._parts = parts or {}
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
        warmup = warmup_bounds(entries, self._problems)
        values = {key.field: self._top_level(entries.get(key.name), key.name) for key in TOP_LEVEL_KEYS}
        values["warmup_max_ns"] = warmup_max_ns(warmup, values, self._problems)
        check_together(entries, values, self._lines, self._problems)
        if "variants" in entries:
            self._variants = read_variants(entries["variants"], self._problems, self._lines)
        if "hosts" in entries:
            self._hosts = hosts_of_study(entries["hosts"], self._problems, self._lines, self._folder)
        if "links" in entries:
            self._links = read_links(entries["links"], self._problems, self._lines, self._folder)
        named_variants = self._variants
        matrix = self._matrix(entries.get("matrix"))
        control = self._control(entries.get("control"), values["precision"] is not None, named_variants)
        links = chosen_links(matrix.get("link", ()), self._links, self._problems, self._lines)
        control_links = ((control or {}).get("link") or NO_LINK,)
        links = chosen_links(control_links, links, self._problems, self._lines, "control.link")
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

    def _control(
        self, value: Tree | None, adaptive: bool, named_variants: Mapping[str, Variant]
    ) -> dict[str, object] | None:
        """The factors of the control cell. named_variants: those that the study names, which it may have even
        if the matrix combines them with single options."""
        control = read_control(value, adaptive, self._factor, self._lines, self._problems)
        if control is None or self._part is not None:  # a control is the campaign's, not a part's
            return control
        known = {**named_variants, **_variants_of(self._parts), **self._variants}
        check_control(control, known, self._hosts, self._graphs, self._lines, self._problems)
        variant = str(control.get("variant", NONE))
        if variant in known:
            self._variants = {**self._variants, variant: known[variant]}
        return control

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
        in_parts = any("variant" in part.matrix for part in self._parts.values())
        if unused and "variant" not in matrix and self._part is None and not in_parts:
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
                self._problems.add(*listed_twice(scalar.text, values[result], scalar.line, key))
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
