# SPDX-License-Identifier: Apache-2.0
"""POSIX message queues: what the machine allows holds in private trials, and nothing stays behind."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import ROOT, need

from lagometer.agent.commands import Command, Leaves
from lagometer.agent.supervised import Supervised

LIBRT = ctypes.CDLL("librt.so.1", use_errno=True)
PREFIX = f"lagometer-test-{os.getpid()}"
MAKE = """
import ctypes, os, sys
library = ctypes.CDLL("librt.so.1", use_errno=True)
for name in sys.argv[1:]:
    queue = library.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    assert queue >= 0, os.strerror(ctypes.get_errno())
print("made", flush=True)
sys.stdin.read()
"""
LIMITS = """
import json, pathlib, sys
from lagometer.agent.commands import Command
from lagometer.agent.supervised import Supervised
launcher = Supervised(pathlib.Path(sys.argv[1]))
(pipes,) = launcher.start([Command(("cat", *sys.argv[2:]))], "private")
import os, select
text = b""
while select.select([pipes.stdout], [], [], 60)[0] and (piece := os.read(pipes.stdout, 4096)):
    text += piece
launcher.close()
print(json.dumps(text.decode().splitlines()))
"""


def is_there(name: str) -> bool:
    queue = LIBRT.mq_open(f"/{name}".encode(), os.O_RDONLY)
    if queue < 0:
        assert ctypes.get_errno() == errno.ENOENT
        return False
    os.close(queue)
    return True


@pytest.fixture
def names() -> Iterator[list[str]]:
    """Names for queues; those that are left are removed."""
    found = [f"{PREFIX}-{word}" for word in ("killed", "used", "before")] + [f"other-{PREFIX}"]
    yield found
    for name in found:
        LIBRT.mq_unlink(f"/{name}".encode())


def making(*names: str) -> Command:
    return Command((sys.executable, "-c", MAKE, *(f"/{name}" for name in names)))


def test_queues_of_killed_processes_are_removed_from_the_host_and_no_others(
    build: Path, names: list[str]
) -> None:
    need("root")
    killed, used, before, other = names
    outside = subprocess.Popen(making(before).arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert outside.stdout is not None
    outside.stdout.readline()
    leaves = Leaves("", (), (f"{PREFIX}-*",))
    launcher = Supervised(build / "engine" / "lagometer-supervisor", leaves)
    (pipes,) = launcher.start([making(killed, used, other)], "host")
    os.set_blocking(pipes.stdout, True)
    assert os.read(pipes.stdout, 16) == b"made\n"
    user = subprocess.Popen(making(used).arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert user.stdout is not None
    user.stdout.readline()
    launcher.close()  # kills what runs
    try:
        assert [is_there(name) for name in names] == [False, True, True, True]
    finally:
        for process in (outside, user):
            process.communicate()


def test_what_the_machine_allows_of_ipc_holds_in_a_private_trial(build: Path) -> None:
    need("root")
    need("netns")
    settings = {"fs/mqueue/msg_max": "64", "fs/mqueue/queues_max": "300", "kernel/msgmax": "16384"}
    settings["kernel/sem"] = "32000\t1024000000\t500\t31000"
    paths = [f"/proc/sys/{name}" for name in settings]
    write = "; ".join(f"printf '%s' '{value}' > /proc/sys/{name}" for name, value in settings.items())
    supervisor = build / "engine" / "lagometer-supervisor"
    inner = ["--", sys.executable, "-c", LIMITS, str(supervisor), *paths]
    command = ["unshare", "--ipc", "sh", "-c", f'{write}; shift; exec "$@"', "sh", *inner]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == list(settings.values())
