# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a chain are bridges on its way, and which one turns the messages of a round trip round."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_adapters import write_adapters

from lagometer.run.facts import chain_specs
from lagometer.store.facts import ChainSpec
from lagometer.study import expand, study_from_mapping
from lagometer.study.cell import Cell

ANSWERED = """
nodes:
  ping:
    rules:
      - {{trigger: timer, publishes: [out]}}
      - {{trigger: any, subscribes: [{last}]}}
"""
PING_PONG = ANSWERED.format(last="back") + "  pong: {trigger: any, subscribes: [out], publishes: [back]}\n"
BRIDGED = (
    ANSWERED.format(last="back_across")
    + """  bridge:
    rules:
      - {trigger: any, subscribes: [out], publishes: [out_across]}
      - {trigger: any, subscribes: [back], publishes: [back_across]}
  pong: {trigger: any, subscribes: [out_across], publishes: [back]}
chains: {loop: [out, out_across, back, back_across]}
"""
)
TIMED = """
nodes:
  ping: {trigger: timer, publishes: [out]}
  bridge: {trigger: timer, rate: 10Hz, subscribes: [out], publishes: [out_across]}
  end: {trigger: any, subscribes: [out_across]}
chains: {loop: [out, out_across]}
"""
HUB = (
    PING_PONG.replace("publishes: [back]", "publishes: [back, elsewhere]")
    + "  far: {trigger: any, subscribes: [elsewhere]}\nchains: {loop: [out, back], away: [out, elsewhere]}\n"
)
RING = (
    ANSWERED.format(last="c")
    + """  first: {trigger: any, subscribes: [out], publishes: [b]}
  second: {trigger: any, subscribes: [b], publishes: [c]}
chains: {loop: [out, b, c]}
"""
)
NEAR_AND_FAR = (
    "topics: {out: {domain: 5}, out_across: {domain: 10}, back: {domain: %s}, back_across: {domain: 5}}"
)


def cell_of(tmp_path: Path, workload: str) -> Cell:
    path = tmp_path / "loop.yaml"
    path.write_text(workload)
    matrix = {"adapter": "cyclonedds", "workload": str(path), "dispatch": "poll"}
    found = expand(
        study_from_mapping({"name": "x", "matrix": matrix}, "test"), write_adapters(tmp_path), cpus=(0, 1)
    )
    assert found.cells, found.excluded
    return found.cells[0]


def specs_of(tmp_path: Path, workload: str) -> list[ChainSpec]:
    cell = cell_of(tmp_path, workload)
    return list(chain_specs(cell.graph, cell.forwards))


def loop_of(tmp_path: Path, workload: str) -> tuple[bool, set[str]]:
    """Whether its first chain has half a round trip, and the nodes that only forward the chain's messages."""
    loop = specs_of(tmp_path, workload)[0]
    return loop.returns, {edge.partition("→")[2] for edge in loop.forwarded}


@pytest.mark.parametrize("topics", [NEAR_AND_FAR % 10, NEAR_AND_FAR % 11])
def test_a_bridge_forwards_there_and_back_and_the_node_in_the_middle_turns_round(
    tmp_path: Path, topics: str
) -> None:
    """Also if the echo itself takes in one domain and answers in another."""
    assert loop_of(tmp_path, topics + BRIDGED) == (True, {"bridge"})


def test_an_echo_between_two_domains_or_adapters_is_no_bridge(tmp_path: Path) -> None:
    chain = "chains: {loop: [out, back]}\n"
    for topics in (
        "topics: {out: {domain: 5}, back: {domain: 10}}",
        "topics: {out: {adapter: cyclonedds}, back: {adapter: shm}}",
    ):
        assert loop_of(tmp_path, topics + PING_PONG + chain) == (True, set())


def test_a_node_is_a_bridge_only_for_the_messages_that_it_takes_across(tmp_path: Path) -> None:
    """It echoes in its domain and forwards to another: the first is work of its own, the second is not."""
    loop, away = specs_of(tmp_path, "topics: {elsewhere: {domain: 10}}" + HUB)
    assert (loop.returns, loop.forwarded) == (True, frozenset())
    assert (away.returns, away.forwarded) == (False, frozenset({"ping→pong"}))


def test_a_node_that_forwards_by_its_timer_makes_messages_wait(tmp_path: Path) -> None:
    topics = "topics: {out: {domain: 5}, out_across: {domain: 10}}"
    at_once = TIMED.replace("timer, rate: 10Hz", "any")
    assert loop_of(tmp_path, topics + TIMED) == (False, set())
    assert loop_of(tmp_path, topics + at_once) == (False, {"bridge"})


def test_in_a_ring_each_node_answers(tmp_path: Path) -> None:
    assert loop_of(tmp_path, RING) == (True, set())


def test_a_ring_of_bridges_alone_has_nothing_that_turns_messages_round(tmp_path: Path) -> None:
    topics = "topics: {out: {domain: 5}, b: {domain: 10}, c: {domain: 5}}"
    assert loop_of(tmp_path, topics + RING) == (False, {"first", "second"})


def test_a_campaign_names_the_edges_between_which_a_bridge_is(tmp_path: Path) -> None:
    topics = "topics: {elsewhere: {domain: 10}}"
    cell = cell_of(tmp_path, topics + HUB)
    assert (cell.forwarding, cell.bridges) == ([("ping→pong", "pong→far")], {"pong": "pong"})
    assert cell_of(tmp_path, PING_PONG).forwarding == []


TURNED = "topics: {out: {domain: 5}, back: {domain: 10}}"


@pytest.mark.parametrize("topics", [TURNED, "topics: {out: {adapter: cyclonedds}, back: {adapter: shm}}"])
def test_an_echo_across_is_no_bridge_of_the_campaign(tmp_path: Path, topics: str) -> None:
    cell = cell_of(tmp_path, topics + PING_PONG)
    assert (cell.forwarding, cell.bridges) == ([], {})


def test_an_echo_across_whose_answer_is_only_used_is_no_bridge(tmp_path: Path) -> None:
    """The answer is state of the node that began, whose timer sends the next one: a round ends there."""
    used = """
nodes:
  ping: {trigger: timer, uses: [back], publishes: [out, log]}
  pong: {trigger: any, subscribes: [out], publishes: [back]}
  end: {trigger: any, subscribes: [log]}
"""
    assert cell_of(tmp_path, TURNED + used).bridges == {}


def test_of_bridges_on_both_sides_of_an_echo_across_only_they_are_listed(tmp_path: Path) -> None:
    cell = cell_of(tmp_path, NEAR_AND_FAR % 11 + BRIDGED)
    assert set(cell.bridges) == {"bridge"}
    assert {taken for taken, _ in cell.forwarding} == {"ping→bridge", "pong→bridge"}


@pytest.mark.parametrize(
    "more",
    [
        "  logger: {trigger: any, subscribes: [back]}\n",  # another end of what it answers
        "  other: {trigger: timer, publishes: [out]}\n",  # another beginning, which gets no answer
    ],
)
def test_an_echo_across_whose_messages_also_go_elsewhere_is_a_bridge(tmp_path: Path, more: str) -> None:
    cell = cell_of(tmp_path, TURNED + PING_PONG + more)
    assert cell.bridges == {"pong": "pong"}


def test_a_ring_of_bridges_alone_has_no_echo(tmp_path: Path) -> None:
    topics = "topics: {out: {domain: 5}, b: {domain: 10}, c: {domain: 5}}"
    assert set(cell_of(tmp_path, topics + RING).bridges) == {"first", "second"}
