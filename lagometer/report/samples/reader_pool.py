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
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from lagometer.report.samples.process import prepare

if TYPE_CHECKING:
    from lagometer.report.samples.files import Made, Task
    from lagometer.store.reader import Campaign

PR_SET_PDEATHSIG = 1
CPUS_MAX = 4
# Above these, processes pay off; each takes most of a second of CPU time to start.
BYTES_FOR_PROCESSES, FILES_FOR_PROCESSES = 140_000_000, 200
# The columns of cells.parquet that are needed if a file is missing.
_OF_SAMPLES = ("cell", "trial", "valid", "imported_from")


def readers_of(directory: Path) -> ProcessPoolExecutor | None:
    """Processes for a campaign with enough samples for them to pay off; None for any other.

    They load what they need while the caller does, so call it first. The caller closes them.
    """
    files = size_bytes = 0
    try:
        for folder, _, names in os.walk(directory / "samples"):
            if len(names) > 1:
                return None  # curves need the latencies of all trials of a cell
            files += len(names)
            # Not through Path: there may be thousands.
            size_bytes += sum(os.stat(f"{folder}/{name}").st_size for name in names)  # noqa: PTH116
    except OSError:
        return None  # whoever reads the samples says what is wrong
    enough = files >= FILES_FOR_PROCESSES and size_bytes >= BYTES_FOR_PROCESSES and cpus() > 1
    return processes(cpus()) if enough else None


def cpus() -> int:
    """How many CPUs to use at once."""
    return min(CPUS_MAX, len(os.sched_getaffinity(0)))


def processes(count: int) -> ProcessPoolExecutor:
    """`count` processes, which start now and load what they need. They end with this process, however that
    ends.

    An interruption from a terminal reaches all its processes. These must never see it, not even while they
    load Python: the report's own process ends them.
    """
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool.submit(os.getpid)  # with the first call, all of them start
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
    return pool


def begin(
    pool: ProcessPoolExecutor, campaign: Campaign, batches: Sequence[Sequence[Task]]
) -> list[Future[list[Made]]]:
    """Distributes these files, one batch per process at a time. Raises BrokenProcessPool if none can run."""
    columns = [name for name in _OF_SAMPLES if name in campaign.cells.columns]
    reduced = replace(campaign, manifest={}, environment={}, journal=(), cells=campaign.cells.select(columns))
    pickled = pickle.dumps(reduced)
    return [pool.submit(read_beside, pickled, batch) for batch in batches]


def _begin() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["POLARS_MAX_THREADS"] = "1"
    prepare()
    from lagometer.report.samples import files  # noqa: F401 - before the first batch is known


def read_beside(campaign: bytes, batch: Sequence[Task]) -> list[Made]:
    """The result for each of these files. campaign: as `begin` pickles it."""
    from lagometer.report.samples.files import read

    return read(_campaign(campaign), batch)


@lru_cache(maxsize=1)
def _campaign(pickled: bytes) -> Campaign:
    campaign: Campaign = pickle.loads(pickled)
    return campaign
