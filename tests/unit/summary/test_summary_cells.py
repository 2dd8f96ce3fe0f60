# SPDX-License-Identifier: Apache-2.0
"""What report and `show` say of whole cells is what cells.parquet and estimates.parquet say."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from lagometer.cli.show import command as show
from lagometer.cli.show.cells import achieved, percent
from lagometer.report.build import build_report
from lagometer.report.data import Report
from lagometer.stats.cell.campaign_estimates import make_estimates
from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary.deadlines import deadlines
from lagometer.summary.lost_tails import lost_tails

ROOT = Path(__file__).parents[3]
from judged_campaign import LOST_QUANTILES, add_columns  # noqa: E402
from synthetic_campaign import Shape, with_estimates, write_campaign  # noqa: E402

SHAPE = Shape(
    adapters=("shm", "udp", "cyclonedds"), payloads_bytes=(64,), reliabilities=("best_effort",), messages=1200
)
DEADLINE_NS, K = 100_000, 7
UDP = "udp/pipeline-3/64B/500Hz/best_effort/process-per-node"


def made(folder: Path, trials: int) -> Path:
    directory: Path = write_campaign(folder, replace(SHAPE, trials=trials))
    add_columns(directory, DEADLINE_NS, K, loaded="cyclonedds")
    return directory


@pytest.fixture(scope="module", params=[2, 7], ids=["two trials", "seven trials"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_estimates(made(tmp_path_factory.mktemp("campaign"), request.param))


@pytest.fixture(scope="module")
def report(directory: Path) -> Report:
    return build_report(open_campaign(directory))


@pytest.fixture(scope="module")
def groups(directory: Path) -> dict[tuple[str, str], pl.DataFrame]:
    """The valid rows of cells.parquet by cell and edge."""
    cells = pl.read_parquet(directory / "cells.parquet").filter("valid")
    return {(str(cell), str(edge)): rows for (cell, edge), rows in cells.group_by("cell", "edge")}


@pytest.fixture(scope="module")
def estimates(directory: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = pl.read_parquet(directory / form.ESTIMATES).iter_rows(named=True)
    return {(row["cell"], row["edge"], row["quantity"]): row for row in rows}


def test_deadlines_are_those_of_all_valid_trials(report: Report, groups: Any, estimates: Any) -> None:
    assert {(each.cell, each.edge) for each in report.deadlines} == set(groups)
    shares = set()
    for each in report.deadlines:
        rows = groups[each.cell, each.edge]
        assert (each.trials, each.deadline_ns, each.k) == (rows.height, DEADLINE_NS, K)
        assert (each.missed, each.due) == (rows["deadline_missed"].sum(), rows["deadline_due"].sum())
        assert each.miss_share == pytest.approx(each.missed / each.due)  # trials are of one length
        assert each.run_max == rows["deadline_run_max"].max()
        assert each.met_of_k_min == rows["deadline_met_of_k_min"].min()
        assert each.data_age_max_ns == rows["data_age_max_ns"].max()
        assert each.cpu_per_message_ns == rows["cpu_per_message_ns"].median()
        estimate = estimates[each.cell, each.edge, "deadline_miss_share"]
        assert (each.miss_share_low, each.miss_share_high) == (estimate["low_share"], estimate["high_share"])
        assert each.needed_trials == (None if rows.height >= 6 else 6)
        if rows.height >= 6:
            assert (
                each.miss_share_low <= each.miss_share == estimate["estimate_share"] <= each.miss_share_high
            )
            assert each.miss_share_high > 0
        shares.add(each.miss_share)
    assert len(shares) > 3 and max(shares) > 0.01


def test_end_to_end_comes_first_and_cells_in_the_studys_order(report: Report) -> None:
    cells = [cell.id for cell in report.cells]
    places = [(cells.index(each.cell), each.edge != "end-to-end") for each in report.deadlines]
    assert places == sorted(places)


def infinite_if_lost(row: dict[str, Any], name: str) -> float | None:
    value = row[f"latency_{name}_lost_ns"]
    share = row["latency_infinite_from"]
    return math.inf if value is None and share is not None and LOST_QUANTILES[name] > share else value


def test_tails_stand_with_the_lost_as_infinite(report: Report, groups: Any, estimates: Any) -> None:
    losing = {key for key, rows in groups.items() if rows["lost"].sum()}
    assert {(each.cell, each.edge) for each in report.lost_tails} == losing and losing
    assert all(cell == UDP for cell, _ in losing)
    kinds = set()
    for each in report.lost_tails:
        rows = groups[each.cell, each.edge]
        assert (each.n, each.lost) == (rows["n"].sum(), rows["lost"].sum())
        assert each.arrived_share == pytest.approx(rows["latency_infinite_from"].fill_null(1.0).mean())
        summary = next(
            r for r in report.rows if r.trial is None and (r.cell, r.edge) == (each.cell, each.edge)
        )
        for one in each.quantiles:
            name = one.figure.removeprefix("latency_").removesuffix("_ns")
            assert one.delivered_ns == getattr(summary, one.figure)
            estimate = estimates[each.cell, each.edge, f"latency_{name}_lost"]
            kinds.add((one.of, one.infinite))
            if estimate["status"] == "ok":
                assert (one.of, one.interval) == ("messages", True)
                assert (one.value_ns, one.low_ns) == (estimate["estimate_ns"], estimate["low_ns"])
                assert (one.high_ns, one.infinite) == (estimate["high_ns"], estimate["estimate_ns"] is None)
            else:
                known = [infinite_if_lost(row, name) for row in rows.iter_rows(named=True)]
                middle = None if None in known else median(known)
                assert (one.of, one.interval) == ("trials", False)
                assert one.infinite == (middle == math.inf)
                assert one.value_ns == (None if one.infinite else middle)
            if one.value_ns is not None and one.delivered_ns is not None:
                assert one.value_ns >= one.delivered_ns
    assert {infinite for _, infinite in kinds} == {True, False}


def test_load_beside_the_workers_is_told_per_cell(report: Report, groups: Any) -> None:
    [found] = report.interference
    rows = groups[found.cell, "end-to-end"]
    assert found.cell.startswith("cyclonedds/") and (found.load, found.unit) == ("network-2", "bytes")
    assert found.cpu_ns == rows["interference_cpu_ns"].median()
    assert found.achieved_per_s == rows["interference_achieved_per_s"].median()
    if rows.height >= 6:
        assert (found.cpu_low_ns, found.cpu_high_ns) == (
            rows["interference_cpu_ns"].min(),
            rows["interference_cpu_ns"].max(),
        )
    else:
        assert found.cpu_low_ns is found.achieved_high_per_s is None


def test_show_says_the_same(directory: Path, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    show.command(directory, edge="*", json=True)
    found = json.loads(capsys.readouterr().out)
    wanted = {
        "deadlines": report.deadlines,
        "lost_as_infinite": report.lost_tails,
        "interference": report.interference,
    }
    for name, each in wanted.items():
        assert found[name] == [one.model_dump() for one in each]
    show.command(directory, json=True)
    chosen = json.loads(capsys.readouterr().out)
    assert {each["edge"] for each in chosen["deadlines"]} == {"end-to-end"}
    show.command(directory, cell="shm/*", json=True)
    chosen = json.loads(capsys.readouterr().out)
    assert {each["cell"].split("/")[0] for each in chosen["deadlines"]} == {"shm"}
    assert chosen["lost_as_infinite"] == chosen["interference"] == []


def test_the_terminal_has_a_table_of_each(directory: Path, report: Report) -> None:
    text = io.StringIO()
    show.render(directory, Console(file=text, width=250))
    printed = text.getvalue()
    assert "deadline of 100 µs" in printed and "load beside the workers" in printed
    for each in report.deadlines:
        if each.edge == "end-to-end":
            [line] = [
                one
                for one in printed.splitlines()
                if one.strip().startswith(each.cell)
                and all(part in one for part in (" of ", " % "))
                and " trials): " not in one
            ]  # a finding names the cell, too, as does the table of noise
            assert f"{each.missed} of {each.due}" in line and percent(each.miss_share) in line
            assert ("needs 6 trials" in line) == (each.needed_trials is not None)
    shown = [one for each in report.lost_tails if each.edge == "end-to-end" for one in each.quantiles]
    infinite = any(one.infinite for one in shown if one.figure != "latency_p999_ns")
    assert "p99 with lost" in printed and ("∞" in printed) == infinite
    assert achieved(report.interference[0].achieved_per_s, "bytes") in printed


def test_a_campaign_without_any_says_nothing(tmp_path: Path) -> None:
    directory = write_campaign(
        tmp_path, Shape(adapters=("shm",), payloads_bytes=(64,), trials=1, messages=50)
    )
    found = build_report(open_campaign(directory))
    assert found.deadlines == found.lost_tails == found.interference == []
    text = io.StringIO()
    show.render(directory, Console(file=text, width=250))
    assert not any(word in text.getvalue() for word in ("deadline", "with lost", "load beside"))


def test_what_an_older_lagometer_wrote_has_no_interval_and_is_shown(tmp_path: Path) -> None:
    """Neither `deadline_due` nor rows of estimates.parquet for shares and losses."""
    directory = made(tmp_path, 7)
    campaign = open_campaign(directory)
    old = (
        make_estimates(campaign)
        .filter(pl.col("quantity").str.contains("^(latency|response)_p[0-9]+$"))
        .drop(form.SHARES)
    )
    old.write_parquet(directory / "estimates.parquet")
    cells = campaign.cells.with_columns(deadline_due=pl.lit(None, dtype=pl.Int64()))
    found = {(each.cell, each.edge): each for each in deadlines(cells, old)}
    for (cell, edge), rows in cells.filter("valid").group_by("cell", "edge"):
        each = found[str(cell), str(edge)]
        assert each.miss_share == pytest.approx(rows["deadline_miss_share"].mean())
        assert each.miss_share_low is each.needed_trials is None
        assert each.due in (None, rows.height * SHAPE.messages)
    assert {one.of for each in lost_tails(cells, old) for one in each.quantiles} == {"trials"}
    whole = build_report(campaign)
    assert [each.miss_share_low for each in whole.deadlines] == [None] * len(whole.deadlines)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0.0, "0 %"),
        (0.00012, "0.012 %"),
        (0.05, "5 %"),
        (0.123, "12.3 %"),
        (0.9, "90 %"),
        (6_599 / 6_600, "99.985 %"),
        (1.0, "100 %"),
    ],
)
def test_shares_have_as_many_figures_as_they_need(share: float | None, text: str) -> None:
    assert percent(share) == text
