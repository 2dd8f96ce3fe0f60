# SPDX-License-Identifier: Apache-2.0
"""The probe in small programs: which calls it writes down, on which thread, and which it leaves alone."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from needs import need

from lagometer.agent.observe.probes import ProbeFile
from lagometer.store import probes
from lagometer.store.probes import ProbeLog, decode

PROGRAMS = Path(__file__).parents[2] / "programs"
ENVELOPE = struct.pack("<HBBIQ", 0x4C67, 1, 0, 5, 77)
HEAD = f"""
import os, socket, subprocess, sys, threading
ENVELOPE = {ENVELOPE!r}
def udp():
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    return sender, receiver
"""


def logged(
    build: Path,
    folder: Path,
    program: str = "",
    room_bytes: int = 1 << 20,
    command: Sequence[str] | None = None,
) -> ProbeLog:
    """What the probe wrote in a Python program, or in another one that is started by a command."""
    path = folder / "probe"
    environment = {
        **os.environ,
        "LD_PRELOAD": str(build / "probes" / "liblagometer_probe.so"),
        "LAGOMETER_PROBE_FILE": str(path),
        "LAGOMETER_PROBE_BYTES": str(room_bytes),
    }
    command = command or [sys.executable, "-I", "-c", HEAD + program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    file = ProbeFile(os.getpid(), str(folder), "probe")
    block = file.read()
    file.close()
    assert block is not None
    return decode(block)


def of_kind(log: ProbeLog, kind: int) -> list[int]:
    return [index for index, call in enumerate(log.calls) if int(call["call"]) == kind]


def test_a_datagram_is_known_by_its_envelope_on_both_sides(build: Path, tmp_path: Path) -> None:
    log = logged(build, tmp_path, "a, b = udp(); a.send(ENVELOPE + b'x' * 40); b.recv(1000)")
    ((sent,), (received,)) = of_kind(log, probes.SEND), of_kind(log, probes.RECEIVE)
    assert log.owners.tolist() == [sent, received]
    assert [(int(key["stream"]), int(key["sequence"])) for key in log.keys] == [(5, 77)] * 2
    assert int(log.calls[sent]["result"]) == int(log.calls[received]["result"]) == 56
    assert log.calls[sent]["begin_ns"] < log.calls[received]["end_ns"]


@pytest.mark.parametrize(
    "made",
    ["a, b = udp()", "a = socket.create_connection(server.getsockname())\nb, _ = server.accept()"],
    ids=["socket", "accept"],
)
def test_a_new_socket_is_not_taken_for_what_had_its_number_before(
    build: Path, tmp_path: Path, made: str
) -> None:
    """A C library's stream closes its file by itself, where no probe sees it."""
    program = f"""
import ctypes
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
server = socket.create_server(("127.0.0.1", 0))
files = [os.open("/proc/self/status", os.O_RDONLY) for _ in range(2)]
for file in files:
    os.read(file, 10)
    assert libc.fclose(libc.fdopen(file, b"r")) == 0
{made}
assert {{a.fileno(), b.fileno()}} == set(files)
a.send(ENVELOPE)
b.recv(1000)
"""
    log = logged(build, tmp_path, program)
    assert (len(of_kind(log, probes.SEND)), len(of_kind(log, probes.RECEIVE))) == (1, 1)


def test_an_envelope_may_stand_behind_any_number_of_bytes(build: Path, tmp_path: Path) -> None:
    """A frame's length or a topic before it need not fill words."""
    program = """
a, b = udp()
for before in range(9): a.send(b"g" * before + ENVELOPE)
a.send(b"xyz" + ENVELOPE.hex().encode())
a.send(b"gL" + ENVELOPE[:-1])
"""
    log = logged(build, tmp_path, program)
    assert [(int(key["stream"]), int(key["sequence"])) for key in log.keys] == [(5, 77)] * 10


@pytest.mark.parametrize("made", ["os.eventfd(0),) * 2", "*os.pipe(),)"], ids=["eventfd", "pipe"])
def test_what_wakes_by_a_descriptor_is_told_on_both_threads(build: Path, tmp_path: Path, made: str) -> None:
    program = f"""
import select
ends = ({made}
def waits():
    select.select([ends[0]], [], [])
    os.read(ends[0], 8)
thread = threading.Thread(target=waits)
thread.start()
os.write(ends[1], (1).to_bytes(8, "little"))
thread.join()
"""
    log = logged(build, tmp_path, program)
    by_signal = log.calls["descriptor"] >= 0
    ((wrote,), (drained,)) = (
        np.flatnonzero((log.calls["call"] == kind) & by_signal) for kind in (probes.NOTIFY, probes.DRAINED)
    )
    assert log.calls[wrote]["object"] == log.calls[drained]["object"] != 0
    assert log.threads[wrote] != log.threads[drained]
    assert log.threads[drained] in log.threads[of_kind(log, probes.WAIT)]


def test_a_copy_of_a_descriptor_wakes_as_the_descriptor_does(build: Path, tmp_path: Path) -> None:
    """Rust's mio keeps copies of both ends of a pair of sockets."""
    program = """
a, b = socket.socketpair()
c, d = os.dup(a.fileno()), b.dup()
os.write(c, b"x")
d.recv(8)
a.send(b"y")
"""
    log = logged(build, tmp_path, program)
    by_signal = log.calls["descriptor"] >= 0
    told = [int(call["call"]) for call in log.calls[by_signal]]
    assert told == [probes.NOTIFY, probes.DRAINED, probes.NOTIFY]
    assert len(set(log.calls["object"][by_signal].tolist())) == 1


def test_a_pair_of_sockets_that_nobody_saw_made_wakes_too(build: Path, tmp_path: Path) -> None:
    """Some in Rust make them by a system call of their own; here by the C library's door to all of them."""
    program = """
import ctypes, platform
SOCKETPAIR = {"x86_64": 53, "aarch64": 199}[platform.machine()]
ends = (ctypes.c_int * 2)()
assert ctypes.CDLL(None).syscall(SOCKETPAIR, 1, 1, 0, ends) == 0
os.write(ends[1], b"x")
os.read(ends[0], 8)
"""
    log = logged(build, tmp_path, program)
    by_signal = log.calls["descriptor"] >= 0
    assert [int(call["call"]) for call in log.calls[by_signal]] == [probes.NOTIFY, probes.DRAINED]
    assert len(set(log.calls["object"][by_signal].tolist()) - {0}) == 1


def test_a_name_that_a_thread_gets_after_its_first_calls_is_told(build: Path, tmp_path: Path) -> None:
    program = """
a, b = udp()
def sends():
    a.send(ENVELOPE)
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as name: name.write("late")
    for _ in range(150): a.send(ENVELOPE)
thread = threading.Thread(target=sends)
thread.start()
thread.join()
"""
    log = logged(build, tmp_path, program)
    assert log.names[int(log.threads[of_kind(log, probes.SEND)[0]])] == "late"


def test_a_futex_by_the_c_librarys_own_door_hands_over(build: Path, tmp_path: Path) -> None:
    """Threads of Rust and of C++ wait so; numbers of x86-64 and aarch64."""
    program = """
import ctypes, platform, time
FUTEX = {"x86_64": 202, "aarch64": 98}[platform.machine()]
libc, word = ctypes.CDLL(None, use_errno=True), ctypes.c_int(0)
def waits():
    libc.syscall(FUTEX, ctypes.byref(word), 128, 0, None)
thread = threading.Thread(target=waits)
thread.start()
while libc.syscall(FUTEX, ctypes.byref(word), 129, 1) != 1: time.sleep(0.001)
thread.join()
print(ctypes.addressof(word))
assert libc.syscall(-1) == -1 and ctypes.get_errno() == 38
"""
    log = logged(build, tmp_path, program)
    own = log.calls["descriptor"] == -1
    blocks = np.flatnonzero((log.calls["call"] == probes.BLOCK) & own)
    objects = {int(log.calls[block]["object"]) for block in blocks}
    woke = [each for each in of_kind(log, probes.NOTIFY) if int(log.calls[each]["object"]) in objects]
    assert any(int(log.calls[each]["result"]) == 1 for each in woke)


def test_both_ends_of_a_stream_count_the_same_bytes(build: Path, tmp_path: Path) -> None:
    log = logged(
        build,
        tmp_path,
        """
door = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(door.getsockname())
b, _ = door.accept()
for _ in range(3):
    a.sendall(b"x" * 100)
a.shutdown(socket.SHUT_WR)
while b.recv(70): pass
""",
    )
    sent, received = (log.calls[of_kind(log, kind)] for kind in (probes.SEND, probes.RECEIVE))
    assert sent["object"].tolist() == [0, 100, 200]
    assert received["object"].tolist() == [0, 70, 140, 210, 280]
    assert len({*sent["connection"].tolist(), *received["connection"].tolist()} - {0}) == 1
    assert sent["connection"].all()


def test_each_thread_has_its_own_place_and_name(build: Path, tmp_path: Path) -> None:
    log = logged(
        build,
        tmp_path,
        """
a, b = udp()
threads = [threading.Thread(target=lambda: [a.send(ENVELOPE) for _ in range(50)]) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    )
    threads = log.threads[of_kind(log, probes.SEND)].tolist()
    assert {threads.count(thread) for thread in set(threads)} == {50} and len(set(threads)) == 4
    assert len(log.keys) == 200 and log.overflow == 0


def test_children_are_left_alone(build: Path, tmp_path: Path) -> None:
    """A forked child shares the memory of its parent, and a program that is started its variables."""
    log = logged(
        build,
        tmp_path,
        """
a, b = udp()
child = os.fork()
for _ in range(3 if child else 400): a.send(ENVELOPE)
if not child: os._exit(0)
os.waitpid(child, 0)
again = "import socket; a, b = socket.socketpair(); a.send(b'x')"
subprocess.run([sys.executable, "-I", "-c", again], check=True)
""",
    )
    assert len(of_kind(log, probes.SEND)) == 3


def test_what_finds_no_room_is_counted_and_the_program_goes_on(build: Path, tmp_path: Path) -> None:
    log = logged(
        build, tmp_path, "a, b = udp()\nfor _ in range(2000): a.send(ENVELOPE)", room_bytes=4096 + 65536
    )
    kept = len(log.calls) + len(log.keys)
    assert 1000 < kept <= 1023
    assert kept + log.overflow >= 4000


def test_a_descriptor_that_is_used_again_is_looked_at_again(build: Path, tmp_path: Path) -> None:
    log = logged(
        build,
        tmp_path,
        """
a, b = udp()
number = a.fileno()
a.send(ENVELOPE)
other = open("/dev/null", "wb", buffering=0)
os.dup2(other.fileno(), number)
os.write(number, ENVELOPE)
""",
    )
    assert len(of_kind(log, probes.SEND)) == 1


@pytest.mark.parametrize("room", ["", "0", "100"])
def test_without_room_nothing_is_made(build: Path, tmp_path: Path, room: str) -> None:
    environment = {
        **os.environ,
        "LD_PRELOAD": str(build / "probes" / "liblagometer_probe.so"),
        "LAGOMETER_PROBE_FILE": str(tmp_path / "probe"),
        "LAGOMETER_PROBE_BYTES": room,
    }
    subprocess.run(
        [sys.executable, "-I", "-c", HEAD + "udp()[0].send(ENVELOPE)"], env=environment, check=True
    )
    assert not (tmp_path / "probe").exists()


def test_writes_that_fast_dds_accepts_are_kept_with_their_time_and_others_are_not(
    build: Path, tmp_path: Path
) -> None:
    """With a time writes rmw_fastrtps_cpp since Jazzy. What was refused would count as lost."""
    need("c++")
    source, library = PROGRAMS / "fastdds_writes.cpp", tmp_path / "libwrites.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-DLIBRARY", "-o", library, source], check=True)
    subprocess.run(["c++", "-o", tmp_path / "writes", source, library], check=True)
    log = logged(build, tmp_path, command=[str(tmp_path / "writes")])
    writes = of_kind(log, probes.API_WRITE)
    given = [1_700_000_000 * 10**9 + nanoseconds for nanoseconds in (5, 6)]
    assert [int(log.calls[each]["connection"]) for each in writes] == [0, 0, 0, *given]
    assert [int(log.calls[each]["result"]) for each in writes] == [1, 1, 0, 0, 0]


def test_a_thread_that_is_cancelled_ends_alone(build: Path, tmp_path: Path) -> None:
    """Whatever function it waits in. The whole program ended."""
    need("cc")
    source, program = PROGRAMS / "cancelled.c", tmp_path / "cancelled"
    subprocess.run(["cc", "-pthread", "-o", program, source], check=True)
    log = logged(build, tmp_path, command=[str(program)])
    assert len(of_kind(log, probes.DRAINED)) == 1  # of the last byte: what did not happen is not there
    assert not of_kind(log, probes.WAIT) and not of_kind(log, probes.BLOCK)


def test_bytes_that_a_receiver_throws_away_are_counted_and_not_looked_for(
    build: Path, tmp_path: Path
) -> None:
    """TCP needs no buffer for them. Of a datagram the size is told, however short the buffer is."""
    log = logged(
        build,
        tmp_path,
        """
import ctypes
libc = ctypes.CDLL(None)
door = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(door.getsockname())
b, _ = door.accept()
a.sendall(b"x" * 100)
size = ctypes.c_size_t(100)
assert libc.recv(b.fileno(), None, size, socket.MSG_TRUNC | socket.MSG_WAITALL) == 100
a.sendall(ENVELOPE)
assert b.recv(1000) == ENVELOPE
c, d = udp()
c.send(ENVELOPE + b"x" * 40)
assert d.recv_into(bytearray(4), 4, socket.MSG_TRUNC) == 56
""",
    )
    received = of_kind(log, probes.RECEIVE)
    assert log.calls["result"][received].tolist() == [100, len(ENVELOPE), 56]
    assert log.calls["object"][received].tolist() == [0, 100, 0]
    assert [owner for owner in log.owners.tolist() if owner in received] == [received[1]]


def test_what_became_of_something_sent_is_no_message(build: Path, tmp_path: Path) -> None:
    """The kernel gives back a datagram that nobody listens for."""
    log = logged(
        build,
        tmp_path,
        """
import select
IP_RECVERR, MSG_ERRQUEUE = 11, 0x2000
a, b = udp()
a.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
b.close()
a.send(ENVELOPE)
select.select([a], [], [], 10)
returned, _, flags, _ = a.recvmsg(1000, 1000, MSG_ERRQUEUE)
assert returned == ENVELOPE and flags & MSG_ERRQUEUE
""",
    )
    assert (len(of_kind(log, probes.SEND)), len(of_kind(log, probes.RECEIVE))) == (1, 0)


def test_of_waits_that_lead_to_nothing_the_last_is_kept(build: Path, tmp_path: Path) -> None:
    """A multi-threaded executor of ROS 2 that spins fills no file: what comes after would be missing."""
    need("c++")
    source, library = PROGRAMS / "cyclonedds_waits.c", tmp_path / "libwaits.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-DLIBRARY", "-o", library, source], check=True)
    subprocess.run(["cc", "-o", tmp_path / "waits", source, library], check=True)
    log = logged(build, tmp_path, command=[str(tmp_path / "waits"), "100000"], room_bytes=4096 + 65536)
    assert log.overflow == 0
    kinds = [int(call["call"]) for call in log.calls if int(call["call"]) >= probes.API_WRITE]
    assert kinds == [probes.API_WAIT, probes.API_WRITE, probes.API_WAIT]
    waits = log.calls[log.calls["call"] == probes.API_WAIT]
    assert waits["result"].tolist() == [100_000, 200_000]  # how many the library has counted
