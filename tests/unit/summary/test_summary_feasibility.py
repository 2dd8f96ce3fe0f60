# SPDX-License-Identifier: Apache-2.0
"""What is possible at all: each verdict from figures or a reason, a line for cells that differ in payload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lagometer.store.reader import Campaign
from lagometer.summary.feasibility import feasibility

SIZES = (64, 1024)


def row(
    cell: str, *, n: int = 1000, late: float | None = 0.0, reasons: tuple[str, ...] = (), **lost: int
) -> dict[str, Any]:
    counts = {"lost": 0, "overwritten": 0, "censored": 0, "rejected": 0, **lost}
    return {
        "cell": cell,
        "edge": "end-to-end",
        "valid": not reasons,
        "n": n,
        "deadline_miss_share": late,
        "reasons": list(reasons),
        **counts,
    }


def campaign(
    rows: list[dict[str, Any]], deadline_ns: int | None = 100, excluded: tuple[tuple[str, str], ...] = ()
) -> Campaign:
    study = {"deadline_ns": deadline_ns, "matrix": {"payload": list(SIZES)}}
    cells = [{"id": cell} for cell in dict.fromkeys(each["cell"] for each in rows)]
    manifest = {
        "study": study,
        "cells": cells,
        "excluded": [{"cell": cell, "reason": reason} for cell, reason in excluded],
    }
    overrides = {"deadline_miss_share": pl.Float64(), "reasons": pl.List(pl.String())}
    return Campaign(Path("out"), manifest, {}, pl.DataFrame(rows, schema_overrides=overrides), ())


@pytest.mark.parametrize(
    ("figures", "verdict", "why"),
    [
        ({}, "possible", ""),
        ({"late": 0.011}, "late", "1.1% of the deadlines were missed"),
        ({"late": 0.01}, "possible", ""),
        ({"lost": 1}, "possible", ""),
        ({"n": 998, "lost": 1, "overwritten": 1}, "lossy", "0.2% of the messages did not arrive"),
        ({"n": 400, "censored": 600}, "halt", "60% of the messages did not arrive"),
        ({"n": 0, "reasons": ("worker-hung: sink",)}, "halt", "worker-hung: sink"),
    ],
)
def test_each_verdict_and_why(figures: dict[str, Any], verdict: str, why: str) -> None:
    (line,) = feasibility(campaign([row("udp/64B/reliable", **figures)]))
    assert line.series == "udp/reliable"
    assert [(each.verdict, each.why) for each in line.payloads] == [(verdict, why)]


def test_what_can_not_exist_is_by_size_or_by_configuration_and_what_is_not_here_is_neither() -> None:
    excluded = (
        ("udp/1KB/reliable", "udp carries at most 512 B: the largest datagram"),
        ("tcp/64B/reliable", "tcp does not offer reliability 'best_effort' (it offers: reliable)"),
        ("connext/64B/reliable", "not found: NDDSHOME is not set"),
        ("lan/64B/reliable", "needs two hosts"),
    )
    lines = feasibility(campaign([row("udp/64B/reliable")], excluded=excluded))
    found = {line.series: [(each.payload_bytes, each.verdict) for each in line.payloads] for line in lines}
    assert found == {
        "udp/reliable": [(64, "possible"), (1024, "size")],
        "tcp/reliable": [(64, "configuration")],
    }


def test_trials_that_failed_make_nothing_possible_and_those_of_the_machine_tell_nothing() -> None:
    """Nor does a cell that has not run yet: the manifest lists it from the start."""
    rows = [
        row("tcp/64B", reasons=("corrupted: 1000 messages",)),
        row("nng/64B", reasons=("saturated: source published 9 of 10 messages",)),
        row("lcm/64B", n=0, reasons=("agent-lost: base",)),
        row("udp/64B", n=0, reasons=("agent-lost: base",)),
        row("udp/64B"),
    ]
    given = campaign(rows)
    given.manifest["cells"].append({"id": "shm/64B"})
    found = {line.series: [(each.verdict, each.why) for each in line.payloads] for line in feasibility(given)}
    assert found == {
        "tcp": [("failed", "corrupted: 1000 messages")],
        "nng": [("possible", "")],
        "udp": [("possible", "")],
    }


def test_a_study_without_a_deadline_has_no_such_table() -> None:
    assert feasibility(campaign([row("udp/64B")], deadline_ns=None)) == []


def test_a_deadline_of_a_part_is_enough() -> None:
    found = campaign([row("a/udp/64B/reliable", late=0.5)], deadline_ns=None)
    found.manifest["study"]["parts"] = {"a": {"deadline_ns": 100}, "b": {"deadline_ns": None}}
    (line,) = feasibility(found)
    assert [each.verdict for each in line.payloads] == ["late"]


def test_a_part_may_have_payloads_that_the_others_have_not() -> None:
    found = campaign([row("a/udp/64B"), row("b/udp/64B"), row("b/udp/2KB", n=0)])
    found.manifest["study"]["parts"] = {"a": {}, "b": {"matrix": {"payload": [64, 2048]}}}
    lines = {line.series: [each.verdict for each in line.payloads] for line in feasibility(found)}
    assert lines == {"a/udp": ["possible"], "b/udp": ["possible", "halt"]}


@pytest.mark.parametrize(("counts", "said"), [((0, 0), False), ((0, 3), True), ((None, None), None)])
def test_initial_loss_is_that_of_any_subscriber(counts: tuple[int | None, ...], said: bool | None) -> None:
    rows = [{**row("udp/64B/reliable"), "initial_lost": None}]
    rows += [{**rows[0], "edge": f"source→{sink}", "initial_lost": lost} for sink, lost in enumerate(counts)]
    (line,) = feasibility(campaign(rows))
    assert [each.initial_loss for each in line.payloads] == [said]
