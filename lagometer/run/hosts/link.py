# SPDX-License-Identifier: Apache-2.0
"""The conductor's end of the pipes to one agent: sends and receives frames, renews the lease, measures the
clock's offset, notices loss."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import lagometer
from lagometer.agent.frames import LEASE_S, PROTOCOL_VERSION, Frame, FrameError, Frames, framed
from lagometer.run.hosts.base import AgentPipes, HostError, Launcher

NS_PER_S = 1_000_000_000
HELLO_S = 30.0  # a host may be slow to reach
RENEW_NS = NS_PER_S
EXCHANGES = 8  # of clocks; the fastest counts
EXCHANGE_S = 5.0
ANSWER_S = 3.0  # for an agent to answer any question
FILES_S = 30.0  # to read the libraries of all adapters of a trial
READ_BYTES = 1 << 20
ENDING_S = 0.5  # for the agent's carrier process to end once its pipes are closed
STDERR_BYTES = 16 << 10


@dataclass(frozen=True)
class ClockOffset:
    """The offset of a host's CLOCK_MONOTONIC from ours.

    same: it is our clock, and offset_ns is 0. Otherwise host = ours + offset_ns, off by at most bound_ns when
    it was measured; `round_trip_ns` is the duration of the fastest exchange.
    """

    same: bool = True
    offset_ns: int = 0
    bound_ns: int = 0
    round_trip_ns: int = 0


class AgentLink:
    """The link to the agent of one host. Single-threaded. `open` after a loss starts a new agent."""

    def __init__(self, name: str, launcher: Launcher) -> None:
        self.name = name
        self.hello: Mapping[str, Any] = {}
        self._launcher = launcher
        self._pipes: AgentPipes | None = None
        self._frames = Frames()
        self._unsent = bytearray()
        self._kept: list[Frame] = []
        self._stderr = b""
        self._renewed_ns = 0
        self._lost: str | None = None
        self._silent = False  # lost because no answer came
        self.unreachable: str | None = None  # why the last attempt to open it failed
        self._hashes: dict[str, str | None] = {}

    @property
    def is_open(self) -> bool:
        """Whether there is an agent, as far as we know."""
        return self._pipes is not None and self._lost is None

    @property
    def lost(self) -> str | None:
        """Why the agent can't be used any more, in words; None while it can."""
        return self._lost

    @property
    def process_id(self) -> int:
        """The agent's process number on its host; 0 before its first message."""
        return int(self.hello.get("pid", 0))

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that workers may use there; ours before the agent's first message."""
        return tuple(self.hello.get("cpus") or sorted(os.sched_getaffinity(0)))

    @property
    def shares_clock(self) -> bool:
        """Whether it says that its clock is ours; False before the agent's first message."""
        return bool(self.hello.get("clock")) and self.hello["clock"] == _our_clock()

    def there(self, path: str) -> str:
        """Returns the path of a file of this installation on the host, once the link was open."""
        return self._launcher.there(path)

    def open(self) -> None:
        """Starts an agent unless there is one, and reads its identity. Raises `HostError`."""
        if self.is_open:  # it may have ended since, for example after ten seconds without a renewal
            self._kept = self.receive()
        if self.is_open:
            return
        self.close()
        self._frames, self._unsent, self._kept, self._stderr = Frames(), bytearray(), [], b""
        self._hashes, self._silent, self.unreachable = {}, False, None
        try:
            self._pipes, self._lost = self._launcher.start(), None
            for descriptor in (self._pipes.stdin, self._pipes.stdout, self._pipes.stderr):
                os.set_blocking(descriptor, False)
            message, _ = self._next("agent", HELLO_S)
            self._check(message)
        except HostError as error:
            self.unreachable = str(error)
            self.close()
            raise
        self.hello = message

    def _check(self, message: Mapping[str, Any]) -> None:
        theirs = {name: message.get(name) for name in ("protocol", "version")}
        ours = {"protocol": PROTOCOL_VERSION, "version": lagometer.__version__}
        if theirs != ours:
            wrong = ", ".join(f"{name} {theirs[name]} instead of {ours[name]}" for name in ours)
            raise HostError(f"its agent has {wrong}: install the same lagometer on both hosts")
        known = type(message.get("pid")) is int and isinstance(message.get("clock"), str)
        cpus = message.get("cpus")
        if not known or not isinstance(cpus, list) or not all(type(cpu) is int for cpu in cpus):
            raise HostError("its agent did not identify itself")

    def send(self, message: Mapping[str, Any], block: bytes | None = None) -> None:
        """Queues a frame and writes what fits; `flush` writes the rest."""
        self._unsent += framed(message, block)
        self.flush()

    def flush(self) -> bool:
        """Writes what fits; returns whether everything is written. Notes it if the agent is gone."""
        if self._pipes is None:
            return True
        try:
            while self._unsent:
                del self._unsent[: os.write(self._pipes.stdin, self._unsent[:READ_BYTES])]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._unsent.clear()
            self._lose("its agent ended", gone=True)
        return True

    def renew(self) -> None:
        """Renews the lease when it is due."""
        if time.monotonic_ns() >= self.renew_ns():
            self._renewed_ns = time.monotonic_ns()
            self.send({"command": "lease"})

    def renew_ns(self) -> int:
        """When the lease must be renewed next."""
        return self._renewed_ns + RENEW_NS

    def descriptors(self) -> tuple[int, ...]:
        """Returns the descriptors that become readable when `receive` has something."""
        return (self._pipes.stdout, self._pipes.stderr) if self._pipes is not None else ()

    @property
    def writer(self) -> int:
        """The descriptor that becomes writable when `flush` can continue."""
        assert self._pipes is not None
        return self._pipes.stdin

    def receive(self) -> list[Frame]:
        """Returns the frames that have come, without waiting. Notes it if the agent is gone."""
        if self._pipes is None:
            return []
        self._hear_stderr()
        pending, self._kept = self._kept, []
        try:
            data = os.read(self._pipes.stdout, READ_BYTES)
        except BlockingIOError:
            return pending
        if not data:
            self._lose("its agent ended", gone=True)
            return pending
        try:
            return pending + self._frames.feed(data)
        except FrameError as error:
            self._lose(f"its agent wrote {error}")
            return pending

    def _hear_stderr(self) -> None:
        assert self._pipes is not None
        with contextlib.suppress(BlockingIOError):
            self._stderr = (self._stderr + os.read(self._pipes.stderr, READ_BYTES))[-STDERR_BYTES:]

    def _how_it_ended(self) -> str | None:
        """Returns how the agent's carrier process ended. Its pipes close a moment before it ends."""
        deadline_s = time.monotonic() + ENDING_S
        while (ending := self._launcher.ended()) is None and time.monotonic() < deadline_s:
            time.sleep(ENDING_S / 100)
        self._hear_stderr()
        return ending

    def _lose(self, why: str, gone: bool = False) -> None:
        if self._lost is not None:
            return
        ending = self._how_it_ended() if gone else None
        error_lines = self._stderr.decode(errors="replace").strip().splitlines()
        details = [
            *([f"it {ending}"] if ending else []),
            *([f"it said: {error_lines[-1]}"] if error_lines else []),
        ]
        self._lost = "; ".join([why, *details])

    def give_up(self, why: str) -> None:
        """Notes that the agent can't be used any more."""
        self._lose(why)

    def offset(self) -> ClockOffset:
        """Returns the offset of its clock from ours, measured by exchanges of time stamps. Raises
        `HostError`.

        Also checks a clock with the same identity as ours: a copy of a machine has the same boot id and a
        different clock.
        """
        exchanges: list[tuple[int, int, int]] = []
        same = self.shares_clock
        for number in range(1 if same else EXCHANGES):
            before_ns = time.monotonic_ns()
            self.send({"command": "clock", "number": number})
            message, _ = self._next("clock", EXCHANGE_S)
            after_ns = time.monotonic_ns()
            at_ns = message.get("at_ns")
            if type(at_ns) is not int or message.get("number") != number:
                raise HostError(f"its agent answered {message} when it was asked for its clock")
            if same and not before_ns <= at_ns <= after_ns:
                raise HostError(
                    "its agent says that it has our clock, and has another: is it a copy of this machine?"
                )
            exchanges.append((after_ns - before_ns, before_ns, at_ns))
        round_trip_ns, before_ns, at_ns = min(exchanges)
        if same:
            return ClockOffset(round_trip_ns=round_trip_ns)
        offset_ns = at_ns - (before_ns + round_trip_ns // 2)
        return ClockOffset(False, offset_ns, -(-round_trip_ns // 2) + 1, round_trip_ns)

    def ask(self, message: Mapping[str, Any], event: str, seconds: float) -> Mapping[str, Any]:
        """Sends a command and returns its answer. Raises `HostError`."""
        self.send(message)
        return self.hear(event, seconds)

    def hear(self, event: str, seconds: float) -> Mapping[str, Any]:
        """Waits for an answer to a command that was sent, and returns it. Raises `HostError`."""
        return self._next(event, seconds)[0]

    def hashes(self, paths: Iterable[str]) -> dict[str, str | None]:
        """Returns the SHA-256 of files of the host, asking for each once; None: the file can't be read there.
        Raises `HostError`."""
        unique_paths = list(dict.fromkeys(paths))
        if unknown := [path for path in unique_paths if path not in self._hashes]:
            self.send({"command": "files", "paths": unknown})
            message, _ = self._next("files", FILES_S)
            hashes = message.get("hashes")
            if not isinstance(hashes, dict) or set(hashes) != set(unknown):
                raise HostError("its agent did not say what the files of adapters are")
            self._hashes |= {path: None if value is None else str(value) for path, value in hashes.items()}
        return {path: self._hashes[path] for path in unique_paths}

    def answers(self, more_s: float = 0.0) -> bool:
        """Asks whether the agent is still there, and waits a short time for its answer, `more_s` longer if
        its host is busy. Notes an agent that does not answer."""
        if not self.is_open:
            return False
        try:
            self.send({"command": "clock", "number": 0})
            self._next("clock", ANSWER_S + more_s)
        except HostError:
            if self._silent:
                self._lost = (
                    f"its agent has not answered for {ANSWER_S + more_s:g} s: the host hangs, or its "
                    "link is cut: fix that; the next trial connects again"
                )
            return False
        return True

    def _next(self, event: str, seconds: float) -> Frame:
        """Waits for a frame of this kind; keeps other frames for `receive`. Raises `HostError`."""
        deadline_ns = time.monotonic_ns() + round(seconds * NS_PER_S)
        others: list[Frame] = []
        try:
            while True:
                frames = self.receive()
                for place, frame in enumerate(frames):
                    if frame[0].get("event") == event:
                        others += frames[place + 1 :]
                        return frame
                    others.append(frame)
                if self._lost is not None:
                    raise HostError(self._lost)
                self.renew()
                self.flush()
                remaining_s = (deadline_ns - time.monotonic_ns()) / NS_PER_S
                if remaining_s <= 0:
                    self._silent = True
                    self._lose(f"its agent did not send '{event}' within {seconds:g} s")
                    continue
                select.select(self.descriptors(), [], [], min(remaining_s, LEASE_S / 10))
        finally:
            self._kept = others + self._kept

    def close(self) -> None:
        """Ends the agent and everything it runs. May be called twice."""
        self._pipes = None
        self._launcher.close()


def _our_clock() -> str:
    from lagometer.agent.serving import clock_identity

    return clock_identity()
