# SPDX-License-Identifier: Apache-2.0
"""Hosts made from namespaces of this machine, each with its own network, joined by a bridge.

They share the machine's CPUs and caches, and its only kernel processes a packet on the CPU that sends it. All
views of their figures therefore call them *emulated hosts*. Nothing in them has a name outside, so all of it
disappears with their processes.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from lagometer.agent.emulated import EmulatedHost, machine_settings
from lagometer.agent.supervised import ends_within
from lagometer.run.hosts.base import AgentPipes, HostError
from lagometer.run.hosts.local import LocalLauncher
from lagometer.run.hosts.process import TERMINATION_S

BRIDGE = "bridge"
READY = b"ready\n"
# Lives as long as its input is open. Multicast goes to all ports, as on a switch without snooping.
_SWITCH = f"""ip link add {BRIDGE} type bridge mcast_snooping 0 && ip link set {BRIDGE} up || exit 1
echo ready
exec cat"""


class Switch:
    """The bridge that connects the hosts of a campaign: a process that holds a network with the bridge in
    it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()  # hosts start concurrently

    def process_id(self) -> int:
        """Returns the process whose network contains the bridge; starts it if it does not run.

        Raises `HostError`.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.close()
                self._process = _started(("unshare", "--net", "--", "sh", "-c", _SWITCH))
            return self._process.pid

    def close(self) -> None:
        """Ends the process; the bridge disappears with it. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        if not ends_within(process, TERMINATION_S):
            process.kill()
        process.wait()
        process.stdout.close()


class NetnsLauncher:
    """The launcher for such a host; see `lagometer.run.hosts.base.Launcher`.

    address: of its link; number: distinguishes its port of the switch from others; before: words before the
    agent's command on that host.
    """

    def __init__(
        self,
        supervisor: Path,
        switch: Switch,
        name: str,
        number: int,
        address: str,
        before: Sequence[str] = (),
    ) -> None:
        self._supervisor, self._switch, self._before = supervisor, switch, tuple(before)
        self._name, self._address, self._number = name, address, number
        self._starts = 0
        self._local: LocalLauncher | None = None

    def start(self) -> AgentPipes:
        """Makes the host around its agent."""
        if os.geteuid() != 0:
            raise HostError(
                "a host of the launcher netns is made by root: run as root, or use `launcher: local`"
            )
        switch = self._switch.process_id()
        self._starts += 1  # the last one's port may still exist
        port = f"port{self._number}-{self._starts}"
        host = EmulatedHost(self._name, self._address, port, switch, BRIDGE, machine_settings())
        self._local = LocalLauncher(self._supervisor, (*host.words(), *self._before))
        return self._local.start()

    def ended(self) -> str | None:
        """Returns the exit code or signal."""
        return self._local.ended() if self._local is not None else "was not started"

    def there(self, path: str) -> str:
        """Returns the same path: the host sees the files of this machine."""
        return path

    def close(self) -> None:
        """Ends the agent; its namespaces and its end of the cable disappear with it."""
        if self._local is not None:
            self._local.close()


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(f"{command[0]} can't be started: {error.strerror}") from error
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    first_line = process.stdout.readline()
    errors = process.stderr
    if first_line != READY:
        process.stdin.close()
        why = errors.read().decode(errors="replace").strip() or "it said nothing"
        process.wait()
        process.stdout.close()
        errors.close()
        raise HostError(f"no bridge can be made for emulated hosts: {why}")
    errors.close()
    return process
