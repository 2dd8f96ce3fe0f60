# SPDX-License-Identifier: Apache-2.0
"""A power cut may end the journal at any byte: what is whole before the cut stays, the rest is done again."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl
import pytest
from campaign_support import lagometer, write_study
from needs import ROOT, need
from small_campaign import store_trial

from lagometer.errors import BadInput
from lagometer.run.results.campaign_files import Results
from lagometer.run.results.trial_store import Key, TrialStore
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store import format as form
from lagometer.store.reader import open_campaign

MATRIX = {"adapter": "shm", "workload": "pipeline-2", "rate": "500Hz"}
CELL = "shm/pipeline-2/500Hz"
FEWER = 47  # of so many cuts one is tried without LAGOMETER_LONG, and both ends of each line
SOME = 13  # likewise, where each cut is followed by whole trials
SHORT = {"duration": "60ms", "warmup": "10ms", "drain": "10ms"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small campaign as it stands when it is finished, with a control and a long trial."""
    need("netns")
    folder = tmp_path_factory.mktemp("finished")
    study = write_study(folder, trials=3, matrix=MATRIX, control="floor", long_trial="80ms", **SHORT)
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(folder / "out"), "--no-report")
    assert code in (0, 3), errors
    return folder


@pytest.fixture
def copy(finished: Path) -> Iterator[Path]:
    """The same in shared memory, where tens of thousands of syncs cost nothing."""
    target = Path("/dev/shm") / f"lagometer-test-cut-{os.getpid()}"
    shutil.copytree(finished / "out", target)
    yield target
    shutil.rmtree(target)


def keys(content: bytes) -> list[Key]:
    return [(entry["cell"], entry["trial"]) for entry in map(json.loads, content.splitlines())]


def put_back(copy: Path, files: Mapping[str, bytes], journal: bytes) -> None:
    """Everything as it was, but for the journal."""
    for name, content in files.items():
        if not (copy / name).exists():
            (copy / name).write_bytes(content)
    (copy / "journal.jsonl").write_bytes(journal)


def ends_of(journal: bytes) -> set[int]:
    """Where its lines end, and its beginning."""
    lines = journal.splitlines(keepends=True)
    return {sum(map(len, lines[:count])) for count in range(len(lines) + 1)}


def places(journal: bytes, step: int) -> list[int]:
    """Where it is cut: every so many bytes, at each line's end, and one byte before that."""
    ends = ends_of(journal)
    return sorted({*range(0, len(journal) + 1, step), *ends, *(end - 1 for end in ends if end)})


def samples_of(folder: Path) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in sample_paths(folder)}


def redo(store: TrialStore, entry: dict[str, object], samples: Path) -> None:
    """Stores a trial again that was carried out before."""
    outcome = TrialOutcome((), 0, 0, 0, 0, "", 0.0, 0.0, {})
    rows = form.cells_of_rows(entry["rows"])  # type: ignore[arg-type]
    key = (str(entry["cell"]), int(str(entry["trial"])))
    store.store(key, outcome, pl.read_parquet(samples), rows, 0.0)


@pytest.mark.parametrize(("part", "count", "step"), [("", 3, 1), ("control", 3, 13), ("long", 1, 13)])
def test_the_journal_cut_at_every_byte_is_taken_up(
    finished: Path, copy: Path, part: str, count: int, step: int
) -> None:
    step = step if "LAGOMETER_LONG" in os.environ else step * FEWER
    copy, before = copy / part, finished / "out" / part
    whole = (before / "journal.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    files = samples_of(before)
    assert len(lines) == count
    ends = ends_of(whole)
    for size in places(whole, step):
        put_back(copy, files, whole[:size])
        store = TrialStore(copy)
        store.reopen()
        kept = whole[: whole.rfind(b"\n", 0, size) + 1]
        assert list(store.done) == keys(kept), size
        assert (copy / "journal.jsonl").read_bytes() == kept, size
        assert sample_paths(copy) == sorted(f"samples/{cell}/{trial}.parquet" for cell, trial in store.done)
        if size in ends or size + 1 in ends or size % 997 == 0:
            for line in lines[len(store.done) :]:
                entry = json.loads(line)
                redo(store, entry, before / entry["path"])
            assert keys((copy / "journal.jsonl").read_bytes()) == keys(whole)
            assert (copy / "journal.jsonl").read_bytes().startswith(kept)
            for cell, trial in keys(kept):
                path = f"samples/{cell}/{trial}.parquet"
                assert (copy / path).read_bytes() == files[path]
            store.write_cells()
            again = pl.read_parquet(copy / "cells.parquet")
            assert sorted(again.select("cell", "trial").unique().rows()) == sorted(keys(whole))


def sample_paths(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob("samples/**/*.parquet"))


@pytest.mark.parametrize("tail", [b"\0" * 300, b"\0" * 100 + b'"}\n', b'{"cell": "x\xe2\x86', b"\n"])
def test_what_a_file_system_may_leave_at_the_end_is_no_trial(finished: Path, copy: Path, tail: bytes) -> None:
    whole = (finished / "out" / "journal.jsonl").read_bytes()
    put_back(copy, samples_of(finished / "out"), whole + tail)
    assert len(open_campaign(copy).journal) == 3
    store = TrialStore(copy)
    store.reopen()
    assert list(store.done) == keys(whole)
    assert (copy / "journal.jsonl").read_bytes() == whole


def test_what_is_missing_is_done_again_wherever_the_journal_was_cut(copy: Path) -> None:
    """A journal of short lines, so that many of its bytes can be tried, and each of them at night."""
    folder, trials = copy / "short", range(2)
    store = TrialStore(folder)
    for trial in trials:
        store_trial(store, (CELL, trial))
    whole, files = (folder / "journal.jsonl").read_bytes(), samples_of(folder)
    assert len(files) == len(trials)
    for size in places(whole, 1 if "LAGOMETER_LONG" in os.environ else SOME):
        put_back(folder, files, whole[:size])
        store = TrialStore(folder)
        store.reopen()
        done = len(store.done)
        for trial in trials[done:]:
            store_trial(store, (CELL, trial))
        store.write_cells()
        again = (folder / "journal.jsonl").read_bytes()
        assert keys(again) == keys(whole), size
        kept = whole[: whole.rfind(b"\n", 0, size) + 1]
        assert again.startswith(kept) and done == kept.count(b"\n"), size
        assert samples_of(folder) == files, size
        table = pl.read_parquet(folder / "cells.parquet")
        assert sorted(table.select("cell", "trial").rows()) == keys(whole), size


@pytest.mark.parametrize("part", ["", "control", "long"])
def test_the_command_line_takes_up_a_cut_journal(finished: Path, tmp_path: Path, part: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished / "out", out)
    paths = {name: out / name / "journal.jsonl" for name in ("", "control", "long")}
    whole = {name: path.read_bytes() for name, path in paths.items()}
    seed = random.SystemRandom().randrange(2**32)
    size = random.Random(seed).randrange(len(whole[part]))
    paths[part].write_bytes(whole[part][:size])
    kept = whole[part][: whole[part].rfind(b"\n", 0, size) + 1]
    for name in ("cells.parquet", "control/cells.parquet", "environment.json"):
        (out / name).unlink()
    run = ("run", str(finished / "study.yaml"), "--out", str(out), "--no-report", "--json", "--resume")
    code, output, errors = lagometer(tmp_path, *run)
    assert code in (0, 3), (seed, errors)
    assert json.loads(output)["resumed"] == (3 if part else len(keys(kept))), seed
    for name, path in paths.items():
        content = path.read_bytes()
        if name == part:
            assert content.startswith(kept), seed
        # The control is carried out before each block in which something was missing, no more often.
        elif not (name == "control" and part == ""):
            assert content == whole[name], (name, seed)
    assert sorted(keys(paths[""].read_bytes())) == sorted(keys(whole[""])), seed
    campaign = open_campaign(out)
    assert campaign.environment["kernel"]
    assert sorted(campaign.cells.select("cell", "trial").unique().rows()) == sorted(keys(whole[""]))


def test_tables_that_lag_behind_the_journal_are_completed_by_readers(finished: Path, copy: Path) -> None:
    before = open_campaign(copy).cells
    form.write_cells(before.filter(pl.col("trial") == 0), copy / "cells.parquet")
    completed = open_campaign(copy).cells
    order = ["cell", "trial", "edge"]
    assert completed.sort(order).equals(before.sort(order), null_equal=True)


def test_a_second_conductor_is_kept_out(finished: Path, copy: Path) -> None:
    first, second = Results(copy), Results(copy)
    first.lock()
    with pytest.raises(BadInput, match="another lagometer is using this folder"):
        second.lock()
    second.close()
    first.close()
    second = Results(copy)
    second.lock()
    second.close()


def test_a_trial_that_is_in_the_journal_twice_is_damage(finished: Path, copy: Path) -> None:
    whole = (copy / "journal.jsonl").read_bytes()
    (copy / "journal.jsonl").write_bytes(whole + whole.splitlines(keepends=True)[0])
    with pytest.raises(BadInput, match="is in it twice"):
        TrialStore(copy).reopen()


def test_kills_at_random_moments_lose_and_repeat_nothing() -> None:
    need("netns")
    command = [sys.executable, str(ROOT / "benchmarks" / "kills.py"), "--kills", "10", "--no-result"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 kills" in done.stdout
    for target in ("conductor", "supervisor", "worker", "daemon"):
        assert f"'{target}'" in done.stdout, done.stdout


def test_the_control_is_no_trial_of_the_study(finished: Path) -> None:
    campaign = open_campaign(finished / "out")
    assert {entry["cell"] for entry in campaign.journal} == set(campaign.cells["cell"]) == {CELL}
    control = campaign.control
    assert control is not None
    assert [(entry["cell"], entry["trial"]) for entry in control.journal] == [
        ("shm/pingpong", block) for block in range(3)
    ]
    assert control.samples("shm/pingpong", 0).height > 0
