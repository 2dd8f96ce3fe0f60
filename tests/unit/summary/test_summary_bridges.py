# SPDX-License-Identifier: Apache-2.0
"""What a bridge takes of its messages' latency: on a campaign whose every stay is known."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest
from way_campaign import CELL, IN_NODE_NS, Made, whole_ns, write_ways

from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary import bridges as bridges_of
from lagometer.summary.bridges import bridges
from lagometer.summary.cell_data import Bridge

LATENCIES_NS = [20_000 + 100 * number for number in range(50)]


def bridge_of(directory: Path, node: str, trials: list[list[int]]) -> Bridge:
    """The row of a node that the manifest calls a bridge."""
    write_ways(directory, Made(trials, layers=False))
    manifest = json.loads((directory / form.MANIFEST).read_text())
    manifest["cells"][0]["bridges"] = {node: node}
    (directory / form.MANIFEST).write_text(json.dumps(manifest))
    (bridge,) = bridges(open_campaign(directory), [CELL])
    return bridge


def share(latencies_ns: list[int]) -> float:
    return fmean(IN_NODE_NS / whole_ns(latency_ns) for latency_ns in latencies_ns)


def test_the_share_is_the_mean_part_of_each_messages_latency(tmp_path: Path) -> None:
    bridge = bridge_of(tmp_path, "relay", [LATENCIES_NS])
    assert bridge.passed_on == len(LATENCIES_NS)
    assert bridge.stay_p50_ns == bridge.stay_p99_ns == IN_NODE_NS
    assert bridge.stay_share == pytest.approx(share(LATENCIES_NS))


def test_of_several_trials_the_middle_one_counts(tmp_path: Path) -> None:
    trials = [[factor * latency_ns for latency_ns in LATENCIES_NS] for factor in (4, 1, 2)]
    assert bridge_of(tmp_path, "relay", trials).stay_share == pytest.approx(share(trials[2]))


def test_of_many_messages_some_are_followed_evenly_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridges_of, "FOLLOWED", 11)
    bridge = bridge_of(tmp_path, "relay", [LATENCIES_NS])
    assert bridge.stay_share == pytest.approx(share(LATENCIES_NS[::5]))


def test_a_node_that_no_message_passes_has_no_share(tmp_path: Path) -> None:
    assert bridge_of(tmp_path, "sink", [LATENCIES_NS]).stay_share is None
