# SPDX-License-Identifier: Apache-2.0
"""Logs of performance_test 1.0 to 2.3, as each version's source writes them, are read for what they mean."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from performance_test_model import (
    UPTIME_S,
    V1_0,
    V1_1,
    V1_4,
    V1_5,
    V2_3,
    VERSIONS,
    Second,
    Version,
    in_integers,
    json_text,
    log_text,
)

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.campaign import warning
from lagometer.exchange.imports.formats import import_files
from lagometer.exchange.imports.performance_test import NO_DEVIATION
from lagometer.exchange.imports.performance_test_log import read_log
from lagometer.exchange.imports.source import Source
from lagometer.store.reader import open_campaign

WARNING = warning("performance_test")


def written(tmp_path: Path, text: str) -> Source:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return Source.read(path)


def imported(tmp_path: Path, text: str) -> dict[str, Any]:
    import_files([written(tmp_path, text).path], tmp_path / "imported")
    return open_campaign(tmp_path / "imported").cells.row(0, named=True)


def manifest(tmp_path: Path) -> dict[str, Any]:
    told: dict[str, Any] = open_campaign(tmp_path / "imported").manifest["imported"]
    return told


seconds_of = st.lists(
    st.builds(
        Second,
        st.lists(st.integers(20_000, 5_000_000), max_size=40),
        st.sampled_from([0, 0, 2, 3]),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.by_turn
@pytest.mark.parametrize("write", [log_text, json_text], ids=["csv", "json"])
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.number)
@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(seconds=seconds_of, loop_s=st.sampled_from([1.000067, 1.0003]))
def test_every_version_means_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    version: Version,
    write: Callable[..., str],
    seconds: list[Second],
    loop_s: float,
) -> None:
    """An empty second first shows in which arithmetic the log was written."""
    seconds = [Second([]), Second([]), *seconds]
    counted = seconds[1:]
    latencies = np.array([each for second in counted for each in second.latencies_ns])
    tmp_path = tmp_path_factory.mktemp("log")
    text = write(version, seconds, loop_s)
    if not latencies.size:
        with pytest.raises(ExchangeError, match="nothing to import"):
            imported(tmp_path, text)
        return
    row = imported(tmp_path, text)
    # Up to 1.4 a row without messages may look like one with a message that changes no figure.
    bounds = [each for each in row["warnings"] if "n lies between" in each]
    if bounds:
        low, high = (int(each) for each in re.findall(r"\d+", bounds[0])[:2])
        assert version.cumulative and write is log_text and low <= latencies.size <= high
    else:
        assert row["n"] == latencies.size
    # One message in more than a second was cut to nought, and nothing else tells of it.
    sent = sum(second.sent for second in counted)
    assert row["sent"] is None or row["sent"] == sent
    between = [warning for warning in row["warnings"] if "sent is not known exactly" in warning]
    if between:
        low, high = (int(each) for each in re.findall(r"\d+", between[0]))
        assert low <= sent <= high
    assert row["lost"] == sum(second.lost for second in counted)
    assert row["latency_min_ns"] == pytest.approx(latencies.min(), rel=1e-3)
    assert row["latency_max_ns"] == pytest.approx(latencies.max(), rel=1e-3)
    assert row["latency_mean_ns"] == pytest.approx(latencies.mean(), rel=1e-3)
    if latencies.size > 1:
        digit = 1e-3 * latencies.max()
        assert row["latency_sd_ns"] == pytest.approx(latencies.std(ddof=1), rel=1e-3, abs=digit)
    assert row["latency_p50_ns"] is None and row["warnings"][0] == WARNING
    told = manifest(tmp_path)["logs"][0]
    if write is log_text:
        assert told["read_as"] == version.read_as
    assert told["rows_left_out"] == 1


@pytest.mark.parametrize("write", [log_text, json_text], ids=["csv", "json"])
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.number)
def test_the_cell_is_named_alike(tmp_path: Path, version: Version, write: Callable[..., str]) -> None:
    seconds = [Second([100_000 + each] * 100) for each in range(6)]
    expected = "Array1k/100Hz/best_effort/keep_last/volatile/depth-16/1-to-1"
    imported(tmp_path, write(version, seconds))
    cells = open_campaign(tmp_path / "imported").cells["cell"].to_list()
    assert [cell.split("/", 3)[3] for cell in cells] == [expected]
    assert (
        cells[0].split("/")[2].lower().replace("_", "-")
        == "rclcpp-single-threaded-executor+rmw-cyclonedds-cpp"
    )
    mode = {"Roundtrip Mode" if write is log_text else "roundtrip_mode": "MAIN"}
    (tmp_path / "main").mkdir()
    row = imported(tmp_path / "main", write(version, seconds, **mode))
    assert row["cell"] == f"{cells[0]}/main" and any("round trip" in each for each in row["warnings"])


# --- latencies of all messages so far, 1.1.1 to 1.4.2


ONCE_SLOW = [Second([100_000] * 100), Second([900_000] * 50 + [100_000] * 50), *[Second([100_000] * 100)] * 4]


@pytest.mark.parametrize("write", [log_text, json_text], ids=["csv", "json"])
@pytest.mark.parametrize("version", [V1_1, V1_4], ids=lambda version: version.number)
def test_the_last_row_counts_where_rows_are_cumulative(
    tmp_path: Path, version: Version, write: Callable[..., str]
) -> None:
    """Pooled as if each row were a second, the slow messages of one would count once per row."""
    truth = np.array([each for second in ONCE_SLOW for each in second.latencies_ns])
    row = imported(tmp_path, write(version, ONCE_SLOW, ignored=True))
    assert row["n"] == 600
    assert row["latency_mean_ns"] == pytest.approx(truth.mean(), rel=1e-3)
    assert row["latency_sd_ns"] == pytest.approx(truth.std(ddof=1), rel=1e-3)
    told = manifest(tmp_path)["logs"][0]
    assert told["read_as"] == version.read_as
    by_number = "latency_n" if version.reserves else "a row's figures"
    assert told["told_by"] == (by_number if write is json_text else "minimum and maximum over all rows")


@pytest.mark.parametrize("version", [V1_0, V1_5], ids=lambda version: version.number)
def test_rows_of_their_own_are_told_from_cumulative_ones(tmp_path: Path, version: Version) -> None:
    """Rows before the first were ignored, so only minimum and maximum show which version it is."""
    seconds = [Second([base + each for each in range(100)]) for base in (200_000, 100_000, 300_000)]
    truth = np.array([each for second in seconds for each in second.latencies_ns])
    row = imported(tmp_path, log_text(version, seconds, ignored=True))
    assert row["n"] == 300
    assert row["latency_mean_ns"] == pytest.approx(truth.mean(), rel=1e-3)
    assert row["latency_sd_ns"] == pytest.approx(truth.std(ddof=1), rel=1e-3)
    told = manifest(tmp_path)["logs"][0]
    assert (told["read_as"], told["told_by"]) == (version.read_as, "minimum and maximum over all rows")


# Each slower at most and faster at least than the one before, as rows of all messages so far are.
WIDER = [
    Second(list(range(200_000 - 10_000 * each, 300_000 + 900_000 * each, 1_000 + 9_000 * each)))
    for each in range(8)
]


@pytest.mark.parametrize("rows", [3, 4, 5, 8])
@pytest.mark.parametrize("version", [V1_0, V1_5], ids=lambda version: version.number)
def test_moments_tell_rows_of_their_own_where_extremes_grow_by_chance(
    tmp_path: Path, version: Version, rows: int
) -> None:
    truth = np.array([each for second in WIDER[:rows] for each in second.latencies_ns])
    row = imported(tmp_path, log_text(version, WIDER[:rows], ignored=True))
    assert row["n"] == truth.size
    assert row["latency_mean_ns"] == pytest.approx(truth.mean(), rel=1e-3)
    told = manifest(tmp_path)["logs"][0]
    assert (told["read_as"], told["told_by"]) == (version.read_as, "mean and variance over all rows")


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("version", [V1_0, V1_1, V1_4, V1_5], ids=lambda version: version.number)
def test_too_few_rows_that_mean_either_are_refused(tmp_path: Path, version: Version, rows: int) -> None:
    """Of their own, the mean is that of all rows; of all so far, that of the last row."""
    seconds = [Second([200_000 - each] * 99 + [300_000 + 5_000 * each]) for each in range(rows)]
    text = log_text(version, seconds, ignored=True)
    with pytest.raises(ExchangeError, match=rf"log\.csv: {rows} rows with latencies are too few .* JSON log"):
        imported(tmp_path, text)
    row = imported(tmp_path, json_text(version, seconds, ignored=True))
    assert row["n"] == 100 * rows


@pytest.mark.parametrize("version", [V1_0, V1_1, V2_3], ids=lambda version: version.number)
def test_few_rows_of_a_version_that_is_known_are_read(tmp_path: Path, version: Version) -> None:
    seconds = [Second([200_000] * 100), Second([200_000] * 100), Second([100_000] * 50 + [300_000] * 50)]
    row = imported(tmp_path, log_text(version, seconds))
    assert row["n"] == 200 and row["latency_max_ns"] == 300_000
    assert manifest(tmp_path)["logs"][0]["read_as"] == version.read_as


def test_what_the_first_row_does_not_count_is_named(tmp_path: Path) -> None:
    """Its counts were divided by the machine's uptime, but its latencies are in the last row."""
    row = imported(tmp_path, log_text(V1_4, [Second([100_000] * 100)] * 6))
    assert row["n"] == 500 and row["sent"] is None
    assert any("first row's messages" in each for each in row["warnings"])
    (tmp_path / "json").mkdir()
    row = imported(tmp_path / "json", json_text(V1_4, [Second([100_000] * 100)] * 6))
    assert row["n"] == 600 and row["sent"] is None  # JSON counts the latencies


def test_rows_that_contradict_their_version_are_refused(tmp_path: Path) -> None:
    """The first row shows 1.1.1 or later, where the minimum can't rise."""
    lines = log_text(V1_1, [Second([]), Second([100_000] * 100), Second([100_000] * 100)]).splitlines()
    lines[-1] = lines[-1].replace("0.1,\t\t0.1,\t\t0.1,", "0.2,\t\t0.2,\t\t0.2,", 1)
    with pytest.raises(ExchangeError, match=rf":{len(lines)}: the minimum rises"):
        read_log(written(tmp_path, "\n".join(lines)))


# --- counts of rows that are not a second long


def rows_of_16(rows: int, short: int) -> list[Second]:
    """Sixteen messages in slightly more or less than 16/15 s: 14 or 15 per second. Then some rows of 15."""
    long = [
        Second([2_000_000 + 10_000 * each] * 16, loop_s=1.0668 if each < 30 else 1.0664)
        for each in range(rows)
    ]
    return [*long, *(Second([2_000_000] * 15, loop_s=1.0001) for _ in range(short))]


@pytest.mark.parametrize("version", [V1_0, V1_5, V2_3], ids=lambda version: version.number)
def test_bytes_per_second_tell_the_count_of_a_long_row(tmp_path: Path, version: Version) -> None:
    """4 MB at 15 Hz: 902 messages. 14 per second in 1.0668 s are 15 or 16; rounded up they would be 15."""
    seconds = rows_of_16(47, 10)
    text = log_text(version, seconds, size=4_194_320, ignored=True)
    table = [line.split(",") for line in text.splitlines() if line[:1].isdigit()]
    naive = sum(math.ceil(int(cells[2]) * (float(cells[1]) - 5e-7)) for cells in table)
    assert sum(len(second.latencies_ns) for second in seconds) == 902
    assert naive == 872 or version is V1_0
    row = imported(tmp_path, text)
    assert row["n"] == 902
    assert row["sent"] is None and any("sent is not known exactly" in each for each in row["warnings"])


def test_up_to_1_1_0_a_row_was_divided_by_the_previous_ones_time(tmp_path: Path) -> None:
    """Long and short rows take turns, so each row's own time would give a seventh too few or too many."""
    seconds = [
        Second([150_000 + 10_000 * each] * (115 if each % 2 else 100), loop_s=(1.0001, 1.15)[each % 2])
        for each in range(8)
    ]
    rows = [Second(second.latencies_ns, loop_s=second.loop_s) for second in seconds]
    row = imported(tmp_path, log_text(V1_0, rows, ignored=True))
    assert row["n"] == sum(len(second.latencies_ns) for second in rows)


@pytest.mark.parametrize("version", [V1_1, V1_4, V1_5, V2_3], ids=lambda version: version.number)
def test_a_row_without_messages_repeats_the_bytes_of_another(tmp_path: Path, version: Version) -> None:
    """Its latencies are those of all messages so far, or there are none; its bytes are too many for it."""
    seconds = [Second([])] * 2 + [Second([100_000 + 1_000 * each] * 100) for each in range(4)]
    row = imported(tmp_path, log_text(version, [*seconds, *[Second([])] * 10]))
    assert row["n"] == 400 and not any("n lies between" in each for each in row["warnings"])


@pytest.mark.parametrize("version", [V1_1, V1_4], ids=lambda version: version.number)
def test_where_every_other_message_is_lost_the_count_may_not_show(tmp_path: Path, version: Version) -> None:
    """At 1 Hz a row without a message has the bytes of one, as a row with one. The latencies tell."""
    heard = [Second([150_000 + 20_000 * (each % 3)]) for each in range(20)]
    seconds = [Second([]), *(row for each in heard for row in (each, Second([], lost=1)))]
    row = imported(tmp_path, log_text(version, seconds))
    [said] = [each for each in row["warnings"] if "n lies between" in each]
    low, high = (int(each) for each in re.findall(r"\d+", said)[:2])
    assert low <= 20 <= high <= 40 and low >= 15


def of_two(version: Version, counts: Sequence[tuple[int, int]]) -> str:
    """A log of two subscribers: each count is cut, and each one's bytes may be those of an earlier loop."""
    seconds = [Second([]), *(Second([200_000 + place] * sum(each)) for place, each in enumerate(counts))]
    lines = log_text(version, seconds, loop_s=1.03, **{"Number of subscribers": "2"}).splitlines()
    last = [0, 0]
    for place, each in enumerate(counts, start=len(lines) - len(counts)):
        last = [now or before for now, before in zip(each, last, strict=True)]
        cells = lines[place].split(",\t\t")
        cells[2] = str(sum(int(now / 1.03) for now in each))
        cells[6] = str(sum(int(1040 * now / 1.03) for now in last))
        lines[place] = ",\t\t".join(cells)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "counts",
    [
        [(100, 100)] * 5 + [(0, 0)] * 5,
        [(100, 100)] * 5 + [(1, 0)] + [(0, 0)] * 5,
        [(2, 2), (2, 0), (2, 2), (2, 0), (0, 1), (3, 2)],
        [(100, 100), (100, 0), (100, 100), (0, 1), (100, 100)],
    ],
    ids=["both", "one-late", "few", "one"],
)
@pytest.mark.parametrize("version", [V1_1, V1_4], ids=lambda version: version.number)
def test_bytes_of_one_of_two_subscribers_may_be_earlier_ones(
    tmp_path: Path, version: Version, counts: list[tuple[int, int]]
) -> None:
    log = read_log(written(tmp_path, of_two(version, counts)))
    assert log.received.low <= sum(map(sum, counts)) <= log.received.high


def test_a_count_that_can_not_be_told_says_between_what(tmp_path: Path) -> None:
    """Without bytes nothing tells 15 from 16 messages in 1.0668 s."""
    row = imported(tmp_path, log_text(V2_3, [Second([2_000_000] * 16, loop_s=1.0668)] * 5, size=0))
    [said] = [each for each in row["warnings"] if each.startswith("imported: n lies between")]
    assert said.startswith("imported: n lies between 60 and 64") and 60 <= row["n"] <= 64


# --- what else the versions write


def test_the_first_second_is_left_out_however_short_the_machine_has_been_up(tmp_path: Path) -> None:
    """Divided by 40 s, a hundred messages are two: the row would count for little, but count."""
    text = log_text(V2_3, [Second([9_000_000] * 100), Second([100_000] * 100)])
    assert f"{UPTIME_S:.6f},\t\t0,\t\t0" in text
    text = text.replace(f"{UPTIME_S:.6f},\t\t0,\t\t0", "40.000000,\t\t2,\t\t2")
    row = imported(tmp_path, text)
    assert (row["n"], row["sent"], row["latency_max_ns"]) == (100, 100, 100_000)


@pytest.mark.parametrize("version", [V1_4, V1_5, V2_3], ids=lambda version: version.number)
def test_a_variance_that_overflowed_is_not_believed(tmp_path: Path, version: Version) -> None:
    """The sum of 40 latencies of 100 ms is four seconds; its square in ns² is beyond 64 bits."""
    slow = Second([100_000_000 + 1_000_000 * each for each in range(40)])
    row = imported(tmp_path, log_text(version, [Second([]), Second([]), slow]))
    if not version.integers:
        assert row["latency_sd_ns"] == pytest.approx(np.std(slow.latencies_ns, ddof=1), rel=1e-3)
        assert f"imported: {NO_DEVIATION}" not in row["warnings"]
        return
    assert abs(in_integers(slow.latencies_ns)[3] / np.var(np.array(slow.latencies_ns) / 1e9) - 1) > 0.5
    assert row["latency_sd_ns"] is None and f"imported: {NO_DEVIATION}" in row["warnings"]
    assert row["latency_mean_ns"] == pytest.approx(np.mean(slow.latencies_ns), rel=1e-3)


def test_a_message_a_second_is_seen_though_its_count_is_cut_to_nought(tmp_path: Path) -> None:
    text = log_text(V2_3, [Second([150_000])] * 4)
    assert ",\t\t0,\t\t0,\t\t0,\t\t-nan" in text
    row = imported(tmp_path, text)
    assert (row["n"], row["sent"], row["latency_max_ns"]) == (3, None, 150_000)


def test_logs_of_windows_and_of_before_the_versions_are_read(tmp_path: Path) -> None:
    """Windows knows no ru_*; until October 2019 there was no CPU load, and each line ended with a comma."""
    lines = log_text(V1_0, [Second([150_000] * 100)] * 3).splitlines()
    start = lines.index("---EXPERIMENT-START---") + 1
    table = [[cell.strip() for cell in line.split(",")] for line in lines[start:]]
    windows = [",\t".join([*cells[:-17], cells[-1]]) for cells in table]
    early = [",\t".join(cells[:-1]) + ",\t" for cells in table]
    for name, rows in (("windows", windows), ("early", early)):
        (tmp_path / name).mkdir()
        row = imported(tmp_path / name, "\n".join([*lines[:start], *rows]) + "\n")
        assert (row["n"], row["sent"], row["latency_max_ns"]) == (200, 200, 150_000)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Communicator: ", "Transport: ", "neither 'Communicator' nor 'Communication mean'"),
        ("latency_mean (ms)", "latency_mean (us)", r"column 'latency_mean \(ms\)' is missing"),
        ("latency_min (ms)", "latency_p99 (ms),\tlatency_min (ms)", r"has no column 'latency_p99 \(ms\)'"),
        ("ru_stime", "ru_utime", "column 'ru_utime' appears twice"),
        (",\tru_stime", "", "column 'ru_stime' is missing"),
        (",\t\t99,", ",\t\t-99,", "-99 in column 'received' can't be"),
        (",\t\t99,", ",\t\tinf,", "inf in column 'received' can't be"),
        ("0.15,\t\t0.15,", "inf,\t\t-inf,", r"inf in column 'latency_min \(ms\)' is not a latency"),
    ],
)
def test_what_no_version_writes_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = log_text(V2_3, [Second([150_000] * 100)] * 3)
    assert old in text
    with pytest.raises(ExchangeError, match=message):
        read_log(written(tmp_path, text.replace(old, new)))


def test_a_json_object_of_another_form_is_refused(tmp_path: Path) -> None:
    text = '{"id": "1", "com_mean_str": "CycloneDDS", "analysis_results": [{"latency_n": 3}]}'
    with pytest.raises(ExchangeError, match=r"analysis_results\[0\]: 'experiment_start' is missing"):
        read_log(written(tmp_path, text))


@pytest.mark.parametrize("number", ["9" * 400, "1e400", "-1", "NaN", "true", '"1"', "null", "[]"])
def test_a_number_of_json_that_can_not_be_is_refused(tmp_path: Path, number: str) -> None:
    text = json_text(V2_3, [Second([150_000] * 100)] * 3)
    for key in ("num_samples_received", "latency_n"):
        damaged = re.sub(rf'"{key}":[0-9.]+', f'"{key}":{number}', text)
        with pytest.raises(ExchangeError, match=r"analysis_results\[0\]: .*(is not a number|can't be)"):
            read_log(written(tmp_path, damaged))
