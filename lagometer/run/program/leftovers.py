# SPDX-License-Identifier: Apache-2.0
"""What programs under the probe leave in /dev/shm when a signal ends them: the middleware's files, which
nothing uses any more. `lagometer-leftovers` removes them, also if lagometer itself is killed meanwhile.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from lagometer.errors import SetupMissing
from lagometer.installation import leftovers_path

END_S = 10.0


class Leftovers:
    """Notes what exists now; `remove` removes what came since. patterns: of the names that middlewares use.
    For one thread only. Raises SetupMissing."""

    def __init__(self, patterns: Sequence[str]) -> None:
        program = str(leftovers_path())
        self._process = subprocess.Popen(
            [program, *patterns], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self.remove()
            raise SetupMissing(f"'{program}' can't be started", hint="run `make setup`")

    @property
    def pid(self) -> int:
        """The process that watches; it must outlive the programs."""
        return self._process.pid

    def remove(self) -> list[str]:
        """Call it when the programs have ended. Returns a sentence for each file that had to stay, and why;
        nothing when called again."""
        if self._process.returncode is not None:
            return []
        try:
            text, _ = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            text, _ = self._process.communicate()
        return text.splitlines()
