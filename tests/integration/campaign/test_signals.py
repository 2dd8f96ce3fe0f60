# SPDX-License-Identifier: Apache-2.0
"""Whatever ends a trial, in whichever phase: nothing of it is left, and what was finished is kept."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import termios
from pathlib import Path

import polars as pl
import pytest
from campaign_support import (
    ENDED_S,
    arguments_of,
    journal,
    lagometer,
    reach,
    running,
    signal_a_worker,
    wait_until,
    write_study,
)
from needs import need

from lagometer.store.reader import open_campaign

pytestmark = pytest.mark.by_turn

PHASES = ("create", "discover", "warm-up", "measure", "drain", "tear-down")


def the_first_trial_is_kept(out: Path) -> None:
    entries = journal(out)
    assert (entries[0]["trial"], entries[0]["reasons"]) == (0, [])
    cells = open_campaign(out).cells  # the journal makes up for what cells.parquet has not got yet
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
    # Phases so long that a signal sent in one of them comes before the worker has said all it had to say.
    # In the last one the worker may be gone before the signal comes: no later trial may be there to be hit.
    trials = 2 if phase == "tear-down" else 3
    study, out = write_study(tmp_path, trials=trials, warmup="300ms", drain="500ms"), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, phase)
        hit = signal_a_worker(run, number)
        code, _, errors = run.end()
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    the_first_trial_is_kept(out)
    entries = journal(out)
    assert [entry["trial"] for entry in entries] == list(range(trials))
    assert all(entry["valid"] for entry in entries[2:]), entries[2]["reasons"]
    assert hit or phase == "tear-down"
    if phase != "tear-down" or not entries[1]["valid"]:
        first = entries[1]["reasons"][0]
        assert first.startswith("worker-died" if number == signal.SIGKILL else "worker-hung"), first
        assert number.name in first
        assert code == 3, errors


def test_a_stopped_worker_is_noticed_at_once(tmp_path: Path) -> None:
    need("netns")
    # Had it waited for the end of the phase, the campaign would not end while this test waits for it.
    study, out = write_study(tmp_path, duration="10m"), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        assert wait_until(lambda: run.reached("measure", 0)), run.events()
        run.note_namespaces()
        assert signal_a_worker(run, signal.SIGSTOP)
        assert run.end()[0] == 3
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
        assert [event["notice"] for event in run.events() if event.get("notice") == "stopped"] == ["stopped"]
    (reason, *_) = journal(out)[0]["reasons"]
    assert " was stopped by SIGSTOP in phase measure: find what stops it" in reason


def test_records_of_a_killed_worker_are_kept(tmp_path: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=2, duration="700ms", drain="500ms"), tmp_path / "out"
    with running(tmp_path, *arguments_of(study, out)) as run:
        reach(run, "drain")
        assert signal_a_worker(run, signal.SIGKILL)
        run.end()
    failed = journal(out)[1]
    assert not failed["valid"]
    samples = pl.read_parquet(out / failed["path"])
    measured = samples.filter((pl.col("edge") == "end-to-end") & (pl.col("phase") == "measure"))
    assert measured["taken_ns"].is_not_null().sum() == 7


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
    assert code == 0, errors
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


def take_terminal() -> None:
    """Makes standard input a process's own terminal, of whose end it hears even if started by `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_closed_terminal_interrupts_and_keeps_what_is_finished(tmp_path: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=30), tmp_path / "out"
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    own_terminal = {"start_new_session": True, "preexec_fn": take_terminal}
    with running(tmp_path, *arguments_of(study, out), **streams, **own_terminal) as run:
        os.close(theirs)
        reach(run, "measure")
        os.close(ours)
        assert run.end()[0] == 130
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    the_first_trial_is_kept(out)
