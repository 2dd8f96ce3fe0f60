# SPDX-License-Identifier: Apache-2.0
"""Our own bridge between two domains: what passes it, what it takes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from campaign_support import lagometer, lost_of, programs, run_campaign, write_study
from needs import need

from lagometer.store.reader import open_campaign
from lagometer.summary.summarise import summarise
from lagometer.summary.ways import message_ways

ADAPTERS = ("cyclonedds", "fastdds")
ECHO = {
    "name": "echo",
    "topics": {"left": {"domain": 5}, "right": {"domain": 10}},
    "nodes": {
        "source": {"trigger": "timer", "publishes": ["left"]},
        "there": {"trigger": "any", "subscribes": ["left"], "publishes": ["right"]},
        "back": {"trigger": "any", "subscribes": ["right"], "publishes": ["left"]},
    },
}
ACROSS = {
    "name": "across",
    "topics": {"out": {"domain": 5}, "back": {"domain": 10}},
    "nodes": {
        "ping": {
            "rules": [
                {"trigger": "timer", "publishes": ["out"]},
                {"trigger": "any", "subscribes": ["back"]},
            ]
        },
        "pong": {"trigger": "any", "subscribes": ["out"], "publishes": ["back"]},
    },
    "chains": {"round-trip": ["out", "back"]},
}


def carried(build: Path, folder: Path, forgive: Sequence[str] = (), **matrix: Any) -> Path:
    """The campaign of a round trip over the bridge, valid at last."""
    each = {"workload": "two-domains", "reliability": "reliable", **matrix}
    # 4 MB take a few hundred milliseconds there and back, on a machine that does other things too.
    return run_campaign(build, folder, each, forgive=forgive, duration="600ms", drain="3s")


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("payload", "rate"), [("4MB", "5Hz"), ("64B", "1kHz")])
def test_large_and_frequent_messages_pass(
    build: Path, tmp_path: Path, adapter: str, payload: str, rate: str
) -> None:
    need(adapter)
    # On a busy machine the kernel drops datagrams of 4 MB, and their repair may outlast the drain.
    forgive = ("nothing-received",) if payload == "4MB" else ()
    out = carried(build, tmp_path, forgive, adapter=adapter, payload=payload, rate=rate, depth=1000)
    assert set(lost_of(out).values()) == {0}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_keyed_and_durable_messages_pass(build: Path, tmp_path: Path, adapter: str) -> None:
    need(adapter)
    out = carried(build, tmp_path, adapter=adapter, instances=8, durability="transient_local", depth=100)
    assert set(lost_of(out).values()) == {0}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_encrypted_messages_pass(build: Path, tmp_path: Path, adapter: str) -> None:
    """In each domain the bridge has a participant with a certificate of its own."""
    need(adapter)
    need("openssl")
    out = carried(build, tmp_path, adapter=adapter, security="encrypt")
    assert set(lost_of(out).values()) == {0}
    kinds = [
        item["settings"]["security"]["value"]
        for settings in json.loads((out / "manifest.json").read_text())["settings"].values()
        for item in settings
        if item["object"] == "context"
    ]
    assert kinds and set(kinds) == {"encrypt"}


def test_every_view_has_what_the_bridge_takes(build: Path, tmp_path: Path) -> None:
    need("cyclonedds")
    out = carried(build, tmp_path, adapter="cyclonedds")
    (bridge,) = summarise(open_campaign(out)).bridges
    assert (bridge.node, bridge.process) == ("bridge", "bridge")
    rows = {row["edge"]: row["n"] for row in open_campaign(out).cells.to_dicts() if row["valid"]}
    assert bridge.passed_on >= rows["bridge→pong"] + rows["bridge→ping"] > 0
    assert bridge.stay_p50_ns is not None and bridge.stay_p99_ns is not None
    assert 0 < bridge.stay_p50_ns <= bridge.stay_p99_ns
    assert bridge.stay_share is not None and 0 < bridge.stay_share < 1
    assert bridge.cpu_per_message_ns is not None and bridge.cpu_per_message_ns > 0
    assert bridge.rss_bytes is not None and bridge.uss_bytes is not None
    assert 0 < bridge.uss_bytes < bridge.rss_bytes
    seen = next(line["resources"] for line in open_campaign(out).journal if line["valid"])
    threads = {each["process"]: sum(each["threads"].values()) for each in seen["processes"]}
    assert bridge.threads == threads["bridge"] > threads["ping"]  # two participants

    code, text, errors = lagometer(tmp_path, "show", str(out), "--json")
    assert code == 0, errors
    assert json.loads(text)["bridges"] == [bridge.model_dump()]
    code, text, errors = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "bridges: stay is from" in " ".join(text.split()), errors
    assert f"{100 * bridge.stay_share:.1f} %" in text, "of the whole"


def test_an_echo_that_answers_in_another_domain_is_no_bridge(build: Path, tmp_path: Path) -> None:
    need("cyclonedds")
    (tmp_path / "across.yaml").write_text(json.dumps(ACROSS))
    out = carried(build, tmp_path, adapter="cyclonedds", workload=str(tmp_path / "across.yaml"))
    summary = summarise(open_campaign(out))
    assert summary.bridges == []
    (chain,) = summary.chains
    assert chain.half_round_trip_p50_ns is not None and chain.computation_p50_ns is not None
    assert chain.communication_p50_ns is not None
    assert abs(chain.half_round_trip_p50_ns - chain.communication_p50_ns / 2) <= 1
    layers = {stay.layer for way in message_ways(open_campaign(out), [chain.cell])[0] for stay in way.stays}
    assert layers == {"communication", "computation"}


def test_a_topic_that_is_bridged_both_ways_is_refused(build: Path, tmp_path: Path) -> None:
    (tmp_path / "echo.yaml").write_text(json.dumps(ECHO))
    matrix = {"adapter": "cyclonedds", "workload": str(tmp_path / "echo.yaml")}
    study = write_study(tmp_path, matrix=matrix)
    code, output, errors = lagometer(tmp_path, "plan", str(study), environment=programs(build))
    assert code != 0
    assert "the graph has a cycle: there → back → there" in " ".join((output + errors).split())
