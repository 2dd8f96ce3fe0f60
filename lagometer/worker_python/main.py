# SPDX-License-Identifier: Apache-2.0
"""Goes through the phases create → discover → warm-up → measure → drain → tear down, and reports each."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from lagometer import __version__
from lagometer.worker_python import adapter as interface
from lagometer.worker_python.adapter import AdapterError, AdapterMissing
from lagometer.worker_python.control import Command, Control, ControlError
from lagometer.worker_python.endpoint import ContentError
from lagometer.worker_python.fields import PlanError
from lagometer.worker_python.machine import (
    RunTimes,
    SchedulingRefused,
    apply_scheduling,
    move_heap,
    name_thread,
    run_times,
    threads,
)
from lagometer.worker_python.plan import Plan, parse_plan
from lagometer.worker_python.plan_bounds import (
    MATCH_LOOK_NS,
    PROBE_FIRST_NS,
    PROBE_SLOWEST_NS,
    STANDALONE_GRACE_NS,
    STANDALONE_HEAD_START_NS,
)
from lagometer.worker_python.records import NoRoom
from lagometer.worker_python.session import Session
from lagometer.worker_python.stage import now_ns

NAME = "lagometer-worker"
HELP = """usage: python -m lagometer.worker_python < plan.json   run a plan (docs/PROTOCOL.md)
       python -m lagometer.worker_python --probe MODULE   ask an adapter what it is
       python -m lagometer.worker_python --version
A plan to try: lagometer plan STUDY --worker CELL 0 | python -m lagometer.worker_python
"""


class Failure(Exception):
    """Ends the trial. The reason is one of the protocol's, and so are the details: missing, counted."""

    def __init__(self, reason: str, message: str, **details: Sequence[Any]) -> None:
        super().__init__(message)
        self.reason, self.message, self.details = reason, message, details


class Dismissed(Exception):
    """The conductor no longer needs this worker."""


class Worker:
    """Runs one plan."""

    def __init__(self, control: Control, plan: Plan) -> None:
        self._control = control
        self._plan = plan
        self._phase = "plan"
        self._session: Session | None = None

    def run(self) -> int:
        """Returns the exit code."""
        try:
            self._walk()
        except Dismissed:
            return self._leave()
        except Failure as failure:
            self._fail(failure.reason, failure.message, **failure.details)
        except SchedulingRefused as error:
            self._fail("scheduling-refused", str(error))
        except (NoRoom, MemoryError) as error:
            self._fail("no-memory", str(error) or "out of memory")
        except AdapterMissing as error:
            self._fail("adapter-missing", str(error))
        except AdapterError as error:
            self._fail("adapter-failed", str(error))
        except (ControlError, ContentError) as error:
            self._fail("internal", str(error))
        except Exception as error:
            self._fail("internal", interface.told(error))
        return 0

    def _walk(self) -> None:
        hello = {"event": "hello", "protocol": 1, "worker": self._plan.worker}
        self._control.send({**hello, "pid": os.getpid(), "version": __version__})
        self._control.end_ignored = self._plan.standalone
        session = self._create()
        at_ns = self._discover(session)
        done_event = self._measure(session, at_ns)
        self._phase = "tear-down"
        self._control.send(done_event)
        if not self._plan.standalone or not self._control.output_is_terminal():
            self._control.send_block(session.recorder.packed())
        session.close()
        self._control.send({"event": "bye"})

    def _create(self) -> Session:
        self._phase = "create"
        move_heap(self._plan.heap_offset_bytes)
        warnings = apply_scheduling(self._plan)
        if self._plan.layer_stamps:
            warnings.append("no layer stamps: the worker in Python has none")
        descriptor = os.environ.get("LAGOMETER_RECORDS_FD", "")
        session = self._session = Session(self._plan, int(descriptor) if descriptor.isdecimal() else None)
        self._control.send(
            {
                "event": "ready",
                "adapters": session.describe_adapters(),
                "settings": session.describe_settings(),
                "scheduling": {"threads": threads()},
                "warnings": warnings,
            }
        )
        return session

    def _discover(self, session: Session) -> int:
        """Probes until all readers have heard every expected stream and the conductor sends `go`; returns the
        start."""
        self._phase = "discover"
        begin_ns = session.enabled_ns
        interval_ns, matched_ns = PROBE_FIRST_NS, 0
        if not self._plan.matching:
            matched_ns = now_ns()
            self._control.send({"event": "matched", "elapsed_ns": 0})
        while True:
            if session.look_for_readers(self._plan.matching):
                interval_ns = PROBE_FIRST_NS  # a new reader waits for the next probe
            self._check_failure(session)
            next_ns = now_ns() + interval_ns
            interval_ns = min(interval_ns * 5 // 4, PROBE_SLOWEST_NS)
            while True:
                if not matched_ns and not session.missing():
                    matched_ns = now_ns()
                    self._control.send({"event": "matched", "elapsed_ns": matched_ns - begin_ns})
                # A standalone worker does not learn that its peers are matched as well, so it keeps probing
                # for a while.
                if self._plan.standalone and matched_ns and now_ns() > matched_ns + STANDALONE_GRACE_NS:
                    return now_ns() + STANDALONE_HEAD_START_NS
                # While it waits for its peers' probes, it checks often. Once matched, only the conductor's
                # command matters.
                until_ns = next_ns if matched_ns else min(next_ns, now_ns() + MATCH_LOOK_NS)
                if (command := self._control.wait(until_ns)) is not None:
                    if command.name != "go":
                        self._dismissed(command)
                    if not matched_ns:
                        raise Failure("internal", "told to go before it was matched")
                    return command.at_ns
                if now_ns() >= next_ns:
                    break
            if not matched_ns and now_ns() - begin_ns > self._plan.discovery_timeout_ns:
                self._report_missing(session)

    def _report_missing(self, session: Session) -> NoReturn:
        missing = session.missing()
        parts = [
            f"node {reader['node']} on topic {reader['topic']} misses streams "
            + json.dumps(reader["streams"], separators=(",", ":"))
            for reader in missing
        ]
        waited_ms = self._plan.discovery_timeout_ns // 1_000_000
        message = f"not matched within {waited_ms} ms: {'; '.join(parts)}"
        raise Failure("endpoints-missing", message, missing=missing, counted=session.counted())

    def _measure(self, session: Session, at_ns: int) -> dict[str, Any]:
        self._phase = "warm-up"
        begin_ns = at_ns + self._plan.warmup_ns
        end_ns = begin_ns + self._plan.measure_ns
        drained_ns = end_ns + self._plan.drain_ns
        session.start(at_ns, end_ns)
        self._sleep_until(begin_ns)
        self._phase = "measure"
        accounts_before, before = self._account(), _usage()
        self._sleep_until(end_ns)
        after, accounts_after = _usage(), self._account()
        self._phase = "drain"
        self._sleep_until(drained_ns)
        thread_entries = threads(accounts_before, accounts_after)
        session.stop()
        self._check_failure(session)
        return {
            "event": "done",
            "at_ns": at_ns,
            "measure_begin_ns": begin_ns,
            "measure_end_ns": end_ns,
            "drain_end_ns": drained_ns,
            "cpu_ns": after[0] - before[0],
            "context_switches": {"voluntary": after[1] - before[1], "involuntary": after[2] - before[2]},
            "resident_bytes_max": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "threads": thread_entries,
            "writers": session.describe_writers(),
            "readers": session.describe_readers(),
            "warnings": session.warnings(),
        }

    def _account(self) -> RunTimes:
        """Only real-time threads can be throttled as such; others don't pay for reading the accounts."""
        return run_times() if self._plan.scheduling.fifo else {}

    def _sleep_until(self, until_ns: int) -> None:
        """Leaves the nodes alone, but listens to the conductor."""
        if (command := self._control.wait(until_ns)) is not None:
            self._dismissed(command)

    def _dismissed(self, command: Command) -> NoReturn:
        if command.name == "go":
            raise Failure("internal", "told to go twice")
        if command.name == "end-of-input":
            raise Failure("internal", "standard input ended: the conductor is gone")
        raise Dismissed

    def _check_failure(self, session: Session) -> None:
        if text := session.failure():
            raise Failure("adapter-failed", text)

    def _leave(self) -> int:
        session = self._session
        if session is not None:
            session.stop()
            if session.recorder.count() > 0:
                self._control.send_block(session.recorder.packed())
            session.close()
        self._control.send({"event": "bye"})
        return 0

    def _fail(self, reason: str, message: str, **details: Sequence[Any]) -> NoReturn:
        event = {"event": "failed", "phase": self._phase, "reason": reason, "message": message}
        self._control.send({**event, **{name: list(said) for name, said in details.items() if said}})
        # A broken client library may hang during tear-down; the end of the process frees everything anyway.
        _flush_errors()
        os._exit(1)


def main(arguments: Sequence[str]) -> int:
    """The program; returns its exit code."""
    # As in the worker in C++: an interrupt ends it, and a missing reader shows as a write error.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if not arguments:
        return _conducted()
    if len(arguments) == 2 and arguments[0] == "--probe":
        return _probe(arguments[1])
    if list(arguments) == ["--version"]:
        print(f"{NAME} {__version__} (Python {platform.python_version()})")
        return 0
    wants_help = list(arguments) == ["--help"]
    (sys.stdout if wants_help else sys.stderr).write(HELP)
    return 0 if wants_help else 2


def _conducted() -> int:
    name_thread(NAME)
    control = Control()
    try:
        plan = parse_plan(control.read_plan())
    except PlanError as error:
        message = str(error)
    except Exception as error:
        message = str(error) or type(error).__name__
    else:
        code = Worker(control, plan).run()
        _flush_errors()
        # A normal exit would wait for threads of the client library.
        os._exit(code)
    control.send({"event": "failed", "phase": "plan", "reason": "bad-plan", "message": message})
    return 2


def _flush_errors() -> None:
    """Whoever started this may have closed standard error: then there is nothing to flush."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def _probe(library: str) -> int:
    control = Control()
    try:
        probe = interface.probed(interface.load(os.path.basename(library), library), {})  # noqa: PTH119
    except Exception as error:
        control.send({"error": interface.told(error)})
        return 1
    description = {"version": probe.version, "abilities": dict(probe.abilities), "limits": dict(probe.limits)}
    control.send(description)
    return 0


def _usage() -> tuple[int, int, int]:
    """CPU time of the process in ns, voluntary and involuntary context switches."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.process_time_ns(), usage.ru_nvcsw, usage.ru_nivcsw
