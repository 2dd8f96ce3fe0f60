# SPDX-License-Identifier: Apache-2.0
"""Stream sockets whose reader stalls: frames are cut in two, and come whole, once and in order anyhow."""

from __future__ import annotations

from pathlib import Path

import pytest
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, apart, node, reader, timer, writer
from worker_support import run_together

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

DIRECTORY = "/dev/shm/lagometer"
# Several times what a socket holds, so that whoever does not wait has sent a part of it.
PAYLOAD_BYTES = 8 << 20
# Of the reader at each message: the worker lets commit() wait for 1 s, so the rest of a frame is kept after
# that, and after another one the next message is refused.
STALL_NS = 2_500 * MILLISECOND_NS


@pytest.mark.parametrize(("adapter", "reliability"), [("tcp", "reliable"), ("uds", "best_effort")])
def test_a_reader_that_stalls_gets_whole_frames(build: Path, adapter: str, reliability: str) -> None:
    need("netns")
    qos: Mapping = {"reliability": reliability, "history": "keep_all"}
    endpoint = {"qos": qos, "payload_bytes": PAYLOAD_BYTES, "capacity": 1_000}
    source = node("source", 0, [], [writer("t", 0, **endpoint)], [timer(20 * MILLISECOND_NS)], "waitset")
    sink = node("sink", 1, [reader("t", [0], **endpoint)], [], [any_message(work_ns=STALL_NS)], "waitset")
    phases = {"warmup_ns": 0, "measure_ns": 4_000 * MILLISECOND_NS, "drain_ns": 7_000 * MILLISECOND_NS}
    plans = apart(adapter_library(adapter, build), DIRECTORY, [source, sink], **phases)
    send, listen = run_together(build, plans)
    sent, received = send.lane(KIND_SENT, 0, 0), listen.lane(KIND_RECEIVED, 1, 0)
    accepted = sent[sent["status"] == 0]["sequence"].tolist()
    assert (sent["status"] == 1).any(), "the reader never made the writer wait for longer than it may"
    assert listen.event("done")["readers"][0]["corrupted"] == 0
    # When the drain ends some are still under way; up to there, all that was accepted came and nothing else.
    assert len(received) >= 2
    assert received["sequence"].tolist() == accepted[: len(received)]
