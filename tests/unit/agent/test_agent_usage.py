# SPDX-License-Identifier: Apache-2.0
"""What the kernel tells of a process: taken apart from texts that are known, and read of this very test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lagometer.agent.observe import usage
from lagometer.agent.observe.processes import proportional_bytes

KIB, MIB, TICK_NS = 1024, 1 << 20, 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def mapping(head: str, size: int, rss: int, pss: int, clean: int, dirty: int) -> str:
    lines = {
        "Size": size,
        "Rss": rss,
        "Pss": pss,
        "Pss_Dirty": 7,
        "Private_Clean": clean,
        "Private_Dirty": dirty,
    }
    return (
        f"{head}\n" + "".join(f"{name}: {value:>8} kB\n" for name, value in lines.items()) + "VmFlags: rd\n"
    )


DDS = "/usr/lib/libddsc.so.0.10.2"
SMAPS = (
    mapping(f"7f00-7f10 r--p 00000000 08:01 1 {DDS}", 100, 80, 40, 0, 0)
    + mapping(f"7f10-7f20 r-xp 00001000 08:01 1 {DDS}", 200, 150, 50, 10, 0)
    + mapping(f"7f20-7f30 ---p 00002000 08:01 1 {DDS}", 2044, 0, 0, 0, 0)
    + mapping(f"7f30-7f40 rw-p 00003000 08:01 1 {DDS} (deleted)", 8, 8, 8, 0, 8)
    + mapping("7f40-7f50 r--p 00000000 08:01 2 /usr/share/locale.dat", 300, 4, 1, 0, 0)
    + mapping("7f50-7f60 rw-p 00000000 00:00 0", 64, 64, 64, 0, 64)
    + mapping("7f60-7f70 rw-s 00000000 00:01 9 /memfd:lagometer-records (deleted)", 4096, 4096, 4096, 0, 4096)
)


def test_memory_is_added_up_without_what_is_left_out() -> None:
    memory = usage.memory_of(SMAPS.encode(), "lagometer-records")
    assert memory.resident_bytes == (80 + 150 + 8 + 4 + 64) * KIB
    assert memory.proportional_bytes == (40 + 50 + 8 + 1 + 64) * KIB
    assert memory.unique_bytes == (10 + 8 + 64) * KIB
    assert usage.memory_of(SMAPS.encode()).unique_bytes == (10 + 8 + 64 + 4096) * KIB


def test_a_mapping_that_is_not_as_it_should_be_is_not_left_out_in_silence() -> None:
    spoilt = SMAPS.replace("Private_Dirty:", "Private_Soiled:", 1)
    with pytest.raises(ValueError, match="not as expected"):
        usage.memory_of(spoilt.encode())


def test_a_library_is_a_file_with_code_and_counts_once() -> None:
    (library,) = usage.memory_of(SMAPS.encode(), "lagometer-records").libraries
    assert library == usage.Library(DDS, (100 + 200 + 8) * KIB, (80 + 150 + 8) * KIB, (40 + 50 + 8) * KIB)


HOLDS_MORE_ON_DEMAND = f"""
import mmap, sys
print(flush=True), input()
private = mmap.mmap(-1, {8 * MIB})
private.write(b"x" * {8 * MIB})
print(flush=True), sys.stdin.read()
"""


def test_a_process_has_its_own_memory() -> None:
    """Of a small process that waits: this one has new memory with each look, and shares pages with twins."""
    command = (sys.executable, "-c", HOLDS_MORE_ON_DEMAND)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        before = usage.memory_of(usage.read_smaps(process.pid) or b"")
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        after = usage.memory_of(usage.read_smaps(process.pid) or b"")
        told = proportional_bytes(process.pid)
    assert 0 < after.unique_bytes <= after.proportional_bytes <= after.resident_bytes
    assert after.resident_bytes - before.resident_bytes > 7 * MIB
    assert told is not None and abs(told - after.proportional_bytes) < MIB
    assert any("python" in library.path for library in after.libraries)


def stat_of(name: str, minor: int, major: int, user: int, system: int) -> str:
    return f"7 ({name}) S 1 7 7 0 -1 4194560 {minor} 0 {major} 0 {user} {system} 0 0 20 0 2 0 99\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A process with two threads, one of which has a name that is hard to read."""
    folder = tmp_path / "7"
    for number, name in ((7, "worker"), (8, "dq) (R 1")):
        task = folder / "task" / str(number)
        task.mkdir(parents=True)
        (task / "stat").write_text(stat_of(name, 1, 0, number, 2))
        switches = f"voluntary_ctxt_switches:\t{10 * number}\nnonvoluntary_ctxt_switches:\t{number}\n"
        (task / "status").write_text(f"Name:\t{name}\n{switches}")
        (task / "schedstat").write_text(f"{number}000 5 6\n")
    (folder / "stat").write_text(stat_of("worker", 100, 3, 15, 4))
    return tmp_path


def account(proc: Path) -> usage.Account:
    raw = usage.read_account(7, 1, proc)
    assert raw is not None and raw.at_ns == 1
    return usage.account_of(raw)


def test_an_account_has_the_process_and_each_thread(proc: Path) -> None:
    found = account(proc)
    assert (found.user_ns, found.system_ns) == (15 * TICK_NS, 4 * TICK_NS)
    assert (found.minor_faults, found.major_faults) == (100, 3)
    assert found.threads[8] == usage.Thread("dq) (R 1", 8 * TICK_NS, 2 * TICK_NS, 8000, 80, 8, 1, 0)


def test_between_two_looks_a_new_thread_has_all_of_its_own(proc: Path) -> None:
    before = account(proc)
    (proc / "7" / "stat").write_text(stat_of("worker", 130, 4, 20, 6))
    (proc / "7" / "task" / "8" / "stat").write_text(stat_of("dq) (R 1", 9, 1, 8, 2))
    new = proc / "7" / "task" / "9"
    new.mkdir()
    (new / "stat").write_text(stat_of("late", 1, 0, 3, 1))
    (new / "status").write_text("voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n")
    (proc / "7" / "task" / "8" / "schedstat").unlink()  # a kernel that does not tell
    added = usage.between(before, account(proc))
    assert (added.minor_faults, added.major_faults, added.user_ns) == (30, 1, 5 * TICK_NS)
    assert added.threads[7] == usage.Thread("worker", 0, 0, 0, 0, 0)
    assert added.threads[8].run_ns is None
    assert (added.threads[8].minor_faults, added.threads[8].major_faults) == (8, 1)
    assert added.threads[9] == usage.Thread("late", 3 * TICK_NS, TICK_NS, None, 5, 6, 1, 0)


def test_a_process_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert usage.read_account(7, 0, tmp_path) is None
    assert usage.read_smaps(7, tmp_path) is None
    assert usage.read_descriptors(7, tmp_path) is None
    assert usage.read_socket_tables(7, tmp_path) == {}


def test_this_process_accounts_for_a_thread_that_waits() -> None:
    begun, over = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        over.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    try:
        raw = usage.read_account(os.getpid(), time.monotonic_ns())
    finally:
        over.set()
        thread.join()
    assert raw is not None
    found = usage.account_of(raw)
    assert thread.native_id in found.threads
    assert found.minor_faults > 0 and found.threads[os.getpid()].voluntary > 0


def test_sockets_are_told_apart() -> None:
    pair = socket.socketpair()
    listening = socket.create_server(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    opened = (*pair, listening, datagrams, netlink)
    datagrams.bind(("127.0.0.1", 0))
    try:
        held = usage.read_descriptors(os.getpid()) or ()
        kinds = usage.socket_kinds(usage.read_socket_tables(os.getpid()))
        mine = tuple(f"socket:[{os.fstat(each.fileno()).st_ino}]" for each in opened)
    finally:
        for each in opened:
            each.close()
    assert set(mine) <= set(held)
    assert usage.count_sockets(mine, kinds) == {"tcp": 1, "udp": 1, "unix": 2, "other": 1}
