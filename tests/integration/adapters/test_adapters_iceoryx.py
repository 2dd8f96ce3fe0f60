# SPDX-License-Identifier: Apache-2.0
"""iceoryx with a real RouDi: loans, history for late joiners, back-pressure with an end, what it refuses."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from campaign_support import journal, run_campaign
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, plan, reader, timer, writer
from worker_support import Said, daemons_beside, machine, run_private

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

DIRECTORY = "/dev/shm/lagometer"
HISTORY_MAX = 16
EARLY = 20  # messages of a publisher that falls silent then
STALL_NS = 30_000 * MILLISECOND_NS  # of a reader at its first message: longer than the writer may wait


def source_and_sink(build: Path, qos: Mapping, dispatch: str = "waitset", **phases: int) -> list[Mapping]:
    """One plan that sends on a topic, and one that expects to hear it."""
    library = adapter_library("iceoryx", build)
    source = node("source", 0, [], [writer("t", 0, qos=qos)], [timer(5 * MILLISECOND_NS)], dispatch)
    sink = node("sink", 1, [reader("t", [0], qos=qos)], [], [any_message()], dispatch)
    plans = [plan(library, DIRECTORY, [each], **phases) for each in (source, sink)]
    plans[1]["worker"]["index"] = 1
    return plans


def failure(build: Path, qos: Mapping, **endpoint: int) -> Mapping:
    """What a worker says that is asked for something impossible."""
    need("netns")
    need("iceoryx")
    one = node("one", 0, [], [writer("t", 0, qos=qos, **endpoint)], [timer(5 * MILLISECOND_NS)], "waitset")
    (said,) = run_private(build, [plan(adapter_library("iceoryx", build), DIRECTORY, [one])])
    return said.event("failed")


@pytest.mark.parametrize("durability", ["transient_local", "volatile"])
def test_a_late_joiner_gets_what_the_publisher_keeps(build: Path, durability: str) -> None:
    """The publisher falls silent after its last early message, so nothing else can come."""
    need("netns")
    need("iceoryx")
    qos = {"reliability": "reliable", "history": "keep_last", "depth": HISTORY_MAX, "durability": durability}
    phases = {"warmup_ns": 0, "measure_ns": EARLY * 5 * MILLISECOND_NS, "drain_ns": 30_000 * MILLISECOND_NS}
    send, listen = source_and_sink(build, qos, **phases)
    listen["nodes"][0]["readers"][0]["streams"] = []  # no probe is waited for
    listen["phases"]["drain_ns"] = 200 * MILLISECOND_NS
    with machine(build, 2, beside=daemons_beside(adapter_library("iceoryx", build))) as private:
        first, late = private.workers
        first.send(send)
        first.wait_for_records(KIND_SENT, EARLY)
        late.send(listen)
        late.wait_for("done")
        first.send({"command": "stop"})
        _, said = private.finish()
    sequences = said.lane(KIND_RECEIVED, 1, 0)["sequence"].tolist()
    kept = list(range(EARLY - HISTORY_MAX, EARLY))
    assert sequences == (kept if durability == "transient_local" else [])


@pytest.mark.parametrize(
    ("qos", "said"),
    [
        ({"history": "keep_last", "depth": 257}, "a subscriber's queue has 1 to 256 places"),
        (
            {"history": "keep_last", "depth": 17, "durability": "transient_local"},
            "keeps at most 16 messages for late joiners",
        ),
        ({"history": "keep_all", "durability": "transient_local"}, "keeps at most 16 messages"),
    ],
)
def test_what_iceoryx_has_no_room_for_is_refused(build: Path, qos: Mapping, said: str) -> None:
    assert said in failure(build, qos)["message"]


def test_messages_that_fit_into_no_mempool_are_refused(build: Path) -> None:
    message = failure(build, {}, payload_bytes=1 << 20)["message"]
    assert "RouDi's largest mempool" in message
    assert "1048576 bytes" in message


def test_without_roudi_the_worker_says_what_to_start(build: Path) -> None:
    need("netns")
    need("iceoryx")
    send, _ = source_and_sink(build, {})
    with machine(build, 1) as private:
        private.workers[0].send(send)
        (said,) = private.finish()
    assert said.event("failed")["reason"] == "adapter-failed"
    assert "iox-roudi" in said.event("failed")["message"]


def test_a_reader_that_takes_nothing_holds_the_writer_for_as_long_as_it_may(build: Path) -> None:
    """iceoryx's own publishing would wait for ever; the worker lets commit() wait for 1 s."""
    need("netns")
    need("iceoryx")
    qos = {"reliability": "reliable", "history": "keep_all"}
    phases = {"warmup_ns": 0, "measure_ns": 4_000 * MILLISECOND_NS, "drain_ns": 100 * MILLISECOND_NS}
    send, listen = source_and_sink(build, qos, **phases)
    listen["nodes"][0]["rules"][0]["work_ns"] = STALL_NS
    with machine(build, 2, beside=daemons_beside(adapter_library("iceoryx", build))) as private:
        for worker, each in zip(private.workers, (send, listen), strict=True):
            each["standalone"] = False
            worker.send(each)
        for worker in private.workers:
            worker.wait_for("matched")
        at_ns = time.monotonic_ns() + 10 * MILLISECOND_NS
        for worker in private.workers:
            worker.send({"command": "go", "at_ns": at_ns})
        said: Said = private.workers[0].end()
    sent = said.lane(KIND_SENT, 0, 0)
    refused = sent[sent["status"] == 1]
    assert len(refused) > 0, "the queue of 256 was never full"
    # The stalled reader has taken a batch, and its queue holds the rest of what was accepted.
    assert 256 < (sent["status"] == 0).sum() <= 256 + 8
    waited_ns = refused["published_ns"] - refused["publish_ns"]
    assert (waited_ns >= 1_000 * MILLISECOND_NS).all()
    assert said.event("done")["writers"][0]["counters"]["rejected"] == len(refused)


def test_the_messages_are_loaned_and_the_pools_shown(build: Path, tmp_path: Path) -> None:
    need("iceoryx")
    matrix = {"adapter": ["iceoryx"], "workload": ["pipeline-2"], "payload": ["64KB"], "rate": ["50Hz"]}
    out = run_campaign(build, tmp_path, matrix)
    (trial,) = journal(out)
    writers = [one for each in trial["counters"].values() for one in each["writers"]]
    assert [each["origin"] for each in writers] == ["loaned"]
    assert any("iceoryx_mgmt" in name for name in trial["evidence"]["traces"][0]["memory"])
    # 64 KiB and 256 B for headers, in chunks enough for a queue of 16.
    assert "size = 65792\\ncount = " in (out / "manifest.json").read_text()
