# SPDX-License-Identifier: Apache-2.0
"""What every view is given of the scheduler's share of layers, typed as in `lagometer.summary.data`."""

from __future__ import annotations

from lagometer.summary.model import Model


class LayerWaiting(Model):
    """One layer: its stays, those of which the scheduler tells everything, and of these the mean time asleep,
    waiting in a run queue, and running, of the thread that the message waits for.
    """

    name: str
    stays: int
    known: int
    asleep_ns: float
    waiting_ns: float
    running_ns: float


class RanInstead(Model):
    """Who ran on a CPU while threads waited for it, by name: its share of all that waiting, how many threads
    bear the name, on which CPUs, and how long at most during one stay in a layer.
    """

    name: str
    share: float
    threads: int
    cpus: list[int]
    longest_ns: int


class WaitingShare(Model):
    """Of some messages. `known_share`: of their time, that of which the scheduler tells everything; the other
    shares are of this, and add up to 1.
    """

    messages: int
    latency_ns: float
    known_share: float
    asleep_share: float
    waiting_share: float
    running_share: float
    layers: list[LayerWaiting]
    instead: list[RanInstead]


class CellScheduling(Model):
    """The scheduler's share of the layers of one edge, over all messages of the valid trials, and over the
    slowest 1 % of them (null, as `p99_ns`, with fewer than ten above p99). `in_node`: what the receiving node
    does until it publishes, `computation` and `idle`; those alone are counted that are known. `because` says
    it in a sentence.
    """

    cell: str
    edge: str
    trials: int
    p99_ns: int | None
    whole: WaitingShare
    slowest: WaitingShare | None
    in_node: list[LayerWaiting]
    because: str
