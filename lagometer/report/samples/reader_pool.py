# SPDX-License-Identifier: Apache-2.0
"""Processes that read samples in parallel with the report's own process.

With thousands of small files most of the time goes to Python, where threads wait for each other's lock, and
to the kernel, which must notify every CPU that a process runs on whenever one of its threads frees memory.
Separate processes avoid both. Nothing here may load Polars before `_begin` has set its number of threads.
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
# The columns of cells.parquet that are needed if a file is missing.
_OF_SAMPLES = ("cell", "trial", "valid", "imported_from")
_given: list[Campaign] = []  # only in the processes: the one that they read


def processes(campaign: Campaign, count: int) -> ProcessPoolExecutor:
    """`count` processes, which `begin` may start. They end with this process, however it ends."""
    columns = [name for name in _OF_SAMPLES if name in campaign.cells.columns]
    reduced = replace(campaign, manifest={}, environment={}, journal=(), cells=campaign.cells.select(columns))
    return ProcessPoolExecutor(
        count, mp_context=get_context("spawn"), initializer=_begin, initargs=(pickle.dumps(reduced),)
    )


def begin(pool: ProcessPoolExecutor, batches: Sequence[Sequence[Task]]) -> list[Future[list[Made]]]:
    """Distributes these files, one batch per process at a time. The processes start with the first batch.

    An interruption from a terminal reaches all its processes. These must never see it, not even while they
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
    """The result for each of these files."""
    from lagometer.report.samples.files import read

    (campaign,) = _given
    return read(campaign, batch)
