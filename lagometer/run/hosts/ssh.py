# SPDX-License-Identifier: Apache-2.0
"""An agent on a host that the user's OpenSSH reaches, with the user's configuration, keys and jump hosts.

One connection does everything: a small program arrives on the host, finds lagometer there or takes a copy,
and becomes the agent (`lagometer.agent.arrival`). It installs nothing and opens no port.
"""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lagometer.installation import PACKAGE
from lagometer.run.hosts.base import AgentPipes, HostError
from lagometer.run.hosts.bundle import Bundle, here
from lagometer.run.hosts.dialogue import Dialogue, DialogueError
from lagometer.run.hosts.process import AgentProcess
from lagometer.study.hosts import Host

PROGRAM = "ssh"
# ssh asks for no password and notices a cut or frozen link within eight seconds. It uses a connection that
# the user holds open, and leaves none open itself.
OPTIONS = {
    "BatchMode": "yes",
    "ClearAllForwardings": "yes",
    "ConnectTimeout": "10",
    "ControlMaster": "no",
    "ServerAliveCountMax": "3",
    "ServerAliveInterval": "2",
}
SSH_FAILED = 255
NOT_FOUND = 127
ARRIVE_S = 30.0  # through jump hosts
FIND_S = 60.0  # to read all files there
PART_S = 30.0  # for each part of a copy
_ADVICE = {  # what OpenSSH says → what to do
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "its host key has changed. Find out why; if the new one is "
    "right: `ssh-keygen -R {destination}`, then `{command}` once by hand",
    "Host key verification failed": "its host key is not known. Run `{command}` once by hand, and check the "
    "key",
    "Permission denied": "your key is not accepted, and lagometer asks for no password. `ssh-copy-id "
    "{destination}`, `ssh-add`, or name the key in your ssh configuration (IdentityFile); try `{command}`",
    "Could not resolve hostname": "write its HostName into your ssh configuration, or another `destination`",
    "Connection refused": "start its sshd, or write the right Port into your ssh configuration",
    "timed out": "it does not answer: check that it runs and the link is up; try `{command}`",
    "Network is unreachable": "it does not answer: check that it runs and the link is up; try `{command}`",
    "No route to host": "it does not answer: check that it runs and the link is up; try `{command}`",
    "not found": "install Python 3.10 or newer there, so that `{python}` is found",
    "No such file or directory": "install Python 3.10 or newer there, so that `{python}` is found",
}
_MARKS = {  # what the arriving agent says → what to do
    "another-agent": "install the version of this lagometer there, or leave `path` out to have it copied",
    "broken": "try again; check the memory and the disk of that host",
    "machine": "install lagometer there and name it with `path`",
    "no-room": "make room there (old copies lie in ~/.cache/lagometer), or install lagometer there and name "
    "it with `path`",
    "not-run": "let programs run there, or install lagometer elsewhere and name it with `path`",
    "python": "install Python 3.10 or newer there",
    "silent": "check the link",
}


class SshLauncher:
    """The launcher for such a host; see `lagometer.run.hosts.base.Launcher`.

    bundle: what that host needs from this installation.
    """

    def __init__(self, name: str, host: Host, bundle: Bundle) -> None:
        self._host, self._bundle = host, bundle
        self._destination = host.destination or name
        self._process: AgentProcess | None = None
        self._root = ""  # of this host's files there; empty: not known
        self._is_copy = False
        self._machine = ""  # its type; empty: not known

    def start(self) -> AgentPipes:
        """Connects, makes the host find or copy lagometer, and starts the agent."""
        self.close()
        source = (PACKAGE / "agent" / "arrival.py").read_bytes()
        python = self._python()
        # Short words without inner quotes: whatever shell the user has there passes them on.
        arrive = f'exec(open(0,"rb",closefd=False).read({len(source)}))'
        remote = f"exec {_quoted(python)} -I -c '{arrive}'"
        process = self._process = AgentProcess((*self.command(), remote))
        dialogue = Dialogue(process.pipes)
        try:
            dialogue.write(source, ARRIVE_S)
            self._machine = str(dialogue.hear(ARRIVE_S).get("machine", ""))
            self._find(dialogue)
        except DialogueError as error:
            why = self._explained(error, python)
            self.close()
            raise HostError(why) from error
        except HostError:
            self.close()
            raise
        return process.pipes

    def command(self) -> tuple[str, ...]:
        """Returns the ssh command for this host, without the remote command."""
        options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
        config = ("-F", self._host.config) if self._host.config else ()
        return (PROGRAM, "-T", *config, *options, "--", self._destination)

    def _by_hand(self) -> str:
        config = ("-F", self._host.config) if self._host.config else ()
        return shlex.join((PROGRAM, *config, self._destination))

    def _python(self) -> str:
        """Returns the interpreter there: from the installation that the study names, otherwise the host's
        own."""
        interpreter = Path(sys.executable)
        if not self._host.path or not interpreter.is_relative_to(here()):
            return "python3"
        return f"{self._host.path}/{interpreter.relative_to(here())}"

    def _find(self, dialogue: Dialogue) -> None:
        """Makes the host look for what it needs, sends a copy if the host asks for one, and starts the
        agent."""
        dialogue.say(self._bundle.wanted(self._host.path, self._host.before), PART_S)
        answer = dialogue.hear(FIND_S)
        if answer.get("event") == "wanted":
            packed = self._bundle.packed()
            dialogue.say({"bytes": len(packed)}, PART_S)
            dialogue.write(packed, PART_S)
            answer = dialogue.hear(FIND_S)
        if answer.get("event") != "found":
            raise HostError(self._refused(answer))
        self._root, self._is_copy = str(answer["root"]), not self._host.path
        dialogue.say({"command": "begin"}, PART_S)

    def _refused(self, answer: Mapping[str, Any]) -> str:
        code, reason = str(answer.get("code")), str(answer.get("reason", answer))
        if code == "machine":
            reason = f"it is {reason}, and what is built here is for {platform.machine()}"
        advice = f": {_MARKS[code]}" if code in _MARKS else ""
        if code == "another-agent" and self._machine != platform.machine():
            advice = f": install the version of this lagometer there; a copy can't run on {self._machine}"
        return f"lagometer can't be started there: {reason}{advice}"

    def _explained(self, error: DialogueError, python: str) -> str:
        """Returns what ssh or the remote shell reported, and how to fix it."""
        words = {"destination": self._destination, "command": self._by_hand(), "python": python}
        error_lines = error.said.splitlines()
        last = f"; it said: {error_lines[-1].strip()}" if error_lines else ""
        noise = f"; its shell wrote: {error.noise.splitlines()[0]}" if error.noise else ""
        for mark, advice in _ADVICE.items():
            if mark in error.said:
                return f"ssh {self._destination}: {advice.format(**words)}{last}"
        return f"ssh {self._destination}: {error}: try `{words['command']}` by hand{last}{noise}"

    def ended(self) -> str | None:
        """Returns the exit code or signal of ssh, and its meaning."""
        if self._process is None:
            return "was not started"
        ending = self._process.ended()
        if ending is None:
            return None
        why = ": the link broke, or the agent was killed" if self._process.code() == SSH_FAILED else ""
        advice = f"see that `{self._by_hand()}` works; the next trial connects again"
        return f"was reached by ssh, which {ending}{why}: {advice}"

    def there(self, path: str) -> str:
        """A file of this installation is in the installation there, or in the copy. Any other path is the
        same."""
        if not self._root:
            return path
        if self._is_copy:
            name = path.lstrip("/")
            return str(Path(self._root, name)) if name in self._bundle.hashes else path
        local_path = Path(path)
        return (
            str(Path(self._root) / local_path.relative_to(here()))
            if local_path.is_relative_to(here())
            else path
        )

    def close(self) -> None:
        """Ends ssh, which ends the agent. An agent with a cut link ends when its lease expires."""
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _quoted(path: str) -> str:
    """Quotes a path for a shell; `~/` remains the home folder there."""
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)
