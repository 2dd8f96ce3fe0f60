# SPDX-License-Identifier: Apache-2.0
"""Logs of performance_test 1.0 to 2.3, as each version's source writes them, are read for what they mean.

The writer below is a model of theirs: keys and columns in their order, separators, digits, what is printed
for nothing (`inf`, the largest integer, `-nan`), counts divided by the loop's length and cut to whole
numbers, and the arithmetic of their statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.performance_test_import import NO_DEVIATION, WARNING, cell_id, import_logs
from lagometer.exchange.performance_test_log import read_log
from lagometer.store.reader import open_campaign

UPTIME_S = 5025.817383
MOMENTS = ("min", "max", "mean", "variance")
USAGE = (
    *("ru_utime", "ru_stime", "ru_maxrss", "ru_ixrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt"),
    *("ru_nswap", "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw"),
    "ru_nivcsw",
)


@dataclass(frozen=True)
class Version:
    """What marks a version's log. `integers`: sums in 64-bit integers, variance over n - 1."""

    number: str
    commit: str
    read_as: str
    integers: bool
    reserves: bool
    plugins: bool = False  # the head of 2.x
    sync: bool = False  # the quality of service tells of synchronisation
    shared_memory: bool = True  # the head tells of it
    since_boot: bool = True  # the first row is divided by the time since the machine was started


V1_0 = Version(
    "1.0.0", "a47d9cb", "1.1 or before", False, True, sync=True, shared_memory=False, since_boot=False
)
V1_1 = Version("1.1.2", "af1796d", "1.1 or before", False, True, sync=True)
V1_4 = Version("1.4.2", "941f10a", "1.2 to 1.4", False, False)
V1_5 = Version("1.5.2", "eb24da6", "1.5", True, False)
V2_0 = Version("2.0.0", "93b658c", "2.0 to 2.3", True, False, plugins=True, shared_memory=False)
V2_3 = Version("2.3.0", "4b308ef", "2.0 to 2.3", True, False, plugins=True, shared_memory=False)
VERSIONS = (V1_0, V1_1, V1_4, V1_5, V2_0, V2_3)


@dataclass(frozen=True)
class Second:
    """What happened in one loop: latencies of what arrived, in nanoseconds, and how many did not."""

    latencies_ns: Sequence[int]
    lost: int = 0


def log_text(version: Version, seconds: Sequence[Second], loop_s: float = 1.00007, **head: str) -> str:
    columns = ["T_experiment", "T_loop", "received", "sent", "lost", "relative_loss", "data_received"]
    columns += [f"latency_{moment} (ms)" for moment in MOMENTS]
    if version.reserves:
        columns += [f"{side}_loop_res_{moment} (ms)" for side in ("pub", "sub") for moment in MOMENTS]
    columns += [*USAGE, "cpu_usage (%)"]
    lines = [f"{key}: {value}" for key, value in (head_of(version) | head).items()]
    lines += ["", "---EXPERIMENT-START---", ",\t".join(columns)]
    for place, second in enumerate(seconds):
        begun_s, took_s = place * loop_s, loop_s
        if not version.since_boot:
            begun_s += loop_s  # the loop's end
        elif place == 0:
            begun_s, took_s = 2.8e-5, UPTIME_S
        lines.append(",\t\t".join(row(version, second, begun_s, took_s)))
    return "\n".join(lines) + "\n"


def head_of(version: Version) -> dict[str, str]:
    quality = "Reliability: BEST_EFFORT Durability: VOLATILE History kind: KEEP_LAST History depth: 16"
    head = {
        "Experiment id": "c9bf78b4-d94a-4772-88c4-edd324d7238f",
        "Performance Test Version": version.commit,
        "Logfile name": "log.csv",
    }
    if version.plugins:
        head |= {"Communicator": "rclcpp-single-threaded-executor"}
    else:
        head |= {"Communication mean": "RCLCPP_SINGLE_THREADED_EXECUTOR"}
        head |= {"RMW Implementation": "rmw_cyclonedds_cpp"}
    head |= {
        "DDS domain id": "0",
        "QOS": quality + (" Sync. pub/sub: 0" if version.sync else ""),
        "Publishing rate": "100",
        "Topic name": "test_topic",
        "Msg name": "Array1k",
        "Maximum runtime (sec)": "30",
        "Number of publishers": "1",
        "Number of subscribers": "1",
        "Memory check enabled": "0",
        "With security": "0",
    }
    if version.shared_memory:
        head |= {"Shared memory transfer": "0"}
    head |= {
        "Zero copy transfer": "0",
        "Unbounded message size": "0",
        "Roundtrip Mode": "None" if version.plugins else "NONE",
        "Ignore seconds from beginning": "0",
    }
    return head | ({"rmw_implementation": "rmw_cyclonedds_cpp"} if version.plugins else {})


def row(version: Version, second: Second, begun_s: float, took_s: float) -> list[str]:
    received = int(len(second.latencies_ns) / took_s)
    lost = int(second.lost / took_s)
    sent = int((len(second.latencies_ns) + second.lost) / took_s)
    cells = [f"{begun_s:.6f}", f"{took_s:.6f}", str(received), str(sent), str(lost)]
    cells += [f"{lost / sent:.2f}" if sent else "-nan", str(int(1024 * len(second.latencies_ns) / took_s))]
    moments = in_integers(second.latencies_ns) if version.integers else in_doubles(second.latencies_ns)
    cells += [digits(moment * 1000) for moment in moments]
    if version.reserves:
        cells += ["0.01", "9.9", "9.4", "0.002", "0", "0", "0", "0"]
    return [*cells, "0.1", "0.1", "9000", *["0"] * 13, "2.5"]


def digits(value: float) -> str:
    """As a C++ stream with a precision of 4 prints it, on x86."""
    return "-nan" if math.isnan(value) else f"{value:.4g}"


def in_doubles(latencies_ns: Sequence[int]) -> tuple[float, float, float, float]:
    """Least, greatest, mean and variance in seconds, up to 1.4."""
    if not latencies_ns:
        return 1.7976931348623157e308 * 1000, -1.7976931348623157e308 * 1000, 0.0, 0.0
    seconds = np.array(latencies_ns) / 1e9
    return seconds.min(), seconds.max(), seconds.mean(), seconds.var()


def in_integers(latencies_ns: Sequence[int]) -> tuple[float, float, float, float]:
    """Likewise, from 1.5 on: sums of nanoseconds wrap around."""
    count = len(latencies_ns)
    least = min(latencies_ns, default=2**63 - 1)
    most = max(latencies_ns, default=-(2**63))
    if not count:
        return least / 1e9, most / 1e9, math.nan, math.nan
    total = wrapped(sum(latencies_ns))
    squares = wrapped(sum(latency * latency for latency in latencies_ns))
    second_moment = float(squares) - float(wrapped(total * total)) / count
    variance = second_moment / (count - 1) if count > 1 else math.nan
    return least / 1e9, most / 1e9, total / count / 1e9, variance / 1e18


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path


def imported(tmp_path: Path, text: str) -> dict[str, Any]:
    import_logs([written(tmp_path, text)], tmp_path / "imported")
    return open_campaign(tmp_path / "imported").cells.row(0, named=True)


seconds_of = st.lists(
    st.builds(
        Second,
        st.lists(st.integers(20_000, 5_000_000), max_size=40),
        st.sampled_from([0, 0, 2, 3]),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.number)
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(seconds=seconds_of, loop_s=st.sampled_from([1.0, 1.000067, 1.0003]))
def test_every_version_means_the_same(
    tmp_path_factory: pytest.TempPathFactory, version: Version, seconds: list[Second], loop_s: float
) -> None:
    """An empty second first shows in which arithmetic the log was written."""
    seconds = [Second([]), Second([]), *seconds]
    counted = seconds[1:] if version.since_boot else seconds
    latencies = np.array([each for second in counted for each in second.latencies_ns])
    tmp_path = tmp_path_factory.mktemp("log")
    text = log_text(version, seconds, loop_s)
    if not latencies.size:
        with pytest.raises(ExchangeError, match="nothing to import"):
            read_log(written(tmp_path, text))
        return
    row = imported(tmp_path, text)
    assert row["n"] == latencies.size
    # One message in more than a second was cut to nought, and nothing else tells of it.
    sent = [len(second.latencies_ns) + second.lost for second in counted]
    assert row["sent"] == (sum(each for each in sent if each > 1 or loop_s == 1.0) or None)
    assert row["lost"] == sum(second.lost for second in counted)
    assert row["latency_min_ns"] == pytest.approx(latencies.min(), rel=1e-3)
    assert row["latency_max_ns"] == pytest.approx(latencies.max(), rel=1e-3)
    assert row["latency_mean_ns"] == pytest.approx(latencies.mean(), rel=1e-3)
    if latencies.size > 1:
        digit = 1e-3 * latencies.max()
        assert row["latency_sd_ns"] == pytest.approx(latencies.std(ddof=1), rel=1e-3, abs=digit)
    assert row["latency_p50_ns"] is None and row["warnings"] == [WARNING]
    told = open_campaign(tmp_path / "imported").manifest["imported"]["logs"][0]
    assert told["read_as"] == version.read_as
    assert told["rows_left_out"] == (1 if version.since_boot else 0)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.number)
def test_the_cell_is_named_alike(tmp_path: Path, version: Version) -> None:
    second = Second([100_000] * 100)
    log = read_log(written(tmp_path, log_text(version, [second, second])))
    mean = "rclcpp-single-threaded-executor" if version.plugins else "RCLCPP_SINGLE_THREADED_EXECUTOR"
    factors = "Array1k/100Hz/best_effort/keep_last/volatile"
    expected = f"imported/performance_test/{mean}+rmw_cyclonedds_cpp/{factors}"
    assert cell_id(log) == expected
    mode = "Main" if version.plugins else "MAIN"
    there_and_back = log_text(version, [second, second], **{"Roundtrip Mode": mode})
    assert cell_id(read_log(written(tmp_path, there_and_back))) == f"{expected}/main"


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
        assert row["warnings"] == [WARNING]
        return
    assert abs(in_integers(slow.latencies_ns)[3] / np.var(np.array(slow.latencies_ns) / 1e9) - 1) > 0.5
    assert row["latency_sd_ns"] is None and row["warnings"] == [WARNING, NO_DEVIATION]
    assert row["latency_mean_ns"] == pytest.approx(np.mean(slow.latencies_ns), rel=1e-3)


@pytest.mark.parametrize("version", [V1_4, V1_5], ids=lambda version: version.number)
def test_a_log_that_does_not_show_its_arithmetic_is_read_as_either(tmp_path: Path, version: Version) -> None:
    seconds = [Second([100_000 + 1_000 * each for each in range(100)])] * 3
    row = imported(tmp_path, log_text(version, seconds))
    told = open_campaign(tmp_path / "imported").manifest["imported"]["logs"][0]
    assert told["read_as"] == "1.2 to 1.5"
    truth = np.std([each for second in seconds[1:] for each in second.latencies_ns], ddof=1)
    assert row["latency_sd_ns"] == pytest.approx(truth, rel=0.01)  # n or n - 1, of a hundred


def test_a_message_a_second_is_seen_though_its_count_is_cut_to_nought(tmp_path: Path) -> None:
    text = log_text(V2_3, [Second([150_000])] * 4)
    assert ",\t\t0,\t\t0,\t\t0,\t\t-nan" in text
    row = imported(tmp_path, text)
    assert (row["n"], row["sent"], row["latency_max_ns"]) == (3, None, 150_000)


def test_a_subscriber_alone_does_not_know_what_was_sent(tmp_path: Path) -> None:
    lines = log_text(V1_4, [Second([150_000] * 100)] * 3).splitlines(keepends=True)
    text = "".join(line.replace("99,\t\t99,", "99,\t\t0,") for line in lines)
    assert text.count("99,\t\t0,") == 2
    row = imported(tmp_path, text)
    assert (row["n"], row["sent"]) == (200, None)


def test_a_publisher_alone_has_nothing_to_import(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="no row says that a message was received"):
        read_log(written(tmp_path, log_text(V1_1, [Second([], lost=100)] * 3)))


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
        assert (row["n"], row["sent"], row["latency_max_ns"]) == (300, 300, 150_000)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Communicator: ", "Transport: ", "neither 'Communicator' nor 'Communication mean'"),
        ("latency_mean (ms)", "latency_mean (us)", r"column 'latency_mean \(ms\)' is missing"),
        ("latency_min (ms)", "latency_p99 (ms),\tlatency_min (ms)", r"'latency_p99 \(ms\)' is none of"),
        ("ru_stime", "ru_utime", "column 'ru_utime' stands there twice"),
        (",\tru_stime", "", "column 'ru_stime' is missing"),
        (",\t\t99,", ",\t\t-99,", "-99 in column 'received' can't be"),
        (",\t\t99,", ",\t\tinf,", "inf in column 'received' can't be"),
        ("0.15,\t\t0.15,", "inf,\t\t-inf,", r"inf in column 'latency_min \(ms\)' is no number"),
    ],
)
def test_what_no_version_writes_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = log_text(V2_3, [Second([150_000] * 100)] * 3)
    assert old in text
    with pytest.raises(ExchangeError, match=message):
        read_log(written(tmp_path, text.replace(old, new)))


def test_a_json_log_is_refused_with_the_way_out(tmp_path: Path) -> None:
    text = '{"id": "1", "com_mean_str": "CycloneDDS", "analysis_results": [{"latency_n": 3}]}'
    with pytest.raises(ExchangeError, match=r"a JSON log.*--logfile NAME\.csv"):
        read_log(written(tmp_path, text))
