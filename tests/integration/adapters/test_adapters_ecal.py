# SPDX-License-Identifier: Apache-2.0
"""Eclipse eCAL from Python: the layers it is told to take, the handshake, what it refuses, what it leaves."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, run_campaign, running, signal_a_worker, wait_until, write_study
from needs import adapter_library, need, require
from own_network import own_network
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, pipeline, plan, reader, timer, writer
from worker_support import Said, run_private

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

DIRECTORY = "/dev/shm/lagometer"
WORDS = {"shm": "shared-memory", "udp": "udp"}
ACKNOWLEDGED = "publisher.layer.shm.acknowledge_timeout_ms"
BEST_EFFORT: Mapping = {"qos": {"reliability": "best_effort"}}


def carried_out(
    build: Path,
    nodes: list[Mapping],
    options: Mapping | None = None,
    *,
    profile: str = "default",
    network: Mapping | None = None,
    **phases: int,
) -> Said:
    """One worker with all these nodes, in a private machine."""
    need("netns")
    need("ecal-py")
    given = plan(adapter_library("ecal-py", build), DIRECTORY, nodes, **phases)
    given["adapters"][0] |= {"options": options or {}, "profile": profile, "network": network or {}}
    (said,) = run_private(build, [given])
    return said


def settings_of(said: Said) -> dict[str, Any]:
    """What is said to be in force of the context."""
    assert said.code == 0, said.events[-1:]
    settings: dict[str, Any] = said.event("ready")["settings"][0]["effective"]["settings"]
    return settings


@pytest.mark.by_turn
@pytest.mark.parametrize("registration", ["udp", "shm"])
@pytest.mark.parametrize("transport", WORDS)
def test_it_goes_the_way_that_it_is_told(
    build: Path, tmp_path: Path, transport: str, registration: str
) -> None:
    """Seen from outside, between processes; the largest message is several datagrams long."""
    need("ecal-py")
    matrix = {"adapter": "ecal-py", "workload": "pipeline-2", "rate": "20Hz", "payload": "60KB"}
    # A memory file with room for it from the start: none is recreated during so few messages.
    options = {"transport": transport, "registration": registration, "memfile_min_size_bytes": 131_072}
    out = run_campaign(build, tmp_path, matrix, options={"ecal-py": options})
    rows = pl.read_parquet(out / "cells.parquet")
    assert (rows["n"] > 0).all()
    assert rows["corrupted"].sum() == 0
    seen = rows.filter(pl.col("edge") != "end-to-end")["transport"].to_list()
    assert all(WORDS[transport] in words.split(" or ") for words in seen), seen


def test_a_publisher_that_is_acknowledged_outruns_nobody(build: Path) -> None:
    """A callback that takes 2 ms for a message keeps a publisher back that has one each millisecond."""
    out, into = writer("t", 0, **BEST_EFFORT), reader("t", [0], **BEST_EFFORT)
    source = node("source", 0, [], [out], [timer(MILLISECOND_NS)], "waitset")
    sink = node("sink", 1, [into], [], [any_message(work_ns=2 * MILLISECOND_NS)], "listener")
    lost = {}
    for timeout_ms in (0, 10_000):
        options = {"acknowledge_timeout_ms": timeout_ms}
        said = carried_out(build, [source, sink], options, drain_ns=2_000 * MILLISECOND_NS)
        assert settings_of(said).get(ACKNOWLEDGED, {}).get("value", 0) == timeout_ms
        sent = set(said.lane(KIND_SENT, 0, 0)["sequence"].tolist())
        received = said.lane(KIND_RECEIVED, 1, 0)["sequence"].tolist()
        assert received == sorted(set(received)) and received
        lost[timeout_ms] = len(sent - set(received))
    assert lost[0] > 0
    assert lost[10_000] == 0


def test_tcp_goes_to_the_machines_own_name_or_is_refused(build: Path) -> None:
    nodes = pipeline("waitset", **BEST_EFFORT)
    said = carried_out(build, nodes, {"transport": "tcp"}, network={"loopback": True})
    if ipaddress.ip_address(socket.gethostbyname(socket.gethostname())).is_loopback:
        assert settings_of(said)["subscriber.layer.tcp.enable"] == {"value": True, "default": False}
        assert len(said.lane(KIND_RECEIVED, 2, 0)) > 0
    else:
        assert "is not on the loopback" in said.event("failed")["message"]


@pytest.mark.parametrize(
    ("qos", "word"),
    [
        ({"reliability": "reliable"}, "guarantees no delivery"),
        ({"history": "keep_all"}, "keep_last"),
        ({"durability": "transient_local"}, "late joiners"),
    ],
)
def test_what_ecal_does_not_promise_is_refused(build: Path, qos: Mapping, word: str) -> None:
    failed = carried_out(build, pipeline("waitset", qos=qos)).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert word in failed["message"]


@pytest.mark.parametrize(
    ("change", "word"),
    [({"domain": 1}, "no domains within a process"), ({"adapter": 1}, "one for a whole process")],
)
def test_a_process_has_one_ecal(build: Path, change: Mapping, word: str) -> None:
    need("netns")
    need("ecal-py")
    nodes = [
        node("source", 0, [], [writer("t", 0)], [timer(5 * MILLISECOND_NS)], "waitset"),
        node("sink", 1, [reader("t", [0], context=1)], [], [any_message()], "waitset"),
    ]
    given = plan(adapter_library("ecal-py", build), DIRECTORY, nodes)
    given["adapters"].append({**given["adapters"][0], "options": {"zero_copy": True}})
    given["contexts"].append({"adapter": 0, "domain": 0, "name": "other", **change})
    (said,) = run_private(build, [given])
    failed = said.event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert word in failed["message"]


def test_settings_are_ecals_own_and_what_it_has_by_default_is_left_out(build: Path) -> None:
    nodes = pipeline("waitset", **BEST_EFFORT)
    usual = settings_of(carried_out(build, nodes, {"memfile_buffer_count": 1, "zero_copy": False}))
    assert set(usual) == {"logging.provider.file_config.path"}
    told = settings_of(carried_out(build, nodes, {"memfile_min_size_bytes": 65_536, "registration": "shm"}))
    assert told["publisher.layer.shm.memfile_min_size_bytes"] == {"value": 65_536, "default": 4_096}
    assert told["registration.local.transport_type"] == {"value": "shm", "default": "udp"}
    matched = settings_of(carried_out(build, nodes, profile="matched"))
    assert matched["publisher.layer.shm.enable"] == {"value": False, "default": True}
    assert matched["transport_layer.udp.receive_buffer"]["value"] == 4 << 20


def test_on_the_hosts_network_a_killed_worker_leaves_nothing(tmp_path: Path) -> None:
    need("ecal-py")
    require("netns", os.geteuid() == 0, "root, to give the study a network of its own")
    matrix = {"adapter": "ecal-py", "workload": "pipeline-2", "rate": "50Hz", "network": "host"}
    study, out = write_study(tmp_path, duration="60s", matrix=matrix), tmp_path / "out"
    before = memory_files()
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    with running(tmp_path, *arguments, preexec_fn=own_network) as run:
        assert wait_until(lambda: run.reached("measure", 0)), run.events()
        assert memory_files() - before
        assert signal_a_worker(run, signal.SIGKILL)
        code, _, errors = run.end()
    assert code == 3, errors
    reasons = journal(out)[0]["reasons"]
    assert reasons[0].startswith("worker-died"), reasons
    assert not memory_files() - before


def memory_files() -> set[str]:
    """What there is of eCAL in /dev/shm."""
    return {path.name for path in Path("/dev/shm").iterdir() if path.name.startswith("ecal_")}
