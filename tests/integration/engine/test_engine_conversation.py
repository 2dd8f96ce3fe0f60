# SPDX-License-Identifier: Apache-2.0
"""What the worker in C++ alone refuses, and how; what both say and when is in tests/integration/worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from needs import adapter_library, need, require
from plan_parts import (
    MILLISECOND_NS,
    any_message,
    node,
    pipeline,
    plan,
    reader,
    timer,
    writer,
)
from worker_support import run_worker


@pytest.mark.parametrize(
    ("capacity", "address_space", "said"),
    [(1 << 26, None, "a worker may have"), (1 << 20, 256 << 20, "Cannot allocate memory")],
)
def test_a_worker_without_room_for_its_records_says_how_much_it_wanted(
    build: Path, tmp_path: Path, capacity: int, address_space: int | None, said: str
) -> None:
    nodes = [
        node(
            f"n{index}", index, [], [writer("t0", index, capacity=capacity)], [timer(MILLISECOND_NS)], "poll"
        )
        for index in range(4)
    ]
    streams = [each["index"] for each in nodes]
    nodes.append(node("sink", 4, [reader("t0", streams, capacity=1000)], [], [any_message()], "poll"))
    limit = [] if address_space is None else ["prlimit", f"--as={address_space}"]
    if limit:
        need("prlimit")
        limited = os.environ.get("LAGOMETER_ADDRESS_SPACE") != "unlimited"
        require("address-space", limited, "an address space that can be limited (shadow memory fills it)")
    result = subprocess.run(
        [*limit, str(build / "engine" / "lagometer-worker")],
        input=json.dumps(plan(adapter_library("null", build), tmp_path, nodes)).encode() + b"\n",
        capture_output=True,
        timeout=60,
    )
    failed = json.loads(result.stdout.splitlines()[-1])
    assert (result.returncode, failed["phase"], failed["reason"]) == (1, "create", "no-memory")
    wanted = int(re.findall(r"no room for (\d+) bytes of records", failed["message"])[0])
    assert 4 * 64 * capacity < wanted < 4 * 64 * capacity * 1.02 + 10 * 4096
    assert said in failed["message"]


def test_null_refuses_a_listener_instead_of_waiting_for_one(build: Path, tmp_path: Path) -> None:
    said = run_worker(build, plan(adapter_library("null", build), tmp_path, pipeline("listener")))
    failed = said.event("failed")
    assert (said.code, failed["phase"], failed["reason"]) == (1, "create", "adapter-failed")
    assert (
        "null does not support dispatch listener; its adapter.json lists poll, waitset" in failed["message"]
    )
