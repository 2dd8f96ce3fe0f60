# SPDX-License-Identifier: Apache-2.0
"""For which of its workers' messages a trial fails, and with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_run_unmatched import plans_of

from lagometer.run.worker.conversation import Conversation
from lagometer.run.worker.said import reasons_of

HELLO = {"event": "hello", "protocol": 1, "worker": 1, "pid": 7, "version": "0.1.0"}


def talk(*messages: dict[str, Any]) -> Conversation:
    found = Conversation(1, "relay-1")
    for message in (HELLO, *messages):
        found.feed(json.dumps(message).encode() + b"\n")
    return found


def ready(*effective: object) -> dict[str, Any]:
    settings = [{"adapter": "mine", "object": "context", "effective": each} for each in effective]
    return {"event": "ready", "settings": settings}


def reasons(event: str, found: Conversation, tmp_path: Path) -> list[str]:
    return list(reasons_of(event, found, [found], plans_of(tmp_path, "pipeline-3")))


def test_an_unknown_transport_is_a_reason_with_the_known_words_and_the_nearest(tmp_path: Path) -> None:
    wrong = {"transport": {"within_process": ["process"], "between_processes": ["shm"]}}
    said = (
        "adapter-failed: relay-1 in phase create: mine: describe of context: transport.between_processes has "
        "'shm', which is not a transport; known are: process, shared-memory, unix-socket, tcp, udp; "
        "did you mean 'shared-memory'?"
    )
    assert reasons("ready", talk(ready({}, wrong, wrong)), tmp_path) == [said]


@pytest.mark.parametrize(
    "effective", [{}, None, {"transport": {}}, {"transport": {"within_process": ["process", "udp"]}}]
)
def test_known_transports_and_no_claim_are_no_reason(tmp_path: Path, effective: object) -> None:
    found = talk(ready(effective))
    assert reasons("hello", found, tmp_path) == reasons("ready", found, tmp_path) == []


def test_a_failure_has_its_message_what_is_missing_and_what_was_counted(tmp_path: Path) -> None:
    missing = {"node": "relay-1", "reader": 0, "topic": "lagometer/t0", "streams": [0]}
    message = {"reason": "endpoints-missing", "message": "not matched within 5 ms", "missing": [missing]}
    found = talk(ready(), {"event": "failed", "phase": "discover", **message})
    said = (
        "endpoints-missing: relay-1 in phase discover: not matched within 5 ms "
        f"(missing: {json.dumps(missing)}); relay-1 on lagometer/t0 heard 0 of 1 publishers"
    )
    assert reasons("failed", found, tmp_path) == [said]
    plain = {"event": "failed", "phase": "create", "reason": "adapter-failed", "message": "no"}
    assert reasons("failed", talk(plain), tmp_path) == ["adapter-failed: relay-1 in phase create: no"]


def test_of_hundreds_of_unmatched_readers_the_first_are_named(tmp_path: Path) -> None:
    """The progress line has this reason, too."""
    missing = [
        {"node": f"n{each}", "reader": 0, "topic": f"t{each}", "streams": [each]} for each in range(99)
    ]
    listed = ";".join(f" node n{each} on topic t{each} misses streams [{each}]" for each in range(99))
    message = {"reason": "endpoints-missing", "message": f"not matched within 5 ms:{listed}"}
    found = talk(ready(), {"event": "failed", "phase": "discover", "missing": missing, **message})
    (said,) = reasons("failed", found, tmp_path)
    assert said.startswith(
        "endpoints-missing: relay-1 in phase discover: not matched within 5 ms: node n0 on"
    )
    assert said.endswith("; node n7 on topic t7 misses streams [7]; and 91 more")
