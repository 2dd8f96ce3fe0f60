# SPDX-License-Identifier: Apache-2.0
"""An adapter in Python that hands messages over within the process; TOY_BREAK names what it does wrong."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lagometer.worker_python.adapter import (
    TAKE_MAX,
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Probe,
    Reader,
)

_readers: dict[tuple[int, str], list[ToyReader]] = {}
# Held while messages are handed over, so that none comes to a reader that has been closed. What a message
# causes is handed over within.
_handing_over = threading.RLock()


def broken(what: str) -> bool:
    """Whether this is what it does wrong."""
    return os.environ.get("TOY_BREAK") == what


def probe(options: Mapping[str, Any]) -> Probe:
    """It has no library."""
    del options
    return Probe("1", {}, {})


def open_context(configuration: ContextConfiguration) -> ToyContext:
    """Takes no options."""
    for key in configuration.options:
        raise AdapterError(f"toy: option {key} is not known")
    return ToyContext(configuration.domain)


class ToyReader:
    def __init__(
        self, endpoint: EndpointConfiguration, on_data: Callable[[], None], known: list[Any]
    ) -> None:
        depth = None if endpoint.qos.history == "keep_all" else endpoint.qos.depth or 1
        self.queue: deque[bytes] = deque(maxlen=depth)
        self._listens, self._on_data, self._known = endpoint.dispatch == "listener", on_data, known

    def enable(self) -> None:
        self._known.append(self)

    def take(self) -> list[bytes]:
        return [self.queue.popleft() for _ in range(min(len(self.queue), TAKE_MAX))]

    def come(self, message: bytes) -> None:
        self.queue.append(message)
        if self._listens:
            self._on_data()

    def counters(self) -> dict[str, int]:
        return {}

    def describe(self) -> dict[str, Any]:
        depth = {"value": self.queue.maxlen, "default": None}
        return {"settings": {"depth": self.queue.maxlen if broken("settings") else depth}, "paste": []}


class ToyWriter:
    origin = "copied"

    def __init__(self, known: list[Any]) -> None:
        self._known, self._count = known, 0
        self._buffer = bytearray()

    def borrow(self, size: int) -> bytearray:
        self._buffer = bytearray(size)
        return self._buffer

    def commit(self) -> bool:
        self._count += 1
        message = bytes(self._buffer)
        if broken("damage") and self._count > 3:
            message = message[:-1] + bytes([message[-1] ^ 1])
        if broken("cut") and self._count > 3:
            message = message[:-1]
        if not (broken("drop") and self._count == 4):
            with _handing_over:
                for reader in list(self._known):
                    reader.come(message)
        if broken("raise") and self._count > 3:
            raise AdapterError("toy: the cable is cut")
        return None if broken("silent") else True  # type: ignore[return-value]

    def matched_readers(self) -> int | None:
        return None if broken("counting") else len(self._known)

    def counters(self) -> dict[str, int]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {"settings": {}, "paste": []}


class ToyWaitset:
    def __init__(self, readers: Sequence[ToyReader]) -> None:
        self._readers = readers

    def wait(self, until_ns: int | None) -> bool:
        del until_ns
        return any(reader.queue for reader in self._readers)

    def trigger(self) -> None: ...

    def close(self) -> None: ...


class ToyContext:
    def __init__(self, domain: int) -> None:
        self._domain, self._made = domain, []  # type: tuple[int, list[ToyReader]]
        if broken("leak"):
            self._left = os.dup(0)

    def _known(self, topic: str) -> list[ToyReader]:
        return _readers.setdefault((self._domain, topic), [])

    def create_writer(self, endpoint: EndpointConfiguration) -> ToyWriter:
        return ToyWriter(self._known(endpoint.topic))

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> ToyReader:
        self._made.append(ToyReader(endpoint, on_data, self._known(endpoint.topic)))
        return self._made[-1]

    def create_waitset(self, readers: Sequence[Reader]) -> ToyWaitset:
        return ToyWaitset([reader for reader in readers if isinstance(reader, ToyReader)])

    def describe(self) -> dict[str, Any]:
        return {"settings": {}, "paste": []}

    def close(self) -> None:
        if broken("late"):
            return
        with _handing_over:
            self._forget()

    def _forget(self) -> None:
        for known in _readers.values():
            known[:] = [reader for reader in known if reader not in self._made]
