# SPDX-License-Identifier: Apache-2.0
"""`lagometer probe` on programs that know nothing of it: ddsperf, and one of Fast DDS."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import lagometer, running, wait_until
from needs import ROOT, need

from lagometer.run.program.running import descendants
from lagometer.store.reader import open_campaign
from tests.fixtures.ros2_stub import VERSIONS, Ros2Stub

LOOPBACK = "ip link set lo up multicast on; ip route add 224.0.0.0/4 dev lo; "
PAIR_QOS = {
    "reliability": "reliable",
    "history": "keep_all",
    "depth": 1,
    "durability": "transient_local",
}
INTERFACE = '<General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General>'


def probed(folder: Path, script: str, *options: str, code: int = 0) -> dict[str, Any]:
    """What `probe` says of a script that runs in a network of its own, once."""
    need("netns")
    command = ("unshare", "--net", "sh", "-c", LOOPBACK + script)
    out = folder / "out"
    found, output, errors = lagometer(folder, "probe", "--out", str(out), "--json", *options, "--", *command)
    assert found == code, errors
    told = json.loads(output)
    (run,) = told["trials"]
    return {**run, "warnings": told["warnings"]}


def layers_add_up(folder: Path) -> list[str]:
    """The layers of each message make up its latency, in every cell; returns the cells."""
    campaign = open_campaign(folder / "out")
    cells = campaign.cells["cell"].unique(maintain_order=True).to_list()
    for cell in cells:
        samples = campaign.samples(cell, 0).filter(pl.col("outcome") == "delivered")
        layers = pl.read_parquet(campaign.layers_path(cell, 0))
        spent = (pl.col("end_ns") - pl.col("begin_ns")).sum().alias("spent")
        of_messages = layers.group_by("edge", "sequence").agg(spent)
        both = samples.join(of_messages, on=("edge", "sequence"), how="inner")
        assert both.height * 2 == samples.height  # which has each message again, end to end
        assert (both["spent"] == both["taken_ns"] - both["publish_ns"]).all()
    return cells


def test_ddsperf_is_followed_there_and_back(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("ddsperf")
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    told = probed(tmp_path, "ddsperf -D 3 pong & ddsperf -D 2 ping 100Hz size 1k; wait", "--name", "both")
    edges = {each["topic"]: each for each in told["edges"]}
    assert set(edges) == {"DDSPerfRPingKS", "DDSPerfRPongKS"}
    for each in edges.values():
        assert each["n"] > 100 and each["lost"] == 0 and each["type"] == "KeyedSeq"
        assert each["payload_bytes"] == 1024 + 4
        names = {layer["name"] for layer in each["layers"]}
        assert {"send_path", "transport", "receiving_thread", "take"} <= names
    assert told["ambiguous"] == 0
    found = {end["topic"]: end["qos"] for each in told["programs"] for end in each["writers"]}
    assert found["DDSPerfRPingKS"]["reliability"] == "reliable"
    assert found["DDSPerfRPingKS"]["durability"] == "volatile"
    cells = layers_add_up(tmp_path)
    assert cells == [
        "probed/both/ddsperf-2→ddsperf/DDSPerfRPingKS",
        "probed/both/ddsperf→ddsperf-2/DDSPerfRPongKS",
    ]
    code, shown, _ = lagometer(tmp_path, "show", str(tmp_path / "out"))
    assert code == 0 and "DDSPerfRPingKS" in shown and "transport" in shown
    assert lagometer(tmp_path, "report", str(tmp_path / "out"))[0] == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    threads = {name for each in manifest["probed"][0]["programs"] for name in each["threads"].values()}
    assert {"ddsperf", "recvUC"} <= threads


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of Fast DDS."""
    need("c++")
    need("fastdds")
    made = tmp_path_factory.mktemp("pair") / "pair"
    source = ROOT / "tests" / "programs" / "fastdds_pair.cpp"
    subprocess.run(["c++", "-std=c++17", "-o", made, source, "-lfastrtps", "-lfastcdr"], check=True)
    return made


def test_a_program_of_a_later_fast_dds_has_topics_and_qos(build: Path, tmp_path: Path) -> None:
    """Such as 2.14: the functions that create writers and readers have one argument more."""
    need("c++")
    need("fastdds")
    programs = ROOT / "tests" / "programs"
    library, pair = tmp_path / "libpooled.so", tmp_path / "pair"
    shared = ("c++", "-std=c++17", "-shared", "-fPIC", "-o", library, programs / "fastdds_pooled.cpp", "-ldl")
    subprocess.run(shared, check=True)
    linked = (library, f"-Wl,-rpath,{tmp_path}", "-lfastrtps", "-lfastcdr")
    source = programs / "fastdds_pair.cpp"
    subprocess.run(["c++", "-std=c++17", "-DPOOLED", "-o", pair, source, *linked], check=True)
    told = probed(tmp_path, f"{pair} subscribe 50 & {pair} publish 50 5 1000; wait", "--name", "pair")
    (edge,) = told["edges"]
    assert (edge["topic"], edge["type"], edge["n"], edge["lost"]) == ("rt/numbers", "Bytes", 50, 0)
    (writer, reader) = [end for each in told["programs"] for end in each["writers"] + each["readers"]]
    assert writer["qos"] == reader["qos"] == PAIR_QOS


@pytest.mark.by_turn
@pytest.mark.parametrize(("how", "takes"), [("", ""), ("asynchronous", "collections"), ("", "instances")])
def test_a_program_of_fast_dds_is_followed_through_shared_memory(
    build: Path, tmp_path: Path, pair: Path, how: str, takes: str
) -> None:
    script = f"{pair} subscribe 50 {takes} & {pair} publish 50 5 1000 {how}; wait"
    told = probed(tmp_path, script, "--name", "pair")
    (edge,) = told["edges"]
    assert (edge["edge"], edge["topic"], edge["type"]) == ("pair-2→pair /numbers", "rt/numbers", "Bytes")
    assert (edge["n"], edge["lost"], edge["duplicated"]) == (50, 0, 0)
    (writer, reader) = [end for each in told["programs"] for end in each["writers"] + each["readers"]]
    assert writer["qos"] == reader["qos"] == PAIR_QOS
    assert (told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0)
    assert layers_add_up(tmp_path) == ["probed/pair/pair-2→pair/numbers"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of ROS 1."""
    need("c++")
    need("ros1")
    made = tmp_path_factory.mktemp("nodes") / "nodes"
    source = ROOT / "tests" / "programs" / "roscpp_pair.cpp"
    libraries = ("roscpp", "roscpp_serialization", "rosconsole", "rostime", "boost_thread", "boost_system")
    linked = [f"-l{name}" for name in libraries]
    subprocess.run(["c++", "-std=c++17", "-o", made, source, *linked], check=True)
    return made


def with_master(folder: Path, script: str) -> str:
    """A script whose nodes have a master."""
    master = "rosmaster --core -p 11311 > /dev/null 2>&1 & master=$!"
    settings = f"ROS_MASTER_URI=http://127.0.0.1:11311 ROS_IP=127.0.0.1 ROS_LOG_DIR={folder}"
    return f"export {settings}; {master}; {script}; kill $master; wait; true"


@pytest.mark.parametrize("size_bytes", [100, 1_000_000])
def test_nodes_of_ros1_are_followed_from_their_publishing_to_their_callback(
    build: Path, tmp_path: Path, nodes: Path, size_bytes: int
) -> None:
    """All their messages are alike."""
    script = (
        f"{nodes} subscribe 50 __name:=listener & listener=$!; "
        f"{nodes} publish 50 {size_bytes} latch __name:=talker; wait $listener"
    )
    told = probed(tmp_path, with_master(tmp_path, script), "--name", "nodes")
    edges = {each["edge"]: each for each in told["edges"]}
    assert set(edges) == {"talker→listener /numbers", "talker→listener /ticks"}
    for each in edges.values():
        assert (each["n"], each["lost"], each["from"], each["to"]) == (50, 0, "publish", "callback")
        names = {layer["name"] for layer in each["layers"]}
        assert {"send_hand_over", "transport", "receiving_thread", "wake", "take"} <= names
        assert each["unattributed_p50_share"] < 0.1
    strings, ticks = edges["talker→listener /numbers"], edges["talker→listener /ticks"]
    assert (strings["type"], strings["payload_bytes"]) == ("std_msgs/String", size_bytes + 4)
    assert (ticks["type"], ticks["payload_bytes"]) == ("std_msgs/Empty", 0)
    programs = {each["name"]: each for each in told["programs"]}
    qos = {end["topic"]: end["qos"] for end in programs["talker"]["writers"]}
    common = {"reliability": "reliable", "history": "keep_last"}
    assert qos["/numbers"] == {**common, "depth": 50, "durability": "transient_local"}
    assert qos["/ticks"]["history"] == "keep_all"
    qos = {end["topic"]: end["qos"] for end in programs["listener"]["readers"]}
    assert qos["/numbers"] == {**common, "depth": 100, "durability": "volatile"}
    assert (told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0)
    layers_add_up(tmp_path)


def test_messages_of_ros1_that_find_no_room_in_a_queue_are_lost(
    build: Path, tmp_path: Path, nodes: Path
) -> None:
    script = (
        f"{nodes} subscribe 10 30 __name:=listener & listener=$!; "
        f"{nodes} publish 100 100 __name:=talker; wait $listener"
    )
    told = probed(tmp_path, with_master(tmp_path, script), "--name", "nodes")
    (edge,) = [each for each in told["edges"] if each["topic"] == "/numbers"]
    assert edge["n"] >= 10 and edge["lost"] > edge["n"]
    assert (told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0)


def test_a_node_of_ros1_that_publishes_to_itself_is_followed(
    build: Path, tmp_path: Path, nodes: Path
) -> None:
    told = probed(tmp_path, with_master(tmp_path, f"{nodes} both 50 __name:=node"), "--name", "nodes")
    edges = {each["topic"]: each for each in told["edges"]}
    assert edges["/numbers"]["edge"] == "node→node /numbers"
    assert 45 <= edges["/numbers"]["n"] <= 50 and edges["/numbers"]["lost"] == 0
    assert told["taken_from_elsewhere"] == 0
    layers_add_up(tmp_path)


@pytest.mark.by_turn
@pytest.mark.parametrize("size_bytes", [10, 3_000, 100_000])
def test_a_program_of_zenoh_is_followed_by_the_content_of_its_messages(
    build: Path, tmp_path: Path, size_bytes: int
) -> None:
    """With a stand-in for zenoh-c, which has the functions that the probe uses."""
    need("cc")
    sources = ROOT / "tests" / "programs"
    library, pair = tmp_path / "libzenohc.so", tmp_path / "pair"
    shared = ["-shared", "-fPIC", "-pthread"]
    subprocess.run(["cc", *shared, "-o", library, sources / "zenohc_stub.c"], check=True)
    linked = [f"-L{tmp_path}", "-lzenohc", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", "-o", pair, sources / "zenoh_pair.c", *linked], check=True)
    told = probed(tmp_path, f"{pair} 50 {size_bytes}", "--name", "pair")
    assert told["exit_code"] == 0
    edges = {each["topic"]: each for each in told["edges"]}
    assert set(edges) == {"robot/numbered", "robot/alike"}
    for each in edges.values():
        assert (each["n"], each["lost"], each["from"], each["to"]) == (50, 0, "publish", "callback")
        assert each["payload_bytes"] == size_bytes
    assert (told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0)
    (program,) = [each for each in told["programs"] if each["name"] == "pair"]
    written = {end["topic"]: end["messages"] for end in program["writers"]}
    assert written == {"robot/numbered": 50, "robot/alike": 50, "robot/unheard": 50}
    layers_add_up(tmp_path)


def test_a_message_that_is_handed_on_serialised_is_known_by_its_time(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("c++")
    need("cyclonedds")
    relay = tmp_path / "relay"
    source = ROOT / "tests" / "programs" / "cyclonedds_relay.c"
    subprocess.run(["cc", "-o", relay, source, "-lddsc"], check=True)
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    told = probed(tmp_path, f"{relay} 30", "--name", "relay")
    edges = {each["topic"]: each for each in told["edges"]}
    assert {topic: (each["n"], each["lost"]) for topic, each in edges.items()} == {
        "rt/numbers": (30, 0),
        "rt/copies": (30, 0),
    }
    assert (told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0)
    assert "relay" in [each["name"] for each in told["programs"]]
    layers_add_up(tmp_path)


def test_an_echo_that_keeps_the_time_is_not_what_it_answers(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have one topic and one time; the reader is told who wrote. All were ambiguous and left out."""
    need("c++")
    need("cyclonedds")
    echo = tmp_path / "echo"
    source = ROOT / "tests" / "programs" / "cyclonedds_echo.c"
    subprocess.run(["cc", "-o", echo, source, "-lddsc"], check=True)
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    told = probed(tmp_path, f"{echo} answer 30 & {echo} ask 30; wait", "--name", "echo")
    assert (told["exit_code"], told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0, 0)
    assert [(each["n"], each["lost"]) for each in told["edges"]] == [(30, 0), (30, 0)]
    assert len({each["edge"] for each in told["edges"]}) == 2
    layers_add_up(tmp_path)


def test_every_function_of_cyclone_dds_that_takes_is_seen(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another one took would count as lost."""
    need("c++")
    need("cyclonedds")
    takes = tmp_path / "takes"
    source = ROOT / "tests" / "programs" / "cyclonedds_takes.c"
    subprocess.run(["cc", "-o", takes, source, "-lddsc"], check=True)
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    told = probed(tmp_path, f"{takes} 36", "--name", "takes")
    (edge,) = told["edges"]
    assert (edge["n"], edge["lost"], edge["duplicated"]) == (36, 0, 0)
    assert told["exit_code"] == 0


def test_what_the_middleware_refused_was_not_sent(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted as sent, and so as lost."""
    need("cc")
    need("cyclonedds")
    refused = tmp_path / "refused"
    source = ROOT / "tests" / "programs" / "cyclonedds_refused.c"
    subprocess.run(["cc", "-o", refused, source, "-lddsc"], check=True)
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    told = probed(tmp_path, f"{refused} 20", "--name", "refused")
    assert (told["exit_code"], told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0, 0)
    (edge,) = told["edges"]
    assert (edge["n"], edge["lost"]) == (20, 0)
    (program,) = [each for each in told["programs"] if each["name"] == "refused"]
    assert [end["messages"] for end in program["writers"]] == [20]


@pytest.mark.by_turn
@pytest.mark.parametrize("distribution", ["humble", "jazzy", "rolling"])
def test_nodes_of_ros2_are_seen_from_their_publishing_to_their_callback(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distribution: str
) -> None:
    need("c++")
    need("cyclonedds")
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    stub = Ros2Stub.build(tmp_path, distribution, version=VERSIONS[distribution], over_dds=True)
    told = probed(tmp_path, f"{stub.program} 40", "--name", "nodes")
    (edge,) = told["edges"]
    assert (edge["n"], edge["lost"], edge["from"], edge["to"]) == (40, 0, "rclcpp_publish", "callback_start")
    names = {layer["name"] for layer in edge["layers"]}
    # One thread writes and takes, so what it does between the two is unattributed.
    assert {
        *("rclcpp_publish", "rcl_publish", "rmw_publish"),
        *("begin_take", "take", "rmw_take", "rcl_take", "rclcpp_take", "callback"),
    } <= names
    assert "benchmark" not in names
    shares = {each["name"]: each["share"] for each in edge["categories"]}
    assert {"common", "rmw", "dds"} <= set(shares) and abs(sum(shares.values()) - 1) < 1e-9
    (program,) = [each for each in told["programs"] if each["name"] == "ros2_sequence"]
    assert program["ros2"]["distribution"] == distribution and program["ros2"]["nodes"] == ["/numbers"]
    assert told["warnings"] == []
    layers_add_up(tmp_path)


@pytest.mark.by_turn
@pytest.mark.parametrize("distribution", ["humble", "jazzy", "rolling"])
def test_nodes_of_ros2_over_other_middleware_are_followed_by_their_own_times(
    build: Path, tmp_path: Path, distribution: str
) -> None:
    """As over Zenoh, whose calls the probe does not know. Humble's rmw_publish tells no time."""
    need("cc")
    stub = Ros2Stub.build(tmp_path, distribution, version=VERSIONS[distribution])
    followed = distribution != "humble"
    told = probed(tmp_path, f"{stub.program} 40", "--name", "nodes", code=0 if followed else 3)
    if not followed:
        assert told["edges"] == []
        return
    (edge,) = told["edges"]
    assert (edge["topic"], edge["n"], edge["lost"]) == ("/numbers", 40, 0)
    assert (edge["from"], edge["to"]) == ("rclcpp_publish", "callback_start")
    names = {layer["name"] for layer in edge["layers"]}
    assert {"rclcpp_publish", "rcl_publish", "whole_take", "rcl_take", "rclcpp_take", "callback"} <= names
    assert (told["ambiguous"], told["taken_from_elsewhere"]) == (0, 0)
    layers_add_up(tmp_path)


def test_ros2_of_another_version_is_seen_without_its_layers(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("c++")
    need("cyclonedds")
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    stub = Ros2Stub.build(tmp_path, "jazzy", version="4.1.2", over_dds=True)
    told = probed(tmp_path, f"{stub.program} 20", "--name", "nodes")
    (edge,) = told["edges"]
    assert (edge["n"], edge["from"], edge["to"]) == (20, "write", "take")
    assert "rmw_publish" not in {layer["name"] for layer in edge["layers"]}
    assert any("are not stamped: tracetools 4.1.2 is that of humble" in each for each in told["warnings"])


def test_what_finds_no_room_is_said(build: Path, tmp_path: Path, pair: Path) -> None:
    script = f"{pair} subscribe 4000 & {pair} publish 4000 0 16; wait"
    told = probed(tmp_path, script, "--room", "1MiB")
    assert any("found no room" in each for each in told["warnings"])
    assert sum(each["lost_calls"] for each in told["programs"]) > 0


def test_a_command_without_messages_ends_with_3(build: Path, tmp_path: Path) -> None:
    need("netns")
    command = ("probe", "--out", str(tmp_path / "out"), "--json", "--trials", "2", "--", "sh", "-c", "exit 4")
    code, output, errors = lagometer(tmp_path, *command)
    assert code == 3, errors
    assert [(each["exit_code"], each["edges"]) for each in json.loads(output)["trials"]] == [(4, []), (4, [])]


def test_ctrl_c_ends_the_command_and_what_it_left_and_keeps_what_was_seen(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("netns")
    need("ddsperf")
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    seen = tmp_path / "seen"
    script = f"{LOOPBACK}ddsperf pong & ddsperf ping 100Hz | tee {seen}"
    command = ("probe", "--out", str(tmp_path / "out"), "--", "unshare", "--net", "sh", "-c", script)
    with running(tmp_path, *command) as run:
        wait_until(lambda: seen.exists() and "mean" in seen.read_text())
        started = descendants(run.process.pid)
        run.process.send_signal(signal.SIGINT)
        code, output, errors = run.end()
    assert code == 0, errors
    assert "DDSPerfRPongKS" in output
    assert started and not any(Path(f"/proc/{pid}").exists() for pid in started)
    assert open_campaign(tmp_path / "out").cells.height == 4
    assert not list(Path("/dev/shm").glob(f"lagometer-probe-{run.process.pid}*"))


def test_what_killed_programs_leave_in_shared_memory_is_removed(
    build: Path, tmp_path: Path, pair: Path
) -> None:
    """Fast DDS would find its segments again, and look at each of them at every start."""
    mapped = tmp_path / "mapped"
    script = (
        f"{pair} subscribe 100000 & one=$!; {pair} publish 100000 5 1000 & two=$!; sleep 2; "
        f"grep -oh '/dev/shm/fastrtps_[0-9a-f]*$' /proc/$one/maps /proc/$two/maps > {mapped}; "
        "kill -9 $one $two; wait; true"
    )
    told = probed(tmp_path, script, "--name", "pair")
    assert told["edges"][0]["n"] > 0 and told["warnings"] == []
    names = set(mapped.read_text().split())
    assert len(names) >= 2 and not [name for name in names if Path(name).exists()]


def test_a_refused_command_leaves_no_folder(tmp_path: Path) -> None:
    code, output, errors = lagometer(
        tmp_path, "probe", "--out", str(tmp_path / "out"), "--", "no-such-program"
    )
    assert (code, output) == (2, "")
    assert "no executable program 'no-such-program'" in errors
    assert not (tmp_path / "out").exists()
