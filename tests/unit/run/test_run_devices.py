# SPDX-License-Identifier: Apache-2.0
"""Hosts that are limited to devices: the speed of this machine, shares of it, quotas, and control groups."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.agent import cpu_groups
from lagometer.agent.cpu_groups import CpuGroups, Spun
from lagometer.agent.cpu_limit import (
    HOST_PERIOD_US,
    QUOTA_US,
    CpuLimit,
    CpuLimitError,
    Hierarchy,
    Throttled,
    hierarchy,
    remove_group,
    remove_groups,
)
from lagometer.agent.orders import Orders, parsed
from lagometer.errors import BadInput
from lagometer.run.devices import (
    MachineSpeed,
    limit_of,
    measured_speed,
    parsed_speed,
    speed_for,
    speed_json,
    too_fast,
)
from lagometer.study import expand, study_from_mapping
from lagometer.study.devices import DEVICES, Device
from lagometer.study.hosts import Host

# As 7-Zip writes it, shortened.
BENCHMARK = """
7-Zip (a) [64] 26.02 : Igor Pavlov : Public domain : 2026-06-25
p7zip Version 16.02 (locale=C.UTF-8,Utf16=on,HugeFiles=on,64 bits,2 CPUs AMD EPYC (A10F11)  (LP))

 mt1
1T CPU Freq (MHz):  2014  2524  2007  1527  1545  1814  2549

                       Compressing  |                  Decompressing
Dict     Speed Usage    R/U Rating  |      Speed Usage    R/U Rating
         KiB/s     %   MIPS   MIPS  |      KiB/s     %   MIPS   MIPS

22:       1768    99   2925   2920  |      28343    99   3910   3904
----------------------------------  | ------------------------------
Avr:      1733    99   2798   2793  |      27453    99   3416   3410
Tot:              99   3107   3102
"""
SPEED = MachineSpeed(3000.0, 4, "7zr b -mmt1", "7-Zip", 1.0, 30.0)


def fake_benchmark(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str = "7zr") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n[ \"$*\" = 'b -mmt1' ] && cat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


# --- the speed of this machine


def test_the_speed_is_the_last_number_of_the_total() -> None:
    speed = parsed_speed(BENCHMARK, "7zr b -mmt1", 31.24)
    assert (speed.mips, speed.usage, speed.seconds, speed.command) == (3102.0, 0.99, 31.2, "7zr b -mmt1")
    assert speed.version.startswith("7-Zip (a) [64] 26.02") and speed.cpus == len(os.sched_getaffinity(0))
    assert MachineSpeed(**json.loads(json.dumps(speed_json(speed)))["machine_speed"]) == speed
    assert speed_json(None) == {}


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "wrote no line `Tot:`, but: nothing"),
        ("System ERROR:\nE_OUTOFMEMORY\n", "but: E_OUTOFMEMORY"),
        (BENCHMARK.replace("Tot:              99", "Tot:              71"), "got 71% of a CPU"),
        (BENCHMARK.replace("3107   3102", "0   0"), "wrote no line `Tot:`"),
    ],
)
def test_what_is_no_speed_of_a_whole_cpu_is_refused(output: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        parsed_speed(output, "7zr b -mmt1", 1.0)
    assert said in str(caught.value) and "the speed of this machine can't be measured" in str(caught.value)


def test_whatever_7_zip_is_called_here_is_run_with_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_benchmark(tmp_path, monkeypatch, BENCHMARK, "7zr")
    assert measured_speed().mips == 3102.0
    (tmp_path / "7zr").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="Debian package: p7zip"):
        measured_speed()


def test_a_benchmark_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "7zr").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "7zr").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(BadInput, match=r"did not end within 0\.1 s"):
        measured_speed(0.1)


# --- shares


def test_the_share_is_the_ratio_of_both_speeds() -> None:
    limit = limit_of("robot", Host("netns", device=DEVICES["pi-4"]), SPEED)
    assert limit == CpuLimit(f"lagometer-{os.getpid()}-robot", 4, 1752 / 3000)
    assert limit_of("base", Host("netns"), SPEED) is None
    assert limit_of("here", Host(), None) is None
    orders = Orders("host", "/x", (), cpu_limit=limit)
    assert parsed(json.loads(json.dumps(orders.as_json()))) == orders
    for wrong in ({"share": 1.5}, {"share": 0.04}, {"cpus": 0}, {"group": "../x"}, {"group": "system.slice"}):
        with pytest.raises(ValueError, match="cpu_limit"):
            parsed({**orders.as_json(), "cpu_limit": {**asdict(limit), **wrong}})


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ({"robot": DEVICES["pi-4"]}, ""),
        ({"robot": Device(4, 3000.0)}, ""),
        ({"robot": Device(1, 3001.0)}, "a CPU of the device is faster than one of this machine: 3,001 MIPS"),
        ({"robot": DEVICES["laptop"]}, "hosts.robot.device: a CPU of laptop is faster"),
        ({"robot": Device(1, 149.0)}, "a CPU of the device is slower than 5% of one of this machine"),
        ({"robot": Device(8, 1501.0)}, "robot together are faster than this machine: 8 × 1,501 MIPS"),
        (
            {"robot": DEVICES["pi-4"], "base": DEVICES["pi-4"]},
            "robot and base together are faster than this machine: 4 × 1,752 + 4 × 1,752 MIPS",
        ),
    ],
)
def test_a_device_that_is_faster_than_this_machine_is_refused(devices: dict[str, Device], said: str) -> None:
    problems = [str(problem) for problem in too_fast(devices, SPEED)]
    assert bool(problems) == bool(said)
    if said:
        assert said in problems[0] and "this machine has 4 CPUs of 3,000 MIPS" in problems[0]


def test_only_a_campaign_with_devices_measures_and_what_the_manifest_has_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lagometer.study.device_rules.machine_reasons", lambda: iter(()))
    monkeypatch.setattr("lagometer.run.devices.remove_groups", lambda _: [])
    monkeypatch.setenv("PATH", "")
    adapters = write_adapters(tmp_path)
    hosts = {"robot": {"launcher": "netns", "device": "pi-4"}, "base": {"launcher": "netns"}}
    matrix = {"adapter": "cyclonedds", "workload": "pipeline-3", "hosts": ["robot", "base"]}
    study = study_from_mapping({"name": "t", "hosts": hosts, "matrix": matrix}, source="t")
    limited, free = expand(study, adapters, (0, 1)).cells
    assert speed_for([free], study.hosts) is None
    assert speed_for([free, limited], study.hosts, asdict(SPEED)) == SPEED
    with pytest.raises(BadInput, match="can't be measured"):
        speed_for([limited], study.hosts)
    slow = {**asdict(SPEED), "mips": 1000.0}
    with pytest.raises(BadInput, match="a CPU of pi-4 is faster"):
        speed_for([limited], study.hosts, slow)


# --- quotas


@pytest.mark.parametrize("share", [1.0, 0.999, 0.584, 1 / 3, 0.05])
@pytest.mark.parametrize("cpus", [1, 2, 4, 8])
def test_a_quota_is_the_share_and_never_more_than_that_of_the_host(cpus: int, share: float) -> None:
    """cgroup v1 refuses a group that may use more than its parent, by fractions of 2^-20."""
    limit = CpuLimit("lagometer-1-robot", cpus, share)
    assert min(limit.period_us, limit.host_quota_us) >= 1000, "the kernel takes no less"
    assert QUOTA_US / limit.period_us == pytest.approx(share, rel=1e-3)
    assert QUOTA_US / limit.period_us <= share
    assert limit.host_quota_us / HOST_PERIOD_US == pytest.approx(cpus * share, rel=0.05)
    assert (QUOTA_US << 20) // limit.period_us <= (limit.host_quota_us << 20) // HOST_PERIOD_US


def write_mounts(folder: Path, *lines: str) -> Path:
    path = folder / "mountinfo"
    path.write_text("".join(f"30 20 0:26 / {line}\n" for line in lines))
    return path


def test_the_hierarchy_with_the_controller_is_chosen(tmp_path: Path) -> None:
    second = tmp_path / "unified"
    second.mkdir()
    (second / "cgroup.controllers").write_text("cpuset cpu io\n")
    unified = f"{second} rw - cgroup2 cgroup2 rw"
    first = "/groups/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
    assert hierarchy(write_mounts(tmp_path, unified, first)) == Hierarchy(1, Path("/groups/cpu,cpuacct"))
    (second / "cgroup.subtree_control").write_text("cpu\n")
    assert hierarchy(write_mounts(tmp_path, unified)) == Hierarchy(2, second)
    (second / "cgroup.subtree_control").write_text("\n")
    with pytest.raises(CpuLimitError, match=rf"echo \+cpu > {second}/cgroup.subtree_control"):
        hierarchy(write_mounts(tmp_path, unified))
    (second / "cgroup.controllers").write_text("hugetlb\n")
    with pytest.raises(CpuLimitError, match="no control groups for CPUs are mounted") as caught:
        hierarchy(write_mounts(tmp_path, unified, "/x rw - cgroup cgroup rw,cpuset"))
    assert caught.value.code == "device-failed"


def test_quotas_are_written_and_read_as_each_version_has_them(tmp_path: Path) -> None:
    first, second = Hierarchy(1, tmp_path), Hierarchy(2, tmp_path)
    first.set_quota(tmp_path, 1000, 1887)
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "1000"
    assert (tmp_path / "cpu.cfs_period_us").read_text() == "1887"
    assert first.quota(tmp_path) == (1000, 1887)
    second.set_quota(tmp_path, 1000, 1887)
    assert (tmp_path / "cpu.max").read_text() == "1000 1887"
    assert second.quota(tmp_path) == (1000, 1887)
    assert first.burst_us(tmp_path) == second.burst_us(tmp_path) == 0, "a kernel that saves nothing"
    for each, name in ((first, "cpu.cfs_burst_us"), (second, "cpu.max.burst")):
        (tmp_path / name).write_text("0")
        each.set_quota(tmp_path, 1000, 1887)
        assert (tmp_path / name).read_text() == "1000" and each.burst_us(tmp_path) == 1000
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert second.quota(tmp_path) == (-1, 100_000)
    for processes, shares, weight in ((3, "3072", "300"), (0, "1024", "100"), (1000, "262144", "10000")):
        first.set_weight(tmp_path, processes)
        second.set_weight(tmp_path, processes)
        written = ((tmp_path / name).read_text() for name in ("cpu.shares", "cpu.weight"))
        assert tuple(written) == (shares, weight)
    (tmp_path / "cpu.stat").write_text("nr_periods 9\nnr_throttled 4\nthrottled_time 5000\n")
    assert first.throttled(tmp_path) == Throttled(9, 4, 5000)
    (tmp_path / "cpu.stat").write_text("usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5\n")
    assert second.throttled(tmp_path) == Throttled(9, 4, 5000)
    assert Throttled(9, 4, 5000).plus(Throttled(2, 1, 1000), -1) == Throttled(7, 3, 4000)


# --- groups


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CpuGroups:
    """Two processes of half a CPU, in folders that are no control groups."""
    monkeypatch.setattr(cpu_groups, "hierarchy", lambda: Hierarchy(1, tmp_path))
    return CpuGroups(CpuLimit("lagometer-1-robot", 1, 0.5), 2)


def test_groups_are_made_in_that_of_the_host_and_read_back(groups: CpuGroups, tmp_path: Path) -> None:
    groups.make()
    host = tmp_path / "lagometer-1-robot"
    assert sorted(path.name for path in host.iterdir() if path.is_dir()) == ["0", "1"]
    assert groups.entry(1) == str(host / "1" / "cgroup.procs")
    assert groups.report()["quotas"] == {
        "process": {"quota_us": 5000, "period_us": 10_000, "burst_us": 0},
        "host": {"quota_us": 10_000, "period_us": 20_000, "burst_us": 0},
    }


def test_a_quota_that_does_not_stay_fails(groups: CpuGroups, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hierarchy, "quota", lambda *_: (-1, 100_000))
    with pytest.raises(CpuLimitError, match="has the quota") as caught:
        groups.make()
    assert caught.value.code == "device-failed"


@pytest.mark.parametrize(
    ("measured", "said", "attempts"),
    [
        ([0.5], "", 1),
        ([0.45], "", 1),
        ([0.55], "", 1),
        ([0.4, 0.43, 0.5], "", 3),
        ([0.4, 0.4, 0.4], "something else uses the CPUs", 3),
        ([0.57], "the quota does not hold here", 1),
        ([0.4, 2.0], "the quota does not hold here", 2),
    ],
)
def test_busy_processes_must_get_their_share(
    groups: CpuGroups, monkeypatch: pytest.MonkeyPatch, measured: list[float], said: str, attempts: int
) -> None:
    """Two busy processes of a device with one CPU of half the speed get half a CPU. Too little may be a busy
    machine, too much is no limit."""
    found = iter(measured)
    monkeypatch.setattr(groups, "_spin", lambda: Spun(next(found), 4_000_000, 5_000_000))
    if said:
        with pytest.raises(CpuLimitError, match=said) as caught:
            groups.verify()
        assert caught.value.code == "device-differs" and "0.500 ± 0.060" in str(caught.value)
    else:
        groups.verify()
    verified = groups.report()["verified"]
    assert verified["attempts"] == attempts and verified["asked"] == 0.5
    assert (verified["run_ns"], verified["stall_ns"]) == (4_000_000, 5_000_000)


def test_one_that_is_late_does_not_count_twice(groups: CpuGroups, monkeypatch: pytest.MonkeyPatch) -> None:
    """One had half a CPU for half a second, then both had a quarter: half a CPU, and not five eighths."""
    results = iter([(375, 0, 1000, 9, 9), (125, 500, 1000, 8, 8)])
    monkeypatch.setattr(cpu_groups, "_spinner", lambda *_: (0, 0))
    monkeypatch.setattr(cpu_groups, "_result", lambda *_: cpu_groups._SPUN.pack(*next(results)))
    assert groups._spin() == Spun(0.5, 9, 9)


def test_a_busy_process_counts_what_it_ran() -> None:
    """In another process, whose CPU time is its own."""
    code = (
        "import time; from lagometer.agent.cpu_groups import spin; "
        "now = time.monotonic_ns(); print(*spin(now, now + 50_000_000))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    cpu_ns, begin_ns, end_ns, run_ns, stall_ns = map(int, done.stdout.split())
    time_ns = end_ns - begin_ns
    assert 0 < cpu_ns <= time_ns + 1_000_000
    assert 0 < run_ns <= time_ns and 0 <= stall_ns <= time_ns


def test_what_was_used_up_is_counted_from_the_start_to_the_drain(
    groups: CpuGroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = "lagometer-1-robot"
    counts = {"0": Throttled(5, 1, 100), "1": Throttled(), host: Throttled()}
    monkeypatch.setattr(Hierarchy, "throttled", lambda _, group: counts[group.name])
    groups.look()
    assert groups.report()["throttled"] is None
    groups.begin()
    counts |= {"0": Throttled(15, 4, 400), "1": Throttled(10, 2, 50), host: Throttled(3, 1, 9)}
    groups.look()
    throttled: Any = groups.report()["throttled"]
    assert throttled["processes"] == {"periods": 20, "throttled": 5, "throttled_ns": 350}
    assert throttled["host"] == {"periods": 3, "throttled": 1, "throttled_ns": 9}
    assert throttled["window_ns"] > 0


def test_groups_of_conductors_that_are_gone_are_removed_and_no_others(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = [f"lagometer-{number}-robot.1" for number in (ended.pid, os.getpid(), os.getppid())]
    for name in (*names, "lagometer-x-robot", "docker", f"lagometer-{ended.pid}"):
        (tmp_path / name / "0").mkdir(parents=True)
    assert remove_groups(os.getpid(), tmp_path) == []
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([names[2], "lagometer-x-robot", "docker", f"lagometer-{ended.pid}"])
    assert remove_group(tmp_path / "lagometer-9-gone")


def test_a_group_that_is_in_use_stays(tmp_path: Path) -> None:
    group = tmp_path / f"lagometer-{os.getpid()}-robot"
    group.mkdir()
    (group / "file").touch()  # a folder with a file can't be removed, as a group with a process
    assert not remove_group(group, patience_s=0.0)
    assert group.is_dir()
