# SPDX-License-Identifier: Apache-2.0
"""Each delay shows in its own interval alone, and what can't be observed is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plan_parts import MILLISECOND_NS, any_message, node, plan, reader, timer, writer
from worker_support import run_worker

from lagometer.store.records import CPU_UNKNOWN, KIND_RECEIVED, KIND_SENT

EXCESS_NS = 900_000  # less than the smallest delay: none can hide in another's interval
ATTEMPTS = 4  # a machine that does other things may spoil some


def intervals(build: Path, directory: Path, dispatch: str) -> dict[str, float]:
    """Medians, in ns, of the intervals between neighbouring stamps of one edge over the delayed adapter."""
    nodes = [
        node("source", 0, [], [writer("t0", 0)], [timer(10 * MILLISECOND_NS)], dispatch),
        node("sink", 1, [reader("t0", [0])], [], [any_message()], dispatch),
    ]
    library = build / "tests" / "adapters" / "liblagometer_delayed.so"
    said = run_worker(build, plan(library, directory, nodes, measure_ns=600 * MILLISECOND_NS))
    assert said.code == 0, said.errors
    sent, received = said.lane(KIND_SENT, 0, 0), said.lane(KIND_RECEIVED, 1, 0)
    count = min(len(sent), len(received))
    assert count >= 50
    sent, received = sent[:count], received[:count]
    assert (sent["sequence"] == received["sequence"]).all()
    previous = sent["published_ns"]
    found = {"publish": float(np.median(sent["published_ns"] - sent["publish_ns"]))}
    for name in ("signalled_ns", "woken_ns", "taken_ns"):
        if (received[name] == 0).all():
            continue
        assert (received[name] > 0).all(), name
        found[name.removesuffix("_ns")] = float(np.median(received[name] - previous))
        previous = received[name]
    assert (received["cpu_signalled"] != CPU_UNKNOWN).all() == ("signalled" in found)
    return found


@pytest.mark.parametrize(
    ("dispatch", "nominal_ms"),
    [
        ("listener", {"publish": 1, "signalled": 2, "taken": 3}),
        ("waitset", {"publish": 1, "signalled": 2, "woken": 0, "taken": 3}),
    ],
)
def test_a_delay_shows_in_its_own_interval_alone(
    build: Path, tmp_path: Path, dispatch: str, nominal_ms: dict[str, int]
) -> None:
    wrong = ""
    for _ in range(ATTEMPTS):
        found = intervals(build, tmp_path, dispatch)
        assert found.keys() == nominal_ms.keys()
        for name, nominal in nominal_ms.items():
            assert found[name] >= nominal * MILLISECOND_NS, f"{name} took {found[name]} ns"
        late = {name for name, ms in nominal_ms.items() if found[name] >= ms * MILLISECOND_NS + EXCESS_NS}
        if not late:
            return
        wrong = f"{sorted(late)} last longer than their own delays: {found}"
    pytest.fail(wrong)


def test_a_polling_reader_learns_nothing_before_the_take(build: Path, tmp_path: Path) -> None:
    found = intervals(build, tmp_path, "poll")
    assert found.keys() == {"publish", "taken"}
    assert found["publish"] >= MILLISECOND_NS
    assert found["taken"] >= 5 * MILLISECOND_NS


def test_the_null_adapter_observes_no_thread_of_a_middleware(build: Path, tmp_path: Path) -> None:
    library = build / "adapters" / "null" / "liblagometer_null.so"
    for dispatch in ("waitset", "poll"):
        nodes = [
            node("source", 0, [], [writer("t0", 0)], [timer(MILLISECOND_NS)], dispatch),
            node("sink", 1, [reader("t0", [0])], [], [any_message()], dispatch),
        ]
        received = run_worker(build, plan(library, tmp_path, nodes)).lane(KIND_RECEIVED, 1, 0)
        assert len(received) > 0
        assert (received["signalled_ns"] == 0).all()
        assert (received["cpu_signalled"] == CPU_UNKNOWN).all()
        assert ((received["woken_ns"] > 0) == (dispatch == "waitset")).all()
