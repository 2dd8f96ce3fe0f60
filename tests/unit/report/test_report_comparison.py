# SPDX-License-Identifier: Apache-2.0
"""The data of the page that compares two campaigns, and the command that writes it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from lagometer.cli.main import app
from lagometer.report import page
from lagometer.report.comparison import build_comparison, write_comparison
from lagometer.report.comparison_data import ComparisonReport
from lagometer.stats.compare.comparable import Comparison, cell_trials, compare_campaigns
from lagometer.stats.interval.confidence import PERMILLE, Pool
from lagometer.store.reader import Campaign, open_campaign

ROOT = Path(__file__).parents[3]
from synthetic_campaign import Shape, write_campaign  # noqa: E402

SHAPE = Shape(
    adapters=("shm", "cyclonedds"),
    payloads_bytes=(64,),
    reliabilities=("best_effort",),
    trials=8,
    messages=400,
    control_blocks=8,
)
SLOWER = Shape(**{**vars(SHAPE), "seed": 2, "factor": 1.3})


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Campaign]:
    place = tmp_path_factory.mktemp("campaigns")
    before, after = write_campaign(place / "before", SHAPE), write_campaign(place / "after", SLOWER)
    manifest = json.loads((after / "manifest.json").read_text())
    for described in manifest["settings"].values():
        described[0]["settings"]["Depth"]["value"] = 64
        described[0]["observed"]["library"] = ["/opt/lib/libddsc.so.0", "/usr/lib/libddsc.so.0"]
    manifest["versions"]["cyclonedds"] = "0.10.5"
    (after / "manifest.json").write_text(json.dumps(manifest))
    return open_campaign(before), open_campaign(after)


@pytest.fixture(scope="module")
def comparison(campaigns: tuple[Campaign, Campaign]) -> Comparison:
    return compare_campaigns(*campaigns)


@pytest.fixture(scope="module")
def made(comparison: Comparison, campaigns: tuple[Campaign, Campaign]) -> ComparisonReport:
    return build_comparison(comparison, *campaigns)


def test_figures_and_verdicts_are_those_of_the_comparison(
    made: ComparisonReport, comparison: Comparison, campaigns: tuple[Campaign, Campaign]
) -> None:
    assert made.verdict == comparison.verdict == "slower"
    assert len(made.cells) == len(comparison.cells) == 2
    for shown, compared in zip(made.cells, comparison.cells, strict=True):
        assert (shown.cell_a, shown.cell_b, shown.verdict) == (
            compared.cell_a,
            compared.cell_b,
            compared.verdict,
        )
        for each in shown.quantities:
            found = compared.quantities[each.quantity]
            assert (each.a_ns, each.b_ns, each.ratio) == (found.a_ns, found.b_ns, found.ratio)
            for campaign, side in zip(campaigns, (shown.cell_a, shown.cell_b), strict=True):
                pool = Pool(cell_trials(campaign, side)[2]).estimate(PERMILLE[each.quantity])
                own = (
                    (each.a_low_ns, each.a_high_ns)
                    if campaign is campaigns[0]
                    else (each.b_low_ns, each.b_high_ns)
                )
                assert own == (pool.low_ns, pool.high_ns) or each.why is not None
            assert (each.p, each.verdict, each.why) == (found.p_corrected, found.verdict, found.why)
        assert shown.cpu_per_message_a_ns is not None and shown.cpu_per_message_b_ns is not None
        assert shown.cpu_per_message_b_ns > shown.cpu_per_message_a_ns
        for campaign, ends in (
            (campaigns[0], (shown.cpu_per_message_a_low_ns, shown.cpu_per_message_a_high_ns)),
            (campaigns[1], (shown.cpu_per_message_b_low_ns, shown.cpu_per_message_b_high_ns)),
        ):
            own = campaign.cells.filter(
                (pl.col("cell") == shown.cell_a) & (pl.col("edge") == "end-to-end") & pl.col("valid")
            )["cpu_per_message_ns"]
            assert ends == (own.min(), own.max()), "of seven and of eight trials the smallest and the largest"
    assert made.control is not None and made.control.quantities[0].quantity == "p50"
    assert made.control.cpu_per_message_a_ns is not None


def test_what_differs_is_named(made: ComparisonReport) -> None:
    assert [(each.what, each.a, each.b) for each in made.differences] == [
        ("version of cyclonedds", "0.10.2", "0.10.5")
    ]
    assert [(each.adapter, each.name, each.a, each.b, each.cells) for each in made.settings] == [
        ("cyclonedds", "Depth", "16", "64", 1),
        (
            "cyclonedds",
            "observed: library",
            "/usr/lib/libddsc.so.0",
            "/opt/lib/libddsc.so.0, /usr/lib/libddsc.so.0",
            1,
        ),
    ]


def test_the_page_holds_the_data(
    made: ComparisonReport,
    comparison: Comparison,
    campaigns: tuple[Campaign, Campaign],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = tmp_path / "page.html"
    bundle.write_text(f"<script>{page.PLACEHOLDER}</script>")
    monkeypatch.setattr(page, "BUNDLE", bundle)
    written = write_comparison(comparison, *campaigns, tmp_path / "out.html").read_text()
    data = written.removeprefix("<script>").removesuffix("</script>")
    assert ComparisonReport.model_validate_json(data) == made


def test_the_command_writes_it_beside_b(
    campaigns: tuple[Campaign, Campaign], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "page.html"
    bundle.write_text(f"<script>{page.PLACEHOLDER}</script>")
    monkeypatch.setattr(page, "BUNDLE", bundle)
    before, after = (each.directory for each in campaigns)
    done = CliRunner().invoke(app, ["report", str(after), "--against", str(before), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["report"] == str(after / "comparison.html")
    assert '"kind":"comparison"' in (after / "comparison.html").read_text()
