# SPDX-License-Identifier: Apache-2.0
"""What the schedulers of a trial's hosts did: on the conductor's clock, with the thread numbers of
records."""

from __future__ import annotations

from collections.abc import Sequence

from lagometer.agent.observe.scheduler import ThreadNumbers
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.stats.trial.scheduling import Numbers, Scheduled
from lagometer.store.errors import RecordsError
from lagometer.store.scheduler import SchedulerLog, decode


def scheduled_of(outcome: TrialOutcome) -> tuple[list[Scheduled], dict[str, str]]:
    """Returns what each host recorded, and by host why nothing was recorded or why it can't be read."""
    recordings: list[Scheduled] = []
    unavailable: dict[str, str] = {}
    for host in outcome.hosts:
        recorded = host.scheduled
        if recorded is None:
            unavailable[host.name] = "its agent did not get so far"
        elif recorded.why is not None:
            unavailable[host.name] = recorded.why
        else:
            try:
                log = decode(recorded.content)
            except RecordsError as error:
                unavailable[host.name] = str(error)
                continue
            recordings.append(Scheduled(log.moved(-host.clock.offset_ns), numbers_of(recorded.threads, log)))
    return recordings, unavailable


def numbers_of(threads: Sequence[ThreadNumbers], log: SchedulerLog) -> dict[int, Numbers]:
    """Returns, by worker, a map from a thread's number in records to its number in the log. A thread that
    never left a CPU has no events, so it is left out."""
    by_seen_as = {seen_as: number for number, seen_as in log.seen_as.items()}
    by_worker: dict[int, dict[int, int]] = {}
    for thread in threads:
        if thread.here in by_seen_as:
            by_worker.setdefault(thread.worker, {})[thread.there] = by_seen_as[thread.here]
    return {**by_worker}
