# SPDX-License-Identifier: Apache-2.0
"""Endpoints of a check that don't hear each other: each side says what it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from study_adapters import write_adapters

from lagometer.conformance.bench import Bench, PeerFailure, Refused, Subject
from lagometer.conformance.pubsub import NotMet, PubSub

SILENT = {"streams": [], "damaged": 0, "damage": "", "failure": ""}


class DeafPeer:
    """Makes endpoints, of which no reader hears anything; counts: what an endpoint answers, by its id."""

    def __init__(self, counts: dict[str, dict[str, int] | Exception]) -> None:
        self._counts = counts
        self._readers: list[str] = []

    def do(self, order: str, **more: Any) -> dict[str, Any]:
        """Answers an order."""
        if order == "reader":
            self._readers.append(more["id"])
        if order == "heard":
            return {"broken": "", "readers": dict.fromkeys(self._readers, SILENT)}
        if order != "matched":
            return {}
        answer = self._counts[more["id"]]
        if isinstance(answer, Exception):
            raise answer
        return answer


class DeafBench:
    """Two such processes."""

    def __init__(self, **counts: dict[str, int] | Exception) -> None:
        by_id = {name.replace("_", "-"): count for name, count in counts.items()}
        self.peers = [DeafPeer(by_id), DeafPeer(by_id)]

    def network(self) -> dict[str, object]:
        """None is known."""
        return {}


def said(folder: Path, **counts: dict[str, int] | Exception) -> str:
    """What a publisher and two subscribers say that do not meet, beside an endpoint of another topic."""
    pubsub = PubSub(Subject(write_adapters(folder)["shm"]))
    pubsub._bench = cast(Bench, DeafBench(**counts))
    pubsub.writer(0, "busy")
    pubsub.reader(1, "busy")
    pubsub.reader(0, "busy")
    pubsub.writer(1, "other")
    with pytest.raises(NotMet) as not_met:
        pubsub.meet(seconds=-1)
    return str(not_met.value).partition(" s: ")[2]


def test_each_side_says_how_many_it_counts_of_how_many_there_are(tmp_path: Path) -> None:
    text = said(
        tmp_path,
        writer_1={"count": 0, "exact": 0},
        reader_2={"count": 1, "exact": 1},
        reader_3={"count": 0, "exact": 2},
    )
    assert text == (
        "reader-2 and writer-1 on busy, reader-3 and writer-1 on busy; writer-1 counts 0 of 2 subscribers, "
        "reader-2 counts 1 of 1 publishers, reader-3 can't tell how many of 1 publishers it found"
    )


def test_who_does_not_answer_hides_nobody_else(tmp_path: Path) -> None:
    text = said(
        tmp_path,
        writer_1=Refused("writer_matched", -5, "the cable is cut"),
        reader_2=PeerFailure("its process died of SIGSEGV at 'matched'"),
        reader_3={"count": 1, "exact": 0},
    )
    assert text.partition("; ")[2] == (
        "what writer-1 counts is not known: writer_matched failed: the cable is cut, what reader-2 counts is "
        "not known: its process died of SIGSEGV at 'matched', reader-3 counts 1 of 1 publishers"
    )
