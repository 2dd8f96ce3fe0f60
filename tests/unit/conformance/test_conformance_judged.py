# SPDX-License-Identifier: Apache-2.0
"""What checks judge of what they saw: a full queue, stamps, descriptions, and what nothing showed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.conformance.abilities import ABILITIES
from lagometer.conformance.bench import Subject
from lagometer.conformance.findings import Findings, Otherwise
from lagometer.conformance.history_checks import judge_full_queue
from lagometer.conformance.matrix import conforms
from lagometer.conformance.pubsub import Account, Sent, other_network
from lagometer.conformance.settings_checks import wrong_description
from lagometer.conformance.suite import examine
from lagometer.conformance.worker_checks import wrong_stamps


@pytest.mark.parametrize(
    ("drops", "rejected", "came", "broken", "unjudged"),
    [
        ("oldest", 0, [7, 8, 9], "", ""),
        ("oldest", 0, [0, 1, 2], "declare `drops: newest`", ""),
        ("oldest", 0, [0, 1, 9], "", ""),  # a gap in the middle: both may be true
        ("newest", 0, [0, 1, 2], "", ""),
        ("newest", 0, [7, 8, 9], "leave `drops` out", ""),
        ("oldest", 0, list(range(10)), "", "10 messages were sent while nothing was taken, and none is lost"),
        ("newest", 0, list(range(10)), "", "10 messages were sent while nothing was taken, and none is lost"),
        ("oldest", 1, list(range(10)), "", ""),
        ("newest", 1, list(range(10)), "", "a message was rejected after 10, and none that was accepted is "),
        ("oldest", 1, list(range(11)), "no reader may get a rejected one", ""),
        ("oldest", 0, [], "nothing came once the subscriber took messages again", ""),
        ("oldest", 0, [7, 9, 8], "the messages came in this order: [7, 9, 8]", ""),
    ],
)
def test_a_full_queue_is_judged_by_which_messages_it_lost(
    drops: str, rejected: int, came: list[int], broken: str, unjudged: str
) -> None:
    findings = Findings()
    account = Account(count=len(came), sequences=came)
    told = judge_full_queue(findings, drops, Sent(list(range(10)), rejected, 0), account)
    assert told.startswith(unjudged) and bool(told) == bool(unjudged)
    assert [broken in line.detail for line in findings.broken] == ([True] if broken else [])
    assert [line.detail for line in findings.lines if line.passed is None] == ([told] if told else [])


def subject_in(folder: Path, **changes: Any) -> Subject:
    adapter = write_adapters(folder / "adapters")["shm"]
    return Subject(replace(adapter, sidecar=adapter.sidecar.model_copy(update=changes)))


def test_what_could_not_be_judged_is_no_pass_and_says_why(tmp_path: Path) -> None:
    def check(_: Subject, findings: Findings) -> Otherwise:
        findings.judge("all that came is whole", True)
        return Otherwise("not-run", "not judged: 100 messages were sent, and none is lost")

    report = examine(subject_in(tmp_path), [replace(ABILITIES[0], check=check)])
    (result,) = report.results
    assert (result.verdict, result.reason) == (
        "not-run",
        "not judged: 100 messages were sent, and none is lost",
    )
    assert [line.name for line in result.lines] == ["all that came is whole"]
    assert conforms([report], strict=True)


def test_what_is_broken_is_no_absence(tmp_path: Path) -> None:
    def check(_: Subject, findings: Findings) -> Otherwise:
        findings.judge("all that came is whole", False, "2 damaged")
        return Otherwise("absent", "declared absent: so it is")

    (result,) = examine(subject_in(tmp_path), [replace(ABILITIES[0], check=check)]).results
    assert (result.verdict, result.reason) == ("fail", "all that came is whole: 2 damaged")


@pytest.mark.parametrize(
    ("listed", "brought", "words"),
    [
        (("signalled", "woken"), ("signalled", "woken"), ""),
        ((), (), ""),
        (
            ("signalled",),
            (),
            'no message has signalled, which the sidecar lists: write "poll": [] under abilities.stamps',
        ),
        (
            ("signalled",),
            ("woken",),
            (
                "no message has signalled, which the sidecar lists; messages have woken, which the sidecar "
                'does not list: write "poll": ["woken"] under abilities.stamps'
            ),
        ),
    ],
)
def test_listed_stamps_are_compared_with_those_of_messages(
    listed: tuple[str, ...], brought: tuple[str, ...], words: str
) -> None:
    assert wrong_stamps("poll", listed, brought) == words


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({}, None),
        ({"settings": {"depth": {"value": 1, "default": 2}}, "paste": [], "observed": {}}, None),
        ({"settings": None, "transport": None}, None),
        ("as ever", "it returned 'as ever'; it must be a JSON object with settings, paste, observed, "),
        ({"a": 1}, "it has the unknown key 'a'"),
        ({"settings": []}, "settings is []; it must be an object"),
        ({"paste": {}}, "paste is {}; it must be a list"),
        ({"settings": {"depth": 64}}, "the setting 'depth' is 64; it must be"),
        ({"settings": {"depth": {"value": 64}}}, "the setting 'depth' is {'value': 64}; it must be"),
        ({"transport": {"between_processes": ["shm"]}}, "did you mean 'shared-memory'?"),
    ],
)
def test_a_description_has_the_form_that_lagometer_reads(described: object, words: str | None) -> None:
    found = wrong_description(described)
    assert found is None if words is None else words in (found or "")


def test_endpoints_that_do_not_meet_advise_the_other_network_if_they_need_one(tmp_path: Path) -> None:
    assert other_network(subject_in(tmp_path)) == ""  # shared memory needs none
    private = replace(subject_in(tmp_path, scope="network"), network="private")
    assert "check with --network host" in other_network(private)
    assert "check without --network host" in other_network(replace(private, network="host"))
