# SPDX-License-Identifier: Apache-2.0
"""Request and reply in a workload file: the graph that it comes to, the plans, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.facts import chain_specs, edge_specs
from lagometer.run.worker.layout import stream_rates_hz, worker_plans
from lagometer.run.worker.plan import Answers, Plan
from lagometer.run.worker.waves import late_waves, replaced, waves
from lagometer.study import expand, study_from_mapping
from lagometer.study.graph import Graph
from lagometer.study.workload_file import load_workload

ASKED = """
services:
  plan: {request: {payload: 100B}, reply: {payload: 10KB, depth: 3}}
nodes:
  driver: {trigger: timer, rate: 100Hz, requests: [plan]}
  operator:
    rules:
      - {trigger: timer, rate: 20Hz, requests: [plan]}
      - {trigger: reply, service: plan, publishes: [route]}
  planner: {trigger: request, service: plan, uses: [map], work: busy-1ms}
  mapper: {trigger: timer, rate: 1Hz, publishes: [map]}
  screen: {trigger: any, subscribes: [route]}
"""
ACTED = """
nodes:
  pilot: {trigger: timer, rate: 10Hz, goals: [go]}
  navigator: {trigger: goal, action: go, work: {uniform: {min: 1ms, max: 2ms}}, feedback: 2}
"""


def read(tmp_path: Path, text: str) -> Graph:
    path = tmp_path / "workload.yaml"
    path.write_text(text)
    return load_workload(path)


def edges(graph: Graph) -> list[tuple[str, str, str]]:
    return [(edge.publisher, edge.topic, edge.subscriber) for edge in graph.edges()]


def no_bridge(*_: object) -> bool:
    return False


def test_a_service_is_a_topic_of_requests_and_one_of_replies_for_each_client(tmp_path: Path) -> None:
    graph = read(tmp_path, ASKED)
    assert edges(graph) == [
        ("driver", "plan.request", "planner"),
        ("operator", "plan.request", "planner"),
        ("operator", "route", "screen"),
        ("planner", "plan.reply.driver", "driver"),
        ("planner", "plan.reply.operator", "operator"),
        ("mapper", "map", "planner"),
    ]
    assert graph.answered == {3: 0, 4: 1}
    assert [chain.name for chain in graph.chains] == ["plan.driver", "plan.operator"]
    assert [spec.returns for spec in chain_specs(graph, no_bridge)] == [True, True]
    assert graph.chains[1].edges == ("operator→planner", "planner→operator")
    # Each client gets as many replies as it has requests, not as many as there are.
    assert [round(stream_rates_hz(graph.resolved(1, 0))[stream]) for stream in (0, 1, 3, 4)] == [
        100,
        20,
        100,
        20,
    ]


def test_what_a_service_says_of_its_messages_holds_for_all_clients(tmp_path: Path) -> None:
    topics = read(tmp_path, ASKED).topics
    assert (topics["plan.request"].payload_bytes, topics["plan.request"].reliability) == (100, "reliable")
    for client in ("driver", "operator"):
        reply = topics[f"plan.reply.{client}"]
        assert (reply.payload_bytes, reply.depth, reply.reliability) == (10_240, 3, "reliable")
    assert "route" not in topics


def test_an_action_is_two_services_and_a_topic(tmp_path: Path) -> None:
    graph = read(tmp_path, ACTED)
    assert edges(graph) == [
        ("pilot", "go.goal.request", "navigator"),
        ("navigator", "go.goal.reply", "pilot"),
        ("navigator", "go.feedback", "pilot"),
        ("navigator", "go.result.reply", "pilot"),
        ("pilot", "go.result.request", "navigator"),
    ]
    works = [(rule.writes, rule.work_ns, rule.step) for rule in graph.rules_of("navigator")]
    step_ns = works[1][1]
    assert step_ns is not None and 1_000_000 <= step_ns <= 2_000_000
    assert works == [
        (("go.goal.reply",), 0, 0),
        (("go.feedback",), step_ns, 0),
        (("go.feedback",), step_ns, 1),
        (("go.result.reply",), 0, 0),
    ]
    (chain,) = graph.chains
    assert (chain.name, len(chain.edges)) == ("go", 4)
    # To and fro twice: half of that is not half a round trip.
    assert [spec.returns for spec in chain_specs(graph, no_bridge)] == [False]


def test_a_service_is_reliable_where_topics_are_not(tmp_path: Path) -> None:
    """Of an action the goal and the result; its feedback is a topic like any other."""
    adapters = write_adapters(tmp_path)
    shm = adapters["shm"]
    lossy = shm.sidecar.abilities.model_copy(update={"reliability": ("best_effort",)})
    sidecar = shm.sidecar.model_copy(update={"abilities": lossy})
    adapters = {**adapters, "shm": replace(shm, sidecar=sidecar)}
    for reliability, cells in (("best_effort", 1), ("reliable", 0)):
        matrix = {"adapter": "shm", "workload": "action", "reliability": reliability}
        assert (
            len(expand(study_from_mapping({"name": "s", "matrix": matrix}, "test"), adapters).cells) == cells
        )


def test_replies_alone_may_come_in_another_order(tmp_path: Path) -> None:
    matrix = {"adapter": "shm", "workload": "request-reply"}
    (cell,) = expand(
        study_from_mapping({"name": "s", "matrix": matrix}, "test"), write_adapters(tmp_path)
    ).cells
    assert {spec.name: spec.in_order for spec in edge_specs(cell)} == {
        "driver→planner": True,
        "operator→planner": True,
        "planner→driver": False,
        "planner→operator": False,
    }


def test_a_deep_queue_of_requests_is_excluded_where_there_is_none(tmp_path: Path) -> None:
    adapters = write_adapters(tmp_path)
    shm = adapters["shm"]
    limits = shm.sidecar.limits.model_copy(
        update={"service_depth_max": 4, "service_depth_max_reason": "its queue of replies"}
    )
    sidecar = shm.sidecar.model_copy(update={"limits": limits})
    adapters = {**adapters, "shm": replace(shm, sidecar=sidecar)}
    for factors, cells in (({"depth": 4}, 1), ({"depth": 5}, 0), ({"history": "keep_all"}, 0)):
        matrix = {"adapter": "shm", "workload": "request-reply", **factors}
        found = expand(study_from_mapping({"name": "s", "matrix": matrix}, "test"), adapters)
        assert len(found.cells) == cells
        for excluded in found.excluded:
            assert "shm keeps at most 4 requests or replies: its queue of replies" in excluded.reason


def test_both_ends_are_named_in_the_plans(tmp_path: Path) -> None:
    (tmp_path / "asked.yaml").write_text(ASKED)
    matrix = {"adapter": "shm", "workload": str(tmp_path / "asked.yaml")}
    study = study_from_mapping({"name": "s", "matrix": matrix}, "test")
    adapters = write_adapters(tmp_path)
    (cell,) = expand(study, adapters).cells
    plans = {plan.worker.name: plan for plan in worker_plans(study, cell, 0, adapters)}
    (client,) = plans["driver"].nodes
    (requests,) = client.writers
    assert (requests.topic, requests.replied_on, requests.answers) == ("lagometer/plan", 0, None)
    assert (client.readers[0].topic, client.readers[0].streams) == ("lagometer/plan", [3])
    (server,) = plans["planner"].nodes
    assert [writer.answers for writer in server.writers] == [
        Answers(reader=0, stream=0),
        Answers(reader=0, stream=1),
    ]
    assert server.readers[0].streams == [0, 1]
    assert server.rules[0].writers == [0, 1]


RESTARTED = ASKED.replace("work: busy-1ms}", "work: busy-1ms, restart: 700ms}")


def plans_of(tmp_path: Path, workload: str) -> list[Plan]:
    path = tmp_path / "asked.yaml"
    path.write_text(workload)
    adapters = write_adapters(tmp_path)
    mapping = {"name": "s", "matrix": {"adapter": "shm", "workload": str(path)}}
    study = study_from_mapping(mapping, "test")
    (cell,) = expand(study, adapters).cells
    return worker_plans(study, cell, 0, adapters)


def test_a_server_that_restarts_is_two_that_answer_the_same_requests(tmp_path: Path) -> None:
    graph = read(tmp_path, RESTARTED)
    (service,) = graph.services
    assert service.servers == ("planner", "planner-again")
    asked = [(edge.publisher, edge.subscriber) for edge in graph.edges() if edge.topic == "plan.request"]
    assert asked == [
        ("driver", "planner"),
        ("driver", "planner-again"),
        ("operator", "planner"),
        ("operator", "planner-again"),
    ]
    numbers = [
        graph.stream_number(server, f"plan.reply.{client}")
        for server in service.servers
        for client in service.clients
    ]
    assert [graph.answered[number] for number in numbers] == [0, 1, 0, 1]
    assert {chain.name: chain.edges for chain in graph.chains} == {
        "plan.driver": ("driver→planner", "planner→driver"),
        "plan.operator": ("operator→planner", "planner→operator"),
        "plan-again.driver": ("driver→planner-again", "planner-again→driver"),
        "plan-again.operator": ("operator→planner-again", "planner-again→operator"),
    }
    assert all(spec.returns for spec in chain_specs(graph, no_bridge))


def test_a_server_that_restarts_is_let_in_when_the_one_before_has_gone(tmp_path: Path) -> None:
    plans = plans_of(tmp_path, RESTARTED)
    names = [plan.worker.name for plan in plans]
    old, new = names.index("planner"), names.index("planner-again")
    assert new not in waves(plans)[0]
    assert late_waves(plans) == [(700_000_000, [new])]
    assert replaced(plans, [new]) == [old]
    assert replaced(plans, [old]) == [], "nobody was there before"
    assert plans[old].phases.drain_ns + plans[old].phases.measure_ns == 700_000_000 - 300_000_000
    for plan in (plans[old], plans[new]):
        (server,) = plan.nodes
        assert [writer.answers for writer in server.writers] == [
            Answers(reader=0, stream=0),
            Answers(reader=0, stream=1),
        ]
        assert {writer.topic for writer in server.writers} == {"lagometer/plan"}
    # A client waits for the server that is there, and for no other.
    (client,) = plans[names.index("driver")].nodes
    (reply,) = client.readers
    assert reply.streams == [plans[old].nodes[0].writers[0].stream]


def test_late_subscribers_that_serve_nothing_replace_nobody(tmp_path: Path) -> None:
    late = ASKED.replace("screen: {trigger: any, ", "screen: {trigger: any, start: 1s, ")
    plans = plans_of(tmp_path, late)
    ((_, wave),) = late_waves(plans)
    assert replaced(plans, wave) == []


@pytest.mark.parametrize("late", ["planner", "driver"])
def test_nobody_waits_for_a_server_or_a_client_that_starts_late(tmp_path: Path, late: str) -> None:
    lines = [
        line.replace("{trigger", "{start: 600ms, trigger") if line.startswith(f"  {late}:") else line
        for line in ASKED.splitlines()
    ]
    plans = {plan.worker.name: plan for plan in plans_of(tmp_path, "\n".join(lines))}
    assert plans[late].start_ns == 600_000_000
    awaited = {
        name: [stream for reader in plan.nodes[0].readers for stream in reader.streams if reader.streams]
        for name, plan in plans.items()
    }
    if late == "planner":
        assert (awaited["driver"], awaited["operator"]) == ([], [])
    else:
        assert awaited["planner"] == [1, 5], "the other client's requests, and the map"


def test_an_action_whose_server_restarts_has_a_chain_for_each(tmp_path: Path) -> None:
    graph = read(tmp_path, ACTED.replace("feedback: 2}", "feedback: 2, restart: 1s}"))
    assert {service.name: service.servers for service in graph.services} == {
        "go.goal": ("navigator", "navigator-again"),
        "go.result": ("navigator", "navigator-again"),
    }
    first, second = graph.chains
    assert (first.name, second.name) == ("go", "go-again")
    assert all("navigator-again" in name for name in second.edges)
    assert not any("navigator-again" in name for name in first.edges)


def test_which_calls_belong_to_which_server(tmp_path: Path) -> None:
    path = tmp_path / "asked.yaml"
    path.write_text(RESTARTED)
    study = study_from_mapping({"name": "s", "matrix": {"adapter": "shm", "workload": str(path)}}, "test")
    (cell,) = expand(study, write_adapters(tmp_path)).cells
    specs = {spec.name: spec for spec in edge_specs(cell, {}, begin_ns=1_000)}
    assert specs["driver→planner"].calls_ns == (0, 700_001_000)
    assert specs["driver→planner-again"].calls_ns == (700_001_000, 2**63 - 1)
    assert specs["planner→driver"].calls_ns is None
    assert {name for name, spec in specs.items() if not spec.called} == {
        "operator→screen",
        "mapper→planner",
        "mapper→planner-again",
    }
    path.write_text(ASKED)
    (cell,) = expand(
        study_from_mapping({"name": "s", "matrix": {"adapter": "shm", "workload": str(path)}}, "test"),
        write_adapters(tmp_path),
    ).cells
    assert all(spec.calls_ns is None for spec in edge_specs(cell)), "everybody is there all the time"


def test_a_late_server_is_excluded_where_clients_would_not_find_it(tmp_path: Path) -> None:
    adapters = write_adapters(tmp_path)
    shm = adapters["shm"]
    limits = shm.sidecar.limits.model_copy(update={"late_server_reason": "it looks once"})
    adapters = {**adapters, "shm": replace(shm, sidecar=shm.sidecar.model_copy(update={"limits": limits}))}
    path = tmp_path / "asked.yaml"
    for workload, cells in ((ASKED, 1), (RESTARTED, 0), (RESTARTED.replace("restart:", "stop:"), 1)):
        path.write_text(workload)
        mapping = {"name": "s", "matrix": {"adapter": "shm", "workload": str(path)}}
        found = expand(study_from_mapping(mapping, "test"), adapters)
        assert len(found.cells) == cells
        for excluded in found.excluded:
            assert (
                excluded.reason
                == "shm: clients don't find a server that starts while they call: it looks once"
            )


def test_an_adapter_without_request_and_reply_is_excluded(tmp_path: Path) -> None:
    (tmp_path / "asked.yaml").write_text(ASKED)
    matrix = {"adapter": ["fastdds", "shm", "cyclonedds+fastdds"], "workload": str(tmp_path / "asked.yaml")}
    study = study_from_mapping({"name": "s", "matrix": matrix}, "test")
    expansion = expand(study, write_adapters(tmp_path))
    assert [cell.id for cell in expansion.cells] == ["shm/asked"]
    why = {each.cell: each.reason for each in expansion.excluded}
    assert "fastdds has no request and reply of its own" in why["fastdds/asked"]
    assert "a request and its reply are of one adapter" in why["cyclonedds+fastdds/asked"]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("{a: {trigger: timer, requests: [s]}}", "no node serves 's'"),
        (
            (
                "{a: {trigger: timer, requests: [s]}, b: {trigger: request, service: t},"
                " c: {trigger: timer, requests: [t]}}"
            ),
            "did you mean|known are: t",
        ),
        (
            (
                "{a: {trigger: request, service: s}, b: {trigger: timer, publishes: [t]},"
                " c: {trigger: any, subscribes: [t]}}"
            ),
            "no node requests the service 's'",
        ),
        (
            (
                "{a: {trigger: timer, requests: [s]}, b: {trigger: request, service: s},"
                " c: {trigger: request, service: s}}"
            ),
            "has the servers b, c",
        ),
        (
            (
                "{a: {trigger: timer, requests: [s]}, b: {trigger: request, service: s, restart: 1s},"
                " c: {trigger: request, service: s}}"
            ),
            "has the servers b, c",
        ),
        (
            (
                "{a: {trigger: timer, goals: [g]}, b: {trigger: goal, action: g, restart: 1s},"
                " c: {trigger: goal, action: g}}"
            ),
            "the action 'g' has several servers",
        ),
        (
            "{a: {rules: [{trigger: timer, requests: [s]}, {trigger: request, service: s}]}}",
            "requests its own service",
        ),
        (
            (
                "{a: {trigger: timer, requests: [s]}, b: {trigger: request, service: s},"
                " c: {trigger: reply, service: s}}"
            ),
            "waits for replies of 's', which it does not request",
        ),
        ("{a: {trigger: request}, b: {trigger: timer, requests: [s]}}", "does not say of which service"),
        (
            "{a: {trigger: timer, service: s, publishes: [t]}, b: {trigger: any, subscribes: [t]}}",
            "has `service`",
        ),
        (
            (
                "{a: {trigger: timer, requests: [s]}, b: {trigger: request, service: s, subscribes: [t]},"
                " c: {trigger: timer, publishes: [t]}}"
            ),
            "has `subscribes` beside what triggers it",
        ),
        (
            (
                "{a: {rules: [{trigger: timer, requests: [s]}, {trigger: reply, service: s, requests: [s]}]},"
                " b: {trigger: request, service: s}}"
            ),
            "two rules of one node|has a cycle",
        ),
        ("{a: {trigger: timer, goals: [g]}}", "no node serves the action 'g'"),
        ("{a: {trigger: goal, action: g}}", "no node sends goals to 'g'"),
        (
            "{a: {trigger: timer, requests: [s], feedback: 2}, b: {trigger: request, service: s}}",
            "`feedback`, which goes with the trigger goal",
        ),
    ],
)
def test_what_does_not_fit_together_is_named(tmp_path: Path, nodes: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read(tmp_path, f"nodes: {nodes}")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("services: {other: {reply: {payload: 1KB}}}", "no node has to do with 'other'"),
        ("services: {plan: {answer: {payload: 1KB}}}", "unknown key 'answer'"),
        ("services: {plan: {reply: 1KB}}", "says nothing of the messages"),
        ("services: {plan: {reply: {size: 1KB}}}", "unknown key 'size'"),
        ("topics: {plan.request: {payload: 1KB}}", "no node publishes the topic 'plan.request'"),
        ("actions: {plan: {goal: {payload: 1KB}}}", "no node has to do with 'plan'"),
    ],
)
def test_what_is_said_of_messages_is_checked(tmp_path: Path, keys: str, said: str) -> None:
    nodes = ASKED.partition("nodes:")[2]
    with pytest.raises(BadInput, match=said):
        read(tmp_path, f"{keys}\nnodes:{nodes}")
