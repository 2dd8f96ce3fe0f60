# SPDX-License-Identifier: Apache-2.0
"""The steps of one trial: starts the workers, gives the common start, collects records, waits for all to end.

One thread waits on all descriptors, so no pipe fills up unread. While a trial measures, it only renews the
leases of the agents, once a second.
"""

from __future__ import annotations

import contextlib
import itertools
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any

from lagometer.agent.companions import Ended
from lagometer.agent.load import START_S_MAX
from lagometer.run.events import EventLog
from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.part import Hearing, HostPart
from lagometer.run.interruption import Interruption
from lagometer.run.worker.clocks import BURST, BURST_PERIOD_NS, Asking, askings, while_running
from lagometer.run.worker.conversation import Conversation, creation_ns
from lagometer.run.worker.messages import ProtocolError
from lagometer.run.worker.outcome import PHASES, STARTUP, TrialOutcome, WorkerOutcome
from lagometer.run.worker.plan import Phases, Plan
from lagometer.run.worker.said import died, reasons_of
from lagometer.run.worker.unmatched import summed_up
from lagometer.run.worker.waves import late_waves, replaced, waves
from lagometer.run.worker.words import exit_text, signal_name
from lagometer.units import duration_text

NS_PER_S = 1_000_000_000
GO_AHEAD_NS = 5_000_000  # time for `go` to reach every worker before the common start
CREATE_SLACK_NS = 3 * NS_PER_S  # to start processes and create endpoints, on top of the discovery timeout
GRACE_NS = 2 * NS_PER_S  # after the end of a phase that the worker ends by itself
GRACE_OF_WORKER_NS = NS_PER_S // 20  # more for each worker: 191 on two CPUs run late
MORE_FAILURES_NS = 250_000_000  # the first failure is rarely the only one: its peers notice it immediately
AGENT_NS = 5 * NS_PER_S  # for an agent's immediate actions, on top of what it waits for
END_NS = 30 * NS_PER_S  # for an agent to end everything and to hand over what workers left


class TrialFailed(Exception):
    """Ends a trial early. The trial keeps the reasons."""


class TrialSteps:
    """The state of one trial; each public method is one step of it."""

    def __init__(
        self, parts: Sequence[HostPart], plans: Sequence[Plan], interruption: Interruption, events: EventLog
    ) -> None:
        self._parts = parts
        self._part_of = {worker: part for part in parts for worker in part.workers}
        self._plans = plans
        self._interruption = interruption
        self._events = events
        self._phases: Phases = max((plan.phases for plan in plans), key=_length_ns)  # of those that stay
        self._conversations = [Conversation(plan.worker.index, plan.worker.name) for plan in plans]
        self._grace_ns = GRACE_NS + GRACE_OF_WORKER_NS * len(plans)
        self._closed: set[int] = set()  # workers whose output is no longer read
        self._selector = selectors.DefaultSelector()
        self._writers: set[int] = set()
        self._exited: dict[int, str] = {}
        self._gathering = False
        self._reasons: list[str] = []
        self._warnings: list[str] = []
        self._begin_ns = 0
        self._started_ns = self._workers_started_ns = self._ended_ns = 0
        self._discovery_ns: int | None = None
        self._waves, self._late = waves(plans), late_waves(plans)
        self._admitted: list[int] = []  # the workers that have their plan
        self._let_in_ns: dict[int, int] = {}  # when workers of later waves got theirs
        self._started = ""
        self._phase = "create"
        self._phase_began: dict[str, int] = {}

    # --- the steps ---

    def start(self) -> None:
        """Starts all workers and, on a single host, sends the first of them their plans."""
        self._selector.register(self._interruption.descriptor(), selectors.EVENT_READ, self._on_interruption)
        self._started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._started_ns = time.monotonic_ns()
        self._enter("create")
        hearing = Hearing(self._on_output, self._on_notice, self._fail)
        for part in self._parts:
            try:
                part.start(hearing)
            except HostError as error:
                part.link.give_up(str(error))
                part.finished = True
                self._fail(f"agent-lost: host {part.name}: {error}")
                raise TrialFailed from error
            for descriptor in part.link.descriptors():
                self._selector.register(descriptor, selectors.EVENT_READ, partial(self._receive, part))
        for index in self._waves[0] if len(self._parts) == 1 else ():
            self._send(index, self._plans[index].line())

    def await_workers(self) -> None:
        """Waits until every agent has started its workers. It does so once their daemons serve."""
        seconds = max(part.patience_s for part in self._parts)
        self._ask(lambda part: part.serving_ns is not None, "serving", round(seconds * NS_PER_S))
        self._workers_started_ns = min(part.serving_ns or 0 for part in self._parts)
        for index in self._waves[0] if len(self._parts) > 1 else ():  # a daemon may serve another host, too
            self._send(index, self._plans[index].line())

    def _ask(self, answered: Callable[[HostPart], bool], event: str, more_ns: int = 0) -> None:
        """Waits until every agent has sent something. An agent that does not is lost."""
        deadline_ns = time.monotonic_ns() + AGENT_NS + more_ns
        # Nothing more comes from a lost agent; the others may still report what they observed.
        in_time = self._wait(
            lambda: all(answered(part) or part.link.lost is not None for part in self._parts), deadline_ns
        )
        for part in self._parts if not in_time else ():
            if not answered(part) and part.link.lost is None:
                self._lose(part, event, AGENT_NS + more_ns)
        if not all(answered(part) for part in self._parts):
            raise TrialFailed

    def _lose(self, part: HostPart, event: str, waited_ns: int) -> None:
        late = f"its agent did not send '{event}' within {duration_text(waited_ns)}"
        part.link.give_up(f"{late}: check that host and its link; the next trial connects again")
        part.finished = True
        self._fail(f"agent-lost: host {part.name}: {part.link.lost}")

    def _lose_silent(self) -> bool:
        """Whether an agent does not answer: then its host or its link is at fault, not a worker."""
        connected = [part for part in self._parts if part.link.lost is None]
        silent = [part for part in connected if not part.link.answers(self._grace_ns / NS_PER_S)]
        for part in silent:
            part.finished = True
            self._fail(f"agent-lost: host {part.name}: {part.link.lost}")
        return bool(silent)

    def match(self) -> None:
        """Waits until every reader of every worker has heard every stream that it expects."""
        self._await_ready(self._waves[0])
        for wave in self._waves[1:]:
            self._admit(wave)
        self._enter("discover")
        began_ns = time.monotonic_ns()
        deadline_ns = began_ns + self._phases.discovery_timeout_ns + self._grace_ns
        talks = [self._conversations[index] for index in self._admitted]
        self._require(lambda: all(talk.matched for talk in talks), deadline_ns, "matched", talks)
        if self._plans[0].start == "matched":
            self._discovery_ns = time.monotonic_ns() - began_ns

    def _admit(self, wave: Sequence[int]) -> None:
        """Sends further workers their plans, and waits until they have created their objects."""
        for index in wave:
            self._let_in_ns[index] = time.monotonic_ns()
            self._send(index, self._plans[index].line())
        self._await_ready(wave)

    def _await_ready(self, wave: Sequence[int]) -> None:
        self._admitted += wave
        deadline_ns = time.monotonic_ns() + self._phases.discovery_timeout_ns + CREATE_SLACK_NS
        talks = [self._conversations[index] for index in wave]
        self._require(lambda: all(talk.ready for talk in talks), deadline_ns, "ready", talks)

    def await_load(self) -> None:
        """Waits until the load next to the workers is at work."""
        loaded = [part for part in self._parts if part.has_load]
        for part in loaded:
            part.begin_load()
        self._ask(lambda part: part.loaded or part not in loaded, "loaded", round(START_S_MAX * NS_PER_S))

    def go(self) -> None:
        """Gives all workers the common start, on the clock of their host."""
        exchanges = askings(self._parts)
        self._exchange(exchanges)
        farthest_ns = max(part.clock.round_trip_ns for part in self._parts)
        self._begin_ns = time.monotonic_ns() + GO_AHEAD_NS + farthest_ns
        self._send_go(self._admitted)
        for place, exchange in enumerate(exchanges):
            schedule = while_running(self._plans, self._begin_ns, self._phases, place, len(exchanges))
            exchange.part.exchange_until(exchange.peers, **schedule)
        self._enter("warm-up", self._begin_ns)

    def _exchange(self, exchanges: Sequence[Asking]) -> None:
        """Makes hosts with different clocks exchange time stamps, and waits until they are done."""
        for exchange in exchanges:
            exchange.part.exchange(exchange.peers, BURST, BURST_PERIOD_NS)
        if exchanges:
            self._ask(lambda part: not part.exchanging, "exchanged")

    def _send_go(self, wave: Sequence[int]) -> None:
        names = ("warmup_ns", "measure_ns", "drain_ns")
        phases = {name: getattr(self._phases, name) for name in names}
        # Workers that do not match first, or join later, may open connections after the start.
        late = bool(self._late) or self._plans[0].start != "matched"
        for part in self._parts:
            part.go(wave, self._begin_ns, phases, late)

    def _join(self, wave: Sequence[int]) -> None:
        """Admits workers while the others already run; a server, once the one that it replaces has gone."""
        gone = [self._conversations[index] for index in replaced(self._plans, wave)]
        if gone:
            self._require(lambda: all(talk.bye for talk in gone), self._goodbye_ns(), "bye", gone)
        self._admit(wave)
        self._send_go(wave)

    def measure(self) -> None:
        """Waits until all workers are done. Admits workers that join later."""
        measure_ns = self._begin_ns + self._phases.warmup_ns
        drain_ns = measure_ns + self._phases.measure_ns
        actions = [(self._begin_ns + late_ns, partial(self._join, wave)) for late_ns, wave in self._late]
        if self._events.enabled:
            actions += [(measure_ns, partial(self._enter, "measure", measure_ns))]
            actions += [(drain_ns, partial(self._enter, "drain", drain_ns))]
        for at_ns, action in sorted(actions, key=lambda timed: timed[0]):
            self._wait(lambda: False, at_ns)
            action()
        deadline_ns = self._drain_end_ns() + self._grace_ns
        self._require(lambda: all(talk.done for talk in self._conversations), deadline_ns, "done")

    def collect(self) -> None:
        """Takes the records of all workers and waits for their end."""
        self._gather_evidence()
        for part in self._parts:
            if part.load_wrong is not None:
                self._fail(f"interference-died: {part.load_wrong}")
        self._enter("tear-down")
        for index, talk in enumerate(self._conversations):
            # As long as bytes arrive, the worker is alive, however many there are.
            while talk.records is None:
                has_moved = partial(self._has_moved, index, talk.records_pending_bytes)
                self._require(has_moved, time.monotonic_ns() + self._grace_ns, "records", (talk,))
        self._require(lambda: all(talk.bye for talk in self._conversations), self._goodbye_ns(), "bye")
        self._require(self._all_finished, time.monotonic_ns() + self._grace_ns, "exit")

    def _goodbye_ns(self) -> int:
        took_ns = creation_ns(self._conversations, self._workers_started_ns)
        return time.monotonic_ns() + self._grace_ns + self._phases.drain_ns + took_ns

    def _gather_evidence(self) -> None:
        self._exchange(askings(self._parts))
        for part in self._parts:
            part.collect()
        self._ask(lambda part: part.collected, "evidence")
        for part in self._parts:  # not before: a host's load may be connected to that of another
            part.release()

    def _all_finished(self) -> bool:
        return all(part.finished for part in self._parts)

    def end(self) -> None:
        """Notes the end. After a failure, first reads the remaining messages of the workers."""
        self._gathering = True
        if self._reasons and not self._all_finished():
            for part in self._parts:
                part.release()
            self._wait(self._all_finished, time.monotonic_ns() + MORE_FAILURES_NS)
        if self._begin_ns and not all(part.collected or part.link.lost for part in self._parts):
            with contextlib.suppress(TrialFailed):
                self._gather_evidence()
        missing = [talk.index for talk in self._conversations if talk.records is None]
        for part in self._parts:
            part.end(missing)
        self._wait(lambda: not any(map(_ending, self._parts)), time.monotonic_ns() + END_NS)
        for part in filter(_ending, self._parts):
            self._lose(part, "ended", END_NS)
        self._ended_ns = self._ended_ns or time.monotonic_ns()
        self._phase_began["end"] = self._ended_ns

    def outcome(self) -> TrialOutcome:
        """Returns the results. Records that a worker didn't hand over are taken from its memory."""
        phases_ns = self._phases.warmup_ns + self._phases.measure_ns + self._phases.drain_ns
        total_ns = self._ended_ns - self._started_ns
        measure_ns = self._begin_ns + self._phases.warmup_ns if self._begin_ns else 0
        return TrialOutcome(
            workers=tuple(self._worker_outcome(talk) for talk in self._conversations),
            begin_ns=self._begin_ns,
            measure_begin_ns=measure_ns,
            measure_end_ns=measure_ns + self._phases.measure_ns if measure_ns else 0,
            drain_end_ns=self._drain_end_ns() if measure_ns else 0,
            started=self._started,
            seconds=total_ns / NS_PER_S,
            overhead_s=max(0, total_ns - (phases_ns if measure_ns else 0)) / NS_PER_S,
            phases_s=self._phase_seconds(),
            hosts=tuple(part.outcome() for part in self._parts),
            workers_started_ns=self._workers_started_ns,
            discovery_ns=self._discovery_ns,
            reasons=summed_up(self._reasons, self._plans, self._conversations),
            warnings=tuple(self._warnings),
        )

    def close(self) -> None:
        """Ends everything. Agents stay alive, except those that have not ended the trial."""
        self._selector.close()
        for part in self._parts:
            if not part.ended:
                part.link.close()
        self._events.write("closed")

    # --- waiting ---

    def _wait(self, condition: Callable[[], object], deadline_ns: int) -> bool:
        """Handles what arrives until the condition holds (True) or the deadline passes (False)."""
        while not condition():
            if self._reasons and not self._gathering:
                raise TrialFailed
            remaining_ns = deadline_ns - time.monotonic_ns()
            if remaining_ns <= 0:
                return False
            renew_ns = self._tend() - time.monotonic_ns()
            for key, _ in self._selector.select(max(0, min(remaining_ns, renew_ns)) / NS_PER_S):
                # One handler may have closed a descriptor that was ready for another one.
                if key.fd in self._selector.get_map():
                    key.data()
        return True

    def _require(
        self,
        condition: Callable[[], object],
        deadline_ns: int,
        event: str,
        conversations: Sequence[Conversation] | None = None,
    ) -> None:
        """Waits for the condition. At the deadline the trial fails, with the names of late workers."""
        asked_ns = time.monotonic_ns()
        if self._wait(condition, deadline_ns):
            return
        late = [
            talk.name
            for talk in conversations or self._conversations
            if not (talk.index in self._exited if event == "exit" else getattr(talk, event))
        ]
        if self._lose_silent():
            raise TrialFailed
        code = "endpoints-missing" if event == "matched" else "worker-hung"
        waited = duration_text(deadline_ns - asked_ns)
        self._fail(f"{code}: no '{event}' from {', '.join(late)} within {waited} (phase {self._phase_now()})")
        raise TrialFailed

    def _has_moved(self, index: int, pending_bytes: int) -> bool:
        """Whether a worker has sent any records since it owed this many bytes."""
        talk = self._conversations[index]
        return talk.records is not None or talk.records_pending_bytes != pending_bytes

    # --- what arrives ---

    def _on_interruption(self) -> None:
        self._interruption.check()

    def _receive(self, part: HostPart) -> None:
        part.receive()
        if part.link.lost is not None:
            for descriptor in part.link.descriptors():
                if descriptor in self._selector.get_map():
                    self._selector.unregister(descriptor)
            self._note_end()

    def _on_output(self, index: int, stream: str, data: bytes) -> None:
        talk = self._conversations[index]
        if stream == "stderr":
            talk.feed_stderr(data)
        elif index not in self._closed:
            self._hear(talk, data)

    def _hear(self, talk: Conversation, data: bytes) -> None:
        try:
            events = talk.feed(data)
        except ProtocolError as error:
            self._closed.add(talk.index)
            self._fail(f"protocol-error: {talk.name} wrote {error}")
            return
        for event in events:
            self._events.write("said", worker=talk.index, said=event, phase=self._phase_now())
            for reason in reasons_of(event, talk, self._conversations, self._plans):
                self._fail(reason)

    def _on_notice(self, part: HostPart, notice: Mapping[str, Any]) -> None:
        event = notice["event"]
        fields = {("notice" if key == "event" else key): notice[key] for key in notice}
        self._events.write("supervisor", host=part.name, **fields)
        if event == "isolated":
            self._warnings += [f"isolation: {warning}" for warning in notice.get("warnings", [])]
        elif event == "companion-exited":
            self._on_companion_end(notice)
        elif event == "stopped":
            self._on_stop(int(notice["worker"]), notice)
        elif event == "exited":
            self._on_exit(int(notice["worker"]), notice)
        elif event == "failed":
            self._fail(f"launch-failed: {notice.get('message', 'the supervisor gave no reason')}")
        elif event == "finished":
            self._note_end()
            self._warnings += [f"clean-up: {warning}" for warning in notice.get("warnings", [])]

    def _note_end(self) -> None:
        if self._all_finished() and not self._ended_ns:
            self._ended_ns = time.monotonic_ns()

    def _on_stop(self, index: int, notice: Any) -> None:
        """A stopped worker can't keep its schedule any more, even if it continues: the trial is over."""
        talk = self._conversations[index]
        text = f"{talk.name} was stopped by {signal_name(notice['signal'])} in phase {self._phase_of(talk)}"
        hint = "find what stops it (kill -STOP, a debugger, a paused container) and run the trial again"
        self._fail(f"worker-hung: {text}: {hint}")

    def _on_exit(self, index: int, notice: Any) -> None:
        """The worker's last messages have arrived before this."""
        talk = self._conversations[index]
        self._exited[index] = how = exit_text(notice)
        if talk.failed is None and not (talk.bye and notice.get("code") == 0):
            self._fail(died(talk, how, self._phase_of(talk)))

    def _on_companion_end(self, notice: Any) -> None:
        """The supervisor ends companions once they are released; before that, none has a reason to end."""
        if notice["wrong"] is not None and not self._reasons:
            self._fail(Ended(**notice["wrong"]).reason(f"{exit_text(notice)} in phase {self._phase_now()}"))

    # --- small things ---

    def _send(self, index: int, data: bytes) -> None:
        self._part_of[index].say(index, data)

    def _tend(self) -> int:
        """Renews leases and writes pending data; returns when the next lease is due."""
        next_ns = time.monotonic_ns() + NS_PER_S
        for part in self._parts:
            link = part.link
            if not link.is_open:
                continue
            link.renew()
            next_ns = min(next_ns, link.renew_ns())
            if not link.flush() and link.writer not in self._writers:
                self._writers.add(link.writer)
                self._selector.register(link.writer, selectors.EVENT_WRITE, partial(self._flush, part))
        return next_ns

    def _flush(self, part: HostPart) -> None:
        writer = part.link.writer
        if part.link.flush():
            self._writers.discard(writer)
            self._selector.unregister(writer)

    def _fail(self, reason: str) -> None:
        self._reasons.append(reason)
        self._events.write("trial-failed", reason=reason)

    def _enter(self, phase: str, began_ns: int = 0) -> None:
        self._phase = phase
        self._phase_began[phase] = began_ns or time.monotonic_ns()
        self._events.write("phase", phase=phase, cell=self._plans[0].cell, trial=self._plans[0].trial)

    def _phase_now(self) -> str:
        """Returns the phase by the clock: nothing wakes the conductor between the common start and `done`."""
        if not self._begin_ns or self._phase == "tear-down":
            return self._phase
        now_ns = time.monotonic_ns() - self._begin_ns - self._phases.warmup_ns
        return "warm-up" if now_ns < 0 else "measure" if now_ns < self._phases.measure_ns else "drain"

    def _phase_of(self, talk: Conversation) -> str:
        """Returns one worker's phase, judging by its messages: it may be ahead of the slowest."""
        if talk.done is not None or self._begin_ns:
            return "tear-down" if talk.done is not None else self._phase_now()
        return "create" if talk.ready is None else "discover"

    def _drain_end_ns(self) -> int:
        return self._begin_ns + _length_ns(self._phases)

    def _phase_seconds(self) -> dict[str, float]:
        """Returns the duration of each phase that began."""
        began = dict(self._phase_began)
        if "tear-down" in began:
            began["measure"] = self._begin_ns + self._phases.warmup_ns
            began["drain"] = began["measure"] + self._phases.measure_ns
        order = [phase for phase in (*PHASES, "end") if phase in began]
        return {
            phase: max(0, began[following] - began[phase]) / NS_PER_S
            for phase, following in itertools.pairwise(order)
        }

    def _worker_outcome(self, talk: Conversation) -> WorkerOutcome:
        records: bytes | bytearray | memoryview | None = talk.records
        if records is None:
            records = self._part_of[talk.index].salvaged.get(talk.index)
        startup_ns = {
            name: talk.came_ns[event] - self._workers_started_ns
            for event, name in STARTUP.items()
            if event in talk.came_ns
        }
        if talk.index in self._let_in_ns:
            startup_ns["plan"] = self._let_in_ns[talk.index] - self._workers_started_ns
        return WorkerOutcome(talk.index, talk.name, talk.ready, talk.done, records, talk.stderr, startup_ns)


def _length_ns(phases: Phases) -> int:
    return phases.warmup_ns + phases.measure_ns + phases.drain_ns


def _ending(part: HostPart) -> bool:
    return part.link.is_open and not part.ended
