# SPDX-License-Identifier: Apache-2.0
"""Tuning from the command line, and what trials and later commands make of it, on a machine made of files."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from campaign_support import ENDED_S, lagometer, running, wait_until, write_study
from machine_of_files import BEFORE, CHANGED, DMA_LATENCY, TUNED, MachineOfFiles
from needs import need

from lagometer.installation import worker_path

PUT_BACK = f"{CHANGED} settings of a killed tuning were restored"
SETTINGS = [
    "absent    governor: the kernel scales no frequencies (a virtual machine?)",
    "changed   net.core.rmem_max: 212992 → 67108864",
    "already   net.core.wmem_max: 1073741824",
    "changed   net.core.netdev_max_backlog: 1000 → 10000",
    "changed   net.ipv4.ipfrag_high_thresh: 5000000 → 134217728",
    "already   interrupt 9: 0",
    "changed   interrupt 24: 0-3 → 0",
]
RESTORED = [
    "restored  net.core.rmem_max: 212992",
    "restored  net.core.netdev_max_backlog: 1000",
    "restored  net.ipv4.ipfrag_high_thresh: 5000000",
    "restored  interrupt 24: 0-3",
]
IDLE = "idle states: " + (
    "held shallow" if DMA_LATENCY.exists() else "not held shallow: No such file or directory"
)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[MachineOfFiles]:
    need("root")
    need("mount")
    made = MachineOfFiles(tmp_path / "machine")
    try:
        yield made
    finally:
        made.close()


def told(machine: MachineOfFiles, *arguments: str) -> list[str]:
    """The lines of a command of `tune-host` that goes well."""
    code, output, errors = machine.tune_host(*arguments)
    assert code == 0, errors
    return output.splitlines()


def test_the_machine_is_tuned_from_apply_to_revert(machine: MachineOfFiles) -> None:
    assert told(machine, "status") == ["not tuned"]
    assert machine.content() == BEFORE
    assert told(machine, "apply") == [*SETTINGS, IDLE]
    assert machine.content() == TUNED
    assert told(machine, "status") == [*SETTINGS, IDLE]
    holder = machine.holder()
    assert holder is not None and holder.is_alive()

    code, output, errors = machine.tune_host("apply")
    assert (code, output) == (6, "") and "the machine is tuned already" in errors
    assert machine.content() == TUNED and machine.holder() == holder

    assert told(machine, "revert") == [*RESTORED, f"{CHANGED} settings restored"]
    assert machine.content() == BEFORE
    assert not machine.state.exists() and not holder.is_alive()
    assert told(machine, "status") == ["not tuned"]
    assert told(machine, "revert") == ["there is nothing to restore"]


def test_the_commands_say_the_same_to_programs(machine: MachineOfFiles) -> None:
    def said(name: str) -> dict[str, Any]:
        (line,) = told(machine, name, "--json")
        found: dict[str, Any] = json.loads(line)
        return found

    assert said("status") == {"in_force": False, "changes": []}
    applied = said("apply")
    assert (applied["in_force"], applied["effective"], applied["lasting"]) == (True, True, True)
    verdicts = [each["verdict"] for each in applied["changes"]]
    assert verdicts == [line.split()[0] for line in SETTINGS]
    assert said("status") == applied
    assert [each["verdict"] for each in said("revert")["changes"]] == ["restored"] * CHANGED
    assert said("revert") == {"changes": []}


def test_a_tuning_whose_holder_was_killed_is_said_to_be_no_more(machine: MachineOfFiles) -> None:
    told(machine, "apply")
    holder = machine.holder()
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    assert wait_until(lambda: not holder.is_alive())
    assert told(machine, "status")[-1].startswith("its holder has died: the next `lagometer run`")
    assert json.loads(told(machine, "status", "--json")[0])["in_force"] is False
    assert machine.content() == TUNED  # to look changes nothing
    told(machine, "revert")
    assert machine.content() == BEFORE


def tuned_study(folder: Path, *tunings: str, **keys: Any) -> Path:
    """Closed loops, which miss no rate; without a tuning the study does not name the factor."""
    factor = {"tuning": list(tunings)} if tunings else {}
    matrix = {"adapter": "shm", "workload": "pingpong", **factor}
    folder.mkdir()
    return write_study(folder, matrix=matrix, machine_floor="off", **keys)


def campaign(folder: Path, study: Path, enter: Callable[[], None], **more: Any) -> dict[str, Any]:
    """The tally of a campaign that is carried out on a machine of files."""
    arguments = ("run", str(study), "--out", str(folder / "out"), "--json", "--no-report")
    _, output, errors = lagometer(folder, *arguments, preexec_fn=enter, **more)
    assert output, errors
    tally: dict[str, Any] = json.loads(output)
    return tally


def tuning_failures(tally: dict[str, Any]) -> dict[str, str]:
    """The reason that has to do with tuning, by the last part of the cell's id; others are the machine's."""
    return {
        failure["cell"].rpartition("/")[2]: reason
        for failure in tally["failures"]
        for reason in failure["reasons"]
        if reason.startswith("tuning-failed")
    }


def test_on_a_machine_tuned_for_good_cells_that_name_the_tuning_fail(
    machine: MachineOfFiles, tmp_path: Path
) -> None:
    need("netns")
    told(machine, "apply")
    folder = tmp_path / "named"
    tally = campaign(folder, tuned_study(folder, "none", "latency"), machine.enter)
    assert tally["valid"] == 0
    already = "tuning-failed: the machine is tuned already (`lagometer tune-host revert` restores it)"
    assert tuning_failures(tally) == {
        "tuning-none": "tuning-failed: the machine is tuned: `lagometer tune-host revert`",
        "tuning-latency": already,
    }
    # What its user has set is left as it is, and no business of a cell that says nothing of it.
    assert machine.content() == TUNED
    holder = machine.holder()
    assert holder is not None and holder.is_alive()
    folder = tmp_path / "unnamed"
    tally = campaign(folder, tuned_study(folder), machine.enter)
    assert tuning_failures(tally) == {}
    assert not [warning for warning in tally["warnings"] if "tuning" in warning]
    assert machine.content() == TUNED
    told(machine, "revert")


def test_where_nothing_can_be_set_no_trial_passes_for_a_tuned_one(
    machine: MachineOfFiles, tmp_path: Path
) -> None:
    need("netns")
    folder = tmp_path / "campaign"
    tally = campaign(folder, tuned_study(folder, "none", "latency"), machine.enter_unchangeable)
    ((cell, reason),) = tuning_failures(tally).items()
    assert cell == "tuning-latency"
    assert reason.startswith("tuning-failed: tuning: not set: governor (")
    assert "net.core.rmem_max (Read-only file system)" in reason
    assert "idle states (" in reason and "1 interrupts" in reason
    assert machine.content() == BEFORE and not machine.state.exists()


# A search gives up where the machine is too busy for its rate.
@pytest.mark.parametrize("command", ["run", pytest.param("search", marks=pytest.mark.alone)])
def test_the_next_command_puts_back_what_a_killed_one_left(
    machine: MachineOfFiles, tmp_path: Path, command: str
) -> None:
    need("netns")
    folder = tmp_path / "killed"
    study = tuned_study(folder, "latency", duration="60s")
    arguments = ("run", str(study), "--out", str(folder / "out"), "--no-report")
    with running(folder, *arguments, preexec_fn=machine.enter) as run:
        assert wait_until(lambda: run.reached("measure", 0)), run.events()
        assert machine.content() == TUNED
        run.process.kill()
        run.process.wait()
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    assert machine.content() == TUNED and machine.state.exists()

    if command == "run":
        folder = tmp_path / "next"
        tally = campaign(folder, tuned_study(folder), machine.enter)
        assert [warning for warning in tally["warnings"] if "tuning" in warning] == [PUT_BACK]
    else:
        once = ("--low", "100Hz", "--high", "100Hz", "--repeats", "1", "--precision", "100%")
        arguments = ("search", str(write_study(tmp_path)), "--out", str(tmp_path / "out"), *once)
        code, _, errors = lagometer(tmp_path, *arguments, preexec_fn=machine.enter)
        assert code == 0, errors
        assert PUT_BACK in errors.splitlines()
    assert machine.content() == BEFORE and not machine.state.exists()


@pytest.mark.parametrize(("tuning", "room"), [("none", BEFORE), ("latency", TUNED)])
def test_a_private_network_begins_with_the_hosts_room_for_fragments(
    machine: MachineOfFiles, tmp_path: Path, tuning: str, room: dict[str, str]
) -> None:
    need("netns")
    folder, seen = tmp_path / "campaign", tmp_path / "seen"
    worker = tmp_path / "worker"
    worker.write_text(
        f'#!/bin/sh\ncat /proc/sys/net/ipv4/ipfrag_high_thresh >>"{seen}"\nexec "{worker_path()}" "$@"\n'
    )
    worker.chmod(0o755)
    environment = {"LAGOMETER_WORKER": str(worker)}
    tally = campaign(folder, tuned_study(folder, tuning), machine.enter, environment=environment)
    assert tuning_failures(tally) == {}
    assert seen.read_text().split() == [room["ipfrag_high_thresh"]] * 2
