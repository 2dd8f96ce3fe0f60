# SPDX-License-Identifier: Apache-2.0
"""The probe beside the kernel's own count: calls through the C library are seen, direct ones are not."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from needs import need

from lagometer.agent.observe.probes import ProbeFile
from lagometer.agent.observe.scheduler import SchedulerWatch
from lagometer.agent.observe.system_calls import NUMBERS, SystemCallWatch
from lagometer.installation import scheduler_path
from lagometer.stats.trial.seen_calls import Seen, seen_calls
from lagometer.store.probes import decode

THROUGH_THE_LIBRARY, DIRECTLY = 10, 5
PROGRAM = """
import ctypes, select, socket, sys
through, directly, sendto = map(int, sys.argv[1:])
a, b = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
b.bind(("127.0.0.1", 0))
a.connect(b.getsockname())
libc = ctypes.CDLL(None)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(through):
    a.send(b"x")
for _ in range(directly):
    number, to = ctypes.c_long(sendto), ctypes.c_long(a.fileno())
    libc.syscall(number, to, b"y", ctypes.c_long(1), *[ctypes.c_long(0)] * 3)
for _ in range(through + directly):
    select.select([b], [], [])
    b.recv(8)
print("done", flush=True)
sys.stdin.readline()
"""


def number_of_the_tracepoint() -> int | None:
    watch = SchedulerWatch(str(scheduler_path()))
    try:
        watch.begin()
        assert watch.end().why is None
        return watch.system_calls()
    finally:
        watch.close()


def test_calls_that_the_probe_can_not_see_lower_its_share(build: Path, tmp_path: Path) -> None:
    need("scheduler")
    number = number_of_the_tracepoint()
    words = [str(THROUGH_THE_LIBRARY), str(DIRECTLY), str(NUMBERS[platform.machine()]["send"][0])]
    environment = {
        **os.environ,
        "LD_PRELOAD": str(build / "probes" / "liblagometer_probe.so"),
        "LAGOMETER_PROBE_FILE": str(tmp_path / "probe"),
        "LAGOMETER_PROBE_BYTES": str(1 << 20),
    }
    command = [sys.executable, "-I", "-c", PROGRAM, *words]
    watch = SystemCallWatch()
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        watch.attach([process.pid], lambda: number)
        watch.look_before()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        watch.look_after()
        called = watch.result(0)
    finally:
        process.kill()
        process.communicate()
        watch.close()
    file = ProbeFile(os.getpid(), str(tmp_path), "probe")
    block = file.read()
    file.close()
    assert block is not None and called.why is None, called
    found = seen_calls(decode(block), called.counts, called.first[1], called.last[0]).groups
    every = THROUGH_THE_LIBRARY + DIRECTLY
    assert found["send"] == Seen(every, THROUGH_THE_LIBRARY)
    assert found["receive"] == found["wait"] == Seen(every, every)
