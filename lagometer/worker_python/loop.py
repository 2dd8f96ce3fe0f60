# SPDX-License-Identifier: Apache-2.0
"""How a thread comes to a node's work: it waits, it polls, or it only keeps the node's timers."""

from __future__ import annotations

import threading

from lagometer.worker_python.endpoint import Arrival
from lagometer.worker_python.machine import name_thread, pin_thread
from lagometer.worker_python.node import Node
from lagometer.worker_python.stage import now_ns

DISCOVERY_POLL_NS = 1_000_000


class Loop:
    """The node's own thread, if its dispatch and rules need one."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._thread: threading.Thread | None = None
        takes_itself = node.plan.dispatch != "listener" and bool(node.inputs)
        if takes_itself or node.scheduled:
            self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        if self._thread is not None:
            self._thread.start()

    def wake(self) -> None:
        """Wakes the thread so that it sees the stage; join() then returns soon."""
        self._node.parker.wake()
        if self._node.waitset is not None:
            self._node.waitset.trigger()

    def join(self) -> None:
        """Waits for the thread's end."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()

    def _main(self) -> None:
        node = self._node
        name_thread("node:" + node.plan.name)
        pin_thread(node.plan.cpus)
        try:
            if not node.inputs or node.plan.dispatch == "listener":
                self._keep_timers()
            elif node.plan.dispatch == "waitset":
                self._wait()
            else:
                self._poll()
        except Exception as error:
            node.stage.fail(f"node {node.plan.name}", error)

    def _wait(self) -> None:
        node, stage, waitset = self._node, self._node.stage, self._node.waitset
        assert waitset is not None
        begun = False
        while not stage.stopped:
            if stage.start_ns and not begun:
                node.begin_schedules(stage.start_ns)
                begun = True
            came = waitset.wait(node.next_due_ns() if begun else None)
            if came:
                arrival = Arrival(woken_ns=now_ns())
                for entry in node.inputs:
                    node.drain(entry, arrival)
            if begun and node.scheduled:
                node.fire_due(now_ns())

    def _poll(self) -> None:
        node, stage, nothing = self._node, self._node.stage, Arrival()
        while not stage.start_ns:
            if stage.stopped:
                return
            for entry in node.inputs:
                node.drain(entry, nothing)
            node.parker.wait_until(now_ns() + DISCOVERY_POLL_NS)
        node.begin_schedules(stage.start_ns)
        while not stage.stopped:
            for entry in node.inputs:
                node.drain(entry, nothing)
            if node.scheduled:
                node.fire_due(now_ns())

    def _keep_timers(self) -> None:
        node, stage = self._node, self._node.stage
        begun = False
        while not stage.stopped:
            if stage.start_ns and not begun:
                with node.locked():
                    node.begin_schedules(stage.start_ns)
                begun = True
            # A closed loop's deadline moves with every reply, on another thread: it is looked up when this
            # one wakes.
            due_ns = node.next_due_ns() if begun else None
            node.parker.wait_until(due_ns)
            if not begun or stage.stopped:
                continue
            with node.locked():
                node.fire_due(now_ns())
