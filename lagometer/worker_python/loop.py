# SPDX-License-Identifier: Apache-2.0
"""How a thread gets the work of its nodes: it waits, it polls, or it only keeps their timers."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from lagometer.worker_python.adapter import Waitset
from lagometer.worker_python.endpoint import Arrival
from lagometer.worker_python.machine import name_thread, pin_thread
from lagometer.worker_python.node import Node
from lagometer.worker_python.stage import Parker, Stage, now_ns

DISCOVERY_POLL_NS = 1_000_000


class Loop:
    """The thread of one node, or of all nodes, whose callbacks it then runs one after another. It exists only
    if dispatch and rules need it.

    waitset: of all readers of its nodes, with the dispatch `waitset`.
    """

    def __init__(self, nodes: Sequence[Node], stage: Stage, waitset: Waitset | None) -> None:
        self.waitset = waitset
        self._stage = stage
        self._nodes = nodes
        self._plan = nodes[0].plan  # all have the same dispatch and CPUs
        self._name = f"node:{self._plan.name}" if len(nodes) == 1 else "nodes"
        self._readers = [(node, entry) for node in nodes for entry in node.inputs]
        self._timed = [node for node in nodes if node.scheduled]
        # A busy node must not keep the others from their turn.
        self._to_the_last = len(nodes) == 1
        self._parker = Parker()
        self._thread: threading.Thread | None = None
        takes_itself = self._plan.dispatch != "listener" and bool(self._readers)
        if takes_itself or self._timed:
            self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        if self._thread is not None:
            self._thread.start()

    def wake(self) -> None:
        """Wakes the thread so it sees the stage; join() then returns soon."""
        self._parker.wake()
        if self.waitset is not None:
            self.waitset.trigger()

    def join(self) -> None:
        """Waits for the thread's end."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()

    def _main(self) -> None:
        name_thread(self._name)
        pin_thread(self._plan.cpus)
        try:
            if not self._readers or self._plan.dispatch == "listener":
                self._keep_timers()
            elif self._plan.dispatch == "waitset":
                self._wait()
            else:
                self._poll()
        except Exception as error:
            subject = f"node {self._plan.name}" if len(self._nodes) == 1 else "the nodes' thread"
            self._stage.fail(subject, error)

    def _wait(self) -> None:
        stage, waitset = self._stage, self.waitset
        assert waitset is not None
        begun = False
        while not stage.stopped:
            if stage.start_ns and not begun:
                self._begin_schedules()
                begun = True
            if waitset.wait(self._next_due_ns() if begun else None):
                self._drain(Arrival(woken_ns=now_ns()))
            if begun:
                self._fire_due()

    def _poll(self) -> None:
        stage, nothing = self._stage, Arrival()
        while not stage.start_ns:
            if stage.stopped:
                return
            self._drain(nothing)
            self._parker.wait_until(now_ns() + DISCOVERY_POLL_NS)
        self._begin_schedules()
        while not stage.stopped:
            self._drain(nothing)
            self._fire_due()

    def _keep_timers(self) -> None:
        stage = self._stage
        begun = False
        while not stage.stopped:
            if stage.start_ns and not begun:
                for node in self._timed:
                    with node.locked():
                        node.begin_schedules(stage.start_ns)
                begun = True
            # Every reply moves a closed loop's deadline, on another thread: it is read again after each
            # wake-up.
            self._parker.wait_until(self._next_due_ns() if begun else None)
            if not begun or stage.stopped:
                continue
            for node in self._timed:
                with node.locked():
                    node.fire_due(now_ns())

    def _drain(self, arrival: Arrival) -> None:
        """Data that a reader leaves for its next turn ends the next wait."""
        for node, entry in self._readers:
            node.drain(entry, arrival, to_the_last=self._to_the_last)

    def _begin_schedules(self) -> None:
        for node in self._timed:
            node.begin_schedules(self._stage.start_ns)

    def _next_due_ns(self) -> int | None:
        due_ns = [due for node in self._timed if (due := node.next_due_ns()) is not None]
        return min(due_ns, default=None)

    def _fire_due(self) -> None:
        """Reads the time again for each node: the previous one may have been busy."""
        for node in self._timed:
            node.fire_due(now_ns())
