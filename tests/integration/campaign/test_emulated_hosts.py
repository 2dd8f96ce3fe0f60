# SPDX-License-Identifier: Apache-2.0
"""Hosts made from namespaces: each middleware from one to the other, what tells them apart, and that nothing
is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import ENDED_S, journal, lagometer, running, wait_until, write_study
from needs import ROOT, need

from lagometer.agent.emulated import SHARED_FOLDERS
from lagometer.installation import supervisor_path
from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.link import AgentLink
from lagometer.run.hosts.netns import NetnsLauncher, Switch
from lagometer.stats.verdict.validity import REASONS

CARRIER = {
    "udp": "udp",
    "tcp": "tcp",
    "cyclonedds": "udp",
    "fastdds": "udp",
    "cyclonedds11": "udp",
    "zeromq": "tcp",
    "nng": "tcp",
}
# Of each way to find and to reach another host one, and those whose daemon serves both.
HALF = (
    "cyclonedds",
    "cyclonedds-py",
    "rustdds",
    "mqtt",
    "dust_dds",
    "zenoh",
    "ros1",
    "lcm",
    "hiroz",
    "zenoh-py",
    "zeromq",
    "nng",
    "ecal-py",
    "ros2",
    "ros2-py",
)
AGENT_LOST_S = 15.0  # longer than an agent lives without its conductor


def need_emulated_hosts() -> None:
    for name in ("root", "mount", "netns", "ip", "ethtool"):
        need(name)


def study_of(folder: Path, adapter: str, **keys: Any) -> Path:
    """A study with its source on one emulated host and its sink on the other."""
    hosts = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": ["sink"]}}
    matrix = {
        "adapter": adapter,
        "workload": "pipeline-3",
        "rate": "10Hz",
        "network": "host",
        "payload": "8KB",
    }
    return write_study(folder, hosts=hosts, matrix=matrix, **keys)


def between_hosts(folder: Path, runs: Sequence[str], **matrix: Any) -> Path:
    """The campaign of two emulated hosts, of which the second runs these nodes; all of it valid."""
    hosts = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": list(runs)}}
    study = write_study(folder, hosts=hosts, matrix={"network": "host", **matrix}, duration="1s")
    out = folder / "out"
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, errors or journal(out)[0]["reasons"]
    return out


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", CARRIER)
def test_messages_go_from_one_emulated_host_to_the_other(tmp_path: Path, adapter: str) -> None:
    """Their clock is one, so latency is told as within a host; what carried the messages is seen on both."""
    need_emulated_hosts()
    need(adapter)
    study, out = study_of(tmp_path, adapter), tmp_path / "out"
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, errors or journal(out)[0]["reasons"]
    rows = pl.read_parquet(out / "cells.parquet")
    hosts = {
        edge: (sender, receiver)
        for edge, sender, receiver in rows.select("edge", "sender_host", "receiver_host").iter_rows()
    }
    assert hosts["source→relay-1"] == ("robot", "robot") and hosts["relay-1→sink"] == ("robot", "base")
    assert set(rows["clock"]) == {"same"} and all(0 < each < 10**9 for each in rows["latency_max_ns"])
    assert dict(rows.select("edge", "transport").iter_rows())["relay-1→sink"] == CARRIER[adapter]
    assert rows["kernel_link_bytes"][0] >= 8_000 * rows.filter(edge="relay-1→sink")["n"][0]


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", HALF)
def test_half_a_round_trip_between_hosts_needs_no_other_clock(tmp_path: Path, adapter: str) -> None:
    """What pong takes between taking and publishing is told by pong's clock, and taken off."""
    need_emulated_hosts()
    need(adapter)
    out = between_hosts(tmp_path, ["pong"], adapter=adapter, workload="roundtrip", rate="20Hz")
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    assert (rows["ping→pong"]["sender_host"], rows["ping→pong"]["receiver_host"]) == ("robot", "base")
    chain = rows["round-trip"]
    assert chain["n"] >= 15 and 0 < 2 * chain["half_round_trip_p50_ns"] < chain["whole_p50_ns"] < 10**9
    assert 2 * chain["half_round_trip_mean_ns"] == pytest.approx(
        rows["ping→pong"]["latency_mean_ns"] + rows["pong→ping"]["latency_mean_ns"], rel=0.2
    )
    code, text, _ = lagometer(tmp_path, "show", str(out), "--json")
    (shown,) = json.loads(text)["chains"]
    assert code == 0 and shown["half_round_trip_p50_ns"] == chain["half_round_trip_p50_ns"]


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", ["cyclonedds", "cyclonedds-py"])
def test_each_host_keeps_to_the_interface_of_its_address(tmp_path: Path, adapter: str) -> None:
    """A host may have several; the library would choose one by itself."""
    need_emulated_hosts()
    need(adapter)
    out = between_hosts(tmp_path, ["sink"], adapter=adapter, workload="pipeline-2", rate="10Hz")
    manifest = json.loads((out / "manifest.json").read_text())
    (described,) = [found for cell, found in manifest["settings"].items() if cell.startswith(adapter)]
    contexts = [each["settings"] for each in described if each["object"] == "context"]
    chosen = {each["General/Interfaces/NetworkInterface[@address]"]["value"] for each in contexts}
    assert chosen == {host["address"] for host in manifest["study"]["hosts"].values()}


JOINING = """
nodes:
  source: {trigger: timer, rate: 100Hz, publishes: [x]}
  sink: {trigger: any, subscribes: [x]}
  late: {trigger: any, subscribes: [x], start: 300ms}
  gone: {trigger: any, subscribes: [x], stop: 500ms}
"""


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", ["zeromq", "nng"])
def test_a_subscriber_on_another_host_that_starts_late_is_found(tmp_path: Path, adapter: str) -> None:
    """Such a library has no discovery: subscribers say on the link that they come and that they go."""
    need_emulated_hosts()
    need(adapter)
    (tmp_path / "robot.yaml").write_text(JOINING)
    runs = ["sink", "late", "gone"]
    out = between_hosts(tmp_path, runs, adapter=adapter, workload="robot.yaml", depth=1000)
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    first, late, gone = (rows[f"source→{node}"] for node in ("sink", "late", "gone"))
    assert 0 < late["n"] < first["n"] and late["join_first_message_ns"] > 0
    assert 0 < gone["n"] < first["n"] and gone["lost"] == 0 and first["leaving_gap_max_ns"] > 0


def test_every_view_calls_them_emulated(tmp_path: Path) -> None:
    need_emulated_hosts()
    out = tmp_path / "out"
    code, _, errors = lagometer(tmp_path, "run", str(study_of(tmp_path, "tcp")), "--out", str(out))
    assert code == 0, errors
    code, text, _ = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "emulated hosts" in " ".join(text.split())
    code, text, _ = lagometer(tmp_path, "show", str(out), "--json")
    (finding,) = [each for each in json.loads(text)["findings"] if each["kind"] == "emulated-hosts"]
    assert code == 0 and finding["number"] == "robot, base"
    assert "emulated hosts" in (out / "report.html").read_text()
    known = json.loads((out / "manifest.json").read_text())
    assert all(host["emulated"] for host in known["study"]["hosts"].values())
    assert [known["hosts"][name]["host"] for name in ("robot", "base")] == ["robot", "base"]


def test_what_cannot_cross_says_so(tmp_path: Path) -> None:
    need_emulated_hosts()
    _, output, errors = lagometer(tmp_path, "plan", str(study_of(tmp_path, "shm")))
    assert "shm reaches only the processes of its own host" in " ".join(output.split()), errors


@pytest.mark.parametrize("phase", ["discover", "measure"])
def test_nothing_is_left_when_the_conductor_is_killed(tmp_path: Path, phase: str) -> None:
    need_emulated_hosts()
    study = study_of(tmp_path, "tcp", duration="60s")
    with running(tmp_path, "run", str(study), "--out", str(tmp_path / "out"), "--no-report") as campaign:
        assert wait_until(lambda: campaign.reached(phase, 0))
        campaign.note_namespaces()
        assert len(campaign.processes("lagometer-worke")) == 3
        campaign.process.send_signal(signal.SIGKILL)
        campaign.process.wait()
        assert wait_until(campaign.nothing_left, AGENT_LOST_S), campaign.processes()


def test_a_killed_agent_fails_its_trial_alone(tmp_path: Path) -> None:
    need_emulated_hosts()
    out = tmp_path / "out"
    study = study_of(tmp_path, "tcp", trials=2)
    with running(tmp_path, "run", str(study), "--out", str(out), "--no-report") as campaign:
        assert wait_until(lambda: campaign.reached("measure", 0))
        agents = [pid for pid in campaign.processes() if _runs(pid, b"lagometer.agent\0/") and _is_first(pid)]
        assert len(agents) == 2
        os.kill(agents[0], signal.SIGKILL)
        code, _, errors = campaign.end()
        assert code == 3, errors
        assert wait_until(campaign.nothing_left, ENDED_S), campaign.processes()
    first, second = sorted(journal(out), key=lambda each: each["trial"])
    assert first["reasons"][0].startswith("agent-lost: host ") and second["valid"]
    assert "agent-lost" in REASONS


def _runs(pid: int, words: bytes) -> bool:
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _is_first(pid: int) -> bool:
    """Whether a process is the first of a namespace."""
    line = Path(f"/proc/{pid}/status").read_text().partition("NSpid:")[2].partition("\n")[0].split()
    return len(line) > 1 and line[-1] == "1"


# --- what makes them hosts


@contextmanager
def emulated(*names: str) -> Iterator[list[AgentLink]]:
    """Hosts of these names, with their agents."""
    switch = Switch()
    links = [
        AgentLink(name, NetnsLauncher(supervisor_path(), switch, name, number, f"10.77.0.{number + 1}"))
        for number, name in enumerate(names)
    ]
    try:
        for link in links:
            link.open()
        yield links
    finally:
        for link in links:
            link.close()
        switch.close()


def on(link: AgentLink, command: str) -> str:
    """What a command says on a host."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or not _runs(int(entry.name), b"lagometer.agent\0/"):
            continue
        if _is_first(int(entry.name)) and str((entry / "ns/net").readlink()) in link.hello["network"]:
            words = ["nsenter", "--all", "--target", entry.name, "sh", "-c", command]
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    raise AssertionError(f"{link.name} has no agent")


def test_emulated_hosts_share_nothing_by_which_programs_tell_one_machine(tmp_path: Path) -> None:
    need_emulated_hosts()
    here = Path("/dev/shm") / f"lagometer-test-{os.getpid()}"
    here.touch()
    try:
        with emulated("robot", "base") as (robot, base):
            assert (robot.hello["host"], base.hello["host"]) == ("robot", "base")
            assert (
                robot.hello["network"] != base.hello["network"] and robot.hello["boot"] == base.hello["boot"]
            )
            identities = {on(each, "cat /etc/machine-id") for each in (robot, base)}
            assert len(identities | {Path("/etc/machine-id").read_text().strip()}) == 3
            assert on(robot, "ls /dev/shm; touch /dev/shm/mine /tmp/of-robot") == ""
            assert on(base, "ls /dev/shm; ls /tmp | grep of-robot || true") == ""
            assert not Path("/tmp/of-robot").exists()
            for kind in ("ipc", "mnt", "net", "pid", "uts"):
                assert len({on(each, f"readlink /proc/self/ns/{kind}") for each in (robot, base)}) == 2
            features = on(robot, "ethtool -k eth0")
            assert "generic-segmentation-offload: off" in features and "tx-checksumming: off" in features
            assert "10.77.0.1/24" in on(robot, "ip address show dev eth0")
            assert "dev eth0" in on(robot, "ip route get 239.255.0.1")
            assert on(robot, "cat /proc/sys/net/core/rmem_max") == _setting("net/core/rmem_max")
    finally:
        here.unlink()
    assert all(folder.is_dir() for folder in SHARED_FOLDERS)


def _setting(name: str) -> str:
    return Path("/proc/sys", name).read_text().strip()


def test_a_host_that_cannot_be_made_says_why() -> None:
    need_emulated_hosts()
    switch = Switch()
    link = AgentLink("robot", NetnsLauncher(supervisor_path(), switch, "robot", 0, "10.77.0.300"))
    try:
        with pytest.raises(HostError, match=r"10\.77\.0\.300"):
            link.open()
    finally:
        link.close()
        switch.close()


# --- clocks of their own

AHEAD_S = 3600


def with_clocks(folder: Path, base: Sequence[str] = (), **host: Any) -> Path:
    """A study whose second host is in a time namespace, an hour ahead. base: words before its agent."""
    need("timens")
    ahead = ["unshare", "--time", "--monotonic", str(AHEAD_S), "--fork", *base]
    hosts = {
        "robot": {"launcher": "netns", **host},
        "base": {"launcher": "netns", "runs": ["sink"], "before": ahead, **host},
    }
    matrix = {"adapter": "tcp", "workload": "pipeline-3", "rate": "20Hz", "network": "host"}
    return write_study(folder, hosts=hosts, matrix=matrix, duration="1s", deadline="50ms")


@pytest.mark.parametrize(("host", "bound"), [({}, "hard"), ({"symmetric": True}, "narrow")])
def test_one_way_latency_between_clocks_has_a_bound(tmp_path: Path, host: dict[str, Any], bound: str) -> None:
    """The true offset is known: the hour of the time namespace, since both are told by one clock."""
    need_emulated_hosts()
    out = tmp_path / "out"
    study = with_clocks(tmp_path, **host)
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, errors or journal(out)[0]["reasons"]
    (trial,) = journal(out)
    rows = pl.read_parquet(out / "cells.parquet")
    told = {row["edge"]: row for row in rows.iter_rows(named=True)}
    assert told["source→relay-1"]["clock"] == "same" and told["source→relay-1"]["clock_bound_ns"] is None
    assert told["source→relay-1"]["deadline_missed"] is not None
    for name in ("relay-1→sink", "end-to-end"):
        row = told[name]
        assert (row["clock"], row["clock_bound"]) == ("offset", bound) and row["clock_bound_ns"] > 0
        # A message takes longer than nothing, and no longer than the trial: an hour would show.
        assert -row["clock_bound_ns"] < row["latency_min_ns"] <= row["latency_max_ns"] < 10**9
        assert row["deadline_missed"] is None
    (path,) = (out / "exchanges").rglob("*.parquet")
    stamps = pl.read_parquet(path)
    assert set(stamps.select("host", "other").rows()) == {("robot", "base"), ("base", "robot")}
    for name in ("received_lain_ns", "returned_lain_ns"):
        assert stamps[name].null_count() < stamps.height / 2 and (stamps[name].drop_nulls() >= 0).all(), name
    begun = stamps["sent_ns"].min(), stamps["sent_ns"].max()
    samples = pl.read_parquet(next((out / "samples").rglob("*.parquet")))
    between = samples.filter(edge="relay-1→sink", phase="measure")
    assert begun[0] < between["publish_ns"].min() and begun[1] > between["publish_ns"].max()  # type: ignore[operator]
    within = stamps.filter(
        pl.col("sent_ns").is_between(between["publish_ns"].min(), between["publish_ns"].max())
    )
    assert 10 <= within.height <= 30
    # All was brought to the conductor's clock by one offset of each host: what is left of the true one.
    left_ns = AHEAD_S * 10**9 - trial["hosts"][1]["clock"]["offset_ns"]
    away = pl.col("received_ns") - pl.col("sent_ns") + pl.col("answered_ns") - pl.col("returned_ns")
    sign = pl.when(pl.col("host") == "robot").then(1).otherwise(-1)
    wrong_ns = (sign * away / 2 - left_ns).abs()
    assert stamps.select((wrong_ns <= (pl.col("returned_ns") - pl.col("sent_ns")) / 2).all()).item()


def test_a_host_whose_kernel_stamps_nothing_is_seen_in_the_record(tmp_path: Path) -> None:
    """The narrow bound is by the agents' stamps then; the other host's kernel still says what it knows."""
    need_emulated_hosts()
    need("cc")
    library, source = tmp_path / "unstamped.so", ROOT / "tests" / "preload" / "unstamped.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    out = tmp_path / "out"
    study = with_clocks(tmp_path, base=["env", f"LD_PRELOAD={library}"], symmetric=True)
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, errors or journal(out)[0]["reasons"]
    (path,) = (out / "exchanges").rglob("*.parquet")
    stamps = pl.read_parquet(path)
    asked = {host: stamps.filter(host=host) for host in ("robot", "base")}
    assert asked["robot"]["received_lain_ns"].null_count() == asked["robot"].height > 0
    assert asked["base"]["returned_lain_ns"].null_count() == asked["base"].height > 0
    assert asked["robot"]["returned_lain_ns"].drop_nulls().len() > 0
    assert asked["base"]["received_lain_ns"].drop_nulls().len() > 0
    row = pl.read_parquet(out / "cells.parquet").filter(edge="end-to-end").row(0, named=True)
    assert row["clock_bound"] == "narrow" and row["clock_bound_ns"] > 0


def test_a_figure_below_its_bound_says_so(tmp_path: Path) -> None:
    """With clocks that are stated to drift by a tenth nothing is known of microseconds."""
    need_emulated_hosts()
    out = tmp_path / "out"
    study = with_clocks(tmp_path, drift_ppm=100_000)
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, errors or journal(out)[0]["reasons"]
    code, text, _ = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "(below its bound)" in text and "one-way-bound" in text
    code, text, _ = lagometer(tmp_path, "show", str(out), "--json")
    (row,) = [row for row in json.loads(text)["rows"] if row["edge"] == "end-to-end"]
    assert row["clock_bound_ns"] > row["latency_p50_ns"] and row["clock_bound"] == "hard"
