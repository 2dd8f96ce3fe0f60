# SPDX-License-Identifier: Apache-2.0
"""One node: takes messages, applies its rules, publishes. The node's loop decides how a thread gets here."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lagometer.worker_python.adapter import TAKE_MAX
from lagometer.worker_python.endpoint import KIND_PROBE, Arrival, Cause, Input, Output
from lagometer.worker_python.plan import NodePlan, RulePlan
from lagometer.worker_python.schedule import Schedule, Work, messages_due
from lagometer.worker_python.stage import Stage, current_cpu, now_ns


@dataclass
class Rule:
    """A rule and its state. causes: the newest message of each of its readers; used: of each reader that it
    uses."""

    plan: RulePlan
    schedule: Schedule
    work: Work
    causes: list[Cause | None]
    fresh: list[bool]
    used: list[Cause | None]
    intended_ns: int = 0  # timer: of the next message, in the original schedule
    shift_ns: int = 0  # timer: by how much the schedule has moved
    next_due_ns: int | None = None  # when to send next; None: never
    skipped: int = 0
    cycles: int = 0
    awaiting: bool = False


@dataclass
class Punctuality:
    """How well a writer kept its schedule: messages due in the measure phase, late messages that were
    dropped, and how far it was behind the original schedule at the end."""

    due: int = 0
    skipped: int = 0
    shift_ns: int = 0


def busy_for(work_ns: int) -> None:
    """Stays busy for a wall-clock time, as a node in Python does: it holds the interpreter's lock."""
    if work_ns == 0:
        return
    end_ns = now_ns() + work_ns
    while now_ns() < end_ns:
        pass


@dataclass
class Node:
    """Append endpoints in the order of the plan, then call prepare() once."""

    plan: NodePlan
    stage: Stage
    inputs: list[Input] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    ended_early: bool = False

    def prepare(self) -> None:
        """Makes the rules. Runs before any thread uses the node."""
        self.rules = [
            Rule(
                plan=rule,
                schedule=Schedule(rule.schedule, rule.period_ns),
                work=Work(rule.work, rule.work_ns),
                causes=[None] * len(rule.readers),
                fresh=[False] * len(rule.readers),
                used=[None] * len(rule.uses),
            )
            for rule in self.plan.rules
        ]
        self.scheduled = any(rule.plan.trigger in ("timer", "closed_loop") for rule in self.rules)
        self.resent = [0] * len(self.plan.writers)
        self._lock = threading.Lock()
        self._holder = 0
        self._deferred: dict[int, Arrival] = {}  # by input

    # --- messages ---

    def on_data(self, entry: Input) -> None:
        """Entry point of the listener, on the client library's thread."""
        arrival = Arrival(signalled_ns=now_ns(), cpu_signalled=current_cpu())
        if self.stage.stopped or not entry.enabled:
            return
        try:
            if self._holder == threading.get_ident():
                # Delivered on this thread, within the node's own publish: taken after that returns.
                self._deferred[entry.index] = arrival
                return
            with self.locked():
                self.drain(entry, arrival)
        except Exception as error:
            self.stage.fail("taking", error)

    def locked(self) -> _Locked:
        """Returns the node's lock, for threads of the client library and the node's own."""
        return _Locked(self)

    def drain_deferred(self) -> None:
        """Takes messages that were announced while this thread was already in the node. Needs the lock."""
        while self._deferred and not self.stage.stopped:
            index, arrival = self._deferred.popitem()
            self.drain(self.inputs[index], arrival)

    def drain(self, entry: Input, arrival: Arrival, *, to_the_last: bool = True) -> None:
        """Takes and handles all messages, or as many as one `take` returns."""
        more = True
        while more and (payloads := entry.reader.take()):
            taken = now_ns(), current_cpu()
            more = to_the_last and len(payloads) == TAKE_MAX
            for payload in payloads:
                opened = entry.open(payload)
                if opened is None:
                    continue
                kind, stream, sequence = opened
                if kind == KIND_PROBE:
                    entry.note_probe(stream, sequence, taken[0])
                    self._answer_probe(stream, payload)
                    continue
                whole = entry.read_payload(payload, sequence)
                handled_ns = (
                    self._apply_all(entry.index, (stream, sequence), payload, taken[0]) if whole else 0
                )
                # Recorded last, after everything that this message caused was sent.
                message = sequence, stream, len(payload)
                entry.record(arrival, message, taken, handled_ns or now_ns(), whole)

    def _answer_probe(self, stream: int, request: Any) -> None:
        """Answers a client's "are you there": this is how the client learns that replies arrive."""
        for output in self.outputs:
            if output.answers(stream):
                output.send_probe(request)

    def _apply_all(self, index: int, cause: Cause, payload: Any, taken_ns: int) -> int:
        handled_ns = 0
        for rule in self.rules:
            if index in rule.plan.uses:
                rule.used[rule.plan.uses.index(index)] = cause
            if index in rule.plan.readers:
                position = rule.plan.readers.index(index)
                handled_ns = self._apply(rule, position, cause, payload, taken_ns) or handled_ns
        return handled_ns

    def _apply(self, rule: Rule, position: int, cause: Cause, payload: Any, taken_ns: int) -> int:
        """Returns when the node's work on this message was done; 0: there was none."""
        trigger = rule.plan.trigger
        rule.causes[position], rule.fresh[position] = cause, True
        if trigger == "timer":
            return 0  # the newest message is kept; the timer fires
        if trigger == "all":
            if not all(rule.fresh):
                return 0
            rule.fresh = [False] * len(rule.fresh)
        if trigger == "closed_loop":
            expected = self.outputs[rule.plan.writers[0]].last_sequence
            if not rule.awaiting or cause[1] != expected:
                return 0
            rule.awaiting = False
        busy_for(rule.work.next_ns())
        handled_ns = now_ns()
        if trigger == "closed_loop":
            self._fire_closed_loop(rule, timed_out=False, begun_ns=taken_ns)
            return handled_ns
        waits_for_all = trigger == "all"
        causes = [newest for newest in rule.causes if newest is not None] if waits_for_all else [cause]
        causes += (newest for newest in rule.used if newest is not None)
        self._publish_all(rule, taken_ns, causes, cause[1] if rule.plan.echo else None, payload)
        return handled_ns

    def _publish_all(
        self, rule: Rule, begun_ns: int, causes: Sequence[Cause], echo: int | None, request: Any
    ) -> None:
        # A peer that has already started may be heard while the main thread still sends probes.
        against_probes = self.stage.probing if self.stage.start_ns == 0 else contextlib.nullcontext()
        with against_probes:
            for output in map(self.outputs.__getitem__, rule.plan.writers):
                # Of a server's replies, only the one to the client that asked.
                if output.plan.answers is None or output.answers(causes[0][0]):
                    output.publish(0, begun_ns, causes, echo, request)

    # --- time ---

    def begin_schedules(self, start_ns: int) -> None:
        """Starts the schedules at the common start."""
        for rule in self.rules:
            if rule.plan.trigger == "timer":
                self._advance(rule)
            elif rule.plan.trigger == "closed_loop":
                rule.next_due_ns = start_ns

    def next_due_ns(self) -> int | None:
        """Returns when this node has something timed to do; None: never."""
        stop_ns = self.stage.stop_ns
        earliest_ns = None
        for rule in self.rules:
            due_ns = rule.next_due_ns
            if due_ns is None or (rule.plan.trigger == "timer" and stop_ns is not None and due_ns >= stop_ns):
                continue
            earliest_ns = due_ns if earliest_ns is None else min(earliest_ns, due_ns)
        return earliest_ns

    def fire_due(self, time_ns: int) -> None:
        """Open loop: sends every overdue message, each with its own intended time, unless the policy for late
        messages says otherwise."""
        stop_ns, begun_ns = self.stage.stop_ns, time_ns
        for rule in self.rules:
            if rule.next_due_ns is None:
                continue
            if rule.plan.trigger == "timer":
                while rule.next_due_ns <= time_ns and not self.stage.stopped:
                    if stop_ns is not None and rule.next_due_ns >= stop_ns:
                        break
                    self._fire_timer(rule, time_ns, begun_ns or now_ns())
                    begun_ns = 0  # the first begins immediately, the others when the previous one has ended
            elif rule.next_due_ns <= time_ns:
                self._fire_closed_loop(rule, timed_out=rule.awaiting, begun_ns=time_ns)

    def _fire_timer(self, rule: Rule, time_ns: int, begun_ns: int) -> None:
        """A message is late if it is overdue by a whole spacing. Less is the machine's wake-up latency."""
        assert rule.next_due_ns is not None
        overdue_ns = time_ns - rule.next_due_ns
        if overdue_ns >= rule.schedule.spacing_ns:
            if rule.plan.schedule.late == "skip":
                return self._skip_late(rule, time_ns)
            if rule.plan.schedule.late == "shift":
                rule.shift_ns += overdue_ns
        busy_for(rule.work.next_ns())
        # Caused by the newest message of each listed reader; without one it is a root.
        causes = [cause for cause in rule.causes if cause is not None]
        # The intended time is that of the original schedule: a sender can't hide its lateness.
        for writer in rule.plan.writers:
            self.outputs[writer].publish(rule.intended_ns, begun_ns, causes)
        rule.cycles += 1
        return self._advance(rule)

    def _skip_late(self, rule: Rule, time_ns: int) -> None:
        stop_ns, count = self.stage.stop_ns, 0
        while rule.next_due_ns is not None and time_ns - rule.next_due_ns >= rule.schedule.spacing_ns:
            if stop_ns is not None and rule.next_due_ns >= stop_ns:
                break
            self._advance(rule)
            count += 1
        rule.skipped += count
        for writer in rule.plan.writers:
            self.outputs[writer].skip(count)

    def _advance(self, rule: Rule) -> None:
        rule.intended_ns = self.stage.start_ns + rule.plan.offset_ns + rule.schedule.next_ns()
        rule.next_due_ns = rule.intended_ns + rule.shift_ns

    def _fire_closed_loop(self, rule: Rule, *, timed_out: bool, begun_ns: int) -> None:
        time_ns, stop_ns = now_ns(), self.stage.stop_ns
        if (stop_ns is not None and time_ns >= stop_ns) or self._loop_ended(rule):
            rule.next_due_ns = None
            return
        for writer in rule.plan.writers:
            self.resent[writer] += timed_out
            rule.awaiting = True  # before the message leaves: the reply may come on another thread
            rule.next_due_ns = time_ns + rule.plan.timeout_ns
            rule.cycles += 1
            self.outputs[writer].publish(0, begun_ns, ())

    def _loop_ended(self, rule: Rule) -> bool:
        if rule.plan.messages_max and rule.cycles >= rule.plan.messages_max:
            return True
        if any(self.outputs[writer].sent_lane.room == 0 for writer in rule.plan.writers):
            self.ended_early = True
        return self.ended_early

    def punctuality(self, writer: int, begin_ns: int, end_ns: int) -> Punctuality | None:
        """Returns None unless only timers send on this writer. Times count from the start."""
        result = Punctuality()
        for rule in self.rules:
            plan = rule.plan
            if writer not in plan.writers:
                continue
            if plan.trigger != "timer":
                return None
            result.due += messages_due(plan.schedule, plan.period_ns, plan.offset_ns, begin_ns, end_ns)
            result.skipped += rule.skipped
            result.shift_ns = max(result.shift_ns, rule.shift_ns)
        return result


class _Locked:
    """Held by one thread of the node at a time. On exit, takes the messages that were deferred meanwhile."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __enter__(self) -> None:
        self._node._lock.acquire()
        self._node._holder = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        try:
            self._node.drain_deferred()
        finally:
            self._node._holder = 0
            self._node._lock.release()
