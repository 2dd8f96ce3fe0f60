# SPDX-License-Identifier: Apache-2.0
"""The number of messages behind a row of performance_test.

A row contains `floor(messages / time)`, so r per second in t seconds are at least r t and fewer than (r + 1)
t messages; with k publishers or subscribers, each rounded down separately, fewer than (r + k) t. If t is much
longer than a second, several numbers fit. Bytes per second (`data_received`) are rounded down too, but are
large numbers: with messages of one size they resolve more finely, and all rows together determine the size.
From 1.1.1 to 1.5 the bytes of a subscriber's loop without messages are those of its last loop with any, since
only the counts start again from 0.

The time: from 1.1.1 on, `T_loop` is the divisor of the row. Up to 1.1.0 it is not: the divisor of each row
was the time between two readings, which is the time between the starts of two loops, that is, the *previous*
row's own time plus the time to write it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from lagometer.exchange.imports.performance_test_rows import Row

DIGITS_S = 6e-7  # times have six decimals in CSV
SINGLE = 1.2e-7  # and passed through a float with 24 bits
JITTER_S = 1e-3  # up to 1.1.0: the most by which two loops' one-second sleeps may differ in lateness
AFTER_IGNORED_S = (
    2e-3  # likewise, if rows before the first one were ignored, since its divisor is then its own time
)
MANY = 10  # messages of each subscriber, beside which an earlier row's bytes of one would be too many


@dataclass(frozen=True)
class Span:
    """At least `low`, at most `high` messages."""

    low: int
    high: int

    @property
    def exact(self) -> bool:
        """Whether only one number is possible."""
        return self.low == self.high

    @property
    def middle(self) -> int:
        """The number in the middle, the lower of two."""
        return (self.low + self.high) // 2


@dataclass(frozen=True)
class Divisor:
    """The time by which a row's counts were divided, and by how much that may be wrong."""

    seconds: float
    error: float


def divisors(rows: Sequence[Row], between_starts: bool, json: bool) -> list[Divisor]:
    """One per row. `between_starts`: as up to 1.1.0; the first row must have had others before it."""
    row_divisors: list[Divisor] = []
    for index, row in enumerate(rows):
        digits = 0.0 if json else DIGITS_S + SINGLE * row.took_s
        if not between_starts:
            row_divisors.append(Divisor(row.took_s, digits))
        elif index == 0:
            row_divisors.append(Divisor(row.took_s, digits + AFTER_IGNORED_S))
        else:
            previous = rows[index - 1]
            took = (row.experiment_s - row.took_s) - (previous.experiment_s - previous.took_s)
            single = 0.0 if json else 2 * DIGITS_S + 2 * SINGLE * row.experiment_s
            row_divisors.append(Divisor(max(took, 0.0), JITTER_S + single))
    return row_divisors


def messages(per_second: int, time: Divisor, entities: int) -> Span:
    """The possible numbers of messages behind a count per second."""
    if time.seconds == 1.0 and entities == 1:
        return Span(per_second, per_second)
    low = per_second * (time.seconds - time.error)
    if per_second and time.seconds > 1.0:
        # A loop sleeps for a second, so it is longer than one: r messages would have been fewer per second.
        low = max(low, per_second + 1e-9)
    high = (per_second + entities) * (time.seconds + time.error)
    least = math.ceil(low - 1e-12 * per_second)
    return Span(least, max(least, math.ceil(high - 1e-9) - 1))


def received(
    rows: Sequence[Row],
    times: Sequence[Divisor],
    subscribers: int,
    per_second: bool,
    first: Row | None = None,
) -> list[Span]:
    """The messages of each row. `per_second`: its latencies are its own, so they prove there were any.

    first: the row before, if its counts are meaningless.
    """
    sizes = _sizes(rows, subscribers)
    spans = []
    for (before, row), time in zip(itertools.pairwise((first, *rows)), times, strict=True):
        assert row is not None
        span = messages(row.received, time, subscribers)
        if row.received or (per_second and row.heard):
            span = Span(max(1, span.low), max(1, span.high))
            spans.append(_narrowed(span, row, time, sizes, subscribers))
        elif per_second or _repeats_bytes(before, row, time, span.high, sizes, subscribers):
            spans.append(Span(0, 0))
        else:
            # A message changes the latencies so far, but four digits may not show it.
            changed = before is not None and _figures(row) != _figures(before)
            fresh = _narrowed(Span(1, max(1, span.high)), row, time, sizes, subscribers)
            spans.append(fresh if changed else Span(0, fresh.high))
    return spans


def _repeats_bytes(
    before: Row | None,
    row: Row,
    time: Divisor,
    most: int,
    sizes: tuple[float, float] | None,
    subscribers: int,
) -> bool:
    """Whether the bytes of a row that counts 0 per second are an earlier row's: too many for its messages."""
    if not row.data_bytes:
        return True
    if sizes is None or row.data_bytes * (time.seconds - time.error) <= most * sizes[1]:
        return False
    if subscribers == 1:
        return True
    # One of several could have had a message, beside the others' earlier bytes: then the sum changes.
    return (
        before is not None
        and not before.since_boot
        and row.data_bytes * row.took_s < (before.data_bytes + subscribers) * before.took_s
        and before.data_bytes * before.took_s < (row.data_bytes + subscribers) * row.took_s
    )


def _figures(row: Row) -> tuple[str, ...]:
    """What is printed of the latencies; as text, so that a missing number equals another."""
    return tuple(map(str, (row.least_s, row.most_s, row.mean_s, row.variance_s2)))


def total(spans: Sequence[Span]) -> Span:
    """The sum."""
    return Span(sum(span.low for span in spans), sum(span.high for span in spans))


def _sizes(rows: Sequence[Row], subscribers: int) -> tuple[float, float] | None:
    """The bounds of the message size in bytes, if all have the same size; None if it is unknown."""
    counted = [row for row in rows if row.received and row.data_bytes and _own_bytes(row, subscribers)]
    if not counted:
        return None
    size_min = max(row.data_bytes / (row.received + subscribers) for row in counted)
    size_max = min((row.data_bytes + subscribers) / row.received for row in counted)
    size_min, size_max = math.ceil(size_min - 1e-6), math.floor(size_max + 1e-6)
    return (size_min, size_max) if 0 < size_min <= size_max else None


def _own_bytes(row: Row, subscribers: int) -> bool:
    """Whether the bytes of a row with messages are its own alone. Of several subscribers each adds those of
    its last loop with any; of one with many messages in each loop they would not fit the count."""
    return subscribers == 1 or row.received >= MANY * subscribers


def _narrowed(
    span: Span, row: Row, time: Divisor, sizes: tuple[float, float] | None, subscribers: int
) -> Span:
    """The part of a span that matches the bytes; the whole span if they contradict it.

    If some of the bytes may be an earlier row's, they show only the most.
    """
    if sizes is None or not row.data_bytes or span.exact:
        return span
    low = math.ceil(row.data_bytes * (time.seconds - time.error) / sizes[1] - 1e-6)
    high = math.floor((row.data_bytes + subscribers) * (time.seconds + time.error) / sizes[0] + 1e-6)
    least = max(span.low, low) if _own_bytes(row, subscribers) else span.low
    most = min(span.high, high)
    return Span(least, most) if least <= most else span
