# SPDX-License-Identifier: Apache-2.0
"""When a cell of an adaptive campaign stops, what is expected of it, and how long `plan` says it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.adaptive import Stopping
from lagometer.run.order import blocks, control_cell, long_trial_cells, long_trial_ns
from lagometer.run.prediction import predict, trials_of
from lagometer.run.results.trial_store import Finished
from lagometer.run.wakeup import wakeup_duration_ns
from lagometer.stats.interval.confidence import Numbers
from lagometer.stats.interval.sequential import Rule
from lagometer.stats.interval.stopping import Bounds, CellProgress
from lagometer.store import format as form
from lagometer.study import Adapter, Cell, Excluded, Factors, Study, expand, study_from_mapping
from lagometer.study.graph import Graph
from lagometer.study.links import Link
from lagometer.study.matrix import LINK_OVERHEAD_NS


def study(**keys: object) -> Study:
    matrix = {"adapter": ["shm", "fastdds"], "workload": "pipeline-2", "payload": ["64B", "1KB"]}
    return study_from_mapping({"name": "x", "duration": "1s", "matrix": matrix, **keys}, "test")


def cells(*names: str) -> list[Cell]:
    """Cells that are told apart by their ids alone."""
    graph, factors = Graph("x", (), (), ()), Factors("shm", "x")
    return [Cell(name, factors, (), graph, (), {}, ()) for name in names]


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("adapters"))


def trial(generator: np.random.Generator, spread: float) -> Numbers:
    """Latencies about 10 µs; trials differ by this share."""
    middle = 10_000 * (1 + spread * generator.standard_normal())
    return np.sort(middle * (1 + 0.05 * generator.standard_normal(300))).astype(np.int64)


def carried_out(bounds: Bounds, spread: float, seed: int = 1, spent_s: float = 0.5) -> CellProgress:
    """A cell until it stops."""
    cell, generator = CellProgress(bounds), np.random.default_rng(seed)
    while cell.stopped is None:
        cell.add(trial(generator, spread), spent_s)
    return cell


def bounds(precision: float = 0.05, most: int = 60, cell_time_s: float | None = None) -> Bounds:
    return Bounds(Rule(precision, trials_max=most), most, cell_time_s)


def test_a_steady_cell_stops_at_its_first_look_and_an_unsteady_one_goes_on() -> None:
    steady = carried_out(bounds(), spread=0.005)
    assert (steady.stopped, steady.carried_out) == ("precision", 6)
    unsteady = carried_out(bounds(), spread=0.10)
    assert unsteady.carried_out > 6
    hopeless = carried_out(bounds(most=12), spread=0.5)
    assert (hopeless.stopped, hopeless.carried_out) == ("trials", 12)


def test_no_trial_begins_that_would_end_after_the_cells_time() -> None:
    cell = carried_out(bounds(cell_time_s=4.2), spread=0.5, spent_s=0.5)
    assert (cell.stopped, cell.carried_out, cell.spent_s) == ("time", 8, 4.0)


def test_failed_trials_cost_time_and_tell_nothing() -> None:
    generator = np.random.default_rng(1)
    cell = CellProgress(bounds(most=10))
    for number in range(9):
        cell.add(trial(generator, 0.3) if number % 2 else None, 1.0)
        assert cell.stopped is None
    cell.add(None, 1.0)
    assert (cell.stopped, cell.valid) == ("trials", 4)
    broken = CellProgress(bounds())
    for _ in range(6):
        assert broken.stopped is None
        broken.add(None, 1.0)
    assert broken.stopped == "trials"


def test_the_same_trials_give_the_same_decisions() -> None:
    first, second = (carried_out(bounds(), spread=0.04, seed=3) for _ in range(2))
    assert first.decision == second.decision
    assert first.stop_now() == second.stop_now()


def test_an_interval_made_before_the_stop_has_spent_what_a_limit_would() -> None:
    cell, generator = CellProgress(bounds()), np.random.default_rng(1)
    for _ in range(7):
        cell.add(trial(generator, 0.5), 1.0)
    assert cell.stopped is None
    assert 0 < cell.stop_now().alpha < 0.05
    assert cell.remaining() >= 1


def test_a_study_without_precision_never_stops_a_cell() -> None:
    stopping = Stopping(study(trials=2), cells("a", "b"))
    assert (stopping.adaptive, stopping.remaining(), stopping.counts()) == (False, 4, None)
    stopping.add("a", Finished(True, (), 0.1, 1.0), None)
    assert (stopping.remaining(), stopping.stopped("a")) == (3, None)


def test_an_adaptive_campaign_counts_its_cells_by_what_ended_them() -> None:
    stopping = Stopping(study(precision="5%"), cells("a", "b"))
    assert stopping.remaining() == 12
    for _ in range(6):
        stopping.add("a", Finished(False, ("worker-died: x",), 0.1, 1.0), None)
    assert stopping.stopped("a") == "trials"
    assert stopping.counts() == {"trials": 1, "open": 1}
    assert stopping.remaining() == 6


def test_a_cell_gets_trials_until_so_many_are_valid_or_it_has_had_the_most() -> None:
    stopping = Stopping(study(trials_valid=2, trials_max=4), cells("good", "bad"))
    assert (stopping.remaining(), stopping.adaptive) == (4, False)
    for valid in (True, False, True):
        assert stopping.stopped("good") is None
        stopping.add("good", Finished(valid, (), 0.1, 1.0), None)
        stopping.add("bad", Finished(False, ("worker-died: x",), 0.1, 1.0), None)
    assert (stopping.stopped("good"), stopping.stopped("bad"), stopping.remaining()) == ("valid", None, 1)
    stopping.add("bad", Finished(False, ("worker-died: x",), 0.1, 1.0), None)
    assert (stopping.stopped("bad"), stopping.remaining()) == ("trials", 0)
    assert stopping.counts() == {"valid": 1, "trials": 1}


def test_so_many_valid_trials_are_tried_three_times_as_often() -> None:
    assert (study(trials_valid=100).fewest_trials(), study(trials_valid=100).most_trials()) == (100, 300)
    for more, said in (
        ({"trials": 3}, "'trials' and 'trials_valid' both say"),
        ({"precision": "5%"}, "'precision' and 'trials_valid' both say"),
        ({"trials_max": 2}, "'2' is fewer than the 3 valid trials"),
    ):
        with pytest.raises(BadInput, match=said):
            study(trials_valid=3, **more)


def test_blocks_do_not_depend_on_how_many_there_are(adapters: dict[str, Adapter]) -> None:
    cells = expand(study(), adapters).cells
    endless = blocks(cells, 7)
    first = [next(endless) for _ in range(3)]
    assert first == [block for _, block in zip(range(3), blocks(cells, 7), strict=False)]
    assert all(sorted(cell.id for cell in block) == sorted(cell.id for cell in cells) for block in first)


def test_the_control_is_short_and_may_be_impossible(adapters: dict[str, Adapter]) -> None:
    by, cell = control_cell(study(precision="5%", duration="2s"), adapters)
    assert by is not None and isinstance(cell, Cell)
    assert (by.duration_ns, cell.id) == (500_000_000, "shm/pingpong")
    assert control_cell(study(), adapters) == (None, None)
    impossible = study(control={"adapter": "null", "workload": "pingpong"})
    _, excluded = control_cell(impossible, adapters)
    assert isinstance(excluded, Excluded)


def test_one_cell_of_each_family_gets_a_long_trial(adapters: dict[str, Adapter]) -> None:
    plan = study(long_trial="60s")
    cells = expand(plan, adapters).cells
    chosen = long_trial_cells(plan, cells)
    assert [cell.factors.adapter for cell in chosen] == ["shm", "fastdds"]
    assert chosen == long_trial_cells(plan, cells)
    assert long_trial_cells(study(), cells) == ()
    assert long_trial_cells(study(precision="5%", long_trial="off"), cells) == ()
    assert long_trial_cells(study(precision="5%"), cells) == chosen, "by itself, where cells are adaptive"


def test_long_trials_take_a_tenth_of_the_campaign_within_bounds(adapters: dict[str, Adapter]) -> None:
    plan = study(precision="5%", duration="1s", warmup="300ms", drain="200ms")
    cells = expand(plan, adapters).cells
    assert long_trial_ns(plan, cells) == 3 * 10**9, "as long as three short ones at least"
    # 80 cells of six trials, each 1.65 s with all that it takes; two families; 0.65 s beside each long one.
    assert long_trial_ns(plan, cells * 20) == round(0.1 * 80 * 6 * 1.65e9 / 2) - 650_000_000
    assert long_trial_ns(plan, cells * 100) == 60 * 10**9
    assert long_trial_ns(study(long_trial="7s"), cells) == 7 * 10**9
    assert long_trial_ns(study(), cells) == long_trial_ns(study(precision="5%", long_trial="off"), cells) == 0


def test_the_predicted_time_has_the_long_trials(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    keys = {"precision": "5%", "control": "none"}
    cells = expand(study(**keys), adapters).cells
    without = predict(study(**keys, long_trial="off"), cells, adapters, tmp_path)
    by_itself = predict(study(**keys), cells, adapters, tmp_path)
    # Two of them, each three seconds, 0.5 s of other phases and 0.15 s.
    assert by_itself.seconds - without.seconds == pytest.approx(2 * 3.65)


def test_the_predicted_time_counts_trials(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    fixed = study(trials=3)
    cells = expand(fixed, adapters).cells
    found = predict(fixed, cells, adapters, tmp_path)
    assert found.seconds == found.least_s == found.most_s > len(cells) * 3 * fixed.trial_ns() / 1e9
    assert (found.trials, found.earlier) == (12, None)
    floorless = predict(study(trials=3, machine_floor="off"), cells, adapters, tmp_path)
    assert found.seconds - floorless.seconds == pytest.approx(wakeup_duration_ns(fixed, cells) / 1e9)
    longer = predict(study(trials=3, machine_floor="7s"), cells, adapters, tmp_path)
    assert longer.seconds - floorless.seconds == pytest.approx(7)
    adaptive = study(precision="5%", trials_max=20, control="none")
    guessed = predict(adaptive, cells, adapters, tmp_path)
    assert guessed.least_s == guessed.seconds < guessed.most_s
    controlled = predict(study(precision="5%", trials_max=20), cells, adapters, tmp_path)
    assert controlled.seconds > guessed.seconds


def test_the_control_runs_in_every_block_of_the_longest_part(
    adapters: dict[str, Adapter], tmp_path: Path
) -> None:
    """The study around the parts has one trial, so one block was counted."""
    parts = {"short": {"trials": 2}, "long": {"trials": 5}}
    keys = {"parts": parts, "machine_floor": "off"}
    cells = expand(study(**keys), adapters).cells
    without = predict(study(**keys), cells, adapters, tmp_path)
    controlled = predict(study(**keys, control="floor"), cells, adapters, tmp_path)
    # Five trials of half a second, 0.5 s of other phases and 0.15 s.
    assert controlled.seconds - without.seconds == pytest.approx(5 * 1.15)
    assert controlled.least_s == controlled.seconds == controlled.most_s


def test_the_predicted_time_has_the_measuring_of_links(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    fixed = study(trials=3)
    cells = expand(fixed, adapters).cells
    linked = [replace(cells[0], link=Link(rate_bps=10**8)), *cells[1:]]
    more_s = (
        predict(fixed, linked, adapters, tmp_path).seconds - predict(fixed, cells, adapters, tmp_path).seconds
    )
    assert more_s == pytest.approx(3 * LINK_OVERHEAD_NS / 1e9)


def test_the_prediction_rests_on_an_earlier_campaign(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    plan = study(precision="5%", control="none", long_trial="off", machine_floor="off")
    cells = expand(plan, adapters).cells
    rows = [
        {
            "cell": cell.id,
            "trial": number,
            "edge": "end-to-end",
            "valid": True,
            "latency_p50_ns": 10_000 + step,
        }
        for cell in cells
        for number, step in enumerate((-600, 0, 600))
    ]
    form.write_cells(form.cells_of_rows(rows), tmp_path / form.CELLS)
    manifest = {
        "format_version": 1,
        "study": plan.as_json(),
        "cells": [{"id": cell.id, "factors": cell.columns()} for cell in cells],
    }
    form.write_json_atomic(manifest, tmp_path / form.MANIFEST)
    phases_s = plan.trial_ns() / 1e9
    line = '{{"cell": "{}", "trial": 0, "valid": true, "spent_s": {}, "rows": []}}\n'
    (tmp_path / form.JOURNAL).write_text("".join(line.format(cell.id, phases_s + 0.5) for cell in cells))
    found = predict(plan, cells, adapters, tmp_path)
    assert found.earlier == tmp_path
    assert found.trials > 6 * len(cells)
    assert found.seconds == pytest.approx(found.trials * (phases_s + 0.5))


def test_a_cells_time_bounds_its_trials() -> None:
    assert trials_of(study(precision="5%", cell_time="4s"), 0.5, None) == (6, 6, 8)
    assert trials_of(study(precision="5%", cell_time="2s"), 0.5, 0.3) == (4, 4, 4)
    assert trials_of(study(trials=3), 0.5, 0.3) == (3, 3, 3)
