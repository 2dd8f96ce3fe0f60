# SPDX-License-Identifier: Apache-2.0
"""What the probes of a trial wrote: what of it can't be read or was refused is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from lagometer.run.results.probed import probe_logs
from lagometer.store import probes
from lagometer.store.probes import encode


def outcome(**probed: bytes) -> Any:
    blocks = {int(worker.removeprefix("worker")): block for worker, block in probed.items()}
    return cast(
        "Any", SimpleNamespace(hosts=[SimpleNamespace(probed=blocks, clock=SimpleNamespace(offset_ns=5))])
    )


def told(*texts: str) -> bytes:
    keys = [
        {"text": number, "bytes": len(text), "characters": text.encode().ljust(46, b"\0")}
        for number, text in enumerate(texts)
        if text
    ]
    return encode({1: [({"call": probes.ROS2, "begin_ns": 10, "end_ns": 20}, keys)]})


def test_times_are_on_the_conductors_clock() -> None:
    logs, warnings = probe_logs(outcome(worker0=told("jazzy", "8.2.5")))
    assert (logs[0].calls["begin_ns"].tolist(), warnings) == ([5], [])


def test_a_ros2_that_was_refused_is_said_with_its_reason() -> None:
    logs, warnings = probe_logs(outcome(worker2=told("", "9.0.0", "tracetools 9.0.0 is not known")))
    assert list(logs) == [2]
    assert warnings == ["layers: worker 2: ROS 2 is not stamped: tracetools 9.0.0 is not known"]


def test_a_file_that_can_not_be_read_is_said() -> None:
    logs, (warning,) = probe_logs(outcome(worker1=b"nothing"))
    assert not logs and warning.startswith("layers: worker 1: probe: 7 bytes")
