# SPDX-License-Identifier: Apache-2.0
"""Which launcher starts the agent of each host of a campaign, and what launchers share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lagometer.installation import supervisor_path
from lagometer.run.hosts.base import Launcher
from lagometer.run.hosts.bundle import bundle_of
from lagometer.run.hosts.local import LocalLauncher
from lagometer.run.hosts.netns import NetnsLauncher, Switch
from lagometer.run.hosts.ssh import SshLauncher
from lagometer.study.hosts import SSH, Host


class Launchers:
    """Makes the launchers of one campaign. libraries: those that its workers load."""

    def __init__(self, libraries: Sequence[Path] = ()) -> None:
        self._switch = Switch()
        self._numbers = itertools.count()
        self._bundle = cache(lambda: bundle_of(libraries))

    def of(self, name: str, host: Host) -> Launcher:
        """Returns a new launcher for a host."""
        if host.is_emulated:
            number = next(self._numbers)
            return NetnsLauncher(supervisor_path(), self._switch, name, number, host.address, host.before)
        if host.launcher == SSH:
            return SshLauncher(name, host, self._bundle())
        return LocalLauncher(supervisor_path(), host.before)

    def close(self) -> None:
        """Ends the shared parts, once all agents have ended. May be called twice."""
        self._switch.close()
