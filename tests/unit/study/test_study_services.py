# SPDX-License-Identifier: Apache-2.0
"""Request and reply in a workload file: the graph that it comes to, the plans, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.facts import chain_specs
from lagometer.run.worker.layout import stream_rates_hz, worker_plans
from lagometer.run.worker.plan import Answers
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
    assert [spec.returns for spec in chain_specs(graph)] == [True, True]
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
    assert [spec.returns for spec in chain_specs(graph)] == [False]


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
