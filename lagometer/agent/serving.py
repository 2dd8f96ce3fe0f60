# SPDX-License-Identifier: Apache-2.0
"""An agent's only thread: receives the conductor's commands, runs one trial after another, and needs a lease
to live.

The conductor renews the lease every second. Without a renewal for `LEASE_S` the agent ends everything and
itself. The end of its input is only the fast path, because the process that carries the pipes may die and
leave this side alive.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import resource
import select
import selectors
import stat
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lagometer
from lagometer.agent import orders
from lagometer.agent.commands import LaunchError
from lagometer.agent.exchange import peers_of
from lagometer.agent.frames import LEASE_S, PROTOCOL_VERSION, Frame, FrameError, Frames, framed
from lagometer.agent.isolation import SHARED_MEMORY, remove_stale_directories
from lagometer.agent.load import files_folder
from lagometer.agent.looks import Looks
from lagometer.agent.observe.synchronisation import synchronisation
from lagometer.agent.trial import HostTrial
from lagometer.standard_streams import ensure_standard_descriptors

NS_PER_S = 1_000_000_000
READ_BYTES = 1 << 16
FILE_PART_BYTES = 1 << 20
RENEW_NS = 2 * NS_PER_S  # how often the agent tells the supervisor that it is alive
UNHEARD_S = 1.0  # after this a blocked sender checks for renewals
ALONE_S = 1.0  # time for the supervisor to end everything once the conductor is gone; then it is killed
# Soft limits that decide what workers may do; -1: unlimited.
LIMITS = {
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "locked_memory_bytes": resource.RLIMIT_MEMLOCK,
    "realtime_priority": resource.RLIMIT_RTPRIO,
}
NOTHING_DONE: Mapping[str, Any] = {
    "load": None,
    "daemons": [],
    "captured": None,
    "limited": None,
    "last_look": None,
}
USAGE = "usage: python -m lagometer.agent SUPERVISOR"


class _Over(Exception):
    """The conductor is gone, or has been silent for too long."""


class Agent:
    """Serves one conductor. `reader`, `writer`: its descriptors, which the agent owns."""

    def __init__(self, supervisor: Path, reader: int, writer: int) -> None:
        self._supervisor = supervisor
        self._reader, self._writer = reader, writer
        self._frames = Frames()
        self._selector = selectors.DefaultSelector()
        self._trial: HostTrial | None = None
        self._lease_ns = time.monotonic_ns() + round(LEASE_S * NS_PER_S)
        self._renewed_ns = 0
        self._looks = Looks(self._selector, self._send)

    def run(self) -> None:
        """Returns when the conductor is gone and nothing runs any more."""
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._selector.register(self._reader, selectors.EVENT_READ, self._hear)
        try:
            self._send(hello())
            while True:
                self._wait_once()
        except _Over:
            pass
        finally:
            if self._trial is not None:
                self._trial.close(ALONE_S)
            self._looks.close()
            self._selector.close()

    def _wait_once(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns >= self._lease_ns:
            # This agent itself may be late, on a crowded host: then the renewals are still unread.
            self._hear()
            if now_ns >= self._lease_ns:
                sys.stderr.write(f"it heard nothing from its conductor for {LEASE_S:g} s, and ended\n")
                raise _Over
        trial = self._trial
        due_ns = trial.due_ns() if trial is not None else None
        until_ns = min(self._lease_ns, due_ns if due_ns is not None else self._lease_ns)
        for key, _ in self._selector.select(max(0, until_ns - now_ns) / NS_PER_S):
            # One handler may have closed a descriptor that was ready for another one.
            if key.fd in self._selector.get_map():
                self._carefully(key.data)
        if self._trial is not None:
            self._carefully(self._trial.on_time)

    def _carefully(self, step: Callable[[], object]) -> None:
        """A failure in a trial ends the trial, not the agent."""
        try:
            step()
        except (LaunchError, OSError) as error:
            code = error.code if isinstance(error, LaunchError) else LaunchError.code
            self._send({"event": "failed", "reason": f"{code}: {error}"})

    # --- the conductor ---

    def _hear(self) -> None:
        try:
            data = os.read(self._reader, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise _Over
        self._lease_ns = time.monotonic_ns() + round(LEASE_S * NS_PER_S)
        try:
            frames = self._frames.feed(data)
        except FrameError as error:
            self._send({"event": "failed", "reason": f"protocol-error: the conductor wrote {error}"})
            raise _Over from error
        for frame in frames:
            self._carefully(lambda frame=frame: self._obey(frame))  # type: ignore[misc]

    def _obey(self, frame: Frame) -> None:
        message, block = frame
        command = message.get("command")
        try:
            if command == "lease":
                self._renew()
            elif command == "clock":
                at_ns = time.monotonic_ns()
                self._send({"event": "clock", "number": message["number"], "at_ns": at_ns})
            elif command == "files":
                hashes = {path: hash_of(str(path)) for path in message["paths"]}
                self._send({"event": "files", "hashes": hashes})
            elif command == "trial":
                self._looks.close()
                self._begin(message)
            elif self._looks.obey(message):
                pass
            elif self._trial is None:  # it ended while this message was on its way
                if command == "end":
                    self._send({"event": "ended", **NOTHING_DONE})
            elif command == "say":
                self._trial.say(message["worker"], block)
            elif command == "go":
                self._trial.go(message["workers"], message["at_ns"], message["phases"], message["late"])
            elif command == "exchange":
                self._trial.exchange(peers_of(message["peers"]), message["count"], message["period_ns"])
            elif command == "exchange-until":
                times = [int(message[name]) for name in ("first_ns", "period_ns", "until_ns")]
                self._trial.exchange_until(peers_of(message["peers"]), *times)
            elif command == "load":
                self._trial.begin_load()
            elif command == "collect":
                self._trial.collect()
            elif command == "release":
                self._trial.release()
            elif command == "end":
                trial, self._trial = self._trial, None
                trial.end(message["salvage"])
            else:
                self._send({"event": "failed", "reason": f"protocol-error: unknown command {command!r}"})
        except (KeyError, TypeError, ValueError, IndexError) as error:
            problem = f"{type(error).__name__} {error}"
            self._send(
                {"event": "failed", "reason": f"protocol-error: '{command}' can't be carried out: {problem}"}
            )

    def _begin(self, message: Mapping[str, Any]) -> None:
        if self._trial is not None:
            self._trial.close()
            self._trial = None
        trial = HostTrial(orders.parsed(message["orders"]), self._supervisor, self._selector, self._send)
        try:
            trial.start()
        except BaseException:
            trial.close()
            raise
        self._trial = trial

    def _renew(self) -> None:
        now_ns = time.monotonic_ns()
        if self._trial is not None and now_ns - self._renewed_ns >= RENEW_NS:
            self._renewed_ns = now_ns
            self._trial.renew()

    def _send(self, message: Mapping[str, Any], block: bytes | None = None) -> None:
        """Writes one frame. Waits for a conductor that does not read, until the lease ends."""
        unsent = memoryview(framed(message, block))
        unheard = 0
        while unsent:
            try:
                unsent = unsent[os.write(self._writer, unsent) :]
            except BlockingIOError:
                # Unread renewals count: a conductor that is slow to read is not gone.
                unheard, previous_unheard = self._unheard_bytes(), unheard
                if unheard > previous_unheard:
                    self._lease_ns = time.monotonic_ns() + round(LEASE_S * NS_PER_S)
                remaining_ns = self._lease_ns - time.monotonic_ns()
                if remaining_ns <= 0:
                    sys.stderr.write(f"its conductor read nothing for {LEASE_S:g} s, and it ended\n")
                    raise _Over from None
                select.select([], [self._writer], [], min(remaining_ns / NS_PER_S, UNHEARD_S))
            except BrokenPipeError as error:
                raise _Over from error

    def _unheard_bytes(self) -> int:
        """Returns the number of unread bytes from the conductor."""
        return int.from_bytes(fcntl.ioctl(self._reader, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def hello() -> dict[str, Any]:
    """Returns the identity of this host and of its clock: two hosts with equal `clock` share one clock."""
    return {
        "event": "agent",
        "protocol": PROTOCOL_VERSION,
        "version": lagometer.__version__,
        "pid": os.getpid(),
        "host": platform.node(),
        "machine": platform.machine(),
        "boot": _boot(),
        "clock": clock_identity(),
        "network": _network(),
        "synchronisation": synchronisation(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "limits": {name: resource.getrlimit(number)[0] for name, number in LIMITS.items()},
    }


def hash_of(path: str) -> str | None:
    """Returns the SHA-256 of a file of this host, in hexadecimal; None if it can't be read."""
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while part := file.read(FILE_PART_BYTES):
                digest.update(part)
    except OSError:
        return None
    return digest.hexdigest()


def clock_identity() -> str:
    """Returns what identifies CLOCK_MONOTONIC of this process: the boot, and the offset of its time
    namespace.

    Empty if the kernel does not report it: then it equals no other clock.
    """
    boot = _boot()
    if not boot:
        return ""
    offsets = ""
    with contextlib.suppress(OSError):  # a kernel without time namespaces
        for line in Path("/proc/self/timens_offsets").read_text().splitlines():
            name, *offset = line.split()
            if name in ("monotonic", "1"):
                offsets = "".join(f"+{int(part)}" for part in offset)
    return boot + offsets


def _boot() -> str:
    """Returns what identifies this boot of the kernel: processes with the same value are on one machine."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _network() -> str:
    """Returns what identifies the network that the host's own counters belong to."""
    with contextlib.suppress(OSError):
        return f"{_boot()} {Path('/proc/self/ns/net').readlink()}"
    return ""


def serve(arguments: Sequence[str]) -> int:
    """Runs the program and returns its exit code."""
    if len(arguments) != 1:
        os.write(2, f"{USAGE}\n".encode())
        return 2
    ensure_standard_descriptors()
    if not stat.S_ISFIFO(os.fstat(0).st_mode) and not stat.S_ISSOCK(os.fstat(0).st_mode):
        os.write(2, b"lagometer.agent: standard input must be a pipe from a conductor\n")
        return 2
    reader, writer = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # any other output is for people
    os.close(nothing)
    for place in (SHARED_MEMORY, files_folder()):
        remove_stale_directories(place)
    Agent(Path(arguments[0]), reader, writer).run()
    return 0
