# SPDX-License-Identifier: Apache-2.0
"""What the tests of whole campaigns share: starting one, following it, and seeing what it left behind."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from needs import need

from lagometer.run.worker.outcome import PHASES
from lagometer.store.reader import open_campaign
from lagometer.study.factors import FACTORS

MARK = "LAGOMETER_TEST_MARK"
WAIT_S = 120.0  # after which a test gives up: how long a machine at work may take, not how long it should
ENDED_S = 3.0  # by when nothing of a campaign may be left


def wait_until(condition: Callable[[], Any], seconds: float = WAIT_S) -> Any:
    """Waits for a condition and returns its value; None if it never came true."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value or None
        time.sleep(0.002)


def write_study(folder: Path, **keys: Any) -> Path:
    """Writes a study of short trials (JSON is YAML).

    Three messages, 100 ms apart, and one of them may be late: a busy machine keeps this rate, so that whoever
    uses the study may ask for valid trials.
    """
    study = {
        "name": "short",
        "duration": "300ms",
        "warmup": "100ms",
        "drain": "100ms",
        "discovery_timeout": "10s",
        "transfer": "off",
        "matrix": {"adapter": "shm", "workload": "pipeline-3", "rate": "10Hz"},
        **keys,
    }
    path = folder / "study.yaml"
    path.write_text(json.dumps(study))
    return path


class Running:
    """One `lagometer` process, whose descendants carry a mark in their environment."""

    def __init__(
        self, folder: Path, *arguments: str, environment: dict[str, str] | None = None, **popen: Any
    ) -> None:
        self.mark = uuid.uuid4().hex
        self.events_path = folder / f"events-{self.mark}"
        variables = {
            **os.environ,
            MARK: self.mark,
            "LAGOMETER_EVENTS": str(self.events_path),
            **(environment or {}),
        }
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        command = [sys.executable, "-m", "lagometer.cli.main", *arguments]
        self.process: subprocess.Popen[bytes] = subprocess.Popen(command, env=variables, **streams)
        self.namespaces: set[str] = set()
        self.agents: set[int] = set()
        self.noted_s = 0.0

    def events(self) -> list[dict[str, Any]]:
        """What the conductor wrote to its event log so far, whole lines only."""
        if not self.events_path.exists():
            return []
        return [json.loads(line) for line in self.events_path.read_bytes().split(b"\n")[:-1]]

    def reached(self, phase: str, trial: int) -> bool:
        return any(
            each["event"] == "phase" and (each["phase"], each["trial"]) == (phase, trial)
            for each in self.events()
        )

    def processes(self, name: str = "") -> list[int]:
        """The living processes that carry the mark (a zombie has no environment)."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if (
                    self.mark.encode() in (entry / "environ").read_bytes()
                    and name in (entry / "comm").read_text()
                ):
                    found.append(int(entry.name))
                    if b"lagometer.agent" in (entry / "cmdline").read_bytes():
                        self.agents.add(int(entry.name))
        return found

    def note_namespaces(self) -> None:
        """Remembers the namespaces that the marked processes are in and this one is not."""
        for pid in self.processes():
            self.namespaces |= namespaces_of(pid) - namespaces_of(os.getpid())
        self.noted_s = time.clock_gettime(time.CLOCK_BOOTTIME)

    def nothing_left(self) -> bool:
        """Whether no process, no namespace and no folder in /dev/shm of it is left."""
        if self.processes():
            return False
        owners = {path.name.split("-")[1] for path in Path("/dev/shm").glob("lagometer-*-*")}
        if owners & set(map(str, self.agents)):
            return False
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        # The kernel gives a namespace's number to the next one made: whoever came later is not ours.
        return not any(namespaces_of(pid) & self.namespaces and started_s(pid) < self.noted_s for pid in pids)

    def end(self, seconds: float = WAIT_S) -> tuple[int, str, str]:
        """Waits for the end: exit code, standard output, standard error."""
        output, errors = self.process.communicate(timeout=seconds)
        return self.process.returncode, (output or b"").decode(), (errors or b"").decode()


def keys_left() -> list[Path]:
    """Folders of certificates and keys of trials whose conductor or agent has ended; beside this test others
    have theirs."""
    found = Path("/dev/shm").glob("lagometer-*-*/security")
    return [path for path in found if not Path("/proc", path.parent.name.split("-")[1]).exists()]


@contextlib.contextmanager
def running(folder: Path, *arguments: str, **more: Any) -> Iterator[Running]:
    """Starts `lagometer` and makes sure that it is gone afterwards, whatever the test found."""
    run = Running(folder, *arguments, **more)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.process.kill()
        run.process.wait()
        for stream in (run.process.stdout, run.process.stderr):
            if stream is not None:
                stream.close()


def lagometer(folder: Path, *arguments: str, seconds: float = WAIT_S, **more: Any) -> tuple[int, str, str]:
    """Runs one command to its end: exit code, standard output, standard error."""
    with running(folder, *arguments, **more) as run:
        result = run.end(seconds)
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
        return result


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


def namespaces_of(pid: int) -> set[str]:
    """The namespaces of a process that matter here; empty if it is gone."""
    found = set()
    for kind in ("net", "mnt", "ipc", "pid"):
        with contextlib.suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
    return found


def started_s(pid: int) -> float:
    """When a process started, in seconds since boot; infinity if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def journal(directory: Path) -> list[dict[str, Any]]:
    """The finished trials of a campaign."""
    return [json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines()]


MACHINE_STOOD_STILL = ("rate-missed",)


def unexplained(reasons: Sequence[str], forgive: Sequence[str] = ()) -> list[str]:
    """The reasons of a trial that a stalled machine does not explain."""
    explained = (*MACHINE_STOOD_STILL, *forgive)
    if any(reason.startswith("rate-missed") and " published 0 of " in reason for reason in reasons):
        explained += ("nothing-received",)  # all was published after the window, so no edge has any in it
    return [reason for reason in reasons if not reason.startswith(explained)]


def time_to_repair(adapters: str) -> dict[str, str]:
    """What else such a study says, so that what was lost of a reliable writer's can come a second time.

    Those in Rust send it again after a heartbeat, of which RustDDS has one a second.
    """
    in_rust = {"rustdds", "dust_dds", "ros2_rust"}.intersection(adapters.split("+"))
    return {"drain": "1500ms"} if in_rust else {}


def half_of(matrix: dict[str, Any], also: Sequence[str] = ()) -> list[str]:
    """Globs to skip every other cell of a matrix, in a chessboard's pattern; with LAGOMETER_LONG none is.

    Every two values of two factors meet in one of the cells that are left where three factors have several
    values. Which half it is differs by the first value, so that adapters that are tested alike share them.
    also: globs of cells that are skipped in any case, and so left out of the pattern.
    """
    if "LAGOMETER_LONG" in os.environ:
        return []
    factors = [factor.name for factor in FACTORS if factor.name in matrix]
    lists = [matrix[name] if isinstance(matrix[name], list) else [matrix[name]] for name in factors]
    black = zlib.crc32(str(lists[0]).encode()) % 2
    skipped = []
    for places in itertools.product(*(range(len(values)) for values in lists)):
        cell = "/".join(values[place] for values, place in zip(lists, places, strict=True))
        if sum(places) % 2 == black and not any(fnmatch.fnmatchcase(cell, glob) for glob in also):
            skipped.append(cell)
    return skipped


def run_cells(build: Path, folder: Path, matrix: dict[str, Any], **more: Any) -> pl.DataFrame:
    """The rows of cells.parquet of such campaigns, each cell once."""
    rows = [pl.read_parquet(out / "cells.parquet") for out in run_campaigns(build, folder, matrix, **more)]
    return pl.concat(rows, how="vertical_relaxed").filter("valid")


def run_campaign(build: Path, folder: Path, matrix: dict[str, Any], **more: Any) -> Path:
    """The folder of such a campaign of few cells, in which all are valid."""
    return run_campaigns(build, folder, matrix, whole=True, **more)[-1]


def lost_of(out: Path) -> dict[str, int]:
    """Of each kind of loss, how many on all edges of valid trials."""
    edges = open_campaign(out).cells.filter(pl.col("valid") & pl.col("edge").str.contains("→"))
    assert edges.height and (edges["n"] > 0).all()
    return {name: int(edges[name].sum()) for name in ("lost", "corrupted", "duplicated", "unmatched")}


def run_campaigns(
    build: Path,
    folder: Path,
    matrix: dict[str, Any],
    *,
    select: Sequence[str] = (),
    skip: Sequence[str] = (),
    forgive: Sequence[str] = (),
    whole: bool = False,
    **keys: Any,
) -> list[Path]:
    """The folders of campaigns of very short trials, in which each cell is valid once.

    keys: more of the study, such as `options`, or another `duration`.

    A machine that stands still for a part of so short a trial lets no rate be kept: such cells, and only
    they, have further attempts; all cells have, where the last campaign must be whole. Any other reason is
    a failure at once.
    """
    need("netns")
    warmup = os.environ.get("LAGOMETER_TEST_WARMUP", "20ms")  # a sanitizer may need more (tools/sanitize)
    short = {"duration": "150ms", "warmup": warmup, "drain": "100ms", "discovery_timeout": "20s", **keys}
    globs = [word for glob in select for word in ("--select", glob)]
    globs += [word for glob in skip for word in ("--skip", glob)]
    programs = {
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }
    outs = []
    for attempt in ("first", "second", "third", "fourth"):
        (folder / attempt).mkdir()
        study = write_study(folder / attempt, matrix=matrix, **short)
        outs.append(folder / attempt / "out")
        run = ("run", str(study), "--out", str(outs[-1]), "--json", "--no-report", *globs)
        _, output, errors = lagometer(folder, *run, seconds=300, environment=programs)
        tally = json.loads(output or "{}")
        assert tally.get("valid", 0) + tally.get("failed", 0) > 0, errors
        missed = tally["failures"]
        assert not any(unexplained(each["reasons"], forgive) for each in missed), missed
        check_phases(outs[-1])
        if not missed:
            return outs
        if not whole:
            globs = [word for each in missed for word in ("--select", each["cell"])]
    raise AssertionError(missed)


def check_phases(directory: Path) -> None:
    """Asserts that each valid trial went through every phase in its order; one out of order lasts 0 s.

    The tear-down may end while the conductor still takes in the drain's records.
    """
    for entry in journal(directory):
        phases_s = entry["phases_s"]
        assert not entry["valid"] or tuple(phases_s) == PHASES, phases_s
        assert not entry["valid"] or all(phases_s[phase] for phase in PHASES[:-1]), phases_s


def programs(build: Path) -> dict[str, str]:
    """The variables that name the programs and adapters of a build."""
    return {
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }


def arguments_of(study: Path, out: Path) -> tuple[str, ...]:
    """A run without a report."""
    return ("run", str(study), "--out", str(out), "--no-report")


def reach(run: Running, phase: str) -> None:
    """Waits for a phase of the second trial, so that there is a finished one to keep."""
    wait_until(lambda: run.reached(phase, 1) or run.process.poll() is not None)
    assert run.reached(phase, 1), run.end(1) if run.process.poll() is not None else run.events()
    run.note_namespaces()
