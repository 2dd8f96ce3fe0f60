# SPDX-License-Identifier: Apache-2.0
"""Writes the names and arguments of ROS 2's trace functions, for each distribution, from tracetools' headers.

python tools/ros2_trace_table.py NAME=VERSION=HEADER ...   writes probes/ros2_trace.json and its C++
python tools/ros2_trace_table.py                           writes only the C++, from that table
python tools/ros2_trace_table.py --check                   exit 1 if the C++ does not match the table
python tools/ros2_trace_table.py --stub NAME               prints a library of that distribution, for tests

The headers stay outside the project: include/tracetools/tracetools.h of the package tracetools (repository
ros2/ros2_tracing), as each distribution released it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "probes" / "ros2_trace.json"
HEADER = ROOT / "probes" / "ros2_trace_functions.hpp"
REGISTERS = 6  # arguments that x86-64 passes in registers; aarch64 passes eight
# The first version of tracetools, as major.minor, with the functions of a distribution. Between Humble, Iron
# and Jazzy, some versions were only in Rolling; 8.0 gave rmw_publish its three arguments.
SINCE = {"humble": (4, 0), "iron": (5, 0), "jazzy": (8, 0), "kilted": (8, 5), "rolling": (8, 9)}
KNOWN_BEFORE_MAJOR = 9
WHOLE = ("*", "int64_t", "uint64_t", "size_t", "bool")  # passed in one integer register

Arguments = list[str]
Functions = dict[str, Arguments]

_DECLARED = re.compile(r"^_?DECLARE_TRACEPOINT\(\s*(\w+)\s*((?:,[^,)]*)*)\)", re.MULTILINE)


def functions_of(header: str) -> Functions:
    """The functions that a header declares, without `ros_trace_`: the type and name of each argument. Raises
    ValueError if an argument can't be forwarded unchanged."""
    found: Functions = {}
    for name, rest in _DECLARED.findall(header):
        arguments = [" ".join(part.split()) for part in rest.split(",")[1:]]
        for each in arguments:
            if not any(mark in each for mark in WHOLE):
                raise ValueError(f"{name}: '{each}' may travel in another register")
        if len(arguments) > REGISTERS:
            raise ValueError(f"{name}: its {len(arguments)} arguments do not fit in registers")
        found[name] = arguments
    if not found:
        raise ValueError("no function is declared")
    return found


def forms_of(header: str) -> list[str]:
    """The prefixes of each name: newer headers also have a query and a form without it."""
    return [form for form in ("", "enabled_", "do_") if f"ros_trace_{form} ## event_name" in header]


def table_of(given: Sequence[str]) -> dict[str, Any]:
    """The table from NAME=VERSION=HEADER. Raises ValueError, OSError."""
    distributions = {}
    for each in given:
        name, version, path = each.split("=", 2)
        header = Path(path).read_text(encoding="utf-8")
        distributions[name] = {
            "version": version,
            "since": list(SINCE[name]),
            "forms": forms_of(header),
            "functions": functions_of(header),
        }
    return {
        "note": "Made by tools/ros2_trace_table.py from include/tracetools/tracetools.h of tracetools "
        "(ros2/ros2_tracing, Apache-2.0), of the versions below as released. Lyrical's was not to be had: "
        "Rolling's of March 2026 stands for it.",
        "known_before_major": KNOWN_BEFORE_MAJOR,
        "distributions": distributions,
    }


def written(table: Mapping[str, Any]) -> str:
    """The table as text, one function per line."""
    text = json.dumps(table, indent=1)
    return re.sub(r"\[[^][{}]*\]", lambda each: re.sub(r"\s*\n\s*", " ", each[0]), text) + "\n"


def every_function(table: Mapping[str, Any]) -> Functions:
    """All functions of all distributions, each with the longest argument list of any."""
    found: Functions = {}
    for each in table["distributions"].values():
        for name, arguments in each["functions"].items():
            if len(arguments) >= len(found.get(name, [])):
                found[name] = arguments
    return dict(sorted(found.items()))


def type_of(argument: str) -> str:
    """The type of an argument, without its name."""
    return re.sub(r"\w+$", "", argument).strip()


def type_in_cpp(argument: str) -> str:
    """The type as our C++ files write it: without the const of a copy, and with the star next to the type."""
    kind = type_of(argument).replace(" *", "*")
    return kind if "*" in kind else kind.removeprefix("const ")


def render(table: Mapping[str, Any]) -> str:
    """The C++ that the probe includes."""
    functions = every_function(table)
    names = list(functions)
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "// Made by tools/ros2_trace_table.py from ros2_trace.json.",
        "// clang-format off",
        "#pragma once",
        "",
        "#include <array>",
        "#include <cstddef>",
        "#include <cstdint>",
        "#include <string_view>",
        "",
        "namespace lagometer::probes {",
        "",
        "/// ROS 2's trace functions, without `ros_trace_`.",
        "enum class Trace : uint8_t {",
        *(f"  {name}," for name in names),
        "};",
        f"constexpr size_t kTraces = {len(names)};",
        "constexpr std::array<const char*, kTraces> kTraceFunctions = {",
        *(f'    "ros_trace_{name}",' for name in names),
        "};",
        "",
        "/// A distribution of ROS 2: its name, the first major and minor version of its tracetools, which",
        "/// of the functions it has (bit: their place), and how many arguments rmw_publish has.",
        "struct Distribution {",
        "  std::string_view name;",
        "  uint16_t major;",
        "  uint16_t minor;",
        "  uint64_t functions;",
        "  uint8_t publish_arguments;",
        "};",
        f"constexpr uint16_t kKnownBeforeMajor = {table['known_before_major']};",
        f"constexpr std::array<Distribution, {len(table['distributions'])}> kDistributions = {{{{",
    ]
    for name, each in table["distributions"].items():
        bits = sum(1 << at for at, function in enumerate(names) if function in each["functions"])
        arguments = len(each["functions"]["rmw_publish"])
        lines.append(f'    {{"{name}", {each["since"][0]}, {each["since"][1]}, 0x{bits:x}, {arguments}}},')
    lines += ["}};", "", "}  // namespace lagometer::probes", ""]
    lines.append("// Of each its name, its arguments with types, and without.")
    lines.append("#define LAGOMETER_ROS2_FUNCTIONS(function) \\")
    for at, (name, arguments) in enumerate(functions.items()):
        typed = ", ".join(f"{type_in_cpp(each)} a{place}" for place, each in enumerate(arguments))
        plain = ", ".join(f"a{place}" for place in range(len(arguments)))
        lines.append(f"  function({name}, ({typed}), ({plain}))" + (" \\" if at + 1 < len(functions) else ""))
    lines.append("// clang-format on")
    return "\n".join(lines) + "\n"


def stub(table: Mapping[str, Any], name: str) -> str:
    """A C library with a distribution's functions. Each counts its calls and stores its arguments; `enabled`
    returns STUB_ENABLED."""
    each = table["distributions"][name]
    lines = ["#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>", "#include <stdlib.h>", ""]
    for function, arguments in each["functions"].items():
        typed = ", ".join(arguments) or "void"
        kept = "".join(
            f" stub_{function}_arguments[{place}] = (uint64_t)({argument.split()[-1].lstrip('*')});"
            for place, argument in enumerate(arguments)
        )
        lines.append(f"uint64_t stub_{function}_arguments[{REGISTERS}]; int stub_{function}_calls;")
        if "do_" in each["forms"]:
            lines += [
                f'bool ros_trace_enabled_{function}(void) {{ return getenv("STUB_ENABLED") != NULL; }}',
                f"void ros_trace_do_{function}({typed}) {{ ++stub_{function}_calls;{kept} }}",
                f"void ros_trace_{function}({typed}) {{ ++stub_{function}_calls;{kept} }}",
            ]
        else:
            lines.append(f"void ros_trace_{function}({typed}) {{ ++stub_{function}_calls;{kept} }}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Runs the command line."""
    if arguments and arguments[0] == "--stub":
        print(stub(json.loads(TABLE.read_text(encoding="utf-8")), arguments[1]), end="")
        return 0
    if arguments == ["--check"]:
        same = render(json.loads(TABLE.read_text(encoding="utf-8"))) == HEADER.read_text(encoding="utf-8")
        if not same:
            print(f"{HEADER.relative_to(ROOT)} does not fit its table: python {sys.argv[0]}", file=sys.stderr)
        return 0 if same else 1
    if arguments:
        TABLE.write_text(written(table_of(arguments)), encoding="utf-8")
    HEADER.write_text(render(json.loads(TABLE.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
