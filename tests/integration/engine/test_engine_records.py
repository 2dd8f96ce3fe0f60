# SPDX-License-Identifier: Apache-2.0
"""A worker that is killed leaves its records in the memfd that it inherited."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, any_message, node, plan, reader, timer, writer
from worker_support import grandchild, machine

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

WANTED = 200


def test_records_are_readable_after_kill_9(build: Path) -> None:
    need("netns")
    nodes = [
        node("source", 0, [], [writer("t0", 0, capacity=5000)], [timer(MILLISECOND_NS)], "poll"),
        node("sink", 1, [reader("t0", [0], capacity=5000)], [], [any_message()], "poll"),
    ]
    long = plan(
        adapter_library("null", build), "/dev/shm/lagometer", nodes, measure_ns=60_000 * MILLISECOND_NS
    )
    with machine(build, 1) as private:
        worker = private.workers[0]
        worker.send(long)
        worker.wait_for("matched")
        worker.wait_for_records(KIND_RECEIVED, WANTED)
        # The worker's own number is of its private machine; from outside it is the supervisor's grandchild.
        os.kill(grandchild(private.process.pid, 2), signal.SIGKILL)
        (said,) = private.finish()
        assert said.code == -signal.SIGKILL
        assert "done" not in said.names
        lanes = {lane.kind: lane for lane in worker.lanes()}
    sent, received = lanes[KIND_SENT].records, lanes[KIND_RECEIVED].records
    assert len(received) >= WANTED
    assert len(received) <= len(sent)  # by how many, the machine's other work decides
    assert (np.diff(sent["sequence"]) == 1).all()
    assert (np.diff(sent["intended_ns"]) == MILLISECOND_NS).all()
    both = slice(0, len(received))
    assert (received["sequence"] == sent["sequence"][both]).all()
    assert (received["taken_ns"] >= sent["publish_ns"][both]).all()
