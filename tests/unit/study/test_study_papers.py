# SPDX-License-Identifier: Apache-2.0
"""The studies of the four papers: whole in the file, short at `quick`, all that is left out with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from lagometer.study import Study, expand, load_study
from lagometer.study.adapters import discover_adapters
from lagometer.study.matrix import overhead_ns
from lagometer.summary.floor_ratio import work_key

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ("kronauer-2021", "maruyama-2016", "paul-2024", "betz-2024")
QUICK_NS_MAX = 600 * 10**9
WITH_ROS_2_NS_MAX = 900 * 10**9  # where one is sourced
NUMBERS = ("payload", "rate", "depth")


def study_of(name: str, scale: str | None = None) -> Study:
    return load_study(ROOT / "studies" / f"{name}.yaml", scale)


@pytest.mark.parametrize("name", PAPERS)
def test_each_has_the_three_scales(name: str) -> None:
    assert study_of(name).name == name
    for scale in ("quick", "evening", "full"):
        assert study_of(name, scale).scale == scale


@pytest.mark.parametrize("name", PAPERS)
def test_quick_keeps_the_ends_of_every_number_and_takes_ten_minutes_at_most(name: str) -> None:
    whole, quick = study_of(name), study_of(name, "quick")
    for factor in NUMBERS:
        if factor in whole.matrix:
            values = [float(str(value)) for value in whole.matrix[factor]]
            kept = [float(str(value)) for value in quick.matrix[factor]]
            assert (min(kept), max(kept)) == (min(values), max(values)), factor
    for factor in set(whole.matrix) - set(NUMBERS) - {"part", "workload", "adapter"}:
        assert set(quick.matrix[factor]) == set(whole.matrix[factor]), factor
    cells = expand(quick, discover_adapters({}), cpus=(0, 1)).cells
    each_ns = [quick.of(cell).trials * (quick.of(cell).trial_ns() + overhead_ns(cell)) for cell in cells]
    assert sum(each_ns) <= WITH_ROS_2_NS_MAX
    without = [ns for cell, ns in zip(cells, each_ns, strict=True) if "ros2" not in cell.adapters]
    assert sum(without) <= QUICK_NS_MAX


def test_the_workloads_at_quick_are_the_ends_of_kronauers_row() -> None:
    assert {"pipeline-3", "pipeline-23"} <= set(study_of("kronauer-2021", "quick").matrix["workload"])
    assert "pipeline-47" in study_of("kronauer-2021", "full").matrix["workload"]


@pytest.mark.parametrize("scale", [None, "quick"])
def test_the_fragments_of_maruyama_fill_their_datagrams(scale: str | None) -> None:
    """What is cut is the sample, so the size of a fragment must change, not that of a datagram alone."""
    part = study_of("maruyama-2016", scale).parts["fragments"]
    options = [part.variants[str(name)].options["cyclonedds"] for name in part.matrix["variant"]]
    sizes = [(int(each["fragment_size"]), int(each["max_message_size"])) for each in options]
    assert [size for size, _ in sizes] == [4000, 16000, 65000]
    assert all(0.9 * datagram < size < datagram for size, datagram in sizes)


def test_rclcpp_is_measured_over_each_middleware_of_kronauer() -> None:
    for part in ("rclcpp", "figure-6-rclcpp"):
        for scale in (None, "quick"):
            variants = study_of("kronauer-2021", scale).parts[part].variants
            layers = [variant.options["ros2"]["rmw"] for variant in variants.values()]
            assert layers == ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp", "rmw_connextdds"]


@pytest.mark.parametrize("scale", [None, "quick"])
@pytest.mark.parametrize("name", ["maruyama-2016", "paul-2024", "half-megabyte"])
def test_plain_tcp_carries_the_same_bytes_over_each_link(name: str, scale: str | None) -> None:
    """The floor between hosts. Subscribers that come late have none: TCP finds no such readers."""
    found = expand(study_of(name, scale), discover_adapters({}), cpus=(0, 1))
    over = [cell for cell in found.cells if cell.link is not None]
    transfers = {work_key(cell.columns()) for cell in over if cell.adapters == ("tcp",)}
    without = [cell for cell in over if work_key(cell.columns()) not in transfers]
    assert transfers and any(cell.adapters != ("tcp",) for cell in over)
    assert {cell.factors.start for cell in without} <= {"publisher-first"}, [cell.id for cell in without]


@pytest.mark.parametrize("name", PAPERS)
def test_each_says_where_its_values_are_from(name: str) -> None:
    text = (ROOT / "studies" / f"{name}.yaml").read_text(encoding="utf-8")
    head = text[: text.index("\nname:")]
    assert "et al. 20" in head and ("arXiv" in head or "EMSOFT" in head)
    assert "Sources: " in head or name == "paul-2024"


@pytest.mark.parametrize("name", PAPERS)
def test_what_can_not_be_done_here_stands_in_the_file_with_what_it_needs(name: str) -> None:
    study = study_of(name)
    parts = {part: each.needs for part, each in study.parts.items() if each.needs}
    if name in ("paul-2024", "betz-2024"):
        assert parts
    for part in parts:
        found = [
            each
            for each in expand(study, discover_adapters({}), cpus=(0, 1)).excluded
            if each.cell.startswith(f"{part}/")
        ]
        assert found
        assert {each.reason for each in found} == {f"needs {parts[part]}"}
