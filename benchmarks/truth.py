# SPDX-License-Identifier: Apache-2.0
"""`make truth`: whether the bounds of one clock's offset to another contain the true offset.

Two emulated hosts share one kernel, so the true offset of their clocks is known: a time namespace sets one
ahead by a known time, or a preloaded library also makes it run 200 ppm fast. Their agents exchange time
stamps as in a trial (docs/methodology/clocks.md), over links that are clean, that lose and delay (a relay in
user space), or next to load. The hard bound must contain the true offset in every estimate, the narrow one,
on symmetric links, in 99 %, and its median on clean ones must be below a quarter of the smallest round trip.
The agents' own stamps determine that round trip; the one between the kernels' stamps is also reported.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import multiprocessing
import os
import random
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from results import write_result

from lagometer.agent.commands import Command
from lagometer.agent.isolation import directory_of
from lagometer.agent.orders import Orders
from lagometer.installation import supervisor_path
from lagometer.run.hosts.link import AgentLink
from lagometer.run.hosts.netns import NetnsLauncher, Switch
from lagometer.run.hosts.part import Hearing, HostPart
from lagometer.run.worker.clocks import BURST, BURST_PERIOD_NS
from lagometer.stats.trial.offset import Offset, hard_offset, narrowed
from lagometer.store.exchanges import Exchanges, exchanges_of

ROOT = Path(__file__).resolve().parents[1]
ADDRESSES = ("10.77.0.1", "10.77.0.2")
DRIFT_PPM = 200
DRIFT = DRIFT_PPM * 1e-6
AHEAD_S = 86_400
AHEAD_NS = 3_000_000_000
PAUSE_S = 0.1  # between the two bursts of an estimate, which together bound the time between them
NARROW_SHARE_MIN = 0.99
WAIT_S = 60.0

Truth = Callable[[np.ndarray], np.ndarray]  # the offset when our clock shows these times


@dataclass(frozen=True)
class Conditions:
    """there_ms, back_ms: the relay's delay each way, plus up to as much again at random; loss: the share that
    it drops; load: processes that spin."""

    symmetric: bool = True
    drifts: bool = False
    there_ms: float = 0.0
    back_ms: float = 0.0
    loss: float = 0.0
    load: int = 0

    @property
    def relayed(self) -> bool:
        """Whether a relay is between the hosts."""
        return self.there_ms > 0 or self.back_ms > 0 or self.loss > 0


CONDITIONS: Mapping[str, Conditions] = {
    "clean": Conditions(),
    "clean, drifting": Conditions(drifts=True),
    "lossy": Conditions(loss=0.05, there_ms=1e-3, back_ms=1e-3),
    "asymmetric": Conditions(symmetric=False, there_ms=5.0),
    "asymmetric, drifting": Conditions(symmetric=False, drifts=True, back_ms=20.0, loss=0.05),
    "loaded": Conditions(load=2),
}


@dataclass
class Found:
    """The results of the estimates so far."""

    hard: list[bool] = field(default_factory=list)
    narrow: list[bool] = field(default_factory=list)
    hard_ns: list[float] = field(default_factory=list)
    narrow_ns: list[float] = field(default_factory=list)
    round_trip_ns: list[float] = field(default_factory=list)
    kernel_round_trip_ns: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)  # of the narrow bound to the smallest round trip

    def add(self, ours: Exchanges, others: Exchanges, truth: Truth, symmetric: bool) -> None:
        """Judges one estimate, from the exchanges that each side began."""
        times = np.linspace(ours.sent.min(), ours.returned.max(), 33).astype(np.int64)
        hard = hard_offset([ours], [others], DRIFT)
        assert hard is not None
        self.hard.append(_holds(hard, truth, times))
        self.hard_ns.append(_half_width(hard, times))
        round_trip_ns = _smallest(ours, others)
        self.round_trip_ns.append(round_trip_ns)
        by_kernel = ours.by_kernel(), others.by_kernel()
        if any(len(each) for each in by_kernel):
            self.kernel_round_trip_ns.append(_smallest(*by_kernel))
        narrow = narrowed(hard, [ours], [others]) if symmetric else None
        if narrow is not None:
            self.narrow.append(_holds(narrow, truth, times))
            self.narrow_ns.append(_half_width(narrow, times))
            self.ratios.append(self.narrow_ns[-1] / round_trip_ns)


def _smallest(*sides: Exchanges) -> float:
    return float(min(each.round_trips().min() for each in sides if len(each)))


def _holds(offset: Offset, truth: Truth, times: np.ndarray) -> bool:
    low, high = offset.at(times)
    true = truth(times)
    return bool(np.all((low <= true) & (true <= high)))


def _half_width(offset: Offset, times: np.ndarray) -> float:
    low, high = offset.at(times)
    return float((high - low).max()) / 2


# --- the hosts


class Pair:
    """Two emulated hosts with their own clocks, whose agents exchange time stamps."""

    def __init__(self, links: Sequence[AgentLink]) -> None:
        self._parts = [
            HostPart(
                link,
                Orders(
                    network="host",
                    directory=directory_of("host", link.process_id, 0),
                    workers=(Command(("sleep", "3600")),),
                    address=address,
                ),
                [place],
            )
            for place, (link, address) in enumerate(zip(links, ADDRESSES, strict=True))
        ]
        hearing = Hearing(lambda *_: None, lambda *_: None, _fail)
        for part in self._parts:
            part.start(hearing)
        self._until(lambda: all(part.clock_port for part in self._parts))
        # The peers of each, with their addresses.
        self.peers = [
            (part.name, address, part.clock_port)
            for part, address in zip(self._parts, ADDRESSES, strict=True)
        ][::-1]
        self._taken = [0, 0]

    def exchange(self) -> tuple[Exchanges, Exchanges]:
        """Two bursts by both, as before and after a trial; returns the exchanges that each side began."""
        for pause_s in (PAUSE_S, 0.0):
            for part, peer in zip(self._parts, self.peers, strict=True):
                part.exchange([peer], BURST, BURST_PERIOD_NS)
            self._until(lambda: not any(part.exchanging for part in self._parts))
            time.sleep(pause_s)
        return self._new(0), self._new(1)

    def _new(self, place: int) -> Exchanges:
        every = self._parts[place].outcome().exchanged
        new, self._taken[place] = every[self._taken[place] :], len(every)
        return exchanges_of([each[1:] for each in new])

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"an agent did not answer within {WAIT_S:g} s")
            for part in self._parts:
                part.link.renew()
                part.link.flush()
                part.receive()
            select.select([fd for part in self._parts for fd in part.link.descriptors()], [], [], 0.01)


def _fail(reason: str) -> None:
    raise RuntimeError(reason)


@contextlib.contextmanager
def hosts(before: Sequence[str]) -> Iterator[list[AgentLink]]:
    """Two emulated hosts; `before`: words that give the second one its clock."""
    switch = Switch()
    words = ((), before)
    links = [
        AgentLink(
            name, NetnsLauncher(supervisor_path(), switch, name, number, ADDRESSES[number], words[number])
        )
        for number, name in enumerate(("robot", "base"))
    ]
    try:
        for link in links:
            link.open()
        yield links
    finally:
        for link in links:
            link.close()
        switch.close()


def ahead() -> tuple[list[str], Truth]:
    """A time namespace, a day ahead."""
    words = ["unshare", "--time", "--monotonic", str(AHEAD_S), "--fork", "--kill-child"]
    return words, lambda times: np.full(len(times), AHEAD_S * 10**9, dtype=np.int64)


def drifting(library: Path) -> tuple[list[str], Truth]:
    """A preloaded clock, three seconds ahead, that gains 200 µs per second."""
    base_ns = time.monotonic_ns()
    settings = {
        "LD_PRELOAD": library,
        "LAGOMETER_TEST_AHEAD_NS": AHEAD_NS,
        "LAGOMETER_TEST_DRIFT_PPM": DRIFT_PPM,
        "LAGOMETER_TEST_BASE_NS": base_ns,
    }
    mock = [sys.executable, str(ROOT / "tests" / "mock_agent.py"), "elsewhere"]
    words = [*mock, "env", *(f"{name}={value}" for name, value in settings.items())]
    return words, lambda times: (times - base_ns) // 1000 * DRIFT_PPM // 1000 + AHEAD_NS


# --- the relay


@contextlib.contextmanager
def relay(link: AgentLink, conditions: Conditions, target: tuple[str, int]) -> Iterator[int]:
    """A relay in a host's network, at the returned port."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(
        target=_relay, args=(str(link.hello["network"]).split()[-1], conditions, target, writer), daemon=True
    )
    process.start()
    try:
        yield int(reader.recv())
    finally:
        process.kill()
        process.join()


def _relay(network: str, conditions: Conditions, target: tuple[str, int], told: object) -> None:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str((entry / "ns" / "net").readlink()) == network:
                with (entry / "ns" / "net").open() as namespace:
                    _enter(namespace.fileno())
                break
    near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    near.bind((ADDRESSES[0], 0))
    far.connect(target)
    told.send(near.getsockname()[1])  # type: ignore[attr-defined]
    chance, asker = random.Random(1), ("", 0)
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    for number in range(sys.maxsize):
        left_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for each in select.select([near, far], [], [], left_s)[0]:
            if each is near:
                data, asker = near.recvfrom(2048)
            else:
                data = far.recv(2048)
            delay_ms = conditions.there_ms if each is near else conditions.back_ms
            if chance.random() >= conditions.loss:
                at_s = time.monotonic() + delay_ms * (1 + chance.random()) / 1000
                heapq.heappush(waiting, (at_s, number, far if each is near else near, data))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, way, data = heapq.heappop(waiting)
            way.send(data) if way is far else way.sendto(data, asker)


def _enter(namespace: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).setns(namespace, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "entering the network of a host")


# --- the table


def measured(name: str, conditions: Conditions, count: int, library: Path) -> Found:
    """Makes `count` estimates under these conditions."""
    before, truth = drifting(library) if conditions.drifts else ahead()
    found = Found()
    with contextlib.ExitStack() as stack:
        links = stack.enter_context(hosts(before))
        pair = Pair(links)
        if conditions.relayed:
            turned = replace(conditions, there_ms=conditions.back_ms, back_ms=conditions.there_ms)
            for place, each in enumerate((conditions, turned)):
                peer, address, port = pair.peers[place]
                port = stack.enter_context(relay(links[0], each, (address, port)))
                pair.peers[place] = (peer, ADDRESSES[0], port)
        for _ in range(conditions.load):
            spinning = multiprocessing.Process(target=_spin, daemon=True)
            spinning.start()
            stack.callback(spinning.kill)
        for _ in range(count):
            ours, others = pair.exchange()
            if len(ours):
                found.add(ours, others, truth, conditions.symmetric)
    print(_line(name, found), flush=True)
    return found


def _spin() -> None:
    while True:
        pass


def _line(name: str, found: Found) -> str:
    parts = [f"{name:22}", f"{len(found.hard):4} estimates", f"hard {_of(found.hard)}"]
    parts += [f"± {statistics.median(found.hard_ns) / 1000:8.1f} µs"]
    parts += [f"round trip {statistics.median(found.round_trip_ns) / 1000:8.1f} µs"]
    if found.kernel_round_trip_ns:
        parts += [f"in kernels {statistics.median(found.kernel_round_trip_ns) / 1000:8.1f} µs"]
    if found.narrow:
        parts += [f"narrow {_of(found.narrow)}", f"± {statistics.median(found.narrow_ns) / 1000:6.1f} µs"]
        parts += [f"{statistics.median(found.ratios):.3f} of the round trip"]
    return "  ".join(parts)


def _of(holds: Sequence[bool]) -> str:
    return f"{sum(holds)}/{len(holds)}"


def judged(found: Mapping[str, Found]) -> list[str]:
    """The problems; empty if there are none."""
    wrong = [f"{name}: the hard bound missed the truth" for name, each in found.items() if not all(each.hard)]
    narrow = [holds for each in found.values() for holds in each.narrow]
    if narrow and sum(narrow) < NARROW_SHARE_MIN * len(narrow):
        wrong.append(f"the narrow bound had the truth in {_of(narrow)} only")
    for name, each in found.items():
        offered = len(each.narrow)
        if CONDITIONS[name].symmetric and offered < NARROW_SHARE_MIN * len(each.hard):
            wrong.append(f"{name}: only {offered} of {len(each.hard)} estimates have a narrow bound")
    for name in ("clean", "clean, drifting"):
        if name in found and (not found[name].ratios or statistics.median(found[name].ratios) >= 1 / 4):
            wrong.append(f"{name}: the median narrow bound is not below a quarter of the smallest round trip")
    return wrong


def main() -> int:
    """Returns 1 if a bound did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="5 estimates of each kind instead of 100")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("truth: needs root, for emulated hosts", file=sys.stderr)
        return 1
    count = 5 if arguments.smoke else 100
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "drifting_clock.so"
        source = ROOT / "tests" / "preload" / "drifting_clock.c"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        found = {name: measured(name, each, count, library) for name, each in CONDITIONS.items()}
    # A few estimates next to other work say nothing about the width of the narrow bound.
    wrong = [] if arguments.smoke and _all_hold(found) else judged(found)
    for each in wrong:
        print(f"truth: {each}", file=sys.stderr)
    print(write_result("truth", not wrong, [row_of(name, each) for name, each in found.items()]))
    return 1 if wrong else 0


def _all_hold(found: Mapping[str, Found]) -> bool:
    return all(all(each.hard) for each in found.values())


def row_of(name: str, found: Found) -> dict[str, object]:
    """One condition's row of the result; times are medians, null if there are none."""
    return {
        "condition": name,
        "estimates": len(found.hard),
        "hard_holds": sum(found.hard),
        "hard_ns": statistics.median(found.hard_ns),
        "round_trip_ns": statistics.median(found.round_trip_ns),
        "kernel_round_trip_ns": _median(found.kernel_round_trip_ns),
        "narrow_holds": sum(found.narrow) if found.narrow else None,
        "narrow_estimates": len(found.narrow),
        "narrow_ns": _median(found.narrow_ns),
        "narrow_share_of_round_trip": _median(found.ratios),
    }


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


if __name__ == "__main__":
    sys.exit(main())
