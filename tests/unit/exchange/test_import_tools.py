# SPDX-License-Identifier: Apache-2.0
"""Results of LatencyTest, rtiperftest, ddsperf and ros2-performance: figures that can be told honestly are
those of the latencies, and what can't is refused or null with its reason."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_samples import (
    ddsperf_text,
    hlog_text,
    latency_test_raw,
    latency_test_table,
    many,
    ros2_performance_text,
    rtiperftest_csv,
    rtiperftest_samples,
)
from performance_test_model import V1_0, V2_3, Second, json_text, log_text

from lagometer.cli.main import main
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.formats import FORMATS, import_files
from lagometer.exchange.imports.trial import Options
from lagometer.report.build import build_report
from lagometer.stats.trial.estimate import PERMILLE
from lagometer.stats.trial.quantile import quantile
from lagometer.store.reader import open_campaign

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
MICROSECONDS = [20 + (place * 7919) % 97 for place in range(1000)]
NANOSECONDS = [each * 1000 for each in MICROSECONDS]


def imported(tmp_path: Path, *texts: str, unit: str | None = None) -> list[dict[str, Any]]:
    paths = [tmp_path / f"run{place}.txt" for place in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    import_files(paths, tmp_path / "imported", None, Options(unit))
    return open_campaign(tmp_path / "imported").cells.to_dicts()


def exact(latencies_ns: Sequence[int]) -> dict[str, int | None]:
    ordered = np.sort(np.array(latencies_ns, dtype=np.int64))
    return {f"latency_{name}_ns": quantile(ordered, permille) for name, permille in PERMILLE.items()}


def absent(tmp_path: Path) -> dict[str, str]:
    told: dict[str, str] = open_campaign(tmp_path / "imported").manifest["imported"]["absent"]
    return told


def moments_are(row: dict[str, Any], latencies_ns: Sequence[int], digit_ns: float) -> None:
    assert row["latency_min_ns"] == pytest.approx(min(latencies_ns), abs=digit_ns)
    assert row["latency_max_ns"] == pytest.approx(max(latencies_ns), abs=digit_ns)
    assert row["latency_mean_ns"] == pytest.approx(np.mean(latencies_ns), abs=digit_ns)
    if row["latency_sd_ns"] is not None:
        assert row["latency_sd_ns"] == pytest.approx(np.std(latencies_ns, ddof=1), abs=2 * digit_ns)


# --- the same definition of a quantile, on raw latencies


latency_lists = many(st.integers(1, 999_999))


@settings(deadline=None, max_examples=25)
@given(values=latency_lists)
@pytest.mark.parametrize(
    ("write", "unit"),
    [
        (lambda values: latency_test_raw({64: [value / 1000 for value in values]}), None),
        (rtiperftest_samples, "ns"),
        (lambda values: rtiperftest_csv({64: [value / 1000 for value in values]}, nanoseconds=True), None),
    ],
    ids=["latency-test", "rtiperftest-samples", "rtiperftest-nanoseconds"],
)
@pytest.mark.by_turn
def test_quantiles_of_raw_latencies_are_ours(
    tmp_path_factory: pytest.TempPathFactory, write: Callable[[Any], str], unit: str | None, values: list[int]
) -> None:
    tmp_path = tmp_path_factory.mktemp("raw")
    [row] = imported(tmp_path, write(values), unit=unit)
    assert row["n"] == len(values)
    assert {name: row[name] for name in exact(values)} == exact(values)
    moments_are(row, values, 0.01)
    assert any(each.startswith("imported: halved") for each in row["warnings"])


@settings(deadline=None, max_examples=40)
@given(values=latency_lists)
def test_a_quantile_of_the_printed_table_is_ours_or_null(
    tmp_path_factory: pytest.TempPathFactory, values: list[int]
) -> None:
    """Its rank is floor(n p), ours ceil(n p)."""
    tmp_path = tmp_path_factory.mktemp("table")
    [row] = imported(tmp_path, latency_test_table({64: [value / 1000 for value in values]}))
    ours = exact(values)
    for name, per in (("p50", 2), ("p90", 10), ("p99", 100)):
        told = row[f"latency_{name}_ns"]
        assert told in (None, ours[f"latency_{name}_ns"])
        if len(values) % per == 0:
            assert told == ours[f"latency_{name}_ns"]
    assert row["n"] == len(values)
    moments_are(row, values, 1.0)


# --- LatencyTest


def test_a_table_gives_a_cell_per_payload(tmp_path: Path) -> None:
    latencies = {16: [each / 1 for each in MICROSECONDS], 1024: [each * 2.0 for each in MICROSECONDS]}
    rows = imported(tmp_path, latency_test_table(latencies), latency_test_table(latencies))
    assert [row["cell"] for row in rows] == [f"imported/LatencyTest/{size}B" for size in (16, 1024)] * 2
    assert [row["trial"] for row in rows] == [0, 0, 1, 1]
    assert rows[1]["latency_p99_ns"] == 2 * rows[0]["latency_p99_ns"]
    assert rows[0]["latency_p25_ns"] is None and absent(tmp_path)["latency_p25_ns"]
    assert rows[0]["sent"] is None and rows[0]["lost"] is None and absent(tmp_path)["lost"]


@pytest.mark.parametrize(
    "text",
    [
        '"Minimum of 10000 samples (reliable)","Average of 10000 samples (reliable)"\n"12.1","13.4"\n',
        '"10000 samples of 16 bytes (us)","10000 samples of 1024 bytes (us)"\n"12.1","13.4"\n',
    ],
)
def test_minimum_and_mean_without_a_count_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ExchangeError, match=r"without the number of round trips.*--export_raw_data"):
        imported(tmp_path, text)


# --- rtiperftest


def test_intervals_give_every_latency(tmp_path: Path) -> None:
    rows = imported(tmp_path, rtiperftest_csv({32: MICROSECONDS, 64: MICROSECONDS[:100]}))
    assert [row["cell"] for row in rows] == ["imported/rtiperftest/32B", "imported/rtiperftest/64B"]
    assert [row["n"] for row in rows] == [1000, 100]
    assert {name: rows[0][name] for name in exact(NANOSECONDS)} == exact(NANOSECONDS)
    moments_are(rows[0], NANOSECONDS, 0.01)
    assert open_campaign(tmp_path / "imported").manifest["imported"]["version"] == "4.1.0"


def test_quantiles_without_a_count_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r"quantiles without the number of echoes.*-noPrintIntervals"):
        imported(tmp_path, rtiperftest_csv({32: MICROSECONDS}, intervals=False))


@pytest.mark.parametrize(("unit", "ns"), [("ns", 1), ("us", 1000), ("μs", 1000), ("\u00b5s", 1000)])
def test_the_head_names_the_unit_of_intervals(tmp_path: Path, unit: str, ns: int) -> None:
    """Up to 4.2 a build that counts nanoseconds prints whole ones. An option says nothing of them."""
    values = [23_400 + each for each in MICROSECONDS]
    [row] = imported(tmp_path, rtiperftest_csv({32: values}, unit=unit, summary="Length"), unit="ms")
    latencies_ns = [value * ns for value in values]
    assert {name: row[name] for name in exact(latencies_ns)} == exact(latencies_ns)
    moments_are(row, latencies_ns, 0.01)
    [log] = open_campaign(tmp_path / "imported").manifest["imported"]["logs"]
    assert log["unit"] == ("ns" if ns == 1 else "us")


def test_an_unknown_unit_of_intervals_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r":5: latencies in 'ticks', but ns, us or μs were expected"):
        imported(tmp_path, rtiperftest_csv({32: MICROSECONDS}, unit="ticks"))


@pytest.mark.parametrize("first", [5, 20, 60, 40_000])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_the_first_echo_may_be_in_the_figures_so_far_without_a_line(
    tmp_path: Path, first: int, unit: str
) -> None:
    """Up to 4.1 mean, minimum and maximum include it."""
    [row] = imported(tmp_path, rtiperftest_csv({32: MICROSECONDS}, unit=unit, first=first))
    latencies_ns = [value * (1 if unit == "ns" else 1000) for value in MICROSECONDS]
    assert row["n"] == len(latencies_ns)
    moments_are(row, latencies_ns, 0.01)


def test_a_line_that_is_missing_shows_in_the_mean(tmp_path: Path) -> None:
    lines = rtiperftest_csv({32: [20, 20, 900, 20, 20]}).splitlines()
    slow = next(place for place, line in enumerate(lines) if line.split(",")[1:2] == ["          900"])
    with pytest.raises(
        ExchangeError, match=r":\d+: the mean is 240 us here, but that of the lines before is 20"
    ):
        imported(tmp_path, "\n".join([*lines[:slow], *lines[slow + 1 :]]) + "\n")


@pytest.mark.parametrize(("value", "name"), [(5, "minimum"), (90, "maximum")])
@pytest.mark.parametrize("first", [None, 70])
def test_a_line_that_is_missing_shows_in_minimum_or_maximum(
    tmp_path: Path, value: int, name: str, first: int | None
) -> None:
    """In whole microseconds the mean of many does not tell of one."""
    latencies = [20 + place % 7 for place in range(1000)]
    lines = rtiperftest_csv({32: [*latencies[:500], value, *latencies[500:]]}, first=first).splitlines()
    place = next(place for place, line in enumerate(lines) if line.split(",")[1:2] == [f"{value:13d}"])
    with pytest.raises(ExchangeError, match=rf":{place + 1}: the {name} is {value} us here, but that of"):
        imported(tmp_path, "\n".join([*lines[:place], *lines[place + 1 :]]) + "\n")


def test_a_first_line_that_is_missing_shows_in_the_next(tmp_path: Path) -> None:
    lines = rtiperftest_csv({32: [20, 40, 30, 30]}, first=60).splitlines()
    with pytest.raises(ExchangeError, match=r":6: the first latency of 32 bytes is neither minimum nor max"):
        imported(tmp_path, "\n".join([*lines[:5], *lines[7:]]) + "\n")


def test_throughput_holds_no_latency(tmp_path: Path) -> None:
    head = "Length (Bytes), Total Samples,  Samples/s, Avg Samples/s,     Mbps,  Avg Mbps, Lost Samples"
    with pytest.raises(ExchangeError, match="throughput, which a subscriber writes"):
        imported(tmp_path, f"{head}\n 100, 5000, 1000, 1000, 0.8, 0.8, 0\n")


def test_a_file_of_samples_needs_a_unit(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="does not name its unit: --unit us"):
        imported(tmp_path, rtiperftest_samples(MICROSECONDS))
    rows = imported(tmp_path, rtiperftest_samples(MICROSECONDS) * 2, unit="us")
    assert [row["cell"] for row in rows] == [f"imported/rtiperftest/run0/run-{place}" for place in (0, 1)]
    assert rows[0]["latency_p50_ns"] == exact(NANOSECONDS)["latency_p50_ns"]


# --- ddsperf


def test_the_seconds_of_a_run_are_one_trial_without_quantiles(tmp_path: Path) -> None:
    seconds = [NANOSECONDS[:100], [], NANOSECONDS[100:105], [each * 9 for each in NANOSECONDS[105:]]]
    [row] = imported(tmp_path, ddsperf_text(seconds))
    latencies = [each for second in seconds for each in second]
    assert row["cell"] == "imported/ddsperf/ping/1024B" and row["n"] == len(latencies)
    moments_are(row, latencies, 1.0)
    for name in (*exact([1]), "latency_sd_ns", "lost", "sent"):
        assert row[name] is None and absent(tmp_path)[name], name
    assert any(each.startswith("imported: halved") for each in row["warnings"])


def test_one_way_latencies_name_their_two_clocks_and_their_loss(tmp_path: Path) -> None:
    seconds = [NANOSECONDS[:100], [each - 500_000 for each in NANOSECONDS[100:]]]
    [row] = imported(tmp_path, ddsperf_text(seconds, " sublat", lost=7))
    assert row["cell"] == "imported/ddsperf/sublat/1024B" and row["lost"] == 7
    assert sum(each.startswith("imported: clocks") for each in row["warnings"]) == 2
    moments_are(row, [each for second in seconds for each in second], 1.0)


def test_several_peers_are_cells_of_their_own(tmp_path: Path) -> None:
    text = ddsperf_text([NANOSECONDS], peer="a:1") + ddsperf_text([NANOSECONDS], peer="b:2")
    rows = imported(tmp_path, text)
    assert [row["cell"] for row in rows] == [f"imported/ddsperf/ping/1024B/{peer}" for peer in ("a:1", "b:2")]


def test_what_a_process_lost_is_its_own(tmp_path: Path) -> None:
    """The outputs of two readers in one file: each prints the sum of what it lost, over its writers."""
    fine = ddsperf_text([NANOSECONDS] * 2, " sublat", lost=0)
    lossy = ddsperf_text([NANOSECONDS] * 2, " sublat", lost=80).replace("[100]", "[200]")
    for text in (fine + lossy, lossy + fine):
        rows = imported(tmp_path, text)
        assert sorted(row["lost"] for row in rows) == [0, 80]
        assert [row["lost"] for row in rows] == ([0, 80] if text.startswith(fine) else [80, 0])
        shutil.rmtree(tmp_path / "imported")
    second = ddsperf_text([[], NANOSECONDS], " sublat", "other:1").replace("[100] 1.000", "[100] 2.000")
    [one, other, third] = imported(tmp_path, fine + second + lossy)
    assert (one["lost"], other["lost"], third["lost"]) == (None, None, 80)


def test_two_runs_of_one_process_id_are_not_one(tmp_path: Path) -> None:
    """In a container the process id may be the same in each run; the time begins again."""
    with pytest.raises(ExchangeError, match=r":9: another run of process 100"):
        imported(tmp_path, ddsperf_text([NANOSECONDS] * 3) + ddsperf_text([NANOSECONDS] * 3))


def test_a_rate_alone_is_no_latency(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="throughput alone, no latency; run `ddsperf ping`"):
        imported(tmp_path, ddsperf_text([[], []], lost=0))


# --- ros2-performance


@pytest.mark.parametrize("csv", [True, False], ids=["csv", "columns"])
def test_a_subscription_is_a_cell(tmp_path: Path, csv: bool) -> None:
    rows = imported(tmp_path, ros2_performance_text([("mobile", "amazon", MICROSECONDS, 0, 3)], csv))
    [row] = rows  # publishers' rows are no latencies
    assert row["cell"] == "imported/ros2-performance/amazon-mobile/100B"
    assert (row["n"], row["lost"], row["rate_hz"], row["payload_bytes"]) == (1000, 3, 100.0, 100)
    moments_are(row, NANOSECONDS, 1000.0)
    assert row["latency_p50_ns"] is None and absent(tmp_path)["latency_p50_ns"]


def test_where_messages_came_too_late_the_rest_is_no_mean(tmp_path: Path) -> None:
    [row] = imported(tmp_path, ros2_performance_text([("rome", "nile", MICROSECONDS, 5, 0)]))
    assert (row["n"], row["latency_min_ns"]) == (1005, min(NANOSECONDS))
    for name in ("latency_mean_ns", "latency_sd_ns", "latency_max_ns"):
        assert row[name] is None and absent(tmp_path)[name]
    assert any("5 messages came too late" in each for each in row["warnings"])


@pytest.mark.parametrize("separator", [",", "   "])
def test_an_average_of_averages_is_refused(tmp_path: Path, separator: str) -> None:
    columns = ("received_msgs", "mean_us", "late_msgs", "late_perc", "too_late_msgs", "too_late_perc")
    with pytest.raises(ExchangeError, match=r"an average of averages; give latency_all\.txt"):
        imported(tmp_path, f"{separator.join(columns)}\n{separator.join(['100'] * 6)}\n")


# --- all of them


SAMPLES = {
    "performance-test": log_text(V2_3, [Second(NANOSECONDS[:100])] * 4),
    "hlog": hlog_text([("", 1.0, NANOSECONDS)], head=["#[Logged with jHiccup version 2.0.10]"]),
    "latency-test": latency_test_table({64: [each / 1 for each in MICROSECONDS]}),
    "rtiperftest": rtiperftest_csv({64: MICROSECONDS[:200]}),
    "ddsperf": ddsperf_text([NANOSECONDS]),
    "ros2-performance": ros2_performance_text([("mobile", "amazon", MICROSECONDS, 0, 3)]),
}


def test_every_format_has_a_sample_here() -> None:
    assert set(SAMPLES) == {each.name for each in FORMATS}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_told_from_its_content_and_the_campaign_says_what_it_is(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.write_text(SAMPLES[name])
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(["import", str(path), "--out", str(out), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0 and said["format"] == name
    campaign = open_campaign(out)
    told = campaign.manifest["imported"]
    assert (told["format"], told["from"]) == (name, said["imported"]) and told["absent"]
    assert (out / "imported" / "0-file").read_bytes() == path.read_bytes()
    assert all(row["warnings"][0].startswith("imported: figures of") for row in campaign.cells.to_dicts())
    assert campaign.imported_from == said["imported"] and "cpu_per_message_ns" in campaign.cells.columns
    assert campaign.cells["cpu_per_message_ns"].null_count() == campaign.cells.height
    report = build_report(campaign)
    assert [row.cell for row in report.rows] == campaign.cells["cell"].to_list() and not report.curves
    for command in (["show", str(out)], ["show", str(out), "--json"]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0 and "not measured by lagometer" in capsys.readouterr().out


def test_files_of_two_formats_are_imported_apart(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r"run1\.txt: ddsperf, but .*run0\.txt is latency-test"):
        imported(tmp_path, SAMPLES["latency-test"], SAMPLES["ddsperf"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SAMPLES["latency-test"].replace(".", ","),
            "18 fields, but 10 columns",
        ),
        (latency_test_raw({64: [12.5]}).replace("12.5", "12,5"), "4 fields, but 3 columns"),
        (
            rtiperftest_csv({64: [20, 30]}, nanoseconds=True).replace(".000", ",000"),
            "11 fields, but 6 columns",
        ),
        (SAMPLES["ddsperf"].replace(".", ","), "its decimals are written with a comma"),
        (SAMPLES["performance-test"].replace("1.000070", "1,000070"), "30 fields, but 28 columns"),
    ],
    ids=["latency-test", "raw", "rtiperftest", "ddsperf", "performance-test"],
)
def test_decimal_commas_are_refused_with_the_way_out(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(
        ExchangeError, match=rf"run0\.txt:\d+: .*{message}.*LC_ALL=C|{message}; run it with LC_ALL=C"
    ):
        imported(tmp_path, text)


# --- beside others


def test_show_has_the_moments_that_other_tools_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [row] = imported(tmp_path, SAMPLES["ddsperf"])
    with pytest.raises(SystemExit):
        main(["show", str(tmp_path / "imported")])
    said = capsys.readouterr().out
    names = re.search(r"cell +n +lost +min +mean +sd +p50 +p90 +p99 +max", said)
    figures = re.search(r"1024B +1000 +- +20\.0 µs +(\S+) µs +- +- +- +- +116 µs", said)
    assert names and figures and float(figures[1]) == pytest.approx(row["latency_mean_ns"] / 1000, abs=0.1)


def test_compare_says_why_it_gives_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of an imported campaign's machine nothing is known, so nothing of it differs."""
    imported(tmp_path, SAMPLES["latency-test"])
    for other in (tmp_path / "imported", GOLDEN / "campaign-v1"):
        with pytest.raises(SystemExit) as ended:
            main(["compare", str(tmp_path / "imported"), str(other)])
        said = capsys.readouterr().out
        assert ended.value.code == 9 and "kernel" not in said
        why = "figures imported from LatencyTest have no samples, so no interval"
        assert (
            "differs in origin: LatencyTest → measured by lagometer" if other.name == "campaign-v1" else why
        ) in said


def test_the_recipe_can_be_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands, with files of those names; what it measures is a campaign that is there already."""
    whole = (ROOT / "docs" / "RECIPES.md").read_text(encoding="utf-8")
    recipe = whole.split("## Compare with what you already have\n")[1].split("\n## ")[0]
    commands = [shlex.split(line)[1:] for line in recipe.splitlines() if line.startswith("    lagometer ")]
    assert {command[0] for command in commands} == {"import", "measure", "show"}
    monkeypatch.chdir(tmp_path)
    seconds = [Second(NANOSECONDS[:100])] * 4
    sends = [Second(NANOSECONDS[:100], sends_only=True)] * 4
    heard = [Second(each.latencies_ns, hears_only=True) for each in seconds]
    heads: list[dict[str, Any]] = [{"number_of_subscribers": 0}, {"number_of_publishers": 0}]
    Path("sender.json").write_text(json_text(V1_0, sends, ignored=True, **heads[0]))
    Path("subscriber.json").write_text(json_text(V1_0, heard, ignored=True, **heads[1]))
    Path("latency.hlog").write_text(hlog_text([("", 1.0, MICROSECONDS)]))
    shutil.copytree(GOLDEN / "campaign-v1", "out/now")
    for command in commands:
        if command[0] == "measure":
            continue
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "one trial of subscriber.json and sender.json" in said and "not measured by lagometer" in said
    assert open_campaign("out/before").cells["sent"].to_list() == [400]
    assert open_campaign("out/histograms").cells["latency_max_ns"][0] // 1000 == max(MICROSECONDS)
