# SPDX-License-Identifier: Apache-2.0
"""The probes of a trial: their environment, what they wrote, on the conductor's clock, and how much of it is
all that the kernel saw."""

from __future__ import annotations

from collections.abc import Mapping

from lagometer.run.worker.outcome import TrialOutcome
from lagometer.run.worker.plan import Plan
from lagometer.stats.trial.seen_calls import SeenCalls, added, seen_calls
from lagometer.store.errors import RecordsError
from lagometer.store.probes import ProbeLog, decode, ros2_of

RECORD_BYTES = 64
# Calls and keys per message on one side, including what a reliable middleware sends in addition.
RECORDS_PER_MESSAGE = 24
DATAGRAM_BYTES = 1300  # the smallest part of a split message: each has a call and a key
BYTES_MIN, BYTES_MAX = 8 << 20, 256 << 20


def probe_name(plan: Plan) -> str:
    """The name of a worker's file in the trial's folder."""
    return f"probe-{plan.worker.index}"


def probe_environment(plan: Plan, directory: str) -> dict[str, str]:
    """The variables that tell a worker's probe where to write, and how much room it has."""
    endpoints = [endpoint for node in plan.nodes for endpoint in (*node.readers, *node.writers)]
    needed = sum(
        endpoint.capacity * (RECORDS_PER_MESSAGE + 2 * endpoint.payload_bytes // DATAGRAM_BYTES)
        for endpoint in endpoints
    )
    room_bytes = min(BYTES_MAX, max(BYTES_MIN, RECORD_BYTES * needed))
    return {
        "LAGOMETER_PROBE_FILE": f"{directory}/{probe_name(plan)}",
        "LAGOMETER_PROBE_BYTES": str(room_bytes),
    }


def probe_logs(outcome: TrialOutcome) -> tuple[dict[int, ProbeLog], list[str]]:
    """What the probe of each worker wrote, and warnings about unreadable files."""
    logs: dict[int, ProbeLog] = {}
    warnings: list[str] = []
    for host in outcome.hosts:
        for worker, block in host.probed.items():
            try:
                log = decode(block)
            except RecordsError as error:
                warnings.append(f"layers: worker {worker}: {error}")
                continue
            for name in ("begin_ns", "end_ns"):
                log.calls[name] -= host.clock.offset_ns
            ros2 = ros2_of(log)
            if ros2 is not None and ros2.refused is not None:
                warnings.append(f"layers: worker {worker}: ROS 2 is not stamped: {ros2.refused}")
            logs[worker] = log
    return logs, warnings


def calls_of(outcome: TrialOutcome, logs: Mapping[int, ProbeLog]) -> SeenCalls:
    """How many of the kernel's calls the probes of all workers saw. logs: as `probe_logs` returns them."""
    workers: list[SeenCalls] = []
    for host in outcome.hosts:
        for worker, called in host.called.items():
            if called.why is not None or worker not in logs:
                workers.append(SeenCalls(absent=called.why or "the probe of a worker left nothing"))
                continue
            offset_ns = host.clock.offset_ns
            begin_ns, end_ns = called.first[1] - offset_ns, called.last[0] - offset_ns
            workers.append(seen_calls(logs[worker], called.counts, begin_ns, end_ns))
    return added(workers) if workers else SeenCalls(absent="the agents did not get so far")
