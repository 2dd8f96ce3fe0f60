# SPDX-License-Identifier: Apache-2.0
"""Bridges that are programs, beside real workers: what passes, what is declared, what they take and leave."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, lost_of, programs, run_campaign, write_study
from needs import ROOT, need

from lagometer.store.reader import Campaign, open_campaign
from lagometer.study.bridges import VARIABLE
from lagometer.summary.summarise import summarise

ADAPTERS = ("cyclonedds", "fastdds")
OTHERS = ("cyclonedds+fastdds", "cyclonedds11", "cyclonedds-py", "rustdds")
# What reaches a bridge. Its datagrams of 64 KB overrun the buffers that sockets have by default: then 4 MB
# take more than a second, or get lost.
OPTIONS = {"fastdds": {"transport": "udp", "socket_buffer_bytes": 4_000_000}}
# A bridge that serves, and carries nothing; or ends at once.
FAKE = """
import pathlib, signal, sys
print("fake in domain", sys.argv[2], flush=True)
if sys.argv[1] == "ends-early":
    sys.exit("no reason to live")
print("fake serves", flush=True)
signal.pause()
"""

TOY = [str(ROOT / "tests" / "programs" / "toy_bridge.py"), "{first}", "{second}"]

# The same round trip between two middlewares.
SIDES = """
topics:
  out:  {adapter: zenoh-py+cyclonedds}
  back: {adapter: cyclonedds+zenoh-py}
nodes:
  ping:
    rules:
      - {trigger: timer, publishes: [out]}
      - {trigger: any, subscribes: [back]}
  pong: {trigger: any, subscribes: [out], publishes: [back]}
chains:
  round-trip: [out, back]
"""


def carried(build: Path, folder: Path, bridge: str | list[str] = "zenoh-dds", **matrix: Any) -> Path:
    """The campaign of a round trip across the bridge, valid at last."""
    need("lagometer-zenoh-bridge")
    each = {"workload": "across-domains", "reliability": "reliable", "bridge": bridge, **matrix}
    return run_campaign(build, folder, each, duration="600ms", drain="3s", options=OPTIONS)


@pytest.mark.parametrize("adapter", [*ADAPTERS, *OTHERS])
def test_messages_pass_once(build: Path, tmp_path: Path, adapter: str) -> None:
    """None comes back, so none is there twice."""
    for name in adapter.split("+"):
        need(name)
    assert set(lost_of(carried(build, tmp_path, adapter=adapter)).values()) == {0}


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("payload", "rate"), [("4MB", "5Hz"), ("64B", "1kHz")])
def test_large_and_frequent_messages_pass(
    build: Path, tmp_path: Path, adapter: str, payload: str, rate: str
) -> None:
    need(adapter)
    out = carried(build, tmp_path, adapter=adapter, payload=payload, rate=rate, depth=1000)
    assert set(lost_of(out).values()) == {0}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_best_effort_messages_pass(build: Path, tmp_path: Path, adapter: str) -> None:
    need(adapter)
    out = carried(build, tmp_path, adapter=adapter, reliability="best_effort")
    assert lost_of(out)["duplicated"] == 0


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("more", [{"instances": 8}, {"durability": "transient_local"}], ids=["keys", "kept"])
def test_keyed_and_durable_messages_pass(
    build: Path, tmp_path: Path, adapter: str, more: dict[str, Any]
) -> None:
    need(adapter)
    out = carried(build, tmp_path, adapter=adapter, depth=100, **more)
    assert set(lost_of(out).values()) == {0}


@pytest.mark.parametrize("bridge", ["zenoh-dds", "zenoh-ros2dds"])
def test_messages_of_ros_2_pass(build: Path, tmp_path: Path, bridge: str) -> None:
    need("ros2_rust")
    out = carried(build, tmp_path, bridge, adapter="ros2_rust", type="Image", payload="64KB")
    assert set(lost_of(out).values()) == {0}


def declare(folder: Path, **keys: Any) -> Path:
    """The folder with a bridge of the test's own, one process in both domains."""
    declared = folder / "bridges"
    declared.mkdir()
    bridge = {
        "name": "own",
        "title": "a bridge of the test's own",
        "program": sys.executable,
        "package": "none",
        "processes": "one",
        "ready": {"output": "serves$"},
        "adapters": {"cyclonedds": {}},
        "otherwise": "not tried",
        **keys,
    }
    (declared / "own.json").write_text(json.dumps(bridge))
    return declared


def added_by(campaign: Campaign, bridge: str) -> float:
    """What a bridge adds to the median round trip, from the rows of the cells with it and without one."""
    whole = campaign.cells.filter(pl.col("valid") & (pl.col("edge") == "end-to-end"))
    p50 = dict(whole.group_by("bridge").agg(pl.col("latency_p50_ns").median()).iter_rows())
    return float(p50[bridge] - p50["none"])


def test_every_view_has_what_a_bridge_of_ones_own_takes(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("cyclonedds")
    need("cyclonedds-py")  # which the toy is made of
    monkeypatch.setenv(VARIABLE, str(declare(tmp_path, arguments=TOY)))
    each = {"adapter": "cyclonedds", "workload": "across-domains", "reliability": "reliable"}
    out = run_campaign(build, tmp_path, {**each, "bridge": ["none", "own"]}, duration="600ms", drain="3s")
    assert set(lost_of(out).values()) == {0}
    campaign = open_campaign(out)
    (row,) = summarise(campaign).bridges
    assert (row.node, row.process) == ("own", "own")
    rows = campaign.cells.filter(pl.col("valid") & (pl.col("bridge") == "own"))
    edges = rows.filter(pl.col("edge").is_in(["ping→pong", "pong→ping"]))
    assert edges.height == 2 and row.passed_on == int(edges["n"].sum()) > 0
    assert (row.stay_p50_ns, row.stay_p99_ns, row.stay_share) == (None, None, None)
    assert row.added_p50_ns == added_by(campaign, "own")
    assert row.cpu_per_message_ns is not None and row.cpu_per_message_ns > 0
    assert row.threads is not None and row.threads > 1
    assert row.rss_bytes is not None and row.uss_bytes is not None
    assert 0 < row.uss_bytes < row.rss_bytes
    assert edges["transport"].null_count() == 2  # nothing of ours can tell
    (cell,) = (each for each in campaign.manifest["cells"] if "bridge" in each)
    assert cell["bridge"]["edges"] == ["ping→pong", "pong→ping"]
    (log,) = (out / "samples" / cell["id"]).glob("*.log")
    assert "--- daemon own ---\ntoy serves" in log.read_text()
    code, text, errors = lagometer(tmp_path, "show", str(out), "--json")
    assert code == 0, errors
    assert json.loads(text)["bridges"] == [row.model_dump()]
    code, text, errors = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "stay is not available" in " ".join(text.split()), errors


def test_a_bridge_joins_two_middlewares(build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which neither understands the other."""
    need("cyclonedds")
    need("cyclonedds-py")  # which the toy is made of, as of the next
    need("zenoh-py")
    own = {
        "arguments": [str(ROOT / "tests" / "programs" / "toy_sides.py"), "{runtime}", "{second}"],
        "sides": [["zenoh-py"], ["cyclonedds"]],
        "adapters": {"zenoh-py": {}, "cyclonedds": {}},
    }
    monkeypatch.setenv(VARIABLE, str(declare(tmp_path, **own)))
    workload = tmp_path / "sides.yaml"
    workload.write_text(SIDES)
    each = {"adapter": "cyclonedds", "workload": str(workload), "bridge": "own"}
    out = run_campaign(
        build, tmp_path, {**each, "reliability": "reliable", "domain": 7}, duration="600ms", drain="3s"
    )
    assert set(lost_of(out).values()) == {0}
    campaign = open_campaign(out)
    (row,) = summarise(campaign).bridges
    edges = campaign.cells.filter(pl.col("valid") & pl.col("edge").is_in(["ping→pong", "pong→ping"]))
    assert (row.node, row.passed_on) == ("own", int(edges["n"].sum())) and row.passed_on > 0
    assert row.added_p50_ns is None, "there is no such way without a bridge"
    assert edges["transport"].null_count() == 2
    (cell,) = campaign.manifest["cells"]
    assert cell["bridge"]["edges"] == ["ping→pong", "pong→ping"]
    assert "bridges" not in cell, "no node of ours forwards"


def test_each_domain_has_a_process_over_zenoh(build: Path, tmp_path: Path) -> None:
    need("cyclonedds")
    out = carried(build, tmp_path, ["none", "zenoh-dds"], adapter="cyclonedds")
    campaign = open_campaign(out)
    low, high = summarise(campaign).bridges
    assert (low.process, high.process) == ("zenoh-dds-5", "zenoh-dds-10")
    rows = campaign.cells.filter(pl.col("valid") & (pl.col("bridge") == "zenoh-dds"))
    passed = int(rows.filter(pl.col("edge").is_in(["ping→pong", "pong→ping"]))["n"].sum())
    for row in (low, high):
        assert row.passed_on == passed > 0
        assert (row.stay_p50_ns, row.stay_p99_ns, row.stay_share) == (None, None, None)
        assert row.added_p50_ns == added_by(campaign, "zenoh-dds")
        assert row.cpu_per_message_ns is not None and row.cpu_per_message_ns > 0
        assert row.threads is not None and row.threads > 1
        assert row.rss_bytes is not None and row.uss_bytes is not None
        assert 0 < row.uss_bytes < row.rss_bytes
    (cell,) = (each for each in campaign.manifest["cells"] if "bridge" in each)
    assert {traffic["domain_across"] for traffic in cell["topics"].values()} == {5, 10}
    daemons = {each["adapter"]: each for each in campaign.manifest["settings"][cell["id"]]}
    configuration = daemons["zenoh-dds-10"]["paste"][0]
    assert configuration["file"] == "zenoh-dds-10.json5" and "domain: 10" in configuration["text"]
    trial = next(line["trial"] for line in campaign.journal if line["valid"] and line["cell"] == cell["id"])
    log = (out / "samples" / cell["id"] / f"{trial}.log").read_text()
    assert "--- daemon zenoh-dds-5 ---" in log
    assert "Route DDS->Zenoh" in log and "lagometer/out" in log


def between_hosts(build: Path, folder: Path, bridge: str) -> Path:
    """The campaign of a round trip across the bridge, from one emulated host to another."""
    need("cyclonedds")
    need("ip")
    need("root")
    runs = {"robot": "ping", "base": "pong"}
    hosts = {name: {"launcher": "netns", "runs": [node]} for name, node in runs.items()}
    each = {"adapter": "cyclonedds", "workload": "across-domains", "bridge": bridge}
    each |= {"reliability": "reliable", "network": "host", "hosts": "robot+base"}
    return run_campaign(build, folder, each, duration="600ms", drain="3s", hosts=hosts)


def test_between_hosts_each_domain_has_its_process(build: Path, tmp_path: Path) -> None:
    need("lagometer-zenoh-bridge")
    assert set(lost_of(between_hosts(build, tmp_path, "zenoh-dds")).values()) == {0}


def test_between_hosts_one_process_is_on_the_first(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("cyclonedds-py")  # which the toy is made of
    monkeypatch.setenv(VARIABLE, str(declare(tmp_path, arguments=TOY)))
    out = between_hosts(build, tmp_path, "own")
    assert set(lost_of(out).values()) == {0}
    (row,) = summarise(open_campaign(out)).bridges
    assert row.process == "own" and row.passed_on > 0
    (resources,) = (out / "resources").rglob("*.parquet")
    used = pl.read_parquet(resources).filter(pl.col("process").is_in(["own", "pong"]))
    assert set(used.select("process", "host").iter_rows()) == {("own", "robot"), ("pong", "base")}


def faked(build: Path, folder: Path, does: str) -> tuple[dict[str, Any], Path]:
    """The journal's line of a campaign with a bridge that carries nothing, and its folder."""
    need("netns")
    need("cyclonedds")
    script = folder / "fake.py"
    script.write_text(FAKE)
    declared = declare(folder, arguments=[str(script), does, "{first}"])
    matrix = {"adapter": "cyclonedds", "workload": "across-domains", "bridge": "own"}
    study = write_study(folder, matrix=matrix, discovery_timeout="1s", machine_floor="off")
    out = folder / "out"
    environment = programs(build) | {VARIABLE: str(declared)}
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    code, output, errors = lagometer(folder, *arguments, environment=environment)
    assert code == 3, (output, errors)
    (entry,) = journal(out)
    return entry, out


def test_a_bridge_that_carries_nothing_fails_the_trial_and_its_log_is_kept(
    build: Path, tmp_path: Path
) -> None:
    """So the domains are apart, and nothing else joins them."""
    entry, out = faked(build, tmp_path, "serves")
    assert any(reason.startswith("endpoints-missing") for reason in entry["reasons"]), entry["reasons"]
    (log,) = out.rglob("samples/**/*.log")
    assert "--- daemon own ---\nfake in domain 5\nfake serves" in log.read_text()


def test_a_bridge_that_ends_fails_the_trial_with_its_last_words(build: Path, tmp_path: Path) -> None:
    entry, _ = faked(build, tmp_path, "ends-early")
    (reason,) = entry["reasons"]
    assert reason.startswith("daemon-died: own ") and reason.endswith("no reason to live"), reason
