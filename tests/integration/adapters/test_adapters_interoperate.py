# SPDX-License-Identifier: Apache-2.0
"""Cyclone DDS, Fast DDS, RustDDS and Dust DDS with each other; all middleware in many processes."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest
from campaign_support import half_of, run_cells, time_to_repair
from needs import DDS, IN_PYTHON, LOSSLESS, MIDDLEWARE, ROOT, most_reliable, need

from lagometer.study.adapters import load_adapter

pytestmark = pytest.mark.by_turn

ALL_DDS = (*DDS, "rustdds", "dust_dds")
# Whom Dust DDS takes for incompatible: adapters/dust_dds/README.md, interoperability.
STRANGERS = [{"dust_dds", other} for other in ("fastdds", "ros2_rust", "cyclonedds-py")]
TWO_WAYS = [f"{one}+{other}" for one, other in permutations(ALL_DDS, 2) if {one, other} not in STRANGERS]
# A node is in one language: none of these can answer by the other.
ONE_WAY = [
    pair
    for one in ALL_DDS
    if {one, "cyclonedds-py"} not in STRANGERS
    for pair in (f"{one}+cyclonedds-py", f"cyclonedds-py+{one}")
]
# The newer series from the same sources: with its own kind, and with one that is not.
NEWER = [
    pair for other in (*DDS, "cyclonedds-py") for pair in (f"cyclonedds11+{other}", f"{other}+cyclonedds11")
]
# Without LAGOMETER_LONG pairs take turns: of two that follow one answers, and the other is heard by three.
BOTH = "LAGOMETER_LONG" in os.environ
PAIRS = pytest.mark.parametrize("pair", [*TWO_WAYS, *ONE_WAY] if BOTH else [*TWO_WAYS[1::2], *ONE_WAY[::2]])
KINDS = ["bytes", "fixed"]
RELIABILITIES = ["best_effort", "reliable"]
# Fast DDS 2.9.1 as Debian builds it is ended by an assertion of its own when its reliable writer meets a
# second RustDDS reader elsewhere: adapters/fastdds/README.md, limits.
UNRELIABLE_TO_MANY = {"fastdds+rustdds"}


def pair_rows(build: Path, folder: Path, pair: str, **factors: list[str]) -> pl.DataFrame:
    """The rows of both reliabilities; of what was sent reliably, all came, and nothing was damaged."""
    for name in pair.split("+"):
        need(name)
    matrix = {"adapter": [pair], "reliability": RELIABILITIES, **factors}
    rows = run_cells(build, folder, matrix, skip=half_of(matrix), **time_to_repair(pair))
    reliable = rows.filter(pl.col("reliability") == "reliable")
    assert (reliable["n"] == reliable["sent"]).all(), reliable.select("cell", "edge", "n", "sent").rows()
    assert (rows["n"] > 0).all()
    assert (rows["corrupted"] == 0).all()
    return rows


@pytest.mark.parametrize("strangers", STRANGERS, ids=lambda pair: "+".join(sorted(pair)))
def test_those_that_do_not_talk_say_so(strangers: set[str]) -> None:
    for one, other in permutations(strangers):
        assert other not in load_adapter(ROOT / "adapters" / one).sidecar.interoperates_with


@pytest.mark.parametrize("pair", [*TWO_WAYS, *ONE_WAY, *NEWER])
def test_the_two_talk_to_each_other(build: Path, tmp_path: Path, pair: str) -> None:
    rate = "20Hz" if "-py" in pair else "100Hz"  # Python takes milliseconds for a large message
    rows = pair_rows(
        build, tmp_path, pair, workload=["pipeline-2"], payload=["64B", "64KB"], type=KINDS, rate=[rate]
    )
    assert rows["cell"].n_unique() in (4, 8)


@pytest.mark.parametrize("other", [*DDS, "rustdds", "cyclonedds-py"])
@pytest.mark.parametrize("is_first", [True, False], ids=["sends", "receives"])
def test_a_node_of_ros_2_talks_in_bytes(build: Path, tmp_path: Path, other: str, is_first: bool) -> None:
    """The client in Rust lacks the type `fixed`; its messages of ROS 2 are in test_ros2_types.py."""
    pair = f"ros2_rust+{other}" if is_first else f"{other}+ros2_rust"
    rows = pair_rows(build, tmp_path, pair, workload=["pipeline-2"], payload=["64B", "64KB"], rate=["20Hz"])
    assert rows["cell"].n_unique() in (2, 4)


@pytest.mark.parametrize("pair", TWO_WAYS if BOTH else TWO_WAYS[::2])
def test_the_two_answer_each_other(build: Path, tmp_path: Path, pair: str) -> None:
    """A closed loop: each of the two publishes and subscribes in the same process."""
    rows = pair_rows(build, tmp_path, pair, workload=["pingpong"], payload=["64B", "64KB"])
    assert set(rows["edge"]) == {"ping→pong", "pong→ping", "end-to-end"}


@PAIRS
def test_one_of_the_two_is_heard_by_three_of_the_other(build: Path, tmp_path: Path, pair: str) -> None:
    reliability = RELIABILITIES[:1] if pair in UNRELIABLE_TO_MANY else RELIABILITIES
    rows = pair_rows(
        build,
        tmp_path,
        pair,
        workload=["fanout-3"],
        payload=["64B", "64KB"],
        rate=["50Hz"],
        reliability=reliability,
    )
    edges = rows.filter(pl.col("edge") != "end-to-end")
    assert edges["edge"].n_unique() == 3
    assert len(edges) in (len(reliability) * 3, 2 * len(reliability) * 3)


@pytest.mark.parametrize("adapter", (*MIDDLEWARE, *IN_PYTHON))
def test_23_nodes_in_23_processes_find_each_other(build: Path, tmp_path: Path, adapter: str) -> None:
    need(adapter)
    matrix = {
        "adapter": [adapter],
        "workload": ["pipeline-23"],
        "rate": ["20Hz"],
        "reliability": [most_reliable(adapter, build)],
        "placement": ["process-per-node"],
    }
    # 23 processes keep a machine busy: a message may be longer under way than the usual 150 and 100 ms, and
    # an edge has none if all of its own leave after the window.
    more = {"duration": "500ms", "drain": "2s", **time_to_repair(adapter)}
    rows = run_cells(build, tmp_path, matrix, options={adapter: LOSSLESS.get(adapter, {})}, **more)
    whole = rows.filter(pl.col("edge") == "end-to-end")
    assert len(rows) == 23
    assert (whole["n"] == whole["sent"]).all()
    assert (whole["n"] > 0).all()
