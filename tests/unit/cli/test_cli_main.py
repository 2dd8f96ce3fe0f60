# SPDX-License-Identifier: Apache-2.0
"""The command line: help, versions, wrong usage, errors as text and as JSON, `plan` and `adapters`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from study_adapters import write_adapters

from lagometer import __version__
from lagometer.cli.main import main
from lagometer.errors import LagometerError

pytestmark = pytest.mark.by_turn

REPOSITORY = Path(__file__).resolve().parents[3]
TINY = str(REPOSITORY / "studies" / "tiny.yaml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adapters")
    write_adapters(path, missing={"fastdds": "libfastrtps-dev is not installed"})
    return path


class Ended(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def lagometer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Runs a command in this process. A test of streams needs another one."""
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(folder))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, *capsys.readouterr())

    return run


def as_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lagometer.cli.main", *arguments],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "LAGOMETER_ADAPTER_PATH": str(folder)},
    )


def test_the_code_of_a_process_is_that_of_its_command(folder: Path) -> None:
    shown = as_process(folder, "--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"lagometer {__version__}\n", "")
    wrong = as_process(folder, "plna")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Did you mean 'plan'?" in wrong.stderr


def test_help_and_version(lagometer: Callable[..., Ended]) -> None:
    help_text = lagometer("--help")
    assert help_text.returncode == 0
    for command in ("adapters", "doctor", "plan", "run", "measure", "show", "report"):
        assert command in help_text.stdout
        of_command = lagometer(command, "--help")
        assert of_command.returncode == 0
        assert "Example: lagometer" in of_command.stdout
        assert "--json" in of_command.stdout
    for error in LagometerError.__subclasses__():
        assert f" {error.exit_code} " in help_text.stdout
    assert lagometer("--version").stdout == f"lagometer {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plna"], "Did you mean 'plan'?"),
        (["plan", "--jsn", TINY], "--jsn"),
        (["plan"], "STUDY"),
        (["plan", "absent.yaml"], "absent.yaml: cannot be read: No such file or directory"),
        (["plan", TINY, "--worker", "nothing", "0"], "there is no cell 'nothing'"),
        (
            ["plan", TINY, "--worker", "null/pipeline-3/64B/200Hz/reliable/process-per-node", "0"],
            "is excluded: null",
        ),
    ],
)
def test_wrong_usage_exits_2_with_one_line_and_no_traceback(
    lagometer: Callable[..., Ended], arguments: list[str], said: str
) -> None:
    for json_flag in ([], ["--json"]):
        result = lagometer(*arguments, *json_flag)
        assert result.returncode == 2
        assert said in result.stderr
        assert "Traceback" not in result.stderr
        if json_flag:
            error = json.loads(result.stdout)["error"]
            assert (error["kind"], error["exit_code"]) == ("bad-input", 2)
            assert said in error["message"]
        else:
            assert result.stdout == ""


def test_nothing_set_up_has_a_code_of_its_own(
    lagometer: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGOMETER_WORKER", str(tmp_path / "absent"))
    result = lagometer("adapters")
    assert result.returncode == 6
    assert "LAGOMETER_WORKER" in result.stderr


def test_plan_prints_cells_exclusions_and_time(lagometer: Callable[..., Ended]) -> None:
    result = lagometer("plan", TINY)
    assert result.returncode == 0
    assert "  cyclonedds/pipeline-3/64B/200Hz/reliable/process-per-node\n" in result.stdout
    assert "  not built: libfastrtps-dev is not installed\n" in result.stdout
    assert "tiny: 10 cells" in result.stdout
    assert "about" in result.stdout


def test_plan_as_json_is_one_object(lagometer: Callable[..., Ended]) -> None:
    result = lagometer("plan", TINY, "--json", "--select", "*/64B/*", "--skip", "cyclonedds*")
    plan = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert plan["predicted_s"] > 0
    assert {cell["factors"]["adapter"] for cell in plan["cells"]} == {"shm", "udp"}
    assert all(cell["workers"] == [["source"], ["relay-1"], ["sink"]] for cell in plan["cells"])
    assert all(item["reason"] for item in plan["excluded"])


def test_the_plan_of_a_worker_stands_on_its_own(lagometer: Callable[..., Ended]) -> None:
    cell = "cyclonedds/pipeline-3/64B/200Hz/reliable/process-per-node"
    result = lagometer("plan", TINY, "--worker", cell, "1")
    assert result.stdout.count("\n") == 1
    plan = json.loads(result.stdout)
    assert (plan["standalone"], plan["cell"], plan["worker"]["name"]) == (True, cell, "relay-1")
    beyond = lagometer("plan", TINY, "--worker", cell, "3")
    assert beyond.returncode == 2
    assert "its workers are 0 to 2" in beyond.stderr


@pytest.mark.parametrize("pair", ["cyclonedds+fastdds", "fastdds+cyclonedds"])
def test_measure_takes_a_pair_of_adapters(lagometer: Callable[..., Ended], pair: str) -> None:
    result = lagometer("measure", pair)
    assert result.returncode == 4, result.stderr  # only because one of them is not built here
    assert "libfastrtps-dev is not installed" in result.stderr


def test_adapters_says_why_not(
    lagometer: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker"
    worker.write_text("""#!/bin/sh\necho '{"version": "9.8"}'\n""")
    worker.chmod(0o755)
    monkeypatch.setenv("LAGOMETER_WORKER", str(worker))
    rows = json.loads(lagometer("adapters", "--json").stdout)["adapters"]
    by_name = {row["name"]: row for row in rows}
    assert (by_name["shm"]["built"], by_name["shm"]["version"], by_name["shm"]["reason"]) == (
        True,
        "9.8",
        None,
    )
    assert by_name["fastdds"]["built"] is False
    assert by_name["fastdds"]["reason"] == "not built: libfastrtps-dev is not installed"
    table = lagometer("adapters").stdout
    assert "9.8" in table
    assert "libfastrtps-dev" in table


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (f"plan {shlex.quote(TINY)}", 0),
        (f"plan {shlex.quote(TINY)} --json", 0),
        ("--help", 0),
        ("plan absent.yaml", 2),
    ],
)
def test_streams_that_are_closed_or_unread_are_no_error(folder: Path, command: str, code: int) -> None:
    unread = "exec 9> >(exit); wait $!; "  # descriptor 9 is a pipe whose reader has gone
    for before, streams in (
        ("", ">&-"),
        ("", "2>&-"),
        ("", "<&- >&- 2>&-"),
        (unread, ">&9"),
        (unread, "2>&9"),
    ):
        line = f"{before}exec {shlex.quote(sys.executable)} -m lagometer.cli.main {command} {streams}"
        result = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, "LAGOMETER_ADAPTER_PATH": str(folder)},
        )
        assert result.returncode == code, (streams, result.stderr)
        assert "Traceback" not in result.stderr and "defect" not in result.stderr
        # What still has a reader says what it always says.
        assert bool(result.stderr) == (code != 0 and "2>" not in streams), (streams, result.stderr)


def test_a_full_device_is_cannot_store(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "lagometer.cli.main", "plan", TINY, "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, "LAGOMETER_ADAPTER_PATH": str(folder)},
        )
    assert result.returncode == 5
    assert b"No space left" in result.stderr
    assert b"Traceback" not in result.stderr


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    code = "import sys, lagometer.cli.main; print({'polars', 'numpy', 'scipy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert result.stdout == "set()\n"
