# SPDX-License-Identifier: Apache-2.0
"""Messages of ROS 2 as payloads: they are what a peer that knows only their IDL expects, every field of them,
and what it makes of them is understood; the adapters that have them carry them, alone and with each other."""

from __future__ import annotations

import json
import os
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from campaign_support import half_of, lagometer, run_cells, time_to_repair, write_study
from needs import DDS, adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, pipeline, plan, reader, timer, writer
from worker_support import Said, run_private

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

pytestmark = pytest.mark.by_turn

DIRECTORY = "/dev/shm/lagometer"
PEER = Path(__file__).parent / "ros2_peer.py"
OUT, BACK = "lagometer/out", "lagometer/back"
IMU_BYTES = 328
# Sizes of one datagram and of several fragments; the peer reads and writes octet by octet, in Python.
KINDS = [("string", 32), ("string", 200), ("string", 5_000), ("Image", 16), ("Image", 4_800), ("Image", 101)]
KINDS += [("Imu", IMU_BYTES), ("PointCloud2", 16), ("PointCloud2", 4_800)]
WITH_THEM = (*DDS, "ros2_rust")
# Not Dust DDS: the descriptions of types (XTypes) that it and the peer's library send are incompatible.
TO_THE_PEER = [
    (adapter, kind, size)
    for one, adapter in enumerate((*WITH_THEM, "rustdds"))
    for other, (kind, size) in enumerate(KINDS)
    if (one + other) % 2 == 0 or "LAGOMETER_LONG" in os.environ  # else every other, in a chessboard's pattern
]
IN_RUST = ("rustdds", "dust_dds")
# All pairs are in docs/INTEROPERABILITY.md; here some of each kind.
WITH_CYCLONE = [
    pair for name in (*IN_RUST, "cyclonedds11") for pair in (name, f"{name}+cyclonedds", f"cyclonedds+{name}")
]
WAYS = [*WITH_THEM, "hiroz", *("+".join(pair) for pair in permutations(WITH_THEM, 2)), *WITH_CYCLONE]
if "LAGOMETER_LONG" not in os.environ:  # each alone, and every other pair
    WAYS = [way for place, way in enumerate(WAYS) if "+" not in way or place % 2 == 0]
OF_ROS = ["string", "Image", "Imu", "PointCloud2"]


def by_way_of_the_peer(build: Path, folder: Path, adapter: str, kind: str, size: int) -> tuple[Said, Mapping]:
    """What a worker, and what the peer saw: one topic goes to the peer, the other comes from there."""
    need("netns")
    need(adapter)
    need("cyclonedds-py")
    endpoint: Mapping = {"type": kind, "payload_bytes": size}
    nodes = [
        node("source", 0, [], [writer(OUT, 0, **endpoint)], [timer(5 * MILLISECOND_NS)], "waitset"),
        node("sink", 1, [reader(BACK, [0], **endpoint)], [], [any_message()], "waitset"),
    ]
    # What is under way when the sources stop goes through Python.
    given = plan(adapter_library(adapter, build), DIRECTORY, nodes, drain_ns=1_000 * MILLISECOND_NS)
    given["adapters"][0]["network"] = {"loopback": True, "peers": 2}
    if kind == "string":
        given["content"] = {"kind": "random", "seed": 1}
    result = folder / "seen.json"
    peer = (sys.executable, str(PEER), kind, str(result), OUT, BACK)
    (said,) = run_private(build, [given], wrap=peer)
    assert said.code == 0, (said.errors[-2000:], said.events[-1:])
    seen: Mapping = json.loads(result.read_text())
    return said, seen


@pytest.mark.parametrize(("adapter", "kind", "size"), TO_THE_PEER)
def test_a_peer_that_knows_the_idl_alone_reads_and_answers(
    build: Path, tmp_path: Path, adapter: str, kind: str, size: int
) -> None:
    said, seen = by_way_of_the_peer(build, tmp_path, adapter, kind, size)
    assert seen["wrong"] == []
    sent, received = said.lane(KIND_SENT, 0, 0), said.lane(KIND_RECEIVED, 1, 0)
    assert len(sent) > 10
    assert seen["probes"] > 0
    assert seen["sequences"] == sent["sequence"].tolist()
    assert received["sequence"].tolist() == sent["sequence"].tolist()
    assert set(received["payload_bytes"].tolist()) == {size}
    assert not np.any(received["flags"])
    (counted,) = said.event("done")["readers"]
    assert counted["corrupted"] == 0


@pytest.mark.parametrize("pair", WAYS)
def test_the_adapters_carry_them(build: Path, tmp_path: Path, pair: str) -> None:
    for name in pair.split("+"):
        need(name)
    matrix = {
        "adapter": [pair],
        "workload": ["pipeline-3"],
        "payload": ["64B", f"{IMU_BYTES}B", "60KB"],
        "type": OF_ROS,
        "rate": ["50Hz"],
        "reliability": ["best_effort", "reliable"],
    }
    skipped = half_of(matrix)
    rows = run_cells(build, tmp_path, matrix, skip=skipped, **time_to_repair(pair))
    assert (rows["n"] > 0).all()
    assert (rows["corrupted"] == 0).all()
    reliable = rows.filter(reliability="reliable")
    assert (reliable["n"] == reliable["sent"]).all(), reliable.select("cell", "edge", "n", "sent").rows()
    any_size = {(kind, size) for kind in ("string", "Image") for size in (64, IMU_BYTES, 61_440)}
    expected = any_size | {("Imu", IMU_BYTES), ("PointCloud2", 64), ("PointCloud2", 61_440)}
    came = rows if skipped else reliable  # of a half each size comes in one reliability or the other
    assert set(came.select("type", "payload_bytes").iter_rows()) == expected


@pytest.mark.crossed
@pytest.mark.parametrize("kind", OF_ROS)
@pytest.mark.parametrize(
    ("adapter", "options"),
    [
        ("cyclonedds", {"shared_memory": True}),
        ("cyclonedds", {"max_message_size": 600, "fragment_size": 500}),
        ("fastdds", {"transport": "shm"}),
        ("fastdds", {"transport": "tcp"}),
        ("fastdds", {"intra_process": "off", "publish_mode": "async"}),
    ],
    ids=str,
)
def test_with_every_transport(build: Path, tmp_path: Path, adapter: str, options: Mapping, kind: str) -> None:
    need(adapter)
    if options.get("shared_memory"):
        need("iox-roudi")
    payload = f"{IMU_BYTES}B" if kind == "Imu" else "60KB"
    matrix = {
        "adapter": [adapter],
        "workload": ["pingpong"],
        "payload": [payload],
        "type": [kind],
        "reliability": ["reliable"],
        "content": ["random"],
        "placement": ["process-per-node", "single-process"],
    }
    rows = run_cells(build, tmp_path, matrix, options={adapter: options})
    assert rows["cell"].n_unique() == 2
    assert (rows["n"] > 0).all()
    assert (rows["corrupted"] == 0).all()


@pytest.mark.parametrize("kind", OF_ROS)
@pytest.mark.parametrize("adapter", DDS)
def test_measuring_them_keeps_within_its_bounds(guard_build: Path, adapter: str, kind: str) -> None:
    """The guard build's worker aborts where its own code allocates, locks or writes."""
    need("netns")
    need(adapter)
    size = IMU_BYTES if kind == "Imu" else 4_800
    nodes = pipeline("listener", period_ns=2 * MILLISECOND_NS, type=kind, payload_bytes=size)
    given = plan(adapter_library(adapter), DIRECTORY, nodes)
    (said,) = run_private(guard_build, [{**given, "content": {"kind": "random", "seed": 1}}])
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    assert [each["corrupted"] for each in said.event("done")["readers"]] == [0, 0]


def test_a_message_of_another_size_counts_as_corrupted(build: Path) -> None:
    need("netns")
    need("fastdds")
    for kind in ("string", "Image", "PointCloud2"):
        nodes = pipeline("waitset", type=kind, payload_bytes=256)[:2]
        nodes[1]["writers"], nodes[1]["rules"] = [], [any_message()]
        nodes[1]["readers"][0]["payload_bytes"] = 512
        (said,) = run_private(build, [plan(adapter_library("fastdds", build), DIRECTORY, nodes)])
        (counted,) = said.event("done")["readers"]
        assert counted["corrupted"] == counted["received"] > 0, kind


def test_a_study_says_why_it_leaves_some_out(build: Path, tmp_path: Path) -> None:
    matrix = {
        "adapter": ["shm", "cyclonedds"],
        "workload": "pipeline-2",
        "payload": ["20B", f"{IMU_BYTES}B"],
        "type": ["bytes", *OF_ROS],
    }
    study = write_study(tmp_path, matrix=matrix)
    paths = {"LAGOMETER_ADAPTER_PATH": str(build / "adapters")}
    code, output, errors = lagometer(tmp_path, "plan", str(study), "--json", environment=paths)
    assert code == 0, errors
    planned = json.loads(output)
    excluded = {each["cell"]: each["reason"] for each in planned["excluded"]}
    for kind in OF_ROS:
        assert f"shm does not offer type '{kind}'" in excluded[f"shm/pipeline-2/20B/{kind}"]
    need("cyclonedds")
    of_cyclone = {cell for cell in excluded if cell.startswith("cyclonedds")}
    assert of_cyclone == {
        "cyclonedds/pipeline-2/20B/Imu",
        "cyclonedds/pipeline-2/20B/PointCloud2",
        f"cyclonedds/pipeline-2/{IMU_BYTES}B/PointCloud2",
    }
