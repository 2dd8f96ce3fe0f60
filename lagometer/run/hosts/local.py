# SPDX-License-Identifier: Apache-2.0
"""An agent on this machine: a child process."""

from __future__ import annotations

import contextlib
import fcntl
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lagometer.agent.supervised import ends_within
from lagometer.run.hosts.base import AgentPipes, HostError
from lagometer.standard_streams import ensure_standard_descriptors

AGENT = "lagometer.agent"
PIPE_BYTES = 1 << 20  # records come this way: fewer wake-ups than with the kernel's 64 KiB
TERMINATION_S = 5.0  # longer than the agent gives its supervisor


class LocalLauncher:
    """The launcher for this machine; see `lagometer.run.hosts.base.Launcher`.

    supervisor: the program that the agent starts its trials with; before: words in front of the agent's
    command.
    """

    def __init__(self, supervisor: Path, before: Sequence[str] = ()) -> None:
        self._command = (*before, sys.executable, "-I", "-m", AGENT, str(supervisor))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> AgentPipes:
        """Starts the agent in a session of its own: a Ctrl-C on the terminal is ours to handle, not its."""
        ensure_standard_descriptors()
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise HostError(f"{self._command[0]} can't be started: {error.strerror}") from error
        self._process = process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with contextlib.suppress(OSError):  # over the user's limit on pipe memory: slower, not wrong
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return AgentPipes(process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno())

    def ended(self) -> str | None:
        """Says with which code or signal."""
        if self._process is None:
            return "was not started"
        code = self._process.poll()
        if code is None:
            return None
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def close(self) -> None:
        """Closes its input, on which it ends everything; kills it if that takes too long."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.close()
        if not ends_within(process, TERMINATION_S):
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()
