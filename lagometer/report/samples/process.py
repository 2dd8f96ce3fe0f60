# SPDX-License-Identifier: Apache-2.0
"""Memory and thread settings of a process that makes a report. Must run before Polars is loaded."""

from __future__ import annotations

import ctypes
import gc
import os

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
_MAPPED_FROM_BYTES = 32 << 20  # the most that the C library takes
_KEPT_BYTES = 2**31 - 1


def prepare() -> None:
    """Reuses freed memory instead of returning it to the kernel after each file, which would clear it again.

    A report's hundred thousand records live until the process ends: searching them for garbage cycles takes a
    tenth of the time and frees nothing. Threads for linear algebra would wait by spinning, and there is no
    linear algebra.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:30000,muzzy_decay_ms:30000")  # Polars' own
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of the GNU C library
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
        mallopt(M_TRIM_THRESHOLD, _KEPT_BYTES)
