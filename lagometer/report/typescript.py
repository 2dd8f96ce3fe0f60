# SPDX-License-Identifier: Apache-2.0
"""Writes the TypeScript types of the report's data: `python -m lagometer.report.typescript >
web/src/data.ts`.
"""

from __future__ import annotations

import inspect
import types
import typing

from lagometer.report import data

_PRIMITIVES = {int: "number", float: "number", str: "string", bool: "boolean", type(None): "null"}


def type_name(annotation: object) -> str:
    """The TypeScript name of a Python annotation; TypeError for one that has none."""
    if isinstance(annotation, type) and annotation in _PRIMITIVES:
        return _PRIMITIVES[annotation]
    if isinstance(annotation, type) and issubclass(annotation, data.Model):
        return annotation.__name__
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(type_name(each) for each in arguments)
    if origin is list:
        return f"{type_name(arguments[0])}[]"
    if origin is dict:
        return f"Record<{type_name(arguments[0])}, {type_name(arguments[1])}>"
    raise TypeError(
        f"{annotation!r} has no TypeScript name: use int, float, str, bool, list, dict or a Model"
    )


def render() -> str:
    """The whole of `web/src/data.ts`."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "// Generated from lagometer/report/data.py by `python -m lagometer.report.typescript`; do not edit.",
    ]
    for name, model in vars(data).items():
        if not (inspect.isclass(model) and issubclass(model, data.Model)) or model is data.Model:
            continue
        lines += ["", "/**"]
        lines += [f" * {line}".rstrip() for line in inspect.cleandoc(model.__doc__ or "").splitlines()]
        lines += [" */", f"export interface {name} {{"]
        hints = typing.get_type_hints(model)
        lines += [f"  {field}: {type_name(hints[field])};" for field in model.model_fields]
        lines.append("}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render(), end="")
