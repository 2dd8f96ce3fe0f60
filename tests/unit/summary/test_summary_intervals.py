# SPDX-License-Identifier: Apache-2.0
"""What the report says of confidence: intervals, bands, the control, the machine's floor."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from lagometer.exchange.imports.formats import import_files
from lagometer.report.build import build_report
from lagometer.report.data import Report
from lagometer.stats.cell.campaign_estimates import make_estimates
from lagometer.stats.interval.loss_share import loss_share_interval
from lagometer.stats.interval.medians import median_interval, median_of_trials
from lagometer.store.reader import open_campaign
from lagometer.summary import limits
from lagometer.summary.data import Row
from lagometer.summary.intervals import ends_of

ROOT = Path(__file__).parents[3]
from synthetic_campaign import Shape, write_campaign  # noqa: E402

SHAPE = Shape(
    adapters=("shm", "cyclonedds", "fastdds"),
    payloads_bytes=(64,),
    reliabilities=("best_effort",),
    trials=7,
    messages=600,
    control_blocks=4,
    machine_floor=True,
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = write_campaign(tmp_path_factory.mktemp("campaign"), SHAPE)
    return made


@pytest.fixture(scope="module")
def report(directory: Path) -> Report:
    return build_report(open_campaign(directory))


@pytest.fixture(scope="module")
def estimates(directory: Path) -> pl.DataFrame:
    return make_estimates(open_campaign(directory))


def summaries(report: Report) -> dict[tuple[str, str], Row]:
    return {(row.cell, row.edge): row for row in report.rows if row.trial is None}


def test_every_estimate_is_on_its_row(report: Report, estimates: pl.DataFrame) -> None:
    rows, compared, wanting = summaries(report), 0, 0
    for each in estimates.iter_rows(named=True):
        name = f"{each['quantity']}_ns"
        if name not in Row.model_fields:
            continue
        row = rows[each["cell"], each["edge"]]
        [interval] = [found for found in row.intervals if found.figure == name]
        assert (interval.low, interval.high) == (each["low_ns"], each["high_ns"])
        if each["status"] == "ok":
            assert getattr(row, name) == each["estimate_ns"]
            assert each["low_ns"] <= each["estimate_ns"] <= each["high_ns"]
            compared += 1
        else:
            assert interval.needed_trials == each["needed_trials"] > SHAPE.trials - 2
            wanting += 1
    assert compared >= 27 and wanting >= 9
    assert report.trials_needed is None


def test_bands_are_the_estimates_where_both_are(report: Report, estimates: pl.DataFrame) -> None:
    known = {
        (row["cell"], row["edge"], row["quantity"]): row
        for row in estimates.filter(pl.col("status") == "ok").iter_rows(named=True)
    }
    for curve in report.curves:
        band = {
            probability: (low, high)
            for probability, low, high in zip(
                curve.band_probabilities, curve.band_low_ns, curve.band_high_ns, strict=True
            )
        }
        for name, probability in (("p50", 0.5), ("p90", 0.9)):
            found = known[curve.cell, curve.edge, f"latency_{name}"]
            assert band[probability] == (found["low_ns"], found["high_ns"])
        assert list(band) == sorted(band) and len(band) > 15


def test_too_few_trials_have_no_interval_and_the_page_says_how_many_would_do(tmp_path: Path) -> None:
    shape = Shape(adapters=("shm", "udp"), payloads_bytes=(64,), trials=3, messages=60)
    made = build_report(open_campaign(write_campaign(tmp_path, shape)))
    assert made.trials_needed == 6
    assert not any(row.intervals for row in made.rows)
    assert not any(curve.band_probabilities for curve in made.curves)


def test_a_campaign_too_large_for_many_looks_has_bands_and_says_what_it_lacks(
    directory: Path, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ESTIMATED_MESSAGES_MAX", 1_000)
    made = build_report(open_campaign(directory))
    bands = {(curve.cell, curve.edge): curve for curve in made.curves}
    for curve in report.curves:
        large = bands[curve.cell, curve.edge]
        assert large.latency_ns == curve.latency_ns
        shared = set(large.band_probabilities) & set(curve.band_probabilities)
        assert len(shared) > 15
        for share in shared:
            place, other = large.band_probabilities.index(share), curve.band_probabilities.index(share)
            assert large.band_low_ns[place] < curve.band_high_ns[other]
            assert curve.band_low_ns[other] < large.band_high_ns[place]
    assert made.intervals_absent is not None and "estimates.parquet" in made.intervals_absent
    assert any("Intervals of quantiles are left out" in note for note in made.notes)
    assert made.without_noise and all(each.of == "trials" for each in made.without_noise)


@pytest.mark.parametrize(
    ("count", "ends"),
    [(1, None), (5, None), (6, (0.0, 5.0)), (8, (0.0, 7.0)), (9, (1.0, 7.0)), (20, (5.0, 14.0))],
)
def test_the_median_of_trials_lies_between_known_order_statistics(
    count: int, ends: tuple[float, float] | None
) -> None:
    """Against the table of the sign test's limits (two-sided 5 %): 6: 1st and 6th, 9: 2nd and 8th, 20: 6th
    and 15th.
    """
    assert median_interval([float(value) for value in range(count)][::-1]) == ends


def test_no_median_interval_where_a_trial_lacks_the_figure() -> None:
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, None]) is None


def test_figures_of_trials_have_the_interval_of_their_median(report: Report, directory: Path) -> None:
    stored = pl.read_parquet(directory / "cells.parquet").filter("valid")
    for (cell, edge), row in summaries(report).items():
        own = stored.filter((pl.col("cell") == cell) & (pl.col("edge") == edge))
        for name in ("rate_achieved_hz", "blocked_p50_ns", "cpu_per_message_ns"):
            expected = median_interval(own[name].to_list())
            assert expected is not None and ends_of(row, name) == expected, (cell, name)
        assert ends_of(row, "wake_p50_ns") is None, "nothing was signalled"


def test_the_share_of_the_lost_has_an_interval_where_enough_were_lost(tmp_path: Path) -> None:
    shape = Shape(
        adapters=("shm", "udp"), payloads_bytes=(64,), reliabilities=("best_effort",), trials=7, messages=1500
    )
    made = summaries(build_report(open_campaign(write_campaign(tmp_path, shape))))
    for (cell, edge), row in made.items():
        ends = ends_of(row, "lost_share")
        assert row.missing is not None and row.sent is not None and row.lost_share is not None
        assert row.lost_share == pytest.approx(row.missing / (row.sent + (row.rejected or 0)))
        if cell.startswith("udp/"):
            assert ends is not None and ends[0] < row.lost_share < ends[1], edge
            assert ends[0] > 0.005 and ends[1] < 0.02, "one in a hundred was dropped"
        else:
            assert (row.lost_share, ends) == (0.0, None)


@pytest.mark.parametrize("share", [0.002, 0.02, 0.3])
def test_the_interval_of_a_share_holds_the_truth(share: float) -> None:
    """Of simulated cells of eight trials with shares of their own, 95 % of the intervals have it in."""
    generator, inside, printed = np.random.default_rng(7), 0, 0
    for _ in range(400):
        own = share * generator.lognormal(-0.045, 0.3, 8)  # mean 1
        trials = [(int(generator.binomial(5_000, min(each, 1.0))), 5_000) for each in own]
        ends = loss_share_interval(trials)
        if ends is not None:
            printed += 1
            inside += ends[0] <= share <= ends[1]
    assert printed > 300 and inside / printed > 0.9


def test_no_interval_of_a_share_from_little() -> None:
    assert loss_share_interval([(50, 1_000)] * 5) is None
    assert loss_share_interval([(0, 1_000)] * 8) is None
    assert loss_share_interval([(1, 1_000)] + [(0, 1_000)] * 7) is None
    assert loss_share_interval([(50, 1_000)] * 7 + [(None, 1_000)]) is None
    alike = loss_share_interval([(50, 1_000)] * 8)
    assert alike is not None and 0.04 < alike[0] < 0.05 < alike[1] < 0.06, "as of independent messages"


def test_a_median_of_trials_is_that_of_those_that_know_it() -> None:
    whole = median_of_trials([6.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert (whole.value_ns, whole.low_ns, whole.high_ns) == (3.5, 1.0, 6.0)
    partly = median_of_trials([6.0, None, 2.0])
    assert (partly.value_ns, partly.low_ns, partly.high_ns) == (4.0, None, None)
    assert median_of_trials([None]).value_ns is None


def test_the_control_is_shown_over_time_with_the_load(report: Report, directory: Path) -> None:
    stored = pl.read_parquet(directory / "control" / "cells.parquet").sort("trial")
    control = report.control
    assert control is not None and control.cells == [stored["cell"][0]]
    assert [each.block for each in control.trials] == list(range(SHAPE.control_blocks))
    assert [each.latency_p50_ns for each in control.trials] == stored["latency_p50_ns"].to_list()
    assert [each.time_s for each in control.trials] == sorted(each.time_s for each in control.trials)
    p50s_ns = [each.latency_p50_ns for each in control.trials if each.valid]
    assert control.spread is not None and None not in p50s_ns
    assert (control.spread.p50_first_ns, control.spread.p50_last_ns) == (p50s_ns[0], p50s_ns[-1])
    assert [control.spread.p50_min_ns, control.spread.p50_max_ns] == sorted(p50s_ns)[:: len(p50s_ns) - 1]
    assert control.spread.blocks == len(p50s_ns)
    assert control.trials[1].remarks == ["others: 12 % of all CPUs' time"]
    assert len(control.load) == report.counts.trials
    assert control.load[0].stolen_share == pytest.approx(0.02)
    assert control.load[0].busy_share == pytest.approx(0.4)


def test_the_machine_floor_is_that_of_its_file(report: Report, directory: Path) -> None:
    stored = json.loads((directory / "floor.json").read_text())
    assert report.machine_floor is not None
    assert report.machine_floor.model_dump() == stored


def test_a_short_floor_has_no_tail(tmp_path: Path) -> None:
    shape = Shape(adapters=("shm",), payloads_bytes=(64,), trials=1, messages=50, machine_floor=True)
    path = write_campaign(tmp_path, shape) / "floor.json"
    read = json.loads(path.read_text())
    read["cores"][1]["n"] = 1_000
    path.write_text(json.dumps(read))
    floor = build_report(open_campaign(tmp_path)).machine_floor
    assert floor is not None
    assert floor.cores[0].p999_ns == read["cores"][0]["p999_ns"]
    assert (floor.cores[1].p999_ns, floor.cores[1].p99_ns) == (None, read["cores"][1]["p99_ns"])


@pytest.mark.parametrize("text", ["no json", '{"cores": [{"cpu": 0}]}', "[1]", '{"cores": 3}'])
def test_a_damaged_floor_is_said_and_stops_nothing(tmp_path: Path, text: str) -> None:
    shape = Shape(adapters=("shm",), payloads_bytes=(64,), trials=1, messages=50)
    directory = write_campaign(tmp_path, shape)
    (directory / "floor.json").write_text(text)
    made = build_report(open_campaign(directory))
    assert made.machine_floor is None and any("floor.json could not be read" in note for note in made.notes)


def test_reasons_are_counted_by_trial_with_their_meaning(report: Report, directory: Path) -> None:
    journal = [json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines()]
    words = Counter(reason.partition(":")[0] for line in journal for reason in line["reasons"])
    found = {each.word: each for each in report.reasons if each.kind == "failure"}
    assert {word: each.trials for word, each in found.items()} == dict(words) and words
    assert all(each.meaning for each in found.values())


def test_disturbed_trials_are_counted(report: Report) -> None:
    rows = {cell: row for (cell, edge), row in summaries(report).items() if edge == "end-to-end"}
    assert {row.trials_noisy for cell, row in rows.items() if cell.startswith("cyclonedds/")} == {1}
    assert {row.trials_noisy for cell, row in rows.items() if not cell.startswith("cyclonedds/")} == {0}
    assert report.counts.trials_noisy == 1
    [noise] = [each for each in report.reasons if each.kind == "noise"]
    assert (noise.word, noise.trials) == ("others", 1) and noise.meaning


def test_figures_stand_with_and_without_the_disturbed_trials(report: Report, directory: Path) -> None:
    """Seven trials of which one is disturbed: the six others are enough for an estimate of the median."""
    campaign = open_campaign(directory)
    calm = replace(campaign, cells=campaign.cells.filter(pl.col("noise").list.len() == 0))
    found = {(each.cell, each.figure): each for each in report.without_noise}
    cells = {cell for cell, _ in found}
    assert cells == {row.cell for row in report.rows if row.trial is None and row.trials_noisy} and cells
    expected = {
        (row["cell"], f"{row['quantity']}_ns"): row
        for row in make_estimates(calm).filter(pl.col("edge") == "end-to-end").iter_rows(named=True)
    }
    rows = {cell: row for (cell, edge), row in summaries(report).items() if edge == "end-to-end"}
    for cell in cells:
        cost = found[cell, "cpu_per_message_ns"]
        own = calm.cells.filter((pl.col("cell") == cell) & (pl.col("edge") == "end-to-end") & pl.col("valid"))
        assert (cost.of, cost.quiet_ns) == ("trials", own["cpu_per_message_ns"].median())
        assert cost.quiet_low_ns == own["cpu_per_message_ns"].min(), "six quiet trials are enough for one"
        median = found[cell, "latency_p50_ns"]
        alone = expected[cell, "latency_p50_ns"]
        assert (median.of, median.trials, median.trials_noisy) == ("messages", 7, 1)
        assert (median.quiet_ns, median.quiet_low_ns, median.quiet_high_ns) == (
            alone["estimate_ns"],
            alone["low_ns"],
            alone["high_ns"],
        )
        assert median.all_ns == rows[cell].latency_p50_ns != median.quiet_ns
        assert {each.figure for each in rows[cell].intervals if each.low == median.all_low_ns} >= {
            "latency_p50_ns"
        }


def test_too_few_quiet_trials_are_compared_by_their_medians(tmp_path: Path) -> None:
    shape = Shape(adapters=("cyclonedds",), payloads_bytes=(64,), trials=6, messages=600)
    directory = write_campaign(tmp_path, shape)
    trials = open_campaign(directory).cells.filter((pl.col("edge") == "end-to-end") & pl.col("valid"))
    for cell in build_report(open_campaign(directory)).without_noise:
        of_cell = trials.filter(pl.col("cell") == cell.cell)
        quiet = of_cell.filter(pl.col("noise").list.len() == 0)
        assert (cell.of, cell.trials - cell.trials_noisy) == ("trials", quiet.height)
        assert cell.all_ns == of_cell[cell.figure].median() or of_cell[cell.figure].null_count()
        assert cell.quiet_ns == quiet[cell.figure].median() or quiet[cell.figure].null_count()
        assert cell.quiet_low_ns is cell.quiet_high_ns is None
        values = of_cell[cell.figure].to_list()
        assert (cell.all_low_ns, cell.all_high_ns) == (median_interval(values) or (None, None))


def test_nothing_is_compared_where_no_trial_or_every_trial_is_disturbed(tmp_path: Path) -> None:
    shape = Shape(adapters=("cyclonedds",), payloads_bytes=(64,), trials=3, messages=60)
    directory = write_campaign(tmp_path, shape)
    for noise in ([], ["others: 12 % of all CPUs' time"]):
        cells = pl.read_parquet(directory / "cells.parquet")
        always = pl.Series("noise", [noise] * cells.height, dtype=pl.List(pl.String))
        cells.with_columns(always).write_parquet(directory / "cells.parquet")
        assert build_report(open_campaign(directory)).without_noise == []


def test_an_imported_campaign_wants_no_more_trials(tmp_path: Path) -> None:
    """Aggregates of another tool have no samples: more of them would not give an interval."""
    [log, *_] = sorted((ROOT / "tests" / "golden" / "performance-test").glob("*"))
    for count in (1, 7):
        import_files([log] * count, tmp_path / str(count))
        made = build_report(open_campaign(tmp_path / str(count)))
        assert made.trials_needed is None
        assert made.intervals_absent is not None and "performance_test" in made.intervals_absent
        assert not any(each.figure.startswith("latency") for row in made.rows for each in row.intervals)


def test_samples_that_are_gone_are_named_and_no_trials_asked_for(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path / "copy", ignore=shutil.ignore_patterns("samples"))
    made = build_report(open_campaign(tmp_path / "copy"))
    assert made.trials_needed is None
    assert made.intervals_absent is not None and "was removed" in made.intervals_absent
