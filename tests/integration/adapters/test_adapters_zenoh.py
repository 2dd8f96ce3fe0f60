# SPDX-License-Identifier: Apache-2.0
"""Zenoh: each transport, between peers and through a router, and what full queues do as the study asks."""

from __future__ import annotations

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import (
    ENDED_S,
    journal,
    run_campaign,
    running,
    wait_until,
    write_study,
)
from conformance_support import abilities, broken_lines, conformance
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, plan, reader, timer, writer
from test_adapters_options import carried_out
from worker_support import run_private

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

# What lagometer sees from outside between two workers.
TRANSPORTS = {"tcp": "tcp", "unix": "unix-socket", "shared-memory": "shared-memory"}
ORIGINS = {"tcp": "copied", "unix": "copied", "shared-memory": "loaned"}


@pytest.fixture(autouse=True)
def _needs() -> None:
    need("netns")
    need("zenoh")


def campaign(build: Path, folder: Path, options: Mapping, **factors: Any) -> Path:
    """Reliable trials with these options, of sizes below and above Zenoh's batches of 64 KB."""
    matrix = {
        "adapter": ["zenoh"],
        "workload": ["pipeline-3"],
        "payload": ["64B", "200KB"],
        "rate": ["50Hz"],
        "reliability": ["reliable"],
        "dispatch": ["listener", "waitset"],
        "placement": ["process-per-node"],
        **factors,
    }
    # At times Zenoh's peers don't agree on shared memory (the adapter's README, Limits); lagometer sees it.
    forgive = ("transport-mismatch",) if options.get("transport") == "shared-memory" else ()
    return run_campaign(build, folder, matrix, forgive=forgive, options={"zenoh": options})


def settings_of(out: Path, kind: str) -> list[dict[str, Any]]:
    """The settings of each cell's objects of one kind, as the manifest keeps them."""
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    return [each for cell in settings.values() for each in cell if each["object"].startswith(kind)]


@pytest.mark.by_turn
@pytest.mark.parametrize(("transport", "router"), [*itertools.product(TRANSPORTS, (False, True))])
def test_it_goes_the_way_that_it_is_told(build: Path, tmp_path: Path, transport: str, router: bool) -> None:
    """Seen from outside; through the router where one is asked for, since its clients listen nowhere."""
    out = campaign(build, tmp_path, {"transport": transport, "router": router})
    rows = pl.read_parquet(out / "cells.parquet")
    assert (rows["n"] == rows["sent"]).all() and (rows["n"] > 0).all()
    assert rows["corrupted"].sum() == 0
    seen = rows.filter(pl.col("edge") != "end-to-end")["transport"].to_list()
    assert all(TRANSPORTS[transport] in words.split(" or ") for words in seen), seen
    assert transport == "tcp" or not any("tcp" in words for words in seen), seen
    for trial in journal(out):
        writers = [each for worker in trial["counters"].values() for each in worker["writers"]]
        assert {each["origin"] for each in writers} == {ORIGINS[transport]}
    modes = {each["settings"].get("mode", {}).get("value", "peer") for each in settings_of(out, "context")}
    assert modes == {"client" if router else "peer"}
    if router:
        assert (rows["daemon_cpu_ns"] > 0).all()
        assert (rows["daemon_pss_bytes"] > 0).all()
        assert "17447" in json.dumps(settings_of(out, "daemon"))
    else:
        assert rows["daemon_cpu_ns"].null_count() == len(rows)


def test_domains_do_not_hear_each_other_at_a_router(build: Path) -> None:
    """All sessions meet there, so it is the keys that keep domains apart."""
    nodes = [
        node("source", 0, [], [writer("t", 0)], [timer(5 * MILLISECOND_NS)], "waitset"),
        node("same", 1, [reader("t", [0], context=1)], [], [any_message()], "waitset"),
        node("other", 2, [reader("t", [], context=2)], [], [any_message()], "waitset"),
    ]
    given = plan(adapter_library("zenoh", build), "/dev/shm/lagometer", nodes)
    given["adapters"][0]["options"] = {"router": True}
    given["contexts"].append({"adapter": 0, "domain": 0, "name": "same"})
    given["contexts"].append({"adapter": 0, "domain": 1, "name": "other"})
    (said,) = run_private(build, [given])
    assert said.code == 0, said.events[-1:]
    assert len(said.lane(KIND_RECEIVED, 1, 0)) == len(said.lane(KIND_SENT, 0, 0)) > 20
    assert len(said.lane(KIND_RECEIVED, 2, 0)) == 0


@pytest.mark.parametrize("congestion_control", ["block", "drop"])
def test_a_full_link_blocks_or_drops_as_it_is_told(build: Path, congestion_control: str) -> None:
    """Zenoh's thread waits for a reader that takes 5 ms a message, until sockets and queues are full."""
    qos = {"reliability": "reliable", "history": "keep_all"}
    endpoint: Mapping = {"qos": qos, "payload_bytes": 60_000}
    source = node("source", 0, [], [writer("t", 0, **endpoint)], [timer(MILLISECOND_NS)], "waitset")
    sink_work = any_message(work_ns=5 * MILLISECOND_NS)
    sink = node("sink", 1, [reader("t", [0], **endpoint)], [], [sink_work], "waitset")
    phases = {"warmup_ns": 0, "measure_ns": 600 * MILLISECOND_NS, "drain_ns": 1_500 * MILLISECOND_NS}
    library = adapter_library("zenoh", build)
    plans = [plan(library, "/dev/shm/lagometer", [each], **phases) for each in (source, sink)]
    plans[1]["worker"]["index"] = 1
    options = {
        "congestion_control": congestion_control,
        "keep_all_messages": 8,
        "socket_buffer_bytes": 65_536,
    }
    for each in plans:
        each["adapters"][0]["options"] = options
    send, listen = run_private(build, plans)
    sent, received = send.lane(KIND_SENT, 0, 0), listen.lane(KIND_RECEIVED, 1, 0)
    assert len(received) > 8
    accepted = sent[sent["status"] == 0]["sequence"].tolist()
    if congestion_control == "block":
        assert received["sequence"].tolist() == accepted
    else:
        assert set(received["sequence"].tolist()) < set(accepted)


def test_what_writers_do_is_told(build: Path) -> None:
    """Settings that are the vendor's are left out."""
    for word in ("block", "drop"):
        ready = carried_out(build, "zenoh", {"congestion_control": word}).event("ready")
        writers = [each["effective"] for each in ready["settings"] if each["object"].startswith("writer")]
        told = {each["settings"].get("congestion_control", {"value": "drop"})["value"] for each in writers}
        assert told == {word}


def test_a_router_that_dies_fails_the_trial(build: Path, tmp_path: Path) -> None:
    matrix = {"adapter": "zenoh", "workload": "pipeline-3", "rate": "10Hz"}
    options = {"zenoh": {"router": True}}
    study = write_study(tmp_path, duration="60s", matrix=matrix, options=options, machine_floor="off")
    out = tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--json", "--no-report")
    programs = {
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }
    with running(tmp_path, *arguments, environment=programs) as run:
        assert wait_until(lambda: run.reached("measure", 0))
        (router,) = run.processes("lagometer-zenoh")
        os.kill(router, signal.SIGKILL)
        assert run.end()[0] == 3
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    (entry,) = journal(out)
    assert "daemon-died" in {reason.partition(":")[0] for reason in entry["reasons"]}, entry["reasons"]


def test_with_shared_memory_it_does_what_it_declares(build: Path) -> None:
    """Each option shows in the effective settings, too, also one that comes to what is usual anyway."""
    shown = ("sizes", "loans", "reliable", "keep-last", "keep-all", "reopening", "options", "settings")
    only = [word for name in shown for word in ("--only", name)]
    code, results, _ = conformance(build, "zenoh", *only, "--option", "transport=shared-memory")
    found = abilities(results)
    assert {name: broken_lines(each) for name, each in found.items() if each["verdict"] != "pass"} == {}
    assert code == 0
