# SPDX-License-Identifier: Apache-2.0
"""A loss of power at any moment: no finished trial is lost, none is carried out twice, none is half there.

What a campaign does to its files is recorded, and every state that the file system may leave is taken up
again. Each sync has a test that something goes wrong without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from power_loss import (
    Crash,
    Files,
    Killed,
    Noted,
    Operation,
    Recorder,
    Synced,
    build,
    crashes,
    least,
    on_disk,
)
from small_campaign import CELLS, TRIALS, carry_on, keys, parts, take_up
from turns import turn_of_commit

from lagometer.errors import CannotStore
from lagometer.run.results.trial_store import TrialStore
from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.store.storing import Journal

pytestmark = pytest.mark.by_turn

MOST = 48  # states after one operation of which all are tried
# Without LAGOMETER_LONG fewer are, drawn again each time, and one kill of so many, another at each commit.
LONG = "LAGOMETER_LONG" in os.environ
FEWER, KILLS_OF = (MOST, 1) if LONG else (16, 3)
# Who syncs what while trials are stored, and who does when another process takes up what a killed one left.
WHILE_STORING = (
    ("write_bytes_atomic", "file"),
    ("write_bytes_atomic", "folder"),
    ("make_folders", "folder"),
    ("append", "file"),
    ("append", "folder"),
    ("cut", "file"),
)
AT_TAKING_UP = (("prepare_folder", "folder"), ("_settle", "file"), ("_sync_folders", "folder"))


@dataclass(frozen=True)
class Recording:
    """What a campaign did, and what lay there in the end."""

    operations: Sequence[Operation]
    final: Files

    def without(self, site: tuple[str, str]) -> Recording:
        """The same, had these syncs not been."""
        left = [each for each in self.operations if not (isinstance(each, Synced) and each.by == site)]
        return Recording(left, self.final)


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """cells.parquet after every trial, and nothing of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrialStore, "_cells_are_due", lambda _: True)
        patch.setattr("lagometer.run.results.campaign_files.collect", lambda: {"kernel": "made up"})
        patch.setattr("lagometer.run.results.campaign_files.completed", dict)
        yield


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A folder in memory, where syncs cost nothing."""
    folder = Path("/dev/shm") / f"lagometer-test-power-{uuid.uuid4().hex}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def recording(root: Path) -> Iterator[Recorder]:
    """Notes what is done below a folder, and which trials are said to be finished."""
    root.mkdir()
    recorder = Recorder(root)
    append, cut, reopen = Journal.append, Journal.cut, TrialStore.reopen

    def appended(self: Journal, entry: dict[str, Any]) -> None:
        append(self, entry)
        recorder.note("finished", (self._path.parent.name, entry["cell"], entry["trial"]))

    def being_cut(self: Journal, size_bytes: int) -> None:
        content = self._path.read_bytes()[size_bytes:] if self._path.exists() else b""
        for entry in map(json.loads, content.splitlines() if content.endswith(b"\n") else ()):
            recorder.note("taken back", (self._path.parent.name, entry["cell"], entry["trial"]))
        cut(self, size_bytes)

    def reopened(self: TrialStore) -> None:
        reopen(self)
        for key in self.done:
            recorder.note("finished", (self.directory.name, *key))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "append", appended)
        patch.setattr(Journal, "cut", being_cut)
        patch.setattr(TrialStore, "reopen", reopened)
        recorder.watch(patch)
        yield recorder
    assert recorder.seen == on_disk(root), "files are changed in a way that is not recorded"


def finished(operations: Sequence[Operation]) -> frozenset[object]:
    """The trials that were said to be finished: name of the store's folder, cell, trial."""
    found = set()
    for each in operations:
        if isinstance(each, Noted):
            (found.add if each.what == "finished" else found.discard)(each.about)
    return frozenset(found)


@pytest.fixture(scope="module")
def recorded(scratch: Path) -> Recording:
    """A campaign that finds no room for a table when a trial is already in the journal, and is resumed."""
    out = scratch / "recorded" / "out"
    with recording(out.parent) as recorder:
        recorder.refuse = lambda path: (
            path == out / ".cells.parquet.partial" and (out / form.JOURNAL).exists()
        )
        results = take_up(out)
        with pytest.raises(CannotStore):
            carry_on(results)
        with contextlib.suppress(CannotStore):
            results.finish("interrupted")
        recorder.refuse = lambda _: False
        carry_on(take_up(out))
    return Recording(recorder.operations, recorder.seen)


@pytest.fixture(scope="module")
def killed(scratch: Path) -> list[tuple[Recording, int]]:
    """Campaigns that were killed, until two trials were stored, wherever something was not synced yet, and
    resumed; with the number of the operation before which they were killed."""
    with recording(scratch / "undisturbed") as recorder:
        carry_on(take_up(scratch / "undisturbed" / "out"))
    found = []
    for kill_at, last in enumerate(recorder.operations, start=1):
        if len(finished(recorder.operations[:kill_at])) == TRIALS:
            break
        if not isinstance(last, Synced | Noted):
            found.append((killed_and_resumed(scratch / f"killed-{kill_at}", kill_at), kill_at))
    return found


def killed_and_resumed(root: Path, kill_at: int) -> Recording:
    with recording(root) as recorder:
        recorder.kill_at = kill_at
        with pytest.raises(Killed):
            carry_on(take_up(root / "out"))
        recorder.revive()
        carry_on(take_up(root / "out"))
    return Recording(recorder.operations, recorder.seen)


def check(crash: Crash, promised: frozenset[object], final: Files, folder: Path) -> None:
    """Takes up what a loss of power left; nothing may be lost, and in the end each trial is there once."""
    build(crash.files, folder)
    out = folder / "out"
    if (out / form.MANIFEST).is_file():
        open_campaign(out)
    results = take_up(out)
    done = {(store.directory.name, *key) for store in parts(results).values() for key in store.done}
    assert promised <= done, f"lost: {promised - done}"
    carry_on(results)
    for part, store in parts(results).items():
        wanted = [(CELLS[part], trial) for trial in range(TRIALS)]
        assert sorted(keys(store.directory)) == wanted
        table = pl.read_parquet(store.directory / form.CELLS)
        assert sorted(table.select("cell", "trial").rows()) == wanted
    # What was finished before is not written again: that it is whole shows here, too.
    assert stored(on_disk(folder)) == stored(final)


def stored(files: Files) -> dict[str, int]:
    """The samples and logs, as check sums."""
    wanted = (path for path in files if path.startswith("out/") and form.SAMPLES in path)
    return {path: zlib.crc32(files[path] or b"") for path in wanted}


def first_problem(
    recording: Recording, states: Iterable[Crash], scratch: Path, whole: set[object] | None = None
) -> str | None:
    """What is wrong with the first state from which a campaign can't go on; `whole`: those known to be so."""
    whole = set() if whole is None else whole
    for crash in states:
        promised = finished(recording.operations[: crash.after])
        state = (promised, tuple(sorted(crash.files.items())))
        if state in whole:
            continue
        folder = scratch / "crashed"
        try:
            check(crash, promised, recording.final, folder)
        except Exception as error:
            last = recording.operations[crash.after - 1]
            return f"after {crash.after} operations, the last {last}: {type(error).__name__}: {error}"
        finally:
            shutil.rmtree(folder)
        whole.add(state)
    return None


@pytest.fixture(scope="module")
def whole() -> set[object]:
    """States that were found whole."""
    return set()


def test_every_sync_is_known_here(recorded: Recording) -> None:
    """A new one must be added above, so that it is shown to be needed."""
    sites = {each.by for each in recorded.operations if isinstance(each, Synced)}
    assert sites == {*WHILE_STORING, *AT_TAKING_UP}


def test_whatever_a_loss_of_power_leaves_is_taken_up(
    recorded: Recording, scratch: Path, whole: set[object]
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    states = crashes(recorded.operations, random.Random(seed), FEWER)
    problem = first_problem(recorded, states, scratch, whole)
    assert problem is None, f"seed {seed}: {problem}"
    assert len(whole) > len(recorded.operations)


@pytest.mark.parametrize("site", WHILE_STORING)
def test_without_a_sync_something_is_lost(
    recorded: Recording, scratch: Path, whole: set[object], site: tuple[str, str]
) -> None:
    forgetful = recorded.without(site)
    states = crashes(forgetful.operations, random.Random(1), MOST)
    assert first_problem(forgetful, states, scratch, whole) is not None


def after_a_kill(recording: Recording, killed_at: int) -> Iterator[Crash]:
    """What is left for certain when, after the kill, a trial is first said to be finished, and in the end."""
    told = [count for count, each in enumerate(recording.operations, start=1) if isinstance(each, Noted)]
    yield least(recording.operations, next(count for count in told if count > killed_at))
    yield least(recording.operations, len(recording.operations))


def test_what_a_kill_left_is_on_the_disk_before_anything_rests_on_it(
    killed: list[tuple[Recording, int]], scratch: Path
) -> None:
    whole: set[object] = set()
    assert len(killed) > 10
    for recording, killed_at in killed[turn_of_commit() % KILLS_OF :: KILLS_OF]:
        problem = first_problem(recording, after_a_kill(recording, killed_at), scratch, whole)
        assert problem is None, f"killed before operation {killed_at}: {problem}"


@pytest.mark.parametrize("site", AT_TAKING_UP)
def test_without_a_sync_what_a_kill_left_is_lost_later(
    killed: list[tuple[Recording, int]], scratch: Path, site: tuple[str, str]
) -> None:
    without = ((recording.without(site), killed_at) for recording, killed_at in killed)
    assert any(first_problem(each, after_a_kill(each, at), scratch) for each, at in without)
