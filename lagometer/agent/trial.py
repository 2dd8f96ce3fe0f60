# SPDX-License-Identifier: Apache-2.0
"""One host's part of a trial: starts it, forwards messages, observes it at the right times, ends it.

The agent's only thread calls it. During the measure phase it does only two things: it reads the CPU clocks of
daemons just before the borders of the phase, and it does what the conductor wants of workers that join.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

from lagometer.agent.capture import Capture
from lagometer.agent.commands import LaunchError, Pipes
from lagometer.agent.companions import Companions
from lagometer.agent.cpu_groups import CpuGroups
from lagometer.agent.daemons import prepared, started_with
from lagometer.agent.exchange import ClockExchange, Peer
from lagometer.agent.isolation import made_directory
from lagometer.agent.link.orders import NAME as LINK
from lagometer.agent.load import START_S_MAX, Load, files_of
from lagometer.agent.observe.last_look import LastLook, LastLookWatch
from lagometer.agent.observe.probes import ProbeFile
from lagometer.agent.observe.resources import DAEMON, WORKER, Process, ResourceWatch
from lagometer.agent.observe.scheduler import SchedulerWatch
from lagometer.agent.observe.sockets import find_workers
from lagometer.agent.observe.system_calls import SystemCallWatch
from lagometer.agent.observe.time_service import service_report
from lagometer.agent.observe.witness import Witness
from lagometer.agent.orders import Orders
from lagometer.agent.supervised import TERMINATION_S, Supervised

NS_PER_S = 1_000_000_000
LOOK_NS = 5_000_000  # how often to check whether the companions are at work
# The daemons' CPU time is read this long before a border of the measure phase, so as not to disturb the first
# message; waiting is in whole milliseconds.
LOOK_AHEAD_NS = 2_000_000
ANSWER_NS = 250_000_000  # to wait for the last of several answers; later ones are still kept
READ_BYTES = 1 << 20
SUPERVISOR_LEASE_S = 15.0  # longer than the agent's own lease; the agent renews this one every two seconds

Send = Callable[[Mapping[str, Any], bytes | None], None]


class HostTrial:
    """The state of one trial on one host. `send` writes one frame to the conductor."""

    def __init__(
        self, orders: Orders, supervisor: Path, selector: selectors.BaseSelector, send: Send
    ) -> None:
        self._orders, self._selector, self._send = orders, selector, send
        self._supervisor = supervisor
        self._stack = contextlib.ExitStack()
        self._companions = Companions()
        self._supervised: Supervised | None = None
        self._pipes: Sequence[Pipes] = ()
        self._unsent = [bytearray() for _ in orders.workers]
        self._numbers: dict[int, int] = {}  # process numbers of the workers, in their own namespace
        self._isolated = False
        self._witness = Witness()
        self._last_look = LastLookWatch()
        self._resources = ResourceWatch(orders.resources)
        self._scheduler: SchedulerWatch | None = None
        self._limited: CpuGroups | None = None
        self._probes: list[ProbeFile | None] = []
        self._calls = SystemCallWatch()
        self._begun = False
        self._measure_ns = 0
        self._started_ns = time.monotonic_ns()
        self._due: list[tuple[int, Callable[[], object]]] = []
        self._clocks: ClockExchange | None = None
        self._service: dict[str, Any] | None = None  # what time services said before it

    # --- commands of the conductor ---

    def start(self) -> None:
        """Starts what the orders name; starts the workers once the daemons serve. Raises `LaunchError`,
        OSError."""
        orders = self._orders
        if orders.address:
            self._clocks = ClockExchange(orders.address, self._selector)
            self._stack.callback(self._clocks.close)
        if orders.network == "host":
            self._stack.enter_context(made_directory(orders.directory))
        if orders.scheduler:
            self._scheduler = SchedulerWatch(orders.scheduler)
            self._stack.callback(self._scheduler.close)
        orders = self._within_limit(orders)
        load = None
        if orders.load is not None:
            self._stack.enter_context(files_of(orders.load))
            load = Load(orders.load)
        daemons = self._stack.enter_context(started_with(orders.daemons))
        capture = Capture(orders.address) if orders.captures else None
        if capture is not None:
            self._stack.callback(capture.close)
        self._companions = Companions(load, daemons, capture)
        before = prepared(daemons, orders.directory, orders.files, needed=bool(orders.probed))
        commands = self._companions.commands
        supervised = Supervised(self._supervisor, orders.leaves, commands, before, SUPERVISOR_LEASE_S)
        self._supervised = supervised
        self._pipes = supervised.start(orders.workers, orders.network)
        for descriptor in supervised.descriptors():
            self._selector.register(descriptor, selectors.EVENT_READ, self._on_notices)
        for worker, pipes in enumerate(self._pipes):
            for stream, descriptor in (("stdout", pipes.stdout), ("stderr", pipes.stderr)):
                hear = partial(self._on_output, worker, stream, descriptor)
                self._selector.register(descriptor, selectors.EVENT_READ, hear)
        self._service = self._told_by_services()
        self._await_servers()

    def _told_by_services(self) -> dict[str, Any] | None:
        """Returns what time services say; None if no other host exchanges time stamps with this one. Never
        during such an exchange, which it would delay."""
        return service_report().as_json() if self._clocks is not None else None

    def _within_limit(self, orders: Orders) -> Orders:
        """Makes and measures the control groups of a host that is limited to a device. Returns orders whose
        workers and daemons enter them. What emulates a link is not on the device."""
        if orders.cpu_limit is None:
            return orders
        daemons = [daemon.name for daemon in orders.daemons if daemon.name != LINK]
        limited = self._limited = CpuGroups(orders.cpu_limit, len(orders.workers) + len(daemons))
        self._stack.callback(limited.close)
        limited.make()
        limited.verify()
        places = itertools.count()
        return replace(
            orders,
            workers=tuple(replace(worker, group=limited.entry(next(places))) for worker in orders.workers),
            daemons=tuple(
                daemon
                if daemon.name == LINK
                else replace(daemon, companion=replace(daemon.companion, group=limited.entry(next(places))))
                for daemon in orders.daemons
            ),
        )

    def say(self, worker: int, text: bytes) -> None:
        """Queues bytes for a worker's standard input and writes what fits."""
        self._unsent[worker] += text
        self._write(worker)

    def begin_load(self) -> None:
        """Waits until the load next to the workers is at work, and reports it."""
        self._companions.attach_load(self._running())
        self._await_load(time.monotonic_ns() + round(START_S_MAX * NS_PER_S))

    def exchange(self, peers: Sequence[Peer], count: int, period_ns: int) -> None:
        """Exchanges this many time stamps with the agents of other hosts, and reports when it is done."""
        if count and self._clocks is not None:
            self._clocks.ask(peers)
            again = partial(self.exchange, peers, count - 1, period_ns)
            self._due.append((time.monotonic_ns() + period_ns, again))
        else:
            self._await_answers(time.monotonic_ns() + ANSWER_NS)

    def exchange_until(self, peers: Sequence[Peer], at_ns: int, period_ns: int, until_ns: int) -> None:
        """Exchanges time stamps now and then, at times on this host's clock."""
        self._due.append((at_ns, partial(self._ask_on, peers, at_ns, period_ns, until_ns)))

    def _ask_on(self, peers: Sequence[Peer], at_ns: int, period_ns: int, until_ns: int) -> None:
        if self._clocks is not None:
            self._clocks.ask(peers)
        if at_ns + period_ns < until_ns:
            self.exchange_until(peers, at_ns + period_ns, period_ns, until_ns)

    def _await_answers(self, deadline_ns: int) -> None:
        clocks = self._clocks
        if clocks is not None and clocks.waits and time.monotonic_ns() < deadline_ns:
            self._due.append((time.monotonic_ns() + LOOK_NS, partial(self._await_answers, deadline_ns)))
            return
        stamps, pulled_ppm = (clocks.taken(), clocks.pulled_ppm) if clocks is not None else ([], 0.0)
        self._send({"event": "exchanged", "stamps": stamps, "pulled_ppm": pulled_ppm}, None)

    def go(self, workers: Sequence[int], at_ns: int, phases: Mapping[str, int], late: bool) -> None:
        """Makes workers begin at a time on this host's clock. The first call also schedules the observations.

        phases: warmup_ns, measure_ns, drain_ns; late: some connections may be opened after the start.
        """
        if not self._begun:
            self._begun = True
            self._look_on(at_ns, phases, late)
        for worker in workers:
            self.say(worker, b'{"command":"go","at_ns":%d}\n' % at_ns)

    def collect(self) -> None:
        """Reports what was observed since `go`. The companions go on: those of other hosts may need them."""
        load, wrong = self._companions.load, None
        evidence = self._witness.end()
        self._hand_over_probes()
        self._hand_over_scheduler()
        if load is not None:
            wrong = load.end()
        if evidence is not None and self._resources.wanted:
            resources = self._resources.result()
            workers_bytes = resources.workers_bytes(len(self._pipes)) if resources is not None else None
            evidence = replace(evidence, resources=resources, workers_bytes=workers_bytes)
        frame = evidence.as_frame() if evidence is not None else None
        service = self._told_by_services()
        self._send({"event": "evidence", "evidence": frame, "load_wrong": wrong, "service": service}, None)

    def _hand_over_probes(self) -> None:
        """Sends what the workers' probes wrote."""
        for worker, file in enumerate(self._probes):
            content = file.read() if file is not None else None
            called = self._calls.result(worker).as_frame()
            told = {"event": "probed", "worker": worker, "any": content is not None, "called": called}
            self._send(told, content or b"")

    def _hand_over_scheduler(self) -> None:
        """Sends what the kernel's scheduler did, if that was wanted."""
        if self._scheduler is not None:
            result = self._scheduler.end()
            threads = [list(astuple(thread)) for thread in result.threads]
            self._send({"event": "scheduled", "why": result.why, "threads": threads}, result.content)

    def release(self) -> None:
        """Lets the companions end once no worker runs any more."""
        if self._supervised is not None:
            self._companions.release(self._supervised)

    def end(self, salvage: Sequence[int]) -> None:
        """Ends whatever still runs. Hands over the records of some workers, and what the companions did."""
        self._due = []
        last: dict[str, Any] = {"load": None, "daemons": [], "captured": None}
        limited = self._limited.report() if self._limited is not None else None
        # Of a trial in which all workers handed over their records, all is known.
        look = self._look_at_the_end() if salvage or not self._begun else None
        if self._supervised is not None:
            self._forget_descriptors()
            for worker in salvage if self._pipes else ():
                records = self._supervised.salvage(worker)
                self._send(
                    {"event": "salvaged", "worker": worker, "any": records is not None}, bytes(records or b"")
                )
            load = self._companions.load_done(self._supervised)
            daemons = self._companions.daemons_done(self._supervised, self._measure_ns)
            last = {"load": load and asdict(load), "daemons": [asdict(daemon) for daemon in daemons]}
            last["captured"] = self._hand_over_packets(self._supervised)
        self.close()
        self._send({"event": "ended", **last, "limited": limited, "last_look": look and asdict(look)}, None)

    def _look_at_the_end(self) -> LastLook | None:
        """Notes what a trial had that ends early, while its processes still live."""
        supervisor = self._supervised.process_id if self._supervised is not None else None
        numbers = [self._numbers.get(worker, 0) for worker in range(len(self._pipes))]
        return self._last_look.look(supervisor, numbers)

    def _hand_over_packets(self, supervised: Supervised) -> dict[str, Any] | None:
        """Sends the capture's file, and returns the capture's report; None without a capture."""
        captured, capture = self._companions.capture_done(supervised), self._companions.capture
        if captured is None or capture is None:
            return None
        for part in capture.parts():
            self._send({"event": "packets"}, part)
        return asdict(captured)

    def close(self, patience_s: float = TERMINATION_S) -> None:
        """Ends everything without a report. The supervisor has this long for it. May be called twice."""
        self._forget_descriptors()
        self._witness.close()
        self._last_look.close()
        self._resources.close()
        self._calls.close()
        if self._supervised is not None:
            self._supervised.close(patience_s)
            self._supervised = None
        self._stack.close()

    def renew(self) -> None:
        """Renews the supervisor's lease: it ends by itself if this process stops."""
        if self._supervised is not None:
            self._supervised.renew()

    # --- scheduled work ---

    def due_ns(self) -> int | None:
        """Returns when there is something to do next."""
        return min((at_ns for at_ns, _ in self._due), default=None)

    def on_time(self) -> None:
        """Runs what is due."""
        now_ns = time.monotonic_ns()
        ready = sorted((task for task in self._due if task[0] <= now_ns), key=lambda task: task[0])
        self._due = [task for task in self._due if task[0] > now_ns]
        for _, look in ready:
            look()

    def _await_servers(self) -> None:
        supervised = self._running()
        awaited = self._companions.awaited(supervised)
        if awaited is None:
            self._last_look.begin()
            supervised.start_workers()
            port = self._clocks.port if self._clocks is not None else 0
            serving = {"event": "serving", "at_ns": time.monotonic_ns(), "clock_port": port}
            self._send({**serving, "service": self._service}, None)
        elif time.monotonic_ns() > self._started_ns + awaited.timeout_ns:
            self._send({"event": "failed", "reason": awaited.late}, None)
        else:
            self._due.append((time.monotonic_ns() + LOOK_NS, self._await_servers))

    def _await_load(self, deadline_ns: int) -> None:
        load = self._companions.load
        if load is None or load.is_running():
            if load is not None:
                load.begin()
            self._send({"event": "loaded"}, None)
        elif time.monotonic_ns() > deadline_ns:
            output = self._companions.load_words(self._running())
            late = f"load generator '{load.name}' did not start within {START_S_MAX:.0f} s"
            self._send({"event": "failed", "reason": f"interference-died: {late}: {output}"}, None)
        else:
            self._due.append((time.monotonic_ns() + LOOK_NS, partial(self._await_load, deadline_ns)))

    def _look_on(self, at_ns: int, phases: Mapping[str, int], late: bool) -> None:
        """Records the current state, and schedules the next observations."""
        supervised, load = self._running(), self._companions.load
        numbers = [self._numbers.get(worker, 0) for worker in range(len(self._pipes))]
        private = self._isolated and not (load is not None and load.shares_network)
        daemons = self._companions.watch_daemons(supervised, numbers)
        self._witness.begin(supervised.process_id, numbers, private, daemons)
        if self._orders.probed:
            self._open_probes(find_workers(supervised.process_id or 0, numbers))
        if self._scheduler is not None:
            self._scheduler.begin()
        self._measure_ns = phases["measure_ns"]
        measure_ns = at_ns + phases["warmup_ns"]
        self._companions.begin_link(supervised, measure_ns)
        drain_ns = measure_ns + self._measure_ns
        amid_drain_ns = drain_ns + phases["drain_ns"] // 2
        self._due += self._resources.attach(self._processes(), private, at_ns, measure_ns, drain_ns)
        # The mappings of a process are read once: they also give the workers' memory.
        looks = self._resources if self._resources.wanted else self._witness
        self._due.append((amid_drain_ns, looks.look_at_memory))
        if self._limited is not None:
            self._limited.begin()
            self._due.append((amid_drain_ns, self._limited.look))
        if self._scheduler is not None:
            look = partial(self._scheduler.look_at_threads, self._witness.workers)
            self._due += [(at_ns + phases["warmup_ns"] // 4, look), (amid_drain_ns, look)]
            if self._orders.probed:
                attach = partial(self._calls.attach, self._witness.workers, self._scheduler.system_calls)
                self._due.append((at_ns + phases["warmup_ns"] // 4, attach))
                self._due += self._calls.looks(at_ns, measure_ns, drain_ns)
        if late:
            self._due.append((amid_drain_ns, self._witness.look_at_ends_again))
        if (daemon_usage := self._companions.daemons) is not None:
            self._due += [
                (measure_ns - LOOK_AHEAD_NS, daemon_usage.begin),
                (drain_ns - LOOK_AHEAD_NS, daemon_usage.end),
            ]
            self._due.append((amid_drain_ns, daemon_usage.look_at_memory))
        self._due.append((amid_drain_ns, self._resources.parse))  # last: everything is read by then

    def _processes(self) -> list[Process]:
        """Returns the processes that contain the middleware; those that emulate a link do not."""
        workers = enumerate(self._witness.workers)
        processes = [Process(pid, WORKER, worker=place) for place, pid in workers if pid is not None]
        daemon_usage = self._companions.daemons
        daemons = daemon_usage.names if daemon_usage is not None else {}
        return processes + [Process(pid, DAEMON, name) for pid, name in daemons.items() if name != LINK]

    def _open_probes(self, workers: Sequence[int | None]) -> None:
        """Opens the files of the probes, which lie in the workers' own mounts, while all workers live."""
        for pid, name in zip(workers, self._orders.probed, strict=True):
            file = ProbeFile(pid, self._orders.directory, name) if pid is not None else None
            self._probes.append(file)
            if file is not None:
                self._stack.callback(file.close)

    # --- what arrives ---

    def _on_output(self, worker: int, stream: str, descriptor: int) -> bool:
        """Forwards what a worker wrote; returns whether there may be more."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(descriptor)
        self._send({"event": "output", "worker": worker, "stream": stream}, data)
        return bool(data)

    def _on_notices(self) -> None:
        supervised = self._running()
        for notice in supervised.notices():
            event = notice["event"]
            if event == "isolated":
                self._isolated = bool(notice.get("network"))
            elif event == "started":
                self._numbers[int(notice["worker"])] = int(notice["pid"])
                if self._isolated:
                    self._last_look.note_network(supervised.process_id, int(notice["pid"]))
            elif event == "companion-started":
                self._companions.note_start(int(notice["companion"]), int(notice["pid"]))
            elif event == "companion-exited":
                place = int(notice["companion"])
                wrong = self._companions.note_end(place, supervised)
                full_notice = {**notice, "wrong": wrong and asdict(wrong)}
                self._send({"event": "notice", "notice": full_notice}, None)
                continue
            elif event in ("exited", "stopped"):
                self._hear_last_words(int(notice["worker"]))
            elif event == "finished":
                for descriptor in supervised.descriptors():
                    self._selector.unregister(descriptor)
            self._send({"event": "notice", "notice": notice}, None)

    def _hear_last_words(self, worker: int) -> None:
        pipes = self._pipes[worker]
        for stream, descriptor in (("stdout", pipes.stdout), ("stderr", pipes.stderr)):
            while descriptor in self._selector.get_map() and self._on_output(worker, stream, descriptor):
                pass

    # --- small things ---

    def _running(self) -> Supervised:
        if self._supervised is None:
            raise LaunchError("nothing was started")
        return self._supervised

    def _write(self, worker: int) -> None:
        descriptor, unsent = self._pipes[worker].stdin, self._unsent[worker]
        try:
            while unsent:
                del unsent[: os.write(descriptor, unsent)]
        except BlockingIOError:
            if descriptor not in self._selector.get_map():
                self._selector.register(descriptor, selectors.EVENT_WRITE, partial(self._write, worker))
            return
        except BrokenPipeError:
            unsent.clear()  # the supervisor reports its end
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def _forget_descriptors(self) -> None:
        registered = self._selector.get_map()
        mine = [number for pipes in self._pipes for number in (pipes.stdin, pipes.stdout, pipes.stderr)]
        if self._supervised is not None and self._supervised.process_id is not None:
            mine += self._supervised.descriptors()
        for descriptor in mine:
            if descriptor in registered:
                self._selector.unregister(descriptor)
