# SPDX-License-Identifier: Apache-2.0
"""CPUs that never sleep.

A CPU with nothing to do halts, and waking it takes a time that depends on how long it slept: on a virtual
machine tens of microseconds more or less. A delay that is injected lengthens the sleep of others, so it also
changes their wake-ups, which is true, but not what a benchmark of the probes asks. A loop of the class
SCHED_IDLE on each CPU keeps it awake, and gives way to every other thread at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# Ends with its parent, however that ends.
LOOP = """
import os
os.sched_setaffinity(0, {%(cpu)d})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == %(parent)d:
    for _ in range(10_000):
        pass
"""


@contextmanager
def awake_cpus() -> Iterator[None]:
    """Keeps every CPU of this process awake while the context lasts."""
    with ExitStack() as running:
        for cpu in sorted(os.sched_getaffinity(0)):
            code = LOOP % {"cpu": cpu, "parent": os.getpid()}
            loop = running.enter_context(subprocess.Popen((sys.executable, "-S", "-c", code)))
            running.callback(loop.kill)  # before the wait of Popen's own end
        yield
