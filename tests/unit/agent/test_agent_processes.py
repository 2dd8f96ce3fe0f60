# SPDX-License-Identifier: Apache-2.0
"""Processes seen from outside: read of this very test and of children known to burn, hold or listen."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from lagometer.agent.observe.processes import ancestor_among, cpu_time_ns, parents, proportional_bytes
from lagometer.agent.observe.sockets import has_bound_socket, listens_on

MIB = 1 << 20


def test_the_cpu_clock_of_another_process_is_read() -> None:
    before_ns = time.process_time_ns()
    told_ns = cpu_time_ns(os.getpid())
    assert told_ns is not None
    assert before_ns <= told_ns <= time.process_time_ns()


def test_threads_that_ended_are_counted() -> None:
    burn = "import threading, time\ndef work():\n while time.thread_time() < 0.05: pass\n"
    burn += "each = threading.Thread(target=work)\neach.start()\neach.join()\nprint(flush=True)\ninput()"
    command = [sys.executable, "-c", burn]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used_ns = cpu_time_ns(child.pid)
        child.communicate(b"\n")
    assert used_ns is not None
    assert used_ns >= 50_000_000


def test_a_process_that_is_gone_has_no_figures() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert cpu_time_ns(child) is None
    assert proportional_bytes(child) is None


HOLD = """
import mmap, os, sys
print(flush=True)
sys.stdin.readline()
descriptor = os.memfd_create("left-out-of-it")
os.ftruncate(descriptor, 64 << 20)
held = mmap.mmap(descriptor, 64 << 20)
for place in range(0, 64 << 20, 4096):
    held[place] = 1
print(flush=True)
sys.stdin.readline()
"""


def test_memory_grows_by_what_is_touched_and_a_name_is_left_out() -> None:
    """Of a process that does nothing meanwhile: what this one holds depends on the tests before."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        before = proportional_bytes(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        whole, without = proportional_bytes(child.pid), proportional_bytes(child.pid, "left-out-of-it")
        child.communicate(b"\n")
    assert before is not None and whole is not None and without is not None
    assert abs(whole - without - 64 * MIB) < MIB
    assert whole >= before + 48 * MIB


def test_who_started_whom() -> None:
    parent_of = parents()
    me = os.getpid()
    assert parent_of[me] == os.getppid()
    assert ancestor_among(me, {me}, parent_of) == me
    assert ancestor_among(me, {os.getppid()}, parent_of) == os.getppid()
    assert ancestor_among(me, set(), parent_of) is None


def test_a_listening_port_belongs_to_its_holder(tmp_path: Path) -> None:
    me = os.getpid()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listens_on(me, port, [me])
        assert not listens_on(me, port, [os.getppid()]), "another program's port is no sign of the daemon"
    assert not listens_on(me, port, [me])
    stream, path = socket.socket(socket.AF_UNIX), str(tmp_path / "stream")
    with stream:
        stream.bind(path)
        assert not has_bound_socket(me, path), "it does not listen yet"
        stream.listen()
        assert has_bound_socket(me, path)
    datagram, path = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), str(tmp_path / "datagram")
    with datagram:
        datagram.bind(path)
        assert has_bound_socket(me, path)
    assert not has_bound_socket(me, str(tmp_path / "absent"))
