# SPDX-License-Identifier: Apache-2.0
"""The key `device` of a host: the classes, devices of a study's own, and where a limit can't be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.study import Adapter, Expansion, Study, device_rules, expand, study_from_mapping
from lagometer.study.devices import DEVICES

CPUS = (0, 1)


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("adapters"))


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that can limit hosts."""

    def nothing() -> Iterator[str]:
        yield from ()

    monkeypatch.setattr(device_rules, "machine_reasons", nothing)


def study(device: Any, launcher: str = "netns", **matrix: Any) -> Study:
    base = {"launcher": "netns", "runs": "sink"}
    hosts = {"robot": {"launcher": launcher, "device": device}, "base": base}
    factors = {"adapter": "cyclonedds", "workload": "pipeline-3", "network": "host", "hosts": "robot"}
    study = {"name": "test", "hosts": hosts, "matrix": {**factors, **matrix}}
    return study_from_mapping(study, source="test")


def excluded(expansion: Expansion) -> str:
    (cell,) = expansion.excluded
    return cell.reason


def test_each_class_has_the_source_of_its_numbers() -> None:
    assert list(DEVICES) == ["pi-3", "pi-4", "jetson-nano", "laptop"]
    for name, device in DEVICES.items():
        assert device.name == name and device.cpus in (4, 8) and 900 < device.speed_mips < 5000
        assert all(part in device.source for part in ("ThomasKaiser/sbc-bench", "row '", "CPUs: "))
    speeds = [DEVICES[name].speed_mips for name in ("pi-3", "jetson-nano", "pi-4", "laptop")]
    assert speeds == sorted(speeds)


def test_a_host_is_a_class_or_a_device_of_its_own_and_the_manifest_has_its_numbers() -> None:
    pi = study("pi-4")
    assert pi.hosts["robot"].device == DEVICES["pi-4"] and pi.hosts["base"].device is None
    saved: Any = pi.as_json()["hosts"]
    assert saved["robot"]["device"] == {
        "cpus": 4,
        "speed_mips": 1752.0,
        "name": "pi-4",
        "source": DEVICES["pi-4"].source,
    }
    assert "device" not in saved["base"]
    own = study({"cpus": 2, "speed": "1600.5 MIPS"}).hosts["robot"].device
    assert own is not None and (own.cpus, own.speed_mips, own.name) == (2, 1600.5, "")


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("pi-5", "unknown device 'pi-5'; did you mean 'pi-4'?"),
        (["pi-3"], "is a list"),
        ({"cpus": 2}, "has no 'speed'"),
        ({"speed": "1600MIPS"}, "has no 'cpus'"),
        ({"cpus": 0, "speed": "1600MIPS"}, "'0' is not a number of CPUs between 1 and 256"),
        ({"cpus": "1.5", "speed": "1600MIPS"}, "'1.5' is not a number of CPUs"),
        ({"cpus": 2, "speed": 0.5}, "'0.5' is not a speed like 1600MIPS"),
        ({"cpus": 2, "speed": "1600"}, "'1600' is not a speed like 1600MIPS"),
        ({"cpus": 2, "speed": "5MIPS"}, "'5MIPS' is not between 10 and 100,000 MIPS"),
        ({"cpus": 2, "speed": "1600MIPS", "ram": 1}, "unknown key 'ram'"),
        ({"cpus": [2], "speed": "1600MIPS"}, "takes one value"),
    ],
)
def test_what_is_no_device_is_refused_with_its_place(device: Any, said: str) -> None:
    """Among others a speed without its unit: it could be meant as a share of this machine's."""
    with pytest.raises(BadInput) as caught:
        study(device)
    assert said in str(caught.value) and "hosts.robot.device" in str(caught.value)


def test_another_machine_is_what_it_is() -> None:
    with pytest.raises(BadInput, match="another machine is what it is"):
        study("pi-4", launcher="ssh")


@pytest.mark.usefixtures("able")
def test_an_emulated_host_and_a_local_one_can_be_devices(adapters: dict[str, Adapter]) -> None:
    for launcher in ("netns", "local"):
        assert not expand(study("pi-4", launcher), adapters, CPUS).excluded


@pytest.mark.usefixtures("able")
@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ({"scheduling": "fifo"}, "host robot is limited to a device, and no quota limits SCHED_FIFO threads"),
        ({"interference": "cpu"}, "interference would run there without its limit"),
        ({"placement": "single-process"}, "the threads of source and relay-1 and sink would share one"),
    ],
)
def test_where_the_limit_would_not_be_the_devices_the_cell_is_excluded(
    adapters: dict[str, Adapter], factors: dict[str, str], said: str
) -> None:
    assert said in excluded(expand(study("pi-4", **factors), adapters, CPUS))


@pytest.mark.usefixtures("able")
def test_load_beside_another_host_and_several_nodes_in_one_thread_are_fine(
    adapters: dict[str, Adapter],
) -> None:
    both = study("pi-4", hosts="robot+base", interference="cpu@base")
    assert "device" not in "".join(cell.reason for cell in expand(both, adapters, CPUS).excluded)
    one = study("pi-4", placement="single-process", threads="per-process")
    assert "device" not in "".join(cell.reason for cell in expand(one, adapters, CPUS).excluded)


@pytest.mark.parametrize(
    ("mounts", "possible"),
    [
        ("cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n", True),
        ("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n", True),
        ("cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n", False),
        ("", False),
    ],
)
def test_a_machine_without_root_groups_or_seven_zip_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, possible: bool
) -> None:
    file = tmp_path / "mounts"
    file.write_text(mounts)
    monkeypatch.setattr(device_rules.os, "geteuid", lambda: 0)
    monkeypatch.setattr(device_rules.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert bool(list(device_rules.machine_reasons(file))) != possible
    monkeypatch.setattr(device_rules.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(device_rules.shutil, "which", lambda _: None)
    said = list(device_rules.machine_reasons(file))
    assert "run as root" in said[0] and "Debian package: p7zip" in said[-1]
