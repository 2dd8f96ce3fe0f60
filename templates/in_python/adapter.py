# SPDX-License-Identifier: Apache-2.0
"""A template for an adapter in Python. It copies messages within the process, keeps the newest, and wakes the
waiting reader, or calls its listener on the reader's own thread. Of lagometer it uses only
lagometer.worker_python.adapter and .arrivals. Nothing is built: `library` in adapter.json names this file.

Required: probe, open_context and every method below. If there is nothing to do or to report, do it as here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lagometer.worker_python.adapter import (
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Probe,
    Reader,
)
from lagometer.worker_python.arrivals import Arrivals, ArrivalsWaitset

TYPES = ("bytes", "fixed")
# The middleware: the enabled readers, by domain, topic and payload; here topics of several sizes never mix.
_enabled: dict[tuple[int, str, int], list[MyReader]] = {}


def probe(options: Mapping[str, Any]) -> Probe:
    """Reports the version of the middleware. Starts nothing."""
    del options
    return Probe(version="1", abilities={}, limits={})


def open_context(configuration: ContextConfiguration) -> MyContext:
    """Rejects unknown options by name. The interpreter's own options are not among these."""
    for key in configuration.options:
        raise AdapterError(f"in_python has no option '{key}': leave it out")
    return MyContext(configuration.domain)


def _refuse(endpoint: EndpointConfiguration) -> None:
    """Rejects what the sidecar does not list; never substitutes something else."""
    if endpoint.type not in TYPES:
        raise AdapterError(f"in_python has no type '{endpoint.type}'; valid: {', '.join(TYPES)}")
    if endpoint.qos.durability == "transient_local" or endpoint.qos.history == "keep_all":
        raise AdapterError("in_python supports only keep_last and volatile; change history, durability")


class MyWriter:
    """One publisher."""

    origin = "copied"  # whose memory `borrow` shows

    def __init__(self, readers: list[MyReader]) -> None:
        self._readers = readers
        self._message = bytearray()

    def borrow(self, size: int) -> bytearray:
        self._message = bytearray(size)
        return self._message

    def commit(self) -> bool:
        for reader in self._readers:
            reader.arrivals.note(bytes(self._message))
        return True  # accepted, though it may still be lost; False: not accepted now, and gone

    def matched_readers(self) -> int | None:
        """The number of matched readers; None if the middleware can't tell."""
        return len(self._readers)

    def counters(self) -> dict[str, int]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {"settings": {}, "paste": []}


class MyReader:
    """One subscriber. `arrivals` holds the queue and wakes the waiting thread, or the listener's."""

    def __init__(
        self, endpoint: EndpointConfiguration, on_data: Callable[[], None], readers: list[MyReader]
    ) -> None:
        self._news, self._ended = threading.Event(), False
        self.arrivals: Arrivals[bytes] = Arrivals(endpoint, self._news.set)
        self._readers = readers
        self._listener: threading.Thread | None = None
        if endpoint.dispatch == "listener":
            self._listener = threading.Thread(target=self._listen, args=(on_data,), daemon=True)

    def enable(self) -> None:
        if self._listener is not None:
            self._listener.start()
        self._readers.append(self)

    def _listen(self, on_data: Callable[[], None]) -> None:
        """The listener's thread. A client library with such a thread calls `arrivals.note` on it instead."""
        while self._news.wait() and not self._ended:
            self._news.clear()
            on_data()

    def take(self) -> list[bytes]:
        return self.arrivals.take()

    def counters(self) -> dict[str, int]:
        return {"overwritten": self.arrivals.overwritten}

    def describe(self) -> dict[str, Any]:
        return {"settings": {"depth": {"value": self.arrivals.depth, "default": None}}, "paste": []}

    def close(self) -> None:
        """It may have been enabled or not. Once this returns, nothing is called any more."""
        if self in self._readers:
            self._readers.remove(self)
            self._ended = True
            self._news.set()
            if self._listener is not None:
                self._listener.join()


class MyContext:
    """One participant in one domain; everything else lives in it."""

    def __init__(self, domain: int) -> None:
        self._domain = domain
        self._readers: list[MyReader] = []

    def _listening(self, endpoint: EndpointConfiguration) -> list[MyReader]:
        return _enabled.setdefault((self._domain, endpoint.topic, endpoint.payload_bytes), [])

    def create_writer(self, endpoint: EndpointConfiguration) -> MyWriter:
        _refuse(endpoint)
        return MyWriter(self._listening(endpoint))

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> MyReader:
        _refuse(endpoint)
        self._readers.append(MyReader(endpoint, on_data, self._listening(endpoint)))
        return self._readers[-1]

    def create_waitset(self, readers: Sequence[Reader]) -> ArrivalsWaitset:
        return ArrivalsWaitset([reader.arrivals for reader in readers if isinstance(reader, MyReader)])

    def describe(self) -> dict[str, Any]:
        return {"settings": {}, "paste": [], "transport": {"within_process": ["process"]}}

    def close(self) -> None:
        """The host calls nothing of it afterwards, and it makes no more callbacks."""
        for reader in self._readers:
            reader.close()
