# SPDX-License-Identifier: Apache-2.0
"""What a listener heard: ages, periods, losses, and the time in a header."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from lagometer.cli.listen import warnings_of
from lagometer.run.program.listening import Found, Listener
from lagometer.stats.program.heard import INVALID_NS, Heard, figures_of, is_stamped, spread, stamp_ns

MS = 1_000_000
S = 1_000_000_000


def message(sequence: int, source_ns: int, received_ns: int, writer: str = "w", head: bytes = b"") -> Heard:
    """Times count from one second after 1970."""
    return Heard(writer, sequence, S + source_ns, S + received_ns, 100 + sequence, head)


def test_age_period_rate_and_loss_of_two_writers() -> None:
    heard = [
        message(5, 0, 1 * MS),
        message(1, 4 * MS, 6 * MS, "other"),
        message(6, 10 * MS, 12 * MS),
        message(8, 30 * MS, 31 * MS),  # 7 is missing
        message(2, 104 * MS, 106 * MS, "other"),
    ]
    figures = figures_of(heard, stamped=False)
    assert (figures.messages, figures.writers, figures.lost) == (5, 2, 1)
    assert (figures.age.min_ns, figures.age.max_ns, figures.age.p50_ns) == (MS, 2 * MS, None)
    assert (figures.period.count, figures.period.min_ns, figures.period.max_ns) == (3, 11 * MS, 100 * MS)
    assert figures.rate_hz == pytest.approx(1e3 / 15 + 10)
    assert (figures.payload_bytes_min, figures.payload_bytes_max) == (101, 108)
    assert figures.header_age is None


def test_nothing_heard_has_no_figures() -> None:
    figures = figures_of([], stamped=True)
    assert (figures.messages, figures.lost, figures.rate_hz, figures.age.count) == (0, 0, None, 0)


@pytest.mark.parametrize("untimed_ns", [0, -1, INVALID_NS])
def test_a_message_that_does_not_say_when_it_was_sent_has_no_age(untimed_ns: int) -> None:
    """It would be older than fifty years."""
    heard = [Heard("w", 1, untimed_ns, 1_700_000_000 * S, 8, b""), message(2, 4 * MS, 6 * MS)]
    figures = figures_of(heard, stamped=False)
    assert (figures.messages, figures.untimed) == (2, 1)
    assert (figures.age.count, figures.age.max_ns) == (1, 2 * MS)


@pytest.mark.parametrize(
    ("ages_ns", "warns"),
    [((2 * MS, 3 * MS), False), ((-9 * MS, 4000 * S), False), ((4000 * S, 4001 * S), True)],
)
def test_a_header_on_another_clock_is_named(ages_ns: tuple[int, int], warns: bool) -> None:
    """As in a simulation, or when a recording is played."""
    found = Found("sensor_msgs::msg::dds_::Image_", keyed=False, reliable=True, transient_local=False)
    listener = cast("Listener", SimpleNamespace(found=found))
    figures = replace(figures_of([message(1, 0, MS)], stamped=True), header_age=spread(np.array(ages_ns)))
    said = [text for text in warnings_of(listener, figures, "rt/x") if "header.stamp" in text]
    assert bool(said) is warns


def test_a_message_that_comes_twice_is_not_lost() -> None:
    heard = [message(number, 0, number) for number in (1, 2, 2, 4)]
    assert figures_of(heard, stamped=False).lost == 1


def test_a_quantile_needs_ten_messages_beyond_it() -> None:
    found = spread(np.arange(1000))
    assert (found.p50_ns, found.p95_ns, found.p99_ns) == (499, 949, 989)
    assert spread(np.arange(999)).p99_ns is None


@pytest.mark.parametrize(("order", "first"), [("<", b"\0\1\0\0"), (">", b"\0\0\0\0")])
def test_the_time_of_a_header_is_read_in_its_byte_order(order: str, first: bytes) -> None:
    head = first + struct.pack(f"{order}iI", 1_700_000_000, 999_999_999)
    assert stamp_ns(head) == 1_700_000_000 * S + 999_999_999
    assert figures_of([message(0, 0, 1_700_000_000 * S, head=head)], stamped=True).header_age == spread(
        np.array([1])
    )


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\0\1\0\0" + b"\1" * 7,
        b"\0\1\0\0" + struct.pack("<iI", 5, S),
        b"\0\1\0\0" + struct.pack("<iI", 0, 0),
        b"\0\7\0\0" + struct.pack("<iI", 5, 5),
    ],
)
def test_what_can_be_no_header_has_no_time(head: bytes) -> None:
    assert stamp_ns(head) is None


def test_types_that_begin_with_a_header_are_known_by_their_names() -> None:
    assert is_stamped("sensor_msgs::msg::dds_::Image_")
    assert is_stamped("geometry_msgs::msg::dds_::PoseStamped_")
    assert not is_stamped("geometry_msgs::msg::dds_::Pose_")
    assert not is_stamped("std_msgs::msg::dds_::String_")
    assert not is_stamped("Image")
