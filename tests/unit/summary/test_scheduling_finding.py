# SPDX-License-Identifier: Apache-2.0
"""The finding that names who ran while messages waited for a CPU."""

from __future__ import annotations

from typing import Any

import pytest

from lagometer.summary.findings.evidence import CellEvidence, Said
from lagometer.summary.findings.scheduling import scheduling_findings
from lagometer.summary.scheduling_data import CellScheduling, LayerWaiting, RanInstead, WaitingShare

CELL = CellEvidence("udp/pipeline-2", {}, [])


def share(name: str = "kworker/1:0", **given: Any) -> WaitingShare:
    return WaitingShare(
        **{
            "messages": 20,
            "latency_ns": 3_100_000.0,
            "known_share": 1.0,
            "asleep_share": 0.02,
            "waiting_share": 0.97,
            "running_share": 0.01,
            "layers": [
                LayerWaiting(name="wake", stays=9, known=9, asleep_ns=1, waiting_ns=9_000.0, running_ns=1),
                LayerWaiting(name="transport", stays=9, known=9, asleep_ns=1, waiting_ns=3e6, running_ns=1),
            ],
            "instead": [RanInstead(name=name, share=0.9, threads=1, cpus=[1], longest_ns=2_900_000)],
            **given,
        }
    )


def found(slowest: WaitingShare | None, cell: str = CELL.cell) -> list[Said]:
    whole = CellScheduling(
        cell=cell,
        edge="source→sink",
        trials=3,
        p99_ns=3_000_000,
        whole=share(),
        slowest=slowest,
        in_node=[],
        because="",
    )
    return list(scheduling_findings(CELL, [whole]))


def test_it_names_who_ran_and_where() -> None:
    (said,) = found(share())
    assert (said.kind, said.trials) == ("waited-for-a-cpu", 3)
    assert said.what == "source→sink: p99 is 3.00 ms because kworker/1:0 ran on CPU 1"
    assert "the slowest 1 % of messages 97% is waiting for a CPU, most of it in transport" in said.number
    assert "90% of it" in said.number and "2.90 ms at once" in said.number
    assert "keep kworker/1:0 off" in said.fix


@pytest.mark.parametrize(
    ("name", "fix"),
    [("idle", "idling deeply"), ("node:source", "own threads"), ("lagometer-worke", "own threads")],
)
def test_what_to_do_depends_on_who_ran(name: str, fix: str) -> None:
    (said,) = found(share(name))
    assert fix in said.fix


def test_where_several_ran_none_alone_is_the_reason() -> None:
    several = [
        RanInstead(name=name, share=part, threads=1, cpus=[0, 1], longest_ns=1000)
        for name, part in (("a", 0.4), ("b", 0.3), ("c", 0.005))
    ]
    (said,) = found(share(instead=several))
    assert said.what.endswith("because others had the CPU: a ran on CPU 0, 1 (40%), b ran on CPU 0, 1 (30%)")


def test_where_less_than_half_is_waiting_the_part_is_said() -> None:
    (said,) = found(share(waiting_share=0.3))
    assert said.what.endswith("p99 is 3.00 ms, 30% of it because kworker/1:0 ran on CPU 1")


def test_what_is_not_known_is_said() -> None:
    (said,) = found(share(known_share=0.6))
    assert "97% of the 60% that is known is waiting" in said.number


def test_what_is_not_known_is_not_counted_as_waiting() -> None:
    """A few stays that waited are no reason for what the others did."""
    assert found(share(waiting_share=0.9, known_share=0.2)) == []
    (said,) = found(share(waiting_share=0.9, known_share=0.4))
    assert said.what.endswith("p99 is 3.00 ms, 36% of it because kworker/1:0 ran on CPU 1")


def test_nothing_is_said_where_little_is_waiting_or_nothing_is_known() -> None:
    assert found(share(waiting_share=0.24)) == []
    assert found(share(instead=[])) == []
    assert found(None) == []
    assert found(share(), cell="another") == []
