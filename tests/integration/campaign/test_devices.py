# SPDX-License-Identifier: Apache-2.0
"""Hosts that are limited to slower devices, by real control groups: the limit holds, every view calls it an
approximation, and nothing of it is left, whoever is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import ENDED_S, journal, lagometer, running, wait_until, write_study
from needs import need

from lagometer.agent.commands import Command
from lagometer.agent.cpu_groups import TOLERANCE
from lagometer.agent.cpu_limit import CpuLimit, hierarchy, remove_groups
from lagometer.agent.frames import Frame, Frames, framed
from lagometer.agent.observe.processes import cpu_time_ns
from lagometer.agent.orders import Orders
from lagometer.installation import supervisor_path

SPEED_MIPS = 3000  # what the benchmark in these tests says, so that shares are known
BUSY = ("sh", "-c", "while :; do :; done")
AGENT_LOST_S = 15.0


def need_devices() -> None:
    for name in ("root", "mount", "netns", "ip", "ethtool", "cpu-groups"):
        need(name)


def groups() -> list[Path]:
    """All control groups of lagometer."""
    return sorted(hierarchy().root.glob("lagometer-*"))


@pytest.fixture
def seven_zip(tmp_path: Path) -> dict[str, str]:
    """The environment with a 7-Zip that knows the speed of this machine at once."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "7zr"
    program.write_text(f"#!/bin/sh\necho '7-Zip 0'\necho 'Tot:  100  {SPEED_MIPS}  {SPEED_MIPS}'\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def study_of(folder: Path, device: Any, launcher: str = "netns", **keys: Any) -> Path:
    """A source and a relay on a device, and a sink on this machine."""
    base = {"launcher": launcher, "runs": ["sink"]}
    hosts = {"robot": {"launcher": launcher, "device": device}, "base": base}
    matrix = {"adapter": "tcp", "workload": "pipeline-3", "rate": "10Hz", "network": "host"}
    return write_study(folder, hosts=hosts, matrix={**matrix, **keys.pop("matrix", {})}, **keys)


# --- the limit


class Agent:
    """An agent of this process, which is told by hand what to do."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-m", "lagometer.agent", str(supervisor_path())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._frames = Frames()
        self.heard: list[dict[str, Any]] = []

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(framed(message))
        self.process.stdin.flush()

    def hears(self, event: str) -> dict[str, Any]:
        """The first message of this kind; no other is a failure."""
        assert self.process.stdout is not None
        while not (found := [message for message in self.heard if message["event"] == event]):
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, self.heard
            frames: list[Frame] = self._frames.feed(data)
            self.heard += [message for message, _ in frames]
            failed = any(message["event"] == "failed" for message in self.heard)
            assert event == "failed" or not failed, self.heard
        return found[0]


@contextlib.contextmanager
def agent_with(limit: CpuLimit, workers: int) -> Iterator[Agent]:
    """An agent that has started busy programs within a limit."""
    agent = Agent()
    orders = Orders("private", "/dev/shm/lagometer", (Command(BUSY),) * workers, cpu_limit=limit)
    try:
        agent.say({"command": "trial", "orders": orders.as_json()})
        yield agent
    finally:
        agent.process.kill()
        agent.process.wait()
        for stream in (agent.process.stdin, agent.process.stdout):
            assert stream is not None
            stream.close()
        assert wait_until(lambda: not remove_groups(os.getpid()) and not groups())


def processes_in(group: Path) -> list[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


def used(group: Path) -> tuple[int, int]:
    """The time, and the CPU time of the one process in a group."""
    (pid,) = processes_in(group)
    return time.monotonic_ns(), cpu_time_ns(pid) or 0


def test_each_program_is_limited_from_its_first_instruction_and_all_together() -> None:
    """Three busy ones on a device with two CPUs of a fifth: none gets more than a fifth, and all two fifths.

    A busy machine gives them less: only the upper limit is looked at here, and the lower one was measured by
    the agent itself, which refuses the trial else.
    """
    need_devices()
    limit = CpuLimit(f"lagometer-{os.getpid()}-robot", 2, 0.2)
    with agent_with(limit, 3) as agent:
        agent.hears("serving")
        host = hierarchy().root / limit.group
        members = [host / str(number) for number in range(3)]
        assert wait_until(lambda: all(len(processes_in(member)) == 1 for member in members))
        assert not processes_in(host), "the supervisor is not on the device"
        before = [used(member) for member in members]
        assert wait_until(lambda: time.monotonic_ns() - before[0][0] > 1_500_000_000)
        after = [used(member) for member in members]
        shares = [(then[1] - now[1]) / (then[0] - now[0]) for now, then in zip(before, after, strict=True)]
        assert all(0 < share <= limit.share * (1 + TOLERANCE) for share in shares), shares
        assert sum(shares) <= 2 * limit.share * (1 + TOLERANCE), shares
        full = [member for member, share in zip(members, shares, strict=True) if share > 0.95 * limit.share]
        assert all(hierarchy().throttled(member).throttled > 0 for member in full)
        agent.say({"command": "end", "salvage": []})
        report = agent.hears("ended")["limited"]
        assert not groups(), "they are removed with the trial"
    verified = report["verified"]
    assert verified["asked"] == pytest.approx(0.4)
    assert verified["low"] <= verified["measured"] <= verified["high"]
    assert verified["run_ns"] > 0 and verified["stall_ns"] > 1_000_000
    process = report["quotas"]["process"]
    assert (process["quota_us"], process["period_us"]) == (5000, 25_000)


def test_what_a_killed_agent_leaves_the_next_trial_and_its_conductor_remove() -> None:
    need_devices()
    limit = CpuLimit(f"lagometer-{os.getpid()}-robot", 1, 0.25)
    with agent_with(limit, 1) as killed:
        killed.hears("serving")
        host = hierarchy().root / limit.group
        assert wait_until(lambda: processes_in(host / "0"))
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
        assert wait_until(lambda: not processes_in(host / "0")), "its programs end with it"
        assert groups() == [host]
        with agent_with(limit, 1) as another:
            another.hears("serving")
            assert wait_until(lambda: processes_in(host / "0"))
            another.say({"command": "end", "salvage": []})
            another.hears("ended")
            assert not groups()


def test_a_limit_that_can_not_be_made_fails_the_trial_with_its_reason() -> None:
    """A process of another program is in the group."""
    need_devices()
    limit = CpuLimit(f"lagometer-{os.getpid()}-robot", 1, 0.25)
    host = hierarchy().root / limit.group
    host.mkdir()
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        (host / "cgroup.procs").write_text(str(sleeper.pid))
        with agent_with(limit, 1) as agent:
            reason = agent.hears("failed")["reason"]
            assert reason == f"device-failed: {host} is still in use by an earlier trial"
            sleeper.kill()
            sleeper.wait()
    finally:
        sleeper.kill()
        sleeper.wait()


# --- a campaign


@pytest.mark.parametrize("launcher", ["netns", "local"])
def test_a_campaign_says_what_its_hosts_were_limited_to(
    tmp_path: Path, seven_zip: dict[str, str], launcher: str
) -> None:
    need_devices()
    out = tmp_path / "out"
    study = study_of(tmp_path, {"cpus": 1, "speed": f"{SPEED_MIPS // 4}MIPS"}, launcher)
    if launcher == "local":
        keys = json.loads(study.read_text())
        study.write_text(json.dumps({**keys, "matrix": {**keys["matrix"], "hosts": "robot"}}))
    code, _, errors = lagometer(
        tmp_path, "run", str(study), "--out", str(out), "--no-report", environment=seven_zip
    )
    assert code == 0, errors or journal(out)[0]["reasons"]
    assert not groups()
    known = json.loads((out / "manifest.json").read_text())
    assert known["machine_speed"]["mips"] == SPEED_MIPS
    assert known["study"]["hosts"]["robot"]["device"]["speed_mips"] == SPEED_MIPS / 4
    (trial,) = journal(out)
    (device,) = trial["devices"]
    assert (device["host"], device["cpus"], device["share"]) == ("robot", 1, 0.25)
    assert device["processes"] == (2 if launcher == "netns" else 3)
    assert device["verified"]["low"] <= device["verified"]["measured"] <= device["verified"]["high"]
    assert device["throttled"]["window_ns"] > 0
    code, text, _ = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "approximation" in text and "emulated-device" in text


def test_a_device_may_lie_behind_a_link_and_run_the_broker(tmp_path: Path, seven_zip: dict[str, str]) -> None:
    """Messages go from the device through its own broker, then over the link. The broker shares the device's
    CPU time; the program that emulates the link does not."""
    need_devices()
    for name in ("tun", "nft", "tc", "sysctl", "mqtt"):
        need(name)
    study = study_of(
        tmp_path,
        {"cpus": 1, "speed": f"{SPEED_MIPS // 2}MIPS"},
        matrix={"adapter": "mqtt", "workload": "pipeline-2", "link": "mine"},
        links={"mine": {"delay": "10ms"}},
        drain="500ms",
    )
    out = tmp_path / "out"
    code, _, errors = lagometer(
        tmp_path, "run", str(study), "--out", str(out), "--no-report", environment=seven_zip
    )
    (trial,) = journal(out)
    assert code == 0, errors or trial["reasons"]
    (device,) = trial["devices"]
    assert (device["host"], device["share"], device["processes"]) == ("robot", 0.5, 2)  # source and broker
    assert [daemon["name"] for daemon in trial["daemons"]] == ["mosquitto"]
    assert {link["host"]: link["device"] for link in trial["links"]} == {"robot": "eth0", "base": "eth0"}
    assert all(each["as_asked"] for link in trial["links"] for each in link["figures"])
    row = pl.read_parquet(out / "cells.parquet").row(by_predicate=pl.col("edge") == "source→sink", named=True)
    assert row["latency_min_ns"] >= 10_000_000 and row["lost"] == 0
    code, text, _ = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "emulated-device" in text and "emulated-link" in text


def test_a_device_that_is_busy_stalls_and_one_that_is_not_is_said_to_be_this_machine(
    tmp_path: Path, seven_zip: dict[str, str]
) -> None:
    """The relay works 60 ms for each message, and has a quarter of a CPU."""
    need_devices()
    out = tmp_path / "out"
    device = {"cpus": 1, "speed": f"{SPEED_MIPS // 4}MIPS"}
    study = study_of(tmp_path, device, matrix={"work": ["none", "busy-60ms"], "rate": "5Hz"}, duration="1s")
    code, _, errors = lagometer(
        tmp_path, "run", str(study), "--out", str(out), "--no-report", environment=seven_zip
    )
    assert code == 0, errors or journal(out)[0]["reasons"]
    stalled = {trial["cell"]: trial["devices"][0]["throttled"]["processes"] for trial in journal(out)}
    (busy,) = [counts for cell, counts in stalled.items() if "busy-60ms" in cell]
    assert busy["throttled"] > 0 and busy["throttled_ns"] > 0


def test_a_machine_slower_than_the_device_is_refused_before_anything_runs(
    tmp_path: Path, seven_zip: dict[str, str]
) -> None:
    need_devices()
    out = tmp_path / "out"
    study = study_of(tmp_path, {"cpus": 1, "speed": f"{SPEED_MIPS + 1}MIPS"})
    code, _, errors = lagometer(
        tmp_path, "run", str(study), "--out", str(out), "--no-report", environment=seven_zip
    )
    assert code == 2 and "is faster than one of this machine" in " ".join(errors.split())
    assert not out.exists() and not groups()


@pytest.mark.by_turn
@pytest.mark.parametrize("victim", ["conductor", "agent", "both"])
def test_nothing_is_left_whoever_is_killed(tmp_path: Path, seven_zip: dict[str, str], victim: str) -> None:
    """If both are killed at once, the next conductor removes the group, which is empty until then."""
    need_devices()
    study = study_of(tmp_path, {"cpus": 1, "speed": f"{SPEED_MIPS // 4}MIPS"}, duration="60s", trials=1)
    arguments = ("run", str(study), "--out", str(tmp_path / "out"), "--no-report")
    with running(tmp_path, *arguments, environment=seven_zip) as campaign:
        assert wait_until(lambda: campaign.reached("measure", 0))
        campaign.note_namespaces()
        (group,) = groups()
        assert group.name == f"lagometer-{campaign.process.pid}-robot"
        agents = [pid for pid in campaign.processes() if _is_agent(pid)]
        for pid in agents if victim in ("agent", "both") else ():
            os.kill(pid, signal.SIGSTOP if victim == "both" else signal.SIGKILL)
        if victim in ("conductor", "both"):
            campaign.process.send_signal(signal.SIGKILL)
        for pid in agents if victim == "both" else ():
            os.kill(pid, signal.SIGKILL)
        campaign.end()
        assert wait_until(campaign.nothing_left, AGENT_LOST_S), campaign.processes()
        if victim == "both":
            assert wait_until(lambda: not remove_groups(os.getpid()), ENDED_S)
        assert wait_until(lambda: not groups(), ENDED_S), groups()


def _is_agent(pid: int) -> bool:
    """Whether it is the agent itself, not what carries it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        line = Path(f"/proc/{pid}/status").read_text().partition("NSpid:")[2].partition("\n")[0].split()
    except OSError:
        return False
    return b"lagometer.agent\0/" in words and line[-1] == "1"
