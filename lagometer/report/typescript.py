# SPDX-License-Identifier: Apache-2.0
"""Writes the TypeScript types of the page's data: `python -m lagometer.report.typescript web/src`."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from pathlib import Path

from lagometer.report import comparison_data
from lagometer.report import data as report_data
from lagometer.report.samples import data as sample_data
from lagometer.summary import cell_data, data, scheduling_data, steadiness_data, way_data
from lagometer.summary.model import Model

_PRIMITIVES = {int: "number", float: "number", str: "string", bool: "boolean", type(None): "null"}


def type_name(annotation: object) -> str:
    """The TypeScript name of a Python annotation; TypeError if it has none."""
    if isinstance(annotation, type) and annotation in _PRIMITIVES:
        return _PRIMITIVES[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation.__name__
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(type_name(argument) for argument in arguments)
    if origin is list:
        item = type_name(arguments[0])
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is dict:
        return f"Record<{type_name(arguments[0])}, {type_name(arguments[1])}>"
    raise TypeError(
        f"{annotation!r} has no TypeScript name: use int, float, str, bool, list, dict or a Model"
    )


FILES = {
    "data.ts": data,
    "cell-data.ts": cell_data,
    "scheduling-data.ts": scheduling_data,
    "steadiness-data.ts": steadiness_data,
    "way-data.ts": way_data,
    "sample-data.ts": sample_data,
    "report-data.ts": report_data,
    "comparison-data.ts": comparison_data,
}


def render(module: types.ModuleType) -> str:
    """The whole file of one module's models. It imports what it uses from other files."""
    models = {
        name: member
        for name, member in vars(module).items()
        if inspect.isclass(member) and issubclass(member, Model) and member is not Model
    }
    names_by_module: dict[str, list[str]] = {}
    for name, used_model in models.items():
        if used_model.__module__ != module.__name__:
            names_by_module.setdefault(used_model.__module__, []).append(name)
    files = {file_module.__name__: file.removesuffix(".ts") for file, file_module in FILES.items()}
    path = module.__name__.replace(".", "/")
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Generated from {path}.py by `python -m lagometer.report.typescript web/src`; do not edit.",
    ]
    imports = [
        f'import type {{ {", ".join(names)} }} from "./{files[source]}";'
        for source, names in names_by_module.items()
    ]
    lines += ["", *imports] if imports else []
    for name, model in models.items():
        if model.__module__ != module.__name__:
            continue
        lines += ["", "/**"]
        lines += [f" * {line}".rstrip() for line in inspect.cleandoc(model.__doc__ or "").splitlines()]
        base = next(ancestor for ancestor in model.__mro__[1:] if issubclass(ancestor, Model))
        known = frozenset(base.model_fields)
        lines += [" */", f"export interface {name}{f' extends {base.__name__}' if known else ''} {{"]
        hints = typing.get_type_hints(model)
        lines += [
            f"  {field}: {type_name(hints[field])};" for field in model.model_fields if field not in known
        ]
        lines.append("}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for file, module in FILES.items():
        (Path(sys.argv[1]) / file).write_text(render(module), encoding="utf-8")
