# SPDX-License-Identifier: Apache-2.0
"""Emulated links, made for real: measured before the workers start, crossed by the messages, gone
afterwards."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import ENDED_S, journal, lagometer, running, wait_until, write_study
from needs import need, require

from lagometer.installation import link_path
from lagometer.study.links import shipped_links

MS = 1_000_000
SLOW: dict[str, Any] = {"rate": "50Mbit", "delay": "10ms", "loss": "2%", "queue": "500KB"}
HOSTS = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": ["sink"]}}


def need_links() -> None:
    need("tun")
    need("nft")
    for name in ("root", "netns", "ip", "tc", "ethtool", "sysctl"):
        need(name)


def study_of(folder: Path, link: Any, adapter: str = "tcp", **more: Any) -> Path:
    names = {"links": {"mine": link}} if isinstance(link, dict) else {}
    name = "mine" if names else link
    matrix = {
        "adapter": adapter,
        "workload": "pipeline-2",
        "rate": "50Hz",
        "link": name,
        **more.pop("matrix", {}),
    }
    return write_study(folder, matrix=matrix, **{"drain": "500ms", **names, **more})


def run(folder: Path, study: Path, **more: Any) -> tuple[int, dict[str, Any]]:
    """The exit code, and the line of the journal of the only trial."""
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(folder / "out"), seconds=240, **more)
    lines = journal(folder / "out")
    assert len(lines) == 1, errors
    return code, lines[0]


def figures(link: dict[str, Any]) -> dict[str, float]:
    return {each["what"]: each["measured"] for each in link["figures"]}


def test_a_link_on_the_loopback_delays_what_crosses_it(tmp_path: Path) -> None:
    """By the program in user space; it is told in every view that it is emulated, and what was measured."""
    need_links()
    code, line = run(tmp_path, study_of(tmp_path, SLOW))
    assert code == 0, line["reasons"]
    (link,) = line["links"]
    assert (link["host"], link["device"], link["back_end"]) == ("here", "lo", "user-space")
    assert all(each["as_asked"] for each in link["figures"])
    assert figures(link)["delay_ns"] == pytest.approx(10 * MS, abs=MS) and link["cpu_ns"] > 0
    assert link["did"]["program"]["frames"] > 2000 and link["did"]["shaper"]["kind"] == "tbf"
    rows = pl.read_parquet(tmp_path / "out" / "cells.parquet")
    assert rows["link"][0] == "mine" and rows["latency_min_ns"][0] >= 10 * MS
    assert rows["daemon_cpu_ns"][0] is None  # it is not the middleware's
    _, text, _ = lagometer(tmp_path, "show", str(tmp_path / "out"))
    assert "emulated-link" in text and "(asked 10.0 ms)" in " ".join(text.split())
    assert "emulated-link" in (tmp_path / "out" / "report.html").read_text()


def test_hosts_share_a_link_that_keeps_fragments_and_multicast(tmp_path: Path) -> None:
    """Messages of 64 KB in fragments of 1500 B; Cyclone DDS finds its peers by multicast."""
    need_links()
    need("mount")
    need("cyclonedds")
    link = {"delay": "5ms", "duplicate": "1%"}
    matrix = {"network": "host", "payload": "64KB", "reliability": "reliable"}
    code, line = run(tmp_path, study_of(tmp_path, link, "cyclonedds", hosts=HOSTS, matrix=matrix))
    assert code == 0, line["reasons"]
    assert [(each["host"], each["device"]) for each in line["links"]] == [("robot", "eth0"), ("base", "eth0")]
    rows = pl.read_parquet(tmp_path / "out" / "cells.parquet").filter(edge="source→sink")
    assert rows["latency_min_ns"][0] >= 5 * MS and rows["lost"][0] == 0
    assert line["links"][0]["did"]["program"]["duplicated"] > 0


def test_a_link_that_is_not_as_asked_fails_its_trial(tmp_path: Path) -> None:
    """A program that forgets the delay: no worker is started."""
    need_links()
    forgetful = tmp_path / "forgetful"
    forgetful.write_text(f'#!/bin/sh\nexec {link_path()} "$1" "$2" loss=0.02\n')
    forgetful.chmod(0o755)
    code, line = run(tmp_path, study_of(tmp_path, SLOW), environment={"LAGOMETER_LINK": str(forgetful)})
    assert code == 3
    (reason,) = line["reasons"]
    assert reason.startswith("link-differs: mine by user-space: delay: 10 ms asked, 0.")


def test_messages_that_pass_the_link_by_fail_the_trial(tmp_path: Path) -> None:
    """Fast DDS takes shared memory within a host. The link itself, of loss alone, is left to the kernel."""
    need_links()
    need("fastdds")
    matrix = {"payload": "8KB", "reliability": "reliable"}
    code, line = run(tmp_path, study_of(tmp_path, "lossy-5", "fastdds", matrix=matrix))
    (link,) = line["links"]
    assert link["back_end"] == "kernel" and link["did"]["filter_dropped"] > 0
    assert 0.02 < figures(link)["loss"] < 0.09
    (reason,) = line["reasons"]
    assert code == 3 and reason.startswith(
        "link-not-crossed: messages of source→sink went by shared-memory, past"
    )


def test_nothing_is_left_of_a_link_when_the_conductor_is_killed(tmp_path: Path) -> None:
    need("long")
    need_links()
    study = study_of(tmp_path, SLOW, duration="60s")
    with running(tmp_path, "run", str(study), "--out", str(tmp_path / "out"), "--no-report") as campaign:
        assert wait_until(lambda: campaign.reached("measure", 0))
        campaign.note_namespaces()
        assert len(campaign.processes("lagometer-link")) == 1
        campaign.process.send_signal(signal.SIGKILL)
        campaign.process.wait()
        assert wait_until(campaign.nothing_left, ENDED_S), campaign.processes()


@pytest.mark.parametrize("hosts", [None, HOSTS], ids=["loopback", "hosts"])
@pytest.mark.parametrize("name", sorted(shipped_links()))
def test_every_profile_that_ships_is_as_it_says(tmp_path: Path, name: str, hosts: Any) -> None:
    need("long")
    need_links()
    more: dict[str, Any] = {} if hosts is None else {"hosts": hosts, "matrix": {"network": "host"}}
    code, line = run(tmp_path, study_of(tmp_path, name, **more))
    slow = [
        each for each in line["reasons"] if each.startswith("link-differs: ethernet-1G by kernel: rate: ")
    ]
    require("gigabit", not slow, f"a machine that carries 1 Gbit/s between its namespaces: {slow}")
    assert code == 0, line["reasons"]
    assert all(each["as_asked"] for link in line["links"] for each in link["figures"])


def test_a_lossy_loopback_delivers_reliable_messages_in_bursts(tmp_path: Path) -> None:
    """30 % of frames lost, reliable, 300 messages kept, 2 Hz: nothing for a while, then several at once."""
    need("long")
    need_links()
    need("fastdds")
    matrix = {"rate": "2Hz", "reliability": "reliable", "depth": 300}
    more = {
        "options": {"fastdds": {"transport": "udp"}},
        "duration": "30s",
        "discovery_timeout": "60s",
        "drain": "10s",
    }
    for number in range(3):  # Fast DDS delivered nothing at all in two of seven trials
        folder = tmp_path / str(number)
        folder.mkdir()
        code, line = run(folder, study_of(folder, {"loss": "30%"}, "fastdds", matrix=matrix, **more))
        if code == 0:
            break
        assert all(reason.startswith("nothing-received") for reason in line["reasons"])
    assert code == 0, line["reasons"]
    _, text, _ = lagometer(folder, "show", str(folder / "out"), "--json")
    found = [each for each in json.loads(text)["findings"] if each["kind"] == "delivered-in-bursts"]
    assert len(found) == 1 and "came together with it" in found[0]["number"]


def changing(changes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"delay": "2ms", **more, "changes": changes}


def changes_of(line: dict[str, Any]) -> list[dict[str, Any]]:
    """What the link did from each change on."""
    (made,) = line["links"]
    assert made["back_end"] == "user-space" and all(each["as_asked"] for each in made["figures"])
    found: list[dict[str, Any]] = made["did"]["program"]["changes"]
    return found


def test_an_outage_loses_what_is_sent_in_it_and_nothing_else(tmp_path: Path) -> None:
    """300 ms, twice, at 200 Hz over UDP: the program says when each began and ended, and what it dropped."""
    need_links()
    link = changing([{"at": "500ms", "outage": "300ms", "every": "1s"}])
    study = study_of(tmp_path, link, "udp", matrix={"rate": "200Hz"}, duration="2s")
    code, line = run(tmp_path, study)
    assert code == 0, line["reasons"]
    changes = changes_of(line)
    assert [each["at_ns"] for each in changes] == [500 * MS, 800 * MS, 1500 * MS, 1800 * MS]
    assert [each["lost"] > 0 for each in changes] == [True, False, True, False]
    samples = pl.read_parquet(tmp_path / "out" / line["path"]).filter(pl.col("phase") == "measure")
    edge = samples.filter(pl.col("edge").cast(str) == "source→sink")
    begin_ns = edge["intended_ns"].min()
    sent = edge.with_columns(at=pl.col("publish_ns") - begin_ns, lost=pl.col("outcome").cast(str) == "lost")
    near, period = 20 * MS, 1000 * MS  # a process may be held up between its stamp and the link
    during = sent.filter((pl.col("at") % period).is_between(500 * MS + near, 800 * MS - near))
    apart = sent.filter(~(pl.col("at") % period).is_between(500 * MS - near, 800 * MS + near))
    assert during.height > 90 and during["lost"].all()
    assert apart.height > 200 and not apart["lost"].any()
    (recovered,) = line["outages"]
    assert recovered["edge"] == "source→sink" and len(recovered["recovered_ns"]) == 2
    assert all(2 * MS <= each < 100 * MS for each in recovered["recovered_ns"])
    _, text, _ = lagometer(tmp_path, "show", str(tmp_path / "out"))
    assert "at 500 ms an outage" in " ".join(text.split()) and "recovered after" in " ".join(text.split())


def test_a_link_that_does_not_change_fails_its_trial(tmp_path: Path) -> None:
    """A program that never hears when the measure phase begins."""
    need_links()
    deaf = tmp_path / "deaf"
    deaf.write_text(f'#!/bin/sh\nexec {link_path()} "$@" < /dev/null\n')
    deaf.chmod(0o755)
    study = study_of(tmp_path, changing([{"at": "500ms", "outage": "300ms"}]), "udp", duration="1s")
    code, line = run(tmp_path, study, environment={"LAGOMETER_LINK": str(deaf)})
    assert code == 3 and line["reasons"] == [
        "link-differs: the change at 500 ms was not carried out",
        "link-differs: the change at 800 ms was not carried out",
    ]


def test_a_link_carries_less_while_its_rate_is_lower(tmp_path: Path) -> None:
    """6.6 Mbit/s are sent; for a second 1 Mbit/s leaves, and a small queue drops the rest."""
    need_links()
    link = changing(
        [{"at": "500ms", "rate": "1Mbit"}, {"at": "1500ms", "rate": "20Mbit"}], rate="20Mbit", queue="30KB"
    )
    matrix = {"rate": "100Hz", "payload": "8KB"}
    code, line = run(tmp_path, study_of(tmp_path, link, "udp", matrix=matrix, duration="2s"))
    assert code == 0, line["reasons"]
    slow, fast = changes_of(line)
    assert 115_000 < slow["carried_bytes"] < 135_000
    assert fast["full"] < 20 < slow["full"] and fast["carried_bytes"] > 300_000


def test_a_recorded_capacity_lets_packets_leave_at_its_times(tmp_path: Path) -> None:
    """100 packets in the first half of each second, none in the second; 100 a second are sent."""
    need_links()
    trace = tmp_path / "halves.trace"
    trace.write_text("".join(f"{5 * place}\n" for place in range(1, 101)) + "1000\n")
    link = {"delay": "2ms", "capacity": trace.name}
    study = study_of(tmp_path, link, "udp", matrix={"rate": "100Hz", "payload": "1400B"}, duration="3s")
    code, line = run(tmp_path, study)
    assert code == 0, line["reasons"]
    (made,) = line["links"]
    assert made["traced"] and made["did"]["program"]["traced"] and made["back_end"] == "user-space"
    assert figures(made)["rate_bps"] == pytest.approx(101 * 1504 * 8, rel=0.05)
    saved = json.loads((tmp_path / "out" / "manifest.json").read_text())["study"]["links"]["mine"]["capacity"]
    assert saved["sha256"] == hashlib.sha256(trace.read_bytes()).hexdigest() and saved["packets"] == 101
    samples = pl.read_parquet(tmp_path / "out" / line["path"]).filter(pl.col("phase") == "measure")
    edge = samples.filter((pl.col("edge").cast(str) == "source→sink") & pl.col("taken_ns").is_not_null())
    second, near = 1000 * MS, 20 * MS
    sent_at = (edge["publish_ns"] - edge["intended_ns"].min()) % second
    came_at = (edge["taken_ns"] - edge["intended_ns"].min()) % second
    assert edge.filter(sent_at > 500 * MS).height > 100  # they waited for the next second
    silent = came_at.is_between(500 * MS + near, second - near)
    assert edge.filter(silent).height == 0
