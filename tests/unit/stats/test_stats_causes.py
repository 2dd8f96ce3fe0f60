# SPDX-License-Identifier: Apache-2.0
"""Causes that are seen from outside: each is found where it is, and not where it isn't."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.verdict.causes import clock_stepped, realtime_throttled, transport_mismatch, where_lost
from lagometer.stats.verdict.noise import NOISES
from lagometer.stats.verdict.validity import REASONS
from lagometer.store.observed import (
    Clocks,
    MachineLoad,
    Match,
    Observed,
    RealtimeLimit,
    RealtimeThread,
)
from tests.fixtures.small_trial import SmallTrial, pipeline

DOCS = Path(__file__).parents[3] / "docs"
SECOND_NS = 1_000_000_000
QUIET = Observed(window_ns=2 * SECOND_NS, private=True, kernel={"udp_receive_buffer_errors": 0})


def table(heading: str, page: str) -> set[str]:
    """The code words in the first column of the table below a heading."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    rows = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert rows is not None
    return set(re.findall(r"^\| `([a-z-]+)` \|", rows[0], re.MULTILINE))


def test_the_documented_lists_are_those_of_the_code() -> None:
    assert table("## Reasons", "methodology/validity.md") == set(REASONS)
    assert table("## Noise", "methodology/noise.md") == set(NOISES)


@pytest.mark.parametrize(
    ("clocks", "said"),
    [
        (Clocks(), ""),
        (Clocks(SECOND_NS, wall_step_ns=900, suspended_ns=500, slewed_ns=400_000, uncertainty_ns=600), ""),
        (Clocks(SECOND_NS, wall_step_ns=60_000, uncertainty_ns=51_000), ""),
        (
            Clocks(SECOND_NS, wall_step_ns=62_000, uncertainty_ns=51_000),
            "the wall clock was set by +62.0 µs",
        ),
        (Clocks(SECOND_NS, wall_step_ns=-3_600 * SECOND_NS), "the wall clock was set by -3600 s"),
        (Clocks(SECOND_NS, wall_step_ns=SECOND_NS, suspended_ns=SECOND_NS), "suspended for 1.00 s"),
        (Clocks(SECOND_NS, slewed_ns=5_000_000), "pulled by 0.50%"),
        (Clocks(source_before="tsc", source_after="tsc"), ""),
        (Clocks(source_before="tsc", source_after="hpet"), "changed from tsc to hpet"),
    ],
)
def test_a_clock_that_was_moved(clocks: Clocks, said: str) -> None:
    found = list(clock_stepped(clocks))
    assert len(found) == bool(said)
    assert said in "".join(found)


@pytest.mark.parametrize(
    ("match", "seen"),
    [
        (Match("a→b", "udp", ("udp",), "1 socket"), None),
        (Match("a→b", "udp", ("shared-memory", "udp"), "1 socket"), None),
        (Match("a→b", None, ("tcp", "udp"), "1 socket"), None),
        (Match("a→b", "udp", (), ""), None),
        (
            Match("a→b", "shared-memory", ("udp",), "1 socket"),
            "claims shared-memory, observed: udp (1 socket)",
        ),
        (Match("a→b", "udp", (), "nothing"), "observed: nothing known"),
    ],
)
def test_a_claim_that_cannot_be_true(match: Match, seen: str | None) -> None:
    found = list(transport_mismatch(replace(QUIET, matches=(match,))))
    assert (seen in "".join(found)) if seen else not found


def test_what_was_seen_is_the_claim_where_it_can_be_true() -> None:
    assert Match("a→b", "udp", ("shared-memory", "udp"), "x").seen == "udp"
    assert Match("a→b", None, ("tcp", "udp"), "x").seen == "tcp or udp"
    assert Match("a→b", "udp", (), "").seen is None


@pytest.mark.parametrize(
    ("run_ms", "wait_ms", "window_s", "runtime_us", "throttled"),
    [
        (2150, 50, 2.2, 950_000, True),  # one stop of 50 ms
        (2170, 30, 2.2, 950_000, False),
        (1000, 600, 2.2, 950_000, False),  # it also slept: somebody else had the CPU
        (2150, 50, 2.2, -1, False),  # no limit
        (850, 50, 0.9, 950_000, False),  # less than a period
        (59_000, 900, 60.0, 950_000, False),  # in few of the periods
        (57_500, 2_400, 60.0, 950_000, True),
    ],
)
def test_a_realtime_thread_that_the_kernel_stopped(
    run_ms: int, wait_ms: int, window_s: float, runtime_us: int, throttled: bool
) -> None:
    limit = RealtimeLimit(runtime_us, 1_000_000)
    thread = RealtimeThread("sink", "node:sink", run_ms * 1_000_000, wait_ms * 1_000_000, limit)
    observed = replace(QUIET, realtime_threads=(thread,))
    assert bool(list(realtime_throttled(observed, int(window_s * SECOND_NS)))) == throttled


def test_a_realtime_thread_is_judged_by_the_limit_of_its_own_host() -> None:
    half, whole = RealtimeLimit(500_000, 1_000_000), RealtimeLimit(-1, 1_000_000)
    threads = tuple(
        RealtimeThread(worker, "node", 1_000_000_000, 1_000_000_000, limit)
        for worker, limit in (("here", whole), ("there", half), ("elsewhere", None))
    )
    (said,) = realtime_throttled(replace(QUIET, realtime_threads=threads), 2 * SECOND_NS)
    assert "of there ran 1.00 s" in said and "get 500 ms of every 1 s" in said


def test_where_messages_were_lost() -> None:
    lossy = replace(QUIET, kernel={"udp_receive_buffer_errors": 12, "ip_reassembly_failed": 3})
    assert where_lost(lossy) == "; 12 receive buffer errors, 3 failed reassemblies in the kernel"
    assert where_lost(replace(lossy, private=False)).endswith("in the kernel of the whole machine")
    assert where_lost(QUIET) == where_lost(None) == ""


def rows_of(trial: SmallTrial, **changes: object) -> list[dict[str, object]]:
    facts = trial.facts({0}, {"sink"}, **changes)
    return summarise(samples(trial.lanes(), facts), facts).to_dicts()


def test_a_loss_says_what_the_kernel_counted_and_every_row_has_the_counters() -> None:
    trial, _, _ = pipeline(lost=(3, 4))
    rows = rows_of(trial, observed=replace(QUIET, kernel={"udp_receive_buffer_errors": 2}))
    assert [row["kernel_udp_receive_buffer_errors"] for row in rows] == [2] * len(rows)
    assert [row["kernel_tcp_retransmitted"] for row in rows] == [None] * len(rows)
    assert any(w.endswith("; 2 receive buffer errors in the kernel") for w in rows[0]["warnings"])  # type: ignore[attr-defined]


def test_noise_is_a_flag_and_not_a_failure() -> None:
    trial, _, _ = pipeline()
    assert {row["noisy"] for row in rows_of(trial)} == {None}
    assert {row["noisy"] for row in rows_of(trial, observed=QUIET)} == {False}
    load = MachineLoad(
        capacity_ns=100 * SECOND_NS,
        busy_ns=50 * SECOND_NS,
        stolen_ns=2 * SECOND_NS,
        quota_throttled=3,
        thermal_throttled=1,
    )
    row = rows_of(trial, observed=replace(QUIET, load=load, involuntary_switches=60))[0]
    assert row["valid"], row["reasons"]
    assert row["noisy"]
    assert {text.partition(":")[0] for text in row["noise"]} == set(NOISES)  # type: ignore[attr-defined]


def test_what_the_workers_used_themselves_is_no_noise() -> None:
    trial, _, _ = pipeline()
    window = trial.facts({0}, {"sink"})
    measure_ns = window.measure_end_ns - window.measure_begin_ns
    observed = replace(
        QUIET, window_ns=2 * measure_ns, load=MachineLoad(capacity_ns=4_000_000, busy_ns=2_000_000)
    )
    assert rows_of(trial, observed=observed, cpu_ns=950_000)[0]["noise"] == []
    assert rows_of(trial, observed=observed, cpu_ns=800_000)[0]["noise"] == ["others: 10% of all CPUs' time"]
    linked = replace(observed, link_cpu_ns=150_000)  # what emulates a link is the trial's own, too
    assert rows_of(trial, observed=linked, cpu_ns=800_000)[0]["noise"] == []


def test_tails_with_the_lost_as_infinite() -> None:
    trial, first, _ = pipeline(50)
    whole = rows_of(trial)[0]
    assert whole["latency_p50_lost_ns"] == whole["latency_p50_ns"]
    assert whole["latency_infinite_from"] is None
    trial, first, _ = pipeline(50, lost=tuple(range(5, 25)))
    row = next(row for row in rows_of(trial) if row["edge"] == first.name)
    assert (row["n"], row["lost"]) == (30, 20)
    assert row["latency_infinite_from"] == 0.6
    assert row["latency_p50_lost_ns"] is not None
    assert row["latency_p90_lost_ns"] is None
