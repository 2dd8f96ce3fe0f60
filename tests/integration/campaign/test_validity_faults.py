# SPDX-License-Identifier: Apache-2.0
"""Each reason for which a trial fails is forced: by injected faults, an injected clock, or the kernel itself.

Without a fault the same cell is valid.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, running, wait_until, write_study
from needs import ROOT, adapter_library, need

from lagometer.units import parse_duration_ns

pytestmark = pytest.mark.by_turn

CELL = {
    "adapter": "faulty",
    "workload": "pipeline-3",
    "payload": "256B",
    "rate": "200Hz",
    "reliability": "reliable",
    "placement": "process-per-node",
}
KEEP_ALL = {"history": "keep_all"}
BEHIND_NS = 50_000_000  # of the clock in tests/preload/slow_clock.c


def run(
    build: Path,
    folder: Path,
    options: dict[str, Any],
    *,
    environment: dict[str, str] | None = None,
    **keys: Any,
) -> pl.DataFrame:
    """The rows of cells.parquet of one short trial; `keys` of the study replace the usual ones."""
    need("netns")
    matrix = {**CELL, **keys.pop("matrix", {})}
    study = write_study(folder, matrix=matrix, options=options, trials=1, **keys)
    programs = {
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }
    out = folder / "out"
    arguments = ("run", str(study), "--out", str(out), "--json", "--no-report")
    code, _, errors = lagometer(
        folder, *arguments, seconds=120, environment={**programs, **(environment or {})}
    )
    assert code in (0, 3), errors
    return pl.read_parquet(out / "cells.parquet")


def reasons(rows: pl.DataFrame) -> dict[str, str]:
    """Why the trial failed: code word to its text."""
    assert bool(rows["valid"].all()) == (not rows["reasons"][0].to_list())
    return {text.partition(":")[0]: text for text in rows["reasons"][0].to_list()}


def warnings(rows: pl.DataFrame) -> dict[str, str]:
    return {text.partition(":")[0]: text for text in rows["warnings"][0].to_list()}


@pytest.mark.parametrize(
    ("reason", "faults", "matrix"),
    [
        ("lost-keep-all", {"drop_at": 40}, KEEP_ALL),
        ("duplicated", {"duplicate_at": 40}, {}),
        ("reordered-reliable", {"reorder_at": 40}, {}),
        ("corrupted", {"corrupt_at": 40}, {}),
        ("corrupted", {"corrupt_at": 40}, {"payload": "64B"}),
        ("recorder-full", {"duplicate": 1, "copies": 100}, KEEP_ALL),
        ("endpoints-missing", {"drop": 1, "probes": True}, {}),
        ("nothing-received", {"drop": 1}, {}),
        ("worker-died", {"crash_at": 40, "stream": 0}, {}),
        ("worker-hung", {"hang_at": 40, "stream": 0}, {}),
        ("rate-missed", {"delay": 1, "delay_ns": 20_000_000, "stream": 0}, {}),
        ("transport-mismatch", {"pretend_transport": "udp"}, {}),
        ("adapter-failed", {"pretend_transport": "shm"}, {}),
        ("records-inconsistent", {"stray_at": 40, "stream": 0}, {}),
    ],
)
def test_a_reason_is_forced(
    build: Path, tmp_path: Path, reason: str, faults: dict[str, Any], matrix: dict[str, Any]
) -> None:
    found = reasons(run(build, tmp_path, {"faulty": {"over": "shm", **faults}}, matrix=matrix))
    assert reason in found, found
    # What the reader heard, and the words that are known: an author needs both to go on.
    also = {
        "endpoints-missing": " heard 0 of 1 publishers",
        "adapter-failed": "; did you mean 'shared-memory'?",
    }
    assert also.get(reason, "") in found[reason], found


def test_without_a_fault_nothing_is_found(build: Path, tmp_path: Path) -> None:
    rows = run(build, tmp_path, {"faulty": {"over": "tcp"}}, matrix={"payload": "32KB", **KEEP_ALL})
    wrong = set(reasons(rows)) - {"rate-missed"}  # a machine that stands still keeps no rate
    assert not wrong, rows["reasons"][0].to_list()
    edges = rows.filter(pl.col("edge") != "end-to-end")
    assert edges["transport"].to_list() == ["tcp", "tcp"]
    assert rows["kernel_loopback_bytes"][0] >= 32_000 * edges["n"].sum()
    assert rows["latency_infinite_from"].null_count() == rows.height
    assert rows["noisy"].null_count() == 0


def test_a_spin_is_in_the_latency_of_what_it_strikes(build: Path, tmp_path: Path) -> None:
    spin_ns = 1_500_000
    rows = run(build, tmp_path, {"faulty": {"over": "shm", "spin": 1, "spin_ns": spin_ns, "stream": 0}})
    first = rows.row(by_predicate=pl.col("edge") == "source→relay-1", named=True)
    assert first["latency_min_ns"] >= spin_ns
    second = rows.row(by_predicate=pl.col("edge") == "relay-1→sink", named=True)
    assert second["latency_min_ns"] < spin_ns


def test_best_effort_may_lose_and_reorder(build: Path, tmp_path: Path) -> None:
    faults = {"over": "shm", "drop": 0.2, "reorder_at": 41, "stream": 0}
    rows = run(build, tmp_path, {"faulty": faults}, matrix={"reliability": "best_effort", "depth": 64})
    assert not set(reasons(rows)) - {"rate-missed"}, reasons(rows)
    assert "lost" in warnings(rows)
    first = rows.row(by_predicate=pl.col("edge") == "source→relay-1", named=True)
    assert first["latency_p50_lost_ns"] >= first["latency_p50_ns"] > 0
    assert first["latency_p90_lost_ns"] is None
    assert first["latency_infinite_from"] == first["n"] / (first["n"] + first["lost"] + first["censored"])


def test_the_same_seed_strikes_the_same_messages(build: Path, tmp_path: Path) -> None:
    struck = []
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        (tmp_path / name).mkdir()
        run(
            build,
            tmp_path / name,
            {"faulty": {"drop": 0.3, "seed": seed}},
            matrix={"reliability": "best_effort"},
        )
        samples = pl.concat(
            [pl.read_parquet(p) for p in (tmp_path / name / "out" / "samples").rglob("0.parquet")]
        )
        sent = samples.filter((pl.col("edge") == "source→relay-1") & (pl.col("sequence") < 60))
        struck.append(set(sent.filter(pl.col("outcome") != "delivered")["sequence"].to_list()))
    assert struck[0] == struck[1] != struck[2]
    assert 5 < len(struck[0]) < 35


@pytest.mark.parametrize(("limit_hz", "lost"), [(400, False), (50, True)])
def test_a_limit_drops_what_is_above_it(build: Path, tmp_path: Path, limit_hz: int, lost: bool) -> None:
    faults = {"limit_rate_hz": limit_hz, "limit_burst": 40 if limit_hz == 400 else 2}
    rows = run(
        build, tmp_path, {"faulty": faults}, matrix={"reliability": "best_effort", "workload": "pipeline-2"}
    )
    row = rows.row(by_predicate=pl.col("edge") == "end-to-end", named=True)
    assert (row["lost"] + row["censored"] > 0) == lost, row
    if lost:
        assert row["n"] < 0.5 * row["sent"]


def test_the_loopback_contradicts_shared_memory_that_is_only_mapped(build: Path, tmp_path: Path) -> None:
    """Fast DDS maps its segments and sends best effort over UDP: a claim that looks right by the mappings."""
    need("fastdds")
    options = {"faulty": {"over": "fastdds", "pretend_transport": "shared-memory"}}
    matrix = {"reliability": "best_effort", "payload": "32KB"}
    found = reasons(run(build, tmp_path, options, matrix=matrix, discovery_timeout="20s"))
    assert "observed: udp" in found["transport-mismatch"], found
    assert "B over the loopback for" in found["transport-mismatch"]


@pytest.mark.parametrize(
    ("reliability", "transport"), [("best_effort", "udp"), ("reliable", "shared-memory")]
)
def test_the_transport_that_fast_dds_really_uses(
    build: Path, tmp_path: Path, reliability: str, transport: str
) -> None:
    need("fastdds")
    matrix = {"adapter": "fastdds", "reliability": reliability, "payload": "32KB"}
    rows = run(build, tmp_path, {}, matrix=matrix, discovery_timeout="20s")
    assert "transport-mismatch" not in reasons(rows)
    assert rows.filter(pl.col("edge") != "end-to-end")["transport"].unique().to_list() == [transport]


def test_a_loss_is_explained_by_the_kernel(build: Path, tmp_path: Path) -> None:
    """Datagrams of 32 KB into a socket with room for none but a few, read by a node that works for 20 ms."""
    matrix = {
        "adapter": "udp",
        "workload": "pipeline-3",
        "payload": "32KB",
        "work": "busy-20ms",
        "reliability": "best_effort",
        "dispatch": "waitset",
    }
    rows = run(build, tmp_path, {"udp": {"socket_buffer_bytes": 65_536}}, matrix=matrix)
    lost = rows.filter(pl.col("edge") == "source→relay-1")["lost"][0]
    assert lost > 0
    assert rows["kernel_udp_receive_buffer_errors"][0] >= lost
    assert "receive buffer errors in the kernel" in warnings(rows)["lost"]
    evidence = journal(tmp_path / "out")[0]["evidence"]
    assert evidence["network"]["udp_receive_buffer_errors"] == rows["kernel_udp_receive_buffer_errors"][0]


def preloaded(folder: Path, name: str) -> dict[str, str]:
    """The environment in which a library of tests/preload is loaded into every program."""
    need("cc")
    library, source = folder / f"{name}.so", ROOT / "tests" / "preload" / f"{name}.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library)}


@pytest.fixture(scope="module")
def moving_clocks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose clocks move as LAGOMETER_TEST_CLOCK says."""
    return preloaded(tmp_path_factory.mktemp("preload"), "stepped_clock")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("forward", r"clock-stepped: the wall clock was set by \+[\d.]+ (µs|ms|s)"),
        ("backward", r"clock-stepped: the wall clock was set by -[\d.]+ (µs|ms|s)"),
        # Asleep, the wall clock goes on as well: nobody has set it.
        ("suspended", r"clock-stepped: the machine was suspended for [\d.]+ (µs|ms|s)"),
        ("pulled", r"clock-stepped: the clock was pulled by 1\.00% against the hardware's"),
        ("disciplined", None),
    ],
)
def test_clocks_that_move_against_each_other_fail_the_trial(
    build: Path, tmp_path: Path, moving_clocks: dict[str, str], how: str, said: str | None
) -> None:
    moving = {**moving_clocks, "LAGOMETER_TEST_CLOCK": how}
    rows = run(build, tmp_path, {"faulty": {}}, environment=moving)
    found = [reason for reason in rows["reasons"][0] if reason.startswith("clock-stepped")]
    assert len(found) == (said is not None), found
    assert said is None or re.fullmatch(said, found[0]), found
    clocks = journal(tmp_path / "out")[0]["evidence"]["clocks"]
    wall, asleep, slewed = clocks["wall_step_ns"], clocks["suspended_ns"], clocks["slewed_ns"]
    moved = {"forward": wall, "backward": -wall, "suspended": asleep, "pulled": slewed, "disciplined": slewed}
    assert moved[how] > clocks["uncertainty_ns"], "it did move"


def test_another_clock_source_fails_the_trial(
    build: Path, tmp_path: Path, moving_clocks: dict[str, str]
) -> None:
    need("netns")
    (tmp_path / "source").write_text("tsc\n")
    environment = {
        **moving_clocks,
        "LAGOMETER_TEST_CLOCK_SOURCE": str(tmp_path / "source"),
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }
    study = write_study(tmp_path, matrix={**CELL, "adapter": "shm"}, duration="20s", machine_floor="off")
    arguments = ("run", str(study), "--out", str(tmp_path / "out"), "--no-report")
    with running(tmp_path, *arguments, environment=environment) as campaign:
        assert wait_until(lambda: campaign.reached("measure", 0)), campaign.events()
        # As the kernel does when it finds the time stamp counter unstable.
        (tmp_path / "source").write_text("hpet\n")
        for pid in campaign.processes("lagometer-worke"):
            os.kill(pid, signal.SIGKILL)
        campaign.end()
    (entry,) = journal(tmp_path / "out")
    assert "clock-stepped: the clock source changed from tsc to hpet" in entry["reasons"]


def test_a_receiver_whose_clock_is_behind_fails_the_trial(build: Path, tmp_path: Path) -> None:
    """Its messages seem to be taken before they were published; its sender's, on the edge before, do not."""
    found = reasons(run(build, tmp_path, {"faulty": {}}, environment=preloaded(tmp_path, "slow_clock")))
    assert set(found) - {"rate-missed"} == {"clock-inconsistent"}, found
    said = re.fullmatch(
        r"clock-inconsistent: relay-1→sink, taken (\S+) (ns|µs|ms) before it was published",
        found["clock-inconsistent"],
    )
    assert said is not None, found
    assert 0 < parse_duration_ns(said[1] + said[2]) <= BEHIND_NS


def test_a_message_that_nobody_sent_is_counted_where_it_came_in(build: Path, tmp_path: Path) -> None:
    rows = run(build, tmp_path, {"faulty": {"stray_at": 40, "stream": 0}})
    assert reasons(rows)["records-inconsistent"] == (
        "records-inconsistent: source→relay-1, 1 messages nobody sent"
    )
    unmatched = dict(rows.select("edge", "unmatched").iter_rows())
    assert (unmatched["source→relay-1"], unmatched["relay-1→sink"]) == (1, 0)


def test_a_spinning_realtime_thread_is_found_throttled(build: Path, tmp_path: Path) -> None:
    need("realtime")
    matrix = {
        "adapter": "shm",
        "workload": "pipeline-2",
        "rate": "100Hz",
        "dispatch": "poll",
        "scheduling": "fifo",
        "payload": "64B",
    }
    # Newer kernels stop it only while ordinary threads starve: something ordinary must want each CPU.
    busy = [
        subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(len(os.sched_getaffinity(0)) + 1)
    ]
    try:
        rows = run(build, tmp_path, {}, matrix=matrix, duration="3200ms")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    found = reasons(rows)
    threads = [thread for worker in journal(tmp_path / "out")[0]["threads"].values() for thread in worker]
    assert "realtime-throttled" in found, (found, json.dumps(threads))
    assert "node:sink of sink" in found["realtime-throttled"]


def test_faulty_is_what_the_other_adapter_is(build: Path) -> None:
    """Its own sidecar is that of the adapter it wraps by default."""
    own, wrapped = (
        json.loads((adapter_library(name, build).parent / "adapter.json").read_text())
        for name in ("faulty", "shm")
    )
    for key in ("scope", "abilities", "limits"):
        assert own[key] == wrapped[key]
