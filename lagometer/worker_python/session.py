# SPDX-License-Identifier: Apache-2.0
"""One worker's objects, from its plan to its last record: adapters, contexts, nodes, endpoints, lanes."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lagometer.worker_python import adapter as interface
from lagometer.worker_python.adapter import (
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    probed,
    told,
)
from lagometer.worker_python.description import checked
from lagometer.worker_python.endpoint import Input, Output, load_content
from lagometer.worker_python.interpreter import own_options, set_up_interpreter
from lagometer.worker_python.loop import Loop
from lagometer.worker_python.node import Node
from lagometer.worker_python.plan import ContentPlan, EndpointPlan, NodePlan, Plan
from lagometer.worker_python.records import (
    KIND_CAUSES,
    KIND_RECEIVED,
    KIND_SENT,
    LaneSpecification,
    Recorder,
)
from lagometer.worker_python.stage import Stage, now_ns


class Session:
    """Creates and enables everything. Raises AdapterError, NoRoom, ContentError."""

    def __init__(self, plan: Plan, records_descriptor: int | None) -> None:
        self._plan = plan
        self._stage = Stage()
        threading.excepthook = self._stage.thread_died
        self._contexts: list[interface.Context] = []
        self._nodes: list[Node] = []
        self._loops: list[Loop] = []
        self._stopped = False
        try:
            Path(plan.runtime_directory).mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise AdapterError(f"can't make runtime_directory {plan.runtime_directory}: {reason}") from error
        self._contents: dict[ContentPlan, bytes] = {}
        for adapter in plan.adapters:
            os.environ.update(adapter.environment)
        self._adapters = [interface.load(adapter.name, adapter.library) for adapter in plan.adapters]
        self._interpreter = set_up_interpreter([adapter.options for adapter in plan.adapters])
        self._open_contexts()
        self._refuse_one_thread_of_callbacks()
        for node in plan.nodes:
            self._create_node(node)
        self.recorder = self._create_recorder(records_descriptor)
        self.enabled_ns = now_ns()  # from now on endpoints hear their peers
        self._enable()
        if gc.isenabled():
            gc.collect()  # messages must not pay for garbage from the setup

    def _open_contexts(self) -> None:
        for context in self._plan.contexts:
            adapter = self._plan.adapters[context.adapter]
            if context.security:
                raise AdapterError(f"{adapter.name}: no adapter in Python sets up security: leave it out")
            configuration = ContextConfiguration(
                domain=context.domain,
                name=context.name,
                profile=adapter.profile,
                options=own_options(adapter.options),
                network=adapter.network,
                runtime_directory=self._plan.runtime_directory,
            )
            with _in_adapter("opening a context"):
                self._contexts.append(self._adapters[context.adapter].open_context(configuration))

    def _content_of(self, writer: EndpointPlan) -> bytes:
        """Returns what fills a writer's payloads. Reads each file once."""
        content = writer.content or self._plan.content
        if content not in self._contents:
            self._contents[content] = load_content(content)
        return self._contents[content]

    def _create_node(self, plan: NodePlan) -> None:
        node = Node(plan, self._stage)
        node.outputs = [
            Output(writer, self._plan, self._stage, self._content_of(writer)) for writer in plan.writers
        ]
        node.inputs = [Input(reader, index, self._plan) for index, reader in enumerate(plan.readers)]
        node.prepare()
        self._nodes.append(node)
        for output in node.outputs:
            if output.plan.replied_on is not None or output.plan.answers is not None:
                self._create_service(node, output)
                continue
            with _in_adapter("creating a writer"):
                context = self._contexts[output.plan.context]
                output.attach(context.create_writer(_configuration(output.plan, "")))
        for entry in node.inputs:
            if entry.attached:
                continue  # belongs to a client or a server and was made with its writer
            with _in_adapter("creating a reader"):
                configuration = _configuration(entry.plan, plan.dispatch)
                context = self._contexts[entry.plan.context]
                entry.attach(context.create_reader(configuration, partial(node.on_data, entry)))

    def _create_service(self, node: Node, output: Output) -> None:
        """Makes a client's or a server's writer, and its reader."""
        plan, context = output.plan, self._contexts[output.plan.context]
        if not isinstance(context, interface.Services):
            adapter = self._adapters[self._plan.contexts[plan.context].adapter]
            raise AdapterError(f"{adapter.name} has no request and reply")
        if plan.answers is None:
            assert plan.replied_on is not None
            entry = node.inputs[plan.replied_on]
            request, reply = _configuration(plan, ""), _configuration(entry.plan, node.plan.dispatch)
            with _in_adapter("creating a client"):
                request_writer, reply_reader = context.create_client(
                    request, reply, partial(node.on_data, entry)
                )
            output.attach(request_writer)
            entry.attach(reply_reader)
            return
        twins = [
            sibling
            for sibling in node.outputs
            if sibling.replies is not None
            and sibling.plan.answers
            and sibling.plan.answers[0] == plan.answers[0]
        ]
        if twins and twins[0].replies is not None:
            output.answer_by(twins[0].replies, shared=True)
            return
        entry = node.inputs[plan.answers[0]]
        request, reply = _configuration(entry.plan, node.plan.dispatch), _configuration(plan, "")
        with _in_adapter("creating a server"):
            request_reader, reply_writer = context.create_server(request, reply, partial(node.on_data, entry))
        output.answer_by(reply_writer, shared=False)
        entry.attach(request_reader)

    def _create_recorder(self, descriptor: int | None) -> Recorder:
        lanes = []
        for node in self._nodes:
            causes_max = max((len(rule.readers) + len(rule.uses) for rule in node.plan.rules), default=0)
            number = node.plan.index
            for writer in node.plan.writers:
                causes = writer.capacity * causes_max if causes_max > 1 else 0
                lanes.append(LaneSpecification(KIND_SENT, number, writer.stream, writer.capacity))
                lanes.append(LaneSpecification(KIND_CAUSES, number, writer.stream, causes))
            for index, reader in enumerate(node.plan.readers):
                lanes.append(LaneSpecification(KIND_RECEIVED, number, index, reader.capacity))
        recorder = Recorder(self._plan.worker, self._plan.host_number, lanes, descriptor)
        remaining_lanes = iter(recorder.lanes)
        for node in self._nodes:
            for output in node.outputs:
                output.record_into(next(remaining_lanes), next(remaining_lanes))
            for entry in node.inputs:
                entry.record_into(next(remaining_lanes))
        return recorder

    def _enable(self) -> None:
        for node in self._nodes:
            for entry in node.inputs:
                with _in_adapter("enabling a reader"):
                    entry.reader.enable()
                entry.enabled = True
                if node.plan.dispatch == "listener":
                    node.on_data(entry)  # messages that came before callbacks were enabled
        node_groups = [self._nodes] if self._plan.one_thread else [[node] for node in self._nodes]
        for nodes in node_groups:
            self._loops.append(Loop(nodes, self._stage, self._waitset_of(nodes)))
        for loop in self._loops:
            loop.start()

    def _waitset_of(self, nodes: Sequence[Node]) -> interface.Waitset | None:
        entries = [entry for node in nodes for entry in node.inputs]
        if nodes[0].plan.dispatch != "waitset" or not entries:
            return None
        context = entries[0].plan.context
        if any(entry.plan.context != context for entry in entries):
            subject, instead = f"node {nodes[0].plan.name}", "use poll or listener"
            if len(nodes) > 1:
                subject = "one thread for all nodes (threads per-process)"
                instead = "use poll, or a thread for each node (threads per-node)"
            raise AdapterError(
                f"{subject}: a waitset of an adapter in Python can't wait for readers of several contexts "
                f"(waitset_contexts); {instead}"
            )
        with _in_adapter("creating a waitset"):
            return self._contexts[context].create_waitset([entry.reader for entry in entries])

    def _refuse_one_thread_of_callbacks(self) -> None:
        """Refuses one thread for all nodes with listeners: a client library in Python calls back on its own
        threads."""
        for node in self._plan.nodes:
            for reader in node.readers if self._plan.one_thread and node.dispatch == "listener" else ():
                name = self._adapters[self._plan.contexts[reader.context].adapter].name
                raise AdapterError(
                    f"{name} calls back on its own threads, so one thread can't serve all nodes (threads "
                    "per-process); use waitset or poll"
                )

    # --- phases ---

    def look_for_readers(self, probing: bool) -> bool:
        """Asks each writer for its readers, and sends a probe on it. Returns whether one found another reader
        since the last call."""
        anyone_new = False
        for node in self._nodes:
            for output in node.outputs:
                with _in_adapter("counting matched readers"):
                    anyone_new = output.meets_another() or anyone_new
                if not probing or output.plan.answers is not None:
                    continue  # replies only follow requests
                with self._stage.probing:
                    output.send_probe()
        return anyone_new

    def missing(self) -> list[dict[str, Any]]:
        """Returns readers that still miss probes, for the event `failed`."""
        return [
            {"node": node.plan.name, "reader": entry.index, "topic": entry.plan.topic, "streams": streams}
            for node in self._nodes
            for entry in node.inputs
            if (streams := entry.missing())
        ]

    def counted(self) -> list[dict[str, Any]]:
        """Returns how many readers each publisher counted last, for the event `failed`; without those that
        can't tell, and those of services, whose ends find each other another way."""
        return [
            {
                "node": node.plan.name,
                "topic": output.plan.topic,
                "stream": output.plan.stream,
                "readers": int(output.readers),
            }
            for node in self._nodes
            for output in node.outputs
            if output.readers is not None
            if output.plan.answers is None and output.plan.replied_on is None
        ]

    def start(self, at_ns: int, stop_ns: int) -> None:
        """Sets the common start; sources stop at stop_ns."""
        self._stage.stop_ns = stop_ns
        self._stage.start_ns = at_ns
        for loop in self._loops:
            loop.wake()

    def stop(self) -> None:
        """Ends all measuring. Returns when no node's thread runs and callbacks no longer do anything."""
        if self._stopped:
            return
        self._stopped = self._stage.stopped = True
        for loop in self._loops:
            loop.wake()
        for loop in self._loops:
            loop.join()
        for node in self._nodes:
            with node.locked():  # a callback in progress has ended
                pass

    def close(self) -> None:
        """Destroys every object of the adapters."""
        self.stop()
        for loop in self._loops:
            if loop.waitset is not None:
                loop.waitset.close()
        for context in reversed(self._contexts):
            context.close()

    def failure(self) -> str:
        """Returns what went wrong in an adapter since the start; empty if nothing did."""
        return self._stage.failure

    # --- descriptions ---

    def describe_adapters(self) -> list[dict[str, Any]]:
        """Returns the adapters for the event `ready`. The interpreter is part of what is measured, so its
        version is included."""
        descriptions = []
        for adapter, plan in zip(self._adapters, self._plan.adapters, strict=True):
            with _in_adapter("probing"):
                probe = probed(adapter, own_options(plan.options))
            descriptions.append(
                {
                    "name": adapter.name,
                    "version": 1,
                    "library_version": probe.version,
                    "abilities": dict(probe.abilities),
                }
            )
        return descriptions

    def describe_settings(self) -> list[dict[str, Any]]:
        """Returns the effective settings, for the event `ready`."""
        settings = []
        for context, plan in zip(self._contexts, self._plan.contexts, strict=True):
            name = self._plan.adapters[plan.adapter].name
            with _in_adapter("describing a context"):
                effective = checked(name, "a context", context.describe())
            effective["settings"] = {**effective.get("settings", {}), **self._interpreter}
            settings.append(self._setting(plan.adapter, "context", effective))
        for node in self._nodes:
            for output in node.outputs:
                adapter = self._plan.contexts[output.plan.context].adapter
                what = f"writer {output.plan.topic}"
                with _in_adapter("describing a writer"):
                    effective = checked(self._plan.adapters[adapter].name, what, output.writer.describe())
                settings.append(self._setting(adapter, what, effective))
            for entry in node.inputs:
                adapter = self._plan.contexts[entry.plan.context].adapter
                what = f"reader {entry.plan.topic}"
                with _in_adapter("describing a reader"):
                    effective = checked(self._plan.adapters[adapter].name, what, entry.reader.describe())
                settings.append(self._setting(adapter, what, effective))
        return settings

    def _setting(self, adapter: int, name: str, effective: Mapping[str, Any]) -> dict[str, Any]:
        return {"adapter": self._plan.adapters[adapter].name, "object": name, "effective": dict(effective)}

    def describe_writers(self) -> list[dict[str, Any]]:
        """Returns the writers, for the event `done`."""
        descriptions = []
        begin_ns = self._plan.warmup_ns
        end_ns = begin_ns + self._plan.measure_ns
        for node in self._nodes:
            for index, output in enumerate(node.outputs):
                with _in_adapter("a writer's counters"):
                    counters = {} if output.shares_writer else output.writer.counters()
                description: dict[str, Any] = {
                    "node": node.plan.index,
                    "stream": output.plan.stream,
                    "sent": output.sent,
                    "rejected": output.rejected,
                    "resent_after_timeout": node.resent[index],
                    "recorder_full": output.sent_lane.full,
                    "origin": output.writer.origin,
                    "counters": counters,
                }
                if (punctuality := node.punctuality(index, begin_ns, end_ns)) is not None:
                    description |= {
                        "due": punctuality.due,
                        "skipped": punctuality.skipped,
                        "shift_ns": punctuality.shift_ns,
                    }
                descriptions.append(description)
        return descriptions

    def describe_readers(self) -> list[dict[str, Any]]:
        """Returns the readers, for the event `done`."""
        with _in_adapter("a reader's counters"):
            return [
                {
                    "node": node.plan.index,
                    "reader": entry.index,
                    "received": entry.received,
                    "corrupted": entry.corrupted,
                    "recorder_full": entry.lane.full,
                    "counters": entry.reader.counters(),
                }
                for node in self._nodes
                for entry in node.inputs
            ]

    def warnings(self) -> list[str]:
        """Returns what a reader of the results needs to know, found while measuring."""
        return [
            f"the closed loop of node {node.plan.name} ended early, after {node.outputs[0].sent} messages: "
            "no room for more records"
            for node in self._nodes
            if node.ended_early
        ]


@contextlib.contextmanager
def _in_adapter(operation: str) -> Iterator[None]:
    """Turns any exception of an adapter's call into the adapter's failure."""
    try:
        yield
    except (AdapterError, MemoryError):
        raise
    except Exception as error:
        raise AdapterError(f"{operation} failed: {told(error)}") from error


def _configuration(plan: EndpointPlan, dispatch: str) -> EndpointConfiguration:
    if plan.qos.others:
        names = " and no ".join(plan.qos.others)
        raise AdapterError(
            f"topic {plan.topic}: adapters in Python have no {names} among their qualities of service"
        )
    return EndpointConfiguration(plan.topic, plan.type, plan.payload_bytes, plan.qos, dispatch)
