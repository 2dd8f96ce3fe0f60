# SPDX-License-Identifier: Apache-2.0
"""Workloads: the graphs that are built in, and those that are files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lagometer.errors import BadInput
from lagometer.run.worker.plan import HOUR_NS
from lagometer.study.graph import Graph, Node, Rule, Stream
from lagometer.study.workload import SHIPPED_FOLDERS, built_in_workload, find_workload
from lagometer.study.workload_file import load_workload
from lagometer.study.workload_life import LATEST_START_NS
from lagometer.units import UnitError

HERE = Path(__file__).parent


def built_in(name: str) -> Graph:
    graph = built_in_workload(name)
    assert graph is not None
    return graph


def edges(graph: Graph) -> list[str]:
    return [edge.name for edge in graph.edges()]


def test_pipeline() -> None:
    graph = built_in("pipeline-4")
    assert graph.node_names == ("source", "relay-1", "relay-2", "sink")
    assert edges(graph) == ["source→relay-1", "relay-1→relay-2", "relay-2→sink"]
    assert (graph.source_streams(), graph.sink_edges()) == (frozenset({0}), {"relay-2→sink"})
    assert edges(built_in("pipeline-2")) == ["source→sink"]


def test_fanout_and_fanin() -> None:
    fanout = built_in("fanout-2")
    assert edges(fanout) == ["source→sink-1", "source→sink-2"]
    assert len(fanout.streams) == 1
    assert fanout.sink_edges() == {"source→sink-1", "source→sink-2"}
    fanin = built_in("fanin-3")
    assert edges(fanin) == ["source-1→sink", "source-2→sink", "source-3→sink"]
    assert fanin.source_streams() == frozenset({0, 1, 2})
    assert fanin.rules_of("sink")[0].trigger == "any"


def test_pingpong_is_a_closed_loop() -> None:
    graph = built_in("pingpong")
    assert edges(graph) == ["ping→pong", "pong→ping"]
    assert graph.closed_loop
    assert not graph.follows_rate
    assert (graph.source_streams(), graph.sink_edges()) == (frozenset({0}), {"pong→ping"})


def test_edges_between_the_same_nodes_are_told_apart_by_topic() -> None:
    graph = Graph(
        name="two",
        nodes=(Node("a"), Node("b"), Node("c")),
        streams=(Stream("a", "x", ("b", "c")), Stream("a", "y", ("b",)), Stream("c", "x", ("b",))),
        rules=(Rule("a", "timer", writes=("x", "y")), Rule("b", "any", reads=("x", "y"))),
    )
    assert edges(graph) == ["a→b:x", "a→c", "a→b:y", "c→b"]
    assert graph.streams_on("x") == (0, 2)
    with pytest.raises(KeyError):
        graph.stream_number("b", "x")


@pytest.mark.parametrize("name", ["pipeline-1", "fanout-0", "fanin-1001", "pipeline-99999"])
def test_sizes_are_bounded(name: str) -> None:
    with pytest.raises(UnitError):
        find_workload(name, HERE)


def test_those_that_ship_are_valid() -> None:
    paths = sorted(SHIPPED_FOLDERS[0].glob("*.yaml"))
    names = ["across-domains", "action", "d435", "dds-to-ros1", "diamond", "pictures-to-cloud"]
    names += ["request-reply", "ros1-to-dds", "ros1-to-ros2", "ros2-to-ros1", "sensor-fusion", "two-domains"]
    assert [path.stem for path in paths] == names
    for path in paths:
        graph = load_workload(path)
        assert graph.name == path.stem
        assert graph == find_workload(path.stem, HERE) == find_workload(str(path), HERE)


def test_sensor_fusion_has_every_trigger() -> None:
    graph = find_workload("sensor-fusion", HERE).resolved(10_000_000, 0)
    assert {rule.trigger for rule in graph.rules} == {"timer", "any", "all"}
    periods = {rule.node: rule.period_ns for rule in graph.rules if rule.period_ns}
    assert periods == {
        "camera": 10_000_000,
        "lidar": 10_000_000,
        "odometry": 20_000_000,
        "planner": 50_000_000,
    }
    assert graph.source_streams() == frozenset({0, 1, 2})
    assert graph.sink_edges() == {"planner→controller", "fusion→monitor"}


def test_a_node_may_have_several_rules(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "nodes:\n"
        "  both:\n"
        "    rules:\n"
        "      - {trigger: timer, publishes: a, rate: 10Hz, offset: 5ms}\n"
        "      - {trigger: any, subscribes: b, work: busy-1ms}\n"
        "  other: {trigger: any, subscribes: [a], publishes: [b]}\n"
    )
    graph = load_workload(path)
    assert graph.name == "mine"
    assert len(graph.rules_of("both")) == 2
    assert graph.rules_of("both")[0].offset_ns == 5_000_000
    assert not graph.follows_rate


CIRCLE = """
nodes:
  t: {trigger: any, subscribes: [a], publishes: [b]}
  u: {trigger: any, subscribes: [b], publishes: [a]}
"""
LATE = """nodes:
  a: {{trigger: timer, publishes: x, {a}}}
  b: {{trigger: any, subscribes: x, {b}}}
"""
SOURCE = "nodes:\n  s: {trigger: timer, publishes: [a]}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes: {}\n", "no node is described"),
        ("name: x\n", "no node is described"),
        ("nodes: [a]\n", "no node is described"),
        (SOURCE, "w.yaml:2: nodes.s: no node subscribes to the topic 'a'"),
        (SOURCE + "  t: {trigger: any, subscribes: [b]}\n", "no node publishes the topic 'b'"),
        (SOURCE + "  t: {triger: any, subscribes: [a]}\n", "unknown key 'triger' (did you mean 'trigger'?)"),
        (SOURCE + "  t: {subscribes: [a]}\n", "has no trigger"),
        (
            SOURCE + "  t: {trigger: some, subscribes: [a]}\n",
            "unknown value 'some'; known are: timer, any, all",
        ),
        (SOURCE + "  t: {trigger: any}\n", "needs topics to subscribe to"),
        (SOURCE + "  t: {trigger: timer, subscribes: [a]}\n", "needs topics to publish"),
        (SOURCE + "  t: {trigger: any, subscribes: [a], rate: 5Hz}\n", "which only a timer has"),
        (SOURCE + "  t: {trigger: any, subscribes: [a, a]}\n", "names the topic 'a' twice"),
        (SOURCE + "  t: {trigger: any, subscribes: [a], work: 1ms}\n", "'1ms' is not work"),
        (
            SOURCE + "  t: {trigger: any, subscribes: [a], publishes: [a]}\n",
            "publishes the topic 'a' that it",
        ),
        (SOURCE + "  t: any\n", "w.yaml:3: nodes.t: is not a node"),
        (SOURCE + "  t: {rules: any}\n", "is not a list of rules"),
        (
            SOURCE + "  t: {trigger: any, subscribes: [a]}\n  u: {rules: []}\n",
            "w.yaml:4: nodes.u.rules: is an",
        ),
        (
            LATE.format(a="offset: 2h", b=""),
            "w.yaml:2: nodes.a.offset: '2h' is later than 1h after the start",
        ),
        (
            LATE.format(a="start: 61m", b=""),
            "w.yaml:2: nodes.a.start: '61m' is later than 1h after the start",
        ),
        (LATE.format(a="", b="start: 2h"), "w.yaml:3: nodes.b.start: '2h' is later than 1h after the start"),
        (LATE.format(a="", b="restart: 2h"), "w.yaml:3: nodes.b.restart: '2h' is later than 1h after"),
        (
            LATE.format(a="start: 40m, offset: 40m", b=""),
            "w.yaml:2: nodes.a: its timer first fires later than",
        ),
        (LATE.format(a="restart: 40m, offset: 40m", b=""), "w.yaml:2: nodes.a: its timer first fires later"),
        (SOURCE + "  t: {rules: [], trigger: any}\n", "move them into `rules`"),
        (SOURCE + "  'a b': {trigger: any, subscribes: [a]}\n", "'a b' is not a name for a node"),
        (
            SOURCE + "  t: {rules: [{trigger: any, subscribes: a}, {trigger: any, subscribes: a}]}\n",
            "in two rules of one",
        ),
        (
            CIRCLE,
            "the graph has a cycle: t → u → t",
        ),
        ("nodes:\n  t: {trigger: any, subscribes: [a], publishes: [a]}\n", "nothing starts a message"),
        (
            "nme: x\n" + SOURCE + "  t: {trigger: any, subscribes: [a]}\n",
            "unknown key 'nme' (did you mean 'name'?)",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        load_workload(path)
    assert said in str(caught.value)


def test_times_of_an_hour_fit_into_a_plan(tmp_path: Path) -> None:
    """A workload may have every time that a worker's plan may have, and no other."""
    path = tmp_path / "w.yaml"
    path.write_text(LATE.format(a="offset: 1h", b="restart: 1h, stop: 5h"))
    graph = load_workload(path)
    assert graph.rules[0].offset_ns == graph.start_ns("b-again") == LATEST_START_NS == HOUR_NS
    assert graph.stop_ns("b-again") == 5 * HOUR_NS


@pytest.mark.parametrize("name", ["pingpong", "pipeline-3"])
def test_a_file_may_not_bear_the_name_of_a_built_in(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"name: {name}\n" + SOURCE + "  t: {trigger: any, subscribes: [a]}\n")
    with pytest.raises(BadInput, match="built-in"):
        find_workload("mine.yaml", tmp_path)


def test_a_deep_graph_is_no_trouble(tmp_path: Path) -> None:
    lines = ["nodes:", "  n0: {trigger: timer, publishes: [t0]}"]
    lines += [f"  n{i}: {{trigger: any, subscribes: [t{i - 1}], publishes: [t{i}]}}" for i in range(1, 900)]
    lines += ["  end: {trigger: any, subscribes: [t899]}"]
    path = tmp_path / "deep.yaml"
    path.write_text("\n".join(lines))
    assert len(load_workload(path).nodes) == 901
