# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments at conductor, supervisor and workers, and `run --resume`, again and again.

Whatever was killed: at the end each (cell, trial) is there once, and no file of a trial that was finished
before a kill has changed by a byte. The seed is printed; it draws the same moments and targets again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from results import ROOT, write_result

MARK = "LAGOMETER_KILLS_MARK"
KILLS, SMOKE_KILLS = 200, 10
TARGETS = ("conductor", "supervisor", "worker")
# The kernel cuts a process's name after 15 characters.
NAMES = {"supervisor": "lagometer-super", "worker": "lagometer-worke"}
CONTROL_CELL = "shm/pingpong"
TRIALS = 3
WAIT_MAX_S = 2.0
GONE_WITHIN_S = 10.0
STUDY = {
    "name": "kills",
    "duration": "60ms",
    "warmup": "10ms",
    "drain": "10ms",
    "discovery_timeout": "3s",
    "trials": TRIALS,
    "control": "floor",
    "matrix": {
        "adapter": ["shm", "udp"],
        "workload": "pipeline-2",
        "payload": ["64B", "1KB"],
        "rate": "500Hz",
    },
}


@dataclass
class Campaign:
    """One campaign that is killed and resumed until it is finished."""

    folder: Path
    generator: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    finished: dict[str, str] = field(default_factory=dict)
    journals: dict[str, bytes] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        """The campaign's folder."""
        return self.folder / "out"

    def carry_out(self, kills_left: int) -> None:
        """Runs it to its end with at most so many kills; notes what is wrong."""
        study = self.folder / "study.yaml"
        study.write_text(json.dumps(STUDY), encoding="utf-8")
        # The first start, too, asks to resume: a kill before there is a manifest must not be told apart.
        command = [sys.executable, "-m", "lagometer.cli.main", "run", str(study), "--out", str(self.out)]
        while True:
            mark = uuid.uuid4().hex
            with subprocess.Popen(
                [*command, "--resume", "--no-report", "--json"],
                env={**os.environ, MARK: mark},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=ROOT,
            ) as process:
                killed = self._kill_until_it_ends(process, mark, kills_left - self.kills.total())
                errors = process.stderr.read().decode() if process.stderr else ""
            if not _gone(mark):
                self.problems.append(f"processes left after the end: {marked(mark)}")
            self._compare()
            if not killed:
                break
        if process.returncode not in (0, 3):
            self.problems.append(f"exit code {process.returncode}: {errors[-500:]}")
        self._check_whole()

    def _kill_until_it_ends(self, process: subprocess.Popen[bytes], mark: str, kills_left: int) -> bool:
        """Kills at random moments; returns whether the conductor was the target."""
        for _ in range(kills_left):
            target = self.generator.choice(TARGETS)
            if not _runs_for(process, self.generator.uniform(0.0, WAIT_MAX_S)):
                return False
            pid = process.pid if target == "conductor" else _find(process, mark, NAMES[target])
            if pid is None:
                return False
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.kills[target] += 1
            if target == "conductor":
                process.wait()
                return True
        process.wait()
        return False

    def _compare(self) -> None:
        """What was finished before is unchanged; what is finished now is remembered."""
        for name in ("journal.jsonl", "control/journal.jsonl"):
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
        """Each (cell, trial) of the study and of the control, once; tables and files say the same."""
        matrix: Any = STUDY["matrix"]
        cells = [
            f"{adapter}/pipeline-2/{payload}/500Hz"
            for adapter in matrix["adapter"]
            for payload in matrix["payload"]
        ]
        for folder, expected in ((self.out, cells), (self.out / "control", [CONTROL_CELL])):
            wanted = sorted((cell, trial) for cell in expected for trial in range(TRIALS))
            lines = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
            journal = sorted((entry["cell"], entry["trial"]) for entry in map(json.loads, lines))
            table = pl.read_parquet(folder / "cells.parquet").select("cell", "trial").unique()
            files = [path.relative_to(folder / "samples") for path in folder.glob("samples/**/*.parquet")]
            stored = sorted((str(path.parent), int(path.stem)) for path in files)
            for name, found in (("journal", journal), ("cells", sorted(table.rows())), ("samples", stored)):
                if found != wanted:
                    self.problems.append(f"{folder.name}, {name}: {found} instead of {wanted}")
        rest = [str(path) for path in self.out.rglob(".*.partial")] + list(
            map(str, self.folder.glob("out.*"))
        )
        if rest:
            self.problems.append(f"left behind: {rest}")
        if json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))["state"] != "finished":
            self.problems.append("the manifest does not say that it is finished")


def marked(mark: str, name: str = "") -> list[int]:
    """The living processes that one start of lagometer made."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            is_ours = mark.encode() in (entry / "environ").read_bytes()
            if is_ours and (entry / "comm").read_text().startswith(name):
                found.append(int(entry.name))
    return found


def _find(process: subprocess.Popen[bytes], mark: str, name: str) -> int | None:
    """Waits for a process of that name; None if the conductor ends first."""
    while process.poll() is None:
        found = marked(mark, name)
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


def _gone(mark: str) -> bool:
    deadline = time.monotonic() + GONE_WITHIN_S
    while marked(mark):
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
    wanted = given.kills or (SMOKE_KILLS if given.smoke else KILLS)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"{wanted} kills, seed {seed}", flush=True)
    generator, kills, rows = random.Random(seed), Counter[str](), []
    while kills.total() < wanted:
        with tempfile.TemporaryDirectory(prefix="lagometer-kills-") as folder:
            campaign = Campaign(Path(folder), generator)
            campaign.carry_out(wanted - kills.total())
        kills += campaign.kills
        rows.append({"kills": dict(campaign.kills), "problems": campaign.problems})
        counts = ", ".join(f"{name} {count}" for name, count in sorted(campaign.kills.items())) or "none"
        print(f"campaign {len(rows)}: killed {counts}; {'; '.join(campaign.problems) or 'whole'}", flush=True)
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
