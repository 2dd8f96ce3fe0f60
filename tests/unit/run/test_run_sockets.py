# SPDX-License-Identifier: Apache-2.0
"""What the kernel shows of processes: read of this very test and of its children, real sockets and memory."""

from __future__ import annotations

import mmap
import os
import socket
import time
from pathlib import Path

import pytest

from lagometer.agent.observe.clocks import moved, read_clocks
from lagometer.agent.observe.counters import NetworkCounters, load_between, machine_load, realtime_limit
from lagometer.agent.observe.sockets import find_workers, read_network, read_traces
from lagometer.agent.observe.witness import Witness
from lagometer.run.transport import Traffic, present

ALL = frozenset({"process", "shared-memory", "unix-socket", "tcp", "udp"})


def test_sockets_and_shared_memory_are_seen(tmp_path: Path) -> None:
    before = read_traces(os.getpid(), read_network(os.getpid()))
    assert before is not None
    path = tmp_path / "segment"
    path.write_bytes(bytes(4096))
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 4096),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0],
    ):
        datagram.bind(("127.0.0.1", 0))
        left, right = socket.socketpair()
        with left, right:
            now = read_traces(os.getpid(), read_network(os.getpid()))
        local, remote = (f"0100007F:{name[1]:04X}" for name in (client.getsockname(), client.getpeername()))
    assert now is not None
    assert str(path) in now.memory.values()
    assert now.udp_sockets == before.udp_sockets + 1
    assert now.unix_sockets == before.unix_sockets + 2
    assert now.connections - before.connections == {(local, remote), (remote, local)}


def test_a_connection_from_ipv4_to_a_server_of_both_has_two_ends_that_fit() -> None:
    """Each end is in another table of the kernel's, and written otherwise there."""
    if not socket.has_dualstack_ipv6():
        return  # no such server can be
    with socket.socket(socket.AF_INET6) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::ffff:127.0.0.1", 0))
        server.listen()
        with socket.create_connection(("127.0.0.1", server.getsockname()[1])) as client, server.accept()[0]:
            now = read_traces(os.getpid(), read_network(os.getpid()))
            local, remote = (f"0100007F:{end[1]:04X}" for end in (client.getsockname(), client.getpeername()))
    assert now is not None
    assert {(local, remote), (remote, local)} <= now.connections


def unix_traces() -> tuple[int, bool]:
    """The number of sockets that can send, and whether the transport can be one of this process to itself."""
    now = read_traces(os.getpid(), read_network(os.getpid()))
    assert now is not None
    return now.unix_sockets, "unix-socket" in present(now, now, same=False, daemons=())[0]


def test_a_unix_datagram_needs_no_connection_to_come(tmp_path: Path) -> None:
    """Whoever sends to a path, message by message, is connected to nobody: the claim can be true."""
    before, _ = unix_traces()
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),  # not connected: says nothing
    ):
        receiver.bind(str(tmp_path / "inbox"))
        assert unix_traces() == (before + 2, True)


def test_a_unix_datagram_can_only_reach_a_socket_with_a_name() -> None:
    """A process that only logs to a socket can't receive messages: the claim can't be true."""
    before, possible = unix_traces()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM):
        assert unix_traces() == (before + 2, possible)


def test_the_socket_for_late_subscribers_is_no_transport(tmp_path: Path) -> None:
    before = unix_traces()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(str(tmp_path / "knock-1-2"))
        assert unix_traces() == before


def test_a_process_that_is_gone_leaves_no_traces() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert read_traces(child, {}) is None


def test_workers_are_found_below_their_supervisor() -> None:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    os.close(read_end)
    try:
        assert find_workers(os.getpid(), [child, 1]) == [child, None]
        assert find_workers(child, [child]) == [None]
    finally:
        os.close(write_end)
        os.waitpid(child, 0)


def test_the_counters_of_a_namespace_grow_with_what_is_sent() -> None:
    counters = NetworkCounters(os.getpid())
    before = counters.read()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(bytes(10_000), receiver.getsockname())
            receiver.recv(65_536)
    after = counters.read()
    assert after["loopback_bytes"] - before["loopback_bytes"] >= 10_000
    assert after["udp_sent"] > before["udp_sent"]
    counters.close()
    assert counters.read() == {}


def test_the_load_of_the_machine_is_read() -> None:
    before = machine_load()
    load = load_between(before, machine_load())
    assert load.capacity_ns is not None and load.capacity_ns >= 0
    assert load.busy_ns is not None and load.busy_ns >= 0
    limit = realtime_limit()
    assert limit is None or limit.period_us > 0


def test_clocks_that_nobody_moves_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_clocks()
    real = time.clock_gettime_ns

    def stepped(clock: int) -> int:
        return real(clock) + (5_000_000 if clock == time.CLOCK_REALTIME else 0)

    monkeypatch.setattr(time, "clock_gettime_ns", stepped)
    clocks = moved(before, read_clocks())
    assert clocks.wall_step_ns == pytest.approx(5_000_000, abs=clocks.uncertainty_ns + 1_000)
    assert clocks.elapsed_ns > 0
    assert clocks.source_before == clocks.source_after


@pytest.mark.parametrize(
    ("over", "udp_sent", "left"),
    [
        (None, 0, ALL),
        (False, 0, {"process", "shared-memory", "unix-socket"}),
        (True, 100, {"udp"}),
        (True, 3, {"tcp"}),
        (True, None, {"tcp", "udp"}),
    ],
)
def test_counters_narrow_what_is_possible(over: bool | None, udp_sent: int | None, left: set[str]) -> None:
    traffic = Traffic("the loopback", 0, 0, 100, udp_sent, None, over)
    assert traffic.narrowed(ALL) == left and "over the loopback" in traffic.seen


@pytest.mark.parametrize(
    ("messages", "payload_bytes", "udp_sent", "tcp_sent", "left"),
    [
        # Seen over plain TCP on a slow link: 4 messages of 502 KB, and discovery sent 5 datagrams.
        (4, 4 * 514_048, 5, 10_277, {"tcp"}),
        (4, 4 * 514_048, 32, 0, {"udp"}),
        (4, 4 * 60_000, 5, 200, {"tcp", "udp"}),  # either could have carried so few
        (4, 4 * 60_000, 5, 3, {"udp"}),
        (100, 100 * 60_000, 5, 3, {"tcp", "udp"}),  # neither could: the counters prove nothing
    ],
)
def test_a_protocol_that_sent_too_little_carried_nothing(
    messages: int, payload_bytes: int, udp_sent: int, tcp_sent: int, left: set[str]
) -> None:
    traffic = Traffic("the links", 2 * payload_bytes, payload_bytes, messages, udp_sent, tcp_sent, True)
    assert traffic.narrowed(ALL) == left


def test_a_witness_that_cannot_look_says_so() -> None:
    witness = Witness()
    assert witness.end() is None
    witness.begin(None, [1, 2], private=True)
    evidence = witness.end()
    witness.close()
    assert evidence is not None
    assert (evidence.traces, dict(evidence.network)) == ((None, None), {})
    assert evidence.as_json()["traces"] == [None, None]
