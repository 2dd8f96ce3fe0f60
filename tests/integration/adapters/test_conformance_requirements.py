# SPDX-License-Identifier: Apache-2.0
"""What the checks really ask an adapter for is what the ability table says, and never beyond its limits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from needs import adapter_library, need, require

from lagometer.conformance import exchange_checks
from lagometer.conformance.abilities import ABILITIES, Ability
from lagometer.conformance.bench import Bench, Subject
from lagometer.conformance.suite import examine
from lagometer.study.adapter import Adapter
from lagometer.study.adapters import load_adapter
from lagometer.study.sidecar import Limits

# Real workers are asked by a study, and large payloads ask for the same as small ones.
LEFT_OUT = ("large", "output")
SHOWN = [each for each in ABILITIES if each.name not in LEFT_OUT]


class Asked:
    """The most that the orders of one check asked for."""

    def __init__(self) -> None:
        self.depths: set[int] = set()
        self.blocking_ns: set[int] = set()
        self.reliabilities: set[str | None] = set()
        self.endpoints = 0
        self.topics = 0
        self._there: dict[tuple[int, str], str] = {}

    def note(self, bench: Bench, order: Mapping[str, Any]) -> None:
        """Hears an order to one of the processes."""
        kind, identity = order["do"], (id(bench), str(order.get("id")))
        if kind == "load":
            self._there = {key: topic for key, topic in self._there.items() if key[0] == id(bench)}
        if kind in ("writer", "reader"):
            domain = str(order["context"]).rpartition("-")[2]
            self._there[identity] = f"{order['topic']} in {domain}"
            if order["qos"]["history"] == "keep_last":
                self.depths.add(order["qos"]["depth"])
            self.blocking_ns.add(order["qos"].get("blocking_ns", 1_000_000_000))
            self.reliabilities.add(order["qos"].get("reliability"))
        if kind in ("reopen", "contract"):
            self.depths.add(order["depth"])
            self.blocking_ns.add(order.get("blocking_ns", 1_000_000_000))
        if kind == "destroy":
            self._there.pop(identity, None)
        counted = Counter(self._there.values())
        self.endpoints = max(self.endpoints, *counted.values(), 0)
        self.topics = max(self.topics, len({name.split()[0] for name in counted}))


def asked_by(ability: Ability, adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Shows the ability, which must pass or be declared absent."""
    asked, write = Asked(), Bench.write

    def hear(bench: Bench, peer: Any, line: bytes, what: str) -> None:
        asked.note(bench, json.loads(line))
        write(bench, peer, line, what)

    with monkeypatch.context() as patch:
        patch.setattr(Bench, "write", hear)
        (result,) = examine(Subject(adapter), [ability]).results
    assert result.verdict in ("pass", "absent"), result
    return asked


@pytest.fixture
def shm(build: Path, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    need("netns")
    for name in ("worker", "supervisor", "conformance"):
        monkeypatch.setenv(f"LAGOMETER_{name.upper()}", str(build / "engine" / f"lagometer-{name}"))
    return load_adapter(adapter_library("shm", build).parent)


@pytest.mark.by_turn
@pytest.mark.parametrize("ability", SHOWN, ids=lambda ability: ability.name)
def test_a_check_asks_for_what_its_ability_says(
    ability: Ability, shm: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(f"shm-{ability.name}", ability.lacks(shm.sidecar) is None, "an ability that shm declares")
    asked, says = asked_by(ability, shm, monkeypatch), ability.asks
    assert asked.blocking_ns <= {says.blocking_ns}
    if says.history == "keep_last":
        assert max(asked.depths) == says.depth
    else:
        assert not asked.depths  # shm has keep_all
    if ability.name in ("reopening", "contract", "options"):
        return  # its process makes the endpoints itself, or none are made
    assert (asked.endpoints, asked.topics) == (says.endpoints, says.topics)
    wanted = {"strongest": "reliable"}.get(says.reliability, says.reliability)
    assert wanted in asked.reliabilities


@pytest.mark.by_turn
@pytest.mark.parametrize("ability", SHOWN, ids=lambda ability: ability.name)
def test_a_check_keeps_within_the_limits_that_are_declared(
    ability: Ability, shm: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(depth_max=3, topics_max=20, endpoints_max=5, topics_max_reason="so it is")
    limited = shm.sidecar.model_copy(
        update={
            "limits": limits,
            "abilities": shm.sidecar.abilities.model_copy(update={"history": ("keep_last",)}),
        }
    )
    adapter = replace(shm, sidecar=limited)
    if ability.name in ("contract", "settings"):
        return  # shm has keep_all and so refuses nothing, and an option of it; the contract: next test
    asked = asked_by(ability, adapter, monkeypatch)
    assert max(asked.depths, default=0) <= 3
    assert asked.endpoints <= 5
    assert asked.topics <= 20
    if ability.name == "500-topics":
        assert ability.lacks(limited) == "at most 20 topics at once: so it is"


def test_the_contract_keeps_within_them(shm: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = shm.sidecar.model_copy(update={"limits": Limits(depth_max=2, topics_max=2, endpoints_max=2)})
    (contract,) = [each for each in ABILITIES if each.name == "contract"]
    asked = asked_by(contract, replace(shm, sidecar=limited), monkeypatch)
    assert asked.depths == {2}


def test_a_writer_that_finds_no_late_reader_may_not_claim_it(
    shm: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who wrote an adapter took `late_readers` away, and nothing said that it was wrong."""
    claims = shm.sidecar.abilities.model_copy(update={"late_readers": True})
    adapter = replace(shm, sidecar=shm.sidecar.model_copy(update={"abilities": claims}))
    monkeypatch.setattr(exchange_checks, "MEET_S", 1.0)
    (discovery,) = [each for each in ABILITIES if each.name == "discovery"]
    (result,) = examine(Subject(adapter), [discovery]).results
    assert result.verdict == "fail" and "declare `late_readers: false`" in result.reason
