# SPDX-License-Identifier: Apache-2.0
"""What drives adapters in Python in the conformance suite: it sees what a broken one does."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lagometer.conformance.in_python import reopening
from lagometer.conformance.in_python.content import KIND_DATA, opened, written
from lagometer.conformance.in_python.peer import Peer

TOY = Path(__file__).parents[2] / "toy_adapter.py"
QOS = {"reliability": "reliable", "history": "keep_last", "depth": 64}
REOPENING = {"depth": 8, "blocking_ns": 1_000_000}


@pytest.mark.parametrize("size", [16, 17, 23, 24, 25, 64, 65_537])
def test_content_is_known_byte_for_byte_and_its_length_is_part_of_it(size: int) -> None:
    payload = written(KIND_DATA, 3, 7, size)
    found = opened(payload)
    assert (found.stream, found.sequence, found.bytes, found.damage) == (3, 7, size, "")
    assert opened(list(payload)).damage == ""
    for place in range(max(0, size - 3), size):
        changed = payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]
        assert opened(changed).damage != "" or place < 16  # another sequence is another message
    if size > 24:
        assert "differs from byte 16" in opened(payload[:-1]).damage
    assert "no whole envelope" in opened(payload[:15]).damage
    assert "does not begin with an envelope" in opened(bytes(size)).damage


class Driven:
    """A peer that is told what to do as `lagometer conformance` tells it."""

    def __init__(self, folder: Path) -> None:
        self.peer = Peer()
        self.do("load", library=str(TOY), runtime_directory=str(folder))

    def do(self, what: str, **order: Any) -> dict[str, Any]:
        answer = self.peer.answer(json.dumps({"do": what, **order}))
        assert answer["ok"], answer
        return answer

    def refused(self, what: str, **order: Any) -> dict[str, Any]:
        answer = self.peer.answer(json.dumps({"do": what, **order}))
        assert not answer["ok"], answer
        return answer

    def exchange(self, dispatch: str, count: int = 10) -> dict[str, Any]:
        """A publisher and a subscriber, a probe, so many messages; what came in the end."""
        self.do("context", id="c")
        common = {"context": "c", "topic": "t", "type": "bytes", "bytes": 64, "qos": QOS}
        self.do("reader", id="r", dispatch=dispatch, **common)
        self.do("writer", id="w", stream=1, **common)
        self.do("probe")
        sent = self.do("send", writer="w", count=count, bytes=64)
        assert sent["accepted"] == list(range(count))
        heard: dict[str, Any] = {"streams": []}
        while not heard["streams"] or heard["streams"][0]["count"] + heard["damaged"] < count - 1:
            heard = self.do("heard", sequences=True)["readers"]["r"]
            assert not heard["failure"]
        return heard


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    found = Driven(tmp_path)
    yield found
    found.peer.close()


@pytest.mark.parametrize("dispatch", ["poll", "waitset", "listener"])
def test_what_is_sent_is_accounted_for(driven: Driven, dispatch: str) -> None:
    heard = driven.exchange(dispatch)
    while heard["streams"][0]["count"] < 10:
        heard = driven.do("heard", sequences=True)["readers"]["r"]
    assert heard["streams"] == [
        {"stream": 1, "probes": 1, "count": 10, "last_bytes": 64, "sequences": list(range(10))}
    ]
    assert (heard["damaged"], heard["failure"]) == (0, "")


@pytest.mark.parametrize(("what", "damaged"), [("damage", 8), ("cut", 8)])
def test_damage_is_seen(driven: Driven, monkeypatch: pytest.MonkeyPatch, what: str, damaged: int) -> None:
    monkeypatch.setenv("TOY_BREAK", what)
    heard = driven.exchange("listener")
    assert heard["damaged"] == damaged
    assert "differs from byte" in heard["damage"]


def test_a_message_that_is_dropped_is_missing(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_BREAK", "drop")
    (stream,) = driven.exchange("listener")["streams"]
    assert stream["sequences"] == [0, 1, *range(3, 10)]


def test_what_the_adapter_refuses_is_told_with_the_call_and_the_reason(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = driven.refused("context", id="c", options={"no_such_option": 1})
    assert (refused["call"], refused["reason"]) == ("open_context", "toy: option no_such_option is not known")
    refused = driven.refused("context", id="c", options={"garbage_collection": 1})
    assert "garbage_collection must be true or false" in refused["reason"]
    driven.exchange("listener", 1)
    monkeypatch.setenv("TOY_BREAK", "raise")
    refused = driven.refused("send", writer="w", count=5, bytes=64)
    assert (refused["call"], refused["reason"]) == ("commit", "toy: the cable is cut")
    assert not driven.peer.answer("[]")["ok"]


def test_a_commit_that_says_nothing_is_refused(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    driven.exchange("listener", 1)
    monkeypatch.setenv("TOY_BREAK", "silent")
    refused = driven.refused("send", writer="w", count=1, bytes=64)
    assert (refused["call"], refused["reason"].partition(";")[0]) == ("commit", "commit returned None")


def test_a_thread_that_dies_is_told_with_the_next_answer(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", driven.peer.thread_died)
    thread = threading.Thread(target=lambda: 1 // 0, name="receiver")
    thread.start()
    thread.join()
    refused = driven.refused("heard")
    assert refused["call"] == "its own thread"
    assert refused["reason"].startswith("the adapter's thread receiver died: ZeroDivisionError: ")


def test_a_subscriber_that_stalls_takes_nothing_until_it_goes_on(driven: Driven) -> None:
    driven.exchange("poll", 2)
    driven.do("stall", reader="r")
    driven.do("send", writer="w", count=100, bytes=64)
    driven.do("resume", reader="r")
    came: list[int] = []
    while 101 not in came:
        came = driven.do("heard", sequences=True)["readers"]["r"]["streams"][0]["sequences"]
    assert came[-64:] == list(range(38, 102))


@pytest.mark.parametrize("dispatch", ["poll", "waitset", "listener"])
def test_openings_without_a_leak_leave_nothing(
    driven: Driven, dispatch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reopening, "SHARED_MEMORY", tmp_path)  # other tests have files in /dev/shm
    answer = driven.do("reopen", dispatch=dispatch, rounds=5, **REOPENING)
    before, after = answer["before"], answer["after"]
    assert after.pop("threads") <= before.pop("threads")  # of this process: those of other tests may end
    assert after == before
    assert answer["late_callbacks"] == 0


def test_a_leak_and_a_late_callback_are_counted(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_BREAK", "leak")
    answer = driven.do("reopen", dispatch="poll", rounds=5, **REOPENING)
    assert answer["after"]["descriptors"] == answer["before"]["descriptors"] + 10
    monkeypatch.setenv("TOY_BREAK", "late")
    assert driven.do("reopen", dispatch="listener", rounds=2, **REOPENING)["late_callbacks"] > 0


def test_the_program_answers_line_by_line_whatever_is_printed(tmp_path: Path) -> None:
    noisy = tmp_path / "noisy.py"
    noisy.write_text(TOY.read_text() + "\nprint('hello', flush=True)\nos.write(1, b'world\\n')\n")
    orders = [
        {"do": "load", "library": str(noisy), "runtime_directory": str(tmp_path)},
        {"do": "held"},
        {"do": "?"},
    ]
    command = [sys.executable, "-I", "-m", "lagometer.conformance.in_python"]
    lines = "".join(json.dumps(order) + "\n" for order in orders)
    result = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["ok"] for answer in answers] == [True, True, False]
    assert answers[1]["printed_bytes"] == 12
    assert result.returncode == 0


def test_a_publisher_says_how_many_readers_it_counts_or_can_not_and_a_subscriber_can_not(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven.exchange("listener", 1)
    assert driven.do("matched", id="w") == {"count": 1, "exact": 0, "ok": True}
    assert driven.do("matched", id="r") == {"count": 0, "exact": 2, "ok": True}
    monkeypatch.setenv("TOY_BREAK", "counting")
    assert driven.do("matched", id="w") == {"count": 0, "exact": 2, "ok": True}


def test_a_wrong_description_is_refused_with_the_adapters_name(
    driven: Driven, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven.do("load", name="toy", library=str(TOY), runtime_directory=str(tmp_path))
    driven.exchange("listener", 1)
    assert json.loads(driven.do("describe", id="r")["text"])["settings"]["depth"]["value"] == 64
    monkeypatch.setenv("TOY_BREAK", "settings")
    refused = driven.refused("describe", id="r")
    said = 'toy: describe of r: settings[\'depth\'] is 64; it must be {"value": …, "default": …}'
    assert (refused["call"], refused["reason"]) == ("describe", said)
