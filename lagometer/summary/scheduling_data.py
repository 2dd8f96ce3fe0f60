# SPDX-License-Identifier: Apache-2.0
"""The views' data about the scheduler's share of layers, typed as in `lagometer.summary.data`."""

from __future__ import annotations

from lagometer.summary.model import Model


class LayerWaiting(Model):
    """One layer: its stays, how many of them the scheduler data cover completely, and for those the mean time
    that the thread the message waits for was asleep, waiting in a run queue, and running.
    """

    name: str
    stays: int
    known: int
    asleep_ns: float
    waiting_ns: float
    running_ns: float


class RanInstead(Model):
    """What ran on a CPU while threads waited for it, by thread name: its share of all that waiting, how many
    threads have the name, on which CPUs, and its longest time during one stay in a layer.
    """

    name: str
    share: float
    threads: int
    cpus: list[int]
    longest_ns: int


class WaitingShare(Model):
    """Shares for some messages. `known_share`: the part of their time that the scheduler data cover
    completely. The other shares are of that part, and add up to 1.
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
    slowest 1 % of them (null, like `p99_ns`, with fewer than ten above p99). `in_node`: what the receiving
    node does until it publishes, `callback_queue`, `computation` and `idle`, or `bridge`, if it is one
    between domains or adapters; only known stays count. `because` says it in a sentence.
    """

    cell: str
    edge: str
    trials: int
    p99_ns: int | None
    whole: WaitingShare
    slowest: WaitingShare | None
    in_node: list[LayerWaiting]
    because: str
