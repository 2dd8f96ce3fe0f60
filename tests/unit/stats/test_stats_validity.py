# SPDX-License-Identifier: Apache-2.0
"""Verdicts: each reason from its cause, and none from what is merely a class of message."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.verdict.health import CHECKS
from lagometer.stats.verdict.validity import REASONS, WARNINGS
from lagometer.store.facts import TrialFacts
from tests.fixtures.small_trial import MEASURE_BEGIN_NS, SmallTrial, pipeline

ROOT = Path(__file__).parents[3]
METHODOLOGY = ROOT / "docs" / "methodology"


def verdict(trial: SmallTrial, facts: TrialFacts) -> tuple[bool, set[str], set[str]]:
    """Whether it is valid, and the code words of reasons and warnings; every row says the same."""
    summary = summarise(samples(trial.lanes(), facts), facts)
    row = summary.row(0, named=True)
    assert summary["valid"].n_unique() == summary["reasons"].n_unique() == 1
    return (
        row["valid"],
        {reason.partition(":")[0] for reason in row["reasons"]},
        {warning.partition(":")[0] for warning in row["warnings"]},
    )


def judged(trial: SmallTrial, **changes: object) -> tuple[bool, set[str], set[str]]:
    return verdict(trial, trial.facts({0}, {"sink"}, **changes))


def test_a_good_trial_is_valid() -> None:
    trial, _, _ = pipeline()
    assert judged(trial, period_ns=20_000) == (True, set(), set())


@pytest.mark.parametrize(("reliability", "word"), [("best_effort", "lost"), ("reliable", "overwritten")])
def test_losses_that_were_allowed_are_warnings(reliability: str, word: str) -> None:
    trial, _, _ = pipeline(lost=(3, 49), reliability=reliability)
    assert judged(trial) == (True, set(), {word, "censored"})


def test_a_loss_against_keep_all_fails() -> None:
    trial, _, _ = pipeline(lost=(3,), reliability="reliable", history="keep_all")
    assert judged(trial) == (False, {"lost-keep-all"}, set())


@pytest.mark.parametrize("in_order", [True, False])
def test_replies_may_overtake_each_other(in_order: bool) -> None:
    trial, _, edge = pipeline(reliability="reliable")
    trial.edges[:] = [replace(each, in_order=in_order) if each is edge else each for each in trial.edges]
    rows = trial.received_rows[edge.receiver_node, edge.reader]
    late_ns = rows[21]["taken_ns"] + 100
    rows[20:22] = [rows[21], rows[20] | {"taken_ns": late_ns, "handled_ns": late_ns + 50}]
    valid, reasons, warnings = judged(trial)
    assert (valid, reasons) == (not in_order, {"reordered-reliable"} if in_order else set())
    assert ("reordered" in warnings) == (not in_order)


@pytest.mark.parametrize(("sent", "fails"), [(50, False), (49, False), (48, True), (10, True)])
def test_the_rate_is_judged_by_what_was_sent(sent: int, fails: bool) -> None:
    trial, _, _ = pipeline(sent)
    assert judged(trial, period_ns=20_000)[1] == ({"rate-missed"} if fails else set())


def test_a_study_may_keep_what_falls_behind_as_saturated() -> None:
    """Neither valid nor failed; whatever else is wrong with such a trial makes it a failed one."""
    behind, _, _ = pipeline(10)
    assert judged(behind, period_ns=20_000, keeps_saturated=True) == (False, {"saturated"}, set())
    good, _, _ = pipeline()
    assert judged(good, period_ns=20_000, keeps_saturated=True) == (True, set(), set())
    wrong, _, _ = pipeline(10)
    for row in wrong.received_rows[(1, 0)]:
        row["flags"] = 1
    _, reasons, _ = judged(wrong, period_ns=20_000, keeps_saturated=True)
    assert reasons == {"rate-missed", "corrupted"}


def test_a_source_that_catches_up_after_the_window_missed_its_rate() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in range(50):
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        at_ns = due_ns if number < 40 else MEASURE_BEGIN_NS + 1_000_000 + number
        trial.send(0, number, at_ns, intended_ns=due_ns)
        trial.take(edge, number, at_ns + 10)
    assert judged(trial, period_ns=20_000)[1] == {"rate-missed"}


def test_what_was_rejected_was_offered() -> None:
    trial, _, _ = pipeline(50)
    for row in trial.sent_rows[0][::2]:
        row["status"] = 1
    taken = [row for row in trial.received_rows[(1, 0)] if row["sequence"] % 2]
    trial.received_rows[(1, 0)] = taken
    _, reasons, warnings = judged(trial, period_ns=20_000)
    assert "rate-missed" not in reasons and "rejected" in warnings


def test_nothing_received() -> None:
    trial = SmallTrial()
    trial.edge(0, "source", "sink")
    trial.send(0, 0, MEASURE_BEGIN_NS)
    assert judged(trial)[1] == {"nothing-received"}


def test_duplicates_and_corruption_fail() -> None:
    trial, first, second = pipeline()
    trial.take(first, 3, MEASURE_BEGIN_NS + 1_100_000)
    trial.received_rows[(second.receiver_node, 0)][4]["flags"] = 1
    assert judged(trial)[1] == {"duplicated", "corrupted"}


def test_corruption_outside_of_the_measure_phase_fails_too() -> None:
    trial, _, _ = pipeline()
    facts = trial.facts({0}, {"sink"})
    readers = tuple(replace(reader, corrupted=1) for reader in facts.readers)
    assert verdict(trial, replace(facts, readers=readers))[1] == {"corrupted"}


def test_a_full_recorder_fails() -> None:
    trial, _, _ = pipeline()
    facts = trial.facts({0}, {"sink"})
    full = replace(facts, writers=tuple(replace(writer, recorder_full=True) for writer in facts.writers))
    assert verdict(trial, full)[1] == {"recorder-full"}


def test_records_that_contradict_each_other_fail() -> None:
    trial, first, _ = pipeline()
    trial.take(first, 999, MEASURE_BEGIN_NS + 500)
    assert judged(trial)[1] == {"records-inconsistent"}
    trial, _, _ = pipeline()
    trial.received_rows[(1, 0)][5]["taken_ns"] -= 5_000
    assert judged(trial)[1] == {"clock-inconsistent"}


def test_what_the_conductor_found_comes_first_and_nothing_is_blamed_on_a_trial_that_never_began() -> None:
    trial, _, _ = pipeline()
    facts = trial.facts({0}, {"sink"}, reasons=("worker-died: sink, signal 9",))
    assert verdict(trial, facts)[1] == {"worker-died"}
    never = replace(facts, measure_begin_ns=0, measure_end_ns=0, drain_end_ns=0)
    assert summarise(samples([], never), never)["reasons"][0].to_list() == ["worker-died: sink, signal 9"]
    silent = SmallTrial()
    silent.edge(0, "source", "sink")
    assert judged(silent, reasons=("agent-lost: host here",))[1] == {"agent-lost"}


@pytest.mark.parametrize("word", [*REASONS, *WARNINGS, *CHECKS])
def test_every_code_word_is_documented(word: str) -> None:
    page = "machine.md" if word in CHECKS else "validity.md"
    assert f"`{word}`" in (METHODOLOGY / page).read_text(encoding="utf-8")


def test_the_reasons_of_the_conductor_and_of_workers_are_known() -> None:
    said = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "lagometer" / "run").rglob("*.py"))
    protocol = (ROOT / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
    listed = re.search(r"^Reasons: (.*)\.$", protocol, re.MULTILINE)
    assert listed is not None
    words = {*re.findall(r'"([a-z]+(?:-[a-z]+)+): ', said), *re.findall(r"[a-z]+(?:-[a-z]+)*", listed[1])}
    assert {"worker-died", "launch-failed", "no-memory"} <= words & set(REASONS)
    endings = ("-failed", "-died", "-hung", "-missing", "-error", "-full", "-refused")
    assert {word for word in words if word.endswith(endings)} <= set(REASONS)


def test_verdicts_are_the_same_for_every_row() -> None:
    trial, _, _ = pipeline()
    facts = trial.facts({0}, {"sink"}, warnings=("sink: memory could not be locked",))
    summary = summarise(samples(trial.lanes(), facts), facts)
    assert summary.select(pl.col("warnings").list.len()).to_series().to_list() == [1, 1, 1]
