# SPDX-License-Identifier: Apache-2.0
"""The report, used in a real browser: what it shows is what cells.parquet says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from shown_cells import LIKE, LINKED

from lagometer.report import page
from lagometer.report.comparison import build_comparison
from lagometer.stats.compare.comparable import Comparison
from lagometer.store.reader import open_campaign
from lagometer.summary.findings.footnotes import footnotes
from lagometer.summary.summarise import summarise

ROOT = Path(__file__).parents[2]
COMPARED = (
    "n",
    "missing",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "latency_mean_ns",
    "response_p99_ns",
)
UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}


def in_ns(text: str) -> float:
    match = re.fullmatch(r"(-?[\d.]+)\s*(ns|µs|ms|s)", text.replace("\u202f", " "))
    assert match is not None, text
    return float(match[1]) * UNITS_NS[match[2]]


def leading(text: str) -> str:
    """The figure of a table's cell, without the interval below it."""
    match = re.match(r"-?[\d.]+\s*(ns|µs|ms|s)", text)
    assert match is not None, text
    return match[0]


def test_every_trial_figure_is_that_of_cells_parquet(seen: dict[str, Any], cells: pl.DataFrame) -> None:
    losses = pl.sum_horizontal("lost", "overwritten", "censored", "rejected")
    with_missing = cells.with_columns(missing=losses)
    stored = {(row["cell"], row["trial"], row["edge"]): row for row in with_missing.iter_rows(named=True)}
    compared = 0
    shown = {(row["cell"], row["trial"], row["edge"]): row for row in seen["trials"]}
    assert stored.keys() <= shown.keys()
    for key, row in stored.items():
        for column in COMPARED:
            exact = shown[key]["values"].get(column)
            assert exact == row[column], (key, column)
            text = shown[key]["texts"][column]
            if exact is None:
                assert text == "–"
            elif column.endswith("_ns"):
                assert in_ns(text) == pytest.approx(exact, rel=0.006)
            else:
                assert int(re.sub(r"\s", "", text)) == exact
            compared += 1
    assert compared >= 500


def test_rows_over_trials_have_the_estimates_with_their_intervals(
    seen: dict[str, Any], cells: pl.DataFrame, estimates: dict[tuple[str, str], dict[str, Any]]
) -> None:
    valid = cells.filter(pl.col("valid") & (pl.col("edge") == "end-to-end"))
    rows = {row["cell"]: row for row in seen["summary"]}
    assert rows.keys() == set(cells["cell"])
    with_interval = wanting = 0
    for cell, row in rows.items():
        of_cell = valid.filter(pl.col("cell") == cell)
        assert row["values"]["n"] == of_cell["n"].sum()
        for column in ("latency_p50_ns", "latency_p90_ns", "latency_p99_ns", "response_p99_ns"):
            estimate = estimates[cell, column]
            if estimate["status"] == "ok":
                assert row["values"][column] == estimate["estimate_ns"], (cell, column)
                shown = row["intervals"][column]
                assert (shown["low"], shown["high"]) == (estimate["low_ns"], estimate["high_ns"])
                low, unit_and_high = shown["text"].replace("\u202f", " ").split("–")
                assert in_ns(unit_and_high) == pytest.approx(estimate["high_ns"], rel=0.006)
                unit = unit_and_high.rsplit(" ", 1)[1]
                assert in_ns(low if " " in low else f"{low} {unit}") == pytest.approx(
                    estimate["low_ns"], rel=0.006
                )
                with_interval += 1
            else:
                assert row["values"].get(column) == of_cell[column].median()
                assert row["wanting"][column] == f"needs {estimate['needed_trials']} trials"
                assert column not in row["intervals"]
                wanting += 1
    assert with_interval >= 40 and wanting >= 8


def test_the_table_at_a_glance_has_its_multiples_of_the_floor(seen: dict[str, Any], campaign: Path) -> None:
    glance = summarise(open_campaign(campaign)).glance
    assert glance is not None
    assert {"glance", "subscribers"} <= set(seen["sections"])
    wanted = []
    for row in glance.rows:
        values: list[float | None] = []
        for each in row.figures:
            assert each is not None
            values += [each.latency_p50_ns, each.times_floor_p50, each.latency_p99_ns, each.times_floor_p99]
            values.append(each.cpu_per_message_ns)
        wanted.append((row.adapter, row.settings, [*values, row.threads, row.memory_pss_bytes]))
    shown = [(row["adapter"], row["settings"], row["values"]) for row in seen["glance"]]
    assert shown == wanted
    assert any(value == 1.0 for _, _, values in wanted for value in values), "the floor itself"
    for row, known in zip(seen["glance"], glance.rows, strict=True):
        figures = [each for figure in known.figures if figure is not None for each in figure.intervals]
        assert sorted(name for name, _ in row["intervals"]) == sorted(each.figure for each in figures)
        assert all("–" in text for _, text in row["intervals"])
    multiples = [name for row in seen["glance"] for name, _ in row["intervals"] if name == "times_floor_p50"]
    assert len(multiples) >= 8


def test_what_a_node_costs_is_that_of_the_summary(seen: dict[str, Any], campaign: Path) -> None:
    costs = summarise(open_campaign(campaign)).node_costs
    assert costs is not None and len(costs.rows) > 1
    heads = seen["nodeCostHeads"]
    assert heads[:3] == ["threads", "RSS", "descriptors"] and "switches" in heads and "cycles" not in heads
    for shown, row in zip(seen["nodeCosts"], costs.rows, strict=True):
        assert shown["cell"] == row.cell
        named = dict(zip(heads, shown["texts"][1:], strict=True))
        assert row.threads_per_node is not None and row.switches_per_message is not None
        assert float(named["threads"]) == pytest.approx(row.threads_per_node, rel=0.01)
        assert float(named["switches"]) == pytest.approx(row.switches_per_message, rel=0.01)
        assert named["middleware"] == "2.00 MiB"
    for text in ("recv × 2, gc", "libddsc.so.0", "Not available: cycles per message: ENOENT"):
        assert text in seen["nodeCostsText"]


def test_cpu_per_message_stands_beside_every_latency(seen: dict[str, Any], cells: pl.DataFrame) -> None:
    valid = cells.filter(pl.col("valid") & (pl.col("edge") == "end-to-end"))
    for row in seen["summary"]:
        own = valid.filter(pl.col("cell") == row["cell"])["cpu_per_message_ns"]
        assert row["values"]["cpu_per_message_ns"] == pytest.approx(own.median())
        if len(own) >= 6:
            interval = row["intervals"]["cpu_per_message_ns"]
            assert (interval["low"], interval["high"]) == pytest.approx((own.min(), own.max()))
    for text in (seen["tip"], seen["lead"]):
        assert "CPU" in text
    assert "with its 95 % interval" in seen["lead"]
    assert len(seen["cost"]) == len(seen["payloadTable"])
    columns = ("payloadTable", 5), ("percentiles", 4), ("cost", 3), ("control", 3)
    for name, column in columns:
        for table_row in seen[name]:
            assert in_ns(table_row[column].split(" (")[0]) > 0, (name, table_row)


def test_sorts_and_says_so(seen: dict[str, Any]) -> None:
    def values(rows: list[dict[str, Any]]) -> list[float]:
        return [row["values"]["latency_p50_ns"] for row in rows]

    assert values(seen["ascending"]) == sorted(values(seen["summary"]))
    assert values(seen["descending"]) == sorted(values(seen["summary"]), reverse=True)
    assert seen["ariaSort"] == "ascending"


def test_filters_and_the_fragment_keeps_it(seen: dict[str, Any]) -> None:
    assert seen["filtered"]
    for row in seen["filtered"]:
        assert "cyclonedds/" in row["cell"] and "/64KB/" in row["cell"] and "fastdds" not in row["cell"]
    assert "filter=" in seen["fragment"] and "sort=" in seen["fragment"]
    assert seen["reloaded"] == seen["filtered"]


def test_disturbed_trials_are_said(seen: dict[str, Any]) -> None:
    assert "disturbed" in seen["head"]
    disturbed = {row["cell"] for row in seen["summary"] if "disturbed" in row["texts"]["valid"]}
    assert disturbed == {row["cell"] for row in seen["summary"] if row["cell"].startswith("cyclonedds/")}
    assert all(
        row["texts"]["valid"] == "valid1 of 6 disturbed"
        for row in seen["summary"]
        if row["cell"] in disturbed
    )


def test_figures_stand_with_and_without_the_disturbed_trials(
    seen: dict[str, Any], cells: pl.DataFrame
) -> None:
    """Five of six trials are quiet: too few for an estimate, so both sides are medians over trials."""
    valid = cells.filter(pl.col("valid") & (pl.col("edge") == "end-to-end"))
    disturbed = {row["cell"] for row in seen["summary"] if "disturbed" in row["texts"]["valid"]}
    assert {row["cell"] for row in seen["withoutNoise"]} == disturbed and disturbed
    for row in seen["withoutNoise"]:
        of_cell = valid.filter(pl.col("cell") == row["cell"])
        quiet = of_cell.filter(pl.col("noise").list.len() == 0)
        if of_cell[row["figure"]].null_count() == 0:
            assert row["values"] == [of_cell[row["figure"]].median(), quiet[row["figure"]].median()]
            shown = [in_ns(leading(text)) for text in row["texts"][3:5]]
            assert shown == pytest.approx(row["values"], rel=0.006)
        assert row["texts"][1] == "1 of 6" and row["texts"][-1] == "median of trials"


def test_failed_trials_show_with_reasons(seen: dict[str, Any]) -> None:
    assert seen["failed"] and all(row["texts"]["valid"] == "failed" for row in seen["failed"])
    for text in ("worker-died", "signal 11", "rate-missed", "null hands over within one process"):
        assert text in seen["failures"]
    assert "</script>" in seen["failures"], "the log's text must come through as text"


def test_settings_and_machine_are_there(seen: dict[str, Any]) -> None:
    assert "MaxMessageSize" in seen["settings"] and 'xmlns="https://cdds.io/config"' in seen["settings"]
    assert "/usr/lib/libddsc.so.0" in seen["settings"]
    assert "Example CPU" in seen["environment"] and "unknown" in seen["environment"]


def test_charts_have_their_numbers_as_text(
    seen: dict[str, Any], cells: pl.DataFrame, estimates: dict[tuple[str, str], dict[str, Any]]
) -> None:
    assert len(seen["charts"]) == 6 and all(seen["charts"])
    for adapter, size, n, lost, p50, *_rest in seen["payloadTable"]:
        payload = {"64 B": 64, "64 KB": 65536}[size.replace("\u202f", " ")]
        same = (pl.col("adapter") == adapter) & (pl.col("payload_bytes") == payload)
        same &= (pl.col("edge") == "end-to-end") & (pl.col("reliability") == "best_effort") & pl.col("valid")
        rows = cells.filter(same)
        assert int(re.sub(r"\s", "", n)) == rows["n"].sum()
        losses = pl.sum_horizontal("lost", "overwritten", "censored", "rejected")
        assert int(re.sub(r"\s", "", lost)) == rows.select(losses).sum().item()
        estimate = estimates[rows["cell"][0], "latency_p50_ns"]
        expected = estimate["estimate_ns"] or rows["latency_p50_ns"].median()
        assert in_ns(p50.split(" (")[0]) == pytest.approx(expected, rel=0.006)
        assert ("(" in p50) == (estimate["status"] == "ok")
    assert len(seen["payloadTable"]) == 10
    latencies = [in_ns(row[2]) for row in seen["slowestTable"]]
    assert len(latencies) == 20 and latencies == sorted(latencies, reverse=True)


def test_the_conformance_matrix_of_the_folder_is_shown(seen: dict[str, Any]) -> None:
    assert seen["conformance"] == [["reliable", "✓", "✓"], ["loans", "!", "!"]]


def test_the_control_and_the_machine_floor_are_shown(seen: dict[str, Any], campaign: Path) -> None:
    stored = pl.read_parquet(campaign / "control" / "cells.parquet").sort("trial")
    assert [int(row[0]) for row in seen["control"]] == stored["trial"].to_list()
    shown = [in_ns(row[2]) for row in seen["control"]]
    assert shown == pytest.approx(stored["latency_p50_ns"].to_list(), rel=0.006)
    assert "others: 12 %" in seen["control"][1][-1]
    floor = json.loads((campaign / "floor.json").read_text())["cores"]
    for row, core in zip(seen["machineFloor"], floor, strict=True):
        assert int(row[0]) == core["cpu"]
        expected = [core[name] for name in ("p50_ns", "p99_ns", "p999_ns", "max_ns")]
        assert [in_ns(text) for text in row[2:]] == pytest.approx(expected, rel=0.006)


def test_the_machine_floor_is_below_the_tails_of_latency_against_payload(seen: dict[str, Any]) -> None:
    """The drawing itself is tested without a browser (web/tests/machine-floor.test.ts)."""
    assert "the machine's wake-up p99  5.20–6.10 µs" in seen["tip"].replace("\u202f", " ")
    for note in (seen["payloadNote"], seen["percentilesNote"]):
        said = note.replace("\u202f", " ")
        assert "the CPUs' time: 0.4 % while that was measured, at most 2 % during a trial" in said


def test_long_trials_are_held_against_the_short_ones(
    seen: dict[str, Any], cells: pl.DataFrame, estimates: dict[tuple[str, str], dict[str, Any]]
) -> None:
    assert [row[0] for row in seen["longTrials"]] == [LIKE, LINKED]
    inside = judged = 0
    for row, times in zip(seen["longTrials"], (1.0, 3.0), strict=True):
        own = cells.filter((pl.col("cell") == row[0]) & (pl.col("edge") == "end-to-end"))
        first = own.filter(pl.col("trial") == 0).row(0, named=True)
        for column, name in ((2, "latency_p50_ns"), (8, "latency_p99_ns")):
            long_ns, estimate = times * first[name], estimates[row[0], name]
            assert in_ns(row[column]) == pytest.approx(long_ns, rel=0.006)
            if estimate["status"] != "ok":
                assert row[column + 3] == "no interval to compare it with"
                continue
            assert in_ns(row[column + 1].split(" (")[0]) == pytest.approx(estimate["estimate_ns"], rel=0.006)
            lies_inside = estimate["low_ns"] <= long_ns <= estimate["high_ns"]
            assert (row[column + 3] == "inside the interval") == lies_inside
            inside, judged = inside + lies_inside, judged + 1
        assert in_ns(row[6]) == pytest.approx(times * first["cpu_per_message_ns"], rel=0.006)
    assert f"{inside} of {judged} figures" in seen["longSaid"] and judged >= 2
    assert any(LINKED in text and "p50 lies above" in text for text in seen["longRemarks"])


def test_reasons_are_counted(seen: dict[str, Any], campaign: Path) -> None:
    journal = [json.loads(line) for line in (campaign / "journal.jsonl").read_text().splitlines()]
    died = sum(any("worker-died" in reason for reason in line["reasons"]) for line in journal)
    counted = {word: (int(count), meaning) for word, count, meaning in seen["reasons"]}
    assert counted["worker-died"][0] == died > 0
    assert all(meaning for word, (_, meaning) in counted.items() if word)


def test_a_warning_is_shown_with_its_text(seen: dict[str, Any], cells: pl.DataFrame) -> None:
    first = cells.filter(pl.col("trial") == 0)["cell"].n_unique()
    assert ["halved", str(first), "each latency is half of a round trip"] in seen["reasons"]
    assert ["", str(first), ""] in seen["reasons"] and "the first row is not counted" in seen["failures"]


def test_a_link_shows_its_cell(seen: dict[str, Any]) -> None:
    assert seen["linked"] == {"cell": LINKED, "reliability": "reliable", "marked": [LINKED], "scrolled": True}
    assert seen["copied"].startswith("file:") and "cell=cyclonedds" in seen["copied"]
    assert seen["linkedAgain"] == seen["linked"]


def test_paper_gets_everything_unfolded_and_fitting(seen: dict[str, Any]) -> None:
    print_ = seen["print"]
    assert print_["folded"] == 0 and print_["widest"] <= 700 and print_["theme"] == "light"
    assert print_["foldedAfter"] == print_["foldedBefore"] > 0 and print_["themeAfter"] == "dark"


def test_a_comparison_shows_ratios_and_verdicts(
    seen: dict[str, Any], comparison: tuple[Comparison, Path]
) -> None:
    expected = {cell.cell_b: cell for cell in comparison[0].cells}
    assert seen["comparisonTitle"] == f"B against A: {comparison[0].verdict}" == "B against A: slower"
    assert {row["cell"] for row in seen["comparison"]} == expected.keys()
    for row in seen["comparison"]:
        found = expected[row["cell"]].quantities["p50"]
        assert row["ratios"][0] == pytest.approx([found.ratio, found.low, found.high])
        assert found.verdict in row["texts"]
        cell = expected[row["cell"]]
        sides = cell.cpu_per_message_a, cell.cpu_per_message_b
        costs = [[each.low_ns, each.high_ns] for each in sides if each.low_ns is not None]
        assert row["own"][: len(costs)] == costs and len(costs) == 2
        assert row["own"][2:4] == [[found.a_low_ns, found.a_high_ns], [found.b_low_ns, found.b_high_ns]]
    compared = sum(each.ratio is not None for cell in expected.values() for each in cell.quantities.values())
    assert len(seen["forest"]) == compared >= len(expected)
    assert all(link.startswith(("#", "data:")) for link in seen["comparisonLinks"])
    assert all(each["overflow"] <= 0 for each in seen["comparisonLayouts"])
    assert all(each["theme"] == each["wanted"] for each in seen["comparisonLayouts"])


def test_findings_stand_beside_figures_and_lead_to_their_text(
    seen: dict[str, Any], campaign: Path, comparison: tuple[Comparison, Path]
) -> None:
    summary = summarise(open_campaign(campaign))
    notes = footnotes(summary.findings)
    cells = {row["cell"] for row in seen["summary"]}
    shown = {each["cell"]: each["notes"] for each in seen["marks"]["table"]}
    assert shown == {cell: [f"[{note}]" for note in notes[cell]] for cell in notes if cell in cells} and shown
    assert summary.glance is not None
    figures = [each for row in summary.glance.rows for each in row.figures if each is not None]
    beside = [[f"[{note}]" for note in notes[each.cell]] for each in figures if each.cell in notes]
    assert [each["notes"] for each in seen["marks"]["glance"]] == beside != []
    what = {f"[{each.footnote}]": each.what.replace("`", "") for each in summary.findings}
    for each in (*seen["marks"]["table"], *seen["marks"]["glance"]):
        for note, target in zip(each["notes"], each["targets"], strict=True):
            assert target.startswith(f"{note} {what[note]}")
    first = seen["marks"]["table"][0]["notes"][0].strip("[]")
    assert seen["markLeads"] == {"focused": f"findings-{first}", "hash": ""}
    sides = (open_campaign(Path(each)) for each in (comparison[0].a, comparison[0].b))
    told = build_comparison(comparison[0], *sides)
    expected = [
        [f"[{note}]" for note in footnotes(side)[cell]]
        for each in told.cells
        for side, cell in ((told.findings_a, each.cell_a), (told.findings_b, each.cell_b))
        if cell in footnotes(side)
    ]
    assert [each["notes"] for each in seen["comparisonMarks"]] == expected != []
    assert all(target for each in seen["comparisonMarks"] for target in each["targets"])


def test_arrow_keys_read_the_chart(seen: dict[str, Any]) -> None:
    assert "p50" in seen["tip"] and "cyclonedds" in seen["tip"]


def test_nothing_leaves_the_file(
    seen: dict[str, Any], campaign: Path, comparison: tuple[Comparison, Path]
) -> None:
    assert all(request.startswith(("file:", "data:")) for request in seen["requests"]), seen["requests"]
    assert all(link.startswith(("#", "data:")) for link in seen["links"]), seen["links"]
    for written in (campaign / page.REPORT_NAME, comparison[1]):
        text = written.read_text(encoding="utf-8")
        assert not re.findall(r"(?:https?|wss?|ftp):?//[^\s\"']*", text)
    assert not seen["errors"]


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_overflow_in_either_theme(seen: dict[str, Any], width: int, theme: str) -> None:
    [layout] = [each for each in seen["layouts"] if (each["width"], each["wanted"]) == (width, theme)]
    assert layout["overflow"] <= 0
    assert layout["theme"] == theme
    assert layout["canvases"] == 6 and layout["blank"] == 0
    assert not layout["violations"]


@pytest.mark.parametrize("place", [0, 1])
def test_a_comparison_breaks_no_rule_of_wcag(seen: dict[str, Any], place: int) -> None:
    assert not seen["comparisonLayouts"][place]["violations"]


def test_a_word_in_the_filter_draws_no_chart_anew(seen: dict[str, Any]) -> None:
    """6,000 rows and each chart at every keystroke made typing slow."""
    assert seen["chartStays"]
