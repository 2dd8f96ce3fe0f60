# SPDX-License-Identifier: Apache-2.0
"""ROS 2 through rclpy: each executor and dispatch over each rmw that is installed, what is mapped, what is
refused. Needs an installation that is sourced and built for this Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from campaign_support import run_campaign, run_cells
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, pipeline, plan
from test_adapters_ros2 import RMWS
from worker_support import run_private

DIRECTORY = "/dev/shm/lagometer"
NAME = "ros2-py"
# The multi-threaded executor is busy with itself: nodes and threads beside it hardly run (README).
DISPATCHES = {"single_threaded": ["listener", "waitset"], "multi_threaded": ["listener"]}
PLACEMENTS = {
    "single_threaded": ["process-per-node", "single-process"],
    "multi_threaded": ["process-per-node"],
}


@pytest.mark.parametrize("executor", ["single_threaded", "multi_threaded"])
@pytest.mark.parametrize("rmw", RMWS)
def test_each_executor_brings_what_was_sent(build: Path, tmp_path: Path, rmw: str, executor: str) -> None:
    need(NAME)
    matrix = {
        "adapter": [NAME],
        "workload": ["pipeline-3"],
        "payload": ["64B", "60KB"],
        "rate": ["20Hz"],
        "dispatch": DISPATCHES[executor],
        "reliability": ["reliable"],
        "placement": PLACEMENTS[executor],
    }
    options = {NAME: {"rmw": rmw, "executor": executor}}
    rows = run_cells(build, tmp_path, matrix, options=options, duration="300ms", drain="500ms")
    assert rows["cell"].n_unique() == 2 * len(DISPATCHES[executor]) * len(PLACEMENTS[executor])
    assert (rows["corrupted"] == 0).all()
    assert (rows["n"] == rows["sent"]).all(), rows.select("cell", "edge", "n", "sent").rows()


@pytest.mark.parametrize("rmw", RMWS)
def test_the_rmw_library_that_was_mapped_is_kept(build: Path, tmp_path: Path, rmw: str) -> None:
    need(NAME)
    matrix = {"adapter": [NAME], "workload": ["pipeline-2"], "payload": ["64B"], "rate": ["50Hz"]}
    out = run_campaign(build, tmp_path, matrix, options={NAME: {"rmw": rmw}})
    (described,) = json.loads((out / "manifest.json").read_text())["settings"].values()
    mapped = [each["observed"]["rmw_library"] for each in described if each["object"] == "context"]
    names = {Path(library).name for libraries in mapped for library in libraries}
    assert len(names) == 1
    assert rmw == "default" or names == {f"lib{rmw}.so"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rmw": "rmw_that_is_nowhere"}, "rmw_that_is_nowhere"),
        ({"executor": "events"}, "option executor"),
        ({"executor_threads": 2}, "multi_threaded alone"),
    ],
)
def test_what_can_not_be_is_refused(build: Path, options: Mapping, says: str) -> None:
    need("netns")
    need(NAME)
    given = plan(adapter_library(NAME, build), DIRECTORY, pipeline("listener", period_ns=20 * MILLISECOND_NS))
    given["adapters"][0]["options"] = options
    (said,) = run_private(build, [given])
    assert said.code != 0
    assert says in said.event("failed")["message"], said.event("failed")
