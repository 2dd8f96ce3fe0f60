# SPDX-License-Identifier: Apache-2.0
"""Programs get their descriptors however few files they may open; if not, their log says why."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

NAMES = ("stdin", "stdout", "stderr", "records")
WORKER = 'read -r line; echo "heard $line"; echo said >&2; echo noted >&3'
LIMIT = 64
# Limits the open files, and puts one of the worker's descriptors where its memory for records belongs.
LIMITED = 'ulimit -n "$0" && exec "$1" 3<&"$2"'
UNUSED = 60  # a number that nothing has


@pytest.fixture
def files(tmp_path: Path) -> Iterator[dict[str, int]]:
    """A file for each descriptor of a worker, at numbers above its own."""
    (tmp_path / "stdin").write_text("orders\n")
    opened = {}
    for name in NAMES:
        low = os.open(tmp_path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        opened[name] = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 10)
        os.close(low)
    yield opened
    for descriptor in opened.values():
        os.close(descriptor)


def notices(
    build: Path, files: Mapping[str, int], third: str, specification: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What the supervisor says until it ends by itself."""
    supervisor = str(build / "engine" / "lagometer-supervisor")
    with subprocess.Popen(
        ["bash", "-c", LIMITED, str(LIMIT), supervisor, str(files[third])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=list(files.values()),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"network": "host", "workers": [], **specification}).encode() + b"\n")
        process.stdin.flush()  # and stays open: its end would end everything
        return [json.loads(line) for line in process.stdout]


def end_of(said: list[dict[str, Any]], event: str) -> object:
    """The exit code of the only program."""
    (ended,) = [notice for notice in said if notice["event"] == event]
    return ended.get("code")


@pytest.mark.parametrize("third", NAMES)
def test_a_worker_gets_its_descriptors_with_few_open_files(
    build: Path, tmp_path: Path, files: dict[str, int], third: str
) -> None:
    worker = {"argv": ["sh", "-c", WORKER], **files, third: 3}
    assert end_of(notices(build, files, third, {"workers": [worker]}), "exited") == 0
    assert [(tmp_path / name).read_text() for name in NAMES[1:]] == ["heard orders\n", "said\n", "noted\n"]


def test_a_companion_gets_its_output_with_few_open_files(
    build: Path, tmp_path: Path, files: dict[str, int]
) -> None:
    companion = {"argv": ["sh", "-c", "echo one; echo two >&2"], "output": files["stdout"]}
    said = notices(build, files, "stdin", {"companions": [companion]})
    assert end_of(said, "companion-exited") == 0
    assert (tmp_path / "stdout").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("missing", ["stdin", "stdout", "records"])
def test_a_descriptor_that_is_missing_is_said_in_the_workers_log(
    build: Path, tmp_path: Path, files: dict[str, int], missing: str
) -> None:
    worker = {"argv": ["sh", "-c", WORKER], **files, missing: UNUSED}
    assert end_of(notices(build, files, "stdin", {"workers": [worker]}), "exited") == 127
    log = (tmp_path / "stderr").read_text()
    assert f"descriptor {UNUSED} can't become the program's" in log and "pass it on" in log
