# SPDX-License-Identifier: Apache-2.0
"""Campaigns of graphs with traffic of their own: what a user writes, and what `show --json` says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer
from needs import need

ROBOT = """
topics:
  image: {payload: 90KB, depth: 4}
  points: {payload: {uniform: {min: 1KB, max: 9KB}}}
  pose: {payload: 10B, reliability: reliable}
nodes:
  camera: {trigger: timer, rate: 100Hz, publishes: [image]}
  lidar: {trigger: timer, rate: 50Hz, jitter: 2ms, publishes: [points]}
  matcher: {trigger: any, subscribes: [points], uses: [pose], publishes: [match]}
  localizer: {trigger: timer, rate: 100Hz, subscribes: [match], publishes: [pose]}
  planner: {trigger: any, subscribes: [image, pose]}
groups: {sensing: [camera, lidar], driving: [matcher, localizer]}
chains: {lidar-to-plan: [points, match, pose, planner]}
"""
PARTS = ("communication_ns", "computation_ns", "idle_ns")


def carried_out(tmp_path: Path, matrix: str, robot: str = ROBOT, **more: str) -> tuple[dict[str, Any], Path]:
    need("netns")
    (tmp_path / "robot.yaml").write_text(robot)
    keys = "".join(f"{name}: {value}\n" for name, value in {"duration": "600ms", **more}.items())
    (tmp_path / "study.yaml").write_text(f"name: graphs\nmatrix: {matrix}\n{keys}")
    out = tmp_path / "out"
    code, said, errors = lagometer(
        tmp_path, "run", str(tmp_path / "study.yaml"), "--out", str(out), "--no-report", "--json"
    )
    assert code == 0, said[-2000:] + errors[-2000:]
    code, said, errors = lagometer(tmp_path, "show", str(out), "--json")
    assert code == 0, errors
    found: dict[str, Any] = json.loads(said)
    return found, out


def samples_of(out: Path, cell: str) -> pl.DataFrame:
    return pl.read_parquet(out / "samples" / cell / "0.parquet")


@pytest.mark.parametrize("placement", ["process-per-node", "groups", "single-process"])
def test_a_robot_has_its_own_sizes_and_a_chain_whose_parts_add_up(tmp_path: Path, placement: str) -> None:
    matrix = f"{{adapter: shm, workload: robot.yaml, placement: {placement}}}"
    found, out = carried_out(tmp_path, matrix)
    cell = f"shm/robot/{placement}"
    (chain,) = found["chains"]
    assert (chain["chain"], chain["trials"]) == ("lidar-to-plan", 1)
    assert chain["n"] > 10
    rows = samples_of(out, cell)
    sizes = {
        str(edge): size
        for edge, size in rows.group_by("edge").agg(pl.col("payload_bytes").unique()).iter_rows()
    }
    assert set(sizes["camera→planner"]) == {92_160}
    assert len(set(sizes["lidar→matcher"])) > 5
    assert min(sizes["lidar→matcher"]) >= 1024 and max(sizes["lidar→matcher"]) <= 9216
    assert set(sizes["localizer→planner"]) == {10}
    way = rows.filter((pl.col("edge") == "lidar-to-plan") & (pl.col("outcome") == "delivered"))
    whole = way.select(pl.col("handled_ns") - pl.col("publish_ns")).to_series()
    assert way.select(pl.sum_horizontal(*PARTS)).to_series().to_list() == whole.to_list()
    assert (way["idle_ns"] > 0).any(), "a timer has its phase"
    # What a node uses is a cause, and not the first.
    matches = rows.filter((pl.col("edge") == "matcher→localizer") & pl.col("causes").is_not_null())
    assert matches.height > 5
    assert matches["cause_stream"].unique().to_list() == [1]


def test_two_pictures_become_a_cloud_and_what_did_not_arrive_is_counted_by_edge(tmp_path: Path) -> None:
    """As in a public report to Cyclone DDS (issue 484): the last cloud never arrives."""
    need("faulty")
    matrix = "{adapter: faulty, workload: pictures-to-cloud, rate: 5Hz, reliability: reliable, depth: 1}"
    timing = {"duration": "1s", "warmup": "0s", "options": "{faulty: {stream: 3, drop_at: 4}}"}
    found, out = carried_out(tmp_path, matrix, **timing)
    cell = "faulty/pictures-to-cloud/5Hz/reliable/depth-1"
    sizes = dict(samples_of(out, cell).select(pl.col("edge").cast(str), "payload_bytes").unique().iter_rows())
    last = {"end-to-end": 9_830_400, "picture-to-cloud": 9_830_400}
    assert sizes == last | {
        "camera→stereo:left": 921_600,
        "camera→stereo:right": 921_600,
        "stereo→points": 1_228_800,
        "points→viewer": 9_830_400,
    }
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    counts = {edge: (row["n"], row["censored"], row["sent"]) for edge, row in rows.items()}
    assert counts.pop("points→viewer") == counts.pop("end-to-end") == (4, 1, 5)
    assert counts.pop("picture-to-cloud") == (4, 1, 5)
    assert set(counts.values()) == {(5, 0, 5)}
    about = {each["kind"]: each["number"] for each in found["findings"]}
    assert about["still-on-the-way"] == "1 of 20 messages"


BRIDGE = """
topics:
  points: {adapter: cyclonedds, payload: 20KB}
  pose: {adapter: shm}
  map: {adapter: zeromq, payload: 5KB}
nodes:
  lidar: {trigger: timer, rate: 100Hz, publishes: [points]}
  bridge: {trigger: any, subscribes: [points], publishes: [pose, map]}
  planner: {trigger: any, subscribes: [pose]}
  viewer: {trigger: any, subscribes: [map]}
chains: {lidar-to-plan: [points, pose], lidar-to-view: [points, map]}
"""


def test_topics_of_one_robot_go_through_adapters_of_their_own(tmp_path: Path) -> None:
    need("cyclonedds")
    need("zeromq")
    found, out = carried_out(tmp_path, "{adapter: [shm, fastdds, zeromq], workload: robot.yaml}", BRIDGE)
    assert (found["valid"], len(found["excluded"])) == (1, 2)
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    assert {row["adapter"] for row in rows.values()} == {"cyclonedds,shm,zeromq"}
    carried = {edge: row["transport"] for edge, row in rows.items() if "→" in edge}
    assert carried == {
        "lidar→bridge": "udp",
        "bridge→planner": "shared-memory",
        "bridge→viewer": "unix-socket",
    }
    for chain in found["chains"]:
        assert (chain["lost"], chain["n"] > 20) == (0, True)
    way = samples_of(out, "shm/robot").filter(pl.col("edge") == "lidar-to-plan").drop_nulls("handled_ns")
    whole = way.select(pl.col("handled_ns") - pl.col("publish_ns")).to_series()
    assert way.select(pl.sum_horizontal(*PARTS)).to_series().to_list() == whole.to_list()


def test_a_round_trip_at_a_rate_is_halved_without_the_echo(tmp_path: Path) -> None:
    found, out = carried_out(tmp_path, "{adapter: shm, workload: roundtrip, rate: 200Hz, payload: 4B}")
    (chain,) = found["chains"]
    way = samples_of(out, "shm/roundtrip/4B/200Hz").filter(pl.col("edge") == "round-trip")
    measured = way.filter(pl.col("phase") == "measure")
    halves = measured.select(pl.col("communication_ns") // 2).to_series().drop_nulls().sort()
    assert chain["half_round_trip_p50_ns"] == halves[(len(halves) - 1) // 2], "an observed value"
    assert chain["half_round_trip_p50_ns"] < chain["whole_p50_ns"] / 2


def test_a_participant_for_each_node_of_a_process(tmp_path: Path) -> None:
    need("cyclonedds")
    matrix = "{adapter: cyclonedds, workload: pipeline-3, placement: single-process, participants: per-node}"
    found, _ = carried_out(tmp_path, matrix)
    assert found["valid"] == 1


BUSY = """
nodes:
  source: {trigger: timer, rate: 20Hz, publishes: [a, b]}
  busy: {trigger: any, subscribes: [a], work: busy-5ms}
  other: {trigger: any, subscribes: [b]}
"""


def test_a_busy_node_delays_those_of_its_thread(tmp_path: Path) -> None:
    matrix = (
        "{adapter: shm, workload: robot.yaml, placement: single-process, threads: [per-node, per-process]}"
    )
    found, out = carried_out(tmp_path, matrix, BUSY)
    assert found["valid"] == 2
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") == "source→other")
    fastest = dict(rows.select("threads", "latency_min_ns").iter_rows())
    assert fastest["per-process"] >= 5_000_000 > fastest["per-node"]


@pytest.mark.parametrize(("adapter", "start"), [("shm", "subscriber-first"), ("zeromq", "publisher-first")])
def test_without_matching_what_is_missed_at_first_is_counted(
    tmp_path: Path, adapter: str, start: str
) -> None:
    need(adapter)
    matrix = f"{{adapter: {adapter}, workload: pipeline-2, rate: 500Hz, start: {start}}}"
    found, out = carried_out(tmp_path, matrix, warmup="0s")
    row = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") == "source→sink").row(0, named=True)
    assert found["valid"] == 1
    assert row["initial_lost"] is not None
    assert row["discovery_ns"] is None
    rows = samples_of(out, f"{adapter}/pipeline-2/500Hz/{start}").filter(pl.col("edge") == "source→sink")
    first = rows.filter(pl.col("outcome") == "delivered")["sequence"].min()
    assert row["initial_lost"] == first
    if start == "publisher-first":
        assert row["initial_lost"] > 0


JOINING = """
nodes:
  source: {trigger: timer, rate: 200Hz, publishes: [x]}
  sink: {trigger: any, subscribes: [x, y]}
  late: {trigger: any, subscribes: [x], start: 300ms}
  second: {trigger: timer, rate: 100Hz, publishes: [y], start: 500ms}
  gone: {trigger: any, subscribes: [x], stop: 800ms}
"""


def test_nodes_that_join_late_or_leave_early_are_measured_while_they_are_there(tmp_path: Path) -> None:
    need("zeromq")
    # Room for what comes while a machine at work lets the late one wait.
    matrix = "{adapter: zeromq, workload: robot.yaml, depth: 1000}"
    found, out = carried_out(tmp_path, matrix, JOINING, duration="1s")
    assert found["valid"] == 1, found["rows"]
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    late, second, first = rows["source→late"], rows["second→sink"], rows["source→sink"]
    assert late["join_first_message_ns"] > 0 and second["join_first_message_ns"] > 0
    # Until its subscription has reached the source, it may miss messages; never after.
    edge = samples_of(out, "zeromq/robot/depth-1000").filter(pl.col("edge") == "source→late")
    arrived = edge.filter(pl.col("outcome") == "delivered")["sequence"].min()
    assert late["n"] < first["n"]
    assert edge.filter((pl.col("outcome") == "lost") & (pl.col("sequence") > arrived)).is_empty()
    assert first["joining_gap_max_ns"] > 0 and first["join_first_message_ns"] is None
    assert second["rate_intended_hz"] < 100
    gone = rows["source→gone"]
    assert gone["n"] < first["n"] and gone["lost"] == 0
    assert first["leaving_gap_max_ns"] > 0


RESTARTING = """
nodes:
  source: {trigger: timer, rate: 200Hz, publishes: [x]}
  relay: {trigger: any, subscribes: [x], publishes: [y], restart: 400ms}
  sink: {trigger: any, subscribes: [y]}
  other: {trigger: any, subscribes: [x]}
"""


def test_a_node_that_restarts_is_measured_before_and_after(tmp_path: Path) -> None:
    need("zeromq")
    found, out = carried_out(tmp_path, "{adapter: zeromq, workload: robot.yaml}", RESTARTING, duration="1s")
    assert found["valid"] == 1, found["rows"]
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    before, after, whole = rows["relay→sink"], rows["relay-again→sink"], rows["source→other"]
    assert 0 < before["n"] < after["n"] < whole["n"]
    assert before["n"] + after["n"] <= whole["n"]
    assert after["join_first_message_ns"] > 0 and before["join_first_message_ns"] is None
    # Its process came up with the others'; that it was let in 400 ms later is no part of how long it takes.
    assert after["join_participant_ns"] > 0 and before["join_participant_ns"] is None
    ramp = journal(out)[0]["startup_ns"]["relay-again"]
    assert ramp["participant"] - ramp["plan"] == after["join_participant_ns"]
    assert ramp["process"] == after["join_process_ns"] and ramp["plan"] > 400_000_000
    assert whole["leaving_gap_max_ns"] > 0 and whole["joining_gap_max_ns"] > 0
    assert rows["end-to-end"]["n"] >= before["n"] + after["n"] - 2


LEAVING = """
nodes:
  source: {trigger: timer, rate: 5000Hz, publishes: [x]}
  relay: {trigger: any, subscribes: [x], publishes: [y], stop: 500ms}
  sink: {trigger: any, subscribes: [y]}
chains: {way: [x, y]}
"""


def test_what_nobody_was_there_to_pass_on_is_unreachable(tmp_path: Path) -> None:
    """At this rate the relay gets some messages after its time, before its process has ended."""
    found, out = carried_out(tmp_path, "{adapter: shm, workload: robot.yaml, depth: 1000}", LEAVING)
    assert found["valid"] == 1, found["rows"]
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    on_edges = rows["source→relay"]["censored"] + rows["relay→sink"]["censored"]
    for name in ("end-to-end", "way"):
        assert rows[name]["n"] > 0 and rows[name]["censored"] <= on_edges, rows[name]
        assert rows[name]["unreachable"] > rows[name]["lost"] + rows[name]["overwritten"], rows[name]
    (shown,) = [each for each in found["over_trials"] if each["edge"] == "end-to-end"]
    assert shown["unreachable"] == rows["end-to-end"]["unreachable"]
    (said,) = [each for each in found["findings"] if each["kind"] == "node-was-away"]
    most = max(rows[name]["unreachable"] for name in ("end-to-end", "way"))
    assert said["number"].startswith(f"{most:,} of ")
    assert found["chains"][0]["unreachable"] == rows["way"]["unreachable"]


WAITING = """
nodes:
  left: {trigger: timer, rate: 200Hz, publishes: [x]}
  right: {trigger: timer, rate: 200Hz, publishes: [y], stop: 500ms}
  join: {trigger: all, subscribes: [x, y], publishes: [z]}
  sink: {trigger: any, subscribes: [z]}
chains: {way: [x, z]}
"""


def test_what_waits_for_a_publisher_that_left_is_unreachable(tmp_path: Path) -> None:
    found, out = carried_out(tmp_path, "{adapter: shm, workload: robot.yaml, depth: 1000}", WAITING)
    assert found["valid"] == 1, found["rows"]
    rows = {row["edge"]: row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)}
    on_edges = rows["left→join"]["censored"] + rows["join→sink"]["censored"]
    for name in ("end-to-end", "way"):
        assert rows[name]["unreachable"] > 0 and rows[name]["censored"] <= on_edges, rows[name]


def test_parts_of_one_campaign_have_their_own_phases(tmp_path: Path) -> None:
    parts = "{short: {}, long: {duration: 900ms, trials: 2, matrix: {payload: 1KB}}}"
    found, out = carried_out(tmp_path, "{adapter: shm, workload: pipeline-2, payload: 64B}", parts=parts)
    assert found["valid"] == 3
    counts = {row["cell"]: row["n"] for row in found["rows"]}
    assert counts["long/shm/pipeline-2/1KB"] > 1.3 * counts["short/shm/pipeline-2/64B"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert {cell["id"]: cell["trials"] for cell in manifest["cells"]} == {
        "short/shm/pipeline-2/64B": 1,
        "long/shm/pipeline-2/1KB": 2,
    }
