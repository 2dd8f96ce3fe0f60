# SPDX-License-Identifier: Apache-2.0
"""Findings: each kind is forced once, with the number that shows it; a clean campaign has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forced_findings import DEVICE, DROPS, FORCED, NO_DROPS, NOTHING, cell_with, said_of
from synthetic_campaign import Shape, write_campaign

from lagometer.stats.verdict.validity import WARNINGS
from lagometer.store.reader import open_campaign
from lagometer.study.adapters import load_adapter
from lagometer.summary.findings.derive import RULES
from lagometer.summary.findings.evidence import CellEvidence, Said, cells_of
from lagometer.summary.findings.traps import holds, traps
from lagometer.summary.summarise import summarise

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("kind", "number", "given"), FORCED, ids=[kind for kind, _, _ in FORCED])
def test_each_kind_says_the_number_and_a_fix(kind: str, number: str, given: dict[str, Any]) -> None:
    cell = cell_with(**given)
    if kind == "publish-blocks":  # a figure of every valid trial
        for trial in cell.trials:
            for row in trial.rows:
                row.update({"blocked_p50_ns": 6e6, "rate_intended_hz": 100.0})  # type: ignore[attr-defined]
    found = said_of(cell)
    assert kind in found, f"found {sorted(found)}"
    assert number in found[kind].number
    assert found[kind].what and found[kind].fix and found[kind].source
    assert found[kind].trials == (2 if kind in ("publish-blocks", "emulated-hosts") else 1)


def test_a_limit_that_acted_is_not_said_to_be_without_effect() -> None:
    line = {"devices": [DEVICE]}
    assert "device-without-effect" not in said_of(cell_with(factors={"hosts": "robot"}, line=line))


@pytest.mark.parametrize("word", WARNINGS)
def test_a_finding_says_what_to_do_about_each_warning(word: str) -> None:
    """Except for losses where nobody read the kernel's counters: see below."""
    cell = cell_with({word: 3} | NO_DROPS, warnings=(f"{word}: source→sink, 3 messages",))
    assert [each.fix for each in said_of(cell).values() if each.fix]


@pytest.mark.parametrize(
    ("adapter", "profile", "named"),
    [
        ("fastdds", "default", "`socket_buffer_bytes` (options of fastdds), or `profile: matched`"),
        ("udp", "matched", "`socket_buffer_bytes` (options of udp)"),
        ("lcm", "matched", "`receive_buffer_bytes` (options of lcm)"),
        (
            "cyclonedds+fastdds",
            "matched",
            "`socket_receive_buffer` (options of cyclonedds) and `socket_buffer_bytes` (options of fastdds)",
        ),
        ("nng", "matched", "the manifest names no option of nng for it"),
    ],
)
def test_a_full_buffer_names_the_option_that_sets_it(adapter: str, profile: str, named: str) -> None:
    """By what the sidecars declare; nng's buffers count messages."""
    options = {name: load_adapter(ROOT / "adapters" / name).sidecar.options for name in adapter.split("+")}
    said = said_of(cell_with(DROPS, factors={"adapter": adapter, "profile": profile}, options=options))
    fix = said["message-exceeds-receive-buffer"].fix
    assert f"raise the receive buffer: {named}, and `sysctl net.core.rmem_max`" in fix
    row = {"kernel_udp_send_buffer_errors": 5}
    fix = said_of(cell_with(row, factors={"profile": "matched"}, options=options))["send-buffer-full"].fix
    assert ("`socket_buffer_bytes` (options of fastdds)" in fix) == ("fastdds" in adapter)


def test_a_buffer_as_the_middleware_reports_it_decides_whether_a_message_is_larger() -> None:
    cell = cell_with(DROPS, settings={"SO_RCVBUF": {"value": 4_194_304}})
    assert "a receive buffer holds 4 MB" in said_of(cell)["receive-buffer-overflow"].number


def test_what_was_sent_again_is_counted_or_said_to_be_unknown() -> None:
    """Captured packets of RTPS count it; without RTPS their counters are 0."""
    row = DROPS | {"lost": 0}

    def said(row: dict[str, Any], **factors: Any) -> Said:
        return said_of(cell_with(row, factors=factors))["message-exceeds-receive-buffer"]

    counted = row | {"wire_data": 900, "wire_resent": 1234}
    assert "1,234 messages or fragments sent again (captured packets)" in said(counted).number
    for unknown in (row, row | {"wire_data": 0, "wire_resent": 0}):
        assert "how many were sent again the middleware doesn't report" in said(unknown).number
        assert "so they were sent again" in said(unknown, reliability="reliable").what
        assert "they were sent again, or were none of the measure phase's" in said(unknown).what
    packets = row | {"wire_packets": 5000}
    for hidden in ({"wire_data": 900, "wire_resent": None}, {"wire_data": None, "wire_resent": None}):
        assert "neither the middleware nor the captured packets tell" in said(packets | hidden).number
    best_effort = said(row, reliability="best_effort")
    assert "sent again" not in best_effort.what + best_effort.number
    assert "sent again" not in said(DROPS).number


def test_what_the_study_does_not_set_has_its_default() -> None:
    """The manifest says which; a topic may have its own."""

    def what(cell: dict[str, Any]) -> str:
        rows = [{"cell": "c", "trial": 0, "edge": "source→sink", "n": 100, "sent": 100, "overwritten": 10}]
        rows[0] |= {"kernel_udp_receive_buffer_errors": 5}
        line = {"cell": "c", "trial": 0, "valid": True, "reasons": [], "warnings": []}
        manifest = {"cells": [{"id": "c", "factors": {"adapter": "fastdds", "depth": None}, **cell}]}
        (evidence,) = cells_of(manifest, {}, rows, [line])
        found = said_of(evidence)
        return f"{found['receive-buffer-overflow'].what}; {found['queue-overwrote'].number}"

    defaults = {"reliability": "best_effort", "history": "keep_last", "depth": 16}
    assert "none of the measure phase's; 10 of 100 messages at depth 16" in what({"defaults": defaults})
    topics = {"a": {"reliability": "reliable", "depth": 3}, "b": {"reliability": "reliable", "depth": 4}}
    both = what({"defaults": defaults, "topics": topics})
    assert "so they were sent again" in both and "depths that differ" in both


def test_the_call_that_publishes_is_held_against_the_period_of_its_own_edge() -> None:
    def found(*edges: tuple[str, float, float], reasons: tuple[str, ...] = ()) -> dict[str, Said]:
        rows = [
            {"cell": "c", "trial": 0, "edge": edge, "blocked_p50_ns": blocked_ns, "rate_intended_hz": rate_hz}
            for edge, blocked_ns, rate_hz in edges
        ]
        line = {"cell": "c", "trial": 0, "valid": not reasons, "reasons": list(reasons), "warnings": []}
        (cell,) = cells_of({"cells": [{"id": "c", "factors": {"rate_hz": 1000.0}}]}, {}, rows, [line])
        return said_of(cell)

    imu = ("imu→ekf", 5e3, 1000.0)
    assert found(("camera→detector", 8e5, 10.0), imu) == {}
    slow = ("camera→detector", 7e7, 10.0)
    assert "70.0 ms in the call, a message every 100 ms" in found(slow, imu)["publish-blocks"].number
    late = found(slow, imu, reasons=("rate-missed: imu published 9 of 10 messages",))
    assert "its thread did not get to run" in late["rate-beyond-the-sender"].what
    late = found(slow, imu, reasons=("rate-missed: camera published 9 of 10 messages",))
    assert "the call that publishes took too long" in late["rate-beyond-the-sender"].what


def test_what_was_sent_for_nothing_is_that_of_the_edges_without_a_message() -> None:
    rows = [
        {"cell": "c", "trial": 0, "edge": edge, "n": n, "sent": sent}
        for edge, n, sent in (("camera→detector", 0, 10), ("imu→ekf", 5000, 5000))
    ]
    line = {"cell": "c", "trial": 0, "valid": False, "warnings": []}
    line["reasons"] = ["nothing-received: camera→detector"]
    (cell,) = cells_of({"cells": [{"id": "c", "factors": {}}]}, {}, rows, [line])
    assert said_of(cell)["nothing-received"].number.startswith("10 messages were sent; camera→detector")


def test_what_overlapping_ways_could_not_pass_on_is_counted_once() -> None:
    """Rows of whole ways: an edge has no such messages, and a chain is part of end to end."""
    ways = {"end-to-end": 3, "there": 7, "source→sink": None}
    rows = [{"cell": "c", "trial": 0, "edge": edge, "sent": 50, "unreachable": ways[edge]} for edge in ways]
    line = {"cell": "c", "trial": 0, "valid": True, "reasons": [], "warnings": []}
    (cell,) = cells_of({"cells": [{"id": "c", "factors": {}}]}, {}, rows, [line])
    assert said_of(cell)["node-was-away"].number == "7 of 57 messages (there)"
    (without,) = cells_of({"cells": [{"id": "c", "factors": {}}]}, {}, rows[2:], [line])
    assert "node-was-away" not in said_of(without)


def test_what_is_said_of_a_failed_trial_is_said_once() -> None:
    assert set(said_of(cell_with(DROPS | {"n": 0, "lost": 0}, reasons=(NOTHING,)))) == {
        "nothing-received-too-large"
    }


def test_where_nothing_was_sent_the_sender_alone_is_explained() -> None:
    missed = "rate-missed: source published 19 of 200 messages, 38 Hz instead of 400 Hz"
    nothing = {"n": 0, "sent": 0} | NO_DROPS
    assert set(said_of(cell_with(nothing, reasons=(missed, NOTHING)))) == {"rate-beyond-the-sender"}
    found = said_of(cell_with(nothing | {"sent": 162}, reasons=(missed, NOTHING)))
    assert set(found) == {"rate-beyond-the-sender", "nothing-received"}


def test_counters_that_were_not_read_prove_nothing() -> None:
    """As of a campaign from another tool: nobody knows what the kernel dropped."""
    assert said_of(cell_with({"lost": 8})) == {}
    found = said_of(cell_with({"n": 0}, reasons=(NOTHING,)))
    assert "kernel" not in found["nothing-received"].number


def test_what_a_link_dropped_is_said_where_nothing_was_received() -> None:
    """Seen with Fast DDS on a loopback that loses 30 %: both had met, and the reader never took a message."""
    links = [{"host": "here", "did": {"filter_dropped": 776, "shaper": None}}]
    row = {"n": 0, "sent": 60} | NO_DROPS
    said = said_of(cell_with(row, reasons=(NOTHING,), line={"links": links}))["nothing-received"]
    assert "; the emulated link dropped 776 frames, its verification included" in said.number
    assert said.fix.startswith("repeat the trial, or lose less: ")
    clean = said_of(cell_with(row, reasons=(NOTHING,)))["nothing-received"]
    assert "link" not in clean.number + clean.fix


def test_a_quiet_cell_has_none() -> None:
    assert said_of(cell_with()) == {}


def test_the_machines_counters_alone_prove_nothing() -> None:
    """Of the whole machine on the host's network: others' packets."""
    assert said_of(cell_with({"kernel_softnet_dropped": 3})) == {}
    assert said_of(cell_with({"kernel_tcp_retransmitted": 3}, private=False)) == {}


@pytest.mark.parametrize(("lost", "text"), [(8, "8 messages never arrived"), (1, "1 message never arrived")])
def test_a_loss_that_the_kernel_explains_is_not_blamed_on_a_queue(lost: int, text: str) -> None:
    found = said_of(cell_with({"lost": lost, "kernel_udp_receive_buffer_errors": 20}))
    assert set(found) == {"message-exceeds-receive-buffer"}
    assert text in found["message-exceeds-receive-buffer"].number


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


def test_another_build_is_named_in_the_cells_that_used_it() -> None:
    reports = {
        host: {
            "files": {"tcp": f"{host}-tcp", "udp": f"{host}-udp", "lagometer-worker": host},
            "adapters": {"tcp": "1.0", "udp": "1.0"},
        }
        for host in ("robot", "base")
    }
    cell = {"id": "c", "factors": {"hosts": "robot+base", "adapter": "tcp"}}
    (found,) = cells_of({"cells": [cell], "hosts": reports}, {}, [], [])
    said = [each.number for rule in RULES for each in rule(found) if each.kind == "hosts-differ"]
    assert [number.partition(":")[0] for number in said] == ["tcp", "lagometer-worker"]


def test_machines_of_different_types_are_not_told_to_have_one_build() -> None:
    def said(machine: str) -> Said:
        hosts = {
            "robot": {"files": {"shm": "a" * 64}, "adapters": {"shm": "1.0"}, "machine": "x86_64"},
            "base": {"files": {"shm": "b" * 64}, "adapters": {"shm": "1.0"}, "machine": machine},
        }
        cell = {"id": "c", "factors": {"hosts": "robot+base"}}
        (found,) = cells_of({"cells": [cell], "hosts": hosts}, {}, [], [])
        (finding,) = [each for rule in RULES for each in rule(found) if each.kind == "hosts-differ"]
        return finding

    alike, apart = said("x86_64"), said("aarch64")
    assert alike.fix.startswith("install the same build") and "x86_64" not in alike.number
    assert apart.fix.startswith("install the same versions")
    assert apart.number.endswith("base has bbbbbbbbbbbb of version 1.0 for aarch64 (SHA-256)")


def test_of_topics_with_payloads_of_their_own_the_largest_is_held_against_the_segment() -> None:
    sizes = {"image": {"payload_bytes": 921_600}, "pose": {"payload_bytes": {"min": 1, "max": 64}}}
    cell = cell_with({"transport": "shared-memory"}, factors={"payload_bytes": None}, topics=sizes)
    number = trapped(cell)["payload-exceeds-segment"].number
    assert number == "a message has 900 KB, the segment 512 KB"
    small = {"pose": sizes["pose"]}
    cell = cell_with({"transport": "shared-memory"}, factors={"payload_bytes": None}, topics=small)
    assert "payload-exceeds-segment" not in trapped(cell)


@pytest.mark.parametrize("adapter", ["zeromq", "zeromq+nng", "nng,zeromq"])
def test_a_trap_counts_for_each_adapter_of_the_topics(adapter: str) -> None:
    trap = {"kind": "k", "when": ["factor.depth = 1"], "what": "w", "number": "n", "fix": "f", "source": "s"}
    cell = cell_with(factors={"adapter": adapter})
    assert [said.kind for said in traps(cell, {"zeromq": [trap]})] == ["k"]


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
    for version, affected in (("2.10.1", True), ("2.10.2", False), ("2.11.0", True), ("2.11.2", False)):
        found = trapped(cell_with(factors=factors, versions={"fastdds": version}))
        assert ("best-effort-over-udp" in found) == affected
        assert not affected or found["best-effort-over-udp"].what.startswith(f"Fast DDS {version} sends ")


@pytest.mark.parametrize(("hosts", "shared"), [("here", True), ("robot", True), ("robot+base", False)])
def test_there_is_no_shared_memory_between_two_hosts(hosts: str, shared: bool) -> None:
    factors = {"reliability": "best_effort", "hosts": hosts}
    found = trapped(cell_with(factors=factors, versions={"fastdds": "2.9.1"}))
    assert ("best-effort-over-udp" in found) == shared


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
        ("factor.adapter in zeromq,fastdds", True),
        ("factor.adapter in zeromq,lcm", False),
        ("factor.missing in zeromq", False),
        ("factor.adapter != zeromq", True),
        ("figure.latency_p50_ns < 1ms", True),
        ("factor.adapter > 3", False),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    assert holds(cell_with(), "fastdds", condition) is expected


def test_a_clean_campaign_has_no_finding(tmp_path: Path) -> None:
    """The synthetic one has losses, stolen time and failed trials on purpose, and nothing else."""
    shape = Shape(adapters=("udp", "shm", "cyclonedds"), reliabilities=("reliable",), trials=2, messages=300)
    found = summarise(open_campaign(write_campaign(tmp_path, shape))).findings
    assert {each.kind for each in found} <= {
        "lost-in-a-queue",
        "hypervisor-stole-time",
        "rate-beyond-the-sender",
    }
