# SPDX-License-Identifier: Apache-2.0
"""Why there are too many nodes: each cause is named only where something shows it, with the figure."""

from __future__ import annotations

from typing import Any

import pytest

from lagometer.summary.findings.evidence import Said, cells_of
from lagometer.summary.findings.scaling import scaling

MIB = 1 << 20
S = 1_000_000_000
DIED = "worker-died: relay-50 was killed by {} in phase create"
HUNG = "worker-hung: no 'ready' from worker-0 within 80.5 s (phase create)"
UNMATCHED = (
    "endpoints-missing: 40 of 190 readers unmatched, first: relay-3 on t3; they heard 0 of 40 publishers; "
    "150 of 191 workers were matched, the last one {} before the end"
)
STILL = UNMATCHED.format("1.20 s") + ", so discovery was still making progress: use a longer timeout"
STOPPED = UNMATCHED.format("60.0 s") + ": discovery had stopped, so more time will hardly help"
NOT_KNOWN = "cause not known: nothing that was recorded shows it"


def look(**more: Any) -> dict[str, Any]:
    """A trial on two CPUs that had plenty of everything; and its 80 s until it ended."""
    load = {"capacity_ns": 160 * S, "busy_ns": 40 * S}
    plenty = {"host": "here", "window_ns": 80 * S, "load": load, "network": {}, "cpu_ns": 20 * S}
    plenty |= {"living": {"relay-3": {"threads": 9, "descriptors": 40}}, "descriptors_max": 1024}
    plenty |= {"shared_memory": {"bytes": 64 * MIB, "free_bytes": 60 * MIB}, "oom_kills": 0}
    return {**plenty, "memory": {"bytes": 8192 * MIB, "available_bytes": 4096 * MIB}, **more}


def full(own_ns: int, busy_ns: int = 158 * S) -> dict[str, Any]:
    return look(load={"capacity_ns": 160 * S, "busy_ns": busy_ns}, cpu_ns=own_ns)


def said_of(
    reason: str,
    log: str = "",
    looks: tuple[dict[str, Any], ...] = (),
    busy: tuple[float, float] | None = None,
) -> Said:
    """The finding of a cell that ends for this reason, after a smaller one that is valid.

    busy: the share of the CPUs' time of the smaller one and of this one, in their evidence.
    """
    listed, journal = [], []
    ends: dict[int, list[str]] = {100: [], 191: [reason]}
    for nodes, reasons in ends.items():
        cell = f"pipeline-{nodes}"
        listed.append({"id": cell, "factors": {"adapter": "a", "workload": cell}})
        line: dict[str, Any] = {"cell": cell, "trial": 0, "valid": not reasons, "reasons": reasons}
        if busy is not None:
            line["evidence"] = {"load": {"capacity_ns": 100, "busy_ns": round(100 * busy[bool(reasons)])}}
        journal.append({**line, "warnings": [], "last_look": list(looks) if reasons else []})
    given = list(cells_of({"cells": listed}, {}, [], journal))
    ((cell_found, said),) = scaling(given, lambda line: log if line["cell"] == "pipeline-191" else "")
    assert (cell_found.cell, said.kind) == ("pipeline-191", "too-many-nodes")
    return said


def expect(said: Said, because: str, number: str) -> None:
    assert said.what.endswith(f"; likeliest because {because}"), said.what
    assert f"; {number}; with 191 nodes, while 100 were valid" in said.number, said.number


@pytest.mark.parametrize(
    ("words", "because"),
    [
        ("socket: Too many open files", "a process has no descriptors left"),
        ('Os { code: 24, message: "No file descriptors available" }', "a process has no descriptors left"),
        (
            "1700.1 [0] worker: Failed to find a free participant index for domain 0",
            "the domain has no port left for another participant of this host",
        ),
        (
            "participant index 121: resulting port numbers (70000, 70001) are out of range",
            "the domain has no port left for another participant of this host",
        ),
        ("bind 7410: Address already in use", "a port that it needs is taken"),
        (
            "thrown: 'std::system_error'\n  what():  Resource temporarily unavailable",
            "no more threads may be created",
        ),
        ("Failed to create segment 1a2b: No space left on device", "/dev/shm has no room left"),
        ("terminate called: std::bad_alloc", "memory ran out"),
        ("memory allocation of 4096 bytes failed", "memory ran out"),
        ("lease expired: l 0x1 guid 1:2:3:4", "a participant's lease ran out before it was renewed"),
    ],
)
def test_what_the_middleware_says_names_the_cause(words: str, because: str) -> None:
    """In the log of a worker that died, and in the reason of one that failed in order."""
    line = words.rpartition("\n")[2].strip()
    for said in (
        said_of(DIED.format("SIGABRT"), log=f"--- relay-50 ---\n{words}\n--- relay-51 ---\n"),
        said_of(f"adapter-failed: relay-50 in phase create: {words}"),
    ):
        assert f"; likeliest because {because}" in said.what
        assert line[-60:] in said.number and "; it says: '" in said.number


def test_a_line_is_quoted_where_the_words_are() -> None:
    said = said_of(DIED.format("SIGABRT"), log="x" * 5000 + " Too many open files " + "y" * 5000)
    assert "Too many open files" in said.number and len(said.number) < 400


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("write /tmp/x: No space left on device", DIED.format("SIGABRT")),  # any disk
        ("recv: Resource temporarily unavailable", HUNG),  # nothing to read yet
        ("PARTICIPANT_LEASE_DURATION defaulting to 100s", STOPPED),
        ("failed to create unicast sockets for domain 0 participant index 3", HUNG),  # for any reason
        ("", DIED.format("SIGSEGV")),
    ],
)
def test_other_words_name_no_cause(log: str, reason: str) -> None:
    said = said_of(reason, log=log, looks=(look(),))
    assert said.what.endswith(NOT_KNOWN)
    assert "log" in said.fix


def test_what_the_middleware_refuses_is_its_own_reason() -> None:
    said = said_of("adapter-failed: worker-0 in phase create: ExceedsMaxSupportedNodes", looks=(look(),))
    assert said.what.endswith("; likeliest because the middleware refuses, and says why")
    assert said.number.startswith("worker-0 in phase create: ExceedsMaxSupportedNodes; with 191 nodes")


def test_a_killed_worker_is_out_of_memory_only_if_the_kernel_says_so() -> None:
    said = said_of(DIED.format("SIGKILL"), looks=(look(oom_kills=2),))
    number = "the kernel killed 2 processes because of it, on a machine with 8192 MB"
    expect(said, "memory ran out", number)
    for without in ((look(),), (look(oom_kills=None),), ()):
        assert said_of(DIED.format("SIGKILL"), looks=without).what.endswith(NOT_KNOWN)
    assert said_of(DIED.format("SIGSEGV"), looks=(look(oom_kills=2),)).what.endswith(NOT_KNOWN)


def test_a_bus_error_is_full_shared_memory_only_if_it_was_full() -> None:
    room = look(shared_memory={"bytes": 64 * MIB, "free_bytes": 4096})
    expect(
        said_of(DIED.format("SIGBUS"), looks=(room,)), "/dev/shm has no room left", "4 KB of 64 MB were free"
    )
    for without in ((look(),), (look(shared_memory=None),), ()):
        assert said_of(DIED.format("SIGBUS"), looks=without).what.endswith(NOT_KNOWN)
    assert said_of(DIED.format("SIGSEGV"), looks=(room,)).what.endswith(NOT_KNOWN)


def test_a_worker_at_its_limit_of_descriptors_is_named() -> None:
    living = {"relay-3": {"threads": 9, "descriptors": 40}, "relay-4": {"threads": 9, "descriptors": 1024}}
    for reason in (HUNG, STOPPED, DIED.format("SIGABRT")):
        said = said_of(reason, looks=(look(living=living),))
        expect(said, "a process has no descriptors left", "relay-4 had 1,024 of 1,024 open")
    assert said_of(HUNG, looks=(look(living=living, descriptors_max=None),)).what.endswith(NOT_KNOWN)


@pytest.mark.parametrize("reason", [HUNG, STOPPED, STILL])
def test_full_cpus_are_the_cause_if_the_trial_filled_them(reason: str) -> None:
    expect(
        said_of(reason, looks=(full(own_ns=140 * S),)),
        "the CPUs can't keep up with so many",
        "all CPUs were 99% busy for 80.0 s, 88% with the trial's own processes (9 threads at the end)",
    )


def test_full_cpus_are_not_the_cause_if_others_filled_them_or_workers_died() -> None:
    assert said_of(HUNG, looks=(full(own_ns=30 * S),)).what.endswith(NOT_KNOWN)
    assert said_of(HUNG, looks=(full(own_ns=100 * S, busy_ns=120 * S),)).what.endswith(NOT_KNOWN)
    assert said_of(DIED.format("SIGSEGV"), looks=(full(own_ns=140 * S),)).what.endswith(NOT_KNOWN)


def test_hosts_that_share_a_machine_fill_its_cpus_together() -> None:
    hosts = (full(own_ns=70 * S), full(own_ns=70 * S))
    assert "the CPUs can't keep up" in said_of(HUNG, looks=hosts).what


def test_without_a_last_look_full_cpus_count_against_those_of_fewer_nodes() -> None:
    said = said_of(HUNG, busy=(0.6, 1.0))
    number = "all CPUs were 100% busy, and at most 60% with fewer nodes"
    expect(said, "the CPUs can't keep up with so many", number)
    assert said_of(HUNG, busy=(1.0, 1.0)).what.endswith(NOT_KNOWN)
    assert said_of(HUNG, busy=(0.5, 0.8)).what.endswith(NOT_KNOWN)


def test_workers_that_met_and_got_nothing_on_full_cpus_are_too_many() -> None:
    """Seen with Cyclone DDS 11 and 128 processes on two CPUs: all met, and relay 12 never got a message."""
    said = said_of("nothing-received: relay-11→relay-12", busy=(0.6, 1.0))
    assert said.number.startswith("nothing was received on relay-11→relay-12; ")
    expect(
        said,
        "the CPUs can't keep up with so many",
        "all CPUs were 100% busy, and at most 60% with fewer nodes",
    )
    assert said_of("nothing-received: relay-11→relay-12").what.endswith(NOT_KNOWN)


def test_datagrams_dropped_before_all_had_met_are_a_cause() -> None:
    dropped = look(network={"udp_receive_buffer_errors": 1200})
    for reason in (STOPPED, STILL):
        expect(
            said_of(reason, looks=(dropped,)),
            "receive buffers overflow during discovery",
            "1,200 datagrams dropped by the kernel before all had met",
        )
    assert said_of(HUNG, looks=(dropped,)).what.endswith(NOT_KNOWN)


def test_discovery_that_goes_on_needs_more_time() -> None:
    said = said_of(STILL, looks=(look(),))
    assert said.what.endswith("; likeliest because discovery takes longer than the trial waits")
    assert said.fix.startswith("use a longer `discovery_timeout`")
    assert said_of(STOPPED, looks=(look(),)).what.endswith(NOT_KNOWN)


def test_the_surest_cause_is_named() -> None:
    everything = look(
        load={"capacity_ns": 160 * S, "busy_ns": 160 * S},
        cpu_ns=150 * S,
        network={"udp_receive_buffer_errors": 5},
    )
    said = said_of(STILL, looks=(everything,))
    assert "the CPUs can't keep up" in said.what
    assert "; also, 5 datagrams dropped by the kernel before all had met; with 191 nodes" in said.number
    log = "socket: Too many open files"
    said = said_of(STILL, log=log, looks=(everything,))
    assert "no descriptors left" in said.what and "also" not in said.number


def test_a_reason_that_lists_every_reader_does_not_hide_the_cause() -> None:
    listed = "".join(f"; relay-{node} on topic t{node} misses streams [{node}]" for node in range(100))
    said = said_of(
        f"endpoints-missing: worker-0 in phase discover: not matched{listed}", looks=(full(140 * S),)
    )
    assert said.number.startswith("worker-0 in phase discover: not matched; relay-0 on topic t0")
    assert "…; all CPUs were 99% busy" in said.number and len(said.number) < 600
