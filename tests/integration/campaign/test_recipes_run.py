# SPDX-License-Identifier: Apache-2.0
"""The pipelines of docs/RECIPES.md do what they say: their steps are taken out of it and carried out.

What a runner provides is played here: a checkout, a folder for what lasts, the file that extends PATH, and
nothing else in the environment. A robot's repository has a branch that makes it slower, and its job must
fail. Not carried out is what would change this machine (`sudo`), and the set-up, which .ci/run does from a
clean clone: in their places stand programs that note how they were called.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from needs import ROOT, need
from ruamel.yaml import YAML

from lagometer.store.environment import SYSCTLS

TEXT = (ROOT / "docs" / "RECIPES.md").read_text(encoding="utf-8")
ADDRESS = "https://example.org/lagometer.git"
PIPELINES = [YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]
STEP_LIMIT_S = 300
SLOWER, SAME = "refs/pull/1/merge", "refs/pull/2/merge"
REFS = {"refs/heads/main": "main", SLOWER: "slower", SAME: "same"}
IDENTITY = ("-c", "user.name=robot", "-c", "user.email=robot@localhost", "-c", "commit.gpgsign=false")
STUDY = {
    "name": "latency",
    "duration": "200ms",
    "warmup": "50ms",
    "drain": "50ms",
    "trials": 7,
    "machine_floor": "off",
}
GRAPH = """\
name: robot
nodes:
  camera: {trigger: timer, publishes: [image]}
  detection: {trigger: any, subscribes: [image], publishes: [boxes], work: WORK}
  planner: {trigger: any, subscribes: [boxes]}
"""
COMMIT = "static lagometer_status commit(lagometer_writer* w, lagometer_message* m) {\n"
WAIT = "  thrd_sleep(&(struct timespec){.tv_nsec = 80000000}, NULL);\n"


class Machine:
    """A machine with a runner, and what jobs leave on it."""

    def __init__(self, folder: Path) -> None:
        for program in ("bash", "git"):
            need(program)
        self.folder = folder
        self.home = folder / "home"
        self.programs = folder / "programs"
        for each in (self.home, self.programs):
            each.mkdir()
        self.calls = folder / "calls"
        self.calls.touch()
        self.lagometer = folder / "lagometer"
        self.lagometer.mkdir()
        shutil.copy(ROOT / "Makefile", self.lagometer)
        commit_all(self.lagometer, "main")
        self._write_programs()

    def _write_programs(self) -> None:
        command = shlex.join([sys.executable, "-m", "lagometer.cli.main"])
        ours = self.folder / "lagometer-command"
        ours.write_text(f'#!/bin/sh\nexport PYTHONPATH={shlex.quote(str(ROOT))}\nexec {command} "$@"\n')
        note = f'#!/bin/sh\necho "${{0##*/}} $*" >>{shlex.quote(str(self.calls))}\n'
        set_up = (
            '[ "$1" = -C ] && [ -f "$2/Makefile" ] || exit 2\n'
            f'mkdir -p "$2/.venv/bin" && ln -s {shlex.quote(str(ours))} "$2/.venv/bin/lagometer"\n'
        )
        (self.programs / "make").write_text(note + set_up)
        (self.programs / "sudo").write_text(note)
        for each in (ours, self.programs / "make", self.programs / "sudo"):
            each.chmod(0o755)

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Bare, so that nothing of the developer's helps."""
        kept = {name: value for name, value in os.environ.items() if name.startswith("LAGOMETER_")}
        path = f"{self.programs}:/usr/local/bin:/usr/bin:/bin"
        return {**kept, "PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "CI": "true", **more}

    def bash(self, script: str, cwd: Path, more: Mapping[str, str], *options: str) -> tuple[int, str]:
        """Carries out a script as a runner does: its exit code, and all that it printed."""
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", *options, "-c", script],
            cwd=cwd,
            env=self.environment(more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_LIMIT_S,
            check=False,
        )
        return result.returncode, result.stdout

    def set_up_by_hand(self) -> None:
        """What the document tells to do once on a machine of one's own."""
        told = ("    git ", "    make ")
        lines = [line.strip() for line in TEXT.splitlines() if line.startswith(told)]
        assert len(lines) == 2
        script = "\n".join(lines).replace(ADDRESS, str(self.lagometer))
        code, output = self.bash(script, self.folder, {}, "-e")
        assert code == 0, output
        assert self.calls.read_text() == f"make -C {self.home}/lagometer setup\n"


def commit_all(folder: Path, branch: str) -> None:
    """Commits whatever lies in a folder, on a branch that is new or the present one."""
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "--quiet", "-b", branch, str(folder)], check=True)
    git = ("git", "-C", str(folder), *IDENTITY)
    on = subprocess.run([*git, "branch", "--show-current"], check=True, capture_output=True, text=True)
    if on.stdout.strip() != branch:
        subprocess.run([*git, "checkout", "--quiet", "-b", branch], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", branch], check=True)


def robot(folder: Path) -> Path:
    """A robot's repository: a study, and the graph of its nodes; in a branch one of them works for longer."""
    repository = folder / "robot"
    (repository / "workloads").mkdir(parents=True)
    matrix = {"adapter": "shm", "workload": "robot", "rate": "1kHz"}
    (repository / "latency.yaml").write_text(json.dumps({**STUDY, "matrix": matrix}))
    for branch, work in (("main", "none"), ("same", "none"), ("slower", "busy-2ms")):
        (repository / "workloads" / "robot.yaml").write_text(GRAPH.replace("WORK", work))
        (repository / "README.md").write_text(f"# A robot, {branch}\n")
        commit_all(repository, branch)
    return repository


def pipeline(mark: str) -> dict[str, Any]:
    """The pipeline of the document in which a word stands."""
    [found] = [each for each in PIPELINES if mark in json.dumps(each)]
    return dict(found)


class GitHubJob:
    """One run of a workflow's job: `codes` by the name of each step that ran, `kept` what it uploaded."""

    def __init__(self, machine: Machine, repository: Path, ref: str, **variables: str) -> None:
        self.machine, self.repository, self.ref = machine, repository, ref
        self.workspace = machine.folder / f"run-{len(list(machine.folder.glob('run-*')))}"
        self.workspace.mkdir()
        self.path_file = self.workspace.with_name(f"{self.workspace.name}-path")
        self.temporary = self.workspace.with_name(f"{self.workspace.name}-temp")
        self.temporary.mkdir()
        self.variables = variables
        self.codes: dict[str, int] = {}
        self.output: dict[str, str] = {}
        self.kept: list[Path] = []

    def carry_out(self, workflow: Mapping[str, Any]) -> bool:
        """Whether the job succeeded."""
        variables = {**workflow.get("env", {}), **self.variables}
        [job] = workflow["jobs"].values()
        good = True
        for step in job["steps"]:
            if self._wanted(step.get("if", "success()"), good):
                good = self._step(step, variables) and good
        return good

    def _wanted(self, condition: str, good: bool) -> bool:
        if condition in ("always()", "success()"):
            return good or condition == "always()"
        [(sign, ref)] = re.findall(r"^github\.ref (==|!=) '([^']+)'$", condition)
        return good and (self.ref == ref) == (sign == "==")

    def _step(self, step: Mapping[str, Any], variables: Mapping[str, str]) -> bool:
        options = {name: self._filled(value) for name, value in step.get("with", {}).items()}
        if "uses" in step:
            action = {"actions/checkout@v4": self._check_out, "actions/upload-artifact@v4": self._upload}
            action[step["uses"]](options)
            return True
        self.path_file.touch()
        added = "".join(f"{line}:" for line in reversed(self.path_file.read_text().splitlines()))
        more = {
            **variables,
            "PATH": added + self.machine.environment({})["PATH"],
            "GITHUB_PATH": str(self.path_file),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temporary),
        }
        code, output = self.machine.bash(self._filled(step["run"]), self.workspace, more, "-e")
        self.codes[step["name"]], self.output[step["name"]] = code, output
        return code == 0

    def _filled(self, text: str) -> str:
        filled = text.replace("${{ github.base_ref }}", "main")
        assert "${{" not in filled
        return filled

    def _check_out(self, options: Mapping[str, str]) -> None:
        folder = self.workspace / options.get("path", ".")
        branch = options.get("ref", REFS[self.ref])
        command = ["git", "clone", "--quiet", "--branch", branch, str(self.repository), str(folder)]
        subprocess.run(command, check=True)

    def _upload(self, options: Mapping[str, str]) -> None:
        assert (self.workspace / options["path"]).exists()
        self.kept.append(self.workspace / options["path"])


def github(machine: Machine, repository: Path, ref: str, mark: str, **variables: str) -> GitHubJob:
    """A finished run of the workflow, which failed if and only if one of its steps did."""
    job = GitHubJob(machine, repository, ref, **variables)
    good = job.carry_out(pipeline(mark))
    assert good == (set(job.codes.values()) == {0})
    return job


@pytest.fixture
def machine(tmp_path: Path, build: Path) -> Iterator[Machine]:
    need("netns")
    yield Machine(tmp_path)


def test_a_machine_of_ones_own_keeps_a_baseline_and_fails_what_is_slower(machine: Machine) -> None:
    """A change that changes nothing is usually green. Where others disturb the machine a difference may be
    real, or too few trials be valid: it ends as `compare` itself does."""
    machine.set_up_by_hand()
    repository = robot(machine.folder)
    first = github(machine, repository, "refs/heads/main", "self-hosted")
    assert first.codes == {"Find lagometer": 0, "Measure": 0, "Keep as baseline": 0}, first.output
    baseline = machine.home / "baselines" / "main" / "manifest.json"
    before = baseline.read_bytes()

    slower = github(machine, repository, SLOWER, "self-hosted")
    codes = {"Find lagometer": 0, "Measure": 0, "Compare with the main branch": 8}
    assert slower.codes == codes, slower.output
    assert "p50 > +5% is shown" in slower.output["Compare with the main branch"]
    assert baseline.read_bytes() == before

    same = github(machine, repository, SAME, "self-hosted")
    command = '"$HOME/lagometer/.venv/bin/lagometer" baseline compare main out/now'
    options = "--baselines \"$HOME/baselines\" --fail-if 'p50 > +5%' --fail-if 'p99 > +10%' --json 2>&-"
    code, output = machine.bash(f"{command} {options}", same.workspace, {})
    assert same.codes == codes | {"Compare with the main branch": code}, same.output
    found = json.loads(output)
    undecided = found["undecided"] or found["verdict"] == "not-comparable"
    assert code == (8 if found["failed_conditions"] else 9 if undecided else 0)
    for job in (first, slower, same):
        [kept] = job.kept
        assert (kept / "cells.parquet").exists()


def test_a_hosted_runner_installs_lagometer_builds_both_and_fails_what_is_slower(machine: Machine) -> None:
    need("cc")
    repository = machine.folder / "robot"
    mine = repository / "adapters" / "mine"
    shutil.copytree(ROOT / "templates" / "in_c", mine)
    for file in mine.iterdir():
        file.write_text(file.read_text().replace("in_c", "mine"))
    matrix = {"adapter": "mine", "workload": "pipeline-2"}
    matrix |= {"dispatch": "poll", "placement": "single-process", "rate": "10Hz"}
    # Who polls spins, so a machine at work is given time to let it.
    study = {**STUDY, "duration": "600ms", "drain": "300ms", "matrix": matrix}
    (repository / "latency.yaml").write_text(json.dumps(study))
    commit_all(repository, "main")
    source = (mine / "adapter.c").read_text()
    assert COMMIT in source
    (mine / "adapter.c").write_text("#include <threads.h>\n" + source.replace(COMMIT, COMMIT + WAIT))
    commit_all(repository, "slower")

    job = github(machine, repository, SLOWER, "ubuntu-24.04", LAGOMETER_REPOSITORY=str(machine.lagometer))
    codes = dict.fromkeys(("Install lagometer", "Allow each trial its own network"), 0)
    codes |= {"Build both": 0, "Measure both": 0, "Compare": 8}
    assert job.codes == codes, job.output
    make, sudo = machine.calls.read_text().splitlines()
    assert make == f"make -C {job.temporary}/lagometer setup"
    setting = sudo.removeprefix("sudo sysctl -w ").removesuffix("=0")
    assert setting in SYSCTLS


def test_gitlab_keeps_a_baseline_and_fails_what_is_slower(machine: Machine) -> None:
    machine.set_up_by_hand()
    repository = robot(machine.folder)
    jobs = pipeline("resource_group")
    rules = {
        "latency-baseline": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH",
        "latency": '$CI_PIPELINE_SOURCE == "merge_request_event"',
    }
    ended: dict[str, int] = {}
    for branch, (name, rule) in zip(("main", "slower"), rules.items(), strict=True):
        job = jobs[name]
        assert job["rules"] == [{"if": rule}]
        folder = machine.folder / branch
        clone = ["git", "clone", "--quiet", "--branch", branch, str(repository), str(folder)]
        subprocess.run(clone, check=True)
        script = "\n".join([*jobs["default"]["before_script"], *job["script"]])
        ended[name], output = machine.bash(script, folder, {}, "-eo", "pipefail")
        for path in job.get("artifacts", {}).get("paths", []):
            assert (folder / path / "cells.parquet").exists(), output
    assert ended == {"latency-baseline": 0, "latency": 8}


def test_the_set_up_of_the_recipes_is_what_ci_carries_out() -> None:
    """`make setup` is a target, and .ci/run sets up and tests a clean clone with it."""
    made = set(re.findall(r"make -C \S+ (\w+)", TEXT))
    assert made == {"setup"}
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^setup:.*\n\t@tools/setup", makefile, re.MULTILINE)
    assert re.search(
        r"^other \"set-up\" .*tools/setup --test", (ROOT / ".ci" / "run").read_text(), re.MULTILINE
    )
