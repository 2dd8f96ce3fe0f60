# SPDX-License-Identifier: Apache-2.0
"""Logs of performance_test as trials: which belong together, what their figures are, on synthetic logs and on
real ones (performance_test/ of the data that LAGOMETER_SHARED_DATA or ../shared/data holds)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import shared_data
from performance_test_model import V1_0, V1_4, V2_3, Second, json_text, log_text

from lagometer.cli.main import main
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.campaign import warning
from lagometer.exchange.imports.formats import Outcome, import_files
from lagometer.exchange.imports.performance_test import CLOCKS
from lagometer.store.reader import open_campaign

SENT = [Second([100_000 + 1_000 * each] * 100) for each in range(4)]
ONE_CELL = "Array1k/100Hz/best_effort/keep_last/volatile/depth-16/1-to-1"


def real(name: str) -> Path:
    [path] = shared_data("performance_test").glob(f"{name}_*")
    return path


def imported(
    paths: Sequence[Path], tmp_path: Path
) -> tuple[Outcome, list[dict[str, Any]], Mapping[str, Any]]:
    outcome = import_files(paths, tmp_path / "imported")
    campaign = open_campaign(tmp_path / "imported")
    return outcome, campaign.cells.to_dicts(), campaign.manifest["imported"]


def written(tmp_path: Path, **texts: str) -> list[Path]:
    paths = [tmp_path / f"{name}.log" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def of_publisher(seconds: Sequence[Second]) -> list[Second]:
    return [Second(each.latencies_ns, each.lost, sends_only=True) for each in seconds]


def of_subscriber(seconds: Sequence[Second]) -> list[Second]:
    return [Second(each.latencies_ns, each.lost, hears_only=True) for each in seconds]


# --- the truth about real logs


@pytest.mark.parametrize(("name", "mean_us"), [("L1", 97.4), ("L1b", 35.4)])
def test_real_counts_are_those_of_the_latencies(tmp_path: Path, name: str, mean_us: float) -> None:
    """`num_samples_received` sums to 11,386, cut by rows of 1.00008 s."""
    _, [row], told = imported([real(name)], tmp_path)
    rows = json.loads(real(name).read_text())["analysis_results"]
    assert sum(each["num_samples_received"] for each in rows) == 11_386
    assert (row["n"], row["sent"]) == (11_501, 11_501)
    assert row["latency_mean_ns"] == pytest.approx(mean_us * 1000, abs=50)
    assert told["logs"][0]["read_as"] == "1.1.0 or before"


def test_a_real_publisher_and_its_subscriber_are_one_trial(tmp_path: Path) -> None:
    outcome, [row], told = imported([real("L2"), real("L2b")], tmp_path)
    assert (row["n"], row["sent"], row["rate_hz"]) == (11_501, 11_501, 100.0)
    assert row["cell"].endswith("depth-16/1-to-1")
    assert outcome.joined == [[real("L2b").name, real("L2").name]]
    assert told["trials"] == [{"cell": row["cell"], "trial": 0, "files": outcome.joined[0]}]


def test_a_real_subscriber_alone_has_neither_sent_nor_a_rate(tmp_path: Path) -> None:
    _, [row], _ = imported([real("L2b")], tmp_path)
    assert (row["n"], row["sent"], row["rate_hz"]) == (11_501, None, None)


@pytest.mark.parametrize("name", ["L2", "L2d"])
def test_a_real_publisher_alone_has_nothing_to_import(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExchangeError, match="received; there is nothing to import: give the log of its sub"):
        import_files([real(name)], tmp_path / "imported")


@pytest.mark.parametrize(
    ("name", "mean_us", "sd_us"), [("L3", 516.5, 581.7), ("L3d", 516.5, 581.7), ("L3e", 3106, 2673)]
)
def test_the_last_row_of_real_cumulative_logs_counts(
    tmp_path: Path, name: str, mean_us: float, sd_us: float
) -> None:
    """Pooled, the rows would give 502.9 and 557.4 µs, 3.101 and 2.627 ms."""
    _, [row], told = imported([real(name)], tmp_path)
    assert row["n"] == 11_509
    assert row["latency_mean_ns"] == pytest.approx(mean_us * 1000, rel=2e-4)
    assert row["latency_sd_ns"] == pytest.approx(sd_us * 1000, rel=2e-4)
    assert told["logs"][0]["read_as"] == "1.2 to 1.4"


def test_rows_after_the_last_message_of_a_real_log_count_none(tmp_path: Path) -> None:
    """The publisher is gone: counts are 0, and the bytes are those of the last loop with messages."""
    text = real("L3d").read_text().rstrip("\n") + "\n"
    cells = text.splitlines()[-1].split(",\t\t")
    for second in range(1, 11):
        begun_s = f"{float(cells[0]) + 1.0002 * second:.6f}"
        text += ",\t\t".join([begun_s, cells[1], "0", *cells[3:]]) + "\n"
    _, [row], _ = imported(written(tmp_path, longer=text), tmp_path)
    assert row["n"] == 11_509 and not any("n lies between" in each for each in row["warnings"])
    assert row["latency_mean_ns"] == pytest.approx(516_500, rel=2e-4)


def test_a_real_empty_log_is_called_empty(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r"L4_.*: is empty \(0 bytes\)"):
        import_files([real("L4")], tmp_path / "imported")


# --- the same on synthetic ones


@pytest.mark.parametrize("name", ["csv", "json"])
def test_a_publisher_and_its_subscriber_are_one_trial(tmp_path: Path, name: str) -> None:
    write, key = (log_text, "Number of {}") if name == "csv" else (json_text, "number_of_{}")
    head = [
        {key.format("publishers"): value, key.format("subscribers"): other}
        for value, other in (("1", "0"), ("0", "1"))
    ]
    paths = written(
        tmp_path,
        sender=write(V1_0, of_publisher(SENT), ignored=True, **head[0]),
        taker=write(V1_0, of_subscriber(SENT), ignored=True, **head[1]),
    )
    outcome, [row], told = imported(paths, tmp_path)
    truth = np.array([each for second in SENT for each in second.latencies_ns])
    assert (row["n"], row["sent"], row["lost"]) == (400, 400, 0)
    assert row["latency_mean_ns"] == pytest.approx(truth.mean(), rel=1e-3)
    assert row["cell"].endswith(ONE_CELL) and row["warnings"] == [warning("performance_test")]
    assert outcome.joined == [["taker.log", "sender.log"]] and len(told["logs"]) == 2
    for alone, path in enumerate(paths):
        if alone == 0:
            with pytest.raises(ExchangeError, match="give the log of its subscriber"):
                import_files([path], tmp_path / "alone")
            continue
        import_files([path], tmp_path / "alone")
        row = open_campaign(tmp_path / "alone").cells.row(0, named=True)
        assert (row["n"], row["sent"], row["rate_hz"]) == (400, None, None)
        assert "100Hz" not in row["cell"] and row["cell"].endswith("0-to-1")


def test_several_runs_are_joined_by_the_time_at_which_they_ended(tmp_path: Path) -> None:
    faster = [Second([50_000 + 1_000 * each] * 100) for each in range(4)]

    def log(seconds: Sequence[Second], ended: str, publishers: int) -> str:
        head: dict[str, Any] = {"number_of_publishers": publishers, "number_of_subscribers": 1 - publishers}
        return json_text(V1_4, seconds, ignored=True, final_logfile_name=f"x_t_02-07-2022_{ended}", **head)

    paths = written(
        tmp_path,
        late_sender=log(of_publisher(faster), "12-20-01", 1),
        early_sender=log(of_publisher(SENT), "12-05-54", 1),
        early_taker=log(of_subscriber(SENT), "12-05-53", 0),
        late_taker=log(of_subscriber(faster), "12-20-02", 0),
    )
    outcome, rows, _ = imported(paths, tmp_path)
    assert outcome.joined == [["early_taker.log", "early_sender.log"], ["late_taker.log", "late_sender.log"]]
    assert [row["trial"] for row in rows] == [0, 1] and len({row["cell"] for row in rows}) == 1
    paths[0].write_text(log(of_publisher(faster), "19-20-01", 1))
    with pytest.raises(ExchangeError, match="about the same time"):
        import_files(paths, tmp_path / "apart")
    with pytest.raises(ExchangeError, match="1 logs of publishers but 2 of subscribers"):
        import_files(paths[1:], tmp_path / "odd")


@pytest.mark.parametrize(
    ("csv", "in_json", "part"),
    [
        ({"Number of subscribers": "2"}, {"number_of_subscribers": 2}, "1-to-2"),
        ({"QOS": "Reliability: BEST_EFFORT History depth: 1"}, {"qos_history_depth": 1}, "depth-1"),
        ({"Zero copy transfer": "1"}, {"is_zero_copy_transfer": True}, "zero-copy"),
    ],
    ids=["subscribers", "depth", "zero-copy"],
)
def test_heads_that_differ_are_other_cells(
    tmp_path: Path, csv: dict[str, str], in_json: dict[str, Any], part: str
) -> None:
    paths = written(tmp_path, a=log_text(V2_3, SENT), b=log_text(V2_3, SENT, **csv), c=log_text(V2_3, SENT))
    paths += written(tmp_path, d=json_text(V2_3, SENT), e=json_text(V2_3, SENT, **in_json))
    outcome, rows, _ = imported(paths, tmp_path)
    assert len(outcome.cells) == 4
    assert rows[0]["cell"] == rows[2]["cell"] and [rows[0]["trial"], rows[2]["trial"]] == [0, 1]
    for base, other in ((rows[0], rows[1]), (rows[3], rows[4])):
        assert part in other["cell"].split("/") and part not in base["cell"].split("/")


@pytest.mark.parametrize("last", ["Maximum runtime reached. Exiting.", "Caught signal. Exiting."])
def test_the_last_line_of_a_captured_output_is_accepted(tmp_path: Path, last: str) -> None:
    text = log_text(V2_3, SENT)
    _, [row], _ = imported(written(tmp_path, log=f"{text}{last}\n\n"), tmp_path)
    assert row["n"] == 300
    lines = text.splitlines()
    damaged = "\n".join([*lines[:-1], last, lines[-1]])
    with pytest.raises(ExchangeError, match=rf":{len(lines)}: 1 fields, but"):
        import_files(written(tmp_path, damaged=damaged), tmp_path / "damaged")


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_an_empty_log_is_called_empty_with_all_that_are(tmp_path: Path, text: str) -> None:
    paths = written(tmp_path, whole=log_text(V2_3, SENT), a=text, b=text)
    with pytest.raises(ExchangeError, match=rf"a\.log: is empty \({len(text)} bytes\)") as caught:
        import_files(paths, tmp_path / "imported")
    assert f"b.log: is empty ({len(text)} bytes)" in str(caught.value) and "whole.log" not in str(
        caught.value
    )


def test_a_log_that_ended_before_its_first_row_is_called_so(tmp_path: Path) -> None:
    for name, text in (("csv", log_text(V2_3, [])), ("json", json_text(V2_3, []))):
        with pytest.raises(ExchangeError, match="a head without rows"):
            import_files(written(tmp_path, **{name: text}), tmp_path / "imported")


@pytest.mark.parametrize("write", [log_text, json_text])
def test_negative_latencies_are_those_of_two_hosts_clocks(tmp_path: Path, write: Any) -> None:
    seconds = [Second([-250_000 + 1_000 * each] * 100) for each in range(4)]
    _, [row], _ = imported(written(tmp_path, log=write(V2_3, seconds)), tmp_path)
    assert f"imported: {CLOCKS}" in row["warnings"] and row["latency_min_ns"] == -249_000


@pytest.mark.parametrize("write", [log_text, json_text])
def test_a_relays_log_holds_no_latency(tmp_path: Path, write: Any) -> None:
    key = "Roundtrip Mode" if write is log_text else "roundtrip_mode"
    paths = written(
        tmp_path, relay=write(V2_3, SENT, **{key: "Relay"}), main=write(V2_3, SENT, **{key: "Main"})
    )
    with pytest.raises(ExchangeError, match=r"relay\.log: the log of a relay .*holds no latency"):
        import_files(paths[:1], tmp_path / "relay")
    _, [row], told = imported(paths, tmp_path)
    assert row["cell"].endswith("/main") and told["trials"][0]["files"] == ["main.log"]


def test_the_manifest_says_what_is_absent_and_why(tmp_path: Path) -> None:
    _, [row], told = imported(written(tmp_path, log=log_text(V2_3, SENT)), tmp_path)
    assert (told["from"], told["version"]) == ("performance_test", f"git hash {V2_3.commit}")
    assert told["format"] == "performance-test"
    for name in ("latency_p50_ns", "latency_p999_ns", "latency_skewness"):
        assert row[name] is None and told["absent"][name]
    assert any("lost is a lower bound" in note for note in told["notes"])


# --- the command


def test_the_command_names_format_and_what_it_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = {"Number of publishers": "1", "Number of subscribers": "0"}
    paths = written(
        tmp_path,
        sender=log_text(V1_0, of_publisher(SENT), ignored=True, **head),
        taker=log_text(V1_0, of_subscriber(SENT), ignored=True, **{"Number of publishers": "0"}),
    )
    with pytest.raises(SystemExit) as ended:
        main(["import", *map(str, paths), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "format performance-test" in said and "one trial of taker.log and sender.log" in said


def test_an_unknown_format_lists_those_that_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [path] = written(tmp_path, strange="time;latency\n1;2\n")
    for options in ([], ["--format", "json"]):
        with pytest.raises(SystemExit) as ended:
            main(["import", str(path), *options, "--out", str(tmp_path / "out")])
        said = capsys.readouterr().err
        assert ended.value.code == 2 and "performance-test (logs of Apex.AI" in said
        assert not (tmp_path / "out").exists()
