# SPDX-License-Identifier: Apache-2.0
"""Absolute limits (`--fail-if 'p99 > 2ms'`): the judgement by interval, jitter, losses, and the commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from lagometer.cli import compare, conditions, run
from lagometer.cli.judged import Judged
from lagometer.cli.show import command as show
from lagometer.errors import BadInput
from lagometer.run.campaign import Tally
from lagometer.stats.cell.campaign_estimates import campaign_estimates
from lagometer.stats.cell.jitter import jitter_ns
from lagometer.stats.cell.limits import (
    MET,
    NOT_MET,
    UNKNOWN,
    AbsoluteLimit,
    Figure,
    Judgement,
    judge_limits,
    verdict_of,
)
from lagometer.store.reader import open_campaign

ROOT = Path(__file__).parents[3]
import synthetic_campaign  # noqa: E402

SHM = "shm/pipeline-3/64B/500Hz/best_effort/process-per-node"
UDP = "udp/pipeline-3/64B/500Hz/best_effort/process-per-node"
MEMORY_BYTES = 100 * 1024**2


def write(folder: Path, trials: int = 9) -> Path:
    """A campaign of two cells; a hundredth of the messages of udp is lost. Each trial has its memory."""
    shape = synthetic_campaign.Shape(
        adapters=("shm", "udp"),
        payloads_bytes=(64,),
        reliabilities=("best_effort",),
        trials=trials,
        messages=1_600,
    )
    made = synthetic_campaign.write_campaign(folder, shape)
    cells = pl.read_parquet(made / "cells.parquet")
    memory = (MEMORY_BYTES + 1024**2 * pl.col("trial")).cast(pl.Int64)
    cells.with_columns(memory_pss_bytes=memory).write_parquet(made / "cells.parquet")
    whole: Path = synthetic_campaign.with_estimates(made)
    return whole


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("limits") / "nine")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with too few trials for any interval."""
    return write(tmp_path_factory.mktemp("limits") / "three", trials=3)


def judged(directory: Path, text: str, cell: str = SHM) -> Judgement:
    found = judge_limits(open_campaign(directory), conditions.parse_absolute([text]))
    return next(each for each in found if each.cell == cell)


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("figure", "above", "below"),
    [
        (Figure(12.0, 11.0, 13.0), MET, NOT_MET),
        (Figure(8.0, 7.0, 9.0), NOT_MET, MET),
        (Figure(10.0, 9.0, 11.0), UNKNOWN, UNKNOWN),
        (Figure(9.9, 9.0, 10.0), NOT_MET, UNKNOWN),  # to reach a limit is not to pass it
        (Figure(10.1, 10.0, 11.0), UNKNOWN, NOT_MET),
        (Figure(12.0), UNKNOWN, UNKNOWN),  # no interval
        (Figure(), UNKNOWN, UNKNOWN),
        (Figure(12.0, certain=True), MET, NOT_MET),
        (Figure(10.0, certain=True), NOT_MET, NOT_MET),
    ],
)
def test_a_limit_is_judged_with_the_whole_interval(figure: Figure, above: str, below: str) -> None:
    assert verdict_of(AbsoluteLimit("p99", True, 10.0, ""), figure) == above
    assert verdict_of(AbsoluteLimit("p99", False, 10.0, ""), figure) == below


# --- figures


def delivered(*messages: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(messages, schema=["sequence", "publish_ns", "taken_ns"], orient="row")


def stream(
    latencies: list[int], *, without: tuple[int, ...] = (), begin: int = 0
) -> list[tuple[int, int, int]]:
    every = ((each, 1_000 * each, 1_000 * each + begin + ns) for each, ns in enumerate(latencies))
    return [each for each in every if each[0] not in without]


def test_jitter_is_the_mean_difference_of_neighbours() -> None:
    latencies = [100, 130, 90, 90, 150, 100, 100, 120, 80, 110, 100, 130]
    differences = np.abs(np.diff(latencies))
    assert jitter_ns(delivered(*stream(latencies))) == differences.mean()
    # Where one is lost, no difference reaches over the gap.
    left = jitter_ns(delivered(*stream([*latencies, 500, 110], without=(12,))))
    assert left == differences.mean()
    assert jitter_ns(delivered(*stream(latencies[:10]))) is None  # nine pairs
    # Where one is overtaken, neighbours by their number still are neighbours.
    latencies[4] = 1_300
    overtaken = sorted(stream(latencies), key=lambda each: each[2])
    assert [each[0] for each in overtaken] != sorted(each[0] for each in overtaken)
    assert jitter_ns(delivered(*overtaken)) == np.abs(np.diff(latencies)).mean()


def test_without_the_offset_of_the_clocks_there_is_no_jitter() -> None:
    rows = delivered(*stream([100, 120] * 20))
    assert jitter_ns(rows) == 20.0
    assert jitter_ns(rows.with_columns(taken_ns=pl.lit(None, pl.Int64()))) is None


def test_jitter_keeps_readers_and_sources_apart() -> None:
    near, far = [100, 120] * 7, [900, 920] * 7
    two_readers = delivered(*stream(near), *stream(far))
    assert jitter_ns(two_readers) == 20.0
    sources = sorted([*stream(near), *stream(far, begin=3)], key=lambda each: each[2])
    assert jitter_ns(delivered(*sources)) is None


def test_quantiles_and_costs_have_the_intervals_of_show(campaign: Path) -> None:
    table = campaign_estimates(open_campaign(campaign))
    for quantity in ("p50", "p90", "p99"):
        own = table.filter(
            (pl.col("cell") == SHM)
            & (pl.col("edge") == "end-to-end")
            & (pl.col("quantity") == f"latency_{quantity}")
        ).row(0, named=True)
        found = judged(campaign, f"{quantity} > 1ms")
        assert (found.value, found.low, found.high) == tuple(
            own[name] for name in ("estimate_ns", "low_ns", "high_ns")
        )
        assert (found.verdict, found.unit, found.why) == (NOT_MET, "ns", None)
        assert judged(campaign, f"{quantity} > {int(found.low or 0) - 1}ns").verdict == MET
        inside = judged(campaign, f"{quantity} > {int(found.value or 0)}ns")
        assert (inside.verdict, inside.why) == (UNKNOWN, "the interval crosses the limit")
    cost = judged(campaign, "cpu > 1s")
    cells = pl.read_parquet(campaign / "cells.parquet").filter(
        (pl.col("cell") == SHM) & (pl.col("edge") == "end-to-end")
    )
    assert cost.value == cells["cpu_per_message_ns"].median()
    assert cost.low is not None and cost.low < (cost.value or 0) < (cost.high or 0)
    memory = judged(campaign, "memory > 103MB")
    assert (memory.verdict, memory.unit, memory.value) == (UNKNOWN, "bytes", 104 * 1024**2)
    assert judged(campaign, "memory > 90MB").verdict == MET
    assert judged(campaign, "memory > 200MB").verdict == NOT_MET
    assert judged(campaign, "jitter > 1s").low is not None


def test_a_maximum_is_a_fact(campaign: Path, short: Path) -> None:
    for directory in (campaign, short):
        cells = pl.read_parquet(directory / "cells.parquet")
        own = cells.filter((pl.col("cell") == SHM) & (pl.col("edge") == "end-to-end"))
        largest = int(own["latency_max_ns"].max())  # type: ignore[arg-type]
        assert judged(directory, f"max > {largest}ns").verdict == NOT_MET
        found = judged(directory, f"max > {largest - 1}ns")
        assert (found.verdict, found.value, found.low) == (MET, largest, None)
        assert f"the largest of {own['n'].sum():,} messages" in str(found.why)


def test_losses_are_judged_and_none_seen_is_a_bound(campaign: Path) -> None:
    lossy = judged(campaign, "lost > 0.1%", UDP)
    assert lossy.verdict == MET
    assert 0.005 < (lossy.low or 0) < (lossy.value or 0) < (lossy.high or 0) < 0.02
    assert judged(campaign, "lost > 5%", UDP).verdict == NOT_MET
    assert judged(campaign, "undelivered > 0.1%", UDP).value == lossy.value
    none = judged(campaign, "lost > 1%")
    assert (none.verdict, none.value, none.low) == (NOT_MET, 0.0, 0.0)
    best = 1.0 - 0.025 ** (1.0 / (9 * 1_600))  # if messages were independent
    assert 0.999 * best < (none.high or 0.0) < 20.0 * best
    assert judged(campaign, "lost > 0.001%").verdict == UNKNOWN


def with_clocks(source: Path, folder: Path, bound_ns: int | None) -> Path:
    """A copy of a campaign whose ends have two clocks: with this bound, and of one trial nothing is known."""
    shutil.copytree(source, folder)
    column = pl.when(pl.col("valid")).then(pl.lit(bound_ns)).cast(pl.Int64).alias("clock_bound_ns")
    cells = pl.read_parquet(folder / "cells.parquet").with_columns(column)
    if bound_ns is None:
        latency = pl.when(pl.col("trial") > 0).then(pl.col("latency_max_ns")).alias("latency_max_ns")
        cells = cells.with_columns(latency)
    cells.write_parquet(folder / "cells.parquet")
    return folder


def test_a_maximum_between_two_clocks_is_known_to_their_bound(campaign: Path, tmp_path: Path) -> None:
    largest = judged(campaign, "max > 1ns").value
    assert largest is not None
    apart = with_clocks(campaign, tmp_path / "apart", 2_000)
    for over_ns, verdict in ((-2_001, MET), (-1_999, UNKNOWN), (1_999, UNKNOWN), (2_000, NOT_MET)):
        found = judged(apart, f"max > {int(largest) + over_ns}ns")
        assert (found.verdict, found.low, found.high) == (verdict, largest - 2_000, largest + 2_000), over_ns
    assert judged(apart, "max > 1ns").why == (
        f"{judged(campaign, 'max > 1ns').why}; the offset of its ends' clocks is known to ± 2.00 µs"
    )
    unknown = judged(with_clocks(campaign, tmp_path / "unknown", None), "max > 1ns")
    assert unknown.verdict == UNKNOWN
    assert str(unknown.why).startswith("not known of 1 of ")


def without_clocks(source: Path, folder: Path, trials: Collection[int]) -> Path:
    """A copy of a campaign in which the offset of the clocks was unknown in these trials of both cells."""
    shutil.copytree(source, folder)
    cells = pl.read_parquet(folder / "cells.parquet")
    unknown = pl.when(~pl.col("trial").is_in(list(trials)))
    names = [name for name in cells.columns if name.startswith("latency_")]
    cells.with_columns(unknown.then(pl.col(name)).alias(name) for name in names).write_parquet(
        folder / "cells.parquet"
    )
    for path in (
        path
        for cell in (SHM, UDP)
        for trial in trials
        for path in (folder / "samples" / cell).glob(f"{trial}.*")
    ):
        frame = pl.read_parquet(path)
        frame.with_columns(taken_ns=pl.lit(None, frame.schema["taken_ns"])).write_parquet(path)
    changed: Path = synthetic_campaign.with_estimates(folder)
    return changed


def test_without_a_latency_no_limit_of_one_is_met_or_kept(campaign: Path, tmp_path: Path) -> None:
    gone = without_clocks(campaign, tmp_path / "gone", range(9))
    for quantity in ("p50", "p99", "max", "jitter"):
        for sign in "<>":
            found = judged(gone, f"{quantity} {sign} 1ms")
            assert (found.verdict, found.value, found.why) == (UNKNOWN, None, "not known of any trial")
    # How much the messages of a trial depend on each other is unknown, too: a trial is worth one.
    assert judged(gone, "lost > 0.1%", UDP).verdict == judged(gone, "lost > 1%").verdict == UNKNOWN


def test_trials_without_a_latency_are_said(campaign: Path, tmp_path: Path) -> None:
    one = without_clocks(campaign, tmp_path / "one", [4])
    for quantity in ("max", "jitter"):
        found = judged(one, f"{quantity} > 1s")
        assert (found.verdict, found.why) == (UNKNOWN, "not known of 1 of 9 trials")
    found, all_nine = judged(one, "p50 > 1s"), judged(campaign, "p50 > 1s")
    assert (found.verdict, found.why) == (NOT_MET, "not known of 1 of 9 trials")
    assert found.value != all_nine.value and found.value == pytest.approx(all_nine.value, rel=0.1)
    lossy, before = judged(one, "lost > 0.1%", UDP), judged(campaign, "lost > 0.1%", UDP)
    assert (lossy.verdict, lossy.value) == (MET, before.value)


def test_too_few_trials_tell_nothing_but_the_maximum(short: Path) -> None:
    for text in ("p50 > 1us", "p99 > 1s", "lost > 50%", "jitter > 1s", "memory > 1GB", "cpu > 1s"):
        found = judged(short, text)
        assert found.verdict == UNKNOWN, text
        assert "no interval from" in str(found.why) and "would be enough" in str(found.why), found.why
        assert found.value is not None
    assert judged(short, "p99.9 > 1s").value is None


def test_what_is_not_there_is_said(campaign: Path, tmp_path: Path) -> None:
    made = write(tmp_path / "copy", trials=7)
    cells = pl.read_parquet(made / "cells.parquet").drop("memory_pss_bytes")
    cells.with_columns(valid=pl.col("cell") != UDP).write_parquet(made / "cells.parquet")
    assert judged(made, "p50 > 1s", UDP).why == "no valid trial"
    assert judged(made, "memory > 1GB").why == "not known of any trial"
    for path in (made / "samples" / SHM).glob("*.parquet"):
        path.unlink()
    assert "no samples of this trial" in str(judged(made, "lost > 1%").why)


# --- conditions as they are written


def test_conditions_are_read() -> None:
    found = conditions.parse(
        ["p99>2ms", " */64B/* : p99.9 < 1.5us", "lost > 0.1%", "*/1KB: p50 > +5%", "p50 > 5%"]
    )
    assert [(each.quantity, each.above, each.value, each.cells) for each in found.absolute] == [
        ("p99", True, 2e6, "*"),
        ("p999", False, 1500.0, "*/64B/*"),
        ("lost", True, 0.001, "*"),
    ]
    assert [(each.ratio, each.cells) for each in found.relative] == [(1.05, "*/1KB"), (1.05, "*")]
    assert conditions.text_of(found.relative[0]) == "*/1KB: p50 > +5%"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p99 > 5", "has no unit"),
        ("p999 > 5ms", "is not a condition"),
        ("memory > 5ms", "unknown unit 'ms'"),
        ("lost > 5ms", "unknown unit 'ms'"),
        ("lost > +5%", "is not a percentage"),
        ("p99 >= 5ms", "is not a condition"),
        ("p75 > 5ms", "is not a condition"),
        ("mean > 5ms", "is not a condition"),
        ("jitter > 5%", "unknown unit '%'"),
        ("p99 > -5ms", "is negative"),
        (": p99 > 5ms", "is not a condition"),
    ],
)
def test_what_is_no_limit_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=r"^--fail-if: .* is not a condition") as error:
        conditions.parse([text])
    assert said in str(error.value)


# --- the commands


def test_show_ends_with_8_and_says_which(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["p99 > 1us", "udp/*: lost > 0.1%", "lost > 0.001%", "cpu > 1s"]
    assert show.command(campaign, fail_if=asked) == 8
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert f"    met: {SHM}" in lines and f"    met: {UDP}" in lines
    assert f"    can't be judged: {SHM}" in lines
    assert f"    not met in 2 cells, nearest: {UDP}" in lines
    assert lines[-1] == "failed: 4 of --fail-if (exit code 8)"
    for limit in asked:
        assert f"  {limit}" in lines
    assert show.command(campaign, fail_if=asked, json=True) == 8
    found = told(capsys)
    assert len(found["failed_conditions"]) == 4
    assert {(each["limit"], each["cell"], each["verdict"]) for each in found["limits"]} >= {
        ("p99 > 1us", SHM, "met"),
        ("lost > 0.001%", SHM, "unknown"),
        ("cpu > 1s", UDP, "not-met"),
    }


def test_what_nobody_can_tell_fails_only_if_strict(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show.command(campaign, fail_if=["shm/*: lost > 0.001%"]) == 0
    assert "can't be judged" in capsys.readouterr().out
    assert show.command(campaign, fail_if=["shm/*: lost > 0.001%"], strict=True, json=True) == 8
    assert "the interval crosses the limit" in told(capsys)["failed_conditions"][0]
    assert show.command(campaign, fail_if=["p50 > 1s"], strict=True) == 0


def test_a_limit_on_no_cell_and_a_change_in_one_campaign_are_refused(campaign: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no cell matches 'shm/\*/1KB/\*'"):
        show.command(campaign, fail_if=["shm/*/1KB/*: p99 > 1ms"])
    with pytest.raises(BadInput, match=r"'p50 > \+5%' is a change"):
        show.command(campaign, fail_if=["p50 > 5%"])
    study = tmp_path / "study.yaml"
    study.write_text("name: s\nduration: 1s\nmatrix: {adapter: shm, workload: pipeline-2, rate: 10Hz}\n")
    for wrong in ("udp/*: p99 > 1ms", "p99 > 5%", "p99 > 5"):
        with pytest.raises(BadInput):  # before anything is measured
            run.command(study, out=tmp_path / "out", fail_if=[wrong])
    assert not (tmp_path / "out").exists()


def test_a_limit_comes_before_a_failed_trial_and_after_an_interruption() -> None:
    failed = Judged((), ("p99 > 1ms is met: a",))
    assert run.exit_code(Tally(dir="d", valid=1), None, failed) == 8
    assert run.exit_code(Tally(dir="d", valid=1, failed=1), None, failed) == 8
    assert run.exit_code(Tally(dir="d", valid=1, failed=1), None, Judged()) == 3
    assert run.exit_code(Tally(dir="d", valid=1, interrupted=True), None, failed) == 130


def test_compare_holds_what_is_now_against_limits(
    campaign: Path, short: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.command(short, campaign, fail_if=["p99 > 1us"], json=True) == 8
    found = told(capsys)
    assert [each["verdict"] for each in found["limits"]] == ["met", "met"]
    assert f"p99 > 1us is met: {SHM}" in found["failed_conditions"]
    assert compare.command(campaign, campaign, by="shm:udp", fail_if=["udp/*: p50 > +5%"]) == 8
    with pytest.raises(BadInput, match="no cell matches"):
        compare.command(campaign, campaign, by="shm:udp", fail_if=["nng/*: p50 > +5%"])
