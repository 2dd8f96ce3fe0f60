# SPDX-License-Identifier: Apache-2.0
"""What the checks ask for, what a sidecar's limits leave of it, and how a process that hangs is described."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.conformance import asks, scale_checks
from lagometer.conformance.abilities import ABILITIES
from lagometer.conformance.asks import Asks
from lagometer.conformance.bench import PeerFailure, Refused, Subject
from lagometer.conformance.findings import Findings
from lagometer.conformance.progress import SHARED_BYTES, Call, Progress, Told, read_progress
from lagometer.conformance.suite import examine
from lagometer.study.adapter import Adapter
from lagometer.study.sidecar import Limits


def adapter_with(folder: Path, **limits: Any) -> Adapter:
    adapter = write_adapters(folder / "adapters")["shm"]
    return replace(adapter, sidecar=adapter.sidecar.model_copy(update={"limits": Limits(**limits)}))


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.name)
def test_each_ability_says_in_words_what_it_asks_for(ability: Any) -> None:
    told = ability.asks.told()
    assert told["blocking"].split()[1] in ("ms", "s") and int(told["endpoints"]) >= 2
    assert ("keep_all" in told["depth"]) or told["depth"] == f"{ability.asks.depth:,}"


def test_a_depth_stays_within_the_limits() -> None:
    assert Asks(depth=16).depth_within(Limits()) == 16
    assert Asks(depth=16).depth_within(Limits(depth_max=10)) == 10
    assert Asks(depth=16).depth_within(Limits(transient_local_depth_max=4)) == 16
    late = Asks(depth=16, durability="transient_local")
    assert late.depth_within(Limits(depth_max=10, transient_local_depth_max=4)) == 4


@pytest.mark.parametrize(
    ("limits", "absent"),
    [
        ({"topics_max": 100, "topics_max_reason": "queues_max"}, {"500-topics"}),
        ({"topics_max": 500, "endpoints_max": 50}, set()),
        ({"endpoints_max": 10}, {"50-endpoints"}),
        ({"endpoints_max": 3}, {"50-endpoints"}),
        ({"endpoints_max": 2}, {"50-endpoints", "fan-out", "teardown"}),
    ],
)
def test_a_limit_of_topics_or_endpoints_is_declared_and_not_failed(
    tmp_path: Path, limits: dict[str, Any], absent: set[str]
) -> None:
    sidecar = adapter_with(tmp_path, **limits).sidecar
    scaled = [
        each for each in ABILITIES if each.name in ("500-topics", "50-endpoints", "fan-out", "teardown")
    ]
    lacking = {each.name: each.lacks(sidecar) for each in scaled}
    assert {name for name, why in lacking.items() if why is not None} == absent
    if "topics_max_reason" in limits:
        assert lacking["500-topics"] == "at most 100 topics at once: queues_max"


def refusing(*dispatches: str) -> Any:
    """Stands for the exchange over 500 topics; refused by these dispatches."""

    def exchange(_: Subject, findings: Findings, dispatch: str) -> None:
        if dispatch == "waitset" and dispatch in dispatches:
            raise PeerFailure("its process died of SIGABRT")
        if dispatch in dispatches:
            raise Refused("reader_create", -1, f"no room for {dispatch}")
        findings.judge(f"500 topics by {dispatch}: all met", True)

    return exchange


def test_500_topics_are_tried_by_each_dispatch_the_listener_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject(adapter_with(tmp_path))
    monkeypatch.setattr(scale_checks, "_exchange_topics", refusing("poll", "waitset"))
    findings = Findings()
    scale_checks.check_topics(subject, findings)
    assert not findings.broken
    assert [(line.name, line.passed) for line in findings.lines] == [
        ("500 topics by listener: all met", True),
        ("500 topics by poll", None),
        ("500 topics by waitset", None),
    ]
    monkeypatch.setattr(scale_checks, "_exchange_topics", refusing("poll", "waitset", "listener"))
    findings = Findings()
    scale_checks.check_topics(subject, findings)
    tried = [f"500 topics by {name}" for name in ("poll", "waitset", "listener")]
    assert [line.name for line in findings.broken] == tried


def test_what_the_private_machine_lacks_stands_with_what_failed(tmp_path: Path) -> None:
    subject = Subject(adapter_with(tmp_path))
    subject.noticed["kernel/sem is 1 in the private machine and 2 outside"] = None

    def check(_: Subject, findings: Findings) -> None:
        findings.judge("it opens", False, "no space left")

    broken = replace(ABILITIES[0], check=check)
    (result,) = examine(subject, [broken]).results
    assert result.reason == "it opens: no space left; kernel/sem is 1 in the private machine and 2 outside"
    assert result.lines[-1].passed


def test_the_call_that_lasts_longest_is_the_one_to_name() -> None:
    returned = Call("writer_create", 100, False)
    waiting, taking = Call("waitset_wait", 50, True), Call("take", 900, True)
    blocked = Call("commit", 400, True)
    assert Progress().last_call() is None
    assert Progress(calls=(returned,)).told(0) == "last call: writer_create, which returned"
    assert Progress(calls=(returned, waiting)).last_call() == waiting
    hung = Progress(9, 3, 110, (returned, waiting, taking, blocked))
    assert hung.told(1_200_000_400) == "at 3 of 110; last call: commit, under way for 1.20 s"


def test_what_a_process_tells_is_read_from_its_memory() -> None:
    descriptor = os.memfd_create("progress")
    assert read_progress(descriptor) == Progress()
    told = Told()
    told.step(1, 2)  # shares nothing yet
    told.share(descriptor)
    told.step(3, 110)
    with told.calling("commit"):
        inside, leave = threading.Event(), threading.Event()

        def take() -> None:
            with told.calling("take"):
                inside.set()
                leave.wait()

        thread = threading.Thread(target=take)
        thread.start()
        inside.wait()
        found = read_progress(descriptor)
        leave.set()
        thread.join()
    assert (found.steps, found.done, found.total) == (2, 3, 110)
    assert [(call.name, call.under_way) for call in found.calls] == [("commit", True), ("take", True)]
    assert not read_progress(descriptor).calls[0].under_way
    assert os.fstat(descriptor).st_size == SHARED_BYTES
    os.close(descriptor)


def test_no_check_asks_for_more_than_its_ability_says() -> None:
    """The numbers of the documentation are those of the checks: no check has one of its own."""
    folder = Path(asks.__file__).parent
    for path in folder.glob("*_checks.py"):
        text = path.read_text()
        for own in ("depth=", "blocking_ns=1", "blocking_ns=5"):
            lines = [line for line in text.splitlines() if own in line and "asks." not in line]
            # Of transient_local, both: within asks.TRANSIENT_LOCAL.
            allowed = ("depth=4 * early_count", "pubsub.qos(depth=1, durability=")
            assert [line for line in lines if not any(each in line for each in allowed)] == [], path.name
