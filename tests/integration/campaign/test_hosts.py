# SPDX-License-Identifier: Apache-2.0
"""A trial over hosts: agents that lie, hang and die, leases, and clocks that are not the conductor's."""

from __future__ import annotations

import contextlib
import json
import os
import select
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
from needs import ROOT, need
from own_network import own_network

from lagometer.agent.commands import Command
from lagometer.agent.frames import LEASE_S, framed
from lagometer.agent.orders import Orders
from lagometer.agent.trial import SUPERVISOR_LEASE_S
from lagometer.installation import supervisor_path
from lagometer.run.hosts.link import AgentLink
from lagometer.run.hosts.local import LocalLauncher
from lagometer.study.adapters import discover_adapters

MOCK = [sys.executable, str(ROOT / "tests" / "mock_agent.py")]
BOTH_GONE_S = SUPERVISOR_LEASE_S + 30
AHEAD_NS = 3_000_000_000


def with_host(folder: Path, before: list[str], **keys: Any) -> Path:
    """A study whose nodes all run on one host, with these words before its agent's command."""
    return write_study(folder, hosts={"robot": {"before": before}}, **keys)


def run(folder: Path, study: Path, *more: str, **popen: Any) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the finished trials of a campaign."""
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(folder / "out"), *more, **popen)
    assert (folder / "out" / "journal.jsonl").exists(), errors
    return code, journal(folder / "out")


# --- agents that are not to be trusted


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("die:agent", "its agent ended; it exited with code 3; it said: out of luck"),
        ("die:serving", "its agent ended; it exited with code 3; it said: out of luck"),
        ("die:output", "out of luck"),
        ("die:evidence", "out of luck"),
        ("die:ended", "out of luck"),
        ("hang:serving", "its agent did not send 'serving' within 5.00 s"),
        ("hang:evidence", "its agent did not send 'evidence' within 5.00 s"),
        ("version", "its agent has protocol 1 instead of 1, version 9.9.9 instead of"),
        (
            "clock",
            "its agent says that it has our clock, and has another: is it a copy of this machine?",
        ),
        ("garbage:agent", "its agent wrote no JSON object: b'Segmentation fault'"),
        ("garbage:notice", "its agent wrote no JSON object: b'Segmentation fault'"),
        ("strange:serving", "ValueError an unknown event in {'event': 'gossip'"),
        ("numbers:agent", "its agent has protocol [None] instead of 1"),
        ("numbers:output", "its agent sent an invalid message: "),
        ("numbers:evidence", "its agent sent an invalid message: "),
        ("numbers:ended", "its agent sent an invalid message: "),
    ],
)
def test_an_agent_that_is_not_to_be_trusted_fails_its_trial(tmp_path: Path, wrong: str, said: str) -> None:
    need("netns")
    code, (trial,) = run(tmp_path, with_host(tmp_path, [*MOCK, wrong]))
    assert code == 3 and not trial["valid"]
    first = trial["reasons"][0]
    assert first.startswith("agent-lost: host robot: ") and said in first, trial["reasons"]


def test_the_next_trial_after_a_lost_agent_has_a_new_one(tmp_path: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=3), tmp_path / "out"
    with running(tmp_path, "run", str(study), "--out", str(out), "--no-report") as campaign:
        assert wait_until(lambda: campaign.reached("warm-up", 1))
        (agent,) = (pid for pid in campaign.processes() if b"lagometer.agent" in _command(pid))
        os.kill(agent, signal.SIGKILL)
        code, _, errors = campaign.end()
        assert code == 3, errors
        assert wait_until(campaign.nothing_left, ENDED_S), campaign.processes()
    first, second, third = sorted(journal(out), key=lambda each: each["trial"])
    assert (first["valid"], second["valid"], third["valid"]) == (True, False, True)
    assert second["reasons"][0] == "agent-lost: host here: its agent ended; it was killed by SIGKILL"


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_an_agent_that_ended_between_two_trials_is_replaced_before_the_next_is_planned() -> None:
    """The folders of a trial bear its agent's number: another agent removes those of one that is gone."""
    link = AgentLink("here", LocalLauncher(supervisor_path()))
    try:
        link.open()
        first = link.process_id
        link.open()
        assert link.process_id == first
        os.kill(first, signal.SIGKILL)
        assert wait_until(lambda: not alive({first}))
        link.open()
        assert link.process_id != first and alive({link.process_id})
        assert link.offset().same
    finally:
        link.close()


@pytest.mark.parametrize(("arguments", "said"), [([], "usage: "), (["supervisor"], "must be a pipe")])
def test_an_agent_that_is_started_by_hand_says_what_it_is_for(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-I", "-m", "lagometer.agent", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr


# --- the lease


@contextlib.contextmanager
def agent_with_a_worker() -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """An agent that has started one program in a private machine, and all processes below it."""
    agent = subprocess.Popen(
        [sys.executable, "-I", "-m", "lagometer.agent", str(supervisor_path())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert agent.stdin is not None
    orders = Orders("private", "/dev/shm/lagometer", (Command(("sleep", "600")),))
    try:
        agent.stdin.write(framed({"command": "trial", "orders": orders.as_json()}))
        agent.stdin.flush()
        assert wait_until(lambda: any(b"sleep" in _command(pid) for pid in below(agent.pid)))
        yield agent, below(agent.pid)
    finally:
        agent.kill()
        agent.wait()
        for stream in (agent.stdin, agent.stdout):
            if stream is not None:
                stream.close()


def below(pid: int) -> set[int]:
    """All processes that descend from one."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found |= {child} | below(child)
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that run; a stopped parent can't bury what has ended."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            found |= {pid} if state != "Z" else set()
    return found


def test_nothing_lives_on_without_its_lease() -> None:
    """Pipes stay open all the time: once the conductor says nothing more, once the agent is stopped."""
    need("netns")
    with agent_with_a_worker() as (silent, of_silent), agent_with_a_worker() as (stopped, of_stopped):
        os.kill(stopped.pid, signal.SIGSTOP)
        began_s = time.monotonic()
        assert len(of_silent) >= 2 and len(of_stopped) >= 2
        while time.monotonic() - began_s < LEASE_S / 2:
            assert stopped.stdin is not None and silent.poll() is None
            time.sleep(0.1)
        assert alive(of_silent) == of_silent and alive(of_stopped) == of_stopped
        assert wait_until(lambda: silent.poll() is not None and not alive(of_silent), BOTH_GONE_S)
        assert wait_until(lambda: not alive(of_stopped), BOTH_GONE_S)


def test_an_agent_lives_as_long_as_its_lease_is_renewed() -> None:
    need("netns")
    with agent_with_a_worker() as (agent, processes):
        assert agent.stdin is not None and agent.stdout is not None
        began_s = time.monotonic()
        while time.monotonic() - began_s < LEASE_S + 3:
            agent.stdin.write(framed({"command": "lease"}))
            agent.stdin.flush()
            time.sleep(0.5)
            while select.select([agent.stdout], [], [], 0)[0]:
                assert os.read(agent.stdout.fileno(), 1 << 16)
        assert agent.poll() is None and alive(processes) == processes
        agent.stdin.close()
        assert wait_until(lambda: not alive(processes)) and agent.wait() == 0


# --- clocks


@pytest.fixture(scope="module")
def drifting(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that gives a host a clock of its own."""
    need("cc")
    library = tmp_path_factory.mktemp("preload") / "drifting_clock.so"
    source = ROOT / "tests" / "preload" / "drifting_clock.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return str(library)


def clock_of_its_own(library: str, ahead_ns: int, drift_ppm: int) -> list[str]:
    """The words that give an agent and all below it such a clock."""
    settings = {
        "LD_PRELOAD": library,
        "LAGOMETER_TEST_AHEAD_NS": ahead_ns,
        "LAGOMETER_TEST_DRIFT_PPM": drift_ppm,
        "LAGOMETER_TEST_BASE_NS": time.monotonic_ns(),
    }
    return [*MOCK, "elsewhere", "env", *(f"{name}={value}" for name, value in settings.items())]


def time_namespace() -> list[str]:
    """The words that put an agent into a time namespace, an hour ahead."""
    need("timens")
    return ["unshare", "--time", "--monotonic", "3600", "--fork"]


@pytest.mark.parametrize(("ahead_ns", "drift_ppm"), [(AHEAD_NS, 100), (-AHEAD_NS, 100), (AHEAD_NS, -100)])
def test_one_host_with_a_clock_of_its_own_measures_as_any(
    tmp_path: Path, drifting: str, ahead_ns: int, drift_ppm: int
) -> None:
    """Phases are its own: all messages of the measure phase, and none more, count; latency is told."""
    need("netns")
    study = with_host(tmp_path, clock_of_its_own(drifting, ahead_ns, drift_ppm))
    code, (trial,) = run(tmp_path, study)
    assert code == 0, trial["reasons"]
    (host,) = trial["hosts"]
    assert not host["clock"]["same"] and host["clock"]["bound_ns"] <= host["clock"]["round_trip_ns"]
    rows = pl.read_parquet(tmp_path / "out" / "cells.parquet")
    assert set(rows["n"]) == {3}
    # No speed is asked for: a clock taken for another one would be off by as much as it is ahead.
    assert all(0 < latency_ns < AHEAD_NS // 2 for latency_ns in rows["latency_max_ns"])
    assert 0 < rows["discovery_ns"][0] < 10_000_000_000


def test_hosts_with_clocks_of_their_own_match_and_tell_no_latency(tmp_path: Path, drifting: str) -> None:
    """One host in a time namespace, one that drifts: no row of any file has times of both."""
    need("netns")
    need("cyclonedds")
    hosts = {
        "robot": {},
        "cloud": {"before": time_namespace(), "runs": ["relay-1"]},
        "base": {"before": clock_of_its_own(drifting, -AHEAD_NS, 100), "runs": ["sink"]},
    }
    matrix = {
        "adapter": "cyclonedds",
        "workload": "pipeline-3",
        "rate": "10Hz",
        "network": "host",
        "hosts": ["robot+cloud", "robot+cloud+base"],
    }
    study = write_study(tmp_path, hosts=hosts, matrix=matrix, deadline="50ms")
    code, trials = run(tmp_path, study, preexec_fn=own_network)
    assert code == 0, [trial["reasons"] for trial in trials]
    rows = pl.read_parquet(tmp_path / "out" / "cells.parquet")
    both = rows.filter(pl.col("hosts") == "robot+cloud")
    assert dict(both.select("edge", "clock").iter_rows()) == {
        "source→relay-1": "offset",
        "relay-1→sink": "offset",
        "end-to-end": "same",
    }
    told = dict(both.select("edge", "latency_max_ns").iter_rows())
    assert told["source→relay-1"] is None and told["relay-1→sink"] is None
    assert 0 < told["end-to-end"] < 1_000_000_000
    three = rows.filter(pl.col("hosts") == "robot+cloud+base")
    assert set(three["clock"]) == {"offset"} and set(three["n"]) == {3} and three["lost"].sum() == 0
    for name in ("latency_p50_ns", "latency_max_ns", "data_age_max_ns", "deadline_missed", "wake_p50_ns"):
        assert three[name].null_count() == three.height, name
    (path,) = (path for path in (tmp_path / "out" / "samples").rglob("*.parquet") if "base" in str(path))
    messages = pl.read_parquet(path)
    assert messages["taken_ns"].null_count() == messages.height > 0
    assert messages["publish_ns"].null_count() == 0


def another_build(folder: Path, adapter: str) -> list[str]:
    """The words that give an agent and all below it another library of an adapter."""
    need("mount")
    library = discover_adapters()[adapter].library
    other = folder / "other.so"
    other.write_bytes(library.read_bytes() + b"\0")
    bind = f'mount --bind {other} {library} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", bind, "sh"]


def test_the_views_say_why_there_is_no_latency_and_what_differs_between_hosts(tmp_path: Path) -> None:
    need("netns")
    need("cyclonedds")
    before = [*another_build(tmp_path, "cyclonedds"), *time_namespace()]
    hosts = {"robot": {}, "base": {"before": before, "runs": ["sink"]}}
    matrix = {"adapter": "cyclonedds", "workload": "pipeline-2", "rate": "10Hz", "network": "host"}
    code, _ = run(tmp_path, write_study(tmp_path, hosts=hosts, matrix=matrix), preexec_fn=own_network)
    assert code == 0 and (tmp_path / "out" / "report.html").stat().st_size > 0
    known = json.loads((tmp_path / "out" / "manifest.json").read_text())["hosts"]
    assert list(known) == ["robot", "base"]
    assert all(list(host["adapters"]) == ["cyclonedds"] and host["cpus"] for host in known.values())
    code, output, errors = lagometer(tmp_path, "show", str(tmp_path / "out"), "--json")
    assert code == 0, errors
    numbers = {each["kind"]: each["number"] for each in json.loads(output)["findings"]}
    assert "source→sink" in numbers["clocks-differ"]
    ours, others = (host["files"]["cyclonedds"][:12] for host in known.values())
    assert ours != others and f"robot has {ours}" in numbers["hosts-differ"]
    assert known["robot"]["files"]["lagometer-worker"] == known["base"]["files"]["lagometer-worker"]
    assert all(host["realtime_limit"]["period_us"] > 0 for host in journal(tmp_path / "out")[0]["hosts"])
    code, output, _ = lagometer(tmp_path, "show", str(tmp_path / "out"))
    assert code == 0 and "unknown clock offset" in " ".join(output.split())
    # Nor does an export have a latency.
    histograms = tmp_path / "latency.hlog"
    exported = ("export", str(tmp_path / "out"), "--format")
    code, _, errors = lagometer(tmp_path, *exported, "hlog", "--out", str(histograms))
    assert code == 0 and "Tag=" not in histograms.read_text(), errors
    code, output, errors = lagometer(tmp_path, *exported, "openmetrics")
    assert code == 0 and "lagometer_messages_total{" in output, errors
    assert "lagometer_latency_seconds{" not in output and "lagometer_latency_seconds_sum{" not in output
