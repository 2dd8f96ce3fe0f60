# SPDX-License-Identifier: Apache-2.0
"""What a failure of the conformance suite says: the line that failed, the likely fix, a panic's text; and
what a pass does not show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.cli.conformance import not_judged
from lagometer.conformance import exchange_checks, history_checks, suite
from lagometer.conformance.abilities import ABILITIES
from lagometer.conformance.bench import Refused, Subject
from lagometer.conformance.contract_checks import middleware_inside
from lagometer.conformance.findings import Findings, Line, Result
from lagometer.conformance.pubsub import Account, Endpoint, Sent
from lagometer.conformance.suite import examine
from lagometer.run.worker.conversation import Conversation
from lagometer.run.worker.panics import panic_in
from lagometer.run.worker.said import died
from lagometer.study.adapters import Probe
from lagometer.study.sidecar import Libraries

PANIC = """info: ready
thread '<unnamed>' panicked at adapter.rs:91:5:
the queue holds 3 messages,
and 2 at most
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

thread '<unnamed>' panicked at library/core/src/panicking.rs:225:5:
panic in a function that cannot unwind
stack backtrace:
   0: 0x7f0c - std::backtrace_rs
thread caused non-unwinding panic. aborting.
"""
PANICKED = "thread '<unnamed>' panicked at adapter.rs:91:5: the queue holds 3 messages, and 2 at most"


class Limited:
    """Publishers and subscribers of an adapter that sends up to 64 B, and keeps whatever it is sent."""

    def __init__(self, subject: Subject, message_bytes: int = 0) -> None:
        self.subject, self._count = subject, 0

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def qos_of(self, asks: Any) -> dict[str, Any]:
        return {"depth": 8, "reliability": "reliable"}

    def writer(self, role: int, topic: str, *, size: int = 64, **more: Any) -> Endpoint:
        return Endpoint("writer", role, topic, 0, size, stream=1)

    def reader(self, role: int, topic: str, *, size: int = 64, **more: Any) -> Endpoint:
        return Endpoint("reader", role, topic, 0, size)

    def meet(self) -> None:
        pass

    def peer(self, role: int) -> Any:
        return SimpleNamespace(do=lambda *_, **__: {})

    def send(self, writer: Endpoint, count: int, *, size: int = 64, **more: Any) -> Sent:
        if size > 64:
            raise Refused("borrow", -2, "64 B at most")
        self._count += count
        self._bytes = size
        return Sent(list(range(count)), 0, 0)

    def account(self, reader: Endpoint, writer: Endpoint) -> Account:
        return Account(count=self._count)

    def settled(self, pairs: Any, wanted: int, quiet_s: float = 0.0) -> list[Account]:
        return [Account(count=self._count, last_bytes=self._bytes, sequences=list(range(self._count)))]


def result_of(ability: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """What comes of an ability of an adapter that is there, and does what `Limited` does."""
    for checks in (exchange_checks, history_checks):
        monkeypatch.setattr(checks, "PubSub", Limited)
    monkeypatch.setattr(history_checks, "UNDER_WAY_S", 0.0)
    monkeypatch.setattr(suite, "probe", lambda _: Probe("1", None))
    subject = Subject(replace(write_adapters(folder)["shm"], missing=None))
    wanted = [each for each in ABILITIES if each.name == ability]
    return examine(subject, wanted).results[0]


def test_sizes_names_the_size_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not the last one that passed."""
    result = result_of("sizes", tmp_path, monkeypatch)
    assert result.reason == "65 B of bytes, byte for byte: borrow failed: 64 B at most"


def test_a_depth_that_has_no_effect_may_be_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = result_of("keep-last", tmp_path, monkeypatch).reason
    assert (
        reason.startswith("8 at most: 64 messages waited with a depth of 8: ") and '"depth": false' in reason
    )


def test_a_line_is_under_way_until_it_is_judged() -> None:
    findings = Findings()
    findings.begin("65 B")
    assert findings.under_way == "65 B"
    findings.judge("65 B", True)
    assert findings.under_way == ""


def test_the_first_panic_is_told_with_its_message() -> None:
    assert panic_in(PANIC) == PANICKED
    assert panic_in("info: nobody panicked at all\n") == panic_in("") == ""
    long = "thread 'main' panicked at a.rs:1:1:\n" + "x\n" * 100
    assert panic_in(long) == "thread 'main' panicked at a.rs:1:1: x x x x"


@pytest.mark.parametrize(("written", "said"), [(PANIC, f": {PANICKED}"), ("error: out of luck\n", "")])
def test_a_worker_that_panicked_is_told_with_its_message(written: str, said: str) -> None:
    talk = Conversation(0, "sink")
    talk.feed_stderr(written.encode())
    assert died(talk, "was killed by SIGABRT", "measure") == (
        f"worker-died: sink was killed by SIGABRT in phase measure{said}"
    )


def test_a_middleware_is_in_the_library_where_the_sidecar_says_so(tmp_path: Path) -> None:
    """Not because of the language: a library in Rust may hold nothing but the adapter."""
    sidecar = write_adapters(tmp_path)["shm"].sidecar
    assert middleware_inside(sidecar) == ""
    other = sidecar.model_copy(update={"libraries": Libraries(middleware=("libddsc.so*",))})
    assert middleware_inside(other) == ""
    linked = sidecar.model_copy(update={"libraries": Libraries(middleware=("liblagometer_sh*.so",))})
    assert middleware_inside(linked) == "the middleware"
    named = linked.model_copy(update={"compiled_in": "its templates"})
    assert middleware_inside(named) == "its templates"


def test_what_nobody_could_judge_is_told_and_what_does_not_apply_is_not() -> None:
    lines = (
        Line("take", True),
        Line("wait", None, "it has no waitset"),
        Line("allocates nothing", None, "not judged: in the adapter's library lies the middleware"),
    )
    assert not_judged(Result("contract", "pass", lines=lines)) == [
        "allocates nothing: not judged: in the adapter's library lies the middleware"
    ]
