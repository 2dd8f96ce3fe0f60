# SPDX-License-Identifier: Apache-2.0
"""Servers that start late, leave or restart, and clients that start late, over real middleware."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import lagometer, running, unexplained
from needs import need

PERIOD_NS = 20_000_000
NODES = """
nodes:
  driver: {{trigger: timer, rate: 50Hz, requests: [plan]{driver}}}
  planner: {{trigger: request, service: plan{planner}}}
"""
ACTION = """
nodes:
  pilot: {trigger: timer, rate: 20Hz, goals: [go]}
  navigator: {trigger: goal, action: go, feedback: 2, restart: 900ms}
"""
ATTEMPTS = 3  # a machine at work may stand still for a message or two


class Carried:
    """A campaign of one trial that nothing was wrong with."""

    def __init__(self, folder: Path, out: Path) -> None:
        code, said, errors = lagometer(folder, "show", str(out), "--json")
        assert code == 0, errors
        self.shown: dict[str, Any] = json.loads(said)
        self.rows = {
            str(row["edge"]): row for row in pl.read_parquet(out / "cells.parquet").iter_rows(named=True)
        }
        (path,) = (out / "samples").rglob("*.parquet")
        text = pl.col("edge", "phase", "outcome").cast(pl.String)
        self.samples = pl.read_parquet(path).with_columns(text)

    def calls(self, *chains: str) -> pl.DataFrame:
        """The calls of the measure phase, by when they were due."""
        due = pl.coalesce("intended_ns", "publish_ns").alias("due_ns")
        measured = (pl.col("phase") == "measure") & pl.col("edge").is_in(chains)
        return self.samples.filter(measured).with_columns(due).sort("due_ns")


def carried_out(tmp_path: Path, adapter: str, workload: str, **factors: str) -> Carried:
    """The first of a few campaigns in which the machine kept the rate; any other reason fails the test."""
    need("netns")
    need(adapter)
    (tmp_path / "asked.yaml").write_text(workload)
    matrix = json.dumps({"adapter": adapter, "workload": "asked.yaml", **factors})
    (tmp_path / "study.yaml").write_text(f"name: s\nduration: 2s\ndrain: 1s\nmatrix: {matrix}\n")
    for attempt in range(ATTEMPTS):
        out = tmp_path / f"out{attempt}"
        _, said, errors = lagometer(
            tmp_path, "run", str(tmp_path / "study.yaml"), "--out", str(out), "--no-report", "--json"
        )
        tally = json.loads(said or "{}")
        assert tally.get("valid", 0) + tally.get("failed", 0) == 1, said[-2000:] + errors[-2000:]
        if tally["valid"]:
            return Carried(tmp_path, out)
        reasons = [reason for each in tally["failures"] for reason in each["reasons"]]
        assert not unexplained(reasons), reasons
    pytest.fail(f"in {ATTEMPTS} attempts the machine never kept the rate")


def each_call_once(calls: pl.DataFrame) -> None:
    """No call is missing, and none is counted twice."""
    numbers = calls["sequence"].to_list()
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


RESTARTED = NODES.format(driver="", planner=", restart: 900ms")


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("adapter", "dispatch"),
    [
        ("zeromq", "waitset"),
        ("zeromq", "poll"),
        ("nng", "listener"),
        ("nng", "waitset"),
        ("zenoh", "listener"),
        ("zenoh-py", "waitset"),
        ("ecal-py", "listener"),
        ("iceoryx", "listener"),
        ("iceoryx", "waitset"),
        ("iceoryx2", "waitset"),
        ("hiroz", "listener"),
        ("hiroz", "waitset"),
        ("ros1", "listener"),
        ("ros1", "waitset"),
        ("ros2_rust", "waitset"),
        ("ros2", "listener"),
        ("ros2", "waitset"),
        ("ros2-py", "waitset"),
    ],
)
def test_a_server_restarts_and_its_calls_are_accounted_for(
    tmp_path: Path, adapter: str, dispatch: str
) -> None:
    found = carried_out(tmp_path, adapter, RESTARTED, dispatch=dispatch)
    before, after = found.rows["plan"], found.rows["plan-again"]
    assert before["n"] > 0 and after["n"] > 0
    assert after["join_first_message_ns"] > 0 and before["join_first_message_ns"] is None
    calls = found.calls("plan", "plan-again")
    each_call_once(calls)
    # The new server's first answer is to a call that was due after those that nobody could answer.
    of_new = calls.filter(pl.col("edge") == "plan-again")
    away = of_new.filter(pl.col("outcome") == "unanswered")["due_ns"].to_list()
    answered = of_new.filter(pl.col("outcome") == "delivered")["due_ns"].to_list()
    assert max(away, default=0) < min(answered)
    # None of the valid latencies contains the absence.
    assert found.rows["end-to-end"]["n"] == before["n"] + after["n"]
    shown = {each["chain"]: each for each in found.shown["chains"]}
    assert shown["plan-again"]["join_first_message_ns"] == after["join_first_message_ns"]
    assert shown["plan-again"]["unanswered"] == after["unanswered"]


def test_the_new_server_is_let_in_when_the_old_one_has_gone(tmp_path: Path) -> None:
    """It ends its work first, which takes it longer than the new one to start."""
    need("netns")
    need("zeromq")
    slow = NODES.format(driver="", planner=", work: busy-650ms, restart: 900ms")
    (tmp_path / "asked.yaml").write_text(slow)
    matrix = "{adapter: zeromq, workload: asked.yaml}"
    (tmp_path / "study.yaml").write_text(f"name: s\nduration: 1s\nmatrix: {matrix}\n")
    with running(
        tmp_path, "run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out"), "--no-report"
    ) as run:
        run.end()
        said = [(each["worker"], each["said"]) for each in run.events() if each["event"] == "said"]
    old, new = 1, 2
    assert said.index((old, "bye")) < said.index((new, "hello"))


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", ["zeromq", "nng", "zenoh", "iceoryx", "iceoryx2", "hiroz", "ros2_rust"])
def test_a_server_starts_late(tmp_path: Path, adapter: str) -> None:
    found = carried_out(tmp_path, adapter, NODES.format(driver="", planner=", start: 1s"))
    row = found.rows["plan"]
    # From the beginning of the measure phase, 300 ms after the start, until it is there.
    assert row["unanswered"] >= (700_000_000 - PERIOD_NS) // PERIOD_NS
    assert row["n"] > 0 and row["join_first_message_ns"] > 0
    each_call_once(found.calls("plan"))


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", ["zeromq", "nng", "zenoh", "iceoryx", "iceoryx2", "hiroz", "ros2_rust"])
def test_a_server_leaves_for_good(tmp_path: Path, adapter: str) -> None:
    """Whether its client's calls are rejected, kept or dropped: the trial is valid, and none is forgotten."""
    found = carried_out(tmp_path, adapter, NODES.format(driver="", planner=", stop: 1300ms"))
    row = found.rows["plan"]
    assert row["n"] > 0 and row["unanswered"] >= 1_000_000_000 // PERIOD_NS - 5
    assert row["join_first_message_ns"] is None
    calls = found.calls("plan")
    each_call_once(calls)
    assert set(calls.tail(40)["outcome"]) == {"unanswered"}


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", ["zeromq", "nng", "zenoh", "iceoryx", "iceoryx2", "hiroz", "ros2_rust"])
def test_a_client_starts_late(tmp_path: Path, adapter: str) -> None:
    found = carried_out(tmp_path, adapter, NODES.format(driver=", start: 900ms", planner=""))
    row = found.rows["plan"]
    assert row["n"] > 0 and row["join_first_message_ns"] > 0
    each_call_once(found.calls("plan"))


def test_the_server_of_an_action_restarts(tmp_path: Path) -> None:
    found = carried_out(tmp_path, "zeromq", ACTION)
    before, after = found.rows["go"], found.rows["go-again"]
    assert before["n"] > 0 and after["n"] > 0
    assert after["join_first_message_ns"] > 0
    each_call_once(found.calls("go", "go-again"))
