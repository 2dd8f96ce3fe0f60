# SPDX-License-Identifier: Apache-2.0
"""One host's part of one trial, from the conductor's side: the commands to it, and its results so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from lagometer.agent.capture import Captured
from lagometer.agent.daemons import Done as DaemonDone
from lagometer.agent.exchange import Stamps
from lagometer.agent.frames import Frame
from lagometer.agent.load import Done as LoadDone
from lagometer.agent.observe.last_look import LastLook
from lagometer.agent.observe.scheduler import Recorded, ThreadNumbers
from lagometer.agent.observe.system_calls import Called
from lagometer.agent.observe.time_service import ServiceReport
from lagometer.agent.observe.witness import Evidence
from lagometer.agent.orders import Orders
from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.link import AgentLink, ClockOffset


@dataclass(frozen=True)
class HostOutcome:
    """The results of a trial on one host. clock: its offset from the conductor's; files: for each adapter the
    SHA-256 of its library, and that of the worker; exchanged: time stamps with other hosts, as their agents
    wrote them (name; sent, received, answered, returned; how long question and answer had waited in the
    kernel, -1: not known); pulled_ppm: the fastest that its clock was pulled meanwhile; captured: the report
    of the packet capture; packets: the file with the packets, which the reader keeps or removes; None in
    each: not available yet."""

    name: str
    workers: tuple[int, ...]
    clock: ClockOffset = field(default_factory=ClockOffset)
    isolation: Mapping[str, Any] = field(default_factory=dict)
    evidence: Evidence | None = None
    load: LoadDone | None = None
    daemons: tuple[DaemonDone, ...] = ()
    hello: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str | None] = field(default_factory=dict)
    exchanged: tuple[Stamps, ...] = ()
    pulled_ppm: float = 0.0
    captured: Captured | None = None
    packets: Path | None = None
    probed: Mapping[int, bytes] = field(default_factory=dict)  # by worker: what its probe wrote
    called: Mapping[int, Called] = field(default_factory=dict)  # likewise: its calls, as the kernel counted
    scheduled: Recorded | None = None  # with the trial's worker numbers; None if it was not wanted
    limited: Mapping[str, Any] | None = None  # the report on its CPU limit; None if it has none
    last_look: LastLook | None = None  # None if the trial did not end early
    services: tuple[ServiceReport, ...] = ()  # what time services said before the trial and after it


@dataclass(frozen=True)
class Hearing:
    """Callbacks for what a host reports. `worker` is the number in the trial. They run on the conductor's
    thread."""

    output: Callable[[int, str, bytes], None]
    notice: Callable[[HostPart, Mapping[str, Any]], None]
    fail: Callable[[str], None]


class HostPart:
    """The state of one trial on one host. workers: the trial's workers on this host, by their numbers in
    the trial; files: paths, by name, of the workers and what they load; packets: where to put captured
    packets."""

    def __init__(
        self,
        link: AgentLink,
        orders: Orders,
        workers: Sequence[int],
        files: Mapping[str, str] | None = None,
        packets: Path | None = None,
    ) -> None:
        self.link = link
        self._files = dict(files or {})
        self.workers = tuple(workers)
        self._orders = orders
        self._local = {worker: place for place, worker in enumerate(self.workers)}
        self._hearing: Hearing | None = None
        self.clock = ClockOffset()
        self.files: Mapping[str, str | None] = {}
        self.isolation: Mapping[str, Any] = {}
        self.evidence: Evidence | None = None
        self.serving_ns: int | None = None  # on the conductor's clock
        self.loaded = self.collected = self.finished = self.ended = False
        self.clock_port = 0  # where its agent answers others; 0: nowhere
        self.exchanging = False
        self._exchanged: list[Stamps] = []
        self._pulled_ppm = 0.0
        self.load_wrong: str | None = None
        self._load: LoadDone | None = None
        self._daemons: tuple[DaemonDone, ...] = ()
        self.salvaged: dict[int, bytes] = {}
        self._packets = packets
        self._packets_file: BinaryIO | None = None
        self._captured: Captured | None = None
        self._probed: dict[int, bytes] = {}
        self._called: dict[int, Called] = {}
        self._scheduled: Recorded | None = None
        self._limited: Mapping[str, Any] | None = None
        self._last_look: LastLook | None = None
        self._services: list[ServiceReport] = []

    @property
    def name(self) -> str:
        """The host's name in the study."""
        return self.link.name

    @property
    def address(self) -> str:
        """The host's address on its link to other hosts; empty without one."""
        return self._orders.address

    @property
    def patience_s(self) -> float:
        """How long its daemons together may take until they serve."""
        return sum(daemon.ready.timeout_s for daemon in self._orders.daemons)

    @property
    def has_load(self) -> bool:
        """Whether load runs next to its workers."""
        return self._orders.load is not None

    # --- commands ---

    def start(self, hearing: Hearing) -> None:
        """Compares clocks, and makes the agent start everything. Raises `HostError`."""
        self._hearing = hearing
        if self.link.unreachable is not None:
            raise HostError(self.link.unreachable)
        was_open = self.link.is_open
        try:
            self._meet()
        except HostError:
            if not was_open:
                raise
            self._meet()  # that agent has ended since the last trial
        self.link.send({"command": "trial", "orders": self._orders.as_json()})

    def _meet(self) -> None:
        """Asks the agent about its host. Raises `HostError`."""
        self.link.open()
        hashes = self.link.hashes(self._files.values())
        self.files = {name: hashes[path] for name, path in self._files.items()}
        self.clock = self.link.offset()

    def say(self, worker: int, text: bytes) -> None:
        """Forwards a line to one of its workers."""
        self.link.send({"command": "say", "worker": self._local[worker]}, text)

    def begin_load(self) -> None:
        """Starts the load; `loaded` tells when it is at work."""
        self.link.send({"command": "load"})

    def go(self, workers: Sequence[int], at_ns: int, phases: Mapping[str, int], late: bool) -> None:
        """Lets those of these workers that are on this host begin, at a time of our clock."""
        local_workers = [self._local[worker] for worker in workers if worker in self._local]
        at_ns += self.clock.offset_ns
        self.link.send(
            {"command": "go", "workers": local_workers, "at_ns": at_ns, "phases": phases, "late": late}
        )

    def exchange(self, peers: Sequence[tuple[str, str, int]], count: int, period_ns: int) -> None:
        """Makes it exchange time stamps with other hosts; `exchanging` becomes False when that is done."""
        self.exchanging = True
        self.link.send({"command": "exchange", "peers": peers, "count": count, "period_ns": period_ns})

    def exchange_until(
        self, peers: Sequence[tuple[str, str, int]], first_ns: int, period_ns: int, until_ns: int
    ) -> None:
        """Makes it exchange time stamps rarely, between two times of our clock."""
        first_ns, until_ns = first_ns + self.clock.offset_ns, until_ns + self.clock.offset_ns
        times = {"first_ns": first_ns, "period_ns": period_ns, "until_ns": until_ns}
        self.link.send({"command": "exchange-until", "peers": peers, **times})

    def collect(self) -> None:
        """Asks for the evidence; `collected` tells when it has arrived."""
        self.link.send({"command": "collect"})

    def release(self) -> None:
        """Lets the companions end once no worker runs any more."""
        self.link.send({"command": "release"})

    def end(self, salvage: Sequence[int]) -> None:
        """Ends everything, and requests the records of these workers; `ended` tells when that is done."""
        local_workers = [self._local[worker] for worker in salvage if worker in self._local]
        self.link.send({"command": "end", "salvage": local_workers})

    # --- answers ---

    def receive(self) -> None:
        """Handles what has arrived."""
        was_lost = self.link.lost
        for frame in self.link.receive():
            try:
                self._hear(frame)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                problem = f"{type(error).__name__} {error} in {str(frame[0])[:200]}"
                self.link.give_up(f"its agent sent an invalid message: {problem}")
        if self.link.lost is not None and was_lost is None:
            self.finished = True
            self._heard().fail(f"agent-lost: host {self.name}: {self.link.lost}")

    def _hear(self, frame: Frame) -> None:
        message, block = frame
        event, hearing = message.get("event"), self._heard()
        if event == "output":
            hearing.output(self.workers[message["worker"]], message["stream"], block)
        elif event == "notice":
            self._note(message["notice"])
        elif event == "serving":
            self.serving_ns = int(message["at_ns"]) - self.clock.offset_ns
            self.clock_port = int(message["clock_port"])
            self._note_service(message["service"])
        elif event == "exchanged":
            self._exchanged += map(_stamps, message["stamps"])
            self._pulled_ppm = float(message["pulled_ppm"])
            self.exchanging = False
        elif event == "loaded":
            self.loaded = True
        elif event == "evidence":
            evidence = message["evidence"]
            self.evidence = Evidence.from_frame(evidence) if evidence is not None else None
            self._note_service(message["service"])
            self.load_wrong, self.collected = message["load_wrong"], True
        elif event == "probed":
            worker = self.workers[message["worker"]]
            self._called[worker] = Called.from_frame(message["called"])
            if message["any"]:
                self._probed[worker] = block
        elif event == "scheduled":
            self._scheduled = self._recorded(message, block)
        elif event == "salvaged":
            if message["any"]:
                self.salvaged[self.workers[message["worker"]]] = block
        elif event == "packets":
            self._take_packets(block)
        elif event == "ended":
            self._take_last(message)
        elif event == "failed":
            hearing.fail(str(message["reason"]))
        elif event != "clock":
            raise ValueError("an unknown event")

    def _note(self, notice: Mapping[str, Any]) -> None:
        notice = {**notice}
        if "worker" in notice:
            notice["worker"] = self.workers[notice["worker"]]
        if notice["event"] == "isolated":
            self.isolation = {key: notice[key] for key in notice if key not in ("event", "warnings")}
        elif notice["event"] == "finished":
            self.finished = True
        self._heard().notice(self, notice)

    def _take_last(self, message: Mapping[str, Any]) -> None:
        load = message["load"]
        self._load = LoadDone(**load) if load is not None else None
        self._daemons = tuple(
            DaemonDone(**{**daemon, "command": tuple(daemon["command"])}) for daemon in message["daemons"]
        )
        captured = message["captured"]
        self._captured = Captured.from_frame(captured) if captured is not None else None
        self._limited = dict(message["limited"]) if message["limited"] is not None else None
        look = message["last_look"]
        self._last_look = LastLook.from_frame(look) if look is not None else None
        self.close()
        self.ended = self.finished = True

    def _recorded(self, message: Mapping[str, Any], block: bytes) -> Recorded:
        """Reads an agent's report on the scheduler. Raises TypeError, ValueError, IndexError."""
        threads = tuple(
            ThreadNumbers(self.workers[int(worker)], int(here), int(there), str(name))
            for worker, here, there, name in message["threads"]
        )
        why = message["why"]
        return Recorded(None if why is None else str(why), threads, block)

    def _take_packets(self, part: bytes) -> None:
        """Appends to the file. Raises ValueError if no packets were requested."""
        if self._packets is None:
            raise ValueError("packets that nobody asked for")
        try:
            if self._packets_file is None:
                self._packets_file = self._packets.open("wb")
            self._packets_file.write(part)
        except OSError as error:
            self._heard().fail(f"capture-lost: {self._packets} can't be written: {error.strerror}")

    def _note_service(self, told: Mapping[str, Any] | None) -> None:
        if told is not None:
            self._services.append(ServiceReport.from_json(told))

    def close(self) -> None:
        """Closes the file of its packets. May be called twice."""
        file, self._packets_file = self._packets_file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._heard().fail(f"capture-lost: {self._packets} can't be written: {error.strerror}")

    def _heard(self) -> Hearing:
        if self._hearing is None:
            raise HostError(f"host {self.name} was not started")
        return self._hearing

    def outcome(self) -> HostOutcome:
        """Returns the results."""
        return HostOutcome(
            name=self.name,
            workers=self.workers,
            clock=self.clock,
            isolation=self.isolation,
            evidence=self.evidence,
            load=self._load,
            daemons=self._daemons,
            hello=self.link.hello,
            files=self.files,
            exchanged=tuple(self._exchanged),
            pulled_ppm=self._pulled_ppm,
            captured=self._captured,
            packets=self._packets,
            probed=self._probed,
            called=self._called,
            scheduled=self._scheduled,
            limited=self._limited,
            last_look=self._last_look,
            services=tuple(self._services),
        )


def _stamps(stamps: Sequence[Any]) -> Stamps:
    name, sent, received, answered, returned, there, back = stamps
    return str(name), int(sent), int(received), int(answered), int(returned), int(there), int(back)
