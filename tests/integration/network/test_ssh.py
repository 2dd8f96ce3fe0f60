# SPDX-License-Identifier: Apache-2.0
"""Hosts that are reached by ssh: a real sshd on a machine made from namespaces, and all that can go wrong."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import Running, journal, lagometer, running, wait_until, write_study
from needs import ROOT, adapter_library, need
from ssh_machine import CLONE_NEWNET, OURS, THEIRS, Machine, machine

from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.launchers import Launchers
from lagometer.run.hosts.link import AgentLink
from lagometer.study.bridges import VARIABLE
from lagometer.study.hosts_file import load_hosts

FROZEN_S = 60.0
CLEAN_S = 30.0  # by when both sides are clean, whatever happened
AHEAD_NS = 3_600_000_000_000


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Machine]:
    with machine(tmp_path) as made:
        yield made


def study_of(folder: Path, there: Machine, adapter: str = "tcp", host: Any = None, **keys: Any) -> Path:
    """A study with its source here and its sink there."""
    hosts = {"robot": {"address": OURS}, "base": {**there.host(**(host or {})), "runs": ["sink"]}}
    matrix = {"adapter": adapter, "workload": "pipeline-2", "rate": "10Hz", "network": "host"}
    return write_study(folder, hosts=hosts, matrix=matrix, **keys)


def run(folder: Path, there: Machine, study: Path) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the finished trials of a campaign; afterwards nothing is left on either side."""
    out = folder / "out"
    words = ("run", str(study), "--out", str(out), "--no-report")
    code, _, errors = lagometer(folder, *words, preexec_fn=there.on_cable)
    assert (out / "journal.jsonl").exists(), errors
    assert wait_until(lambda: not there.left(), CLEAN_S), there.left()
    return code, sorted(journal(out), key=lambda each: int(each["trial"]))


@pytest.mark.parametrize("adapter", ["cyclonedds", "tcp", "udp"])
def test_messages_go_from_here_to_a_host_behind_ssh(tmp_path: Path, base: Machine, adapter: str) -> None:
    """Nothing is installed there: what it needs is copied, once. Its clock is its own."""
    if adapter != "cyclonedds":
        need("long")
    need(adapter)
    code, trials = run(tmp_path, base, study_of(tmp_path, base, adapter, trials=2, duration="500ms"))
    assert code == 0, [trial["reasons"] for trial in trials]
    rows = pl.read_parquet(tmp_path / "out" / "cells.parquet")
    edge = rows.filter(edge="source→sink")
    assert edge.select("sender_host", "receiver_host").unique().rows() == [("robot", "base")]
    assert set(edge["transport"]) == {"tcp" if adapter == "tcp" else "udp"} and set(edge["n"]) == {5}
    (copy,) = base.on("ls", "/home/.cache/lagometer").split()
    assert base.on("find", "/home/.cache/lagometer", "-name", f"liblagometer_{adapter}.so").count(copy) == 1
    need("timens")
    assert abs(trials[0]["hosts"][1]["clock"]["offset_ns"] - AHEAD_NS) < 10**9
    assert set(edge["clock"]) == {"offset"} and set(edge["clock_bound"]) == {"hard"}
    assert all(edge["latency_min_ns"] > -edge["clock_bound_ns"])


def test_a_bridge_beside_the_source_reaches_a_host_behind_ssh(
    tmp_path: Path, base: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one process on this machine; nothing of it is needed there."""
    need("long")
    need("cyclonedds")
    need("cyclonedds-py")  # which the bridge is made of
    toy = str(ROOT / "tests" / "programs" / "toy_bridge.py")
    declared = {"name": "toy", "title": "a toy", "program": sys.executable, "package": "none"}
    declared |= {"processes": "one", "arguments": [toy, "{first}", "{second}"]}
    declared |= {"ready": {"output": "serves$"}, "adapters": {"cyclonedds": {}}, "otherwise": "not tried"}
    (tmp_path / "toy.json").write_text(json.dumps(declared))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    hosts = {"robot": {"address": OURS}, "base": {**base.host(), "runs": ["pong"]}}
    matrix = {"adapter": "cyclonedds", "workload": "across-domains", "bridge": "toy", "rate": "10Hz"}
    matrix |= {"reliability": "reliable", "network": "host"}
    study = write_study(tmp_path, hosts=hosts, matrix=matrix, duration="1s", machine_floor="off")
    code, (trial,) = run(tmp_path, base, study)
    assert code == 0, trial["reasons"]
    rows = {
        row["edge"]: row for row in pl.read_parquet(tmp_path / "out" / "cells.parquet").iter_rows(named=True)
    }
    assert rows["ping→pong"]["receiver_host"] == "base"
    assert rows["end-to-end"]["n"] == 10 and rows["end-to-end"]["lost"] == 0


# --- what keeps it from being reached


def reached(there: Machine, study: Path) -> str:
    """Why no agent can be started there, without a campaign; empty: one was."""
    host = load_hosts(study)[0]["base"]
    link = AgentLink("base", Launchers([adapter_library("tcp")]).of("base", host))
    with in_network(there):
        try:
            link.open()
        except HostError as error:
            return str(error)
        finally:
            link.close()
    return ""


@contextlib.contextmanager
def in_network(there: Machine) -> Iterator[None]:
    """This thread is on the machine's cable for a while."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there.on_cable()
    try:
        yield
    finally:
        assert ctypes.CDLL(None).setns(before, CLONE_NEWNET) == 0
        os.close(before)


def test_a_host_that_cannot_be_reached_says_what_to_do(tmp_path: Path, base: Machine) -> None:
    study = study_of(tmp_path, base)
    authorized = base.folder / "authorized_keys"
    ours, host_key = authorized.read_text(), (base.folder / "host_key.pub").read_text()
    assert reached(base, study) == ""
    authorized.write_text(base.other_key("another"))
    assert "your key is not accepted, and lagometer asks for no password. `ssh-copy-id" in reached(
        base, study
    )
    authorized.write_text(ours)
    base.know_host_key((base.folder / "another.pub").read_text())
    said = reached(base, study)
    assert "its host key has changed. Find out why; if the new one is right: `ssh-keygen -R" in said
    base.know_host_key("")
    assert "its host key is not known. Run `ssh -F" in reached(base, study)
    base.know_host_key(host_key)
    assert reached(base, study) == "" and not base.left()


def test_a_host_behind_a_jump_host_is_reached_as_ssh_reaches_it(tmp_path: Path, base: Machine) -> None:
    """The machine is its own jump host, so its second connection comes from itself."""
    config = base.folder / "ssh_config"
    direct = config.read_text()
    config.write_text(f"{direct}  ProxyJump gate\n{direct.replace('Host base', 'Host gate')}")
    assert reached(base, study_of(tmp_path, base)) == ""
    accepted = [line for line in base.log.read_text().splitlines() if line.startswith("Accepted publickey")]
    assert [line.split(" from ")[1].split()[0] for line in accepted] == [OURS, THEIRS]
    assert wait_until(lambda: not base.left(), CLEAN_S), base.left()


def test_a_disk_that_is_full_there_says_so_and_keeps_nothing(tmp_path: Path) -> None:
    with machine(tmp_path, home="300k") as base:
        said = reached(base, study_of(tmp_path, base))
        assert "/home/.cache/lagometer: No space left on device" in said and "make room there" in said
        assert base.on("ls", "-A", "/home/.cache/lagometer") == ""


def test_a_host_that_was_not_reached_fails_its_trial(tmp_path: Path, base: Machine) -> None:
    need("long")
    base.know_host_key("")
    code, (trial,) = run(tmp_path, base, study_of(tmp_path, base))
    assert code == 3 and trial["reasons"][0].startswith(
        "agent-lost: host base: ssh base: its host key is not known"
    )


def test_another_lagometer_there_is_refused_and_the_same_one_is_used(tmp_path: Path) -> None:
    need("long")
    with machine(tmp_path, hidden=None) as base:
        code, trials = run(tmp_path, base, study_of(tmp_path, base, host={"path": str(ROOT)}))
        assert code == 0, trials[0]["reasons"]
        assert base.on("sh", "-c", "ls -A /home") == ""  # nothing was copied
        version = ROOT / "lagometer" / "__init__.py"
        own = tmp_path / "changed.py"
        own.write_text(version.read_text().replace("__version__", "# another one\n__version__"))
        base.on("mount", "--bind", str(own), str(version))
        code, (trial,) = run(tmp_path, base, study_of(tmp_path, base, host={"path": str(ROOT)}))
        assert code == 3
        (reason,) = trial["reasons"]
        assert f"{version} is another one" in reason and "install the version of this lagometer" in reason
        code, trials = run(tmp_path, base, study_of(tmp_path, base))  # what differs is not used, but copied
        assert code == 0, trials[0]["reasons"]
        assert base.on("ls", "-A", "/home").split() == [".cache"]


# --- what breaks while it goes on


@pytest.mark.parametrize("what", ["agent", "ssh"])
def test_what_is_killed_fails_its_trial_alone(tmp_path: Path, base: Machine, what: str) -> None:
    need("long")
    study = study_of(tmp_path, base, trials=3)
    with started(tmp_path, base, study) as campaign:
        assert wait_until(lambda: campaign.reached("warm-up", 1))
        if what == "agent":
            base.kill("lagometer.agent")
        else:
            (client,) = campaign.processes("ssh")
            os.kill(client, signal.SIGKILL)
        code, _, errors = campaign.end()
        assert code == 3, errors
        both_sides_are_clean(campaign, base)
    first, second, third = sorted(journal(tmp_path / "out"), key=lambda each: int(each["trial"]))
    assert (first["valid"], second["valid"], third["valid"]) == (True, False, True), second["reasons"]
    assert second["reasons"][0].startswith(
        "agent-lost: host base: its agent ended; it was reached by ssh, which"
    )
    assert "the next trial connects again" in second["reasons"][0]


PHASES = ["create", "discover", "warm-up", "measure", "drain", "tear-down"]


@pytest.mark.by_turn
@pytest.mark.parametrize("how", ["cut", "frozen"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_link_that_breaks_fails_its_trial_and_leaves_nothing(
    tmp_path: Path, base: Machine, phase: str, how: str
) -> None:
    """The finished trial stays. Once the link is up again a later one is valid; a cut that the network tells
    of at once fails all trials meanwhile."""
    if (phase, how) != ("measure", "frozen"):
        need("long")
    study = study_of(tmp_path, base, trials=4, duration="500ms")
    with started(tmp_path, base, study) as campaign:
        assert wait_until(lambda: campaign.reached(phase, 1)), campaign.events()
        base.cut() if how == "cut" else base.freeze()
        assert wait_until(lambda: is_over(campaign, 1))
        assert wait_until(lambda: not base.left(), CLEAN_S), base.left()
        base.join() if how == "cut" else base.thaw()
        code, _, errors = campaign.end()
        both_sides_are_clean(campaign, base)
    first, second, *others = sorted(journal(tmp_path / "out"), key=lambda each: int(each["trial"]))
    assert first["valid"] and code == 3, errors
    assert how == "cut" or others[-1]["valid"], others[-1]["reasons"]
    reasons = "; ".join(second["reasons"])
    if phase == "tear-down" and second["valid"]:  # it broke when all was over
        reasons = "; ".join(others[0]["reasons"])
        if how == "frozen" and "agent-lost" not in reasons:  # nothing was left there, so it thawed at once
            assert others[0]["valid"] or "endpoints-missing" in reasons, reasons
            return
    assert "agent-lost: host base: " in reasons, reasons
    assert "the next trial connects again" in reasons or "check that it runs and the link is up" in reasons


@pytest.mark.parametrize("phase", PHASES)
def test_a_link_that_is_frozen_for_a_minute_costs_the_trials_of_that_minute_alone(
    tmp_path: Path, base: Machine, phase: str
) -> None:
    """Nothing is told to either side meanwhile: what ran there ends by its lease, what is due fails, and once
    the link is back the campaign goes on."""
    need("long")
    study = study_of(tmp_path, base, trials=12, duration="500ms")
    with started(tmp_path, base, study) as campaign:
        assert wait_until(lambda: campaign.reached(phase, 1)), campaign.events()
        base.freeze()
        thawed_s = time.monotonic() + FROZEN_S
        assert wait_until(lambda: is_over(campaign, 1))
        assert wait_until(lambda: not base.left(), CLEAN_S), base.left()
        assert time.monotonic() < thawed_s
        assert not wait_until(lambda: campaign.process.poll() is not None, thawed_s - time.monotonic())
        during = {trial["trial"] for trial in journal(tmp_path / "out")}
        base.thaw()
        code, _, errors = campaign.end()
        both_sides_are_clean(campaign, base)
    trials = {int(each["trial"]): each for each in journal(tmp_path / "out")}
    assert code == 3 and sorted(trials) == list(range(12)), errors
    valid = {number for number, each in trials.items() if each["valid"]}
    before = {0, 1} & valid if phase == "tear-down" else {0}  # there all of the second trial may be over
    assert 0 in valid and valid & during == before, {number: trials[number]["reasons"] for number in during}
    # The trial that goes on while the link thaws may be either; those that begin afterwards are valid.
    assert set(range(max(during) + 2, 12)) <= valid and max(during) < 10
    assert all(
        trials[number]["reasons"][0].startswith("agent-lost: host base: ") for number in during - before
    )


def is_over(campaign: Running, trial: int) -> bool:
    """Whether a trial has failed, or has ended well and the next one begun."""
    failed = any(each["event"] == "trial-failed" for each in campaign.events())
    return failed or campaign.reached("create", trial + 1) or campaign.process.poll() is not None


def started(folder: Path, there: Machine, study: Path) -> Any:
    words = ("run", str(study), "--out", str(folder / "out"), "--no-report")
    return running(folder, *words, preexec_fn=there.on_cable)


def both_sides_are_clean(campaign: Running, there: Machine) -> None:
    assert wait_until(lambda: campaign.nothing_left() and not there.left(), CLEAN_S), (
        campaign.processes(),
        there.left(),
    )
