# SPDX-License-Identifier: Apache-2.0
"""When processes are looked at, and what comes of it, with this test's own process as the worker."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from needs import need

from lagometer.agent.link.commands import TAP
from lagometer.agent.observe import resources
from lagometer.agent.observe.hardware import COUNTERS, TASK_CLOCK
from lagometer.agent.observe.resources import NOT_ASKED, WORKER, Process, Resources, ResourceWatch

S = 1_000_000_000
BEGIN_NS, MEASURE_NS, DRAIN_NS = 1 * S, 2 * S, 9 * S


def me() -> list[Process]:
    return [Process(os.getpid(), WORKER, worker=0)]


def looks_of(watch: ResourceWatch, processes: list[Process], private: bool = True) -> list[Any]:
    return watch.attach(processes, private, BEGIN_NS, MEASURE_NS, DRAIN_NS)


def test_no_look_falls_into_the_measure_phase() -> None:
    (before_ns, _), (after_ns, _) = looks_of(ResourceWatch("on"), me())
    assert BEGIN_NS < before_ns < MEASURE_NS and after_ns > DRAIN_NS
    (many_ns, _), _ = looks_of(ResourceWatch("on"), me() * 100)
    assert many_ns < before_ns
    (most_ns, _), _ = looks_of(ResourceWatch("on"), me() * 10_000)
    assert most_ns == (BEGIN_NS + MEASURE_NS) // 2  # not into the beginning of the warm-up


def test_off_looks_at_nothing() -> None:
    watch = ResourceWatch("off")
    assert looks_of(watch, me()) == [] and not watch.wanted


def test_a_trial_that_ends_early_tells_nothing() -> None:
    watch = ResourceWatch("on")
    (_, before), _ = looks_of(watch, me())
    before()
    assert watch.result() is None
    watch.close()


def test_what_is_parsed_in_the_drain_is_the_result() -> None:
    watch = ResourceWatch("on")
    (_, before), (_, after) = looks_of(watch, me())
    before()
    watch.parse()
    assert watch.result() is None, "the measure phase has not ended"
    after()
    watch.look_at_memory()
    watch.parse()
    found = watch.result()
    assert found is not None and found is watch.result() and found.processes[0].memory is not None
    assert Resources.from_frame(json.loads(json.dumps(found.as_frame()))) == found
    watch.close()


def test_a_process_is_looked_at_in_all_respects(monkeypatch: pytest.MonkeyPatch) -> None:
    need("perf")
    monkeypatch.setitem(COUNTERS, "cycles", TASK_CLOCK)  # type: ignore[index]
    watch = ResourceWatch("counters")
    (_, before), (_, after) = looks_of(watch, me())
    before()
    taken = bytearray(8 << 20)
    after()
    watch.look_at_memory()
    found = watch.result()
    watch.close()
    del taken
    assert found is not None and (found.measure_begin_ns, found.measure_end_ns) == (MEASURE_NS, DRAIN_NS)
    (use,) = found.processes
    assert (use.kind, use.worker) == (WORKER, 0)
    assert use.account is not None and os.getpid() in use.account.threads and use.account.minor_faults > 0
    assert use.memory is not None and use.memory.unique_bytes > 8 << 20
    assert use.descriptors is not None and use.descriptors > 0
    assert use.counts["cycles"].value is not None and use.counts["cycles"].value > 0
    assert found.workers_bytes(1) == use.memory.proportional_bytes
    assert found.network_bytes is not None and found.network_bytes["sent_bytes"] >= 0
    assert found.energy_nj is not None or found.energy_why


def test_frames_of_an_emulated_link_count_once() -> None:
    """They pass its own device before the one by which they leave."""

    def text(lo: int, tap: int) -> bytes:
        lines = [f"{name}: 0 0 0 0 0 0 0 0 {sent} 9 0 0 0 0 0 0" for name, sent in (("lo", lo), (TAP, tap))]
        return "\n".join(["Inter-", " face", *lines, ""]).encode()

    found = resources._network_bytes([text(500, 700), text(1500, 1700)])
    assert found is not None and found["sent_bytes"] == 1000


def test_counters_that_were_not_asked_for_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "unavailable", lambda: {"cycles": "EACCES: no"})
    watch = ResourceWatch("on")
    (_, before), (_, after) = looks_of(watch, me(), private=False)
    before()
    after()
    found = watch.result()
    assert found is not None and found.network_bytes is None
    assert found.unavailable["cycles"] == "EACCES: no" and found.unavailable["tlb_misses"] == NOT_ASKED
    assert found.processes[0].memory is None  # the drain did not come so far
