# SPDX-License-Identifier: Apache-2.0
"""HdrHistogram's logs: encodings, times, tags and units, and quantiles that are ours up to the resolution."""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from import_samples import bucket_of, histogram_text, hlog_text, many

from lagometer.cli.main import main
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.histogram import encoded
from lagometer.exchange.histogram_reading import Histogram, decoded, joined, quantile
from lagometer.exchange.hlog import write_hlog
from lagometer.exchange.imports.formats import import_files
from lagometer.exchange.imports.trial import Options
from lagometer.stats.trial import estimate
from lagometer.store import format as form
from lagometer.store.reader import open_campaign

GOLDEN = Path(__file__).parents[2] / "golden"
NS = Options("ns")
VALUES = [*range(10_000, 11_000), 5_000_000]


def imported(tmp_path: Path, text: str, options: Options = NS) -> list[dict[str, Any]]:
    path = tmp_path / "run.hlog"
    path.write_text(text, encoding="utf-8")
    import_files([path], tmp_path / "imported", None, options)
    return open_campaign(tmp_path / "imported").cells.to_dicts()


def manifest(tmp_path: Path) -> dict[str, Any]:
    told: dict[str, Any] = open_campaign(tmp_path / "imported").manifest["imported"]
    return told


# --- encodings


@pytest.mark.parametrize(
    ("version", "word"), [(0, 2), (0, 4), (0, 8), (1, 2), (1, 4), (1, 8), (2, 9)], ids=str
)
@settings(deadline=None, max_examples=30)
@given(
    values=st.lists(st.integers(0, 2**40), max_size=50),
    digits=st.integers(0, 4),
    unit=st.sampled_from([1, 2, 1000, 1024]),
)
def test_every_encoding_gives_the_buckets_of_the_values(
    version: int, word: int, values: list[int], digits: int, unit: int
) -> None:
    """The encoder of the test knows no library. Counters are many: only small values with many digits."""
    values = [value % (10**6) for value in values] if version < 2 else values
    found = decoded(histogram_text(values, version, digits, unit, min(word, 8)), "here")
    assert found.total == len(values) and found.digits == digits
    assert int(found.counts.min(initial=1)) > 0 and (np.diff(found.lowest) > 0).all()
    for value in values:
        [place] = np.flatnonzero((found.lowest <= value) & (value <= found.highest))
        width = found.highest[place] - found.lowest[place] + 1
        assert width <= max(found.unit, found.lowest[place] * 10.0**-digits)
        assert bucket_of(int(found.lowest[place]), digits, unit) == bucket_of(value, digits, unit)


@settings(deadline=None, max_examples=100 if "LAGOMETER_LONG" in os.environ else 30)
@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=100))
def test_the_buckets_are_those_of_the_library_and_of_our_own_export(values: list[int]) -> None:
    theirs = HdrHistogram(1, max(2, *values, 2), 3)
    for value in values:
        theirs.record_value(value)
    for text in (theirs.encode().decode(), encoded(np.array(values, dtype=np.int64))):
        found = decoded(text, "here")
        of_library = [
            (each.value_iterated_to, each.count_at_value_iterated_to)
            for each in theirs.get_recorded_iterator()
        ]
        assert list(zip(found.highest.tolist(), found.counts.tolist(), strict=True)) == of_library


def with_count(count: int) -> str:
    """Five zeros and this count. From 2^55 on a number has a ninth byte, which holds eight bits."""
    value, body = count << 1, bytearray()
    while value >= 0x80 and len(body) < 8:
        body.append(value & 0x7F | 0x80)
        value >>= 7
    payload = bytes([9, *body, value])
    packed = zlib.compress(struct.pack(">IIIIqqd", 0x1C849313, len(payload), 0, 3, 1, 100, 1.0) + payload)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


@pytest.mark.parametrize("count", [300, 2**40, 2**57 + 12_345])
def test_long_counts_are_read(count: int) -> None:
    found = decoded(with_count(count), "here")
    assert (found.lowest.tolist(), found.counts.tolist()) == ([5], [count])


def test_a_count_beyond_all_measure_is_refused() -> None:
    with pytest.raises(ExchangeError, match="a count that can't be"):
        decoded(with_count(2**62 + 5), "here")


# --- quantiles


@settings(deadline=None, max_examples=100)
@given(
    values=many(st.integers(0, 10**9)),
    digits=st.integers(1, 3),
    version=st.sampled_from([1, 2]),
    permille=st.sampled_from([250, 500, 750, 900, 990, 999]),
)
def test_a_quantile_is_ours_up_to_the_resolution(
    values: list[int], digits: int, version: int, permille: int
) -> None:
    """Held against the raw values: absent for the same numbers of samples, never below, above by a bucket."""
    values = [value % 10**6 for value in values] if version == 1 else values
    found = decoded(histogram_text(values, version, digits), "here")
    exact = estimate.quantile(np.sort(np.array(values, dtype=np.int64)), permille)
    told = quantile(found, permille)
    assert (told is None) == (exact is None)
    if told is not None and exact is not None:
        assert exact <= told <= exact + max(1.0, exact * 10.0**-digits)
        assert bucket_of(told, digits, 1) == bucket_of(exact, digits, 1)


@settings(deadline=None, max_examples=60)
@given(
    parts=st.lists(
        st.tuples(st.integers(1, 3), many(st.integers(0, 10**9))),
        min_size=1,
        max_size=4,
    ),
    permille=st.sampled_from([250, 500, 900]),
)
def test_so_it_is_where_intervals_have_other_buckets(
    parts: list[tuple[int, list[int]]], permille: int
) -> None:
    whole = joined([decoded(histogram_text(values, 2, digits), "here") for digits, values in parts])
    ordered = np.sort(np.array([value for _, values in parts for value in values], dtype=np.int64))
    exact, told = estimate.quantile(ordered, permille), quantile(whole, permille)
    assert (told is None) == (exact is None)
    if told is not None and exact is not None:
        assert exact <= told <= exact + max(1.0, exact * 10.0**-whole.digits)


# --- logs


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_log_gives_a_trial_per_tag(tmp_path: Path, version: int) -> None:
    shape = {"unit": 1024} if version < 2 else {}
    text = hlog_text(
        [("", 0.127, VALUES), ("A", 0.127, [7_000_000] * 30), ("", 1.134, VALUES)], version, **shape
    )
    plain, tagged = imported(tmp_path, text)
    assert plain["cell"] == "imported/HdrHistogram/run" and tagged["cell"] == "imported/HdrHistogram/run/A"
    assert (plain["n"], tagged["n"]) == (2002, 30)
    exact = estimate.quantile(np.sort(np.array(VALUES * 2)), 500)
    assert exact is not None and exact <= plain["latency_p50_ns"] <= exact + 1024
    assert plain["latency_p999_ns"] is None  # three values lie beyond it
    assert plain["latency_min_ns"] <= 10_000 and 5_000_000 <= plain["latency_max_ns"] <= 5_005_000
    assert plain["latency_mean_ns"] == pytest.approx(np.mean(VALUES), rel=0.05)
    assert plain["lost"] is None and plain["sent"] is None
    assert any(
        "upper bounds of buckets: above the value by at most 0.1 %" in each for each in plain["warnings"]
    )
    told = manifest(tmp_path)
    assert told["logs"][0]["max_unit_ratio"] == 1e6 and "lost" in told["absent"]


@pytest.mark.parametrize(
    ("head", "start_s", "expected"),
    [
        (
            ["#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]"],
            0.127,
            1441812279.601,
        ),
        (["#[StartTime: 1441812279.474 (seconds since epoch)]"], 1441812280.5, 1441812280.5),
        (
            ["#[StartTime: 1441812279.474 (seconds)]", "#[BaseTime: 1441812000.250 (seconds)]"],
            0.127,
            1441812000.377,
        ),
        ([], 1441812280.5, 1441812280.5),
        ([], 12.5, None),
    ],
    ids=["from-start", "absolute", "from-base", "no-start", "unknown"],
)
def test_times_count_from_the_base_the_start_or_the_epoch(
    tmp_path: Path, head: list[str], start_s: float, expected: float | None
) -> None:
    [row] = imported(tmp_path, hlog_text([("", start_s, VALUES)], head=head))
    started = None if row["started"] is None else datetime.fromisoformat(row["started"]).timestamp()
    assert started == (None if expected is None else pytest.approx(expected, abs=1e-3))


@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e6])
def test_the_ratio_of_the_maximum_is_found_and_decides_no_unit(tmp_path: Path, ratio: float) -> None:
    text = hlog_text([("", 1.0, VALUES)], ratio=ratio)
    with pytest.raises(ExchangeError, match=r"does not name the unit of its values .*--unit ns, us, ms or s"):
        imported(tmp_path, text, Options())
    [row] = imported(tmp_path, text, Options("us"))
    assert row["latency_max_ns"] // 1000 == pytest.approx(5_000_000, rel=1e-3)
    assert manifest(tmp_path)["logs"][0]["max_unit_ratio"] == ratio


def test_a_maximum_that_does_not_fit_is_named(tmp_path: Path) -> None:
    [row] = imported(tmp_path, hlog_text([("", 1.0, VALUES)], ratio=1234.0))
    assert any("Interval_Max does not fit" in each for each in row["warnings"])


def test_a_log_of_jhiccup_names_its_unit(tmp_path: Path) -> None:
    text = hlog_text([("", 1.0, VALUES)], head=["#[Logged with jHiccup version 2.0.10]"])
    [row] = imported(tmp_path, text, Options())
    assert row["n"] == len(VALUES)
    with pytest.raises(ExchangeError, match="its head says that values are ns, not ms"):
        (tmp_path / "again").mkdir()
        imported(tmp_path / "again", text, Options("ms"))


def test_our_own_export_comes_back_trial_by_trial(tmp_path: Path) -> None:
    campaign = open_campaign(GOLDEN / "campaign-v1")
    write_hlog(campaign, tmp_path / "out.hlog")
    import_files([tmp_path / "out.hlog"], tmp_path / "imported")
    back = open_campaign(tmp_path / "imported").cells
    assert back.height == campaign.cells.height
    for ours, theirs in zip(
        campaign.cells.sort("cell", "trial", "edge").to_dicts(),
        back.sort("cell", "trial", "edge").to_dicts(),
        strict=True,
    ):
        assert theirs["cell"] == f"imported/HdrHistogram/{ours['cell']}" and theirs["edge"] == ours["edge"]
        assert theirs["n"] == ours["n"]
        for name in ("p50", "p90", "p99", "max"):
            exact, told = ours[f"latency_{name}_ns"], theirs[f"latency_{name}_ns"]
            assert (told is None) == (exact is None)
            assert told is None or exact <= told <= exact * 1.001
        assert theirs["latency_mean_ns"] == pytest.approx(ours["latency_mean_ns"], rel=1e-3)
    assert set(back["edge"]) >= {form.END_TO_END}


def test_a_histogram_scales_its_values(tmp_path: Path) -> None:
    found = decoded(histogram_text([100] * 20, 2), "here")
    assert isinstance(found, Histogram) and found.scale == 1.0


# --- what is wrong with it


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1.0,1.0,0.5", "3 fields, but an interval has 4"),
        ("1,0,1,0,0,5,HISTFAAA", "7 fields, but an interval has 4 .*LC_ALL=C"),
        ("1.0,one,0.5,HISTFAAA", "'one' is not a number"),
        ("1.0,1.0,0.5,HISTFAA", "not base64"),
        ("1.0,1.0,0.5,AAAAAAAAAAAA", "not a compressed HdrHistogram"),
        ("1.0,1.0,0.5,HISTFAAAAEV42pNp", "bytes of 69; the line was cut off"),
        ("1.0,1.0,0.5,DHISTg==", "not base64|not a compressed"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    text = hlog_text([("", 0.5, VALUES)]) + line + "\n"
    with pytest.raises(ExchangeError, match=rf"run\.hlog:4: .*({message})"):
        imported(tmp_path, text)


def test_a_double_histogram_is_refused_as_such(tmp_path: Path) -> None:
    raw = base64.b64encode(struct.pack(">II", 0x0C72124F, 4) + b"1234").decode()
    with pytest.raises(ExchangeError, match="a DoubleHistogram"):
        imported(tmp_path, hlog_text([]) + f"1.0,1.0,0.5,{raw}\n")


@pytest.mark.parametrize("intervals", [[], [("", 1.0, [])]], ids=["no-interval", "no-value"])
def test_a_log_without_values_has_nothing_to_import(tmp_path: Path, intervals: Any) -> None:
    with pytest.raises(ExchangeError, match="leave the file out"):
        imported(tmp_path, hlog_text(intervals))


def test_the_command_takes_a_unit_and_shows_no_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.hlog"
    path.write_text(hlog_text([("", 1.0, VALUES)]))
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(["import", str(path), "--unit", "ns", "--out", str(out), "--json"])
    assert ended.value.code == 0 and json.loads(capsys.readouterr().out)["format"] == "hlog"
    with pytest.raises(SystemExit) as ended:
        main(["show", str(out)])
    said = capsys.readouterr().out
    assert ended.value.code == 0 and re.search(r"HdrHistogram/run +1001 +- ", said)
