# SPDX-License-Identifier: Apache-2.0
"""Processes that run next to the workers of a trial: daemons that workers need, load that disturbs them, the
capture of their packets.

The launcher starts them in this order, so a companion's place in the order identifies it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from lagometer.agent import daemons as daemons_of_trial
from lagometer.agent import load as load_of_trial
from lagometer.agent.capture import TIMEOUT_NS as CAPTURE_TIMEOUT_NS
from lagometer.agent.capture import Capture, Captured
from lagometer.agent.commands import Companion
from lagometer.agent.daemons import Daemons
from lagometer.agent.link.orders import NAME as LINK
from lagometer.agent.link.orders import own_code, start_of
from lagometer.agent.load import Load
from lagometer.agent.observe.sockets import find_workers
from lagometer.agent.supervised import Supervised

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Awaited:
    """Something that does not serve yet: how long it may take, and why the trial fails if it takes longer."""

    timeout_ns: int
    late: str


@dataclass(frozen=True)
class Ended:
    """A companion that ended too early. code: code of the reason for which the trial fails; said: the
    companion's last words."""

    code: str
    name: str
    said: str

    def reason(self, how: str) -> str:
        """Returns why the trial fails. `how`: how the companion ended."""
        if self.said.startswith(f"{self.code}: "):
            return self.said
        return f"{self.code}: {self.name} {how}: {self.said}"


class Companions:
    """The companions of one trial. `load`, `daemons` and `capture` are None if the trial has none."""

    def __init__(
        self, load: Load | None = None, daemons: Daemons | None = None, capture: Capture | None = None
    ) -> None:
        self.load = load
        self.daemons = daemons
        self.capture = capture
        self._daemon_count = len(daemons.wanted) if daemons is not None else 0
        self._capture_place = self._daemon_count + (len(load.commands) if load is not None else 0)
        self._numbers: dict[int, int] = {}  # by place, in their own namespace
        self._released = False

    @property
    def commands(self) -> tuple[Companion, ...]:
        """Returns what the launcher starts."""
        daemons = self.daemons.wanted if self.daemons is not None else ()
        generators = self.load.commands if self.load is not None else ()
        captures = (self.capture.command,) if self.capture is not None else ()
        return (
            *(daemon.companion for daemon in daemons),
            *(Companion(command) for command in generators),
            *captures,
        )

    def note_start(self, place: int, number: int) -> None:
        """Notes that the launcher started a companion. `number`: its process number in its own namespace."""
        self._numbers[place] = number

    def note_end(self, place: int, launcher: Supervised) -> Ended | None:
        """Notes that a companion ended and returns which one: none has a reason to end before `release`."""
        if self._released:
            return None
        last_line = last_words(launcher, place)
        if self.daemons is not None and place < self._daemon_count:
            return Ended(own_code(last_line) or "daemon-died", self.daemons.wanted[place].name, last_line)
        if self.capture is not None and place == self._capture_place:
            return Ended("capture-died", "the capture of packets", last_line)
        assert self.load is not None, "what is no daemon and no capture is load"
        return Ended("interference-died", self.load.commands[place - self._daemon_count][0], last_line)

    def release(self, launcher: Supervised) -> None:
        """Lets the companions end once no worker runs any more."""
        self._released = True
        launcher.release_companions()

    def awaited(self, launcher: Supervised) -> Awaited | None:
        """Returns the first of capture and daemons that does not serve yet; None if all serve."""
        if self.capture is not None and not self.capture.reads(
            launcher.companion_output(self._capture_place)
        ):
            last_line = last_words(launcher, self._capture_place)
            return Awaited(CAPTURE_TIMEOUT_NS, f"capture-died: no packet was captured so far: {last_line}")
        return self._daemon_awaited(launcher)

    def _daemon_awaited(self, launcher: Supervised) -> Awaited | None:
        if self.daemons is None:
            return None
        if not self.daemons.attached and launcher.process_id is not None:
            numbers = [self._numbers[place] for place in range(self._daemon_count) if place in self._numbers]
            if len(numbers) == self._daemon_count:
                self.daemons.attach(launcher.process_id, numbers)
        place = self.daemons.waiting_for(launcher.companion_output)
        if place is None:
            return None
        daemon = self.daemons.wanted[place]
        late = f"{daemon.name} was not ready within {daemon.ready.timeout_s:g} s"
        return Awaited(
            timeout_ns=round(daemon.ready.timeout_s * NS_PER_S),
            late=f"daemon-not-ready: {late}: {last_words(launcher, place)}",
        )

    def begin_link(self, launcher: Supervised, at_ns: int) -> None:
        """Tells a link that changes with time when the measure phase begins. A link that no longer reads its
        input has ended, or reports at its end that it did not change."""
        root = self.daemons.root_of(LINK) if self.daemons is not None else None
        if root is None:
            return
        place, process = root
        if (descriptor := start_of(launcher.companion_output(place))) is not None:
            with contextlib.suppress(OSError):
                pipe = os.open(f"/proc/{process}/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    os.write(pipe, b"%d\n" % at_ns)
                finally:
                    os.close(pipe)

    def attach_load(self, launcher: Supervised) -> None:
        """Finds the load generators."""
        if self.load is not None:
            self.load.attach(launcher.process_id, self._load_numbers())

    def watch_daemons(self, launcher: Supervised, workers: Sequence[int]) -> Sequence[int]:
        """Notes which processes belong to the daemons, and returns them. `workers`: the process numbers of
        the workers."""
        if self.daemons is None or launcher.process_id is None:
            return ()
        others = [number for place, number in self._numbers.items() if place >= self._daemon_count]
        strangers = find_workers(launcher.process_id, [*workers, *others])
        self.daemons.watch([pid for pid in strangers if pid is not None])
        return self.daemons.processes

    def load_done(self, launcher: Supervised) -> load_of_trial.Done | None:
        """Returns what the load did; None without load."""
        if self.load is None:
            return None
        places = range(self._daemon_count, self._daemon_count + len(self.load.commands))
        return self.load.done([launcher.companion_output(place) for place in places])

    def daemons_done(self, launcher: Supervised, measure_ns: int) -> tuple[daemons_of_trial.Done, ...]:
        """Returns what each daemon did in a measure phase of this length."""
        return self.daemons.done(measure_ns, launcher.companion_output) if self.daemons is not None else ()

    def capture_done(self, launcher: Supervised) -> Captured | None:
        """Returns what the capture reports at its end; None without a capture."""
        if self.capture is None:
            return None
        return self.capture.done(launcher.companion_output(self._capture_place))

    def load_words(self, launcher: Supervised) -> str:
        """Returns the last line of each load generator."""
        generators = len(self.load.commands) if self.load is not None else 0
        return "; ".join(last_words(launcher, self._daemon_count + place) for place in range(generators))

    def _load_numbers(self) -> list[int]:
        places = range(self._daemon_count, self._capture_place)
        return [number for place, number in self._numbers.items() if place in places]


def last_words(launcher: Supervised, place: int) -> str:
    """Returns the last line that a companion wrote."""
    lines = launcher.companion_output(place).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
