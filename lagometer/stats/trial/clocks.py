# SPDX-License-Identifier: Apache-2.0
"""The offset between the clocks at both ends of an edge or chain in a trial, and what it means for figures
that subtract one clock from the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lagometer.stats.trial.offset import Offset, confirmed, hard_offset, narrowed
from lagometer.store.exchanges import PTP, HostExchanges, ToldOffset
from lagometer.store.facts import TrialFacts
from lagometer.units import duration_text

Times = npt.NDArray[np.int64]
Clocks = tuple[str, str]  # of the sender and of the receiver


@dataclass(frozen=True)
class Offsets:
    """By the clocks of sender and receiver. warnings: what could not be determined, and why."""

    by_clocks: Mapping[Clocks, Offset]
    warnings: tuple[str, ...] = ()

    def on_senders_clock(self, clocks: Clocks, times_ns: Times) -> tuple[Times, Times] | None:
        """Returns how much to subtract from the receiver's times to put them on the sender's clock, and how
        far off that may be; None if nothing is known. times_ns: on the receiver's clock."""
        offset = self.by_clocks.get(clocks)
        if offset is None:
            return None
        # The offset is a function of the sender's clock, which is the unknown. So the first guess evaluates
        # it at the receiver's time. The second guess is off by at most the drift over its error.
        first, _ = _middle(offset, times_ns)
        middle, half_width = _middle(offset, times_ns - first)
        if np.any(half_width < 0):
            return None  # the exchanges then contradict each other
        return middle, half_width + np.ceil(half_width * offset.drift).astype(np.int64) + 1

    def bounds(self, clocks: Clocks, times_ns: Times) -> Times:
        """Returns how far off times of the receiver may be that are already on the sender's clock."""
        middle, half_width = _middle(self.by_clocks[clocks], times_ns)
        shown = self.on_senders_clock(clocks, times_ns + middle)
        return half_width if shown is None else np.maximum(half_width, shown[1])


def _middle(offset: Offset, times_ns: Times) -> tuple[Times, Times]:
    low, high = offset.at(times_ns)
    middle = low + (high - low) // 2
    return middle, high - middle


def clock_offsets(facts: TrialFacts) -> Offsets:
    """Returns what a trial's exchanges say about each pair of clocks that an edge or chain joins."""
    if not facts.exchanges:
        return Offsets({})
    offsets: dict[Clocks, Offset] = {}
    warnings: list[str] = []
    senders = dict.fromkeys(edge.sender_clock for edge in facts.edges)
    receivers = dict.fromkeys(edge.receiver_clock for edge in facts.edges)
    for clocks in ((sender, receiver) for sender in senders for receiver in receivers):
        ours = [
            exchanges for exchanges in facts.exchanges if (exchanges.clock, exchanges.other_clock) == clocks
        ]
        others = [
            exchanges for exchanges in facts.exchanges if (exchanges.other_clock, exchanges.clock) == clocks
        ]
        if clocks[0] == clocks[1] or not (ours or others):
            continue
        offset, of_pair = _offset(ours, others, _instants(facts))
        warnings += of_pair
        if offset is not None:
            offsets[clocks] = offset
    return Offsets(offsets, tuple(dict.fromkeys(warnings)))


def _offset(
    ours: Sequence[HostExchanges], others: Sequence[HostExchanges], instants: Times
) -> tuple[Offset | None, list[str]]:
    """Returns the offset with the best bound that there is, and warnings."""
    all_exchanges = [*ours, *others]
    names = " and ".join(sorted({all_exchanges[0].host, all_exchanges[0].other}))
    stamps = [exchanges.stamps for exchanges in ours], [exchanges.stamps for exchanges in others]
    offset = hard_offset(*stamps, drift=max(exchanges.drift for exchanges in all_exchanges))
    if offset is None:
        return None, [f"clock-unknown: {names} exchanged no time stamps, so there is no latency between them"]
    low, high = offset.at(instants)
    if np.any(high < low):
        why = "their clocks ran apart by more than their `drift_ppm`, or were set"
        return None, [
            f"clock-unknown: the time stamps of {names} contradict each other: {why}; there is no latency"
        ]
    told = _told(ours, others)
    warnings = [_disagreement(names, each, low, high) for each in told.values()]
    warnings = [warning for warning in warnings if warning]
    if all(exchanges.symmetric for exchanges in all_exchanges):
        narrow = narrowed(offset, *stamps)
        if narrow is not None:
            return narrow, warnings
        why = "too few exchanges, or exchanges that no such link has"
        bound = (
            f"clock-bound: the link of {names} is declared symmetric, but has {why}: the hard bound applies"
        )
        return offset, [*warnings, bound]
    if PTP not in told:
        return offset, warnings
    narrow = narrowed(offset, *stamps)
    by_ptp = confirmed(narrow, told[PTP], instants) if narrow is not None else None
    if narrow is not None and by_ptp is None and not warnings:
        why = "each way of their link takes a different time, or PTP is wrong"
        warnings = [
            f"clock-bound: PTP does not confirm the time stamps of {names}: {why}: the hard bound applies"
        ]
    return by_ptp or offset, warnings


def _told(ours: Iterable[HostExchanges], others: Iterable[HostExchanges]) -> dict[str, ToldOffset]:
    """Returns what services say of how far the other's clock is ahead of ours, by service."""
    told = [each for exchanges in ours for each in exchanges.told]
    told += [each.reversed() for exchanges in others for each in exchanges.told]
    return {each.source: each for each in told}


def _disagreement(names: str, told: ToldOffset, low: Times, high: Times) -> str:
    """Returns a warning if a service's own bound of the offset and that of the exchanges have nothing in
    common at some instant; empty if they agree."""
    gap_ns = int(max((told.least_ns - high).max(), (low - told.most_ns).max()))
    if gap_ns <= 0:
        return ""
    widest_ns = int((high - low).max()) // 2
    bounds = f"{duration_text(told.error_ns)} and {duration_text(widest_ns)}"
    return (
        f"clock-disagrees: {told.source} and the time stamps that {names} exchanged differ by "
        f"{duration_text(gap_ns)} more than their bounds of {bounds} allow; the time stamps count"
    )


def _instants(facts: TrialFacts) -> Times:
    """Returns instants spread over the trial."""
    return np.linspace(facts.begin_ns, facts.drain_end_ns, 257).astype(np.int64)
