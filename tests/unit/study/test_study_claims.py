# SPDX-License-Identifier: Apache-2.0
"""The words for transports: a wrong one is refused with all that are known, and the nearest."""

from __future__ import annotations

import re

import pytest
from needs import ROOT

from lagometer.study.claims import TRANSPORTS, known_transports, misplaced_claim, wrong_claim

KNOWN = "known are: process, shared-memory, unix-socket, tcp, udp"


@pytest.mark.parametrize("claim", [None, {}, {"within_process": list(TRANSPORTS), "between_processes": []}])
def test_a_claim_of_known_words_is_right(claim: object) -> None:
    assert wrong_claim(claim) is None


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("shm", "shared-memory"),
        ("shared_memory", "shared-memory"),
        ("UDP", "udp"),
        ("tpc", "tcp"),
        ("uds", "unix-socket"),
        ("unix-sockets", "unix-socket"),
        ("inproc", "process"),
        ("quantum", None),
    ],
)
def test_an_unknown_word_is_told_with_the_nearest(word: str, near: str | None) -> None:
    meant = f"; did you mean '{near}'?" if near is not None else ""
    wrong = wrong_claim({"between_processes": ["udp", word]})
    assert wrong == f"transport.between_processes has {word!r}, which is not a transport; {KNOWN}{meant}"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("udp", "transport is 'udp'; it must be an object with within_process or between_processes"),
        ({"between_process": []}, "has the key 'between_process'; .* did you mean 'between_processes'"),
        ({"within_process": "udp"}, f"within_process is 'udp'; it must be a list of words; {KNOWN}$"),
        ({"within_process": [["udp"]]}, f"has .'udp'., which is not a transport; {KNOWN}"),
    ],
)
def test_another_form_is_told(claim: object, said: str) -> None:
    wrong = wrong_claim(claim)
    assert wrong is not None and re.search(said, wrong), wrong


def test_a_claim_in_a_sidecar_is_sent_to_the_code() -> None:
    for value in ("shm", ["shm"], {"within_process": ["process"], "between_processes": ["shm"]}):
        assert misplaced_claim(value).endswith(f"claims the transport; {known_transports('shm')}")
    assert misplaced_claim(["udp"]).endswith(KNOWN)


def test_the_suite_and_the_pages_have_the_same_words() -> None:
    source = (ROOT / "engine" / "conformance" / "contract_loading.cpp").read_text(encoding="utf-8")
    words = ", ".join(f'"{word}"' for word in TRANSPORTS)
    assert f"known = {{{words}}};" in source
    page = (ROOT / "docs" / "ADAPTERS.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"The words are (.*?);", page, re.DOTALL)
    assert re.findall(r"`([a-z-]+)`", listed) == list(TRANSPORTS)
