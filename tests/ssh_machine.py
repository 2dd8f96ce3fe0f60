# SPDX-License-Identifier: Apache-2.0
"""A machine with a real sshd, made from namespaces, at the other end of a cable; and who reaches it.

Network, mounts, processes, IPC objects, host name, machine id and, where the kernel can, the clock are its
own; of the checkout it sees nothing unless it is told to. What is to use the cable runs with `on_cable`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from campaign_support import wait_until
from needs import ROOT, need

OURS, THEIRS = "10.79.0.1", "10.79.0.2"
PORT = 2222
NAME = "base"
CABLE = "cable"
CLONE_NEWNET = 0x40000000
NOWHERE = "02:00:00:00:00:99"  # an Ethernet address that nobody has
AHEAD_S = 3600
# $1: a folder of the test; $2: who holds the cable's other end; $3: bytes of the home; $4: what is
# hidden; then words of unshare that give it a clock
_MACHINE = f"""set -e
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o size=$3 tmpfs /home
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
[ -z "$4" ] || mount -t tmpfs tmpfs "$4"
mount --bind "$1/machine-id" /etc/machine-id
hostname {NAME}
ip link set lo up
ip link add eth0 type veth peer name {CABLE} netns "$2"
ip address add {THEIRS}/24 dev eth0
ip link set eth0 up
ip route add 224.0.0.0/4 dev eth0
nsenter --net --target "$2" -- sh -c 'ip address add {OURS}/24 dev {CABLE} && ip link set {CABLE} up \
  && ip route add 224.0.0.0/4 dev {CABLE}'
config=$1
shift 4
exec unshare --pid "$@" --fork --kill-child --mount-proc -- /usr/sbin/sshd -D -e -f "$config/sshd_config"
"""


class Machine:
    """Such a machine, and a network whose only link is the cable to it."""

    def __init__(self, folder: Path, home: str, hidden: Path | None) -> None:
        self.folder = folder
        self._user_network = subprocess.Popen(
            ["unshare", "--net", "--", "sh", "-c", "ip link set lo up && echo ready && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._user_network.stdout is not None
        assert self._user_network.stdout.readline() == b"ready\n"
        self._write_files()
        words = ["unshare", "--net", "--mount", "--ipc", "--uts", "--", "sh", "-c", _MACHINE, "sh"]
        words += [str(folder), str(self._user_network.pid), home, str(hidden or ""), *_time_words()]
        self.log = folder / "sshd.log"
        with self.log.open("wb") as log:
            self._machine = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        listening = wait_until(lambda: b"Server listening" in self.log.read_bytes() or self._ended(), 20)
        assert listening and not self._ended(), self.log.read_text()

    def _ended(self) -> bool:
        return self._machine.poll() is not None

    def _write_files(self) -> None:
        for name in ("host_key", "user_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name))
        (self.folder / "passwd").write_text(
            "root:x:0:0:root:/home:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
        )
        (self.folder / "machine-id").write_text("0123456789abcdef0123456789abcdef\n")
        (self.folder / "authorized_keys").write_text((self.folder / "user_key.pub").read_text())
        (self.folder / "sshd_config").write_text(
            f"Port {PORT}\nListenAddress {THEIRS}\nHostKey {self.folder}/host_key\nPidFile none\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nPermitRootLogin prohibit-password\nPrintMotd no\n"
        )
        self.know_host_key((self.folder / "host_key.pub").read_text())
        (self.folder / "ssh_config").write_text(
            f"Host {NAME}\n  HostName {THEIRS}\n  Port {PORT}\n  User root\n"
            f"  IdentityFile {self.folder}/user_key\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n"
            f"  UserKnownHostsFile {self.folder}/known_hosts\n"
        )

    def know_host_key(self, key: str) -> None:
        """What the user has learnt of the machine's host key; empty: nothing."""
        text = f"[{THEIRS}]:{PORT} {' '.join(key.split()[:2])}\n" if key else ""
        (self.folder / "known_hosts").write_text(text)

    def other_key(self, name: str) -> str:
        """The public half of a key that the host does not know."""
        path = self.folder / name
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
        return (self.folder / f"{name}.pub").read_text()

    def host(self, **keys: Any) -> dict[str, Any]:
        """The machine, as a study names it."""
        config = str(self.folder / "ssh_config")
        return {"launcher": "ssh", "config": config, "address": THEIRS, **keys}

    @property
    def on_cable(self) -> Callable[[], None]:
        """For a child process of the test, before its program runs: the network that has the cable."""
        path = f"/proc/{self._user_network.pid}/ns/net"

        def enter() -> None:
            descriptor = os.open(path, os.O_RDONLY)
            assert ctypes.CDLL(None).setns(descriptor, CLONE_NEWNET) == 0
            os.close(descriptor)

        return enter

    # --- what happens to the cable

    def cut(self) -> None:
        self._ours("ip", "link", "set", CABLE, "down")

    def join(self) -> None:
        self._ours("ip", "link", "set", CABLE, "up")

    def freeze(self) -> None:
        """What is sent gets lost, and nobody is told: either side takes the other's address for another."""
        self._ours("ip", "neigh", "replace", THEIRS, "lladdr", NOWHERE, "dev", CABLE, "nud", "permanent")
        self.on("ip", "neigh", "replace", OURS, "lladdr", NOWHERE, "dev", "eth0", "nud", "permanent")

    def thaw(self) -> None:
        self._ours("ip", "neigh", "del", THEIRS, "dev", CABLE)
        self.on("ip", "neigh", "del", OURS, "dev", "eth0")

    def _ours(self, *command: str) -> None:
        _run("nsenter", "--net", "--target", str(self._user_network.pid), "--", *command)

    # --- what is on the machine

    def on(self, *command: str) -> str:
        """What a command says there."""
        first = self._inside()[0]
        return _run("nsenter", "--all", "--target", str(first), "--", *command)

    def _inside(self) -> list[int]:
        """Its processes, as this machine numbers them; the first is its sshd."""
        children = Path(f"/proc/{self._machine.pid}/task/{self._machine.pid}/children").read_text().split()
        if not children:
            return []
        own = Path(f"/proc/{children[0]}/ns/pid").readlink()
        found = [int(children[0])]
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if (
                    entry.name.isdigit()
                    and entry.name != children[0]
                    and (entry / "ns/pid").readlink() == own
                ):
                    found.append(int(entry.name))
        return found

    def processes(self, words: str = "") -> list[int]:
        """Those of lagometer there, or those whose command has these words. sshd's own are its own."""
        found = []
        for pid in self._inside()[1:]:
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command and not re.match(r"sshd: |/usr/sbin/sshd", command) and words in command:
                    found.append(pid)
        return found

    def kill(self, words: str) -> None:
        found = self.processes(words)
        assert found, words
        os.kill(found[0], signal.SIGKILL)

    def left(self) -> str:
        """What of lagometer is left there: processes, shared memory, half a copy; empty: nothing."""
        told = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in self.processes()]
        names = self.on("sh", "-c", "ls -d /dev/shm/* /home/.cache/lagometer/.arriving-* 2>/dev/null || true")
        return " ".join([*told, *names.split()])

    def close(self) -> None:
        for process in (self._machine, self._user_network):
            process.kill()
            process.wait()
        for stream in (self._user_network.stdin, self._user_network.stdout):
            assert stream is not None
            stream.close()


def _time_words() -> list[str]:
    words = ["--time", "--monotonic", str(AHEAD_S)]
    works = subprocess.run(["unshare", *words, "--fork", "true"], capture_output=True).returncode == 0
    return words if works else []


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


@contextlib.contextmanager
def machine(folder: Path, home: str = "1g", hidden: Path | None = ROOT) -> Iterator[Machine]:
    """hidden: what of this machine's files it does not see; home: the size of its user's home."""
    for name in ("root", "mount", "netns", "ip", "ssh", "ssh-keygen", "/usr/sbin/sshd"):
        need(name)
    place = folder / "machine"
    place.mkdir()
    made = Machine(place, home, hidden)
    try:
        yield made
    finally:
        made.close()
