# SPDX-License-Identifier: Apache-2.0
"""Whether something outside the trial disturbed it. Noise is a flag, not a failure: figures are shown with
and without noisy trials. It is judged from causes, never from a latency."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.store.facts import TrialFacts
from lagometer.store.observed import MachineLoad

OTHERS_SHARE_MAX = 0.05  # of all CPUs' time, used by processes outside the trial
STOLEN_SHARE_MAX = 0.01  # as `lagometer doctor`
PREEMPTED_SHARE_MAX = 0.1  # involuntary switches of the workers per delivered message
PREEMPTED_MIN = 10

NOISES = {
    "others": "processes that are not the trial's took more than 5 % of all CPUs' time",
    "stolen": "a hypervisor gave more than 1 % of the CPUs' time to other machines",
    "preempted": "the workers' threads were switched out involuntarily more than once in 10 messages",
    "quota": "the control group's CPU quota stopped the workers",
    "thermal": "a core was slowed down because of its temperature",
}


def noise_of(facts: TrialFacts, delivered: int) -> tuple[str, ...] | None:
    """The causes of noise, each a code word of NOISES, ": " and the amount; None if nothing was recorded.

    delivered: messages of all edges in the measure phase.
    """
    if facts.observed is None:
        return None
    load = facts.observed.load
    return (
        *_others(facts, load),
        *_stolen(load),
        *_preempted(facts.observed.involuntary_switches, delivered),
        *_slowed(load),
    )


def _others(facts: TrialFacts, load: MachineLoad) -> Iterator[str]:
    measure_ns = facts.measure_end_ns - facts.measure_begin_ns
    observed = facts.observed
    if observed is None or not load.capacity_ns or load.busy_ns is None or measure_ns <= 0:
        return
    # The usage of workers, daemons and links is known only for the measure phase; assume the same outside.
    phase_ns = facts.cpu_ns + (observed.link_cpu_ns or 0)
    own_ns = phase_ns * observed.window_ns / measure_ns + (observed.interference_cpu_ns or 0)
    share = (load.busy_ns - own_ns) / load.capacity_ns
    if share > OTHERS_SHARE_MAX:
        yield f"others: {share:.0%} of all CPUs' time"


def _stolen(load: MachineLoad) -> Iterator[str]:
    if (
        load.capacity_ns
        and load.stolen_ns is not None
        and load.stolen_ns > STOLEN_SHARE_MAX * load.capacity_ns
    ):
        yield f"stolen: {load.stolen_ns / load.capacity_ns:.1%} of all CPUs' time"


def _preempted(switches: int, delivered: int) -> Iterator[str]:
    if switches > max(PREEMPTED_MIN, PREEMPTED_SHARE_MAX * delivered):
        yield f"preempted: {switches} involuntary switches for {delivered} messages"


def _slowed(load: MachineLoad) -> Iterator[str]:
    if load.quota_throttled:
        yield f"quota: {load.quota_throttled} periods"
    if load.thermal_throttled:
        yield f"thermal: {load.thermal_throttled} times"
