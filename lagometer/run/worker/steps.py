# SPDX-License-Identifier: Apache-2.0
"""The steps of one trial: starts the workers, gives the common start, collects records, sees everything end.

One thread waits on all descriptors, so no pipe fills up unread. Nothing is done here while a trial measures,
but that the CPU clocks of daemons are read at the borders of the phase.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

from lagometer.run.companions.companions import Companions
from lagometer.run.companions.interference import START_S_MAX
from lagometer.run.events import EventLog
from lagometer.run.interruption import Interruption
from lagometer.run.launchers.base import Command, Launcher, LaunchError, Pipes
from lagometer.run.observe.witness import Evidence, Witness
from lagometer.run.worker.conversation import Conversation, failure_code
from lagometer.run.worker.messages import ProtocolError
from lagometer.run.worker.outcome import PHASES, STARTUP, TrialOutcome, WorkerOutcome
from lagometer.run.worker.plan import Phases, Plan
from lagometer.run.worker.unmatched import summed_up
from lagometer.run.worker.waves import late_waves, waves

NS_PER_S = 1_000_000_000
GO_AHEAD_NS = 5_000_000  # time for `go` to reach every worker before the common start
CREATE_SLACK_NS = 3 * NS_PER_S  # to start processes and create endpoints, beside the discovery timeout
GRACE_NS = 2 * NS_PER_S  # beyond the end of a phase that the worker ends by itself
MORE_FAILURES_NS = 250_000_000  # the first failure is rarely the only one: its peers miss it at once
LOOK_NS = 5_000_000  # how often it is looked whether what runs beside the workers is at work
# The daemons' CPU time is read so long before a border of the measure phase, so that the first message is not
# disturbed; waiting is in whole milliseconds.
LOOK_AHEAD_NS = 2_000_000
READ_BYTES = 1 << 20


class TrialFailed(Exception):
    """Ends a trial early; the reasons are kept in the trial."""


class TrialSteps:
    """The state of one trial; each public method is one step of it."""

    def __init__(
        self,
        launcher: Launcher,
        plans: Sequence[Plan],
        interruption: Interruption,
        events: EventLog,
        companions: Companions,
    ) -> None:
        self._launcher = launcher
        self._companions = companions
        self._plans = plans
        self._interruption = interruption
        self._events = events
        self._phases: Phases = max((plan.phases for plan in plans), key=_length_ns)  # of those that stay
        self._conversations = [Conversation(plan.worker.index, plan.worker.name) for plan in plans]
        self._selector = selectors.DefaultSelector()
        self._pipes: Sequence[Pipes] = ()
        self._unsent = [bytearray() for _ in plans]
        self._exited: dict[int, str] = {}
        self._finished = self._gathering = False
        self._reasons: list[str] = []
        self._warnings: list[str] = []
        self._isolation: dict[str, Any] = {}
        self._process_numbers: dict[int, int] = {}  # of the workers, in their own namespace
        self._witness = Witness()
        self._evidence: Evidence | None = None
        self._begin_ns = 0
        self._started_ns = self._workers_started_ns = self._ended_ns = 0
        self._discovery_ns: int | None = None
        self._waves, self._late = waves(plans), late_waves(plans)
        self._admitted: list[int] = []  # the workers that have their plan
        self._started = ""
        self._phase = "create"
        self._phase_began: dict[str, int] = {}

    # --- the steps ---

    def start(self, commands: Sequence[Command], network: str) -> None:
        """Starts all workers and sends the first of them their plans."""
        self._selector.register(self._interruption.descriptor(), selectors.EVENT_READ, self._on_interruption)
        self._started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._started_ns = time.monotonic_ns()
        self._enter("create")
        try:
            self._pipes = self._launcher.start(commands, network)
        except LaunchError as error:
            self._fail(f"launch-failed: {error}")
            self._finished = True
            raise TrialFailed from error
        for descriptor in self._launcher.descriptors():
            self._selector.register(descriptor, selectors.EVENT_READ, self._on_notices)
        for index, pipes in enumerate(self._pipes):
            self._selector.register(pipes.stdout, selectors.EVENT_READ, _bound(self._on_stdout, index))
            self._selector.register(pipes.stderr, selectors.EVENT_READ, _bound(self._on_stderr, index))
        for index in self._waves[0]:
            self._send(index, self._plans[index].line())

    def await_daemons(self) -> None:
        """Waits until every daemon serves, then lets the workers start."""
        while (awaited := self._companions.daemon_awaited(self._launcher)) is not None:
            if time.monotonic_ns() > self._started_ns + awaited.timeout_ns:
                self._fail(awaited.late)
            self._wait(lambda: False, time.monotonic_ns() + LOOK_NS)
        self._launcher.start_workers()
        self._workers_started_ns = time.monotonic_ns()

    def match(self) -> None:
        """Waits until every reader of every worker has heard every stream that it expects."""
        self._await_ready(self._waves[0])
        for wave in self._waves[1:]:
            self._admit(wave)
        self._enter("discover")
        began_ns = time.monotonic_ns()
        deadline_ns = began_ns + self._phases.discovery_timeout_ns + GRACE_NS
        here = [self._conversations[index] for index in self._admitted]
        self._require(lambda: all(each.matched for each in here), deadline_ns, "matched", here)
        if self._plans[0].start == "matched":
            self._discovery_ns = time.monotonic_ns() - began_ns

    def _admit(self, wave: Sequence[int]) -> None:
        """Sends further workers their plans, and waits until they have created what these say."""
        for index in wave:
            self._send(index, self._plans[index].line())
        self._await_ready(wave)

    def _await_ready(self, wave: Sequence[int]) -> None:
        self._admitted += wave
        deadline_ns = time.monotonic_ns() + self._phases.discovery_timeout_ns + CREATE_SLACK_NS
        talks = [self._conversations[index] for index in wave]
        self._require(lambda: all(each.ready for each in talks), deadline_ns, "ready", talks)

    def await_load(self) -> None:
        """Waits until the load beside the workers is at work."""
        load = self._companions.load
        if load is None:
            return
        deadline_ns = time.monotonic_ns() + round(START_S_MAX * NS_PER_S)
        self._companions.attach_load(self._launcher)
        while not load.is_running():
            if time.monotonic_ns() > deadline_ns:
                said = self._companions.load_words(self._launcher)
                late = f"load generator '{load.name}' did not start within {START_S_MAX:.0f} s"
                self._fail(f"interference-died: {late}: {said}")
            self._wait(lambda: False, time.monotonic_ns() + LOOK_NS)
        load.begin()

    def go(self) -> None:
        """Gives all workers the common start."""
        numbers = [self._process_numbers.get(index, 0) for index in range(len(self._plans))]
        load = self._companions.load
        private = bool(self._isolation.get("network")) and not (load and load.shares_network)
        daemons = self._companions.watch_daemons(self._launcher, numbers)
        self._witness.begin(self._launcher.process_id, numbers, private, daemons)
        self._begin_ns = time.monotonic_ns() + GO_AHEAD_NS
        self._send_go(self._admitted)
        self._enter("warm-up", self._begin_ns)

    def _send_go(self, wave: Sequence[int]) -> None:
        for index in wave:
            self._send(index, json.dumps({"command": "go", "at_ns": self._begin_ns}).encode() + b"\n")

    def _join(self, wave: Sequence[int]) -> None:
        """Lets workers in when the others are at it."""
        self._admit(wave)
        self._send_go(wave)

    def measure(self) -> None:
        """Waits until all workers are done. Memory is read during the drain, the daemons' CPU time at the
        borders of the measure phase; nothing else is done meanwhile, unless the event log is on."""
        measure_ns = self._begin_ns + self._phases.warmup_ns
        drain_ns = measure_ns + self._phases.measure_ns
        amid_drain_ns = drain_ns + self._phases.drain_ns // 2
        looks: list[tuple[int, Callable[[], object]]] = [(amid_drain_ns, self._witness.look_at_memory)]
        looks += [(self._begin_ns + late_ns, _bound(self._join, wave)) for late_ns, wave in self._late]
        if self._late:
            looks.append((amid_drain_ns, self._witness.look_at_ends_again))
        if (daemons := self._companions.daemons) is not None:
            looks += [(measure_ns - LOOK_AHEAD_NS, daemons.begin), (drain_ns - LOOK_AHEAD_NS, daemons.end)]
            looks += [(amid_drain_ns, daemons.look_at_memory)]
        if self._events.enabled:
            looks += [(measure_ns, _bound(self._enter, "measure", measure_ns))]
            looks += [(drain_ns, _bound(self._enter, "drain", drain_ns))]
        for at_ns, look in sorted(looks, key=lambda each: each[0]):
            self._wait(lambda: False, at_ns)
            look()
        deadline_ns = self._drain_end_ns() + GRACE_NS
        self._require(lambda: all(each.done for each in self._conversations), deadline_ns, "done")

    def collect(self) -> None:
        """Takes the records of all workers and sees them end."""
        self._evidence = self._witness.end()
        load = self._companions.load
        if load is not None and (wrong := load.end()) is not None:
            self._fail(f"interference-died: {wrong}")
        self._companions.release(self._launcher)
        self._enter("tear-down")
        for index, each in enumerate(self._conversations):
            # As long as bytes flow the worker is alive, however many they are.
            while each.records is None:
                pending = each.records_pending_bytes
                moved = _bound(self._has_moved, index, pending)
                self._require(moved, time.monotonic_ns() + GRACE_NS, "records", (each,))
        deadline_ns = time.monotonic_ns() + GRACE_NS + self._phases.drain_ns
        self._require(lambda: all(each.bye for each in self._conversations), deadline_ns, "bye")
        self._require(lambda: self._finished, time.monotonic_ns() + GRACE_NS, "exit")

    def end(self) -> None:
        """Notes the end; after a failure, hears what else the workers have to say first."""
        if self._reasons and not self._finished:
            self._gathering = True
            self._companions.release(self._launcher)
            self._wait(lambda: self._finished, time.monotonic_ns() + MORE_FAILURES_NS)
        self._evidence = self._evidence or self._witness.end()
        self._ended_ns = self._ended_ns or time.monotonic_ns()
        self._phase_began["end"] = self._ended_ns

    def outcome(self) -> TrialOutcome:
        """Returns what came of it; what a worker didn't hand over is taken from its memory."""
        phases_ns = self._phases.warmup_ns + self._phases.measure_ns + self._phases.drain_ns
        total_ns = self._ended_ns - self._started_ns
        measure_ns = self._begin_ns + self._phases.warmup_ns if self._begin_ns else 0
        return TrialOutcome(
            workers=tuple(self._worker_outcome(each) for each in self._conversations),
            begin_ns=self._begin_ns,
            measure_begin_ns=measure_ns,
            measure_end_ns=measure_ns + self._phases.measure_ns if measure_ns else 0,
            drain_end_ns=self._drain_end_ns() if measure_ns else 0,
            started=self._started,
            seconds=total_ns / NS_PER_S,
            overhead_s=max(0, total_ns - (phases_ns if measure_ns else 0)) / NS_PER_S,
            phases_s=self._phase_seconds(),
            isolation=self._isolation,
            evidence=self._evidence,
            load=self._companions.load_done(self._launcher),
            daemons=self._companions.daemons_done(self._launcher, self._phases.measure_ns),
            workers_started_ns=self._workers_started_ns,
            discovery_ns=self._discovery_ns,
            reasons=summed_up(self._reasons, self._plans, self._conversations),
            warnings=tuple(self._warnings),
        )

    def close(self) -> None:
        """Ends everything and closes every descriptor."""
        self._selector.close()
        self._witness.close()
        self._launcher.close()
        self._events.write("closed")

    # --- waiting ---

    def _wait(self, condition: Callable[[], object], deadline_ns: int) -> bool:
        """Handles what comes until the condition holds (True) or the deadline is there (False)."""
        while not condition():
            if self._reasons and not self._gathering:
                raise TrialFailed
            remaining_ns = deadline_ns - time.monotonic_ns()
            if remaining_ns <= 0:
                return False
            for key, _ in self._selector.select(remaining_ns / NS_PER_S):
                # One handler may have closed what another one was ready for.
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
        """Waits for the condition; at the deadline the trial fails, with the names of those who are late."""
        asked_ns = time.monotonic_ns()
        if self._wait(condition, deadline_ns):
            return
        late = [
            each.name
            for each in conversations or self._conversations
            if not (each.index in self._exited if event == "exit" else getattr(each, event))
        ]
        code = "endpoints-missing" if event == "matched" else "worker-hung"
        waited_s = (deadline_ns - asked_ns) / NS_PER_S
        self._fail(
            f"{code}: no '{event}' from {', '.join(late)} within {waited_s:.1f} s (phase {self._phase_now()})"
        )
        raise TrialFailed

    def _has_moved(self, index: int, pending_bytes: int) -> bool:
        """Whether a worker has sent anything of its records since it still owed that many bytes."""
        each = self._conversations[index]
        return each.records is not None or each.records_pending_bytes != pending_bytes

    # --- what comes ---

    def _on_interruption(self) -> None:
        self._interruption.check()

    def _on_stdout(self, index: int) -> bool:
        """Reads once; returns whether there may be more."""
        descriptor, each = self._pipes[index].stdout, self._conversations[index]
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(descriptor)
            return False
        try:
            events = each.feed(data)
        except ProtocolError as error:
            self._selector.unregister(descriptor)
            self._fail(f"protocol-error: {each.name} wrote {error}")
            return False
        for event in events:
            self._events.write("said", worker=index, said=event, phase=self._phase_now())
        if "failed" in events and each.failed is not None:
            missing = (
                f" (missing: {', '.join(map(_text, each.failed.missing))})" if each.failed.missing else ""
            )
            where = f"{each.name} in phase {each.failed.phase}"
            self._fail(
                f"{failure_code(each.failed, self._conversations)}: {where}: {each.failed.message}{missing}"
            )
        return True

    def _on_stderr(self, index: int) -> bool:
        """Reads once; returns whether there may be more."""
        try:
            data = os.read(self._pipes[index].stderr, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(self._pipes[index].stderr)
        self._conversations[index].feed_stderr(data)
        return bool(data)

    def _on_notices(self) -> None:
        for notice in self._launcher.notices():
            event = notice["event"]
            self._events.write(
                "supervisor", **{("notice" if key == "event" else key): notice[key] for key in notice}
            )
            if event == "isolated":
                self._isolation = {key: notice[key] for key in notice if key not in ("event", "warnings")}
                self._warnings += [f"isolation: {warning}" for warning in notice.get("warnings", [])]
            elif event == "started":
                self._process_numbers[int(notice["worker"])] = int(notice["pid"])
            elif event == "companion-started":
                self._companions.note_start(int(notice["companion"]), int(notice["pid"]))
            elif event == "companion-exited":
                self._on_companion_end(int(notice["companion"]), notice)
            elif event == "stopped":
                self._on_stop(int(notice["worker"]), notice)
            elif event == "exited":
                self._on_exit(int(notice["worker"]), notice)
            elif event == "failed":
                self._fail(f"launch-failed: {notice.get('message', 'the supervisor gave no reason')}")
            elif event == "finished":
                self._finished = True
                self._ended_ns = time.monotonic_ns()
                self._warnings += [f"clean-up: {warning}" for warning in notice.get("warnings", [])]
                for descriptor in self._launcher.descriptors():
                    self._selector.unregister(descriptor)

    def _on_stop(self, index: int, notice: Any) -> None:
        """A stopped worker can't keep its schedule any more, even if it is let go on: the trial is over."""
        each = self._conversations[index]
        what = f"{each.name} was stopped by {_signal_name(notice['signal'])} in phase {self._phase_of(each)}"
        hint = "find what stops it (kill -STOP, a debugger, a paused container) and run the trial again"
        self._fail(f"worker-hung: {what}: {hint}")

    def _on_exit(self, index: int, notice: Any) -> None:
        """Hears a worker's last words before its end is judged."""
        for descriptor, read in (
            (self._pipes[index].stdout, self._on_stdout),
            (self._pipes[index].stderr, self._on_stderr),
        ):
            while descriptor in self._selector.get_map() and read(index):
                pass
        each = self._conversations[index]
        self._exited[index] = how = _exit_text(notice)
        if each.failed is None and not (each.bye and notice.get("code") == 0):
            self._fail(f"worker-died: {each.name} {how} in phase {self._phase_of(each)}")

    def _on_companion_end(self, place: int, notice: Any) -> None:
        """The supervisor ends companions once they are released; before that none has a reason to end."""
        how = f"{_exit_text(notice)} in phase {self._phase_now()}"
        wrong = self._companions.note_end(place, how, self._launcher)
        if wrong is not None and not self._reasons:
            self._fail(wrong)

    # --- small things ---

    def _send(self, index: int, data: bytes) -> None:
        """Queues bytes for a worker's standard input and writes what fits."""
        self._unsent[index] += data
        self._write(index)

    def _write(self, index: int) -> None:
        descriptor, unsent = self._pipes[index].stdin, self._unsent[index]
        try:
            while unsent:
                del unsent[: os.write(descriptor, unsent)]
        except BlockingIOError:
            if descriptor not in self._selector.get_map():
                self._selector.register(descriptor, selectors.EVENT_WRITE, _bound(self._write, index))
            return
        except BrokenPipeError:
            unsent.clear()  # its end is reported by the launcher
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

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

    def _phase_of(self, each: Conversation) -> str:
        """Returns how far one worker is by what it has said: it may be ahead of the slowest."""
        if each.done is not None:
            return "tear-down"
        if self._begin_ns:
            return self._phase_now()
        return "create" if each.ready is None else "discover"

    def _drain_end_ns(self) -> int:
        return self._begin_ns + _length_ns(self._phases)

    def _phase_seconds(self) -> dict[str, float]:
        """Returns how long each phase that was begun lasted."""
        began = dict(self._phase_began)
        if "tear-down" in began:
            began["measure"] = self._begin_ns + self._phases.warmup_ns
            began["drain"] = began["measure"] + self._phases.measure_ns
        order = [phase for phase in (*PHASES, "end") if phase in began]
        return {
            phase: max(0, began[following] - began[phase]) / NS_PER_S
            for phase, following in itertools.pairwise(order)
        }

    def _worker_outcome(self, each: Conversation) -> WorkerOutcome:
        records: bytes | bytearray | memoryview | None = each.records
        if records is None and self._pipes:
            records = self._launcher.salvage(each.index)
        startup_ns = {
            name: each.came_ns[event] - self._workers_started_ns
            for event, name in STARTUP.items()
            if event in each.came_ns
        }
        return WorkerOutcome(each.index, each.name, each.ready, each.done, records, each.stderr, startup_ns)


def _length_ns(phases: Phases) -> int:
    return phases.warmup_ns + phases.measure_ns + phases.drain_ns


def _bound(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: function(*arguments)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _exit_text(notice: Any) -> str:
    if "signal" in notice:
        return f"was killed by {_signal_name(notice['signal'])}"
    return f"exited with code {notice.get('code')}"


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
