# SPDX-License-Identifier: Apache-2.0
"""Externally visible causes that fail a trial or explain a loss. None looks at a latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lagometer.store.observed import Clocks, Observed, RealtimeLimit, RealtimeThread
from lagometer.units import NS_PER_US, duration_text, plain_duration_text, signed_duration_text

NS_PER_S = 1_000_000_000
STEP_NS_MIN = 10_000  # in addition to the readings' uncertainty
SLEW_SHARE_MAX = 1e-3  # NTP may slew a clock by 5e-4, adjtimex's tick by 1e-1
BUSY_SHARE_MIN = 0.95  # of the measure phase on a CPU or waiting for one: the thread always wanted to run
THROTTLED_SHARE_MIN = 0.8  # of what the kernel takes from a thread that always wants to run

# Where in the kernel a message may have been lost, in words.
LOSS_COUNTERS = {
    "udp_receive_buffer_errors": "receive buffer errors",
    "ip_reassembly_failed": "failed reassemblies",
    "udp_send_buffer_errors": "send buffer errors",
    "softnet_dropped": "packets dropped from a CPU's backlog",
}


def clock_stepped(clocks: Clocks) -> Iterator[str]:
    """The system's clocks moved relative to each other during the trial."""
    slack_ns = STEP_NS_MIN + clocks.uncertainty_ns
    wall, asleep, slewed = clocks.wall_step_ns, clocks.suspended_ns, clocks.slewed_ns
    if wall is not None and abs(wall) > slack_ns + abs(asleep or 0):
        yield f"clock-stepped: the wall clock was set by {signed_duration_text(wall)}"
    if asleep is not None and asleep > slack_ns:
        yield f"clock-stepped: the machine was suspended for {duration_text(asleep)}"
    if slewed is not None and abs(slewed) > slack_ns + SLEW_SHARE_MAX * clocks.elapsed_ns:
        share = slewed / max(1, clocks.elapsed_ns)
        yield f"clock-stepped: the clock was pulled by {share:.2%} against the hardware's"
    before, after = clocks.source_before, clocks.source_after
    if before is not None and after is not None and before != after:
        yield f"clock-stepped: the clock source changed from {before} to {after}"


def transport_mismatch(observed: Observed) -> Iterator[str]:
    """An edge's messages can't have used the transport its adapters claim."""
    for match in observed.matches:
        if not match.agrees:
            observation = f"observed: {match.seen or 'nothing known'} ({match.evidence})"
            yield f"transport-mismatch: {match.edge} claims {match.claimed}, {observation}"


def realtime_throttled(observed: Observed, window_ns: int) -> Iterator[str]:
    """The kernel stopped a real-time thread because it had used up its share of a period.

    The kernel does not count such stops, but records how long each thread ran and waited. A SCHED_FIFO thread
    that always wanted to run, and waited for about what the limit takes in every period, was stopped.
    """
    for thread in observed.realtime_threads:
        limit = thread.limit
        if limit is None or window_ns <= 0 or not 0 <= limit.runtime_us < limit.period_us:
            continue
        taken_ns = _taken_ns(limit, window_ns)
        if taken_ns > 0 and _always_wanted(thread, window_ns) and thread.wait_ns >= taken_ns:
            yield (
                f"realtime-throttled: thread {thread.name} of {thread.worker} ran "
                f"{duration_text(thread.run_ns)} and was kept waiting {duration_text(thread.wait_ns)}; "
                f"real-time threads get {plain_duration_text(limit.runtime_us * NS_PER_US)} "
                f"of every {plain_duration_text(limit.period_us * NS_PER_US)}"
            )


def _always_wanted(thread: RealtimeThread, window_ns: int) -> bool:
    return thread.run_ns + thread.wait_ns >= BUSY_SHARE_MIN * window_ns


def _taken_ns(limit: RealtimeLimit, window_ns: int) -> float:
    """The least that the limit takes from a thread that always wants to run.

    Newer kernels stop it only while ordinary threads starve, so not in every period: half of the periods that
    lie completely in the window count, and at least one. 0 if the window is shorter than a period.
    """
    periods = window_ns // (limit.period_us * 1000)
    counted = max(1, periods // 2) if periods else 0
    return THROTTLED_SHARE_MIN * counted * (limit.period_us - limit.runtime_us) * 1000.0


def where_lost(observed: Observed | None) -> str:
    """The kernel counters that may explain lost messages; empty if there are none.

    The counters cover the whole trial, including warm-up and drain, and count datagrams and fragments.
    """
    if observed is None:
        return ""
    counted = [
        f"{observed.kernel[name]} {description}"
        for name, description in LOSS_COUNTERS.items()
        if observed.kernel.get(name)
    ]
    if not counted:
        return ""
    return f"; {', '.join(counted)} in the kernel" + ("" if observed.private else " of the whole machine")


def trial_causes(observed: Observed | None, window_ns: int) -> Iterator[str]:
    """Every reason found from outside."""
    if observed is None:
        return
    for clocks in (observed.clocks, *observed.other_clocks):
        yield from clock_stepped(clocks)
    yield from transport_mismatch(observed)
    yield from realtime_throttled(observed, window_ns)


def columns(observed: Observed | None, edge: str) -> Mapping[str, Any]:
    """The externally observed columns of cells.parquet, for one edge."""
    if observed is None:
        return {}
    values: dict[str, Any] = {f"kernel_{name}": value for name, value in observed.kernel.items()}
    values |= {f"wire_{name}": value for name, value in observed.wire.items()}
    values |= {f"resources_{name}": value for name, value in observed.resources.items()}
    values["interference_cpu_ns"] = observed.interference_cpu_ns
    values["interference_achieved_per_s"] = observed.interference_achieved_per_s
    values["memory_pss_bytes"] = observed.memory_pss_bytes
    values["daemon_cpu_ns"] = observed.daemon_cpu_ns
    values["daemon_pss_bytes"] = observed.daemon_pss_bytes
    values["transport"] = next((match.seen for match in observed.matches if match.edge == edge), None)
    return values
