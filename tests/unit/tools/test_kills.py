# SPDX-License-Identifier: Apache-2.0
"""How the benchmark of kills knows what a trial left behind: benchmarks/kills.py."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from needs import need

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from kills import Spaces, number_of


@contextlib.contextmanager
def process_in_a_namespace() -> Iterator[str]:
    """The process id of one that is the first in a process namespace of its own."""
    command = ("unshare", "--pid", "--fork", "--kill-child", "sh", "-c", "echo ready && exec sleep 600")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as outside:
        try:
            assert outside.stdout is not None
            assert outside.stdout.readline() == b"ready\n"
            process = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().strip()
            ended = os.pidfd_open(int(process))
            yield process
        finally:
            outside.kill()
    # The kernel kills the process inside when the one outside is gone, and a little later.
    with os.fdopen(ended) as readable:
        assert select.select([readable], [], [], 60)[0]


def test_who_lives_in_a_namespace_that_was_noted_is_found_without_a_mark() -> None:
    need("root")
    with contextlib.closing(Spaces()) as spaces, process_in_a_namespace() as process:
        assert spaces.members() == []
        spaces.note([int(process)])
        assert spaces.members() == [int(process)]


def test_a_later_namespace_of_others_is_not_taken_for_one_that_is_gone() -> None:
    """The kernel gives the number of a namespace that is gone to the next one."""
    need("root")
    with contextlib.closing(Spaces()) as spaces:
        with process_in_a_namespace() as process:
            spaces.note([int(process)])
            number = number_of(process)
        with process_in_a_namespace() as another:
            assert number_of(another) != number
            assert spaces.members() == []
