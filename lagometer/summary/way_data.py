# SPDX-License-Identifier: Apache-2.0
"""The views' data about single messages, typed as in `lagometer.summary.data`."""

from __future__ import annotations

from lagometer.summary.model import Model


class WayRow(Model):
    """One row of a timeline: a thread of a process. `worker` and `number` (in the trial's own namespace) are
    null if unknown.
    """

    worker: str | None
    thread: str
    number: int | None


class RanDuring(Model):
    """What ran on a CPU while a stay's thread waited for it, and for how long. `thread`: its id on the
    machine.
    """

    name: str
    thread: int
    cpu: int
    ran_ns: int


class StayShare(Model):
    """How long the thread a message waits for slept, waited for a CPU, and ran; together the stay."""

    asleep_ns: int
    waiting_ns: int
    running_ns: int
    instead: list[RanDuring]


class Stay(Model):
    """A message's stay in one layer, in nanoseconds since the first publish. It begins on the row `row` and
    ends on `end_row`: indices into `MessageWay.rows`, which differ if one thread hands over to another.

    `layer`: one of those of `layers: on`; or `communication`, from publish to taken if there are none;
    `bridge`, between taken and publish in a bridge between domains or adapters, and `computation` in any
    other node; before that `callback_queue`, while the callbacks of messages run that the same call took;
    `idle`, after a callback until the one that uses its data; `unattributed`. `edge` and
    `sequence`: of the message that was there; in a node, of the message taken. `scheduler`: of the thread at
    its end; null if the scheduler was not recorded, or its data do not cover the whole stay.
    """

    layer: str
    edge: str
    sequence: int
    begin_ns: int
    end_ns: int
    row: int
    end_row: int
    scheduler: StayShare | None = None


class WayCall(Model):
    """A call on the thread of a row, in nanoseconds since the first publish; it may begin before that, and
    end after the message was taken. A stamp may have no length.

    `name`: a system call's kind (`send`, `receive`, `poll`, `block`, `notify`, `drain`), a call of the
    middleware's interface (`middleware_write`, `middleware_take`, `middleware_wait`), or a stamp of ROS.
    `bytes`: what it sent or received.
    """

    row: int
    name: str
    begin_ns: int
    end_ns: int
    bytes: int | None


class RanInstead(Model):
    """What ran on a CPU while a thread waited for it, in nanoseconds since the first publish. `thread`: its
    id on the machine; the name `idle` means that nothing ran.
    """

    name: str
    thread: int
    cpu: int
    begin_ns: int
    end_ns: int


class WokenBy(Model):
    """Who woke a thread: a thread (its id on the machine), or an interrupt that came while that one ran."""

    name: str
    thread: int
    interrupt: bool


class WayState(Model):
    """A state of a row's thread, in nanoseconds since the first publish, cut at both ends of the message.

    `state`: `running` on `cpu`; `waiting` in the run queue of `cpu`, with what ran there `instead`, in order;
    or `asleep`, until `woken_by` woke it (null: not recorded, or after the message was taken). A gap between
    two states is unknown.
    """

    row: int
    state: str
    begin_ns: int
    end_ns: int
    cpu: int | None
    instead: list[RanInstead]
    woken_by: WokenBy | None


class MessageWay(Model):
    """The way of one message, from its publish (`publish_ns`, on the campaign's clock) until it was taken.
    The stays follow one another without a gap, so they add up to `latency_ns`.

    `chosen`: `slowest` (`place` 1 to 3) of all valid trials, `median` of the trial with the middle median, or
    `all`. `edge`: `end-to-end`, or the only edge it is about. `followed`: whether its way through the graph
    was found; otherwise all of it is unattributed. `calls` and `states`: on the threads of `rows`, if layers
    and the scheduler were recorded; `events_left_out`: how many of them were too many.
    """

    cell: str
    trial: int
    edge: str
    chosen: str
    place: int | None
    sequence: int
    publish_ns: int
    latency_ns: int
    followed: bool
    rows: list[WayRow]
    stays: list[Stay]
    calls: list[WayCall]
    states: list[WayState]
    events_left_out: int


class LayerMean(Model):
    """How long messages are in one layer: the mean over them, and its share of the mean latency."""

    name: str
    mean_ns: float
    share: float


class CellLayers(Model):
    """Where the time of a cell's messages goes: means over all messages of the valid trials, which add up to
    `latency_mean_ns`. `unattributed` is always among the layers, and last.

    `categories` and `breakdown` are the same means, summed as in two papers (stats/cell/categories.py). Each
    adds up to `latency_mean_ns` and contains only what was observed, but always the unattributed time.
    `overhead_least`, `overhead_most`: ROS 2's overhead over DDS, null for the reason in `overhead_absent`.

    `of`: `chain`, from the first publish to the last take, if the graph is a single line (`computation` is
    then the time in its nodes, `callback_queue` the wait there for the callbacks of messages that the same
    call took, and `bridge` the time in bridges between domains or adapters); or `edge`, a message on any
    edge. `half`: the layers, the largest first, that together are half of the mean;
    `to_halve` says so.
    """

    cell: str
    trials: int
    messages: int
    of: str
    latency_mean_ns: float
    layers: list[LayerMean]
    half: list[str]
    to_halve: str
    categories: list[LayerMean]
    breakdown: list[LayerMean]
    overhead_least: float | None
    overhead_most: float | None
    overhead_absent: str | None
