# SPDX-License-Identifier: Apache-2.0
"""Whatever ends a trial, in whichever phase: nothing of it is left, and what was finished is kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import polars as pl
import pytest
from campaign_support import (
    Running,
    journal,
    lagometer,
    running,
    wait_until,
    write_study,
)
from needs import need

PHASES = ("create", "discover", "warm-up", "measure", "drain", "tear-down")
ENDED_S = 3.0


def arguments_of(study: Path, out: Path) -> tuple[str, ...]:
    return ("run", str(study), "--out", str(out), "--no-report")


def reach(run: Running, phase: str) -> None:
    """Waits for a phase of the second trial, so that there is a finished one to keep."""
    assert wait_until(lambda: run.reached(phase, 1)), run.events()
    run.note_namespaces()


def signal_a_worker(run: Running, number: signal.Signals) -> bool:
    """Sends a signal to one worker; False if none lived any more."""
    found = wait_until(lambda: run.processes("lagometer-worke"), 1)
    for pid in found or ():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
        return True
    return False


def the_first_trial_is_kept(out: Path) -> None:
    entries = journal(out)
    assert entries[0]["trial"] == 0
    # A busy machine may miss the rate of so short a trial; nothing else may be wrong with it.
    assert all(reason.startswith("rate-missed") for reason in entries[0]["reasons"]), entries[0]["reasons"]
    cells = pl.read_parquet(out / "cells.parquet")
    assert set(cells.filter(pl.col("trial") == 0)["edge"]) == {"source→relay-1", "relay-1→sink", "end-to-end"}
    assert len(pl.read_parquet(out / entries[0]["path"])) > 0


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_campaign_keeps_what_is_finished(
    tmp_path: Path, phase: str, number: signal.Signals
) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=30, warmup="200ms"), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, phase)
        run.process.send_signal(number)
        code, _, errors = run.end()
        assert code == 130, errors
        assert number.name in errors
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    the_first_trial_is_kept(out)
    assert not list(out.glob("**/.*.partial"))


@pytest.mark.parametrize("phase", PHASES)
def test_a_killed_conductor_takes_everything_with_it(tmp_path: Path, phase: str) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=30, warmup="200ms"), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, phase)
        run.process.kill()
        run.process.wait()
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    the_first_trial_is_kept(out)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_is_killed_or_stopped_fails_its_trial_alone(
    tmp_path: Path, phase: str, number: signal.Signals
) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=3, warmup="200ms"), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, phase)
        hit = signal_a_worker(run, number)
        code, _, errors = run.end()
        assert code in (0, 3), errors
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    the_first_trial_is_kept(out)
    entries = journal(out)
    assert [entry["trial"] for entry in entries] == [0, 1, 2]
    # In its last phase a worker may have said all it had to say before the signal came.
    if hit and phase in ("create", "discover", "warm-up", "measure"):
        codes = {reason.split(":")[0] for reason in entries[1]["reasons"]}
        assert codes & {"worker-died", "worker-hung", "endpoints-missing"}, entries[1]["reasons"]


def test_records_of_a_killed_worker_are_kept(tmp_path: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=2, duration="700ms"), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, "drain")
        assert signal_a_worker(run, signal.SIGKILL)
        run.end()
    failed = journal(out)[1]
    assert not failed["valid"]
    samples = pl.read_parquet(out / failed["path"])
    measured = samples.filter((pl.col("edge") == "end-to-end") & (pl.col("phase") == "measure"))
    assert measured["taken_ns"].is_not_null().sum() > 50


def test_a_second_interrupt_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=30), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, "measure")
        for pid in run.processes("lagometer-super"):
            os.kill(pid, signal.SIGSTOP)
        run.process.send_signal(signal.SIGINT)
        # The stopped supervisor holds up the orderly end until the second signal.
        assert wait_until(lambda: any(each["event"] == "phase" for each in run.events()))
        wait_until(lambda: signal.SIGINT not in _caught(run.process.pid))
        run.process.send_signal(signal.SIGINT)
        assert run.end()[0] in (130, -signal.SIGINT)
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    the_first_trial_is_kept(out)


def test_a_killed_campaign_is_resumed(tmp_path: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=3), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, "measure")
        run.process.kill()
        run.process.wait()
        assert wait_until(run.nothing_left, ENDED_S)
    code, _, errors = lagometer(tmp_path, *arguments_of(study, out), "--resume")
    assert code in (0, 3), errors
    assert [entry["trial"] for entry in journal(out)] == [0, 1, 2]
    assert sorted(pl.read_parquet(out / "cells.parquet")["trial"].unique()) == [0, 1, 2]


def _caught(pid: int) -> set[int]:
    """The signals that a process handles itself; empty if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return set()
    mask = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}
