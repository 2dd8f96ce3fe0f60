# SPDX-License-Identifier: Apache-2.0
"""Starts the agents of a trial's hosts concurrently, so a slow one does not make others lose their lease."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.link import AgentLink

LOOK_S = 0.5  # how often to renew the leases of open links


def open_all(links: Sequence[AgentLink]) -> None:
    """Opens the links that are not open. `unreachable` of each says why it can't be opened."""
    if len(links) == 1:
        _attempt(links[0])
        return
    threads = {link.name: threading.Thread(target=_attempt, args=(link,), daemon=True) for link in links}
    for thread in threads.values():
        thread.start()
    while any(thread.is_alive() for thread in threads.values()):
        for link in links:
            if threads[link.name].is_alive():
                threads[link.name].join(LOOK_S)
            elif link.is_open:
                link.renew()
                link.flush()


def _attempt(link: AgentLink) -> None:
    with contextlib.suppress(HostError):
        link.open()
