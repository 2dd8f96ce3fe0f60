# SPDX-License-Identifier: Apache-2.0
"""Writes the limits that both workers share into their sources: the bounds of a plan, and the protocol's
constants.

The bounds are those of the models in `plan.py`. `python -m lagometer.run.worker.plan_bounds` writes
`engine/src/plan_bounds.hpp` and `lagometer/worker_python/plan_bounds.py`. A test fails if they are out of
date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lagometer.run.worker.plan import PERIOD_MIN_NS, TEXT_CHARACTERS_MAX, PlanModel

ROOT = Path(__file__).resolve().parents[3]
HEADER = Path("engine/src/plan_bounds.hpp")
MODULE = Path("lagometer/worker_python/plan_bounds.py")
COMMAND = "python -m lagometer.run.worker.plan_bounds"
UNSIGNED_32_MAX = 2**32 - 1

# Values that no schema contains: name, value, meaning.
CONSTANTS: tuple[tuple[str, int, str], ...] = (
    ("text_characters_max", TEXT_CHARACTERS_MAX, "of any text in a plan"),
    ("nesting_levels_max", 32, "of a plan's JSON"),
    ("interval_mean_min_ns", PERIOD_MIN_NS, "of a recorded schedule"),
    ("line_bytes_max", 64 << 20, "of standard input"),
    ("at_max_ns", 2**62, "the latest common start"),
    ("content_file_bytes_max", 64 << 20, "of a file that payloads are filled from"),
    ("records_bytes_max", 8 << 30, "of a worker's records"),
    ("probe_first_ns", 1_000_000, "from the first probe to the second; each interval is a quarter longer"),
    ("probe_slowest_ns", 50_000_000, "between probes, at most"),
    ("in_flight_max_ns", 10_000_000, "the largest plausible time in flight of a probe"),
    ("match_look_ns", 500_000, "how often a worker looks whether it is matched"),
    ("standalone_head_start_ns", 5_000_000, "before the start that a standalone worker gives itself"),
    ("standalone_grace_ns", 500_000_000, "for which a standalone worker that is matched goes on probing"),
)


@dataclass(frozen=True)
class Bound:
    """A value's minimum and maximum, and the number that it is a multiple of. whole: a whole number."""

    name: str
    low: int
    high: int
    step: int = 1
    whole: bool = True

    @property
    def cpp_type(self) -> str:
        """Its type in the C++ worker: signed for times, because they are subtracted."""
        if not self.whole:
            return "double"
        if self.name.endswith("_ns"):
            return "int64_t"
        return "uint32_t" if self.high <= UNSIGNED_32_MAX else "uint64_t"


def models(base: type[PlanModel] = PlanModel) -> Iterator[type[PlanModel]]:
    """All parts of a plan, including base classes."""
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def bounds(model: type[BaseModel]) -> Iterator[Bound]:
    """The bounds of a model's own keys."""
    properties = model.model_json_schema()["properties"]
    for key in model.__annotations__:
        if key in properties:
            yield from _bounds_of(key, properties[key])


def _bounds_of(key: str, schema: dict[str, Any]) -> Iterator[Bound]:
    kind = schema.get("type")
    if "anyOf" in schema:  # something or null
        yield from _bounds_of(key, schema["anyOf"][0])
    elif kind in ("integer", "number"):
        low, high = (schema.get(name, schema.get("const")) for name in ("minimum", "maximum"))
        if low is None or high is None:
            raise ValueError(f"{key} has no bounds: give its field of the model `ge` and `le`")
        yield Bound(key, int(low), int(high), int(schema.get("multipleOf", 1)), kind == "integer")
    elif kind == "string" and not {"enum", "const"} & schema.keys():
        yield _size(f"{key}_characters", schema, "Length")
    elif kind == "array":
        yield _size(f"{key}_items", schema, "Items")
        yield from _bounds_of(key, schema["items"])
    elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        yield from _bounds_of(key, schema["additionalProperties"])


def _size(name: str, schema: dict[str, Any], of: str) -> Bound:
    if f"max{of}" not in schema:
        raise ValueError(f"{name} has no bound: give its field of the model `max_length`")
    return Bound(name, int(schema.get(f"min{of}", 0)), int(schema[f"max{of}"]))


def header_text() -> str:
    """Returns `engine/src/plan_bounds.hpp`."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Limits that both workers share. Made by `{COMMAND}`: change the models instead.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace lagometer::engine {",
        "",
        "/// Both included; whole multiples of `step`.",
        "template <typename Number>",
        "struct Bounds {",
        "  Number low;",
        "  Number high;",
        "  Number step = 1;",
        "};",
        "",
    ]
    for name, value, meaning in CONSTANTS:
        bound = Bound(name, 0, value)
        lines.append(f"/// {meaning[0].upper()}{meaning[1:]}.")
        lines.append(f"inline constexpr {bound.cpp_type} {_cpp_constant(name)} = {value};")
    lines += [
        "",
        "/// By model: of its numbers, of the lengths of its texts and lists.",
    ]
    lines += ["namespace plan_bounds {", ""]
    for model, model_bounds in _all_bounds():
        lines.append(f"struct {model.__name__} {{")
        lines += [
            f"  static constexpr Bounds<{bound.cpp_type}> {bound.name}{{{_cpp_values(bound)}}};"
            for bound in model_bounds
        ]
        lines += ["};", ""]
    lines += ["}  // namespace plan_bounds", "}  // namespace lagometer::engine"]
    return "\n".join(lines) + "\n"


def module_text() -> str:
    """Returns `lagometer/worker_python/plan_bounds.py`."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f'"""Limits that both workers share. Made by `{COMMAND}`: change the models."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import NamedTuple",
        "",
        "",
        "class Bounds(NamedTuple):",
        '    """Both included; whole multiples of `step`."""',
        "",
        "    low: int",
        "    high: int",
        "    step: int = 1",
        "",
        "",
    ]
    for name, value, meaning in CONSTANTS:
        lines.append(f"{name.upper()} = {value:_}  # {meaning}")
    for model, model_bounds in _all_bounds():
        lines += [
            "",
            "",
            f"class {model.__name__}:",
            f'    """Bounds of a plan\'s `{model.__name__}`."""',
            "",
        ]
        lines += [
            f"    {field_bound.name.upper()} = Bounds({_python_values(field_bound)})"
            for field_bound in model_bounds
        ]
    return "\n".join(lines) + "\n"


def _all_bounds() -> Iterator[tuple[type[PlanModel], list[Bound]]]:
    for model in models():
        if model_bounds := list(bounds(model)):
            yield model, model_bounds


def _cpp_constant(name: str) -> str:
    stem, unit = (name[:-3], "_ns") if name.endswith("_ns") else (name, "")
    return "k" + "".join(word.capitalize() for word in stem.split("_")) + unit


def _cpp_values(bound: Bound) -> str:
    suffix = "U" if bound.cpp_type.startswith("uint") else ".0" if not bound.whole else ""
    numbers = [bound.low, bound.high] + ([bound.step] if bound.step != 1 else [])
    return ", ".join(f"{number}{suffix}" for number in numbers)


def _python_values(bound: Bound) -> str:
    return f"{bound.low:_}, {bound.high:_}" + (f", {bound.step}" if bound.step != 1 else "")


if __name__ == "__main__":
    (ROOT / HEADER).write_text(header_text(), encoding="utf-8")
    (ROOT / MODULE).write_text(module_text(), encoding="utf-8")
