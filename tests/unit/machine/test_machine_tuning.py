# SPDX-License-Identifier: Apache-2.0
"""Tuning of a machine made of files: what is changed, that it is put back, also after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lagometer.errors import SetupMissing
from lagometer.machine.settings import DMA_LATENCY, SYSCTLS_MIN
from lagometer.machine.tuning import STATE, Tuner, Tuning, TuningError
from lagometer.run import tuned

GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
WAIT_S = 60.0
FILES = {
    GOVERNOR: "powersave",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors": "performance powersave",
    "proc/sys/net/core/rmem_max": "212992",
    "proc/sys/net/core/wmem_max": str(1 << 30),  # more than is wanted
    "proc/sys/net/core/netdev_max_backlog": "1000",
    "proc/irq/24/smp_affinity_list": "0-3",
    "proc/irq/9/smp_affinity_list": "0",
    DMA_LATENCY: "",
}
CHANGED = [GOVERNOR, "proc/sys/net/core/rmem_max", "proc/sys/net/core/netdev_max_backlog"]
CHANGED += ["proc/irq/24/smp_affinity_list"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine without fragment sysctls, as in a container."""
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n" if text else "")
    return tmp_path / "root"


@pytest.fixture
def tuner(root: Path, tmp_path: Path) -> Tuner:
    return Tuner(root, tmp_path / "state")


def content(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text().strip() for name in FILES if name != DMA_LATENCY}


def is_in_force(tuning: Tuning) -> bool:
    """A question asked again each time, which a property is not to a type checker."""
    return tuning.in_force


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline


def test_what_can_be_set_is_set_and_put_back(root: Path, tuner: Tuner) -> None:
    before = content(root)
    tuning = tuner.apply(lasting=True)
    try:
        assert tuning.in_force and tuning.effective
        now = content(root)
        assert now[GOVERNOR] == "performance"
        assert now["proc/sys/net/core/rmem_max"] == str(SYSCTLS_MIN["net.core.rmem_max"])
        assert now["proc/sys/net/core/wmem_max"] == str(1 << 30)
        assert now["proc/irq/24/smp_affinity_list"] == "0"
        assert (root / DMA_LATENCY).read_bytes() == bytes(4)
        verdicts = {each.path: each.verdict for each in tuning.changes}
        assert [path for path, verdict in verdicts.items() if verdict == "changed"] == CHANGED
        assert verdicts["proc/irq/9/smp_affinity_list"] == "already"
        assert verdicts["proc/sys/net/ipv4/ipfrag_high_thresh"] == "absent"
        with pytest.raises(TuningError, match="tuned already"):
            tuner.apply(lasting=True)
        assert tuner.recover() == []  # its holder lives
    finally:
        restored = tuner.revert()
    assert {each.verdict for each in restored} == {"restored"}
    assert content(root) == before
    assert not is_in_force(tuning)
    assert tuner.status() is None
    assert tuner.revert() == []


def test_what_someone_else_has_set_since_is_left(root: Path, tuner: Tuner) -> None:
    tuner.apply(lasting=True)
    (root / GOVERNOR).write_text("schedutil\n")
    verdicts = {each.path: each.verdict for each in tuner.revert()}
    assert verdicts[GOVERNOR] == "left"
    assert (root / GOVERNOR).read_text().strip() == "schedutil"


def test_what_is_refused_is_named(root: Path, tuner: Tuner) -> None:
    (root / DMA_LATENCY).unlink()
    (root / "proc/irq/24/smp_affinity_list").unlink()
    (root / "proc/irq/24/smp_affinity_list").symlink_to("/proc/sys/kernel/osrelease")  # nobody may write it
    tuning = tuner.apply(lasting=True)
    try:
        refused = [each for each in tuning.changes if each.verdict == "refused"]
        assert [each.name for each in refused] == ["interrupt 24"] and refused[0].why
        assert tuning.holder is not None and tuning.holder.said == "No such file or directory"
    finally:
        tuner.revert()


def test_kill_9_of_whoever_tunes_is_restored_by_the_next(root: Path, tmp_path: Path, tuner: Tuner) -> None:
    before = content(root)
    program = (
        "import sys, time; from pathlib import Path; from lagometer.machine.tuning import Tuner\n"
        "Tuner(Path(sys.argv[1]), Path(sys.argv[2])).apply(lasting=False)\n"
        "print('applied', flush=True); time.sleep(3600)"
    )
    arguments = [sys.executable, "-c", program, str(root), str(tmp_path / "state")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"applied\n"
        tuning = tuner.status()
        assert tuning is not None and tuning.in_force
        process.kill()
    assert content(root) != before
    wait_for(lambda: not tuning.in_force)
    assert len(tuner.recover()) == len(CHANGED)
    assert content(root) == before


def test_a_lasting_tuning_whose_holder_is_killed_is_put_back(root: Path, tuner: Tuner) -> None:
    before = content(root)
    tuning = tuner.apply(lasting=True)
    assert tuning.holder is not None
    os.kill(tuning.holder.pid, signal.SIGKILL)
    wait_for(lambda: not tuning.in_force)
    assert tuner.recover()
    assert content(root) == before


@pytest.mark.parametrize("made", range(len(CHANGED) + 1))
def test_a_kill_between_any_two_changes_leaves_nothing(
    root: Path, tuner: Tuner, tmp_path: Path, made: int
) -> None:
    before = content(root)
    tuning = tuner.apply(lasting=True)
    state = tmp_path / "state" / STATE
    for name in CHANGED[made:]:  # not yet made
        (root / name).write_text(before[name] + "\n")
    assert tuning.holder is not None
    os.kill(tuning.holder.pid, signal.SIGKILL)
    wait_for(lambda: not tuning.in_force)
    state.write_text(json.dumps(replace(tuning, complete=False, holder=None).as_json()))
    assert len(tuner.recover()) == len(CHANGED)
    assert content(root) == before
    assert not state.exists()


def test_after_a_restart_there_is_nothing_to_put_back(root: Path, tuner: Tuner, tmp_path: Path) -> None:
    tuning = tuner.apply(lasting=True)
    tuned = content(root)
    state = tmp_path / "state" / STATE
    state.write_text(json.dumps(replace(tuning, boot="another").as_json()))
    assert tuner.revert() == []
    assert content(root) == tuned and not state.exists()


def test_a_damaged_state_file_is_named(tuner: Tuner, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / STATE).write_text("{")
    with pytest.raises(TuningError, match=STATE):
        tuner.recover()


# --- the factor, and who comes next


def cell(tuning: str, *named: str) -> Any:
    """A cell, as far as it has to do with tuning."""
    return SimpleNamespace(named=named, factors=SimpleNamespace(tuning=tuning))


def test_a_trial_is_tuned_and_its_machine_put_back(root: Path, tuner: Tuner) -> None:
    before = content(root)
    with tuned.tuned_for(cell("latency", "tuning"), tuner) as found:
        assert content(root)[GOVERNOR] == "performance"
        assert found.reasons == ()
        (warning,) = found.warnings
        assert warning.startswith("tuning: not set: net.ipv4.ipfrag_high_thresh (the kernel does not show it")
    assert content(root) == before and tuner.status() is None


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (cell("latency", "tuning"), "tuning-failed: the machine is tuned already"),
        (cell("none", "tuning"), "tuning-failed: the machine is tuned: `lagometer tune-host revert`"),
        (cell("none"), ""),
    ],
)
def test_a_machine_tuned_for_good_is_left_as_it_is(
    root: Path, tuner: Tuner, wanted: Any, reason: str
) -> None:
    tuner.apply(lasting=True)
    try:
        now = content(root)
        with tuned.tuned_for(wanted, tuner) as found:
            assert len(found.reasons) == bool(reason)
            assert "".join(found.reasons).startswith(reason)
        status = tuner.status()
        assert status is not None and status.in_force and content(root) == now
    finally:
        tuner.revert()


def test_who_comes_next_puts_back_what_was_killed_and_says_so(
    root: Path, tuner: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned, "Tuner", lambda: tuner)
    before = content(root)
    assert tuned.put_machine_back() == ()
    tuning = tuner.apply(lasting=True)
    assert tuned.put_machine_back() == ()  # in force
    assert tuning.holder is not None
    os.kill(tuning.holder.pid, signal.SIGKILL)
    wait_for(lambda: not tuning.in_force)
    assert tuned.put_machine_back() == ("4 settings of a killed tuning were restored",)
    assert content(root) == before


def test_what_cannot_be_put_back_is_told_with_what_to_do(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned, "Tuner", lambda: tuner)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / STATE).write_text("{")
    with pytest.raises(SetupMissing, match="tune-host revert, as root"):
        tuned.put_machine_back()
