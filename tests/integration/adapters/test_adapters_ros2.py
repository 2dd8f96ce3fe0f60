# SPDX-License-Identifier: Apache-2.0
"""ROS 2 through rclcpp: every executor, dispatch and type over each rmw that is installed, what is mapped,
what is refused. Needs an installation that is sourced."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from campaign_support import lagometer, run_campaign, run_cells
from needs import DDS, adapter_library, need, require
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, pipeline, plan, reader, timer, writer
from worker_support import run_private

from lagometer.store.records import KIND_RECEIVED

DIRECTORY = "/dev/shm/lagometer"
EXECUTORS = ["single_threaded", "static_single_threaded", "multi_threaded", "events"]
TYPES = ["bytes", "string", "Image", "Imu", "PointCloud2"]
FIXED_BYTES = 65536


def installed_rmws() -> list[str]:
    """The rmw implementations in the ROS 2 that is sourced, without Connext, which needs a licence."""
    found: set[str] = set()
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        folder = Path(prefix) / "share/ament_index/resource_index/rmw_typesupport"
        found |= {path.name for path in folder.glob("rmw_*_cpp")}
    return sorted(found - {"rmw_implementation", "rmw_connextdds", "rmw_fastrtps_dynamic_cpp"})


RMWS = installed_rmws() or ["default"]


def carried(build: Path, folder: Path, options: Mapping, **matrix: object) -> Mapping:
    """The rows of cells that ran through the adapter, all of them valid."""
    need("ros2")
    asked = {"adapter": ["ros2"], "workload": ["pipeline-3"], "payload": ["4KB"], "rate": ["100Hz"], **matrix}
    rows = run_cells(build, folder, asked, options={"ros2": options})
    assert (rows["n"] > 0).all()
    assert (rows["corrupted"] == 0).all()
    return rows


def found_in(value: object, key: str) -> list[Mapping]:
    """The objects under this key, wherever they are."""
    if isinstance(value, dict):
        own = [value[key]] if isinstance(value.get(key), dict) else []
        return own + [each for part in value.values() for each in found_in(part, key)]
    if isinstance(value, list):
        return [each for part in value for each in found_in(part, key)]
    return []


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("rmw", RMWS)
def test_each_executor_calls_back(build: Path, tmp_path: Path, rmw: str, executor: str) -> None:
    options = {"rmw": rmw, "executor": executor}
    rows = carried(
        build,
        tmp_path,
        options,
        dispatch=["listener"],
        reliability=["reliable"],
        placement=["process-per-node", "single-process"],
    )
    assert (rows["n"] == rows["sent"]).all(), rows.select("cell", "edge", "n", "sent").rows()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("timers", ["executor", "node"])
def test_the_executor_keeps_the_time_unless_told_otherwise(build: Path, executor: str, timers: str) -> None:
    need("netns")
    need("ros2")
    nodes = pipeline("listener", period_ns=5 * MILLISECOND_NS, payload_bytes=64)
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes)
    given["adapters"][0]["options"] = {"executor": executor, "timers": timers}
    (said,) = run_private(build, [given])
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    names = [each["name"] for each in said.event("done")["threads"]]
    assert any(name.startswith("node:") for name in names) == (timers == "node"), names
    for each in said.event("done")["writers"]:
        assert each["sent"] >= each.get("due", 1), each


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_busy_executor_leaves_nothing_out(build: Path, executor: str) -> None:
    """The nodes share one executor, which the last one's work holds for most of the time."""
    need("netns")
    need("ros2")
    nodes = pipeline("listener", period_ns=20 * MILLISECOND_NS, payload_bytes=64)
    nodes[2]["rules"][0]["work_ns"] = 12 * MILLISECOND_NS
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes) | {"threads": "per-process"}
    given["adapters"][0]["options"] = {"executor": executor}
    (said,) = run_private(build, [given])
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    (source,) = [each for each in said.event("done")["writers"] if each["node"] == 0]
    assert source["sent"] >= source["due"] > 0
    assert source["skipped"] == 0


@pytest.mark.parametrize("rmw", RMWS)
def test_a_waitset_and_a_polling_thread_take(build: Path, tmp_path: Path, rmw: str) -> None:
    rows = carried(build, tmp_path, {"rmw": rmw}, dispatch=["waitset", "poll"], reliability=["reliable"])
    assert rows["cell"].n_unique() == 2
    assert (rows["n"] == rows["sent"]).all()


@pytest.mark.parametrize("rmw", RMWS)
def test_it_carries_messages_of_ros(build: Path, tmp_path: Path, rmw: str) -> None:
    rows = carried(build, tmp_path, {"rmw": rmw}, type=TYPES, payload=["64B", "328B", "60KB"])
    assert set(rows["type"].to_list()) == set(TYPES)


@pytest.mark.parametrize(("chosen", "carries"), [("UDPv4", "udp"), ("SHM", "shared-memory")])
def test_the_transports_of_fast_dds_are_those_that_the_environment_chooses(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, carries: str
) -> None:
    require("rmw_fastrtps_cpp", "rmw_fastrtps_cpp" in RMWS, "rmw_fastrtps_cpp in the ROS 2 that is sourced")
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", chosen)
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    rows = carried(build, tmp_path, {"rmw": "rmw_fastrtps_cpp"})
    assert set(rows["transport"].drop_nulls().to_list()) == {carries}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_within_a_process_the_object_itself_is_handed_over(
    build: Path, tmp_path: Path, executor: str
) -> None:
    options = {"intra_process": True, "executor": executor}
    rows = carried(build, tmp_path, options, placement=["single-process"], dispatch=["listener"])
    assert set(rows["transport"].drop_nulls().to_list()) == {"process"}


@pytest.mark.parametrize(
    ("participants", "threads"),
    [("per-process", "per-process"), ("per-process", "per-node"), ("per-node", "per-node")],
)
@pytest.mark.parametrize("rmw", RMWS)
def test_nodes_of_a_process_share_participant_and_executor_or_have_their_own(
    build: Path, tmp_path: Path, rmw: str, participants: str, threads: str
) -> None:
    carried(
        build,
        tmp_path,
        {"rmw": rmw},
        placement=["single-process"],
        reliability=["reliable"],
        dispatch=["listener"],
        participants=[participants],
        threads=[threads],
    )


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("threads", "executors"), [("per-process", 1), ("per-node", 3)])
def test_a_busy_node_holds_up_those_of_its_executor(
    build: Path, executor: str, threads: str, executors: int
) -> None:
    """A source sends to two nodes at the same time, of which the first works for 5 ms each time."""
    need("netns")
    need("ros2")
    work_ns = 5 * MILLISECOND_NS
    source = [timer(20 * MILLISECOND_NS, writers=(0, 1))]
    nodes = [
        node("source", 0, [], [writer("a", 0), writer("b", 1)], source, "listener"),
        node("busy", 1, [reader("a", [0])], [], [any_message(work_ns=work_ns)], "listener"),
        node("other", 2, [reader("b", [1])], [], [any_message()], "listener"),
    ]
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes) | {"threads": threads}
    one = {} if executor != "multi_threaded" else {"executor_threads": 1}
    given["adapters"][0]["options"] = {"executor": executor, **one}
    (said,) = run_private(build, [given])
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    names = [each["name"] for each in said.event("done")["threads"]]
    assert names.count("executor") == executors
    busy, other = said.lane(KIND_RECEIVED, 1, 0), said.lane(KIND_RECEIVED, 2, 0)
    assert len(busy) and len(other)
    if threads == "per-process":
        before = np.less_equal.outer(busy["handled_ns"], other["taken_ns"])
        behind = np.less_equal.outer(other["handled_ns"], busy["taken_ns"]).T
        assert (before | behind).all(), "callbacks of one executor overlap"


def test_a_hand_over_between_two_participants_is_refused(build: Path) -> None:
    need("netns")
    need("ros2")
    nodes = pipeline("listener", period_ns=5 * MILLISECOND_NS, payload_bytes=64)
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes)
    given["adapters"][0]["options"] = {"intra_process": True}
    given["contexts"].append({"adapter": 0, "domain": 0, "name": "other"})
    given["nodes"][2]["readers"][0]["context"] = 1
    (said,) = run_private(build, [given])
    assert "intra_process works within one context" in said.event("failed")["message"]


@pytest.mark.parametrize("rmw", RMWS)
def test_the_rmw_that_was_asked_for_is_the_one_in_use(build: Path, rmw: str) -> None:
    need("netns")
    need("ros2")
    nodes = pipeline("listener", period_ns=5 * MILLISECOND_NS, payload_bytes=64)
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes)
    given["adapters"][0]["options"] = {"rmw": rmw}
    (said,) = run_private(build, [given])
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    described = [each for each in found_in(said.events, "observed") if "rmw_library" in each]
    assert described, said.events
    names = {Path(each["rmw_library"]).name for each in described}
    assert rmw == "default" or names == {f"lib{rmw}.so"}


def test_the_worker_needs_no_python_for_the_messages(build: Path) -> None:
    """A whole ROS 2 has them for Python, too, beside those for C++."""
    need("ros2")
    words = ["readelf", "--dynamic", str(adapter_library("ros2", build))]
    needed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "std_msgs__rosidl" in needed and "rosidl_generator_py" not in needed, needed


@pytest.mark.parametrize("rmw", RMWS)
def test_each_cell_keeps_the_rmw_library_that_was_mapped(build: Path, tmp_path: Path, rmw: str) -> None:
    need("ros2")
    matrix = {"adapter": ["ros2"], "workload": ["pipeline-2"], "payload": ["64B", "4KB"], "rate": ["100Hz"]}
    out = run_campaign(build, tmp_path, matrix, options={"ros2": {"rmw": rmw}})
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    assert len(settings) == 2
    for described in settings.values():
        mapped = [each["observed"]["rmw_library"] for each in described if each["object"] == "context"]
        assert mapped, described
        for libraries in mapped:
            (library,) = libraries
            assert rmw == "default" or Path(library).name == f"lib{rmw}.so"


def test_two_rmws_are_told_apart_by_explain(build: Path, tmp_path: Path) -> None:
    need("ros2")
    require("two rmws", len(RMWS) > 1, "two rmw implementations")
    outs = []
    for rmw in RMWS[:2]:
        (tmp_path / rmw).mkdir()
        matrix = {"adapter": ["ros2"], "workload": ["pipeline-2"], "payload": ["64B"], "rate": ["100Hz"]}
        outs.append(str(run_campaign(build, tmp_path / rmw, matrix, options={"ros2": {"rmw": rmw}})))
    code, output, errors = lagometer(tmp_path, "explain", *outs, "--json")
    assert code == 0, errors
    told = {each["what"]: each for each in json.loads(output)["settings"]}
    library = told["ros2, context: observed: rmw_library"]
    assert [Path(library[side]).name for side in ("a", "b")] == [f"lib{rmw}.so" for rmw in RMWS[:2]]


@pytest.mark.parametrize("dispatch", ["listener", "waitset"])
@pytest.mark.parametrize(("deadline_ms", "missed"), [(5, True), (600_000, False)])
@pytest.mark.parametrize("rmw", RMWS)
def test_missed_deadlines_are_counted(
    build: Path, rmw: str, deadline_ms: int, missed: bool, dispatch: str
) -> None:
    need("netns")
    need("ros2")
    nodes = pipeline(dispatch, period_ns=50 * MILLISECOND_NS, payload_bytes=64)
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes)
    given["adapters"][0]["options"] = {"rmw": rmw, "deadline_ms": deadline_ms}
    (said,) = run_private(build, [given])
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    done = said.event("done")
    for kind in ("writers", "readers"):
        counts = [each["counters"]["deadline_missed"] for each in done[kind]]
        assert all((count > 0) == missed for count in counts), (kind, counts)


@pytest.mark.parametrize("rmw", RMWS)
def test_lifespan_and_liveliness_are_in_force_on_both_sides(build: Path, tmp_path: Path, rmw: str) -> None:
    """Whoever publishes by hand and a subscriber that asks for it match, and what is young enough comes."""
    options = {"lifespan_ms": 10_000, "liveliness": "manual_by_topic", "liveliness_lease_ms": 20_000}
    rows = carried(build, tmp_path, {"rmw": rmw, **options}, reliability=["reliable"])
    assert (rows["n"] == rows["sent"]).all()


@pytest.mark.parametrize(
    ("options", "dispatch", "says"),
    [
        ({"rmw": "rmw_that_is_nowhere"}, "listener", "rmw_that_is_nowhere"),
        ({"intra_process": True}, "waitset", "callbacks alone"),
        ({"intra_process": True, "deadline_ms": 5}, "listener", "passes by the rmw"),
        ({"loans": True}, "listener", "lends no memory"),
    ],
)
def test_what_can_not_be_is_refused(build: Path, options: Mapping, dispatch: str, says: str) -> None:
    need("netns")
    need("ros2")
    nodes = pipeline(dispatch, period_ns=5 * MILLISECOND_NS, payload_bytes=64)
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes)
    given["adapters"][0]["options"] = options
    (said,) = run_private(build, [given])
    assert said.code != 0
    assert says in said.event("failed")["message"], said.event("failed")


@pytest.mark.parametrize("rmw", RMWS)
def test_it_lends_memory_or_says_that_it_can_not(build: Path, rmw: str) -> None:
    need("netns")
    need("ros2")
    nodes = pipeline("listener", period_ns=5 * MILLISECOND_NS, type="fixed", payload_bytes=FIXED_BYTES)
    given = plan(adapter_library("ros2", build), DIRECTORY, nodes)
    given["adapters"][0]["options"] = {"rmw": rmw, "loans": True}
    (said,) = run_private(build, [given])
    assert said.code == 0 or "lends no memory" in said.event("failed")["message"], said.event("failed")


@pytest.mark.parametrize("pair", ["ros2+{}", "{}+ros2"])
@pytest.mark.parametrize("peer", DDS)
def test_plain_dds_and_ros_understand_each_other(build: Path, tmp_path: Path, peer: str, pair: str) -> None:
    """Over Cyclone DDS's rmw: Fast DDS 2.9 aborts when it meets the Fast DDS of a Jazzy (README)."""
    need("ros2")
    need(peer)
    require("rmw_cyclonedds_cpp", "rmw_cyclonedds_cpp" in RMWS, "the rmw for Cyclone DDS")
    rows = carried(
        build,
        tmp_path,
        {"rmw": "rmw_cyclonedds_cpp"},
        adapter=[pair.format(peer)],
        workload=["pipeline-2"],
        reliability=["reliable"],
        type=TYPES,
        payload=["64B", "328B", "60KB"],
    )
    assert set(rows["type"].to_list()) == {"string", "Image", "Imu", "PointCloud2"}
    assert (rows["n"] == rows["sent"]).all()
