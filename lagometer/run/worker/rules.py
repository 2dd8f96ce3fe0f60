# SPDX-License-Identifier: Apache-2.0
"""Turns a rule of a workload into a rule of a plan: indices instead of topics, and values drawn with a
seed."""

from __future__ import annotations

import hashlib
import random

from lagometer.run.worker.plan import (
    AnyRule,
    AnySchedule,
    AnyWork,
    BurstSchedule,
    ClosedLoopRule,
    LognormalWork,
    MessageRule,
    NormalWork,
    PeriodicSchedule,
    PoissonSchedule,
    RampSchedule,
    RecordedSchedule,
    RecordedWork,
    TimerRule,
)
from lagometer.study.cell import Cell
from lagometer.study.graph import Rule
from lagometer.study.schema import Study

CLOSED_LOOP_TIMEOUT_NS = 1_000_000_000
JITTER_DRAWS = 1024


def plan_rule(
    study: Study, cell: Cell, trial: int, rule: Rule, reads: list[str], writes: list[str]
) -> AnyRule:
    """Returns a rule with indices into its node's readers and writers instead of topics."""
    assert rule.work_ns is not None, "a cell's graph is resolved"
    readers, uses = [reads.index(topic) for topic in rule.reads], [reads.index(topic) for topic in rule.uses]
    writers = [writes.index(topic) for topic in rule.writes]
    work = _work(study, cell, trial, rule)
    if rule.trigger == "timer":
        assert rule.period_ns is not None, "a cell's graph is resolved"
        return TimerRule(
            trigger="timer",
            period_ns=rule.period_ns,
            offset_ns=rule.offset_ns,
            schedule=_schedule(study, cell, trial, rule),
            readers=readers + uses,  # for a timer, all of them are only causes
            work_ns=rule.work_ns,
            work=work,
            writers=writers,
        )
    if rule.trigger == "closed_loop":
        return ClosedLoopRule(
            trigger="closed_loop",
            timeout_ns=CLOSED_LOOP_TIMEOUT_NS,
            messages_max=0,
            readers=readers,
            work_ns=rule.work_ns,
            work=work,
            writers=writers,
        )
    return MessageRule(
        trigger=rule.trigger,
        echo=cell.graph.answers(rule),
        readers=readers,
        uses=uses,
        work_ns=rule.work_ns,
        work=work,
        writers=writers,
    )


def _schedule(study: Study, cell: Cell, trial: int, rule: Rule) -> AnySchedule:
    schedule, late = rule.schedule, cell.factors.late
    if rule.jitter_ns:
        return RecordedSchedule(kind="recorded", late=late, intervals_ns=_jittered(study, cell, trial, rule))
    if schedule.kind == "poisson":
        return PoissonSchedule(kind="poisson", late=late, seed=_seed(study, cell, trial, "schedule", rule))
    if schedule.kind == "burst":
        return BurstSchedule(kind="burst", late=late, messages=schedule.messages)
    if schedule.kind == "ramp":
        assert schedule.end_period_ns is not None, "a ramp has an end"
        return RampSchedule(
            kind="ramp",
            late=late,
            end_period_ns=schedule.end_period_ns,
            begin_ns=study.warmup_ns,
            duration_ns=study.duration_ns,
        )
    if schedule.kind == "recorded":
        assert schedule.recording is not None, "a recorded schedule has its recording"
        return RecordedSchedule(
            kind="recorded", late=late, intervals_ns=list(schedule.recording.intervals_ns)
        )
    return PeriodicSchedule(kind="periodic", late=late)


def _jittered(study: Study, cell: Cell, trial: int, rule: Rule) -> list[int]:
    """Returns intervals between firings that are each late by a uniform draw from 0 to the jitter.

    The last firing is as late as the first, so the mean is the period however often they repeat.
    """
    assert rule.period_ns is not None, "a cell's graph is resolved"
    source = random.Random(_seed(study, cell, trial, "jitter", rule))
    late_ns = [round(source.uniform(0.0, rule.jitter_ns)) for _ in range(JITTER_DRAWS)]
    return [
        rule.period_ns + following - current
        for current, following in zip(late_ns, (*late_ns[1:], late_ns[0]), strict=True)
    ]


def _work(study: Study, cell: Cell, trial: int, rule: Rule) -> AnyWork | None:
    spread = rule.spread
    if spread is None:
        return None
    if spread.kind == "recorded":
        return RecordedWork(kind="recorded", times_ns=list(spread.times_ns))
    seed = _seed(study, cell, trial, "work", rule)
    if spread.kind == "normal":
        return NormalWork(kind="normal", spread_ns=spread.spread_ns, seed=seed)
    return LognormalWork(kind="lognormal", sigma=spread.sigma, seed=seed)


def _seed(study: Study, cell: Cell, trial: int, purpose: str, rule: Rule) -> int:
    """Returns a seed for this rule: the same in every cell of the study, a different one in every trial.

    So compared cells get the same arrivals, and trials are not copies of each other.
    """
    streams = [cell.graph.stream_number(rule.node, topic) for topic in rule.writes]
    step = f"/{rule.step}" if rule.step else ""
    return drawn(f"{study.seed}/{trial}/{purpose}/{rule.node}/{streams}{step}")


def drawn(text: str) -> int:
    """Returns 64 evenly distributed bits that depend only on the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
