# SPDX-License-Identifier: Apache-2.0
"""What a trial had that ends early, read of a child that holds descriptors and burns CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from lagometer.agent.observe.last_look import LastLook, LastLookWatch

# Like a supervisor: a process whose child is the worker. Another child has ended after it used 50 ms.
FAMILY = """
import subprocess, sys
burn = "import time\\nwhile time.process_time() < 0.05: pass"
subprocess.run([sys.executable, "-c", burn], check=True)
sys.exit(subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode)
"""
WORKER = """
import os, resource, sys, threading, time
resource.setrlimit(resource.RLIMIT_NOFILE, (77, 77))
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
threads = [threading.Thread(target=lambda: os.read(0, 1)) for _ in range(2)]
for each in threads: each.start()
while time.process_time() < 0.05: pass
print(os.getpid(), flush=True)
for each in threads: each.join()
"""


@contextmanager
def family() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process that stands for the supervisor, and the number of its worker."""
    command = [sys.executable, "-c", FAMILY, WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        yield supervisor, int(supervisor.stdout.readline())


def test_before_it_begins_there_is_nothing_to_say() -> None:
    assert LastLookWatch().look(None, ()) is None


def test_a_living_worker_is_seen_with_its_limit_and_what_its_family_used() -> None:
    watch = LastLookWatch()
    watch.begin()
    with family() as (supervisor, worker):
        watch.note_network(supervisor.pid, worker)
        look = watch.look(supervisor.pid, (0, worker))
        watch.close()
    assert look is not None
    (living,) = look.living
    assert (living.worker, living.threads) == (1, 3)
    assert 20 + 3 <= living.descriptors < 77 and look.descriptors_max == 77
    assert look.cpu_ns is not None and look.cpu_ns >= 80_000_000, "ticks of 10 ms, each begun one is lost"
    assert look.window_ns > 0 and look.load.capacity_ns is not None
    assert look.shared_memory is not None and look.shared_memory["bytes"] >= look.shared_memory["free_bytes"]
    assert look.memory is not None and look.memory["bytes"] > look.memory["available_bytes"] > 0
    assert "udp_receive_buffer_errors" in look.network
    assert look.oom_kills in (None, 0)


def test_of_processes_that_have_ended_the_time_and_the_network_are_left() -> None:
    watch = LastLookWatch()
    watch.begin()
    with family() as (supervisor, worker):
        watch.note_network(supervisor.pid, worker)
        assert supervisor.stdin is not None
        supervisor.stdin.close()
        os.waitid(os.P_PID, supervisor.pid, os.WEXITED | os.WNOWAIT)
        ended = watch.look(supervisor.pid, (worker,))
    reaped = watch.look(None, (worker,))
    watch.close()
    for look in (ended, reaped):
        assert look is not None
        assert look.cpu_ns is not None and look.cpu_ns >= 80_000_000
        assert look.living == () and look.descriptors_max is None and look.shared_memory is None
        assert "udp_receive_buffer_errors" in look.network


def test_it_survives_the_way_to_the_conductor() -> None:
    watch = LastLookWatch()
    watch.begin()
    with family() as (supervisor, worker):
        look = watch.look(supervisor.pid, (worker,))
    assert look is not None
    frame: dict[str, Any] = asdict(look)
    assert LastLook.from_frame(frame) == look
    kept = look.as_json(["ping"])
    assert kept["living"] == {"ping": {"threads": 3, "descriptors": look.living[0].descriptors}}
    assert kept["load"] == frame["load"]
