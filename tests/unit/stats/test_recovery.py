# SPDX-License-Identifier: Apache-2.0
"""How long after an outage of a link the first message comes through."""

from __future__ import annotations

import polars as pl

from lagometer.stats.trial.recovery import Outage, outages_of, recoveries

MS = 1_000_000
BEGIN = 7_000 * MS


def test_outages_are_what_lies_between_the_loss_of_all_and_the_loss_of_less() -> None:
    changes = [(500 * MS, True), (800 * MS, False), (900 * MS, False), (1500 * MS, True), (1800 * MS, False)]
    found = outages_of(changes, BEGIN, BEGIN + 3000 * MS)
    assert found == [
        Outage(BEGIN + 500 * MS, BEGIN + 800 * MS, BEGIN + 1500 * MS),
        Outage(BEGIN + 1500 * MS, BEGIN + 1800 * MS, BEGIN + 3000 * MS),
    ]
    unended = outages_of(changes[:4], BEGIN, BEGIN + 3000 * MS)
    assert unended == [Outage(BEGIN + 500 * MS, BEGIN + 800 * MS, BEGIN + 1500 * MS)]
    assert not outages_of([(500 * MS, False)], BEGIN, BEGIN + 3000 * MS)


def test_the_first_message_published_since_the_outage_began_tells_the_recovery() -> None:
    rows = [
        ("a→b", 490, 820),  # under way when it began
        ("a→b", 600, None),  # lost
        ("a→b", 700, 950),  # sent again
        ("a→b", 960, 970),
        ("a→b", 1600, 1850),
        ("b→c", 700, 1600),  # in the next outage
        ("b→c", 1600, 3100),  # behind the trial's end
    ]
    samples = pl.DataFrame(
        {
            "edge": [edge for edge, _, _ in rows],
            "publish_ns": [BEGIN + at * MS for _, at, _ in rows],
            "taken_ns": [None if at is None else BEGIN + at * MS for _, _, at in rows],
        },
        schema_overrides={"edge": pl.Categorical(), "taken_ns": pl.Int64()},
    )
    outages = [
        Outage(BEGIN + 500 * MS, BEGIN + 800 * MS, BEGIN + 1500 * MS),
        Outage(BEGIN + 1500 * MS, BEGIN + 1800 * MS, BEGIN + 3000 * MS),
    ]
    assert recoveries(samples, ["a→b", "b→c"], outages) == [
        {"edge": "a→b", "recovered_ns": [150 * MS, 50 * MS]},
        {"edge": "b→c", "recovered_ns": [None, None]},
    ]
    assert recoveries(samples, ["a→b"], []) == []
