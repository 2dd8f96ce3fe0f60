# SPDX-License-Identifier: Apache-2.0
"""Preemption flags what stands out of its own campaign, by causes alone; raw counts stay."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from lagometer.stats.cell.preempted import preempted_trials, with_noise_of_campaign

MESSAGES = 1_000
CELLS = ("shm/64B", "udp/64B", "shm/64KB", "udp/64KB")


def cells_of(switches: dict[str, Sequence[int | None]], *, counted: bool = True) -> pl.DataFrame:
    """The rows of trials with so many involuntary switches each for 1,000 messages, as they are judged."""
    rows = []
    for cell, of_cell in switches.items():
        for trial, count in enumerate(of_cell):
            flagged = count is not None and count > MESSAGES // 10
            text = f"preempted: {count} involuntary switches for {MESSAGES} messages"
            noise = [*([text] if flagged else []), *(["thermal: 3 times"] if trial == 0 else [])]
            own = {"cell": cell, "trial": trial, "valid": True, "n": MESSAGES // 2, "noise": noise}
            own |= {"noisy": bool(noise), **({"involuntary_switches": count} if counted else {})}
            rows += [{**own, "edge": edge} for edge in ("source→relay", "relay→sink", "end-to-end")]
    return pl.DataFrame(rows, schema_overrides={"noise": pl.List(pl.String())})


def flagged(cells: pl.DataFrame) -> set[tuple[str, int]]:
    seen = with_noise_of_campaign(cells).filter(
        pl.col("noise").list.eval(pl.element().str.starts_with("pre")).list.any()
    )
    return set(seen.select("cell", "trial").iter_rows())


@pytest.mark.parametrize("trials", [1, 2, 3, 8])
def test_a_campaign_that_is_preempted_alike_flags_none(trials: int) -> None:
    cells = cells_of(
        {cell: [400 + 7 * place + trial for trial in range(trials)] for place, cell in enumerate(CELLS)}
    )
    found = preempted_trials(cells)
    assert len(found) == 4 * trials
    assert all(each.above and not each.stands_out for each in found)
    assert flagged(cells) == set()
    # Other causes stay, and so do the counts.
    seen = with_noise_of_campaign(cells)
    assert seen.filter("noisy").select("cell", "trial").unique().height == 4
    assert seen["involuntary_switches"].to_list() == cells["involuntary_switches"].to_list()


def test_two_that_stand_out_are_flagged_and_come_first() -> None:
    generator = np.random.default_rng(1)
    switches = {cell: [int(each) for each in 400 * generator.lognormal(0.0, 0.15, 8)] for cell in CELLS}
    switches[CELLS[1]][3] = 1_500
    switches[CELLS[2]][7] = 1_200
    cells = cells_of(switches)
    outliers = {(CELLS[1], 3), (CELLS[2], 7)}
    assert flagged(cells) == outliers
    found = preempted_trials(cells)
    assert {(each.cell, each.trial) for each in found[:2]} == outliers
    assert found[0].per_message == 1.5
    assert found[0].times == pytest.approx(1_500 / np.median(switches[CELLS[1]]), rel=0.01)


def test_cells_that_differ_by_design_are_not_held_against_each_other() -> None:
    busy = cells_of(
        {"poll/64B": [5_000, 5_100, 4_900, 5_050], "shm/64B": [150, 160, 155, 150], "a": [120] * 4}
    )
    assert flagged(busy) == set()


def test_little_preemption_is_never_flagged() -> None:
    few = cells_of({"a": [2, 2, 3, 2, 90], "b": [1, 1, 2, 1, 1]})
    assert not any(each.above or each.stands_out for each in preempted_trials(few))


def test_twice_as_much_is_the_least() -> None:
    for most, found in ((800, set()), (820, {("a", 5)})):
        assert flagged(cells_of({"a": [400, 402, 399, 401, 400, most]})) == found, most


@pytest.mark.parametrize("spread", [0.1, 0.3, 0.6])
def test_hardly_any_is_flagged_by_chance(spread: float) -> None:
    """Counts whose logarithm is normal: at most 2 % of 32 trials of 200 campaigns, whatever their spread."""
    alarms = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        switches = {cell: [int(each) for each in 400 * generator.lognormal(0.0, spread, 8)] for cell in CELLS}
        alarms += sum(each.stands_out for each in preempted_trials(cells_of(switches)))
    assert alarms <= 0.02 * 200 * 32, alarms


def test_older_campaigns_tell_by_their_flags() -> None:
    old = cells_of({"a": [400, 410, 390, 405, 395, 2_000, 50]}, counted=False)
    found = preempted_trials(old)
    assert len(found) == 6  # nobody wrote down what was not flagged
    assert flagged(old) == {("a", 5)}
    assert math.isclose(found[0].per_message, 2.0)
    without = pl.DataFrame({"cell": ["a"], "trial": [0], "valid": [True], "n": [5], "edge": ["end-to-end"]})
    assert with_noise_of_campaign(without).equals(without)


def test_what_nobody_watched_stays_unknown() -> None:
    cells = cells_of({"a": [400, 400, 400]}).with_columns(
        noise=pl.lit(None, dtype=pl.List(pl.String())), noisy=pl.lit(None, dtype=pl.Boolean())
    )
    seen = with_noise_of_campaign(cells)
    assert seen["noise"].null_count() == seen["noisy"].null_count() == seen.height


def test_messages_that_count_as_warm_up_are_in_the_rate() -> None:
    """Switches are those of the whole measure phase, and so must the messages be."""
    cells = cells_of({"shm/64B": [300, 320, 340]}).with_columns(n=pl.lit(10), taken=pl.lit(MESSAGES))
    assert [each.per_message for each in preempted_trials(cells)] == pytest.approx([0.34, 0.32, 0.3])
