# SPDX-License-Identifier: Apache-2.0
"""The process that is an agent, or that carries an agent's pipes: a child process of ours."""

from __future__ import annotations

import contextlib
import fcntl
import signal
import subprocess
from collections.abc import Mapping, Sequence

from lagometer.agent.supervised import ends_within
from lagometer.run.hosts.base import AgentPipes, HostError
from lagometer.standard_streams import ensure_standard_descriptors

PIPE_BYTES = 1 << 20  # records come this way: fewer wake-ups than with the kernel's 64 KiB
TERMINATION_S = 5.0  # longer than the agent gives its supervisor


class AgentProcess:
    """One such process: started once; it ends when its input ends."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Starts it in its own session: we handle Ctrl-C on the terminal, not the process. Raises
        `HostError`."""
        ensure_standard_descriptors()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            raise HostError(f"{command[0]} can't be started: {error.strerror}") from error
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with contextlib.suppress(OSError):  # over the user's limit on pipe memory: slower, but correct
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._process: subprocess.Popen[bytes] | None = process
        self.pipes = AgentPipes(process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno())

    def code(self) -> int | None:
        """Returns its exit code, negative for a signal; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def ended(self) -> str | None:
        """Returns the exit code or signal in words; None while it runs."""
        code = self.code()
        if code is None:
            return None
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def close(self) -> None:
        """Closes its input, which makes it end everything. Kills it if that takes too long. May be called
        twice."""
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
