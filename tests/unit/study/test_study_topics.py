# SPDX-License-Identifier: Apache-2.0
"""Workloads with traffic of their own: topics, groups, chains, feedback, and what they come to in cells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.facts import chain_specs, edge_specs
from lagometer.run.worker.layout import worker_plans
from lagometer.run.worker.plan import Plan
from lagometer.study import Cell, Expansion, expand, study_from_mapping
from lagometer.study.graph import Graph
from lagometer.study.hosts import Host, host_of_nodes
from lagometer.study.workload_file import load_workload

ROBOT = """
topics:
  image:  {payload: 900KB, reliability: best_effort, depth: 1}
  points: {payload: {lognormal: {median: 600KB, sigma: 0.2}}, content: random}
  pose:   {payload: 713B, reliability: reliable, domain: 3}
nodes:
  camera:  {trigger: timer, rate: 30Hz, publishes: [image]}
  lidar:   {trigger: timer, rate: 10Hz, jitter: 4ms, publishes: [points]}
  ekf:     {trigger: timer, rate: 50Hz, subscribes: [points], publishes: [pose]}
  planner: {trigger: any, subscribes: [image, pose], work: busy-2ms}
groups:
  sensing: [camera, lidar]
  driving: {nodes: [ekf, planner], cpus: "1", scheduling: fifo, priority: 40}
chains: {lidar-to-plan: [points, pose], seen: [camera, planner]}
"""


def graph_of(tmp_path: Path, text: str) -> Graph:
    path = tmp_path / "robot.yaml"
    path.write_text(text)
    return load_workload(path)


def expansion(tmp_path: Path, text: str = ROBOT, **matrix: Any) -> tuple[Expansion, Any, Any]:
    path = tmp_path / "robot.yaml"
    path.write_text(text)
    adapters = write_adapters(tmp_path)
    mapping = {"name": "x", "matrix": {"adapter": "cyclonedds", "workload": str(path), **matrix}}
    study = study_from_mapping(mapping, "test")
    return expand(study, adapters, cpus=(0, 1)), study, adapters


def plans_of(tmp_path: Path, text: str = ROBOT, **matrix: Any) -> tuple[Cell, list[Plan]]:
    found, study, adapters = expansion(tmp_path, text, **matrix)
    assert found.cells, found.excluded
    return found.cells[0], worker_plans(study, found.cells[0], 0, adapters)


def test_a_name_that_the_middleware_refuses_excludes_the_cell(tmp_path: Path) -> None:
    text = ROBOT.replace("pose", "pose-2")
    found, _, _ = expansion(tmp_path, text, adapter=["cyclonedds", "shm"], dispatch="poll")
    assert [cell.id.split("/")[0] for cell in found.cells] == ["shm"]
    (excluded,) = found.excluded
    assert "cyclonedds refuses the topic's name 'pose-2': letters and digits; rename it" in excluded.reason


def test_each_topic_has_its_own_payload_qos_and_domain(tmp_path: Path) -> None:
    cell, plans = plans_of(tmp_path, dispatch="poll", payload="64B")
    assert (cell.traffic["image"].payload_bytes, cell.traffic["image"].depth) == (921_600, 1)
    assert cell.traffic["points"].reliability == "best_effort"  # what it does not say follows the cell
    camera, lidar, ekf, planner = (plan.nodes[0] for plan in plans)
    assert camera.writers[0].qos.model_dump(exclude_none=True)["depth"] == 1
    points = lidar.writers[0]
    assert len(points.sizes_bytes) == 1024
    assert points.payload_bytes == max(points.sizes_bytes)
    assert 590_000 < sorted(points.sizes_bytes)[512] < 640_000
    assert points.content is not None
    assert points.content.kind == "random"
    assert camera.writers[0].content is None
    assert (ekf.readers[0].sizes_vary, ekf.readers[0].payload_bytes) == (True, points.payload_bytes)
    # The planner's two topics are in two domains, so it has two participants.
    assert [context.domain for context in plans[3].contexts] == [0, 3]
    assert [reader.context for reader in planner.readers] == [0, 1]
    assert ekf.writers[0].qos.reliability == "reliable"


def test_drawn_sizes_are_the_same_in_all_cells_and_another_seed_draws_others(tmp_path: Path) -> None:
    first, _ = plans_of(tmp_path, dispatch="poll", payload="64B")
    again, _ = plans_of(tmp_path, dispatch="poll", payload="1KB")
    assert first.traffic["points"].sizes_bytes == again.traffic["points"].sizes_bytes
    found, study, adapters = expansion(tmp_path, dispatch="poll")
    mapping = {
        "name": "x",
        "seed": 2,
        "matrix": {name: list(values) for name, values in study.matrix.items()},
    }
    mapping["matrix"]["workload"] = str(tmp_path / "robot.yaml")
    other = expand(study_from_mapping(mapping, "test"), adapters, cpus=(0, 1)).cells[0]
    assert other.traffic["points"].sizes_bytes != found.cells[0].traffic["points"].sizes_bytes


def test_what_is_lost_is_known_to_be_as_large_as_it_was_made(tmp_path: Path) -> None:
    cell, plans = plans_of(tmp_path, dispatch="poll")
    spec = next(edge for edge in edge_specs(cell) if edge.name == "lidar→ekf")
    assert spec.sizes_bytes == tuple(plans[1].nodes[0].writers[0].sizes_bytes)


def test_a_placement_by_groups_has_a_worker_for_each(tmp_path: Path) -> None:
    cell, plans = plans_of(tmp_path, placement="groups", dispatch="poll")
    assert [plan.worker.name for plan in plans] == ["sensing", "driving"]
    assert [[node.name for node in plan.nodes] for plan in plans] == [["camera", "lidar"], ["ekf", "planner"]]
    assert plans[1].scheduling.model_dump(exclude={"lock_memory"}) == {
        "policy": "fifo",
        "priority": 40,
        "cpus": [1],
    }
    assert plans[0].scheduling.policy == "other"
    assert edge_specs(cell)[0].receiver_start == 3


PLACEMENTS = """
placements:
  coarse: {all-but-one: [camera, lidar, ekf]}
  split: {driving: {nodes: [planner, ekf], priority: 7}}
"""


def test_a_placement_by_name_has_groups_of_its_own(tmp_path: Path) -> None:
    placements = ["single-process", "groups", "coarse", "split"]
    found, study, adapters = expansion(tmp_path, ROBOT + PLACEMENTS, placement=placements, dispatch="poll")
    assert [cell.workers for cell in found.cells] == [
        (("camera", "lidar", "ekf", "planner"),),
        (("camera", "lidar"), ("ekf", "planner")),
        (("camera", "lidar", "ekf"), ("planner",)),
        (("planner", "ekf"), ("camera",), ("lidar",)),
    ]
    assert [cell.id.split("/")[-1] for cell in found.cells] == placements
    plans = worker_plans(study, found.cells[3], 0, adapters)
    assert [plan.worker.name for plan in plans] == ["driving", "camera", "lidar"]
    assert found.cells[3].groups[0] is not None and found.cells[3].groups[0].priority == 7


def test_nodes_are_divided_among_so_many_processes_in_their_order(tmp_path: Path) -> None:
    found, study, adapters = expansion(
        tmp_path, workload="pipeline-8", placement=["processes-3", "processes-8", "processes-9"]
    )
    assert [[len(nodes) for nodes in cell.workers] for cell in found.cells] == [[2, 3, 3], [1] * 8]
    nodes = [node for nodes in found.cells[0].workers for node in nodes]
    assert tuple(nodes) == found.cells[0].graph.node_names
    plans = worker_plans(study, found.cells[0], 0, adapters)
    assert [plan.worker.name for plan in plans] == ["process-1", "process-2", "process-3"]
    assert [each.reason for each in found.excluded] == ["pipeline-8 has 8 nodes, too few for 9 processes"]
    with pytest.raises(BadInput, match="unknown value 'processes-0'"):
        expansion(tmp_path, placement="processes-0")


def test_a_host_runs_the_groups_of_the_cells_placement(tmp_path: Path) -> None:
    """`driving` are other nodes in each of the two placements."""
    graph = graph_of(tmp_path, ROBOT + PLACEMENTS.replace("[planner, ekf]", "[planner, camera]"))
    hosts = {"robot": Host(), "base": Host(runs=("driving",))}
    for placement, nodes in (("groups", {"ekf", "planner"}), ("split", {"planner", "camera"})):
        host_of = host_of_nodes("robot+base", hosts, graph, placement)
        assert {node for node, host in host_of.items() if host == "base"} == nodes


def test_a_placement_that_no_workload_has_is_refused_and_one_that_some_have_excludes_the_others(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadInput, match="unknown value 'splt'; did you mean 'split'"):
        expansion(tmp_path, ROBOT + PLACEMENTS, placement="splt")
    with pytest.raises(BadInput, match="unknown value 'proces-per-node'; did you mean 'process-per-node'"):
        expansion(tmp_path, placement="proces-per-node")
    robot = tmp_path / "robot.yaml"
    found, _, _ = expansion(
        tmp_path, ROBOT + PLACEMENTS, placement="split", dispatch="poll", workload=[str(robot), "pipeline-2"]
    )
    assert [cell.graph.name for cell in found.cells] == ["robot"]
    assert [each.reason for each in found.excluded] == ["pipeline-2 has no placement 'split'"]


def test_a_participant_per_node_is_a_context_of_its_own(tmp_path: Path) -> None:
    _, shared = plans_of(tmp_path, placement="groups", dispatch="poll")
    _, own = plans_of(tmp_path, placement="groups", dispatch="poll", participants="per-node")
    assert [len(plan.contexts) for plan in shared] == [1, 2]
    assert [[context.name for context in plan.contexts] for plan in own] == [
        ["camera", "lidar"],
        ["ekf", "ekf", "planner", "planner"],
    ]
    assert own[0].adapters[0].network == {"loopback": True, "peers": 6}
    found, _, _ = expansion(tmp_path, dispatch="poll", participants="per-node")
    assert "each process has one node" in found.excluded[0].reason


def test_jitter_moves_firings_but_not_their_mean(tmp_path: Path) -> None:
    _, plans = plans_of(tmp_path, dispatch="poll")
    schedule = plans[1].nodes[0].rules[0].model_dump()["schedule"]
    intervals = schedule["intervals_ns"]
    assert sum(intervals) == len(intervals) * 100_000_000
    assert min(intervals) >= 96_000_000
    assert max(intervals) <= 104_000_000
    assert len(set(intervals)) > 1000


def test_chains_are_ways_through_the_graph(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, ROBOT)
    specs = chain_specs(graph, lambda *_: False)
    assert [(chain.name, chain.edges, chain.returns) for chain in specs] == [
        ("lidar-to-plan", ("lidar→ekf", "ekf→planner"), False),
        ("seen", ("camera→planner",), False),
    ]


FEEDBACK = """
nodes:
  lidar:     {trigger: timer, rate: 10Hz, publishes: [points]}
  matcher:   {trigger: any, subscribes: [points], uses: [pose], publishes: [match]}
  localizer: {trigger: any, subscribes: [match], publishes: [pose]}
  planner:   {trigger: any, subscribes: [pose]}
"""


def test_feedback_is_allowed_where_a_node_uses_what_comes_back(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, FEEDBACK)
    assert graph.source_streams() == {0}
    assert graph.sink_edges() == {"localizer→planner"}
    _, plans = plans_of(tmp_path, FEEDBACK)
    rule = plans[1].nodes[0].rules[0].model_dump()
    assert (rule["readers"], rule["uses"]) == ([0], [1])
    with pytest.raises(BadInput, match="cycle: matcher → localizer → matcher"):
        graph_of(tmp_path, FEEDBACK.replace("[points], uses: [pose]", "[points, pose]"))


def test_what_a_timer_reads_of_its_own_consequences_is_used(tmp_path: Path) -> None:
    text = FEEDBACK.replace(
        "trigger: any, subscribes: [match]", "trigger: timer, rate: 20Hz, subscribes: [match]"
    )
    graph = graph_of(
        tmp_path, text.replace("subscribes: [points], uses: [pose]", "subscribes: [points, pose]")
    )
    localizer = graph.rules_of("localizer")[0]
    assert (localizer.reads, localizer.uses) == ((), ("match",))
    assert localizer.is_source  # else the way back to a root would go round for ever


WRONG = [
    ("topics: {imagee: {payload: 1KB}}", "no node publishes the topic 'imagee'.*did you mean 'image'"),
    ("topics: {image: {payloads: 1KB}}", "unknown key 'payloads'.*did you mean 'payload'"),
    ("topics: {image: {payload: {lognormal: {median: 1KB}}}}", "takes the keys 'median' and 'sigma'"),
    ("topics: {image: {payload: {gamma: {a: 1}}}}", "unknown distribution 'gamma'"),
    ("topics: {image: {payload: {recorded: nowhere.txt}}}", "'nowhere.txt' is neither in"),
    ("topics: {image: {payload: {uniform: {min: 2KB, max: 1KB}}}}", "'max' below its 'min'"),
    ("topics: {image: {deadline: 1ns}}", "not between 1us and 1h"),
    ("groups: {all: [camera, lidar, nobody]}", "no node 'nobody'"),
    ("groups: {one: [camera], two: [camera]}", "is in the group one already"),
    ("groups: {one: {nodes: [camera], cpu: 1}}", "unknown key 'cpu'.*did you mean 'cpus'"),
    ("groups: {one: {nodes: [camera], priority: 100}}", "not between 1 and 99"),
    ("placements: [split]", "has no placements under it"),
    ("placements: {groups: {a: [camera]}}", "'groups' is a placement that every study has"),
    ("placements: {processes-2: {a: [camera]}}", "'processes-2' is a placement that every study has"),
    ("placements: {split: {a: [camera], b: [camera]}}", "is in the group a already"),
    ("chains: {one: [image, points]}", "no data goes along image → points"),
    ("chains: {one: [imge]}", "neither a topic nor a node: 'imge'"),
    ("chains: {end-to-end: [image]}", "name of what all sinks take"),
    ("chains: {one: image}", "not a list of topics and nodes"),
]


@pytest.mark.parametrize(("part", "message"), WRONG)
def test_what_is_wrong_is_named(tmp_path: Path, part: str, message: str) -> None:
    nodes = ROBOT[ROBOT.index("nodes:") : ROBOT.index("groups:")]
    with pytest.raises(BadInput) as caught:
        graph_of(tmp_path, f"{part}\n{nodes}")
    assert len(caught.value.problems) == 1
    problem = caught.value.problems[0]
    assert re.search(message, f"{problem.what} {problem.hint}", re.DOTALL), problem


def test_an_ambiguous_chain_names_its_ways(tmp_path: Path) -> None:
    text = (
        "nodes:\n  a: {trigger: timer, publishes: [x]}\n  b: {trigger: any, subscribes: [x]}\n"
        "  c: {trigger: any, subscribes: [x]}\nchains: {one: [x]}\n"
    )
    with pytest.raises(BadInput, match="2 ways go along x: a → b or a → c"):
        graph_of(tmp_path, text)
    named = graph_of(tmp_path, text.replace("{one: [x]}", "{one: [x, c]}"))
    assert named.chains[0].edges == ("a→c",)


def test_a_waitset_over_two_domains_needs_an_adapter_that_can(tmp_path: Path) -> None:
    found, _, _ = expansion(tmp_path, adapter="shm", dispatch="waitset")
    assert not found.cells
    assert "shm" in found.excluded[0].reason


def test_recorded_sizes_and_times_are_used_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "sizes.txt").write_text("# bytes\n1KB\n2KB\n\n")
    (tmp_path / "times.txt").write_text("1ms\n3ms # slow\n")
    text = (
        "topics: {x: {payload: {recorded: sizes.txt}}}\nnodes:\n  a: {trigger: timer, publishes: [x]}\n"
        "  b: {trigger: any, subscribes: [x], work: {recorded: times.txt}}\n"
    )
    _, plans = plans_of(tmp_path, text)
    assert plans[0].nodes[0].writers[0].sizes_bytes == [1024, 2048]
    work = plans[1].nodes[0].rules[0].work
    assert work is not None
    assert work.model_dump() == {"kind": "recorded", "times_ns": [1_000_000, 3_000_000]}


def test_a_payload_without_an_envelope_needs_one_publisher(tmp_path: Path) -> None:
    text = (
        "nodes:\n  a: {trigger: timer, publishes: [x]}\n  b: {trigger: timer, publishes: [x]}\n"
        "  c: {trigger: any, subscribes: [x]}\n"
    )
    found, _, _ = expansion(tmp_path, text, adapter="shm", payload="15B")
    assert "a payload of 15B does not say who sent it, and 2 nodes publish 'x'" in found.excluded[0].reason
    assert expansion(tmp_path, text, adapter="shm", payload="16B")[0].cells


def test_a_payload_without_an_envelope_needs_a_publisher_that_is_there_first(tmp_path: Path) -> None:
    """Its subscriber waits for nobody then, so it could not say whose the message is."""
    a, b = "{{trigger: timer, publishes: [x], start: {}}}", "{{trigger: any, subscribes: [x], start: {}}}"
    nodes = f"nodes:\n  a: {a}\n  b: {b}\n"
    late = nodes.format("20ms", "10ms")
    found, _, _ = expansion(tmp_path, late, adapter="shm", payload="15B")
    assert "15B does not say who sent it, and a, which publishes 'x', joins after" in found.excluded[0].reason
    assert expansion(tmp_path, late, adapter="shm", payload="16B")[0].cells
    in_time = nodes.format("10ms", "10ms")
    assert expansion(tmp_path, in_time, adapter="shm", payload="15B")[0].cells


def test_a_factor_that_no_topic_follows_is_measured_once(tmp_path: Path) -> None:
    found, _, _ = expansion(tmp_path, dispatch="poll", payload=["64B", "1KB"], domain=[0, 1])
    assert [cell.id.split("/")[2:] for cell in found.cells] == [
        ["64B", "poll", "domain-0"],
        ["64B", "poll", "domain-1"],
    ]
    assert found.cells[0].columns()["payload_bytes"] is None
    assert "every topic of robot has its own payload: measured once" in found.excluded[0].reason


BRIDGE = (
    "topics: {x: {adapter: cyclonedds}, y: {adapter: fastdds}}\nnodes:\n"
    "  a: {trigger: timer, publishes: [x]}\n  b: {trigger: any, subscribes: [x], publishes: [y]}\n"
    "  c: {trigger: any, subscribes: [y]}\n"
)


def test_a_cell_is_of_the_adapters_that_its_topics_have(tmp_path: Path) -> None:
    found, _, _ = expansion(tmp_path, BRIDGE, adapter=["shm", "fastdds", "cyclonedds"])
    (cell,) = found.cells
    assert (cell.id, cell.columns()["adapter"]) == ("fastdds/robot", "cyclonedds,fastdds")
    assert [each.reason for each in found.excluded] == [
        "every topic of robot has its own adapter, and none has shm: write `adapter: cyclonedds`",
        "every topic of robot has its own adapter: measured once",
    ]
    partly = BRIDGE.replace("y: {adapter: fastdds}", "y: {depth: 3}")
    found, _, _ = expansion(tmp_path, partly, adapter=["shm", "cyclonedds"])
    assert [cell.columns()["adapter"] for cell in found.cells] == ["cyclonedds,shm", "cyclonedds"]


def test_topics_may_go_through_adapters_of_their_own(tmp_path: Path) -> None:
    cell, plans = plans_of(tmp_path, BRIDGE, adapter="fastdds")
    assert cell.adapters == ("cyclonedds", "fastdds")
    assert [[adapter.name for adapter in plan.adapters] for plan in plans] == [
        ["cyclonedds"],
        ["fastdds", "cyclonedds"],
        ["fastdds"],
    ]
    with pytest.raises(BadInput, match=r"unknown adapter 'fastds'.*did you mean 'fastdds'"):
        expansion(tmp_path, BRIDGE.replace("fastdds", "fastds"), adapter="shm")
