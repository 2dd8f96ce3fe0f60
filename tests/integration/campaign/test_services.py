# SPDX-License-Identifier: Apache-2.0
"""Request and reply, and actions, over middleware that has them: every leg has its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from campaign_support import lagometer
from needs import need

WORK_NS = 2_000_000


def carried_out(tmp_path: Path, matrix: str) -> dict[str, Any]:
    need("netns")
    (tmp_path / "study.yaml").write_text(f"name: s\nduration: 500ms\ndrain: 2s\nmatrix: {matrix}\n")
    out = tmp_path / "out"
    code, said, errors = lagometer(
        tmp_path, "run", str(tmp_path / "study.yaml"), "--out", str(out), "--no-report", "--json"
    )
    assert code == 0, said[-2000:] + errors[-2000:]
    code, said, errors = lagometer(tmp_path, "show", str(out), "--json")
    assert code == 0, errors
    found: dict[str, Any] = json.loads(said)
    return found


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("adapter", "factors"),
    [
        ("zeromq", "dispatch: waitset"),
        ("zeromq", "dispatch: waitset, placement: single-process, threads: per-process"),
        ("nng", "dispatch: listener"),
        ("nng", "dispatch: waitset, placement: single-process, threads: per-process"),
        ("zenoh", "dispatch: listener"),
        ("zenoh-py", "dispatch: waitset"),
        ("ecal-py", "dispatch: listener"),
        ("ecal-py", "dispatch: waitset"),
        ("iceoryx", "dispatch: listener"),
        ("iceoryx", "dispatch: waitset"),
        ("iceoryx2", "dispatch: waitset"),
        ("iceoryx2", "dispatch: poll, placement: single-process, threads: per-process"),
        ("hiroz", "dispatch: listener"),
        ("hiroz", "dispatch: waitset"),
        ("ros1", "dispatch: listener"),
        ("ros1", "dispatch: waitset"),
        ("ros1", "dispatch: waitset, placement: single-process, threads: per-process"),
        ("ros2_rust", "dispatch: waitset"),
        ("ros2", "dispatch: listener"),
        ("ros2", "dispatch: waitset"),
        ("ros2-py", "dispatch: listener"),
        ("ros2-py", "dispatch: waitset"),
    ],
)
def test_each_client_gets_the_replies_to_its_own_requests(tmp_path: Path, adapter: str, factors: str) -> None:
    """A reply to another's would fail the trial as misdelivered, and one too few be lost."""
    need(adapter)
    matrix = f"{{adapter: {adapter}, workload: request-reply, rate: 50Hz, work: busy-2ms, {factors}}}"
    found = carried_out(tmp_path, matrix)
    chains = {chain["chain"]: chain for chain in found["chains"]}
    assert set(chains) == {"plan.driver", "plan.operator"}
    for chain in chains.values():
        assert chain["n"] >= 20
        assert chain["lost"] == 0
        # The server's work is in the whole, and not in the half round trip.
        assert chain["computation_p50_ns"] >= WORK_NS
        assert chain["half_round_trip_p50_ns"] < chain["whole_p50_ns"] / 2


@pytest.mark.by_turn
@pytest.mark.parametrize(
    "adapter", ["zeromq", "nng", "hiroz", "iceoryx", "iceoryx2", "ecal-py", "ros1", "ros2", "ros2-py"]
)
def test_an_action_has_a_goal_feedback_and_a_result(tmp_path: Path, adapter: str) -> None:
    need(adapter)
    matrix = f"{{adapter: {adapter}, workload: action, rate: 45Hz, work: busy-2ms}}"
    found = carried_out(tmp_path, matrix)
    (chain,) = found["chains"]
    assert (chain["chain"], chain["lost"]) == ("navigate", 0)
    assert chain["computation_p50_ns"] >= 3 * WORK_NS  # three steps


def test_requests_that_wait_together_are_each_answered(tmp_path: Path) -> None:
    """A server that is busy finds five at once, as many as iceoryx lends it."""
    need("iceoryx")
    found = carried_out(tmp_path, "{adapter: iceoryx, workload: request-reply, rate: 100Hz, work: busy-12ms}")
    assert found["valid"] == 1
