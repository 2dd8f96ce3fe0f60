# SPDX-License-Identifier: Apache-2.0
"""On the host's network /dev/shm is shared: a trial cut short leaves nothing there, and takes nothing."""

from __future__ import annotations

import mmap
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_support import ENDED_S, journal, lagometer, running, signal_a_worker, wait_until, write_study
from needs import need, require
from own_network import own_network

from lagometer.installation import worker_path

pytestmark = pytest.mark.alone

SHARED_MEMORY = Path("/dev/shm")
LONELY_WORKER = Path(__file__).with_name("lonely_worker.py")


def shared_memory() -> set[str]:
    """What there is of Fast DDS and of us; other programs come and go meanwhile."""
    names = {entry.name for entry in SHARED_MEMORY.iterdir()}
    ours = ("fastrtps_", "fast_datasharing_", "lagometer-")
    return {name for name in names if any(part in name for part in ours)}


def study_of(folder: Path, discovery_timeout: str) -> Path:
    """Two processes that talk over the shared memory transport alone: no packet leaves the machine."""
    need("fastdds")
    matrix = {"adapter": "fastdds", "workload": "pipeline-2", "rate": "50Hz", "network": "host"}
    more = {"options": {"fastdds": {"transport": "shm"}}, "discovery_timeout": discovery_timeout}
    return write_study(folder, duration="60s", matrix=matrix, **more)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Such a study whose processes have time to find each other."""
    return study_of(tmp_path, "5s")


@pytest.fixture
def other_program() -> Iterator[dict[str, Path]]:
    """Files by names that Fast DDS might give: one older than the trial; `make` adds those made during it."""
    mark = uuid.uuid4().hex[:16]
    paths = {kind: SHARED_MEMORY / f"fastrtps_{mark}{kind}" for kind in ("old", "mapped")}
    paths["old"].write_bytes(b"older than the trial")
    yield paths
    for path in paths.values():
        path.unlink(missing_ok=True)


def arguments_of(study: Path, out: Path) -> tuple[str, ...]:
    return ("run", str(study), "--out", str(out), "--no-report")


def test_a_killed_worker_leaves_nothing_and_other_programs_keep_theirs(
    tmp_path: Path, study: Path, other_program: dict[str, Path]
) -> None:
    before, out = shared_memory(), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        assert wait_until(lambda: run.reached("measure", 0)), run.events()
        made = shared_memory() - before
        assert any(name.startswith("fastrtps_") for name in made), made
        other_program["mapped"].write_bytes(bytes(4096))
        with other_program["mapped"].open("r+b") as file, mmap.mmap(file.fileno(), 0) as _in_use:
            assert signal_a_worker(run, signal.SIGKILL)
            code, _, errors = run.end()
    assert code == 3, errors
    assert journal(out)[0]["reasons"][0].startswith("worker-died"), journal(out)[0]["reasons"]
    # What an earlier program left behind, Fast DDS itself may remove: only what is new is ours.
    assert shared_memory() - before == {other_program["mapped"].name}
    assert other_program["old"].exists()


def test_what_data_sharing_leaves_is_removed_too(tmp_path: Path) -> None:
    need("fastdds")
    require("netns", os.geteuid() == 0, "root, to give the study a network of its own")
    factors = {
        "workload": "pipeline-2",
        "type": "fixed",
        "payload": "64KB",
        "rate": "50Hz",
        "network": "host",
    }
    options = {"fastdds": {"transport": "data_sharing"}}
    study = write_study(tmp_path, duration="60s", matrix={"adapter": "fastdds", **factors}, options=options)
    before, out = shared_memory(), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out), preexec_fn=own_network) as run:
        assert wait_until(lambda: run.reached("measure", 0)), run.events()
        made = shared_memory() - before
        assert any(name.startswith("fast_datasharing_") for name in made), made
        assert signal_a_worker(run, signal.SIGKILL)
        code, _, errors = run.end()
    assert code == 3, errors
    assert not shared_memory() - before


def test_a_worker_that_fails_by_itself_leaves_nothing(tmp_path: Path) -> None:
    study = study_of(tmp_path, "500ms")  # nobody is there to be found
    before, out = shared_memory(), tmp_path / "out"
    code, _, errors = lagometer(
        tmp_path,
        *arguments_of(study, out),
        environment={"LAGOMETER_TEST_WORKER": str(worker_path()), "LAGOMETER_WORKER": str(LONELY_WORKER)},
    )
    assert code == 3, errors
    reasons = journal(out)[0]["reasons"]
    assert any(reason.startswith("endpoints-missing: sink in phase discover") for reason in reasons), reasons
    assert not shared_memory() - before


@pytest.mark.parametrize("phase", ["discover", "measure"])
def test_a_killed_conductor_leaves_nothing(tmp_path: Path, study: Path, phase: str) -> None:
    before, out = shared_memory(), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        assert wait_until(lambda: run.reached(phase, 0)), run.events()
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
        assert wait_until(lambda: not shared_memory() - before, ENDED_S), shared_memory() - before
