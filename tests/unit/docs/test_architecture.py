# SPDX-License-Identifier: Apache-2.0
"""ARCHITECTURE.md: no modules import each other in a circle, and its drawing has every room of run and stats.

import-linter only checks the rooms.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "lagometer"


class Import(NamedTuple):
    """`from module import name as bound`; `import module` has no name."""

    module: str
    name: str
    bound: str


def modules_of(package: Path) -> dict[str, Path]:
    paths = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imports_of(module: str, path: Path) -> Iterator[Import]:
    """All imports, including those in functions and under `if TYPE_CHECKING`."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "", "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            yield from (Import(origin, alias.name, alias.asname or alias.name) for alias in node.names)


class Graph:
    """Which module of a package uses which.

    A name that a package only re-exports leads to the module that defines it, unless a module inside that
    package asks for it: this module would be imported while the package is.
    """

    def __init__(self, package: Path) -> None:
        self._paths = modules_of(package)
        self._imports = {module: list(imports_of(module, path)) for module, path in self._paths.items()}

    def edges(self) -> dict[str, set[str]]:
        return {
            module: {used for each in imports if (used := self._used(module, each)) not in (None, module)}
            for module, imports in self._imports.items()
        }

    def _used(self, importer: str, wanted: Import) -> str | None:
        """The module that an import leads to; None if it is not in the package."""
        if f"{wanted.module}.{wanted.name}" in self._paths:
            return f"{wanted.module}.{wanted.name}"
        if wanted.module not in self._paths:
            return None
        inside = f"{importer}.".startswith(f"{wanted.module}.")
        if wanted.name and not inside and self._paths[wanted.module].name == "__init__.py":
            for passed_on in self._imports[wanted.module]:
                if passed_on.bound == wanted.name:
                    return self._used(wanted.module, passed_on)
        return wanted.module


def circle(edges: Mapping[str, set[str]]) -> list[str]:
    """Modules that use each other, the first again at the end; empty if there are none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other() -> None:
    edges = Graph(PACKAGE).edges()
    assert len(edges) > 300 and sum(map(len, edges.values())) > 1000
    assert circle(edges) == []


@pytest.mark.parametrize(
    ("b", "room", "in_circle"),
    [
        ("import os", "from made.room.c import C", set()),
        ("from made.a import A", "", {"made.a", "made.b"}),
        ("from made import a", "", {"made.a", "made.b"}),
        ("import made.a", "", {"made.a", "made.b"}),
        ("from .a import A", "", {"made.a", "made.b"}),
        ("def f():\n    from made.a import A", "", {"made.a", "made.b"}),
        ("if TYPE_CHECKING:\n    from made.a import A", "", {"made.a", "made.b"}),
        ("from made.room import C", "from made.room.c import C", {"made.a", "made.b", "made.room.c"}),
        ("from made.room import D", "from made.room.c import C as D", {"made.a", "made.b", "made.room.c"}),
        ("from made.room import E", "from made.room.c import C\nE = 1", set()),
    ],
)
def test_a_made_up_circle_is_found(tmp_path: Path, b: str, room: str, in_circle: set[str]) -> None:
    package = tmp_path / "made"
    (package / "room").mkdir(parents=True)
    texts = {
        "__init__": "",
        "a": "from made.b import B",
        "b": b,
        "room/__init__": room,
        "room/c": "from made.a import A" if len(in_circle) == 3 else "",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    assert set(circle(Graph(package).edges())) == in_circle


def test_a_module_that_asks_its_own_package_is_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("from made.a import A\nfrom made.b import B")
    (tmp_path / "made" / "a.py").write_text("from made import B")
    (tmp_path / "made" / "b.py").write_text("")
    assert set(circle(Graph(tmp_path / "made").edges())) == {"made", "made.a"}


@pytest.mark.parametrize("package", [".", "run", "stats"])
def test_the_drawing_has_every_room(package: str) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawing = text.partition("## Who may import whom")[2].partition("What may surprise you")[0]
    rooms = {path.parent.name for path in (PACKAGE / package).glob("*/__init__.py")}
    assert rooms and sorted(room for room in rooms if room not in drawing) == []


def test_each_room_has_unit_tests_of_its_name() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    tested = {path.parent.name for path in (ROOT / "tests" / "unit").glob("*/test_*.py")}
    assert len(rooms) > 10 and sorted(rooms - tested) == []
