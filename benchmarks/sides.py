# SPDX-License-Identifier: Apache-2.0
"""The two sides of the fidelity benchmark, each run in fresh processes and fresh private namespaces."""

from __future__ import annotations

import os
import re
import select
import shutil
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from lagometer.agent.commands import Command
from lagometer.agent.isolation import PRIVATE_RUNTIME_DIRECTORY
from lagometer.agent.orders import Orders
from lagometer.agent.supervised import Supervised
from lagometer.installation import supervisor_path, worker_path
from lagometer.run.events import EventLog
from lagometer.run.hosts.link import AgentLink
from lagometer.run.hosts.local import LocalLauncher
from lagometer.run.hosts.part import HostPart
from lagometer.run.interruption import Interruption
from lagometer.run.worker.conductor import Conductor
from lagometer.run.worker.layout import worker_plans
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store.records import decode
from lagometer.study import study_from_mapping
from lagometer.study.adapters import discover_adapters
from lagometer.study.matrix import expand

PRIORITY = 20
SEQUENCE_LENGTH_BYTES = 4  # our type is only a sequence of octets; ddsperf counts all CDR bytes
PING, PONG = 0, 1
SENT, RECEIVED = 1, 2
COUNTER = ("sh", "-c", "while read -r line; do grep lo: /proc/net/dev; done")


class Sides:
    """Runs one side at a time; `with` ends what is still running."""

    def __init__(self, smoke: bool) -> None:
        self._seconds = 1
        self._smoke = smoke
        self._trials = 0  # so far: each has its own number, and therefore a different heap
        self._adapters = discover_adapters()
        self._interruption = Interruption()
        self._events = EventLog()
        self._link = AgentLink("here", LocalLauncher(supervisor_path()))
        self._cpus = sorted(os.sched_getaffinity(0))[:2]

    def __enter__(self) -> Sides:
        self._interruption.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interruption.__exit__(kind, error, trace)
        self._link.close()
        self._events.close()

    def our_half_ns(self, payload_bytes: int) -> float:
        """Half of the median round trip of one trial, in ns."""
        outcome = self._our_trial(payload_bytes)
        return float(np.median(_round_trips_ns(outcome))) / 2

    def vendor_half_ns(self, payload_bytes: int) -> float:
        """The median that ddsperf prints for its last whole second, in ns."""
        text, _ = self._vendor_run(payload_bytes)
        found = re.findall(r" size \d+ mean .* 50% ([\d.]+)us", text)
        if not found:
            raise RuntimeError(f"ddsperf printed no round trips: {text[-2000:]}")
        return float(found[-1]) * 1000

    def our_wire_bytes(self, payload_bytes: int) -> float:
        """Loopback bytes per round trip over a whole run, by two workers without a conductor."""
        study, cell = self._cell(payload_bytes)
        plans = worker_plans(study, cell, 0, self._adapters, standalone=True)
        command = (str(worker_path()),)
        outputs, wire_bytes = _run_counted(
            [command, command], [plan.model_dump_json() + "\n" for plan in plans]
        )
        sent = [int(count) for count in re.findall(rb'"sent":(\d+)', outputs[PING])]
        return wire_bytes / max(sent)

    def vendor_wire_bytes(self, payload_bytes: int) -> float:
        """Loopback bytes per round trip over a whole run of ddsperf."""
        text, wire_bytes = self._vendor_run(payload_bytes)
        return wire_bytes / sum(int(count) for count in re.findall(r" cnt (\d+)", text))

    def _cell(self, payload_bytes: int) -> tuple[Any, Any]:
        mapping = {
            "name": "fidelity",
            "duration": f"{self._seconds}s",
            "warmup": f"{self._seconds}s",
            "drain": "100ms",
            "priority": PRIORITY,
            "matrix": {
                "adapter": "cyclonedds",
                "workload": "pingpong",
                "payload": payload_bytes,
                "reliability": "reliable",
                "history": "keep_last",
                "depth": 1,
                "dispatch": "listener",
                "touch": "header",
                "scheduling": "fifo",
                "cpus": "spread",
            },
        }
        study = study_from_mapping(mapping, "fidelity")
        expansion = expand(study, self._adapters)
        if not expansion.cells:
            raise RuntimeError(f"our side can't run: {expansion.excluded[0].reason}")
        return study, expansion.cells[0]

    def _our_trial(self, payload_bytes: int) -> TrialOutcome:
        study, cell = self._cell(payload_bytes)
        plans = worker_plans(study, cell, self._trials, self._adapters)
        self._trials += 1
        commands = (Command((str(worker_path()),)),) * len(plans)
        part = HostPart(self._link, Orders("private", PRIVATE_RUNTIME_DIRECTORY, commands), range(len(plans)))
        outcome = Conductor(self._interruption, self._events).carry_out([part], plans)
        if outcome.reasons:
            raise RuntimeError(
                f"our side failed: {outcome.reasons}; {[each.stderr for each in outcome.workers]}"
            )
        return outcome

    def _vendor_run(self, payload_bytes: int) -> tuple[str, float]:
        seconds = 2 * self._seconds  # it prints from the second second on; only the last line is used
        size = payload_bytes + SEQUENCE_LENGTH_BYTES
        ping = self._vendor_command(0, ["-D", str(seconds), "ping", "size", str(size), "listener"])
        pong = self._vendor_command(1, ["-D", str(seconds + 1), "pong", "listener"])
        outputs, wire_bytes = _run_counted([ping, pong], ["", ""])
        return outputs[PING].decode(), wire_bytes

    def _vendor_command(self, place: int, arguments: Sequence[str]) -> tuple[str, ...]:
        cpu = self._cpus[place % len(self._cpus)]
        found = {name: shutil.which(name) for name in ("chrt", "taskset", "ddsperf")}
        if None in found.values():
            raise RuntimeError(f"not installed: {[name for name, path in found.items() if path is None]}")
        prefix = [str(found["chrt"]), "-f", str(PRIORITY), str(found["taskset"]), "-c", str(cpu)]
        return (*prefix, str(found["ddsperf"]), *arguments)


def _round_trips_ns(outcome: TrialOutcome) -> Any:
    """publish of a ping to taken of the pong with its sequence, over the measure window."""
    lanes = decode(bytes(outcome.workers[PING].records or b""))
    sent = next(lane.records for lane in lanes if lane.kind == SENT)
    received = next(lane.records for lane in lanes if lane.kind == RECEIVED)
    _, at_sent, at_received = np.intersect1d(sent["sequence"], received["sequence"], return_indices=True)
    publish_ns = sent["publish_ns"][at_sent]
    measured = (publish_ns >= outcome.measure_begin_ns) & (publish_ns < outcome.measure_end_ns)
    return (received["taken_ns"][at_received] - publish_ns)[measured]


def _run_counted(commands: Sequence[Sequence[str]], inputs: Sequence[str]) -> tuple[list[bytes], float]:
    """Runs commands in one private machine, with a process that reads the loopback counter at the end.

    Returns each command's standard output and the bytes that crossed the loopback until the first ended.
    """
    launcher = Supervised(supervisor_path())
    pipes = launcher.start([Command(tuple(each)) for each in [*commands, COUNTER]], "private")
    try:
        for pipe, text in zip(pipes, inputs, strict=False):
            if text:
                os.write(pipe.stdin, text.encode())
        outputs = _read_until_end(
            [pipe.stdout for pipe in pipes[: len(commands)]], [pipe.stderr for pipe in pipes]
        )
        os.write(pipes[-1].stdin, b"\n")
        counted = _read_line(pipes[-1].stdout)
        return outputs, float(counted.split(b"lo:")[1].split()[0])
    finally:
        launcher.close()


def _read_until_end(outputs: Sequence[int], ignored: Sequence[int], limit_s: float = 60.0) -> list[bytes]:
    """Reads all outputs until the first of them (the pinging side's) ends."""
    texts: dict[int, list[bytes]] = {descriptor: [] for descriptor in outputs}
    deadline = time.monotonic() + limit_s
    open_ones = set(outputs) | set(ignored)
    while outputs[0] in open_ones and time.monotonic() < deadline:
        for descriptor in select.select(list(open_ones), [], [], 1.0)[0]:
            data = os.read(descriptor, 1 << 20)
            if not data:
                open_ones.discard(descriptor)
            elif descriptor in texts:
                texts[descriptor].append(data)
    return [b"".join(texts[descriptor]) for descriptor in outputs]


def _read_line(descriptor: int, limit_s: float = 5.0) -> bytes:
    """Reads one line from a non-blocking descriptor."""
    line = b""
    deadline = time.monotonic() + limit_s
    while not line.endswith(b"\n") and time.monotonic() < deadline:
        if select.select([descriptor], [], [], 1.0)[0]:
            line += os.read(descriptor, 4096)
    return line
