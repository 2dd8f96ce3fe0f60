# SPDX-License-Identifier: Apache-2.0
"""What is peculiar to ROS 1: its two transports, the pointer within a process, its queues, its master."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from campaign_support import run_cells
from needs import ROOT, adapter_library, need, require
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, pipeline, plan, reader, timer, writer
from worker_support import Machine, daemons_beside, machine, run_private

from lagometer.agent.observe.sockets import find_workers
from lagometer.store.records import KIND_RECEIVED, KIND_SENT

DIRECTORY = "/dev/shm/lagometer"
RELIABLE: Mapping = {"reliability": "reliable", "history": "keep_last", "depth": 16}
BEST_EFFORT: Mapping = {"reliability": "best_effort", "history": "keep_last", "depth": 16}
PIDFD_GETFD = 438  # the system call's number, the same on all architectures


@pytest.fixture(autouse=True)
def _needs() -> None:
    need("netns")
    need("ros1")


def given(build: Path, nodes: list[Mapping], options: Mapping | None = None, **phases: int) -> Mapping:
    """A plan for one worker with these options of the adapter."""
    made = plan(adapter_library("ros1", build), DIRECTORY, nodes, **phases)
    made["adapters"][0]["options"] = options or {}
    return made


def refusal(build: Path, nodes: list[Mapping], options: Mapping | None = None) -> str:
    """Why the adapter refuses this."""
    (said,) = run_private(build, [given(build, nodes, options)])
    failed = said.event("failed")
    assert failed["reason"] == "adapter-failed", failed
    return str(failed["message"])


# --- transports ---


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("reliability", "placement", "transport"),
    [
        ("reliable", "process-per-node", "tcp"),
        ("best_effort", "process-per-node", "udp"),
        ("reliable", "single-process", "process"),
        ("best_effort", "single-process", "process"),
    ],
)
def test_what_carries_the_messages_is_what_is_claimed(
    build: Path, tmp_path: Path, reliability: str, placement: str, transport: str
) -> None:
    matrix = {
        "adapter": ["ros1"],
        "workload": ["pipeline-2"],
        "payload": ["32KB"],
        "rate": ["100Hz"],
        "reliability": [reliability],
        "placement": [placement],
    }
    rows = run_cells(build, tmp_path, matrix).filter(pl.col("edge") != "end-to-end")
    assert rows["transport"].to_list() == [transport]
    assert (rows["n"] > 0).all()


def test_udpros_does_not_claim_to_be_reliable(build: Path) -> None:
    why = refusal(build, pipeline("waitset", qos=RELIABLE), {"transport": "udpros"})
    assert "UDPROS loses messages" in why


def test_udpros_refuses_what_it_cannot_number(build: Path) -> None:
    nodes = pipeline("waitset", qos=BEST_EFFORT, payload_bytes=4 << 20)
    assert "at most 65535 datagrams" in refusal(build, nodes, {"max_datagram_size": 64})


def test_nothing_changes_at_508_bytes(build: Path, tmp_path: Path) -> None:
    """ros_comm, issue 2213, tells of a border there, with another client library or an older version."""
    sizes = ["507B", "508B", "509B"]
    matrix = {"adapter": ["ros1"], "workload": ["pipeline-2"], "payload": sizes, "rate": ["50Hz"]}
    rows = run_cells(build, tmp_path, {**matrix, "reliability": ["reliable"]})
    rows = rows.filter(pl.col("edge") == "end-to-end").sort("payload_bytes")
    assert rows.select("payload_bytes", "lost").rows() == [(507, 0), (508, 0), (509, 0)]
    assert rows["n"].equals(rows["sent"])


@pytest.mark.parametrize("profile", ["default", "matched"])
def test_udpros_carries_messages_of_many_datagrams(build: Path, tmp_path: Path, profile: str) -> None:
    matrix = {"adapter": ["ros1"], "workload": ["pipeline-2"], "payload": ["2KB", "64KB"], "rate": ["50Hz"]}
    run_cells(build, tmp_path, {**matrix, "reliability": ["best_effort"], "profile": [profile]})


def test_udpros_refuses_datagrams_that_its_subscriber_would_cut_off(build: Path) -> None:
    why = refusal(build, pipeline("waitset", qos=BEST_EFFORT), {"max_datagram_size": 1501})
    assert "max_datagram_size must be a whole number from 64 to 1500" in why


@contextlib.contextmanager
def matched_pair(build: Path, options: Mapping, qos: Mapping) -> Iterator[tuple[Machine, list[int]]]:
    """A publisher and a subscriber in two processes that hear each other, and the processes' numbers."""
    endpoint: Mapping = {"qos": qos}
    source = node("source", 0, [], [writer("t", 0, **endpoint)], [timer(5 * MILLISECOND_NS)], "waitset")
    sink = node("sink", 1, [reader("t", [0], **endpoint)], [], [any_message()], "waitset")
    plans = [given(build, [each], options) for each in (source, sink)]
    plans[1]["worker"]["index"] = 1
    with machine(build, 2, beside=daemons_beside(adapter_library("ros1", build))) as private:
        for worker, each in zip(private.workers, plans, strict=True):
            each["standalone"] = False
            worker.send(each)
        for worker in private.workers:
            worker.wait_for("matched")
        numbers = [private.notice("started", index)["pid"] for index in range(2)]
        pids = find_workers(private.process.pid, numbers)
        yield private, [pid for pid in pids if pid is not None]
        for worker in private.workers:
            worker.send({"command": "stop"})
        private.finish()


def sockets_of(pid: int) -> Iterator[socket.socket]:
    """The sockets of another process: the very ones, so their options can be asked."""
    system_call = ctypes.CDLL(None, use_errno=True).syscall
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if not entry.readlink().name.startswith("socket:"):
                    continue
                copy = system_call(PIDFD_GETFD, process, int(entry.name), 0)
                refused = copy < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)
                require("ptrace", not refused, "the right to look at another process's sockets (pidfd_getfd)")
                if copy >= 0:
                    with socket.socket(fileno=copy) as found:
                        yield found
    finally:
        os.close(process)


def connections_without_delay(pid: int) -> int:
    """How many connected TCP sockets of a process have TCP_NODELAY set."""
    count = 0
    for each in sockets_of(pid):
        if each.family == socket.AF_INET and each.type == socket.SOCK_STREAM:
            with contextlib.suppress(OSError):
                each.getpeername()
                count += each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    return count


@pytest.mark.parametrize("no_delay", [False, True])
def test_tcp_no_delay_is_in_force_on_the_publishers_socket(build: Path, no_delay: bool) -> None:
    with matched_pair(build, {"tcp_no_delay": no_delay}, RELIABLE) as (private, (source, _)):
        assert connections_without_delay(source) == (1 if no_delay else 0)
        described = json.dumps(private.workers[1].said.event("ready")["settings"])
        assert ("tcpNoDelay(true)" in described) == no_delay


# --- within a process ---


@pytest.mark.parametrize(("publish", "same"), [("pointer", 100), ("reference", 0)])
def test_a_pointer_is_handed_over_within_a_process(
    build: Path, tmp_path: Path, publish: str, same: int
) -> None:
    need("c++")
    program = tmp_path / "handover"
    source = Path(__file__).with_name("handover.cpp")
    include = ROOT / "engine" / "include"
    subprocess.run(["c++", "-std=c++20", f"-I{include}", str(source), "-o", str(program), "-ldl"], check=True)
    wrap = (str(program), str(adapter_library("ros1", build)), json.dumps({"publish": publish}))
    beside = daemons_beside(adapter_library("ros1", build))
    with machine(build, 1, beside=beside, wrap=wrap) as private:
        (said,) = private.finish()
    assert said.code == 0, said.errors
    assert said.event("handover") == {"event": "handover", "messages": 100, "same": same, "wrong": 0}


def overrun(build: Path, qos: Mapping, dispatch: str) -> tuple[list[int], list[int]]:
    """What is sent each millisecond, and what a subscriber gets that needs five for each."""
    endpoint: Mapping = {"qos": qos}
    nodes = [
        node("source", 0, [], [writer("t", 0, **endpoint)], [timer(MILLISECOND_NS)], "waitset"),
        node(
            "sink", 1, [reader("t", [0], **endpoint)], [], [any_message(work_ns=5 * MILLISECOND_NS)], dispatch
        ),
    ]
    phases = {"warmup_ns": 0, "measure_ns": 200 * MILLISECOND_NS, "drain_ns": 4_000 * MILLISECOND_NS}
    (said,) = run_private(build, [given(build, nodes, None, **phases)])
    assert said.code == 0, said.events[-1:]
    sent, received = said.lane(KIND_SENT, 0, 0), said.lane(KIND_RECEIVED, 1, 0)
    assert (sent["status"] == 0).all(), "roscpp refuses nothing"
    return sent["sequence"].tolist(), received["sequence"].tolist()


@pytest.mark.parametrize("dispatch", ["listener", "waitset"])
def test_a_full_queue_drops_its_oldest_message(build: Path, dispatch: str) -> None:
    sent, received = overrun(build, {"reliability": "reliable", "history": "keep_last", "depth": 2}, dispatch)
    assert len(received) < len(sent)
    assert received == sorted(set(received))
    assert received[-1] == sent[-1], "the newest is kept"


@pytest.mark.parametrize("dispatch", ["listener", "waitset"])
def test_a_queue_without_limit_drops_nothing(build: Path, dispatch: str) -> None:
    sent, received = overrun(build, {"reliability": "reliable", "history": "keep_all"}, dispatch)
    assert received == sent


# --- the process and its master ---


def failure_with(build: Path, address: str) -> str:
    """What a worker says that is to find its master there, and no master runs."""
    with machine(build, 1, environment={"ROS_MASTER_URI": address}) as private:
        private.workers[0].send(given(build, pipeline("waitset")))
        (said,) = private.finish()
    return str(said.event("failed")["message"])


def test_without_a_master_it_says_what_is_needed(build: Path) -> None:
    address = "http://127.0.0.1:21311"
    assert f"no ROS master answers at {address}" in failure_with(build, address)


def test_an_address_of_no_master_is_named(build: Path) -> None:
    assert "not 'somewhere'" in failure_with(build, "somewhere")


def test_there_are_no_domains_and_no_late_joiners(build: Path) -> None:
    late = {**RELIABLE, "durability": "transient_local"}
    assert "latched topic" in refusal(build, pipeline("waitset", qos=late))
    elsewhere = given(build, pipeline("waitset"))
    elsewhere["contexts"][0]["domain"] = 1
    (said,) = run_private(build, [elsewhere])
    assert "no domains" in said.event("failed")["message"]


def test_roscpp_catches_no_signal_and_prints_nothing(build: Path) -> None:
    with matched_pair(build, {}, RELIABLE) as (private, pids):
        for pid in pids:
            mask = int(Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()[0], 16)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                assert not mask & (1 << (number - 1)), (number, hex(mask))
    for worker in private.workers:
        assert worker.said.garbage == []
        assert "INFO" not in worker.said.errors
