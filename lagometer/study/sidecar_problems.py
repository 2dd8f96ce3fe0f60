# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a sidecar, in words: the file, the key, and the nearest valid word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from lagometer.errors import Problem
from lagometer.study.claims import misplaced_claim
from lagometer.study.sidecar import Sidecar
from lagometer.study.values import nearest

_QUOTED = re.compile(r"'([^']*)'")
_KINDS = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


SIDECAR_PAGE = "docs/adapters/sidecar.md"


def problems_of(
    error: ValidationError, path: Path, model: type[BaseModel] = Sidecar, page: str = SIDECAR_PAGE
) -> list[Problem]:
    """One problem for each key that is wrong, in the order of the file's keys. model: of the whole file;
    page: where it is explained."""
    problem_by_key: dict[str, Problem] = {}
    for detail in error.errors():
        location = detail["loc"]
        key = ".".join(str(part) for part in location if part != "[key]")
        message, fix = _explained(
            detail["type"], location, detail["input"], detail["msg"], detail.get("ctx", {}), model, page
        )
        problem_by_key.setdefault(key, Problem(message, f"{path}: {key}" if key else str(path), fix))
    return list(problem_by_key.values())


def _explained(
    kind: str,
    location: tuple[int | str, ...],
    value: object,
    message: str,
    context: dict[str, Any],
    model: type[BaseModel],
    page: str,
) -> tuple[str, str]:
    """What is wrong, and a hint."""
    if kind == "extra_forbidden" and location[-1] == "transport":
        return "unknown key 'transport'", misplaced_claim(value)
    if kind == "extra_forbidden":
        return f"unknown key '{location[-1]}'", nearest(str(location[-1]), _keys_at(location[:-1], model))
    if kind == "literal_error":
        valid = _QUOTED.findall(context["expected"]) or [str(context["expected"])]
        return f"unknown value {_shown(value)}", nearest(str(value), valid)
    if kind == "missing":
        return "this key is missing", f"see {page}"
    if kind in _KINDS:
        return f"{_shown(value)} is not {_KINDS[kind]}", f"write {_KINDS[kind]}"
    return message.removeprefix("Value error, "), f"see {page}"


def _shown(value: object) -> str:
    return f"'{value}'" if isinstance(value, str | int | float) else f"{type(value).__name__}"


def _keys_at(location: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    """The keys that the object at this place of a file may have."""
    model: type[BaseModel] | None = root
    for part in location:
        if model is not None and part in model.model_fields:
            inner = _model_in(model.model_fields[str(part)].annotation)
            model = inner if inner is not None else model
    return list(model.model_fields) if model is not None else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The class of the object in an annotation, for example of a list or a dictionary."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
