# SPDX-License-Identifier: Apache-2.0
"""The processes of a check: starts them in a private machine, sends them orders, reads answers, ends them.

Whatever an adapter does to its process is a result. If the process hangs or dies, the check gets a
`PeerFailure` that names the order; closing the bench leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from lagometer.agent.commands import Command, LaunchError, Leaves, Pipes
from lagometer.agent.companions import Companions
from lagometer.agent.daemons import prepared, started_with
from lagometer.agent.isolation import runtime_directory
from lagometer.agent.supervised import Supervised
from lagometer.conformance.progress import Progress, read_progress
from lagometer.installation import conformance_command, supervisor_path
from lagometer.run.companions.daemons import filled_daemons
from lagometer.run.worker.panics import panic_in
from lagometer.study.adapter import Adapter
from lagometer.study.daemons import missing_daemons
from lagometer.study.room import room_of
from lagometer.study.sidecar import OptionValue

HANG_S = 60.0  # an order without progress for this long counts as hung; a working one takes less than a tenth
ORDER_TIMES = 5.0  # an order's total time limit, as a multiple of the limit without progress
GLANCE_S = 0.25  # between two checks of a process's progress
OUTPUT_BYTES = 65536
DAEMON_GLANCE_S = 0.01  # between two checks whether a daemon is ready
PROFILE = "default"
NS_PER_S = 1_000_000_000
UNSUPPORTED = -1  # LAGOMETER_UNSUPPORTED: other options may support it
_numbers = itertools.count(1_000_000)  # distinct from those of trials


class PeerFailure(Exception):
    """A process of the check hung, died, or sent an invalid answer."""


class Refused(Exception):
    """The adapter answered a call with a negative status; `reason` is what it reported, or empty."""

    def __init__(self, call: str, status: int | None, reason: str) -> None:
        super().__init__(f"{call or 'an order'} failed: {reason or 'the adapter gave no reason'}")
        self.call, self.status, self.reason = call, status, reason


@dataclass(frozen=True)
class Subject:
    """The adapter under test and its setup.

    network: `private` or `host`; hang_s: an order without progress for this long counts as hung;
    noticed: what the private machine lacks, in words; the checks fill it in.
    """

    adapter: Adapter
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    network: str = "private"
    hang_s: float = HANG_S
    noticed: dict[str, None] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The adapter's name."""
        return self.adapter.name

    @property
    def missing(self) -> str | None:
        """Why it can't run here: its library was not built, or a daemon is not installed; else None."""
        options = {self.name: self.options}
        return self.adapter.missing or next(missing_daemons(self.adapter, options, PROFILE), None)

    @property
    def within_process(self) -> bool:
        """Whether its messages stay within one process."""
        return self.adapter.sidecar.scope == "process"

    def all_options(self) -> dict[str, object]:
        """The options for a context: the caller's, and those that a wrapping adapter needs."""
        return {**self.options, **self.adapter.fixed_options}


class Peer:
    """One process that loads the adapter and executes orders, one at a time."""

    def __init__(self, bench: Bench, index: int, pipes: Pipes) -> None:
        self._bench, self.index, self.pipes = bench, index, pipes
        self.unread = b""
        self.errors = b""
        self.ended = False

    def do(self, order_name: str, *, times: float = ORDER_TIMES, **order: Any) -> dict[str, Any]:
        """Executes an order and returns the answer. `times`: its total time limit, as a multiple of the limit
        without progress.

        Raises `Refused`, `PeerFailure`.
        """
        return self.converse({"do": order_name, **order}, lambda _: None, times)

    def converse(
        self, order: Mapping[str, Any], hear: Callable[[Mapping[str, Any]], None], times: float = ORDER_TIMES
    ) -> dict[str, Any]:
        """Executes an order that sends lines of its own before the answer; each may take this long."""
        seconds = times * self._bench.subject.hang_s
        self._bench.write(self, json.dumps(order).encode() + b"\n", str(order["do"]))
        while True:
            answer = self._bench.read(self, seconds, str(order["do"]))
            if "ok" not in answer:
                hear(answer)
            elif answer["ok"]:
                return answer
            else:
                raise Refused(answer.get("call", ""), answer.get("status"), str(answer.get("reason", "")))


class Bench:
    """`count` processes with the adapter loaded, and its daemons, in one private machine. A context manager.

    message_bytes: of the largest payload, for daemons that reserve memory.
    """

    def __init__(self, subject: Subject, count: int, message_bytes: int) -> None:
        self.subject, self._count, self._message_bytes = subject, count, message_bytes
        self._stack = contextlib.ExitStack()
        self.peers: list[Peer] = []
        self.directory = ""
        self._ends: dict[int, str] = {}
        self._daemon_died = ""

    def __enter__(self) -> Bench:
        subject, sidecar = self.subject, self.subject.adapter.sidecar
        with contextlib.ExitStack() as stack:
            self.directory = stack.enter_context(runtime_directory(subject.network, next(_numbers)))
            wanted = filled_daemons(
                subject.adapter,
                {subject.name: subject.options},
                PROFILE,
                self.directory,
                room=room_of(self._message_bytes),
            )
            daemons = stack.enter_context(started_with(wanted))
            self._companions = Companions(daemons=daemons)
            private = subject.network == "private"
            leaves = (
                Leaves() if private else Leaves(self.directory, sidecar.shared_memory, sidecar.message_queues)
            )
            self._launcher = Supervised(
                supervisor_path(), leaves, self._companions.commands, prepared(daemons, self.directory)
            )
            stack.callback(self._launcher.close)
            environment = dict(sidecar.environment)
            for daemon in wanted:
                environment |= daemon.for_workers
            if sidecar.preload:
                environment["LD_PRELOAD"] = ":".join(sidecar.preload)
            commands = [Command(conformance_command(sidecar.worker), environment)] * self._count
            try:
                pipes = self._launcher.start(commands, subject.network)
            except LaunchError as error:
                raise PeerFailure(str(error)) from error
            self.peers = [Peer(self, index, peer_pipes) for index, peer_pipes in enumerate(pipes)]
            self._await_daemons()
            for peer in self.peers:
                peer.do(
                    "load",
                    name=subject.name,
                    library=str(subject.adapter.library),
                    runtime_directory=self.directory,
                )
            self._stack = stack.pop_all()
        return self

    def _await_daemons(self) -> None:
        """Starts the processes of the check once the adapter's daemons are ready."""
        began_s = time.monotonic()
        while (awaited := self._companions.awaited(self._launcher)) is not None:
            self._listen(DAEMON_GLANCE_S)
            if self._daemon_died:
                raise PeerFailure(self._daemon_died)
            if time.monotonic() - began_s > awaited.timeout_ns / NS_PER_S:
                raise PeerFailure(awaited.late)
        self._launcher.start_workers()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def network(self) -> dict[str, object]:
        """The network settings of a context, as the conductor sends them to workers."""
        return {"loopback": True, "peers": self._count} if self.subject.network == "private" else {}

    def write(self, peer: Peer, line: bytes, order_name: str) -> None:
        """Sends a line; does not block if an adapter keeps its process from reading."""
        deadline = time.monotonic() + self.subject.hang_s
        while line:
            with contextlib.suppress(BlockingIOError):
                try:
                    line = line[os.write(peer.pipes.stdin, line) :]
                except BrokenPipeError:
                    raise self._failure(peer, order_name) from None
                continue
            self._listen(0.05)
            if time.monotonic() > deadline:
                seconds = f"made no progress for {self.subject.hang_s:.0f} s"
                raise self._hang(peer, order_name, seconds, self.progress(peer))

    def read(self, peer: Peer, seconds: float, order_name: str) -> dict[str, Any]:
        """Waits for the next line of one process, and reads from the others meanwhile.

        Raises `PeerFailure` if it ends, makes no progress for `hang_s`, or takes longer than `seconds`.
        """
        began_s = moved_s = time.monotonic()
        steps = self.progress(peer).steps
        while b"\n" not in peer.unread:
            if peer.ended:
                raise self._failure(peer, order_name)
            now_s, latest = time.monotonic(), self.progress(peer)
            if latest.steps != steps:
                steps, moved_s = latest.steps, now_s
            if now_s - moved_s > self.subject.hang_s:
                raise self._hang(peer, order_name, f"made no progress for {now_s - moved_s:.0f} s", latest)
            if now_s - began_s > max(seconds, self.subject.hang_s):
                raise self._hang(peer, order_name, f"was not done after {now_s - began_s:.0f} s", latest)
            self._listen(GLANCE_S)
        line, peer.unread = peer.unread.split(b"\n", 1)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise PeerFailure(f"'{order_name}' was answered with {line[:200]!r}")
        return answer

    def _listen(self, seconds: float) -> None:
        """Reads from all pipes what has arrived, waiting at most `seconds`."""
        sources: dict[int, tuple[Peer, bool]] = {}
        for peer in self.peers:
            if not peer.ended:
                sources[peer.pipes.stdout] = (peer, True)
                sources[peer.pipes.stderr] = (peer, False)
        notices = set(self._launcher.descriptors())
        ready, _, _ = select.select([*sources, *notices], [], [], seconds)
        for descriptor in ready:
            if descriptor in notices:
                continue
            peer, is_output = sources[descriptor]
            piece = _read(descriptor)
            if is_output:
                peer.unread += piece
                peer.ended = not piece
            else:
                peer.errors = (peer.errors + piece)[-OUTPUT_BYTES:]
        if notices & set(ready):
            self._heed()

    def _heed(self) -> None:
        for notice in self._launcher.notices():
            if notice["event"] == "exited":
                self._ends[int(notice["worker"])] = _end_of(notice)
            elif notice["event"] == "companion-started":
                self._companions.note_start(int(notice["companion"]), int(notice["pid"]))
            elif notice["event"] == "companion-exited":
                place, ending = int(notice["companion"]), _end_of(notice)
                ended = self._companions.note_end(place, self._launcher)
                self._daemon_died = ended.reason(ending) if ended is not None else ""
            elif notice["event"] in ("isolated", "finished"):
                self.subject.noticed.update(dict.fromkeys(notice.get("warnings", ())))
            elif notice["event"] == "failed":
                for peer in self.peers:
                    peer.ended = True
                    self._ends.setdefault(peer.index, f"could not be started: {notice.get('message')}")

    def progress(self, peer: Peer) -> Progress:
        """A process's progress, and its last call into the adapter; works even if it hangs or is dead."""
        return read_progress(self._launcher.records_descriptor(peer.index))

    def _failure(self, peer: Peer, order_name: str) -> PeerFailure:
        """The error for a process that has ended."""
        deadline = time.monotonic() + 2.0  # its end is reported a moment after its pipes close
        while peer.index not in self._ends and time.monotonic() < deadline:
            self._listen(0.05)
        ending = self._ends.get(peer.index, "closed its output")
        call = self.progress(peer).last_call()
        where = f", in {call.name}" if call is not None and call.under_way else ""
        return self._told(peer, order_name, f"its process {ending} at '{order_name}'{where}")

    def _hang(self, peer: Peer, order_name: str, reason: str, progress: Progress) -> PeerFailure:
        """The error for a process that makes no progress."""
        return self._told(peer, order_name, f"its process {reason} at '{order_name}': {progress.told()}")

    def _told(self, peer: Peer, order_name: str, words: str) -> PeerFailure:
        if self._daemon_died:
            return PeerFailure(f"at '{order_name}': {self._daemon_died}")
        errors = peer.errors.decode(errors="replace").strip()
        said = panic_in(errors) or " / ".join(errors.splitlines()[-3:])
        return PeerFailure(words + (f"; it said: {said}" if said else ""))


def _end_of(notice: Mapping[str, Any]) -> str:
    number = notice.get("signal")
    return f"died of {signal.Signals(number).name}" if number else f"ended with {notice.get('code')}"


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, OUTPUT_BYTES)
    except BlockingIOError:
        return b""
