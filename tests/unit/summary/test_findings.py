# SPDX-License-Identifier: Apache-2.0
"""Findings: each kind is forced once, with the number that shows it; a clean campaign has none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from synthetic_campaign import Shape, write_campaign

from lagometer.cli.show.command import as_json, render
from lagometer.report.build import build_report
from lagometer.store.reader import open_campaign
from lagometer.study.adapters import load_adapter
from lagometer.summary.findings.derive import RULES
from lagometer.summary.findings.evidence import CellEvidence, Said, cells_of
from lagometer.summary.findings.traps import holds, traps
from lagometer.summary.summarise import summarise

ROOT = Path(__file__).parents[3]
FACTORS = {"adapter": "fastdds", "payload_bytes": 409_600, "rate_hz": 100.0, "depth": 1}
SYSCTLS = {
    "net.core.rmem_default": 212_992,
    "net.core.rmem_max": 212_992,
    "net.ipv4.ipfrag_high_thresh": 4_194_304,
}
CAPACITY_NS = 2_000_000_000


def cell_with(
    row: Mapping[str, Any] | None = None,
    *,
    reasons: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
    load: Mapping[str, int] | None = None,
    factors: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
    topics: Mapping[str, Any] | None = None,
    private: bool = True,
    line: Mapping[str, Any] | None = None,
) -> CellEvidence:
    """A cell of two trials, of which the second has what is given."""
    plain = {
        "edge": "source→sink",
        "n": 100,
        "sent": 100,
        "lost": 0,
        "transport": "udp",
        "latency_p50_ns": 9e4,
    }
    evidence = {"private": private, "load": {"capacity_ns": CAPACITY_NS, "stolen_ns": 0, **(load or {})}}
    manifest = {
        "cells": [{"id": "c", "factors": FACTORS | dict(factors or {}), "topics": dict(topics or {})}],
        "settings": {"c": [{"object": "context", "settings": dict(settings or {})}]},
        "versions": dict(versions or {}),
        "study": {
            "hosts": {
                "robot": {"emulated": True, "device": {"name": "pi-4", "cpus": 4, "speed_mips": 1752.0}},
                "base": {"emulated": True},
                "cloud": {},
            }
        },
    }
    rows = [
        {"cell": "c", "trial": 0, **plain},
        {"cell": "c", "trial": 1, **plain, **(row or {})},
    ]
    journal = [
        {"cell": "c", "trial": 0, "valid": True, "reasons": [], "warnings": []},
        {"cell": "c", "trial": 1, "valid": not reasons, "reasons": list(reasons), "warnings": list(warnings)},
    ]
    journal[1] |= {"evidence": evidence, **(line or {})}
    (cell,) = cells_of(manifest, {"sysctls": SYSCTLS}, rows, journal)
    return cell


def said_of(cell: CellEvidence) -> dict[str, Said]:
    return {each.kind: each for rule in RULES for each in rule(cell)}


DROPS = {"kernel_udp_receive_buffer_errors": 143, "lost": 42}
NO_DROPS = {"kernel_udp_receive_buffer_errors": 0}
GROWS, NOTHING = "queue-builds-up: source→sink", "nothing-received: source→sink"
LINK: dict[str, Any] = {
    "back_end": "user-space",
    "device": "eth0",
    "cpu_ns": 9_000_000,
    "figures": [
        {"what": "delay_ns", "asked": 35e6, "measured": 36e6},
        {"what": "loss", "asked": 0.01, "measured": 0.012},
        {"what": "mtu_bytes", "asked": 1500, "measured": 1500},
    ],
}
_STATE = {"rate_bps": 12_000_000, "delay_ns": 35_000_000, "came": 40, "full": 0, "carried_bytes": 9000}
CHANGED_LINK: dict[str, Any] = {
    **LINK,
    "did": {
        "program": {
            "changes": [
                {"at_ns": 2_000_000_000, "late_ns": 80_000, "loss": 1.0, "lost": 40, **_STATE},
                {"at_ns": 2_300_000_000, "late_ns": 9_000, "loss": 0.01, "lost": 1, **_STATE, "came": 91},
            ]
        }
    },
}
DEVICE: dict[str, Any] = {
    "host": "robot",
    "group": "lagometer-1-robot",
    "cpus": 4,
    "share": 0.584,
    "quotas": {"process": {"quota_us": 1000, "period_us": 1713}, "host": {}},
    "verified": {"asked": 1.168, "measured": 1.15, "run_ns": 4_100_000, "stall_ns": 2_900_000},
    "throttled": {
        "window_ns": 3_000_000_000,
        "processes": {"periods": 90, "throttled": 7, "throttled_ns": 12_000_000},
        "host": {"periods": 3, "throttled": 0, "throttled_ns": 0},
    },
}
DEVICE_TEXT = (
    "robot as pi-4 (4 CPUs of 1,752 MIPS): each process 58.4% of a CPU, 1.00 ms in each 1.71 ms, busy "
    "processes got 98% to 98% of that, ran up to 4.10 ms and stalled up to 2.90 ms at a time, in the "
    "trials they stalled 12.0 ms of 3.00 s"
)
NEVER = {"periods": 90, "throttled": 0, "throttled_ns": 0}
UNTOUCHED = {**DEVICE, "throttled": {"window_ns": 3_000_000_000, "processes": NEVER, "host": NEVER}}
FORCED: list[tuple[str, str, dict[str, Any]]] = [
    (
        "receive-buffer-overflow",
        "143 receive-buffer errors",
        {"row": DROPS, "factors": {"payload_bytes": 1024}},
    ),
    ("message-exceeds-receive-buffer", "208 KB", {"row": DROPS}),
    ("fragments-lost", "7 failed", {"row": {"kernel_ip_reassembly_failed": 7}}),
    ("send-buffer-full", "5 send-buffer", {"row": {"kernel_udp_send_buffer_errors": 5}}),
    ("backlog-overflow", "3 packets", {"row": {"kernel_softnet_dropped": 3, "lost": 1}}),
    ("tcp-retransmitted", "11 segments", {"row": {"kernel_tcp_retransmitted": 11}}),
    ("queue-builds-up", "330 ms", {"row": {"response_growth_ns_per_s": 3.3e8}, "warnings": (GROWS,)}),
    ("queue-overwrote", "9 of 100", {"row": {"overwritten": 9}}),
    (
        "older-than-lifespan",
        "9 of 100 messages, with a lifespan of 40 ms",
        {
            "row": {"overwritten": 9},
            "line": {"warnings": ["overwritten: a→b, 9 messages, with a lifespan of 40 ms"]},
        },
    ),
    ("lost-in-a-queue", "8 of 100", {"row": {"lost": 8} | NO_DROPS}),
    ("still-on-the-way", "4 of 100", {"row": {"censored": 4}}),
    ("sender-refused", "6 messages", {"row": {"rejected": 6}}),
    ("taken-twice", "2 messages", {"row": {"duplicated": 2}, "reasons": ("duplicated: source→sink 2",)}),
    ("out-of-order", "3 messages", {"row": {"reordered": 3}}),
    ("publish-blocks", "6.00 ms", {"row": {}}),
    ("rate-beyond-the-sender", "80 %", {"reasons": ("rate-missed: stream 0 published 80 % of 100",)}),
    ("schedule-skipped", "12 messages", {"warnings": ("skipped: 12 messages",)}),
    ("schedule-shifted", "3 ms", {"warnings": ("shifted: by 3 ms",)}),
    ("cpu-quota", "4 periods", {"load": {"quota_throttled": 4}}),
    ("too-hot", "2 times", {"load": {"thermal_throttled": 2}}),
    ("hypervisor-stole-time", "5.0%", {"load": {"stolen_ns": CAPACITY_NS // 20}}),
    ("clock-stepped", "+3.000 ms", {"reasons": ("clock-stepped: the wall clock was set by +3.000 ms",)}),
    ("realtime-throttled", "kept waiting", {"reasons": ("realtime-throttled: thread a was kept waiting",)}),
    ("scheduling-refused", "fifo", {"reasons": ("scheduling-refused: fifo 10",)}),
    ("no-memory", "1 GiB", {"reasons": ("no-memory: 1 GiB of records",)}),
    ("recorder-full", "writer", {"reasons": ("recorder-full: writer of stream 0",)}),
    ("not-steady", "1 trials", {"warnings": ("not-steady",)}),
    ("emulated-hosts", "robot, base", {"factors": {"hosts": "robot+base+cloud"}}),
    (
        "emulated-link",
        "MTU 1500 B (asked 1500 B), its own CPU time 9.00 ms of a measure phase at most",
        {"factors": {"link": "lte"}, "line": {"links": [LINK]}},
    ),
    (
        "emulated-link",
        "loss 1 % (1 of 91 frames dropped, 9,000 B carried) (at most 80.0 µs late)",
        {"factors": {"link": "mine"}, "line": {"links": [CHANGED_LINK]}},
    ),
    ("emulated-device", DEVICE_TEXT, {"factors": {"hosts": "robot"}, "line": {"devices": [DEVICE]}}),
    (
        "device-without-effect",
        "robot",
        {"factors": {"hosts": "robot"}, "line": {"devices": [UNTOUCHED]}},
    ),
    ("device-differs", "0.9 CPUs", {"reasons": ("device-differs: busy processes got 0.9 CPUs",)}),
    ("device-failed", "no root", {"reasons": ("device-failed: no root",)}),
    (
        "recovered-after-outage",
        "90 ms at most; nothing came before the next after 1 of 4 outages); sink→source recovered after none",
        {
            "line": {
                "outages": [
                    {"edge": "source→sink", "recovered_ns": [40_000_000, None, 90_000_000, 10_000_000]},
                    {"edge": "sink→source", "recovered_ns": [None]},
                ]
            }
        },
    ),
    (
        "delivered-in-bursts",
        "source→sink: one message was 6.00 s later than the fastest, and about 12 came together with it",
        {
            "factors": {"reliability": "reliable"},
            "row": {"latency_min_ns": 1e6, "latency_max_ns": 6.001e9, "rate_intended_hz": 2.0},
            "line": {"links": [{**LINK, "figures": [LINK["figures"][1]]}]},
        },
    ),
    ("link-differs", "35 ms asked", {"reasons": ("link-differs: lte by kernel: delay: 35 ms asked",)}),
    ("link-failed", "no tc", {"reasons": ("link-failed: lte can't be emulated on lo: no tc",)}),
    ("link-not-crossed", "shared-memory", {"reasons": ("link-not-crossed: went by shared-memory",)}),
    ("clocks-differ", "of source→sink", {"row": {"clock": "offset", "clock_bound_ns": None}}),
    ("one-way-bound", "source→sink ± 20.0 µs", {"row": {"clock": "offset", "clock_bound_ns": 20_000}}),
    (
        "one-way-bound",
        "source→sink ± 200 µs (p50 is below that)",
        {"row": {"clock": "offset", "clock_bound_ns": 200_000}},
    ),
    ("nothing-received-too-large", "a message has 400 KB", {"row": DROPS | {"n": 0}, "reasons": (NOTHING,)}),
    ("nothing-received", "no drops in the kernel", {"row": {"n": 0} | NO_DROPS, "reasons": (NOTHING,)}),
    ("never-met", "sink", {"reasons": ("endpoints-missing: sink got no probe of stream 0",)}),
    ("pair-never-met", "sink", {"reasons": ("endpoints-missing: sink",), "factors": {"adapter": "udp+shm"}}),
    ("worker-out-of-shared-memory", "signal 7", {"reasons": ("worker-died: sink, signal 7",)}),
    ("worker-killed", "signal 9", {"reasons": ("worker-died: sink, signal 9",)}),
    ("worker-crashed", "signal 11", {"reasons": ("worker-died: sink, signal 11",)}),
    ("worker-aborted", "signal 6", {"reasons": ("worker-died: sink, signal 6",)}),
    ("transport-mismatch", "claims udp", {"reasons": ("transport-mismatch: e claims udp, seen is tcp",)}),
    ("lost-keep-all", "e 1", {"reasons": ("lost-keep-all: e 1",)}),
    ("corrupted", "e 2", {"reasons": ("corrupted: e 2",)}),
    ("daemon-not-ready", "roudi", {"reasons": ("daemon-not-ready: roudi",)}),
    ("daemon-died", "roudi", {"reasons": ("daemon-died: roudi",)}),
    ("worker-hung", "sink", {"reasons": ("worker-hung: sink",)}),
    ("incompatible-qos", "writer source", {"reasons": ("incompatible-qos: writer source",)}),
    ("middleware-noticed-loss", "3 reported", {"row": {"event_lost": 3}}),
    ("reader-missed-deadline", "4 times", {"row": {"event_deadline_missed": 4}}),
    ("writer-missed-deadline", "5 times", {"row": {"event_deadline_missed_offered": 5}}),
    ("adapter-failed", "no port", {"reasons": ("adapter-failed: no port",)}),
]


@pytest.mark.parametrize(("kind", "number", "given"), FORCED, ids=[kind for kind, _, _ in FORCED])
def test_each_kind_says_the_number_and_a_fix(kind: str, number: str, given: dict[str, Any]) -> None:
    cell = cell_with(**given)
    if kind == "publish-blocks":  # a figure of every valid trial
        for trial in cell.trials:
            for row in trial.rows:
                row["blocked_p50_ns"] = 6e6  # type: ignore[index]
    found = said_of(cell)
    assert kind in found, f"found {sorted(found)}"
    assert number in found[kind].number
    assert found[kind].what and found[kind].fix and found[kind].source
    assert found[kind].trials == (2 if kind in ("publish-blocks", "emulated-hosts") else 1)


def test_a_limit_that_acted_is_not_said_to_be_without_effect() -> None:
    line = {"devices": [DEVICE]}
    assert "device-without-effect" not in said_of(cell_with(factors={"hosts": "robot"}, line=line))


def test_the_page_on_findings_names_each_kind() -> None:
    page = (ROOT / "docs" / "methodology" / "findings.md").read_text(encoding="utf-8")
    kinds = {kind for kind, _, _ in FORCED} | {trap["kind"] for each in declared().values() for trap in each}
    assert sorted(kind for kind in kinds if f"`{kind}`" not in page) == []


def test_what_is_said_of_a_failed_trial_is_said_once() -> None:
    assert set(said_of(cell_with(DROPS | {"n": 0, "lost": 0}, reasons=(NOTHING,)))) == {
        "nothing-received-too-large"
    }


def test_counters_that_were_not_read_prove_nothing() -> None:
    """As of a campaign from another tool: nobody knows what the kernel dropped."""
    assert said_of(cell_with({"lost": 8})) == {}
    found = said_of(cell_with({"n": 0}, reasons=(NOTHING,)))
    assert "kernel" not in found["nothing-received"].number


def test_a_quiet_cell_has_none() -> None:
    assert said_of(cell_with()) == {}


def test_the_machines_counters_alone_prove_nothing() -> None:
    """Of the whole machine on the host's network: others' packets."""
    assert said_of(cell_with({"kernel_softnet_dropped": 3})) == {}
    assert said_of(cell_with({"kernel_tcp_retransmitted": 3}, private=False)) == {}


def test_a_loss_that_the_kernel_explains_is_not_blamed_on_a_queue() -> None:
    found = said_of(cell_with({"lost": 8, "kernel_udp_receive_buffer_errors": 20}))
    assert set(found) == {"message-exceeds-receive-buffer"}
    assert "8 messages never arrived" in found["message-exceeds-receive-buffer"].what


def declared() -> dict[str, Any]:
    adapters = ("fastdds", "zeromq", "nng", "mqtt", "ros1")
    sidecars = {name: load_adapter(ROOT / "adapters" / name).sidecar for name in adapters}
    return {name: [trap.model_dump(mode="json") for trap in each.traps] for name, each in sidecars.items()}


def trapped(cell: CellEvidence) -> dict[str, Said]:
    return {each.kind: each for each in traps(cell, declared())}


def test_hosts_with_different_builds_are_named() -> None:
    def said(shm: str, version: str, **more: Any) -> list[str]:
        hosts = {
            "robot": {"files": {"shm": "a" * 64, "lagometer-worker": "w"}, "adapters": {"shm": "1.0"}},
            "base": {"files": {"shm": shm * 64, "lagometer-worker": "w"}, "adapters": {"shm": version}},
            "other": {"files": {"shm": "x" * 64}, "adapters": {}},
        }
        cell = {"id": "c", "factors": {"hosts": "robot+base", **more}}
        (found,) = cells_of({"cells": [cell], "hosts": hosts}, {}, [], [])
        return [each.number for rule in RULES for each in rule(found) if each.kind == "hosts-differ"]

    assert said("a", "1.0") == []
    assert said("b", "1.0", hosts="robot") == []
    number = "shm: robot has aaaaaaaaaaaa of version 1.0, base has bbbbbbbbbbbb of version 1.0 (SHA-256)"
    assert said("b", "1.0") == [number]
    assert said("a", "1.1")[0].endswith("base has aaaaaaaaaaaa of version 1.1 (SHA-256)")


def test_of_topics_with_payloads_of_their_own_the_largest_is_held_against_the_segment() -> None:
    sizes = {"image": {"payload_bytes": 921_600}, "pose": {"payload_bytes": {"min": 1, "max": 64}}}
    cell = cell_with({"transport": "shared-memory"}, factors={"payload_bytes": None}, topics=sizes)
    number = trapped(cell)["payload-exceeds-segment"].number
    assert number == "a message has 900 KB, the segment 512 KB"
    small = {"pose": sizes["pose"]}
    cell = cell_with({"transport": "shared-memory"}, factors={"payload_bytes": None}, topics=small)
    assert "payload-exceeds-segment" not in trapped(cell)


def test_a_payload_above_the_segment_is_a_trap_of_shared_memory_alone() -> None:
    megabyte = {"payload_bytes": 1 << 20}
    shared = [{"transport": "shared-memory"}, {"transport": "udp"}]
    cell = cell_with(shared[0], factors=megabyte)
    assert trapped(cell)["payload-exceeds-segment"].number == "a message has 1 MB, the segment 512 KB"
    assert "payload-exceeds-segment" not in trapped(cell_with(shared[1], factors=megabyte))
    larger = cell_with(shared[0], factors=megabyte, settings={"shm_segment_bytes": {"value": 67_108_864}})
    assert "payload-exceeds-segment" not in trapped(larger)
    assert "payload-exceeds-segment" not in trapped(cell_with(shared[0], factors={"payload_bytes": 65_536}))


def test_best_effort_over_udp_names_the_release_with_the_fix() -> None:
    factors = {"reliability": "best_effort"}
    found = trapped(cell_with(factors=factors, versions={"fastdds": "2.9.1"}))
    assert "2.9.2" in found["best-effort-over-udp"].fix
    assert "best-effort-over-udp" not in trapped(cell_with(factors=factors, versions={"fastdds": "2.11.2"}))


@pytest.mark.parametrize("pair", ["cyclonedds+fastdds", "fastdds+cyclonedds"])
def test_two_vendors_have_no_shared_memory_to_miss(pair: str) -> None:
    factors = {"reliability": "best_effort", "adapter": pair}
    assert trapped(cell_with(factors=factors, versions={"fastdds": "2.9.1"})) == {}


def test_a_depth_that_bounds_the_sender_is_named_where_a_queue_builds_up() -> None:
    growing = cell_with(factors={"adapter": "zeromq"}, warnings=("queue-builds-up: source→sink",))
    assert "depth 1" in trapped(growing)["depth-bounds-the-sender"].number
    assert trapped(cell_with(factors={"adapter": "zeromq"})) == {}


def test_waiting_for_an_acknowledgement_is_seen_at_the_tail() -> None:
    slow = {"transport": "tcp", "latency_p99_ns": 41e6}
    cell = cell_with(slow, factors={"adapter": "mqtt"})
    for trial in cell.trials:
        for row in trial.rows:
            row.update(slow)  # type: ignore[attr-defined]
    assert "p99 41.0 ms" in trapped(cell)["nagle-waits"].number


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("factor.depth = 1", True),
        ("factor.depth > 1", False),
        ("factor.payload_bytes >= 400KB", True),
        ("factor.missing = 1", False),
        ("factor.missing|2 = 2", True),
        ("transport = udp", True),
        ("transport has tcp", False),
        ("factor.adapter != zeromq", True),
        ("figure.latency_p50_ns < 1ms", True),
        ("factor.adapter > 3", False),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    assert holds(cell_with(), "fastdds", condition) is expected


def test_every_view_shows_the_same(tmp_path: Path) -> None:
    """The page's data, `show`, `show --json` and the summary: the same findings, cells and figures, in the
    same order.
    """
    shape = Shape(adapters=("udp", "shm"), payloads_bytes=(64, 1024), trials=2, messages=200)
    directory = write_campaign(tmp_path, shape)
    manifest = json.loads((directory / "manifest.json").read_text())
    trap = {
        "kind": "a-trap",
        "when": ["factor.adapter = udp"],
        "what": "w",
        "number": "{factor.payload_bytes}",
    }
    manifest["traps"] = {"udp": [trap | {"fix": "f", "source": "s"}]}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    campaign = open_campaign(directory)
    summary, report, told = summarise(campaign), build_report(campaign), as_json(campaign)
    assert [each.model_dump() for each in summary.findings] == told["findings"]
    assert report.findings == summary.findings and len(summary.findings) >= 4
    assert [cell.id for cell in report.cells] == [cell.id for cell in summary.cells]
    assert list(dict.fromkeys(row["cell"] for row in told["rows"])) == [
        cell.id for cell in summary.cells if any(row.cell == cell.id for row in summary.rows)
    ]
    assert told["glance"] == (summary.glance.model_dump() if summary.glance else None)
    assert report.glance == summary.glance
    for name in ("deadlines", "interference"):
        assert told[name] == [each.model_dump() for each in getattr(report, name) if _end_to_end(each)]
    console = Console(width=200, record=True, no_color=True, highlight=False)
    with console.capture() as captured:
        render(directory, console)
    text = captured.get()
    places = [text.index(f"      {each.cell} (") for each in summary.findings if each.kind == "a-trap"][:3]
    assert places == sorted(places)
    assert "a-trap: w" in text and "fix: f" in text and "source: s" in text


def _end_to_end(each: object) -> bool:
    return getattr(each, "edge", "end-to-end") == "end-to-end"


def test_a_clean_campaign_has_no_finding(tmp_path: Path) -> None:
    """The synthetic one has losses, stolen time and failed trials on purpose, and nothing else."""
    shape = Shape(adapters=("udp", "shm", "cyclonedds"), reliabilities=("reliable",), trials=2, messages=300)
    found = summarise(open_campaign(write_campaign(tmp_path, shape))).findings
    assert {each.kind for each in found} <= {
        "lost-in-a-queue",
        "hypervisor-stole-time",
        "rate-beyond-the-sender",
    }
