# SPDX-License-Identifier: Apache-2.0
"""The transfer row: plain TCP beside each cell that crosses a network, once for each work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_adapters import ABILITIES, SPECIAL, write_adapters

from lagometer.study import Adapter, Expansion, expand, study_from_mapping
from lagometer.summary.floor_ratio import work_key

TCP: dict[str, Any] = {
    "scope": "network",
    "abilities": {**ABILITIES, "durability": ["volatile"], "late_readers": False},
}
NETNS: dict[str, Any] = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": ["sink"]}}
LOCAL: dict[str, Any] = {"robot": {"launcher": "local"}, "base": {"launcher": "local", "runs": ["sink"]}}

TWO = """
topics:
  first: {adapter: cyclonedds}
  second: {adapter: fastdds}
nodes:
  source: {trigger: timer, publishes: [first]}
  relay: {trigger: any, subscribes: [first], publishes: [second]}
  sink: {trigger: any, subscribes: [second]}
"""


@pytest.fixture
def adapters(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Adapter]:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setitem(SPECIAL, "tcp", TCP)
    policies = {"policies": ["partition", "lifespan"]}
    monkeypatch.setitem(SPECIAL, "fastdds", {"scope": "network", "abilities": {**ABILITIES, **policies}})
    return write_adapters(tmp_path)


def expanded(adapters: dict[str, Adapter], matrix: dict[str, Any], **top: Any) -> Expansion:
    matrix = {"adapter": "fastdds", "workload": "pipeline-3", "link": "lossy-5", **matrix}
    return expand(study_from_mapping({"name": "x", "matrix": matrix, **top}, "test"), adapters, (0, 1))


def test_one_row_for_each_work(adapters: dict[str, Adapter]) -> None:
    matrix = {"payload": ["64B", "1KB"], "reliability": ["best_effort", "reliable"], "type": "bytes"}
    cells = expanded(adapters, matrix, options={"fastdds": {}}).cells
    rows = [cell for cell in cells if cell.adapters == ("tcp",)]
    assert [cell.id for cell in rows] == [
        "tcp/pipeline-3/64B/bytes/best_effort/link-lossy-5",
        "tcp/pipeline-3/1KB/bytes/best_effort/link-lossy-5",
    ]
    keys = {work_key(cell.columns()) for cell in rows}
    assert len(cells) == 6 and {work_key(cell.columns()) for cell in cells} == keys


def test_the_row_has_nothing_but_the_transfer(adapters: dict[str, Adapter]) -> None:
    matrix = {"type": "fixed", "durability": "transient_local", "partition": "a", "lifespan": "1s"}
    variants = {"variants": {"more": {"fastdds": {}, "env": {"X": "1"}}}}
    found = expanded(adapters, {**matrix, "variant": ["more"]}, **variants)
    (row,) = [cell for cell in found.cells if cell.adapters == ("tcp",)]
    point = row.factors
    assert (point.type, point.durability, point.partition, point.lifespan_ns) == (
        "bytes",
        "volatile",
        "none",
        0,
    )
    assert row.environment == {} and point.variant == "none" and row.link is not None


def test_no_row_where_there_is_one_or_none_is_wanted(adapters: dict[str, Adapter]) -> None:
    def rows(matrix: dict[str, Any], **top: Any) -> int:
        return sum(cell.adapters == ("tcp",) for cell in expanded(adapters, matrix, **top).cells)

    assert rows({}) == 1
    assert rows({"adapter": ["fastdds", "tcp"]}) == 1
    assert rows({}, transfer="off") == 0
    assert rows({"link": "none"}) == 0
    assert rows({}, exclude=["tcp/*"]) == 0
    across = {"link": "none", "network": "host", "hosts": "robot+base"}
    assert rows(across, hosts=NETNS) == 1
    assert rows(across, hosts=LOCAL) == 0


def test_work_that_tcp_can_not_do_is_excluded_with_the_reason(adapters: dict[str, Adapter]) -> None:
    (left_out,) = expanded(adapters, {"start": "publisher-first"}).excluded
    assert left_out.cell.startswith("tcp/")
    assert left_out.reason.startswith("a transfer beside other cells: tcp ")


def test_topics_with_adapters_of_their_own_have_a_row_too(
    adapters: dict[str, Adapter], tmp_path: Path
) -> None:
    """All of it is plain TCP there."""
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    hosts = {"link": "none", "network": "host", "hosts": "robot+base"}
    cells = expanded(adapters, {"workload": str(path), **hosts}, hosts=NETNS).cells
    mixed, row = cells
    assert mixed.adapters == ("cyclonedds", "fastdds") and row.adapters == ("tcp",)
    assert work_key(mixed.columns()) == work_key(row.columns())
