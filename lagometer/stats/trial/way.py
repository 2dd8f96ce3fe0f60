# SPDX-License-Identifier: Apache-2.0
"""The way of each message from `publish` to `taken`, layer by layer (docs/methodology/layers.md).

A layer lies between two stamps of one thread, or is the hand-over from one thread to another. The time
between two layers is `unattributed`, so a message's layers always add up to its latency.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lagometer.stats.trial.calls import Call, Process
from lagometer.store import probes

UNATTRIBUTED = "unattributed"
# In the order in which a message passes them.
LAYERS = (
    "benchmark",
    "rclcpp_publish",
    "rcl_publish",
    "rmw_publish",
    "serialise",
    "send_path",
    "send_hand_over",
    "send",
    "transport",
    "unseen_transport",
    "receive",
    "receiving_thread",
    "receive_hand_over",
    "wake",
    "notify",
    "until_polled",
    "executor",
    "begin_take",
    "executor_begin_take",
    "wait_begin_take",
    "take",
    "whole_take",
    "deserialise",
    "rmw_take",
    "rcl_take",
    "rclcpp_take",
    "callback",
    UNATTRIBUTED,
)
# ROS 2: each layer and the stamp it begins with. It ends with the next one.
PUBLISHING = (
    ("rclcpp_publish", probes.RCLCPP_PUBLISH),
    ("rcl_publish", probes.RCL_PUBLISH),
    ("rmw_publish", probes.RMW_PUBLISH),
)
# The same, with the stamp it ends with.
TAKING = (
    ("rmw_take", probes.RMW_TAKE),
    ("rcl_take", probes.RCL_TAKE),
    ("rclcpp_take", probes.RCLCPP_TAKE),
    ("callback", probes.CALLBACK_START),
)
UNKNOWN_THREAD = 0
NODE_THREAD = "node:"  # the worker's prefix for a node's thread; the kernel keeps 15 characters
THREAD_NAME_MAX = 15


@dataclass
class Way:
    """The way of one message, built from its beginning to its end."""

    at_ns: int  # so far
    until_ns: int  # when it was taken
    thread: int = 0
    layers: list[tuple[str, int, int, int, int]] = field(default_factory=list)

    def go(self, layer: str, begin_ns: int, end_ns: int, thread: int, end_thread: int | None = None) -> None:
        """Adds a layer. It is left out if it reaches back, or beyond the end: no time counts twice."""
        if begin_ns < self.at_ns or end_ns <= begin_ns or end_ns > self.until_ns:
            return
        self._leave_gap(begin_ns, thread)
        self.at_ns, self.thread = end_ns, thread if end_thread is None else end_thread
        self.layers.append((layer, begin_ns, end_ns, thread, self.thread))

    def split(
        self, layer: str, inner: str, begin_ns: int, end_ns: int, thread: int, part: Span | None
    ) -> None:
        """Adds a layer that contains another one, if that one is known."""
        if part is not None and begin_ns <= part[0] <= part[1] <= end_ns:
            self.go(layer, begin_ns, part[0], thread)
            self.go(inner, *part, thread)
            begin_ns = part[1]
        self.go(layer, begin_ns, end_ns, thread)

    def skip(self, until_ns: int, thread: int) -> None:
        """Marks the time until then as unknown."""
        if self.at_ns < until_ns <= self.until_ns:
            self._leave_gap(until_ns, thread)
            self.thread = thread

    def end(self) -> None:
        """Ends the way: the message has been taken."""
        self._leave_gap(self.until_ns, self.thread)

    def _leave_gap(self, until_ns: int, thread: int) -> None:
        if until_ns > self.at_ns:
            self.layers.append((UNATTRIBUTED, self.at_ns, until_ns, self.thread, thread))
            self.at_ns = until_ns


Span = tuple[int, int]


@dataclass(frozen=True)
class Passage:
    """One message on one edge: our own stamps of it, and where its bytes were seen."""

    publish_ns: int
    published_ns: int
    taken_ns: int
    serialise: Span | None = None
    deserialise: Span | None = None
    first: Call | None = None  # the first call that sent a byte of it
    last: Call | None = None  # the call that sent the last byte to arrive
    received: Call | None = None  # the call that received that byte
    write: Call | None = None  # the middleware's call, if it is clear which one
    take: Call | None = None  # likewise
    publisher: int | None = None  # the publishing thread, if its name shows it
    polled: bool = False  # the node asks for it at times of its own
    signalled_ns: int | None = None  # our own stamps: on the middleware's thread
    woken_ns: int | None = None  # on the node's


def thread_name(node: str) -> str:
    """What the kernel keeps of the name the worker gives a node's thread."""
    return f"{NODE_THREAD}{node}"[:THREAD_NAME_MAX]


def way_of(passage: Passage, sender: Process | None, receiver: Process | None, node: str) -> Way:
    """The way of one message. node: the reader's; its name identifies its thread."""
    way = Way(passage.publish_ns, passage.taken_ns)
    if sender is not None:
        _leave_sender(way, passage, sender)
    if receiver is not None:
        if passage.last is not None and passage.received is not None:
            _cross(way, passage.last, passage.received, receiver)
        stays = sender is receiver and passage.first is None and passage.received is None
        if stays:
            passage = _stay(way, passage, receiver)
        elif passage.received is None and sender is not None and sender is not receiver:
            passage = _cross_unseen(way, passage, sender, receiver)
        _arrive(way, passage, receiver, node, stays=stays)
    way.end()
    return way


def _leave_sender(way: Way, passage: Passage, sender: Process) -> None:
    """From `publish` to the call that sent the last byte."""
    first = passage.first
    write = _write_of(passage, sender)
    begin_ns = passage.publish_ns
    if write is not None:
        if not _publish_by_ros2(way, sender, write):
            way.go("benchmark", begin_ns, write.begin_ns, write.thread)
        begin_ns = write.begin_ns
    if first is None:
        if write is not None and passage.serialise is not None:
            way.split(
                "send_path", "serialise", begin_ns, passage.serialise[1], write.thread, passage.serialise
            )
        return
    # Without a middleware interface, the thread that sends at the right time counts as the publishing one.
    thread = write.thread if write is not None else passage.publisher
    thread = first.thread if thread is None else thread
    # A program may let messages gather and send them with a later call of its own.
    if first.thread == thread and (write is not None or first.begin_ns <= passage.published_ns):
        way.split("send_path", "serialise", begin_ns, first.begin_ns, thread, passage.serialise)
    elif first.thread != thread:
        for notification, woken in sender.handed_over(thread, first.thread, begin_ns, first.begin_ns) or ():
            way.split(
                "send_path",
                "serialise",
                max(begin_ns, way.at_ns),
                notification.begin_ns,
                notification.thread,
                passage.serialise,
            )
            way.go("send_hand_over", notification.begin_ns, woken.end_ns, notification.thread, woken.thread)
        if way.thread == first.thread:
            way.go("send_path", way.at_ns, first.begin_ns, first.thread)
    if passage.last is not None:
        way.go("send", first.begin_ns, passage.last.begin_ns, first.thread, passage.last.thread)


def _publish_by_ros2(way: Way, sender: Process, write: Call) -> bool:
    """From `publish` through ROS 2 to the middleware's write; returns whether ROS 2 stamped any of it. A
    layer without an end stamp is left out, since it may contain another one."""
    begins: list[int | None] = []
    for _, kind in PUBLISHING:
        stamp = sender.last(kind, write.thread, way.at_ns - 1, write.begin_ns)
        stamp = stamp or sender.following(kind, write.thread, write.begin_ns, write.begin_ns)
        known = stamp is not None and stamp.begin_ns >= way.at_ns
        begins.append(stamp.begin_ns if stamp is not None and known else None)
    if begins[0] is not None:  # in Python, ROS 2 runs code of its own before
        way.go("benchmark", way.at_ns, begins[0], write.thread)
    for (layer, _), begin_ns, end_ns in zip(PUBLISHING, begins, [*begins[1:], write.begin_ns], strict=True):
        if begin_ns is not None and end_ns is not None:
            way.go(layer, begin_ns, end_ns, write.thread)
    return any(begin is not None for begin in begins)


def _write_of(passage: Passage, sender: Process) -> Call | None:
    """The middleware interface's call that sent the message; None if several may have."""
    if passage.write is not None:
        return passage.write
    if not sender.knows(probes.API_WRITE):
        return _write_by_ros2(passage, sender)
    calls = sender.within(probes.API_WRITE, None, passage.publish_ns, passage.published_ns)
    if passage.first is not None:
        same_thread = [call for call in calls if call.thread == passage.first.thread]
        calls = same_thread or calls
    return calls[0] if len({call.thread for call in calls}) == 1 else None


def _write_by_ros2(passage: Passage, sender: Process) -> Call | None:
    """For a probe without a middleware call: ROS 2 stamps `rmw_publish` right before it."""
    stamps = sender.within(probes.RMW_PUBLISH, None, passage.publish_ns, passage.published_ns)
    if len({stamp.thread for stamp in stamps}) != 1:
        return None
    return Call(stamps[0].begin_ns, passage.published_ns, stamps[0].thread)


def _cross(way: Way, last: Call, received: Call, receiver: Process) -> None:
    """From the call that sent the last byte until the receiving thread has it."""
    sent_ns = last.begin_ns
    thread = received.thread
    wait = receiver.last(probes.WAIT, thread, sent_ns, received.begin_ns)
    if wait is not None:
        way.go("transport", sent_ns, wait.end_ns, last.thread, thread)
        way.go("receive", wait.end_ns, received.end_ns, thread)
    elif received.begin_ns > sent_ns:  # the thread was busy in between
        way.go("transport", sent_ns, received.begin_ns, last.thread, thread)
        way.go("receive", received.begin_ns, received.end_ns, thread)
    else:  # the thread waited within this call
        way.go("transport", sent_ns, received.end_ns, last.thread, thread)


def _stay(way: Way, passage: Passage, process: Process) -> Passage:
    """Within a process, a DDS hands a message over while it writes, without a socket. So the way continues on
    that call's thread: where it notifies the taking thread, or otherwise at the call's end."""
    write = _write_of(passage, process) if process.knows(probes.API_WRITE) else None
    take = passage.take or process.last(probes.API_TAKE, None, passage.publish_ns, passage.taken_ns)
    if write is None or take is None:
        return passage
    handed_ns = write.end_ns
    woken = process.last(probes.BLOCK, take.thread, write.begin_ns, take.begin_ns)
    if woken is not None:
        notification = process.notified(
            write.thread, woken.object, write.begin_ns, min(woken.end_ns, write.end_ns)
        )
        handed_ns = notification.begin_ns if notification is not None else handed_ns
    if handed_ns > take.begin_ns:  # it was taken in between
        return passage
    way.split("send_path", "serialise", way.at_ns, handed_ns, write.thread, passage.serialise)
    return replace(passage, take=take, received=Call(handed_ns, handed_ns, write.thread))


def _cross_unseen(way: Way, passage: Passage, sender: Process, receiver: Process) -> Passage:
    """Between processes without a system call that delivers the message, as with shared memory: until a
    thread of the receiver notifies the taking thread, or takes the message itself when it calls a listener.
    """
    write = _write_of(passage, sender) if sender.knows(probes.API_WRITE) else None
    take = passage.take or receiver.last(probes.API_TAKE, None, passage.publish_ns, passage.taken_ns)
    if write is None or take is None:
        return passage
    woken = receiver.last(probes.BLOCK, take.thread, write.begin_ns, take.begin_ns)
    waits = receiver.last(probes.API_WAIT, take.thread, 0, take.begin_ns) is not None
    is_node = receiver.names.get(take.thread, "").startswith(NODE_THREAD)  # it polls, perhaps late
    arrival = take if woken is None and not waits and not is_node else None
    if woken is not None:
        arrival = receiver.notified(None, woken.object, write.begin_ns, woken.end_ns)
    if arrival is None or arrival.begin_ns < way.at_ns:
        return passage
    way.go("unseen_transport", way.at_ns, arrival.begin_ns, write.thread, arrival.thread)
    return replace(passage, take=take, received=Call(arrival.begin_ns, arrival.begin_ns, arrival.thread))


def _arrive(way: Way, passage: Passage, receiver: Process, node: str, *, stays: bool) -> None:
    """From when the receiving thread has the last byte until `taken`. stays: the message was handed over
    within the process, so the thread that has it may be the node's own, with other work to do."""
    received, taken_ns = passage.received, passage.taken_ns
    arrived_ns = received.end_ns if received is not None else passage.publish_ns
    if not receiver.knows(probes.API_TAKE) and receiver.knows(probes.RMW_TAKE):
        _arrive_by_ros2(way, passage, receiver, arrived_ns)
        return
    if not receiver.knows(probes.API_TAKE):
        _arrive_by_own_stamps(way, passage, receiver, receiver.thread_named(thread_name(node)))
        return
    take = passage.take or receiver.last(probes.API_TAKE, None, arrived_ns, taken_ns)
    if take is None:
        return
    thread = take.thread
    if received is not None and received.thread == thread and not stays:
        way.go("receiving_thread", arrived_ns, take.begin_ns, thread)
    elif (
        received is not None
        and received.thread != thread
        and (_is_polled(passage, receiver) or _takes_in_callback(take, receiver))
    ):
        way.go("until_polled", arrived_ns, take.begin_ns, received.thread, thread)
    else:
        _wake_up(way, received, take, arrived_ns, receiver)
    way.split("take", "deserialise", take.begin_ns, take.end_ns, thread, passage.deserialise)
    if _take_by_ros2(way, take, taken_ns, receiver):
        way.go("benchmark", way.at_ns, taken_ns, thread)


def _is_polled(passage: Passage, receiver: Process) -> bool:
    """Whether the node itself polls the middleware; in ROS 2 an executor does, which has stamps."""
    return passage.polled and not receiver.knows(probes.RMW_TAKE)


def _takes_in_callback(take: Call, receiver: Process) -> bool:
    """Whether a callback of ROS 2 takes, such as a timer's that polls a subscription: the message waits for
    it, and for what the callback does before."""
    if not receiver.knows(probes.CALLBACK_END):  # without the ends, nothing says whether one still runs
        return False
    began = receiver.last(probes.CALLBACK_START, take.thread, 0, take.begin_ns)
    ended = receiver.last(probes.CALLBACK_END, take.thread, 0, take.begin_ns)
    return began is not None and (ended is None or ended.begin_ns < began.begin_ns)


def _until_polled(way: Way, passage: Passage, received: Call, thread: int) -> None:
    """From when the receiving thread has the last byte until `taken`, if nothing shows when a node that polls
    calls the middleware: of its take, only what follows the deserialising can be told apart."""
    begin_ns, end_ns, inner = received.end_ns, passage.taken_ns, passage.deserialise
    if inner is not None and begin_ns <= inner[0] <= inner[1] <= end_ns:
        way.go("until_polled", begin_ns, inner[0], received.thread, thread)
        way.go("deserialise", *inner, thread)
        way.go("take", inner[1], end_ns, thread)
    else:
        way.go("until_polled", begin_ns, end_ns, received.thread, thread)


def _arrive_by_own_stamps(way: Way, passage: Passage, receiver: Process, thread: int | None) -> None:
    """The same if only our own stamps, and a thread's name, show which thread takes."""
    received, taken_ns = passage.received, passage.taken_ns
    signalled_ns, woken_ns = passage.signalled_ns, passage.woken_ns
    if received is not None and received.thread == thread:
        way.split("take", "deserialise", received.end_ns, taken_ns, received.thread, passage.deserialise)
        return
    if passage.polled and received is not None:
        _until_polled(way, passage, received, thread if thread is not None else UNKNOWN_THREAD)
        return
    on_thread = received.thread if received is not None else way.thread
    if signalled_ns is not None:
        if received is not None:  # some deserialise before they call a listener
            way.split(
                "receiving_thread",
                "deserialise",
                received.end_ns,
                signalled_ns,
                on_thread,
                passage.deserialise,
            )
        if woken_ns is None:  # a listener: the middleware's thread takes
            begin_ns = max(signalled_ns, way.at_ns)
            way.split("take", "deserialise", begin_ns, taken_ns, on_thread, passage.deserialise)
        elif thread is not None:
            way.go("wake", signalled_ns, woken_ns, on_thread, thread)
    elif woken_ns is not None and received is not None and thread is not None:
        _hand_over(way, received, thread, woken_ns, receiver)
        if way.thread == thread:
            way.go("notify", way.at_ns, woken_ns, thread)
    if woken_ns is not None and woken_ns >= way.at_ns:
        # The node's own thread, even if it made no call that shows its number.
        thread = thread if thread is not None else UNKNOWN_THREAD
        way.split("take", "deserialise", woken_ns, taken_ns, thread, passage.deserialise)


def _hand_over(way: Way, received: Call, thread: int, until_ns: int, receiver: Process) -> bool:
    """From the receiving thread to a node's, perhaps through other threads; returns whether that was seen."""
    hops = receiver.handed_over(received.thread, thread, received.end_ns, until_ns) or ()
    for number, (notification, woken) in enumerate(hops):
        way.go("receiving_thread", way.at_ns, notification.begin_ns, notification.thread)
        layer = "wake" if number == len(hops) - 1 else "receive_hand_over"
        way.go(layer, notification.begin_ns, woken.end_ns, notification.thread, woken.thread)
    return bool(hops)


def _arrive_by_ros2(way: Way, passage: Passage, receiver: Process, arrived_ns: int) -> None:
    """The same for a probe without a middleware call: ROS 2 stamps the end of its rmw's take, and an executor
    its start. Without an executor's stamp, the take begins when the node's thread wakes."""
    taken = receiver.last(probes.RMW_TAKE, None, arrived_ns, passage.taken_ns)
    if taken is None:
        return
    executes = receiver.last(probes.EXECUTOR_EXECUTE, taken.thread, arrived_ns, taken.begin_ns)
    woken = receiver.last(probes.BLOCK, taken.thread, arrived_ns, taken.begin_ns)
    begin_ns = woken.end_ns if woken is not None else None
    begin_ns = executes.begin_ns if executes is not None else begin_ns
    if begin_ns is not None:
        take = Call(begin_ns, taken.begin_ns, taken.thread)
        _wake_up(way, passage.received, take, arrived_ns, receiver)
        way.go("whole_take", take.begin_ns, take.end_ns, take.thread)
    way.skip(taken.begin_ns, taken.thread)
    if _take_by_ros2(way, Call(taken.begin_ns, taken.begin_ns, taken.thread), passage.taken_ns, receiver):
        way.go("benchmark", way.at_ns, passage.taken_ns, taken.thread)


def _take_by_ros2(way: Way, take: Call, taken_ns: int, receiver: Process) -> bool:
    """From the middleware's take through ROS 2 to the node's callback; returns whether the rest belongs to
    the node: ROS 2 is not there, or has called it."""
    if way.at_ns != take.end_ns:
        return True
    stamped = False
    begin_ns: int | None = take.end_ns
    for layer, kind in TAKING:
        stamp = receiver.following(kind, take.thread, take.end_ns, taken_ns)
        if stamp is None:
            begin_ns = None
            continue
        stamped = True
        if begin_ns is not None:
            way.go(layer, begin_ns, stamp.begin_ns, take.thread)
        else:  # the time between the two is unknown
            way.skip(stamp.begin_ns, take.thread)
        begin_ns = stamp.begin_ns
        if kind == probes.RCLCPP_TAKE and _takes_itself(take, taken_ns, receiver):
            return True
    return not stamped or begin_ns is not None


def _takes_itself(take: Call, taken_ns: int, receiver: Process) -> bool:
    """Whether no rclcpp executor calls the node back: then `rclcpp_take` returns to the node."""
    called_back = receiver.following(probes.CALLBACK_START, take.thread, take.end_ns, taken_ns)
    return (
        called_back is None and receiver.last(probes.EXECUTOR_EXECUTE, take.thread, 0, take.begin_ns) is None
    )


def _wake_up(way: Way, received: Call | None, take: Call, arrived_ns: int, receiver: Process) -> None:
    """From the receiving thread to the taking thread."""
    thread = take.thread
    woken = receiver.last(probes.BLOCK, thread, arrived_ns, take.begin_ns)
    waited = receiver.last(probes.API_WAIT, thread, arrived_ns, take.begin_ns)
    executes = receiver.last(probes.EXECUTOR_EXECUTE, thread, arrived_ns, take.begin_ns)
    is_unstamped = executes is None and _is_called_back(way, take, receiver)
    if woken is not None and received is not None:
        notification = receiver.notified(received.thread, woken.object, arrived_ns, woken.end_ns)
        if notification is not None:
            way.go("receiving_thread", arrived_ns, notification.begin_ns, received.thread)
            way.go("wake", notification.begin_ns, woken.end_ns, received.thread, thread)
            ready_ns = woken.end_ns if is_unstamped else take.begin_ns
            if waited is not None and waited.end_ns > woken.end_ns:
                ready_ns = waited.end_ns
            way.go("notify", woken.end_ns, ready_ns, thread)
    if is_unstamped:
        ready = [call.end_ns for call in (woken, waited) if call is not None]
        if ready:
            way.go("executor_begin_take", max(ready), take.begin_ns, thread)
    elif executes is None:
        if waited is not None:  # ROS 2's code and the node's own, with no stamp in between
            layer = "wait_begin_take" if receiver.knows(probes.RMW_TAKE) else "benchmark"
            way.go(layer, waited.end_ns, take.begin_ns, thread)
    else:
        if waited is not None:
            way.go("executor", waited.end_ns, executes.begin_ns, thread)
        way.go("begin_take", executes.begin_ns, take.begin_ns, thread)


def _is_called_back(way: Way, take: Call, receiver: Process) -> bool:
    """Whether a ROS 2 executor calls the node back with what one call took. Executors that do not look for an
    executable (since Jazzy the static one, and the events executor) stamp no `rclcpp_executor_execute` before
    it."""
    if not receiver.knows(probes.API_TAKE):
        return False
    return receiver.following(probes.CALLBACK_START, take.thread, take.end_ns, way.until_ns) is not None
