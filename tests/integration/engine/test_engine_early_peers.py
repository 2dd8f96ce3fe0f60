# SPDX-License-Identifier: Apache-2.0
"""A worker whose peers have started before it: its relay answers while it still sends probes."""

from __future__ import annotations

from pathlib import Path

import pytest
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, apart, pipeline
from worker_support import machine

from lagometer.store.records import FLAG_CORRUPTED, KIND_RECEIVED, KIND_SENT

# So long that a frame is written in several pieces, between which another thread could write its own.
PAYLOAD_BYTES = 200_000
ANSWERS = 2_000  # that the relay gives before it is told to go


@pytest.mark.parametrize("adapter", ["tcp", "uds", "zeromq"])
def test_probes_and_answers_of_a_relay_do_not_mix(build: Path, adapter: str) -> None:
    """The relay's worker gets no `go`, so its main thread keeps probing by the writer that its node uses."""
    need("netns")
    need(adapter)
    nodes = pipeline("waitset", period_ns=MILLISECOND_NS // 5, payload_bytes=PAYLOAD_BYTES)
    plans = apart(
        adapter_library(adapter, build), "/dev/shm/lagometer", nodes, measure_ns=60_000 * MILLISECOND_NS
    )
    with machine(build, 3) as private:
        private.match(plans)
        private.go(0, 2)
        private.workers[1].wait_for_records(KIND_SENT, ANSWERS)
        private.go(1)
        for worker in private.workers:
            worker.send({"command": "stop"})
        said = private.finish()
    assert [each.code for each in said] == [0, 0, 0], [each.errors for each in said]
    received = said[2].lane(KIND_RECEIVED, 2, 0)
    assert len(received) > 0
    assert int((received["flags"] & FLAG_CORRUPTED).sum()) == 0
    assert (received["payload_bytes"] == PAYLOAD_BYTES).all()
    sequences = received["sequence"].tolist()
    assert sequences == sorted(set(sequences))
    assert set(sequences) <= set(said[1].lane(KIND_SENT, 1, 1)["sequence"].tolist())
