# SPDX-License-Identifier: Apache-2.0
"""`python -m lagometer.agent.emulated JSON COMMAND…`: turns this process into a host made from namespaces,
then becomes COMMAND on it.

It starts in new network, mount, IPC and UTS namespaces, and puts COMMAND into a PID namespace, too.
Everything it makes belongs to these namespaces only, so it disappears with the last process in them, however
that process ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

LINK = "eth0"
PREFIX_BITS = 24
OFFLOADS = ("tso", "gso", "gro", "tx", "rx")
MULTICAST = "224.0.0.0/4"
SHARED_MEMORY = Path("/dev/shm")
MESSAGE_QUEUES = Path("/dev/mqueue")
SHARED_FOLDERS = (Path("/tmp"), Path("/var/tmp"))  # programs of one machine find each other's sockets there
MACHINE_ID = Path("/etc/machine-id")
# A new network starts with the kernel's defaults. Settings that the user tuned on the machine apply on its
# hosts, too.
CARRIED_OVER = (
    *("net/core/rmem_max", "net/core/wmem_max", "net/core/rmem_default", "net/core/wmem_default"),
    *("net/ipv4/ipfrag_high_thresh", "net/ipv4/ipfrag_time", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"),
    *("net/ipv4/udp_rmem_min", "net/ipv4/udp_wmem_min", "net/core/busy_poll", "net/core/busy_read"),
)


class EmulationError(Exception):
    """The host can't be made. Says what was tried and what the system answered."""


@dataclass(frozen=True)
class EmulatedHost:
    """What a host is made of. address: its address on its link; port: the other end of the link; switch: the
    process whose network contains the bridge; settings: the machine's settings, by their path below
    /proc/sys."""

    name: str
    address: str
    port: str
    switch: int
    bridge: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> tuple[str, ...]:
        """Returns the words that go before a command to run it on this host."""
        namespaces = ("unshare", "--net", "--mount", "--ipc", "--uts", "--")
        return (
            *namespaces,
            *(sys.executable, "-I", "-m", "lagometer.agent.emulated", json.dumps(asdict(self))),
        )


def machine_settings() -> dict[str, str]:
    """Returns the settings to carry over, with their values on this machine."""
    settings = {}
    for name in CARRIED_OVER:
        with contextlib.suppress(OSError):
            settings[name] = Path("/proc/sys", name).read_text().strip()
    return settings


def make(host: EmulatedHost) -> None:
    """Sets up the namespaces of this process. Raises EmulationError."""
    _make_own_folders()
    _name(host.name)
    _connect(host)
    for name, value in host.settings.items():
        path = Path("/proc/sys", name)
        with contextlib.suppress(OSError):  # some belong to the machine alone and need not be carried over
            if path.read_text().strip() != value:
                path.write_text(value)


def _make_own_folders() -> None:
    """Gives the host its own shared memory and queues. It sees the contents of shared folders, but its writes
    there stay private."""
    memory = ("-o", "mode=1777", "tmpfs")
    run("mount", "-t", "tmpfs", *memory, str(SHARED_MEMORY))  # receives writes, and is covered below
    for number, folder in enumerate(SHARED_FOLDERS):
        changes, work = SHARED_MEMORY / f"changes-{number}", SHARED_MEMORY / f"work-{number}"
        changes.mkdir()
        changes.chmod(0o1777)
        work.mkdir()
        layers = f"lowerdir={folder},upperdir={changes},workdir={work}"
        run("mount", "-t", "overlay", "overlay", "-o", layers, str(folder))
    identity = SHARED_MEMORY / "machine-id"
    with contextlib.suppress(FileNotFoundError):
        namespace = Path("/proc/self/ns/uts").readlink()
        identity.write_text(own_identity(MACHINE_ID.read_text().strip(), str(namespace)))
        run("mount", "--bind", str(identity), str(MACHINE_ID))
    run("mount", "-t", "tmpfs", *memory, str(SHARED_MEMORY))
    if MESSAGE_QUEUES.is_dir():
        run("mount", "-t", "mqueue", "mqueue", str(MESSAGE_QUEUES))


def own_identity(machine: str, host: str) -> str:
    """Returns a machine id that no other machine and no other host of this one has."""
    return hashlib.sha256(f"{machine} {host}".encode()).hexdigest()[:32] + "\n"


def hardware_address(address: str) -> str:
    """Returns the hardware address of a host with this address. It stays the same when the host is made
    again, because others cache it for minutes.

    It is locally administered (IEEE 802): whoever runs a network may assign it.
    """
    return ":".join(("02", "00", *(f"{byte:02x}" for byte in IPv4Address(address).packed)))


def _name(name: str) -> None:
    try:
        Path("/proc/sys/kernel/hostname").write_text(name)
    except OSError as error:
        raise EmulationError(f"the host can't be named {name}: {error.strerror}") from error


def _connect(host: EmulatedHost) -> None:
    """Connects this network to the bridge by a virtual cable; sets up a loopback, an address, and a route for
    multicast."""
    at_the_bridge = ("nsenter", "--net", "--target", str(host.switch), "--")
    peer = ("peer", "name", host.port, "netns", str(host.switch))
    run("ip", "link", "add", LINK, "address", hardware_address(host.address), "type", "veth", *peer)
    run(*at_the_bridge, "ip", "link", "set", host.port, "master", host.bridge, "up")
    # A virtual cable forwards packets of 64 KB without checksums. No real link does.
    off = [word for name in OFFLOADS for word in (name, "off")]
    run("ethtool", "-K", LINK, *off)
    run(*at_the_bridge, "ethtool", "-K", host.port, *off)
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{host.address}/{PREFIX_BITS}", "dev", LINK)
    run("ip", "link", "set", LINK, "up")
    run("ip", "route", "add", MULTICAST, "dev", LINK)


def run(*command: str) -> None:
    """Runs a program that prints nothing on success. Raises EmulationError."""
    try:
        completed = subprocess.run(
            command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise EmulationError(f"the program {command[0]} is missing: install it") from error
    if completed.returncode != 0:
        output_lines = (completed.stderr or completed.stdout).strip().splitlines()
        raise EmulationError(
            f"{' '.join(command)}: {output_lines[-1] if output_lines else f'code {completed.returncode}'}"
        )


def main(arguments: Sequence[str]) -> int:
    """Returns only if the host can't be made, with the exit code."""
    host, command = EmulatedHost(**json.loads(arguments[0])), arguments[1:]
    try:
        make(host)
    except EmulationError as error:
        print(f"host {host.name} can't be made: {error}", file=sys.stderr)
        return 1
    inside = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--", *command)
    os.execvp(inside[0], inside)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
