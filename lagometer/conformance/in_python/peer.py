# SPDX-License-Identifier: Apache-2.0
"""Executes orders with a Python adapter, one at a time; the same orders as `lagometer-conformance`."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lagometer.conformance.in_python.content import ENVELOPE, KIND_DATA, KIND_PROBE, written
from lagometer.conformance.in_python.inbox import Inbox, Poller
from lagometer.conformance.in_python.reopening import held_now, reopen_again_and_again
from lagometer.conformance.progress import told
from lagometer.worker_python import adapter as interface
from lagometer.worker_python.adapter import Context, ContextConfiguration, EndpointConfiguration, Qos, Writer
from lagometer.worker_python.description import checked
from lagometer.worker_python.interpreter import own_options, set_up_interpreter

ORIGINS = {"loaned": 1, "native": 2, "copied": 3}  # LAGOMETER_ORIGIN_* of adapter.h
NOT_KNOWN = 2  # `exact` of lagometer_matched
BLOCKING_NS_DEFAULT = 1_000_000_000
NS_PER_S = 1_000_000_000

Order = Mapping[str, Any]
Answer = dict[str, Any]


class Refusal(Exception):
    """The adapter failed in a call; call: its name."""

    def __init__(self, call: str, reason: str) -> None:
        super().__init__(reason)
        self.call = call


@dataclass
class Publisher:
    """A writer and its progress."""

    writer: Writer
    stream: int
    probe_bytes: int
    next_sequence: int = 0
    probes: int = 0

    def send(self, kind: int, sequence: int, size: int) -> bool:
        """Returns whether the message was accepted."""
        with _demanded("commit"):
            self.writer.borrow(size)[:] = written(kind, self.stream, sequence, size)
            return interface.accepted(self.writer.commit())


class Peer:
    """The state of this process: one adapter, contexts, publishers, subscribers, by the names in orders."""

    def __init__(self) -> None:
        self._adapter: interface.Adapter | None = None
        self._runtime_directory = ""
        self._interpreter: dict[str, Any] = {}
        self._contexts: dict[str, Context] = {}
        self._publishers: dict[str, Publisher] = {}
        self._inboxes: dict[str, Inbox] = {}
        self._poller: Poller | None = None
        self._died = ""
        self._orders: dict[str, Callable[[Order], Answer]] = {
            "load": self._load,
            "context": self._make_context,
            "writer": self._make_writer,
            "reader": self._make_reader,
            "probe": self._probe,
            "send": self._send,
            "heard": self._heard,
            "stall": self._stall,
            "resume": self._resume,
            "matched": self._matched,
            "describe": self._describe,
            "origin": self._origin,
            "reopen": self._reopen,
            "held": lambda _: dict(held_now()),
        }

    def answer(self, line: str) -> Answer:
        """Executes one order; errors are answers, too."""
        try:
            order = json.loads(line)
            told.step()
            answer = self._orders[order["do"]](order)
            if self._died:
                raise Refusal("its own thread", self._died)
            return {**answer, "ok": True}
        except Refusal as refusal:
            if self._died:  # the cause of the error here
                return {"ok": False, "call": "its own thread", "status": None, "reason": self._died}
            return {"ok": False, "call": refusal.call, "status": None, "reason": str(refusal)}
        except Exception as error:
            return {"ok": False, "reason": f"{type(error).__name__}: {error}"}

    def thread_died(self, ended: threading.ExceptHookArgs) -> None:
        """For `threading.excepthook`: the next answer reports a thread of the adapter that died. A thread may
        end by `sys.exit`."""
        if issubclass(ended.exc_type, SystemExit):
            return
        if ended.exc_value is not None and not self._died:
            name = ended.thread.name if ended.thread is not None else "without a name"
            self._died = f"the adapter's thread {name} died: {interface.told(ended.exc_value)}"
        threading.__excepthook__(ended)

    def close(self) -> None:
        """Releases everything."""
        if self._poller is not None:
            self._poller.end()
        for inbox in self._inboxes.values():
            inbox.end()
        for context in self._contexts.values():
            context.close()

    def _load(self, order: Order) -> Answer:
        self._runtime_directory = order["runtime_directory"]
        Path(self._runtime_directory).mkdir(parents=True, exist_ok=True)
        with _demanded("load"):
            name = order.get("name", Path(order["library"]).stem)
            self._adapter = interface.load(name, order["library"])
        return {"name": self._adapter.name}

    def _opened(self, name: str, order: Order) -> Context:
        if self._adapter is None:
            raise RuntimeError("no adapter is loaded")
        options = order.get("options", {})
        with _demanded("open_context"):
            self._interpreter |= set_up_interpreter([options])
            return self._adapter.open_context(
                ContextConfiguration(
                    domain=order.get("domain", 0),
                    name=name,
                    profile=order.get("profile", "default"),
                    options=own_options(options),
                    network=order.get("network", {}),
                    runtime_directory=self._runtime_directory,
                )
            )

    def _make_context(self, order: Order) -> Answer:
        self._contexts[order["id"]] = self._opened(order["id"], order)
        return {}

    def _make_writer(self, order: Order) -> Answer:
        endpoint = _endpoint(order)
        with _demanded("create_writer"):
            writer = self._contexts[order["context"]].create_writer(endpoint)
        probe_bytes = endpoint.payload_bytes if endpoint.type == "fixed" else ENVELOPE.size
        self._publishers[order["id"]] = Publisher(writer, order["stream"], probe_bytes)
        return {}

    def _make_reader(self, order: Order) -> Answer:
        endpoint = _endpoint(order)
        with _demanded("create_reader"):
            inbox = Inbox(self._contexts[order["context"]], endpoint, order.get("work_ns", 0))
        with _demanded("enable"):
            inbox.enable()
        if inbox.dispatch == "poll":
            self._poller = self._poller or Poller()
            self._poller.add(inbox)
        self._inboxes[order["id"]] = inbox
        return {}

    def _probe(self, _: Order) -> Answer:
        for publisher in self._publishers.values():
            publisher.writer.matched_readers()
            publisher.send(KIND_PROBE, publisher.probes, publisher.probe_bytes)
            publisher.probes += 1
        return {}

    def _send(self, order: Order) -> Answer:
        publisher = self._publishers[order["writer"]]
        pace_ns = order.get("pace_ns", 0)
        accepted: list[int] = []
        rejected = longest_ns = 0
        begin_ns = time.monotonic_ns()
        for number in range(order["count"]):
            if rejected and order.get("until_rejected", False):
                break
            time.sleep(max(0, begin_ns + number * pace_ns - time.monotonic_ns()) / NS_PER_S)
            sequence, publisher.next_sequence = publisher.next_sequence, publisher.next_sequence + 1
            before_ns = time.monotonic_ns()
            if publisher.send(KIND_DATA, sequence, order["bytes"]):
                accepted.append(sequence)
            else:
                rejected += 1
            longest_ns = max(longest_ns, time.monotonic_ns() - before_ns)
            told.step(number + 1, order["count"])
        return {"accepted": accepted, "rejected": rejected, "longest_ns": longest_ns}

    def _heard(self, order: Order) -> Answer:
        with_sequences = order.get("sequences", False)
        readers = {name: inbox.account(with_sequences) for name, inbox in self._inboxes.items()}
        return {"readers": readers, "broken": ""}

    def _stall(self, order: Order) -> Answer:
        self._inboxes[order["reader"]].stall()
        return {}

    def _resume(self, order: Order) -> Answer:
        self._inboxes[order["reader"]].resume()
        return {}

    def _matched(self, order: Order) -> Answer:
        if order["id"] not in self._publishers:  # a reader in Python counts nobody
            return {"count": 0, "exact": NOT_KNOWN}
        with _demanded("matched_readers"):
            count = self._publishers[order["id"]].writer.matched_readers()
        return {"count": 0, "exact": NOT_KNOWN} if count is None else {"count": count, "exact": 0}

    def _describe(self, order: Order) -> Answer:
        name = order["id"]
        adapter = self._adapter.name if self._adapter is not None else ""
        with _demanded("describe"):
            if name in self._contexts:
                description = checked(adapter, name, self._contexts[name].describe())
                description["settings"] = {**description.get("settings", {}), **self._interpreter}
            elif name in self._publishers:
                description = checked(adapter, name, self._publishers[name].writer.describe())
            else:
                description = checked(adapter, name, self._inboxes[name].describe())
        return {"text": json.dumps(description)}

    def _origin(self, order: Order) -> Answer:
        writer = self._publishers[order["writer"]].writer
        with _demanded("borrow"):
            writer.borrow(order["bytes"])  # the next one replaces it
        return {"origin": ORIGINS[writer.origin]}

    def _reopen(self, order: Order) -> Answer:
        with _demanded("reopening"):
            qos = Qos(depth=order["depth"], blocking_ns_max=order["blocking_ns"])
            return reopen_again_and_again(
                lambda name: self._opened(name, order), order["dispatch"], order["rounds"], qos
            )


@contextlib.contextmanager
def _demanded(call: str) -> Iterator[None]:
    """Turns errors in the adapter into a refusal that names the call."""
    try:
        with told.calling(call):
            yield
    except Refusal:
        raise
    except Exception as error:
        raise Refusal(call, interface.told(error)) from error


def _endpoint(order: Order) -> EndpointConfiguration:
    qos = order.get("qos", {})
    return EndpointConfiguration(
        topic=order["topic"],
        type=order["type"],
        payload_bytes=order["bytes"],
        qos=Qos(
            reliability=qos.get("reliability"),
            history=qos.get("history"),
            depth=qos.get("depth"),
            durability=qos.get("durability"),
            blocking_ns_max=qos.get("blocking_ns", BLOCKING_NS_DEFAULT),
        ),
        dispatch=order.get("dispatch", ""),
    )
