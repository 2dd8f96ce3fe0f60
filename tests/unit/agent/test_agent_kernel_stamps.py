# SPDX-License-Identifier: Apache-2.0
"""The kernel's stamps of what comes, brought to CLOCK_MONOTONIC: against clocks that are made up, so that the
truth is known, and that are set at any time."""

from __future__ import annotations

import socket
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.agent.kernel_stamps import (
    ATTEMPTS,
    BESIDE_BYTES,
    READINGS,
    UNKNOWN,
    KernelStamps,
    stamp_of,
    wish_for_stamps,
)

US, MS, S = 1_000, 1_000_000, 1_000_000_000
READ_NS = 40
WIDTH_NS = 2 * READ_NS  # of a reading's bracket, at most


class Machine:
    """A host whose time goes on by what is done, and whose clock of the day may be set."""

    def __init__(self, ahead_ns: int = 5 * S, real_ns: int = 1_700_000_000 * S) -> None:
        self.now_ns, self._ahead_ns, self.real_ns = 1_000 * S, ahead_ns, real_ns

    def monotonic(self) -> int:
        """In a time namespace, so with a distance of its own."""
        self.now_ns += READ_NS
        return self.now_ns + self._ahead_ns

    def real(self) -> int:
        self.now_ns += READ_NS
        return self.now_ns + self.real_ns

    def receive(self) -> tuple[int, int]:
        """The kernel's stamp of a datagram, and the true time on CLOCK_MONOTONIC."""
        return self.now_ns + self.real_ns, self.now_ns + self._ahead_ns

    def stamps(self) -> KernelStamps:
        return KernelStamps(self.monotonic, self.real)


def heard(
    machine: Machine, stamps: KernelStamps, stamp_ns: int, since_ns: int | None = None
) -> tuple[int, int]:
    """How long it had lain when it was taken now, and when that was."""
    came_ns = machine.monotonic()
    stamps.look()
    return stamps.lain_ns(stamp_ns, came_ns, since_ns), came_ns


# What happens at a datagram: pauses before and after it came, when the clock of the day is set, by how much.
steps = st.one_of(st.integers(-500, 500), st.integers(-10 * S, 10 * S))
happenings = st.tuples(
    st.integers(0, 100 * MS), st.integers(0, 10 * MS), st.sampled_from(["", "before", "after"]), steps
)


@settings(max_examples=300, deadline=None)
@given(st.integers(-(10**15), 10**15), st.lists(happenings, min_size=1, max_size=30))
def test_a_stamp_is_never_early_whenever_the_clock_is_set(
    ahead_ns: int, every: list[tuple[int, int, str, int]]
) -> None:
    """Set at most once between two looks; where that is to be seen, nothing is said of what came then."""
    machine = Machine(ahead_ns)
    stamps = machine.stamps()
    for before_ns, after_ns, when, step_ns in every:
        machine.now_ns += before_ns
        machine.real_ns += step_ns if when == "before" else 0
        stamp_ns, true_ns = machine.receive()
        machine.now_ns += after_ns
        machine.real_ns += step_ns if when == "after" else 0
        lain_ns, came_ns = heard(machine, stamps, stamp_ns)
        if when and abs(step_ns) > 2 * WIDTH_NS:
            assert lain_ns == UNKNOWN
        if lain_ns != UNKNOWN:
            assert true_ns <= came_ns - lain_ns <= came_ns
        if not when and before_ns > US and after_ns > US:
            assert came_ns - lain_ns - true_ns <= 2 * WIDTH_NS and lain_ns != UNKNOWN


@settings(max_examples=100, deadline=None)
@given(st.integers(1, READINGS), st.integers(0, READINGS), st.sampled_from([0, 5 * MS, -5 * MS]))
def test_of_several_that_came_at_once_none_is_early(count: int, step_at: int, step_ns: int) -> None:
    """The looks for the first of them are behind the stamps of the others."""
    machine = Machine()
    stamps = machine.stamps()
    machine.now_ns += MS
    came = []
    for _ in range(count):
        came.append(machine.receive())
        machine.now_ns += 20 * US
    for place, (stamp_ns, true_ns) in enumerate(came):
        if place == step_at:
            machine.real_ns += step_ns
        lain_ns, came_ns = heard(machine, stamps, stamp_ns)
        is_set = step_ns != 0 and place >= step_at
        assert (lain_ns == UNKNOWN) == is_set or place == READINGS - 1
        assert lain_ns == UNKNOWN or true_ns <= came_ns - lain_ns <= came_ns


def test_a_look_that_was_interrupted_counts_less_than_one_that_was_not() -> None:
    machine = Machine()
    stamps = machine.stamps()
    machine.now_ns += MS
    stamp_ns, true_ns = machine.receive()
    machine.now_ns += 50 * US
    reads = iter(range(3 * ATTEMPTS))
    real = machine.real

    def interrupted() -> int:
        shown_ns = real()
        machine.now_ns += MS if next(reads) < ATTEMPTS - 1 else 0
        return shown_ns

    stamps._real = interrupted
    lain_ns, came_ns = heard(machine, stamps, stamp_ns)
    assert 0 <= came_ns - lain_ns - true_ns <= 2 * WIDTH_NS


def test_what_makes_no_sense_is_not_used() -> None:
    machine = Machine()
    stamps = machine.stamps()
    machine.now_ns += MS
    sent_ns = machine.monotonic()
    stamps.look()
    machine.now_ns += 30 * US
    stamp_ns, _ = machine.receive()
    machine.now_ns += 30 * US
    assert heard(machine, stamps, stamp_ns, sent_ns)[0] >= 30 * US
    assert stamps.lain_ns(None, machine.monotonic()) == UNKNOWN
    wrong = ((S, "after it was taken"), (-100 * US, "before the question"), (-S, "before all looks"))
    for wrong_ns, why in wrong:
        assert heard(machine, stamps, stamp_ns + wrong_ns, sent_ns)[0] == UNKNOWN, why
    assert heard(machine, stamps, stamp_ns - S)[0] == UNKNOWN, "before all looks, of a question"


def test_the_kernels_stamp_is_found_beside_a_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        assert wish_for_stamps(end)
        end.bind(("127.0.0.1", 0))
        end.sendto(b"word", end.getsockname())
        _, beside, _, _ = end.recvmsg(16, BESIDE_BYTES)
        stamp_ns = stamp_of(beside)
    assert stamp_ns is not None and stamp_ns > 10**18
    assert stamp_of([]) is None
    assert stamp_of([(socket.SOL_SOCKET, 1, struct.pack("@ll", 1, 2))]) is None
    assert stamp_of([(level, kind, data[:8]) for level, kind, data in beside]) is None


def test_a_socket_that_stamps_nothing_is_no_error() -> None:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.close()
    assert not wish_for_stamps(end)
