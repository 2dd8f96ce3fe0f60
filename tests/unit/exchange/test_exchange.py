# SPDX-License-Identifier: Apache-2.0
"""What is exported is read back by other tools' own readers, and is the same."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lagometer.cli.main import main
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.histogram import encoded
from lagometer.exchange.hlog import tag, write_hlog
from lagometer.exchange.imports.campaign import warning
from lagometer.exchange.imports.formats import import_files
from lagometer.exchange.openmetrics import openmetrics
from lagometer.exchange.performance_test import write_logs
from lagometer.exchange.tables import write_csv, write_json_lines
from lagometer.report.build import build_report
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign, open_campaign

GOLDEN = Path(__file__).parents[2] / "golden"
CAMPAIGN = GOLDEN / "campaign-v1"
LOGS = GOLDEN / "performance-test"
WARNING = warning("performance_test")


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return open_campaign(CAMPAIGN)


def latencies(campaign: Campaign, cell: str, trial: int, edge: str) -> np.ndarray:
    samples = campaign.samples(cell, trial)
    wanted = (pl.col("edge") == edge) & (pl.col("phase") == "measure") & (pl.col("outcome") == "delivered")
    arrived = samples.filter(wanted)
    return (arrived["taken_ns"] - arrived["publish_ns"]).to_numpy()


# --- tables


def test_csv_is_the_same_to_the_nanosecond(campaign: Campaign, tmp_path: Path) -> None:
    cells_path, samples_path = write_csv(campaign, tmp_path / "csv")
    written = pd.read_csv(samples_path, dtype="string")
    place = 0
    for cell, trial in campaign.cells.select("cell", "trial").unique(maintain_order=True).iter_rows():
        samples = campaign.samples(cell, trial)
        part = written.iloc[place : place + samples.height]
        place += samples.height
        assert set(part["cell"]) == {cell} and set(part["trial"]) == {str(trial)}
        for name in (name for name in samples.columns if name.endswith("_ns") or name.startswith("cpu_")):
            theirs = [None if pd.isna(value) else int(value) for value in part[name]]
            assert theirs == samples[name].to_list(), name
        assert part["edge"].tolist() == samples["edge"].cast(pl.String).to_list()
    assert place == len(written)
    with cells_path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["latency_p50_ns"]) for row in rows] == campaign.cells["latency_p50_ns"].to_list()
    assert [json.loads(row["reasons"]) for row in rows] == campaign.cells["reasons"].to_list()


def test_json_lines_are_read_by_duckdb_and_are_the_same(campaign: Campaign, tmp_path: Path) -> None:
    cells_path, samples_path = write_json_lines(campaign, tmp_path / "jsonl")
    rows = [json.loads(line) for line in cells_path.read_text(encoding="utf-8").splitlines()]
    assert rows == campaign.cells.to_dicts()
    query = f"select cell, trial, edge, sum(taken_ns), count(*) from read_json('{samples_path}') group by all"
    found = {tuple(row[:3]): row[3:] for row in duckdb.sql(query).fetchall()}
    for cell, trial, edge in campaign.cells.select("cell", "trial", "edge").iter_rows():
        samples = campaign.samples(cell, trial).filter(pl.col("edge") == edge)
        assert found.pop((cell, trial, edge)) == (samples["taken_ns"].sum(), samples.height)
    assert not found


def test_an_export_overwrites_nothing(campaign: Campaign, tmp_path: Path) -> None:
    for write in (write_csv, write_json_lines, write_logs):
        write(campaign, tmp_path)
        with pytest.raises(ExchangeError, match="already exists"):
            write(campaign, tmp_path)
    write_hlog(campaign, tmp_path / "a.hlog")
    with pytest.raises(ExchangeError, match="already exists"):
        write_hlog(campaign, tmp_path / "a.hlog")


# --- HdrHistogram


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=200))
def test_a_histogram_holds_every_value_to_three_digits(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    read = HdrHistogram.decode(encoded(array))
    theirs = HdrHistogram(1, max(2, *values, 2), 3)
    for value in values:
        theirs.record_value(value)
    assert read.get_total_count() == len(values)
    recorded = [
        (item.value_iterated_to, item.count_at_value_iterated_to) for item in read.get_recorded_iterator()
    ]
    expected = [
        (item.value_iterated_to, item.count_at_value_iterated_to) for item in theirs.get_recorded_iterator()
    ]
    assert recorded == expected


def test_a_log_has_the_quantiles_of_the_campaign(campaign: Campaign, tmp_path: Path) -> None:
    [path] = write_hlog(campaign, tmp_path / "latency.hlog")
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    found = {}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found[histogram.get_tag()] = histogram
    for row in campaign.cells.iter_rows(named=True):
        histogram = found.pop(tag(row["cell"], row["edge"]))
        assert histogram.get_total_count() == row["n"]
        for percentile, name in ((50, "p50"), (90, "p90"), (99, "p99"), (100, "max")):
            exact = row[f"latency_{name}_ns"]
            assert histogram.get_value_at_percentile(percentile) == pytest.approx(exact, rel=1e-3)
    assert not found


def earlier(tmp_path: Path, edges: Sequence[tuple[str, int, str]]) -> Campaign:
    """The campaign, but the receiver's clock of these edges is behind: one latency or more is below 0."""
    shutil.copytree(CAMPAIGN, tmp_path / "earlier")
    campaign = open_campaign(tmp_path / "earlier")
    for cell, trial, edge in edges:
        samples = campaign.samples(cell, trial)
        least_ns = int(latencies(campaign, cell, trial, edge).min())
        shifted = pl.when(pl.col("edge") == edge).then(pl.col("taken_ns") - least_ns - 1)
        samples.with_columns(shifted.otherwise(pl.col("taken_ns")).alias("taken_ns")).write_parquet(
            campaign.samples_path(cell, trial)
        )
    return open_campaign(tmp_path / "earlier")


def test_an_interval_with_latencies_below_0_is_left_out_and_named(campaign: Campaign, tmp_path: Path) -> None:
    """Between two clocks they are valid, but a histogram has no bucket for them."""
    edges = campaign.cells.select("cell", "trial", "edge").rows()
    cell, trial, edge = edges[0]
    [path] = write_hlog(earlier(tmp_path, edges[:1]), tmp_path / "latency.hlog")
    lines = path.read_text(encoding="utf-8").splitlines()
    named = (
        "#[Latencies below 0 (two clocks), which a histogram can't hold, left out: "
        f"{cell} trial {trial} edge {edge}; export csv or jsonl]"
    )
    assert lines.count(named) == 1
    kept = [line[4:].split(",")[0] for line in lines if line.startswith("Tag=")]
    assert kept == [tag(cell, edge) for cell, _, edge in edges[1:]]
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    read = []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        read.append((histogram.get_tag(), histogram.get_total_count()))
    assert read == [(name, 1040) for name in kept]


def test_an_export_in_which_nothing_is_left_is_refused(campaign: Campaign, tmp_path: Path) -> None:
    edges = campaign.cells.select("cell", "trial", "edge").rows()
    with pytest.raises(ExchangeError, match=r"every interval is left out; .*below 0.*; export csv or jsonl"):
        write_hlog(earlier(tmp_path, edges), tmp_path / "latency.hlog")
    assert not (tmp_path / "latency.hlog").exists()


@pytest.mark.parametrize("value", [-5, -10_000_000])
def test_a_value_below_0_has_no_bucket(value: int) -> None:
    with pytest.raises(ValueError, match=f"no bucket for {value}"):
        encoded(np.array([value, 1_000_000], dtype=np.int64))


# --- OpenMetrics


def test_metrics_are_read_by_a_parser_and_are_the_same(campaign: Campaign) -> None:
    families = {family.name: family for family in text_string_to_metric_families(openmetrics(campaign))}
    latency = families["lagometer_latency_seconds"]
    found = {
        (
            sample.labels["cell"],
            sample.labels["edge"],
            sample.labels.get("quantile"),
            sample.name,
        ): sample.value
        for sample in latency.samples
    }
    for row in campaign.cells.iter_rows(named=True):
        key = (row["cell"], row["edge"])
        assert found[(*key, "0.5", "lagometer_latency_seconds")] * 1e9 == pytest.approx(row["latency_p50_ns"])
        assert found[(*key, None, "lagometer_latency_seconds_count")] == row["n"]
        mean = found[(*key, None, "lagometer_latency_seconds_sum")] / row["n"]
        assert mean * 1e9 == pytest.approx(row["latency_mean_ns"])
        assert (*key, "0.999", "lagometer_latency_seconds") not in found  # the samples do not support it
    cost = families["lagometer_cpu_per_message_seconds"]
    assert (cost.type, cost.unit) == ("gauge", "seconds")
    told = {(each.labels["cell"], int(each.labels["trial"])): each.value * 1e9 for each in cost.samples}
    stored = campaign.cells.filter(pl.col("edge") == form.END_TO_END)
    known = stored.select("cell", "trial", "cpu_per_message_ns").drop_nulls().iter_rows()
    assert told == {(cell, trial): pytest.approx(value) for cell, trial, value in known} and told
    delivered = [
        sample.value
        for sample in families["lagometer_messages"].samples
        if sample.labels["outcome"] == "delivered"
    ]
    assert delivered == campaign.cells["n"].to_list()
    assert {sample.value for sample in families["lagometer_trial_valid"].samples} == {1.0}


# --- performance_test


def test_a_log_of_ours_comes_back_with_the_same_figures(campaign: Campaign, tmp_path: Path) -> None:
    written = write_logs(campaign, tmp_path / "logs")
    ends = [path for path in written if form.END_TO_END in path.name]
    import_files(ends, tmp_path / "imported")
    imported = open_campaign(tmp_path / "imported").cells.sort("adapter")
    ours = campaign.cells.filter(pl.col("edge") == form.END_TO_END).sort("adapter")
    for name in ("n", "sent", "lost", "latency_min_ns", "latency_max_ns", "rate_hz"):
        assert imported[name].to_list() == ours[name].to_list(), name
    for name in ("latency_mean_ns", "latency_sd_ns"):
        assert imported[name].to_list() == pytest.approx(ours[name].to_list(), rel=1e-9), name


def test_a_log_is_read_by_the_plotters_own_way(campaign: Campaign, tmp_path: Path) -> None:
    """The reading of apex_performance_plotter: head up to `---`, then pandas with its separator."""
    path = write_logs(campaign, tmp_path)[0]
    with path.open(encoding="utf-8") as source:
        head = {}
        for line in source:
            if line.startswith("---"):
                break
            if line.strip():
                head[line.split(":")[0].strip()] = line.split(":", maxsplit=1)[1].strip()
        frame = pd.read_csv(source, sep="[ \t]*,[ \t]*", engine="python")
    assert {"Experiment id", "Communication mean", "QOS", "Publishing rate", "Topic name"} <= set(head)
    assert frame["received"].sum() == 1040 and frame["T_loop"].eq(1.0).all()
    assert frame["cpu_usage (%)"].isna().all()  # not measured, so not made up


def test_a_foreign_log_is_marked_as_imported(tmp_path: Path) -> None:
    found = import_files([LOGS / "reliable.csv", LOGS / "reliable.csv"], tmp_path / "imported")
    assert found.cells == [
        "imported/performance_test/CycloneDDS/Array1k/100Hz/reliable/keep_last/volatile/depth-16/1-to-1",
    ]
    campaign = open_campaign(tmp_path / "imported")
    row = campaign.cells.row(0, named=True)
    # Per second, cut: 99 in 1.00007 s are 100. The first second was divided by the machine's 5025.8 s.
    assert (row["n"], row["sent"], row["lost"]) == (296, 300, 4)
    assert (row["latency_min_ns"], row["latency_max_ns"]) == (81_500, 412_000)
    means_s = np.array([0.1201, 0.1304, 0.1105]) / 1000
    counts = np.array([100, 98, 98])
    mean_s = np.average(means_s, weights=counts)
    within = np.sum((counts - 1) * np.array([1.5e-10, 2.5e-10, 1e-10]))
    between = np.sum(counts * (means_s - mean_s) ** 2)
    assert row["latency_mean_ns"] == pytest.approx(mean_s * 1e9)
    assert row["latency_sd_ns"] == pytest.approx(math.sqrt((within + between) / 295) * 1e9)
    assert row["latency_p50_ns"] is None and row["latency_p99_ns"] is None
    assert row["warnings"] == [WARNING] and row["imported_from"] == "performance_test"
    log = campaign.manifest["imported"]["logs"][0]
    assert log["Performance Test Version"] == "4b308ef"
    assert (log["read_as"], log["rows_left_out"]) == ("2.0 to 2.3", 1)
    assert (tmp_path / "imported" / "imported" / "0-reliable.csv").read_bytes() == (
        LOGS / "reliable.csv"
    ).read_bytes()
    report = build_report(campaign)
    assert all(row.warnings == [WARNING] for row in report.rows) and not report.curves


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---EXPERIMENT-START---", "", "no line '---EXPERIMENT-START---'"),
        ("latency_mean (ms)", "latency (ms)", r":21: column 'latency_mean \(ms\)' is missing"),
        ("0.1304", "fast", r":24: 'fast' in column 'latency_mean \(ms\)' is not a number"),
        ("97,\t\t99,\t\t1,\t\t", "", ":24: 25 fields, but 28 columns"),
        ("99,\t\t99,\t\t0", "0,\t\t0,\t\t0", None),
    ],
)
def test_a_damaged_log_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, message: str | None
) -> None:
    text = (LOGS / "reliable.csv").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "log.csv"
    path.write_text(text.replace(old, new), encoding="utf-8")
    if message is None:
        import_files([path], tmp_path / "imported")
        return
    with pytest.raises(ExchangeError, match=message):
        import_files([path], tmp_path / "imported")


# --- the commands


@pytest.mark.parametrize("to", ["csv", "jsonl", "hlog", "performance-test", "openmetrics"])
def test_the_command_writes_each_format(to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", str(CAMPAIGN), "--format", to, "--out", str(tmp_path / "there"), "--json"])
    assert ended.value.code == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert written and all(Path(path).stat().st_size > 0 for path in written)


def test_metrics_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", str(CAMPAIGN), "--format", "openmetrics"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.endswith("# EOF\n")


def test_the_command_imports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "imported"
    with pytest.raises(SystemExit) as ended:
        main(["import", str(LOGS / "reliable.csv"), "--out", str(out), "--json"])
    assert ended.value.code == 0 and len(json.loads(capsys.readouterr().out)["cells"]) == 1
    with pytest.raises(SystemExit) as ended:
        main(["import", str(CAMPAIGN / "manifest.json"), "--out", str(tmp_path / "other")])
    assert ended.value.code == 2 and not (tmp_path / "other").exists()
    with pytest.raises(SystemExit) as ended:
        main(["show", str(out)])
    assert ended.value.code == 0
    assert "not measured by lagometer" in capsys.readouterr().out


@pytest.mark.parametrize("trials", [1, 7])
def test_it_is_said_why_an_imported_campaign_has_no_intervals(
    trials: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not for want of trials, and none of them failed: the log has no samples."""
    out = tmp_path / "imported"
    import_files([LOGS / "reliable.csv"] * trials, out)
    for options in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["show", str(out), *options])
        assert ended.value.code == 0
        said = capsys.readouterr().out
        why = json.loads(said)["no_estimates"] if options else said
        assert "imported from performance_test" in why and "no samples" in why
        assert "would be enough" not in said and "failed before" not in said
    assert json.loads(said)["estimates"] == []
    with pytest.raises(CampaignError, match="imported from performance_test"):
        cell = open_campaign(out).cells["cell"][0]
        open_campaign(out).samples(cell, 0)
