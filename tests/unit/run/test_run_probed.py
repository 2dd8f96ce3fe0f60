# SPDX-License-Identifier: Apache-2.0
"""What the probes of a trial wrote: what of it can't be read or was refused is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from lagometer.agent.observe.system_calls import Called
from lagometer.run.results.probed import calls_of, probe_logs
from lagometer.stats.trial.seen_calls import Seen, SeenCalls
from lagometer.store import probes
from lagometer.store.probes import encode


def outcome(called: dict[int, Called] | None = None, **probed: bytes) -> Any:
    blocks = {int(worker.removeprefix("worker")): block for worker, block in probed.items()}
    host = SimpleNamespace(probed=blocks, called=called or {}, clock=SimpleNamespace(offset_ns=5))
    return cast("Any", SimpleNamespace(hosts=[host]))


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


def sends(*ends_ns: int) -> bytes:
    calls = [{"call": probes.SEND, "begin_ns": end - 1, "end_ns": end, "descriptor": 3} for end in ends_ns]
    return encode({1: [(call, []) for call in calls]})


def test_what_the_kernel_counted_is_compared_between_its_readings_on_one_clock() -> None:
    called = {
        0: Called(None, (80, 90), (200, 210), {"send": 4}),
        1: Called(None, (0, 9), (20, 30), {"send": 1}),
    }
    trial = outcome(called, worker0=sends(85, 90, 150, 200, 205), worker1=sends(15))
    logs, _ = probe_logs(trial)
    assert calls_of(trial, logs).groups["send"] == Seen(5, 4)


def test_what_was_not_counted_has_its_reason() -> None:
    trial = outcome({0: Called("ENOENT: no"), 1: Called(None, (0, 9), (20, 30), {})}, worker1=sends(15))
    logs, _ = probe_logs(trial)
    assert calls_of(trial, logs) == SeenCalls(absent="ENOENT: no")
    without = outcome({0: Called(None, (0, 9), (20, 30), {})})
    assert calls_of(without, {}).absent == "the probe of a worker left nothing"
    assert calls_of(outcome(), {}).absent == "the agents did not get so far"
