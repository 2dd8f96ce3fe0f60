# SPDX-License-Identifier: Apache-2.0
"""An agent that simulates all workers of a pipeline, to show what many workers cost the conductor.

Each message is taken ten microseconds after it was published. The program ignores its command-line arguments.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from typing import Any

from lagometer.agent.frames import Frames, framed
from lagometer.agent.observe.witness import Evidence
from lagometer.agent.serving import NOTHING_DONE, hello
from lagometer.store import records as rec
from lagometer.store.observed import Clocks, MachineLoad
from lagometer.store.records import Lane

MESSAGES = 10
HOP_NS = 10_000
READ_BYTES = 1 << 20


class MockWorkers:
    """The workers of successive trials."""

    def __init__(self) -> None:
        self._plans: dict[int, dict[str, Any]] = {}

    def obey(self, message: Mapping[str, Any], block: bytes) -> None:
        command = message["command"]
        if command == "clock":
            say({"event": "clock", "number": message["number"], "at_ns": time.monotonic_ns()})
        elif command == "files":
            say({"event": "files", "hashes": dict.fromkeys(message["paths"])})
        elif command == "trial":
            self._plans = {}
            say({"event": "notice", "notice": {"event": "isolated", "network": True}})
            say({"event": "serving", "at_ns": time.monotonic_ns(), "clock_port": 0, "service": None})
        elif command == "say":
            self._create(message["worker"], json.loads(block))
        elif command == "go":
            self._measure(message["at_ns"], message["phases"])
        elif command == "collect":
            clocks = Clocks(elapsed_ns=1)
            seen = Evidence(True, 1, {}, clocks, MachineLoad(), tuple(None for _ in self._plans))
            say({"event": "evidence", "evidence": seen.as_frame(), "load_wrong": None, "service": None})
        elif command == "end":
            say({"event": "ended", **NOTHING_DONE})

    def _create(self, worker: int, plan: dict[str, Any]) -> None:
        self._plans[worker] = plan
        hello_of = {
            "event": "hello",
            "protocol": 1,
            "worker": plan["worker"]["index"],
            "pid": 1,
            "version": "0",
        }
        ready = {"event": "ready", "adapters": [], "settings": [], "scheduling": {}, "warnings": []}
        for event in (hello_of, ready, {"event": "matched", "elapsed_ns": 1}):
            print_as(worker, json.dumps(event).encode() + b"\n")

    def _measure(self, at_ns: int, phases: Mapping[str, int]) -> None:
        begin_ns = at_ns + phases["warmup_ns"]
        end_ns = begin_ns + phases["measure_ns"] + phases["drain_ns"]
        time.sleep(max(0, end_ns - time.monotonic_ns()) / 1e9)
        for worker, plan in self._plans.items():
            self._hand_over(worker, plan, begin_ns, phases)
        for worker in self._plans:
            say({"event": "notice", "notice": {"event": "exited", "worker": worker, "code": 0}})
        say({"event": "notice", "notice": {"event": "finished", "warnings": []}})

    def _hand_over(self, worker: int, plan: dict[str, Any], begin_ns: int, phases: Mapping[str, int]) -> None:
        (node,) = plan["nodes"]
        done = {
            "event": "done",
            "at_ns": begin_ns,
            "measure_begin_ns": begin_ns,
            "measure_end_ns": begin_ns + phases["measure_ns"],
            "drain_end_ns": begin_ns + phases["measure_ns"] + phases["drain_ns"],
            "writers": [
                {"node": node["index"], "stream": writer["stream"], "sent": MESSAGES, "due": MESSAGES}
                for writer in node["writers"]
            ],
            "readers": [
                {"node": node["index"], "reader": place, "received": MESSAGES}
                for place, _ in enumerate(node["readers"])
            ],
        }
        block = rec.encode(lanes_of(node, begin_ns, phases["measure_ns"]), worker=plan["worker"]["index"])
        records = {"event": "records", "bytes": len(block), "crc32": f"{zlib.crc32(block):08x}"}
        lines = (json.dumps(done).encode(), json.dumps(records).encode())
        print_as(worker, b"\n".join(lines) + b"\n" + block + b'{"event":"bye"}\n')


def lanes_of(node: Mapping[str, Any], begin_ns: int, measure_ns: int) -> list[Lane]:
    """What a node of a pipeline would have recorded; its position in the pipeline is its index."""
    lanes = []
    for writer in node["writers"]:
        rows = []
        for sequence in range(MESSAGES):
            at_ns = begin_ns + sequence * measure_ns // MESSAGES + 2 * node["index"] * HOP_NS
            row = {"sequence": sequence, "publish_ns": at_ns, "published_ns": at_ns + 1}
            if node["readers"]:
                stream = node["readers"][0]["streams"][0]
                row |= {"cause_stream": stream, "cause_sequence": sequence, "cause_count": 1}
            else:
                row["intended_ns"] = at_ns
            rows.append(row)
        lanes.append(
            Lane(rec.KIND_SENT, node["index"], writer["stream"], rec.make_records(rec.KIND_SENT, rows))
        )
    for place, reader in enumerate(node["readers"]):
        rows = []
        for sequence in range(MESSAGES):
            at_ns = begin_ns + sequence * measure_ns // MESSAGES + (2 * node["index"] - 1) * HOP_NS
            row = {
                "sequence": sequence,
                "stream": reader["streams"][0],
                "payload_bytes": reader["payload_bytes"],
            }
            rows.append({**row, "taken_ns": at_ns, "handled_ns": at_ns + 1})
        lanes.append(Lane(rec.KIND_RECEIVED, node["index"], place, rec.make_records(rec.KIND_RECEIVED, rows)))
    return lanes


def print_as(worker: int, data: bytes) -> None:
    """Simulates a worker's standard output."""
    say({"event": "output", "worker": worker, "stream": "stdout"}, data)


def say(message: Mapping[str, Any], block: bytes | None = None) -> None:
    unwritten = framed(message, block)
    while unwritten:
        unwritten = unwritten[os.write(1, unwritten) :]


def main() -> None:
    say(hello())
    frames, workers = Frames(), MockWorkers()
    while data := os.read(0, READ_BYTES):
        for message, block in frames.feed(data):
            workers.obey(message, block)


if __name__ == "__main__":
    main()
