# SPDX-License-Identifier: Apache-2.0
"""How workers find each other: whatever the clocks of their hosts say, and soon where a reader comes late."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest
from both_workers import CONVERSATION, Kind
from needs import need, require
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, pingpong, reader, timer, writer

from lagometer.run.worker.plan_bounds import CONSTANTS
from lagometer.store.records import KIND_RECEIVED, KIND_SENT

SECOND_NS = 1_000 * MILLISECOND_NS
LONG_DRAIN_NS = 2 * SECOND_NS
ENVELOPE = struct.Struct("<HBBIQ")
NUMBERS = {name: value for name, value, _ in CONSTANTS}
ALONE = 20  # probes that find nobody, in the adapters that LAGOMETER_BREAK=find-late breaks
SHORTEST = 5  # intervals after a reader has come, each by far shorter than the longest


def shifted(offset_s: int) -> tuple[str, ...]:
    """The command before a program whose CLOCK_MONOTONIC is to be so much ahead."""
    return ("unshare", "--time", "--fork", "--kill-child", f"--monotonic={offset_s}", "--")


def need_time_namespaces(kind: Kind) -> None:
    """A machine of two whose clocks are no one's but theirs."""
    need("netns")
    with kind.machine(1, wraps=[shifted(10)]) as private:
        private.workers[0].send({"no": "plan"})
        said = private.workers[0].end()
    require("time-namespace", bool(said.events), f"time namespaces: {said.errors[-200:]}")


@pytest.mark.parametrize("offset_s", [10, -10])
def test_clocks_of_two_hosts_need_not_agree(kind: Kind, offset_s: int) -> None:
    """Ping and pong wait for each other's probes, so both directions are looked at."""
    need_time_namespaces(kind)
    phases = {"discovery_timeout_ns": 5 * SECOND_NS, "measure_ns": SECOND_NS, "drain_ns": LONG_DRAIN_NS}
    plans = kind.apart(pingpong("waitset", 10), **phases)
    offset_ns = offset_s * SECOND_NS
    with kind.machine(2, wraps=[(), shifted(offset_s)]) as private:
        private.match(plans)
        at_ns = private.go(offsets_ns=[0, offset_ns])
        ping, pong = private.finish()
    assert ping.names == pong.names == CONVERSATION, (ping.errors, pong.errors)
    assert pong.event("done")["at_ns"] == at_ns + offset_ns
    sent = ping.lane(KIND_SENT, 0, 0)
    assert sent["sequence"].tolist() == list(range(10))
    assert len(pong.lane(KIND_RECEIVED, 1, 0)) == 10
    for said in (ping, pong):
        assert said.event("matched")["elapsed_ns"] >= NUMBERS["in_flight_max_ns"]


def lonely_source() -> list[Mapping]:
    return [node("source", 0, [], [writer("t0", 0)], [timer(MILLISECOND_NS)], "waitset")]


def test_a_reader_that_comes_late_is_not_kept_waiting(kind: Kind, tmp_path: Path) -> None:
    """Intervals between probes grow until the middleware counts one more reader, and begin again then."""
    witness = tmp_path / "probes"
    environment = {"LAGOMETER_BREAK": "find-late", "LAGOMETER_TEST_WITNESS": str(witness)}
    with kind.machine(1, environment=environment) as private:
        private.match(kind.apart(lonely_source()))
        wanted = (ALONE + SHORTEST + 2) * ENVELOPE.size
        while not witness.exists() or witness.stat().st_size < wanted:
            assert private.process.poll() is None
        private.workers[0].send({"command": "stop"})
        private.finish()
    sent_ns = [sequence for *_, sequence in ENVELOPE.iter_unpack(witness.read_bytes()[:wanted])]
    between_ns = [later - earlier for earlier, later in itertools.pairwise(sent_ns)]
    assert between_ns[ALONE - 1] >= NUMBERS["probe_slowest_ns"], "the longest, before it came"
    soon_ns = between_ns[ALONE : ALONE + SHORTEST]
    assert min(soon_ns) < NUMBERS["probe_slowest_ns"], between_ns


def test_a_reader_without_streams_waits_for_nobody(kind: Kind, folder: Path) -> None:
    nodes = [
        node("source", 0, [], [writer("t0", 0)], [timer(MILLISECOND_NS)], "poll"),
        node("deaf", 1, [reader("t1", [])], [], [any_message()], "poll"),
    ]
    said = kind.run(kind.plan(folder, nodes, drain_ns=LONG_DRAIN_NS))
    assert said.code == 0, said.events[-1:]
    assert len(said.lane(KIND_SENT, 0, 0)) == 170
    assert len(said.lane(KIND_RECEIVED, 1, 0)) == 0


def test_who_is_missing_is_named(kind: Kind, folder: Path) -> None:
    nodes = [
        node("sink", 0, [reader("nothing", [5, 7]), reader("t", [1])], [], [any_message()], "waitset"),
        node("other", 1, [reader("nowhere", [9])], [], [any_message()], "waitset"),
        node("source", 2, [], [writer("t", 1)], [timer(MILLISECOND_NS)], "waitset"),
    ]
    said = kind.run(kind.plan(folder, nodes, discovery_timeout_ns=100 * MILLISECOND_NS))
    failed = said.event("failed")
    assert (said.code, failed["phase"], failed["reason"]) == (1, "discover", "endpoints-missing")
    assert failed["missing"] == [
        {"node": "sink", "reader": 0, "topic": "nothing", "streams": [5, 7]},
        {"node": "other", "reader": 0, "topic": "nowhere", "streams": [9]},
    ]
    assert failed["message"] == (
        "not matched within 100 ms: node sink on topic nothing misses streams [5,7]; "
        "node other on topic nowhere misses streams [9]"
    )
    counts = [{"node": "source", "topic": "t", "stream": 1, "readers": 1}]
    assert failed.get("counted") == (counts if kind.name == "Python" else None)
