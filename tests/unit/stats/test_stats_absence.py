# SPDX-License-Identifier: Apache-2.0
"""A service whose server or client is away for a while: which calls count, and which nobody could answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from small_trial import SmallTrial

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.store.facts import ChainSpec, EdgeSpec

T = 1_100_000
PERIOD = 10_000
FOREVER = 2**63 - 1
CALLS = 20


class Asked:
    """A driver calls every 10 µs, 20 times. A call is taken after 500 ns and its reply after 1,000."""

    def __init__(self, **quality: str) -> None:
        self.trial = SmallTrial()
        self.quality = quality
        self.legs: dict[str, tuple[EdgeSpec, EdgeSpec]] = {}
        self.replies: dict[str, int] = {}
        for call in range(CALLS):
            self.trial.send(0, call, T + PERIOD * call)

    def server(self, name: str, request: dict[str, Any], reply: dict[str, Any]) -> None:
        """A server with its two edges, with what is known of them."""
        asks = self.trial.edge(0, "driver", name, **self.quality)
        says = self.trial.edge(len(self.legs) + 1, name, "driver", **self.quality)
        for place, spec, known in ((-2, asks, request), (-1, says, reply)):
            self.trial.edges[place] = replace(spec, called=True, in_order=False, **known)
        self.legs[name] = asks, says
        self.replies[name] = 0

    def call(self, name: str, call: int, *, at_ns: int = 0, replied: bool = True, heard: bool = True) -> None:
        """The server takes a call, replies, and the reply is taken. at_ns: when it is taken, if not soon."""
        asks, says = self.legs[name]
        taken_ns = at_ns or T + PERIOD * call + 500
        self.trial.take(asks, call, taken_ns)
        if not replied:
            return
        number = self.replies[name]
        self.replies[name] += 1
        self.trial.send(says.stream, number, taken_ns + 200, causes=((0, call),), callback_ns=200)
        if heard:
            self.trial.take(says, number, taken_ns + 500)

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The samples and the figures."""
        chains = tuple(
            ChainSpec(f"plan:{name}", (asks.name, says.name), returns=True)
            for name, (asks, says) in self.legs.items()
        )
        facts = self.trial.facts({0}, {"driver"}, chains=chains)
        found = samples(self.trial.lanes(), facts)
        return found, summarise(found, facts)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The figures by edge and chain."""
        return {str(row["edge"]): row for row in self.frames()[1].iter_rows(named=True)}


LEFT_NS, JOINED_NS = T + 45_000, T + 95_000


def restarted(lost: Collection[int] = (), unheard: Collection[int] = (), **quality: str) -> Asked:
    """The server leaves after five calls; the last of these it took, and did not reply to. The next one joins
    before the eleventh, and is found by the twelfth."""
    asked = Asked(**quality)
    asked.server(
        "planner", {"receiver_left_ns": LEFT_NS, "calls_ns": (0, LEFT_NS)}, {"sender_left_ns": LEFT_NS}
    )
    asked.server(
        "again",
        {"receiver_joined_ns": JOINED_NS, "calls_ns": (LEFT_NS, FOREVER)},
        {"sender_joined_ns": JOINED_NS},
    )
    for call in range(5):
        asked.call("planner", call, replied=call < 4)
    for call in range(11, CALLS):
        if call not in lost:
            asked.call("again", call, heard=call not in unheard)
    return asked


def counts(row: dict[str, Any]) -> tuple[int, int, int, int]:
    """What was delivered, unanswered, lost (or overwritten), and censored."""
    return row["n"], row["unanswered"], row["lost"] + row["overwritten"], row["censored"]


def test_what_nobody_could_answer_is_counted_where_it_belongs() -> None:
    rows = restarted(lost=(15,), unheard=(17,)).rows()
    assert counts(rows["driver→planner"]) == (5, 0, 0, 0)
    assert counts(rows["planner→driver"]) == (4, 0, 0, 0)
    assert counts(rows["plan:planner"]) == (4, 1, 0, 0), "the one that it took, and left before it replied"
    assert counts(rows["driver→again"]) == (8, 6, 1, 0), "5 to 10, while nobody was there or had been found"
    assert counts(rows["again→driver"]) == (7, 0, 1, 0)
    assert counts(rows["plan:again"]) == (7, 6, 2, 0), "what is lost later is lost"
    every_call = [row for name in ("plan:planner", "plan:again") for row in counts(rows[name])]
    assert sum(every_call) == CALLS, "no call is counted twice, and none not at all"


@pytest.mark.parametrize(("replied", "expected"), [(True, (5, 1)), (False, (4, 2))])
def test_a_call_that_a_server_takes_as_it_leaves_counts_once(
    replied: bool, expected: tuple[int, int]
) -> None:
    """It was due just after the server's time."""
    asked = restarted()
    asked.call("planner", 5, replied=replied)
    rows = asked.rows()
    assert counts(rows["driver→planner"]) == (6, 0, 0, 0)
    assert counts(rows["plan:planner"]) == (*expected, 0, 0)
    assert counts(rows["driver→again"]) == counts(rows["plan:again"]) == (9, 5, 0, 0)
    assert rows["end-to-end"]["n"] == expected[0] + 9


def test_unanswered_calls_have_no_latency_and_are_not_among_those_sent() -> None:
    found, figures = restarted().frames()
    away = found.filter(pl.col("outcome") == "unanswered")
    assert away["taken_ns"].null_count() == away.height > 0
    rows = {str(row["edge"]): row for row in figures.iter_rows(named=True)}
    assert rows["driver→again"]["sent"] == 9
    assert rows["driver→again"]["latency_max_ns"] == 500
    assert rows["end-to-end"]["latency_max_ns"] == 1_000


def test_the_time_until_the_first_answer_is_a_figure_of_the_chain() -> None:
    rows = restarted().rows()
    assert rows["plan:again"]["join_first_message_ns"] == T + 11 * PERIOD + 1_000 - JOINED_NS
    assert rows["driver→again"]["join_first_message_ns"] == T + 11 * PERIOD + 500 - JOINED_NS
    assert rows["plan:planner"]["join_first_message_ns"] is None


@pytest.mark.parametrize(("lost", "reasons"), [((), []), ((15,), ["lost-keep-all: driver→again, 1 of 9"])])
def test_the_intended_absence_does_not_condemn_a_trial(lost: tuple[int, ...], reasons: list[str]) -> None:
    _, figures = restarted(lost, reliability="reliable", history="keep_all").frames()
    assert figures["reasons"][0].to_list() == reasons
    assert bool(figures["valid"].all()) == (not reasons)
    assert figures["warnings"][0].to_list() == ["unanswered: driver→again, 6 messages"]


def test_calls_that_the_middleware_keeps_are_unanswered_all_the_same() -> None:
    asked = restarted()
    for place, call in enumerate((7, 8)):
        asked.call("again", call, at_ns=JOINED_NS + 2_000 + place)
    found, figures = asked.frames()
    rows = {str(row["edge"]): row for row in figures.iter_rows(named=True)}
    assert counts(rows["driver→again"]) == (9, 6, 0, 0)
    assert counts(rows["plan:again"]) == (9, 6, 0, 0)
    assert rows["driver→again"]["latency_max_ns"] == 500
    assert rows["end-to-end"]["latency_max_ns"] == 1_000
    assert rows["plan:again"]["whole_p99_ns"] is None or rows["plan:again"]["whole_p99_ns"] < PERIOD
    # The replies are messages like any other, and the first of them is the first answer.
    assert rows["again→driver"]["n"] == 11
    assert rows["plan:again"]["join_first_message_ns"] == 2_500
    assert not found.filter(pl.col("outcome") == "unmatched").height


def test_a_call_that_its_client_could_send_only_later_counts_when_it_was_due() -> None:
    """The client waited in its middleware until the server was there."""
    asked = restarted()
    row = asked.trial.sent_rows[0][9]
    row["intended_ns"], row["publish_ns"] = row["publish_ns"], JOINED_NS + 3_000
    asked.call("again", 9, at_ns=JOINED_NS + 3_500)
    rows = asked.rows()
    assert counts(rows["driver→again"]) == (9, 6, 0, 0)
    assert rows["driver→again"]["response_max_ns"] is None or rows["driver→again"]["response_max_ns"] < PERIOD


def test_a_server_that_leaves_for_good_leaves_calls_unanswered() -> None:
    asked = Asked(reliability="reliable", history="keep_all")
    asked.server(
        "planner", {"receiver_left_ns": LEFT_NS, "calls_ns": (0, FOREVER)}, {"sender_left_ns": LEFT_NS}
    )
    for call in range(5):
        asked.call("planner", call)
    _, figures = asked.frames()
    rows = {str(row["edge"]): row for row in figures.iter_rows(named=True)}
    assert counts(rows["driver→planner"]) == counts(rows["plan:planner"]) == (5, 15, 0, 0)
    assert counts(rows["end-to-end"]) == (5, 15, 0, 0)
    assert bool(figures["valid"].all()), figures["reasons"][0].to_list()


def test_a_client_that_starts_late_is_not_blamed_for_what_came_before_it_was_known() -> None:
    """The server takes its second call before it knows the way back."""
    asked = Asked(reliability="reliable", history="keep_all")
    joined = {"sender_joined_ns": T - 5_000}
    asked.server("planner", {**joined, "calls_ns": (0, FOREVER)}, {"receiver_joined_ns": T - 5_000})
    for call in range(1, CALLS):
        asked.call("planner", call, heard=call > 1)
    _, figures = asked.frames()
    rows = {str(row["edge"]): row for row in figures.iter_rows(named=True)}
    assert counts(rows["driver→planner"]) == (19, 1, 0, 0)
    assert counts(rows["planner→driver"]) == (18, 0, 0, 0)
    assert counts(rows["plan:planner"]) == (18, 2, 0, 0)
    assert bool(figures["valid"].all()), figures["reasons"][0].to_list()


def test_a_server_that_never_answers_again_fails_the_trial() -> None:
    asked = Asked()
    asked.server(
        "again", {"receiver_joined_ns": JOINED_NS, "calls_ns": (0, FOREVER)}, {"sender_joined_ns": JOINED_NS}
    )
    _, figures = asked.frames()
    rows = {str(row["edge"]): row for row in figures.iter_rows(named=True)}
    assert counts(rows["plan:again"]) == (0, CALLS, 0, 0)
    reasons = figures["reasons"][0].to_list()
    assert "nothing-received: driver→again" in reasons
    assert "nothing-received: again→driver" in reasons


def test_a_service_that_is_always_there_is_judged_as_ever() -> None:
    asked = Asked()
    asked.server("planner", {}, {})
    for call in range(3, CALLS - 2):
        asked.call("planner", call)
    rows = asked.rows()
    assert counts(rows["driver→planner"]) == (15, 0, 3, 2)
    assert counts(rows["plan:planner"]) == (15, 0, 3, 2)
