# SPDX-License-Identifier: Apache-2.0
"""An adapter in Python over Unix datagrams, between processes too; LAGOMETER_BREAK names what it does wrong.

The names are those of tests/adapters/broken.cpp, so that both workers meet the same trouble.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lagometer.worker_python.adapter import (
    TAKE_MAX,
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Probe,
)

ROOM_BYTES = 4 << 20
ASKED_ALONE = 20  # that the count of matched readers is asked before there is one
DATA = 0  # the kind of an envelope


def fail(what: str) -> None:
    """Raises if this is what fails."""
    if os.environ.get("LAGOMETER_BREAK") == f"fail-{what}":
        raise AdapterError("the cable is cut")


def probe(options: Mapping[str, Any]) -> Probe:
    """It has no library."""
    del options
    return Probe("1", {}, {})


def open_context(configuration: ContextConfiguration) -> ScriptedContext:
    """Takes no options."""
    fail("context")
    for key in configuration.options:
        raise AdapterError(f"scripted: option {key} is not known")
    return ScriptedContext(Path(configuration.runtime_directory) / f"domain-{configuration.domain}")


class ScriptedReader:
    """One socket, in the folder of its topic."""

    def __init__(self, folder: Path, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> None:
        fail("reader")
        self._path = folder / uuid.uuid4().hex[:8]
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_BYTES)
        self._listener = threading.Thread(target=self._listen, args=(on_data,), daemon=True)
        self._listens = endpoint.dispatch == "listener"
        self._ended = False

    def enable(self) -> None:
        """It is found from now on."""
        fail("enable")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.socket.bind(str(self._path))
        if self._listens:
            self._listener.start()

    def _listen(self, on_data: Callable[[], None]) -> None:
        while not self._ended:
            if select.select([self.socket], [], [], 0.01)[0]:
                on_data()

    def take(self) -> list[bytes]:
        """What the socket holds."""
        taken: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while len(taken) < TAKE_MAX:
                taken.append(self.socket.recv(ROOM_BYTES))
        return taken

    def counters(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Nothing to tell."""
        return {"settings": {}, "paste": []}

    def close(self) -> None:
        """Leaves nothing in the folder."""
        self._ended = True
        if self._listener.ident is not None:
            self._listener.join()
        self._path.unlink(missing_ok=True)
        self.socket.close()


class ScriptedWriter:
    """Sends to every socket in the folder of its topic."""

    origin = "copied"

    def __init__(self, folder: Path) -> None:
        fail("writer")
        self._folder = folder
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM_BYTES)
        self._known: list[str] = []
        self._asked = 0
        self._buffer = bytearray()

    def matched_readers(self) -> int:
        """Looks for them here."""
        fail("matched")
        self._known = [str(path) for path in self._folder.glob("*")]
        self._asked += 1
        if os.environ.get("LAGOMETER_BREAK") == "find-late":
            return int(self._asked > ASKED_ALONE)
        return len(self._known)

    def borrow(self, size: int) -> bytearray:
        """Fresh memory."""
        self._buffer = bytearray(size)
        return self._buffer

    def commit(self) -> bool:
        """To all who are known."""
        fail("data" if self._buffer[3] == DATA else "probe")
        if os.environ.get("LAGOMETER_BREAK") == "find-late":
            with Path(os.environ["LAGOMETER_TEST_WITNESS"]).open("ab") as file:
                file.write(self._buffer[:16])
        whole = True
        for path in self._known:
            try:
                self._socket.sendto(self._buffer, path)
            except BlockingIOError:
                whole = False
            except (ConnectionRefusedError, FileNotFoundError):
                continue  # it is gone
        return whole

    def counters(self) -> dict[str, int]:
        """Nothing is counted."""
        fail("counters")
        return {}

    def describe(self) -> dict[str, Any]:
        """Nothing to tell."""
        return {"settings": {}, "paste": []}


class ScriptedWaitset:
    """A select on the readers' sockets and a pipe."""

    def __init__(self, readers: Sequence[Any]) -> None:
        self._sockets = [reader.socket for reader in readers]
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)

    def wait(self, until_ns: int | None) -> bool:
        """Data, trigger or time."""
        left_s = None if until_ns is None else max(0, until_ns - time.monotonic_ns()) / 1e9
        ready = select.select([*self._sockets, self._wake], [], [], left_s)[0]
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        return any(each is not self._wake for each in ready)

    def trigger(self) -> None:
        """Ends one wait."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Nothing waits any more."""
        os.close(self._wake)


class ScriptedContext:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: list[ScriptedReader] = []

    def create_writer(self, endpoint: EndpointConfiguration) -> ScriptedWriter:
        """A publisher."""
        return ScriptedWriter(self._folder / endpoint.topic)

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> ScriptedReader:
        """A subscriber."""
        self._readers.append(ScriptedReader(self._folder / endpoint.topic, endpoint, on_data))
        return self._readers[-1]

    def create_waitset(self, readers: Sequence[Any]) -> ScriptedWaitset:
        """Of these."""
        return ScriptedWaitset(readers)

    def describe(self) -> dict[str, Any]:
        """Nothing to tell."""
        return {"settings": {}, "paste": []}

    def close(self) -> None:
        """Readers, with their threads and files."""
        for reader in self._readers:
            reader.close()
