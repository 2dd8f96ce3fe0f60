# SPDX-License-Identifier: Apache-2.0
"""What the report says of whole cells, used in a real browser: deadlines, tails with the lost, load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from shown_cells import GROWING

from lagometer.stats.cell.campaign_estimates import campaign_estimates
from lagometer.store.reader import open_campaign


def test_deadlines_are_those_of_cells_parquet(
    seen: dict[str, Any], campaign: Path, cells: pl.DataFrame
) -> None:
    made = campaign_estimates(open_campaign(campaign)).filter(pl.col("quantity") == "deadline_miss_share")
    limits = {(row["cell"], row["edge"]): row for row in made.iter_rows(named=True)}
    asked = cells.filter(pl.col("valid") & pl.col("edge").is_in(["end-to-end", "relay-1→sink"]))
    expected = {(str(cell), str(edge)): rows for (cell, edge), rows in asked.group_by("cell", "edge")}
    shown = {(row["cell"], row["edge"]): row for row in seen["deadlines"]}
    assert shown.keys() == expected.keys() and len(shown) >= 30
    intervals = 0
    for key, rows in expected.items():
        values = {name: None if text is None else float(text) for name, text in shown[key]["values"].items()}
        assert values == {
            "trials": rows.height,
            "missed": rows["deadline_missed"].sum(),
            "due": rows["deadline_due"].sum(),
            "miss_share": pytest.approx(rows["deadline_miss_share"].mean()),
            "run_max": rows["deadline_run_max"].max(),
            "met_of_k_min": rows["deadline_met_of_k_min"].min(),
            "data_age_max_ns": rows["data_age_max_ns"].max(),
            "cpu_per_message_ns": pytest.approx(rows["cpu_per_message_ns"].median()),
        }
        if limits[key]["status"] == "ok":
            ends = [float(shown[key][end]["miss_share"]) for end in ("low", "high")]
            assert ends == [limits[key]["low_share"], limits[key]["high_share"]]
            assert "–" in shown[key]["below"]["miss_share"]
            intervals += 1
        else:
            assert shown[key]["below"]["miss_share"] == "needs 6 trials"
    assert intervals >= 20


def test_tails_stand_with_the_lost_as_infinite(
    seen: dict[str, Any], campaign: Path, cells: pl.DataFrame
) -> None:
    made = campaign_estimates(open_campaign(campaign)).filter(pl.col("quantity").str.ends_with("_lost"))
    estimates = {(row["cell"], row["edge"], row["quantity"]): row for row in made.iter_rows(named=True)}
    lost = cells.filter(pl.col("valid") & (pl.col("lost") > 0))
    shown = {(row["cell"], row["edge"]): row for row in seen["lostTails"]}
    assert set(shown) == set(lost.filter(pl.col("edge") != "source→relay-1").select("cell", "edge").rows())
    summary = {row["cell"]: row for row in seen["summary"]}
    infinite = compared = 0
    for (cell, edge), row in shown.items():
        for name in ("p50", "p90", "p99", "p999"):
            column = f"latency_{name}_ns"
            if edge == "end-to-end" and name != "p999":
                assert float(row["values"][column]) == summary[cell]["values"][column]
            estimate = estimates[cell, edge, f"latency_{name}_lost"]
            if estimate["status"] != "ok":
                continue
            compared += 1
            if estimate["estimate_ns"] is None:
                assert row["texts"][f"{column} lost"] == "∞"
                infinite += 1
            else:
                assert float(row["values"][f"{column} lost"]) == estimate["estimate_ns"]
                assert ("∞" in row["below"][f"{column} lost"]) == (estimate["high_ns"] is None)
        gone = [each for each in row["texts"].values() if each == "∞"]
        infinite += len(gone)
    assert compared >= 4 and infinite >= 1


def test_load_beside_the_workers_is_that_of_cells_parquet(seen: dict[str, Any], cells: pl.DataFrame) -> None:
    loaded = cells.filter(
        pl.col("valid") & (pl.col("interference") != "none") & (pl.col("edge") == "end-to-end")
    )
    assert {row["cell"] for row in seen["loads"]} == set(loaded["cell"]) and seen["loads"]
    summary = {row["cell"]: row for row in seen["summary"]}
    for row in seen["loads"]:
        of_cell = loaded.filter(pl.col("cell") == row["cell"])
        assert float(row["values"]["cpu_ns"]) == of_cell["interference_cpu_ns"].median()
        assert float(row["values"]["achieved_per_s"]) == of_cell["interference_achieved_per_s"].median()
        assert row["texts"]["achieved_per_s"].endswith("MB/s")
        assert float(row["values"]["latency_p50_ns"]) == summary[row["cell"]]["values"]["latency_p50_ns"]


def test_a_p50_of_a_queue_is_marked_in_tables_and_below_charts(seen: dict[str, Any]) -> None:
    marks = seen["queueMarks"]
    assert {cell for _, cell, _ in marks} == {GROWING}
    assert {text.replace("\u202f", " ") for *_, text in marks} == {"a queue: +330 ms a second"}
    assert {"glance", "failures"} <= {section for section, *_ in marks}
    notes = dict(seen["queueNotes"])
    assert {"payload", "cost"} <= set(notes)
    for text in notes.values():
        assert text.startswith(f"A queue builds up in {GROWING} (+330") and text.endswith("the trial is.")
