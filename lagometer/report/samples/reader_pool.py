# SPDX-License-Identifier: Apache-2.0
"""Processes that read samples beside the report's own.

Of thousands of small files most of the time goes to Python, where threads wait for one another's lock, and to
the kernel, which must ask every CPU that a process runs on whenever a thread of it gives memory back. A
process each has neither. Nothing here may load Polars before `_begin` has said how many threads it gets.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import TYPE_CHECKING

from lagometer.report.samples.process import prepare

if TYPE_CHECKING:
    from lagometer.report.samples.files import Made, Task
    from lagometer.store.reader import Campaign

PR_SET_PDEATHSIG = 1
# What is asked of cells.parquet where a file is absent.
_OF_SAMPLES = ("cell", "trial", "valid", "imported_from")
_given: list[Campaign] = []  # in the processes alone: the one that they read


def processes(campaign: Campaign, count: int) -> ProcessPoolExecutor:
    """So many, which `begin` may be asked to begin. They end with this process, however it ends."""
    columns = [name for name in _OF_SAMPLES if name in campaign.cells.columns]
    reduced = replace(campaign, manifest={}, environment={}, journal=(), cells=campaign.cells.select(columns))
    return ProcessPoolExecutor(
        count, mp_context=get_context("spawn"), initializer=_begin, initargs=(pickle.dumps(reduced),)
    )


def begin(pool: ProcessPoolExecutor, batches: Sequence[Sequence[Task]]) -> list[Future[list[Made]]]:
    """Has them read these files, each batch by one of them. Processes begin with the first.

    An interruption from a terminal goes to all its processes; these are never to see it, not even while they
    load Python: the report's own process ends them.
    """
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(read_beside, batch) for batch in batches]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def _begin(campaign: bytes) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["POLARS_MAX_THREADS"] = "1"
    prepare()
    _given.append(pickle.loads(campaign))


def read_beside(batch: Sequence[Task]) -> list[Made]:
    """What each of these files gives."""
    from lagometer.report.samples.files import read

    (campaign,) = _given
    return read(campaign, batch)
