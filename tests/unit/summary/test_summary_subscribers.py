# SPDX-License-Identifier: Apache-2.0
"""Subscribers as they come and go, and named chains: from `cells.parquet` to the tables of every view."""

from __future__ import annotations

from io import StringIO
from typing import Any

import polars as pl
from rich.console import Console

from lagometer.cli.show.chains import render_chains
from lagometer.cli.show.subscribers import render_joined, render_served
from lagometer.store.format import FIGURES_SCHEMA
from lagometer.summary.cell_data import Joined, Served
from lagometer.summary.chains import chains
from lagometer.summary.data import Cell
from lagometer.summary.subscribers import joined, served


def cells(*names: str) -> list[Cell]:
    empty: dict[str, Any] = {"factors": {}, "axes": {}, "edges": [], "trials": []}
    return [Cell(id=name, adapter="a", bare=False, payload_bytes=64, **empty) for name in names]


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{**dict.fromkeys(FIGURES_SCHEMA), **row} for row in rows], schema=FIGURES_SCHEMA)


def trial(cell: str, number: int, fairness: tuple[float | None, float | None], *lost: int | None) -> Any:
    common = {"cell": cell, "trial": number, "valid": True, "n": 5}
    ratio, correlation = fairness
    whole = {"fairness_p50_ratio": ratio, "fairness_order_correlation": correlation}
    yield {**common, **whole, "edge": "end-to-end"}
    for place, count in enumerate(lost):
        yield {**common, "edge": f"source→sink-{place}", "initial_lost": count}


def text_of(render: Any, rows: Any) -> str:
    written = StringIO()
    render(rows, Console(file=written, width=200, no_color=True))
    return written.getvalue()


def test_how_evenly_subscribers_are_served_is_the_middle_of_the_trials() -> None:
    rows = frame(
        *trial("b", 0, (2.0, 1.0), 0, 7),
        *trial("b", 1, (4.0, 0.5), 3, 1),
        *trial("a", 0, (None, None), 0),  # one subscriber, which missed nothing
        *trial("c", 0, (None, None), None, 12),
    )
    assert served(rows, cells("c", "b", "a")) == [
        Served(cell="c", trials=1, p50_ratio=None, order_correlation=None, initial_lost=12.0),
        Served(cell="b", trials=2, p50_ratio=3.0, order_correlation=0.75, initial_lost=5.0),
    ]
    shown = text_of(render_served, served(rows, cells("b")))
    assert [word in shown for word in ("3", "+0.75", "5")] == [True] * 3
    assert text_of(render_served, []) == ""
    assert served(rows.drop("initial_lost"), cells("b")) == [], "a campaign of an older version"


def test_a_failed_trial_tells_nothing_of_its_subscribers() -> None:
    rows = frame(*trial("a", 0, (2.0, None), 9)).with_columns(valid=pl.lit(value=False))
    assert served(rows, cells("a")) == [] and joined(rows, cells("a")) == []


def test_what_joins_or_leaves_has_a_row_for_each_edge_it_concerns() -> None:
    common = {"cell": "a", "valid": True}
    newcomer = {"join_process_ns": 10, "join_participant_ns": 20}
    rows = frame(
        {**common, "trial": 0, "edge": "s→late", **newcomer, "join_first_message_ns": 30},
        {**common, "trial": 1, "edge": "s→late", **newcomer, "join_first_message_ns": 50},
        {**common, "trial": 0, "edge": "s→stays", "joining_gap_max_ns": 70, "leaving_gap_max_ns": 8},
        {**common, "trial": 1, "edge": "s→stays", "joining_gap_max_ns": 60},
        {**common, "trial": 0, "edge": "end-to-end"},
    )
    absent: dict[str, Any] = dict.fromkeys(Joined.model_fields)
    late = {"process_ns": 10, "participant_ns": 20, "first_message_ns": 40}
    stays = {"joining_gap_max_ns": 70, "leaving_gap_max_ns": 8}
    found = joined(rows, cells("a"))
    assert found == [
        Joined(**{**absent, "cell": "a", "edge": "s→late", "trials": 2, **late}),
        Joined(**{**absent, "cell": "a", "edge": "s→stays", "trials": 2, **stays}),
    ]
    shown = text_of(render_joined, found)
    assert "s→late" in shown and "40 ns" in shown and "70 ns" in shown
    assert "latency, joining" not in shown, "a column that no row has"
    assert text_of(render_joined, []) == "" and joined(rows.drop("join_process_ns"), cells("a")) == []


def test_a_chain_has_its_best_and_worst_path_and_both_reactions() -> None:
    ages = {"age_mean_ns": 3.0, "age_best_ns": 2, "age_worst_ns": 5}
    figures = {"whole_p50_ns": 1, **ages, "reaction_p50_ns": 8, "reaction_max_ns": 9}
    row = {"cell": "a", "trial": 0, "valid": True, "edge": "there-and-back", "n": 1, **figures}
    (chain,) = chains(frame(row), cells("a"))
    assert (chain.age_mean_ns, chain.age_best_ns, chain.age_worst_ns) == (3, 2, 5)
    assert (chain.reaction_p50_ns, chain.reaction_max_ns) == (8, 9)
    shown = text_of(render_chains, [chain])
    for heading in ("data age", "best", "worst", "reaction p50", "reaction max"):
        assert heading in shown


def test_a_chain_says_how_many_messages_nobody_was_there_to_pass_on() -> None:
    row = {"cell": "a", "trial": 0, "valid": True, "edge": "way", "n": 5, "lost": 0, "whole_p50_ns": 1}
    (without,) = chains(frame(row), cells("a"))
    assert without.unreachable == 0 and "unreachable" not in text_of(render_chains, [without])
    (chain,) = chains(frame({**row, "unreachable": 3}, {**row, "trial": 1, "unreachable": 1_000}), cells("a"))
    assert (chain.unreachable, chain.lost, chain.unanswered) == (1_003, 0, 0)
    shown = text_of(render_chains, [chain])
    assert "unreachable" in shown and "1,003" in shown and "unanswered" not in shown
