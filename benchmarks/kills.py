# SPDX-License-Identifier: Apache-2.0
"""Repeated SIGKILL at random moments at everything that runs in a campaign, each followed by `run --resume`.

The targets are the conductor, the agent, the supervisor, workers, a daemon, load generators and the process
that holds a tuning. Campaigns have a fixed number of trials or are adaptive, each with a control and long
trials. At the end each (cell, trial) exists once, no file of a trial that was already finished has changed by
a byte, the machine has its original settings, and nothing is left. It prints the seed, which reproduces the
same moments and targets.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from results import ROOT, write_result

from lagometer.agent.isolation import SHARED_MEMORY
from lagometer.agent.load import files_folder
from lagometer.machine import settings as tunable
from lagometer.machine.tuning import Tuner
from lagometer.study import discover_adapters
from lagometer.study.daemons import daemons_in_use, missing_daemons

MARK = "LAGOMETER_KILLS_MARK"
KILLS, SMOKE_KILLS = 200, 10
PER_CAMPAIGN = 6  # so that each study's targets have their turn, also in the short run
# Target → how its process is identified: the beginning of its name or a part of its command.
TARGETS = {
    "conductor": "",
    "supervisor": "lagometer-super",
    "worker": "lagometer-worke",
    "agent": "lagometer.agent",
}
DAEMON, GENERATOR, HOLDER = "daemon", "generator", "holder"
CONTROL_CELL = "shm/pingpong"
TRIALS, TRIALS_MIN, TRIALS_MAX = 3, 6, 8
WAIT_MAX_S = 1.0
GONE_WITHIN_S = 10.0
PHASES = {"duration": "60ms", "warmup": "10ms", "drain": "10ms", "discovery_timeout": "10s"}
FACTORS = {"workload": "pipeline-2", "payload": "64B", "rate": "500Hz"}
PARTS = ("", "control/", "long/")
# Is ready at once and burns CPU, for machines without an adapter that needs a daemon.
OWN_DAEMON = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()\nwhile True: pass\n"


@dataclass(frozen=True)
class Kind:
    """A study, and its targets: how each target's process is identified.

    fewest, most: trials of a cell; they differ if the study is adaptive.
    """

    study: Mapping[str, Any]
    targets: Mapping[str, str]
    fewest: int
    most: int
    environment: Mapping[str, str] = field(default_factory=dict)


def fixed(folder: Path) -> Kind:
    """A fixed number of trials next to load, with an adapter that needs a daemon among others."""
    adapter, program, environment = adapter_with_daemon(folder)
    targets = {**TARGETS, DAEMON: program}
    matrix: dict[str, Any] = {"adapter": ["shm", "udp", adapter], **FACTORS}
    if shutil.which("stress-ng"):
        matrix["interference"] = ["none", "io"]
        targets[GENERATOR] = "stress-ng"
    study = {"name": "fixed", **PHASES, "trials": TRIALS, "control": "floor", "long_trial": "120ms"}
    return Kind({**study, "matrix": matrix}, targets, TRIALS, TRIALS, environment)


def adaptive(folder: Path) -> Kind:
    """Trials until the intervals are narrow, on a machine that is tuned or not, where that is possible."""
    del folder
    targets, matrix = dict(TARGETS), {"adapter": ["shm", "udp"], **FACTORS}
    if os.geteuid() == 0 and Tuner().status() is None:
        matrix["tuning"] = ["none", "latency"]
        targets[HOLDER] = "cpu_dma_latency"
    study = {"name": "adaptive", **PHASES, "precision": "20%", "trials_max": TRIALS_MAX}
    return Kind({**study, "long_trial": "120ms", "matrix": matrix}, targets, TRIALS_MIN, TRIALS_MAX)


def adapter_with_daemon(folder: Path) -> tuple[str, str, dict[str, str]]:
    """Returns an adapter, its daemon's program, and the environment that locates it."""
    for adapter in discover_adapters().values():
        daemons = daemons_in_use(adapter, {}, "default")
        if adapter.built and daemons and not list(missing_daemons(adapter, {}, "default")):
            return adapter.name, daemons[0].command[0], {}
    wrapped = discover_adapters()["uds"]
    sidecar = json.loads((wrapped.directory / "adapter.json").read_text(encoding="utf-8"))
    command = [sys.executable, "-c", OWN_DAEMON, "{runtime}/serves"]
    ready = {"file": "{runtime}/serves"}
    sidecar["daemons"] = [{"name": "own", "command": command, "package": "none", "ready": ready}]
    place = folder / "adapters" / "uds"
    place.mkdir(parents=True)
    (place / "adapter.json").write_text(json.dumps(sidecar), encoding="utf-8")
    (place / wrapped.library.name).symlink_to(wrapped.library)
    return "uds", OWN_DAEMON.partition(";")[0], {"LAGOMETER_ADAPTER_PATH": str(place.parent)}


@dataclass
class Campaign:
    """One campaign that is killed and resumed until it is finished."""

    folder: Path
    kind: Kind
    generator: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    finished: dict[str, str] = field(default_factory=dict)
    journals: dict[str, bytes] = field(default_factory=dict)
    deck: list[str] = field(default_factory=list)

    @property
    def out(self) -> Path:
        """The campaign's folder."""
        return self.folder / "out"

    def carry_out(self, kills_max: int) -> None:
        """Runs it to its end with at most `kills_max` kills; notes problems."""
        (self.folder / "study.yaml").write_text(json.dumps(self.kind.study), encoding="utf-8")
        before = settings()
        while self._start(kills_max - self.kills.total()):
            pass
        self._check_whole()
        done = dict(self.journals)
        self._start(0)
        if self.journals != done:
            self.problems.append("a campaign that was finished went on")
        if settings() != before:
            self.problems.append(f"the machine's settings were {before} and are {settings()}")
        if folders := left():
            self.problems.append(f"left behind: {folders}")

    def _start(self, kills_max: int) -> bool:
        """Starts or resumes the campaign; returns whether the conductor was killed."""
        # The first start also uses --resume, since a kill may come before there is a manifest.
        command = [sys.executable, "-m", "lagometer.cli.main", "run", str(self.folder / "study.yaml")]
        mark = uuid.uuid4().hex
        with contextlib.closing(Spaces()) as spaces:
            with subprocess.Popen(
                [*command, "--out", str(self.out), "--resume", "--no-report", "--json"],
                env={**os.environ, **self.kind.environment, MARK: mark},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=ROOT,
            ) as process:
                killed = self._kill_until_it_ends(process, mark, kills_max, spaces)
                errors = process.stderr.read().decode() if process.stderr else ""
            if not wait_for(lambda: not marked(mark) and not spaces.members()):
                self.problems.append(f"left after the end: {marked(mark)}, {spaces.members()}")
        self._compare()
        if not killed and process.returncode not in (0, 3):
            self.problems.append(f"exit code {process.returncode}: {errors[-500:]}")
        return killed

    def _kill_until_it_ends(
        self, process: subprocess.Popen[bytes], mark: str, kills_max: int, spaces: Spaces
    ) -> bool:
        """Kills at random moments; returns whether the conductor was the target.

        spaces: gets the trials' process namespaces at these moments.
        """
        for _ in range(kills_max):
            if not self.deck:
                self.deck = self.generator.sample(list(self.kind.targets), len(self.kind.targets))
            target = self.deck.pop()
            if not _runs_for(process, self.generator.uniform(0.0, WAIT_MAX_S)):
                return False
            pid = process.pid if target == "conductor" else _find(process, mark, self.kind.targets[target])
            if pid is None:
                return False
            spaces.note(marked(mark))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.kills[target] += 1
            if target == "conductor":
                process.wait()
                return True
        process.wait()
        return False

    def _compare(self) -> None:
        """Checks that earlier results are unchanged, and remembers the new ones."""
        for part in PARTS:
            name = f"{part}journal.jsonl"
            path = self.out / name
            content = path.read_bytes() if path.exists() else b""
            before = self.journals.get(name, b"")
            if not content.startswith(before):
                self.problems.append(f"{name}: finished lines have changed")
            whole = content[: content.rfind(b"\n") + 1]
            self.journals[name] = whole
            for line in whole.splitlines():
                self._compare_trial(path.parent / json.loads(line)["path"])

    def _compare_trial(self, samples: Path) -> None:
        for path in (samples, samples.with_suffix(".log")):
            name = str(path.relative_to(self.out))
            found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"
            if self.finished.setdefault(name, found) != found:
                self.problems.append(f"{name} has changed after its trial was finished")
        if self.finished[str(samples.relative_to(self.out))] == "absent":
            self.problems.append(f"{samples} is missing")

    def _check_whole(self) -> None:
        """Each (cell, trial) of the study, the control and the long trials exists, in tables and files."""
        manifest = json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))
        counts = Counter(cell for cell, _ in self._journal(""))
        for cell in (each["id"] for each in manifest["cells"]):
            if not self.kind.fewest <= counts[cell] <= self.kind.most:
                self.problems.append(f"{counts[cell]} trials of {cell}")
        own = [(cell, trial) for cell, count in counts.items() for trial in range(count)]
        control = [(CONTROL_CELL, block) for block in range(max(counts.values(), default=0))]
        families = sorted({cell.partition("/")[0] for cell in counts})
        long = [key for key in self._journal("long/") if key[0] in counts and key[1] == 0]
        if sorted(cell.partition("/")[0] for cell, _ in long) != families:
            self.problems.append(f"long trials: {long} of {families}")
        for part, wanted in zip(PARTS, (own, control, long), strict=True):
            self._check_part(part, sorted(wanted))
        rest = [str(path) for path in self.out.rglob(".*.partial")] + list(
            map(str, self.folder.glob("out.*"))
        )
        if rest:
            self.problems.append(f"left behind: {rest}")
        if manifest["state"] != "finished":
            self.problems.append("the manifest does not say that it is finished")

    def _journal(self, part: str) -> list[tuple[str, int]]:
        lines = (self.out / f"{part}journal.jsonl").read_text(encoding="utf-8").splitlines()
        return sorted((entry["cell"], entry["trial"]) for entry in map(json.loads, lines))

    def _check_part(self, part: str, wanted: list[tuple[str, int]]) -> None:
        folder = self.out / part
        table = pl.read_parquet(folder / "cells.parquet").select("cell", "trial").unique()
        files = [path.relative_to(folder / "samples") for path in folder.glob("samples/**/*.parquet")]
        stored = sorted((str(path.parent), int(path.stem)) for path in files)
        says = (("journal", self._journal(part)), ("cells", sorted(table.rows())), ("samples", stored))
        for name, found in says:
            if found != wanted:
                self.problems.append(f"{part}{name}: {found} instead of {wanted}")


def settings() -> dict[str, str | None]:
    """The machine's settings that a tuning changes."""
    root = Path("/")
    return {each.path: tunable.read(root, each.path) for each in tunable.wanted(root)}


def left() -> list[str]:
    """Folders of trials whose agent is gone."""
    found = [path for place in (SHARED_MEMORY, files_folder()) for path in place.glob("lagometer-*-*")]
    owners = {path: path.name.split("-")[1] for path in found}
    gone = [path for path, owner in owners.items() if owner.isdigit() and not Path(f"/proc/{owner}").exists()]
    return list(map(str, gone))


def marked(mark: str, known_by: str = "") -> list[int]:
    """The living processes of one start of lagometer, by a part of their name or command."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() not in (entry / "environ").read_bytes():
                continue
            name, command = (entry / "comm").read_text(), (entry / "cmdline").read_bytes()
            # Our own programs are identified by name, since the supervisor's command may name others.
            if name.startswith(known_by) or (
                not name.startswith("lagometer") and known_by.encode() in command
            ):
                found.append(int(entry.name))
    return found


def _find(process: subprocess.Popen[bytes], mark: str, known_by: str) -> int | None:
    """Waits for a process with this identification; None if the conductor ends first."""
    while process.poll() is None:
        found = [pid for pid in marked(mark, known_by) if pid != process.pid]
        if found:
            return found[0]
        time.sleep(0.005)
    return None


def _runs_for(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


class Spaces:
    """The process namespaces of trials, for processes without a mark.

    They are held open: the kernel gives the number of a namespace that is gone to the next one that anybody
    makes.
    """

    def __init__(self) -> None:
        self._own = number_of("self")
        self._held: dict[int, int] = {}  # number → descriptor

    def note(self, pids: Sequence[int]) -> None:
        """Adds the namespaces of these processes."""
        for pid in pids:
            with contextlib.suppress(OSError):
                descriptor = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY)
                number = os.fstat(descriptor).st_ino
                if number == self._own or number in self._held:
                    os.close(descriptor)
                else:
                    self._held[number] = descriptor

    def members(self) -> list[int]:
        """The processes that live in them."""
        found = []
        for name in (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            with contextlib.suppress(OSError):
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX" and number_of(name) in self._held:
                    found.append(int(name))
        return found

    def close(self) -> None:
        """Lets them go."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()


def number_of(process: str) -> int:
    """The number of a process's process namespace. Raises OSError if the process is gone."""
    return Path(f"/proc/{process}/ns/pid").stat().st_ino


def wait_for(condition: Callable[[], bool]) -> bool:
    """Waits until the condition holds; False if it does not for a long time."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Kills, prints, writes out/bench/kills.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help=f"{SMOKE_KILLS} kills")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, help="of moments and targets; random if not given, and printed")
    parser.add_argument("--no-result", action="store_true", help="write no out/bench/kills.json")
    given = parser.parse_args(arguments)
    most = given.kills or (SMOKE_KILLS if given.smoke else KILLS)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"{most} kills, seed {seed}", flush=True)
    generator, kills = random.Random(seed), Counter[str]()
    rows: list[dict[str, Any]] = []
    kinds = itertools.cycle((fixed, adaptive))
    while kills.total() < most:
        with tempfile.TemporaryDirectory(prefix="lagometer-kills-") as folder:
            kind = next(kinds)(Path(folder))
            campaign = Campaign(Path(folder), kind, generator)
            campaign.carry_out(min(PER_CAMPAIGN, most - kills.total()))
        kills += campaign.kills
        name = kind.study["name"]
        rows.append({"study": name, "kills": dict(campaign.kills), "problems": campaign.problems})
        counts = ", ".join(f"{target} {count}" for target, count in sorted(campaign.kills.items())) or "none"
        problems = "; ".join(campaign.problems) or "whole"
        print(f"campaign {len(rows)} ({name}): killed {counts}; {problems}", flush=True)
    passed = not any(row["problems"] for row in rows)
    print(f"{kills.total()} kills in {len(rows)} campaigns: {dict(kills)}")
    if given.no_result:
        print("pass" if passed else "FAIL")
    else:
        path = write_result("kills", passed, rows, seed=seed, kills=dict(kills), smoke=given.smoke)
        print(f"{'pass' if passed else 'FAIL'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
