# SPDX-License-Identifier: Apache-2.0
"""The built-in workloads, and the search for workload files (docs/WORKLOADS.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from lagometer.errors import BadInput
from lagometer.study.document import is_file
from lagometer.study.graph import Chain, Graph, Node, Rule, Stream
from lagometer.study.values import nearest
from lagometer.study.workload_file import load_workload
from lagometer.units import UnitError

NODES_MAX = 1000

_FAMILY = re.compile(r"(pipeline|fanout|fanin)-([1-9][0-9]{0,5})")

_PACKAGE = Path(__file__).resolve().parent.parent
# In a checkout the folder is next to the package; `pip install` puts it inside.
SHIPPED_FOLDERS = (_PACKAGE.parent / "workloads", _PACKAGE / "workloads")


def find_workload(text: str, folder: Path) -> Graph:
    """The graph that `text` names in a study: a built-in, a name in a `workloads` folder, or a file's path.

    folder: tried first for relative paths (the study's own folder), before the working directory. Raises
    UnitError for an unknown workload, BadInput for an invalid file.
    """
    built_in = built_in_workload(text)
    if built_in is not None:
        return built_in
    if "/" in text or text.endswith((".yaml", ".yml")):
        for path in (folder / text, Path(text)):
            if is_file(path):
                return _from_file(path)
        raise UnitError(f"the workload file '{text}' is neither in {folder} nor in the working directory")
    folders = (folder / "workloads", folder.parent / "workloads", *SHIPPED_FOLDERS)
    for candidate in folders:
        if is_file(candidate / f"{text}.yaml"):
            return _from_file(candidate / f"{text}.yaml")
    known = {path.stem for candidate in folders if candidate.is_dir() for path in candidate.glob("*.yaml")}
    raise UnitError(f"unknown workload '{text}'; {nearest(text, _examples(text) + sorted(known))}")


def built_in_workload(text: str) -> Graph | None:
    """A workload of the table below, or None if `text` is not one. Raises UnitError for a size out
    of range."""
    if text in _SINGLES:
        return _SINGLES[text]()
    match = _FAMILY.fullmatch(text)
    if match is None:
        return None
    kind, size = match[1], int(match[2])
    build, smallest = _FAMILIES[kind]
    if not smallest <= size <= NODES_MAX:
        raise UnitError(f"the size in '{text}' is not between {smallest} and {NODES_MAX}")
    return build(text, size)


def _from_file(path: Path) -> Graph:
    """A file's graph. It must not have a built-in's name, since their results would look alike."""
    graph = load_workload(path)
    if graph.name in _SINGLES or _FAMILY.fullmatch(graph.name):
        raise BadInput(f"the name '{graph.name}' is a built-in workload's", f"{path}: name", "choose another")
    return graph


def _pingpong() -> Graph:
    """Two nodes, one message in flight: ping sends when it has the answer to the last one. Rates do not
    apply."""
    return Graph(
        name="pingpong",
        nodes=(Node("ping"), Node("pong")),
        streams=(Stream("ping", "ping", ("pong",)), Stream("pong", "pong", ("ping",))),
        rules=(
            Rule("ping", "closed_loop", reads=("pong",), writes=("ping",)),
            Rule("pong", "any", reads=("ping",), writes=("pong",)),
        ),
    )


def _roundtrip() -> Graph:
    """Ping sends at a rate, whatever happened to earlier messages; pong echoes each."""
    return Graph(
        name="roundtrip",
        nodes=(Node("ping"), Node("pong")),
        streams=(Stream("ping", "ping", ("pong",)), Stream("pong", "pong", ("ping",))),
        rules=(
            Rule("ping", "timer", writes=("ping",)),
            Rule("ping", "any", reads=("pong",)),
            Rule("pong", "any", reads=("ping",), writes=("pong",)),
        ),
        chains=(Chain("round-trip", ("ping→pong", "pong→ping")),),
    )


def _pipeline(name: str, size: int) -> Graph:
    """`size` nodes in a row: source, relay-1, …, sink."""
    names = ["source", *(f"relay-{number}" for number in range(1, size - 1)), "sink"]
    topics = [f"t{number}" for number in range(size - 1)]
    streams = tuple(Stream(names[i], topics[i], (names[i + 1],)) for i in range(size - 1))
    relays = tuple(
        Rule(names[i], "any", reads=(topics[i - 1],), writes=(topics[i],)) for i in range(1, size - 1)
    )
    source, sink = Rule("source", "timer", writes=(topics[0],)), Rule("sink", "any", reads=(topics[-1],))
    return Graph(name, tuple(Node(node) for node in names), streams, (source, *relays, sink))


def _fanout(name: str, size: int) -> Graph:
    """One source, one topic, `size` sinks."""
    sinks = tuple(f"sink-{number}" for number in range(1, size + 1))
    return Graph(
        name=name,
        nodes=(Node("source"), *(Node(sink) for sink in sinks)),
        streams=(Stream("source", "t0", sinks),),
        rules=(
            Rule("source", "timer", writes=("t0",)),
            *(Rule(sink, "any", reads=("t0",)) for sink in sinks),
        ),
    )


def _fanin(name: str, size: int) -> Graph:
    """`size` sources, each with a topic, and one sink that handles every message when it arrives."""
    sources = tuple(f"source-{number}" for number in range(1, size + 1))
    topics = tuple(f"t{number}" for number in range(size))
    return Graph(
        name=name,
        nodes=(*(Node(source) for source in sources), Node("sink")),
        streams=tuple(
            Stream(source, topic, ("sink",)) for source, topic in zip(sources, topics, strict=True)
        ),
        rules=(
            *(Rule(source, "timer", writes=(topic,)) for source, topic in zip(sources, topics, strict=True)),
            Rule("sink", "any", reads=topics),
        ),
    )


_SINGLES: dict[str, Callable[[], Graph]] = {"pingpong": _pingpong, "roundtrip": _roundtrip}
_FAMILIES: dict[str, tuple[Callable[[str, int], Graph], int]] = {
    "pipeline": (_pipeline, 2),
    "fanout": (_fanout, 1),
    "fanin": (_fanin, 1),
}


def _examples(text: str) -> list[str]:
    """Built-in names to compare a misspelled one with: of its own size, if it ends in one."""
    size = re.search(r"-?([0-9]+)$", text)
    number = size[1] if size else "N"
    return [*_SINGLES, *(f"{family}-{number}" for family in _FAMILIES)]
