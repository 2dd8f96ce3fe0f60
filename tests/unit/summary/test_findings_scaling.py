# SPDX-License-Identifier: Apache-2.0
"""What grows with the number of subscribers is said with its slope, and only where it does."""

from __future__ import annotations

import numpy as np
import pytest

from lagometer.summary.findings.evidence import CellEvidence, Said, cells_of
from lagometer.summary.findings.scaling import scaling, slope_of

MILLISECOND_NS = 1_000_000
NOISE_NS = (0, 300_000, -200_000, 100_000, -300_000, 200_000)


def cells(discovery_ms: dict[int, float], workload: str = "fanout-{}", trials: int = 6) -> list[CellEvidence]:
    """A cell for each number of subscribers, whose discovery takes so long."""
    listed, rows, journal = [], [], []
    for subscribers, milliseconds in discovery_ms.items():
        cell = workload.format(subscribers)
        listed.append({"id": cell, "factors": {"adapter": "a", "workload": cell, "payload_bytes": 64}})
        for trial in range(trials):
            took_ns = int(milliseconds * MILLISECOND_NS) + NOISE_NS[trial]
            rows.append({"cell": cell, "trial": trial, "edge": "end-to-end", "discovery_ns": took_ns})
            journal.append({"cell": cell, "trial": trial, "valid": True, "reasons": [], "warnings": []})
    return list(cells_of({"cells": listed}, {}, rows, journal))


def found(given: list[CellEvidence]) -> list[tuple[str, Said]]:
    return [(cell.cell, said) for cell, said in scaling(given, lambda _: "")]


def test_discovery_that_grows_has_its_slope_with_an_interval() -> None:
    ((cell, said),) = found(cells({2: 20, 10: 36, 30: 76}))
    assert (cell, said.kind, said.trials) == ("fanout-30", "discovery-grows", 6)
    assert said.number.startswith("2.00 ms more per subscriber (95 %: 1.9")
    assert said.number.endswith("with 30")


@pytest.mark.parametrize(
    "given",
    [
        cells({2: 20, 30: 20}),  # it does not grow
        cells({2: 20, 30: 21}),  # by too little to matter
        cells({30: 76}),  # nothing to hold it against
        cells({2: 20, 30: 76}, workload="pipeline-{}"),  # other numbers than those of subscribers
        cells({2: 20, 30: 76}, trials=2),  # too few to tell
    ],
)
def test_nothing_is_said_where_it_does_not_grow(given: list[CellEvidence]) -> None:
    assert found(given) == []


@pytest.mark.parametrize(
    "end",
    [
        "worker-died: relay-50 was killed by SIGSEGV in phase discover",
        "worker-hung: no 'ready' from worker-0 within 63.0 s (phase create)",
    ],
)
def test_the_first_size_at_which_workers_end_is_named_with_the_last_that_was_valid(end: str) -> None:
    listed, journal = [], []
    deaths = {
        100: [],
        191: [end],
        250: ["worker-died: x"],
    }
    for nodes, reasons in deaths.items():
        cell = f"pipeline-{nodes}"
        listed.append({"id": cell, "factors": {"adapter": "a", "workload": cell}})
        journal.append({"cell": cell, "trial": 0, "valid": not reasons, "reasons": reasons, "warnings": []})
    given = list(cells_of({"cells": listed}, {}, [], journal))
    ((cell, said),) = found(given)
    assert (cell, said.kind, said.trials) == ("pipeline-191", "too-many-nodes", 1)
    assert said.number == f"{end.split(': ', 1)[1]}; with 191 nodes, while 100 were valid"
    assert said.what.endswith("; cause not known: nothing that was recorded shows it")
    assert found(given[1:]) == [], "nothing was valid: it may be anything"


@pytest.mark.parametrize(
    ("payload_bytes", "dropped", "kinds"),
    [
        (500_000, 40, []),
        (500_000, 0, ["too-many-nodes"]),
        (64, 40, ["too-many-nodes"]),
    ],
)
def test_messages_that_no_buffer_holds_are_no_matter_of_nodes(
    payload_bytes: int, dropped: int, kinds: list[str]
) -> None:
    listed, rows, journal = [], [], []
    for nodes, reasons in ((3, []), (13, ["nothing-received: relay-1→relay-2"])):
        cell = f"pipeline-{nodes}"
        factors = {"adapter": "a", "workload": cell, "payload_bytes": payload_bytes}
        listed.append({"id": cell, "factors": factors})
        rows.append({"cell": cell, "trial": 0, "kernel_udp_receive_buffer_errors": dropped * bool(reasons)})
        line = {"cell": cell, "trial": 0, "reasons": reasons, "warnings": []}
        journal.append({**line, "valid": not reasons})
    given = list(cells_of({"cells": listed}, {}, rows, journal))
    assert [said.kind for _, said in found(given)] == kinds


def test_a_size_is_not_too_large_while_larger_ones_are_fine() -> None:
    listed, journal = [], []
    for nodes, bad in ((2, 0), (4, 1), (8, 0), (16, 0)):
        cell = f"pipeline-{nodes}"
        listed.append({"id": cell, "factors": {"adapter": "a", "workload": cell}})
        for trial in range(5):
            reasons = ["worker-died: relay-1"] if trial < bad else []
            line = {"cell": cell, "trial": trial, "reasons": reasons, "warnings": []}
            journal.append({**line, "valid": not reasons})
    assert found(list(cells_of({"cells": listed}, {}, [], journal))) == []


def sent(
    datagrams: dict[int, int], transport: str = "udp", private: bool = True, messages: int = 100
) -> list[CellEvidence]:
    """A cell for each number of subscribers, in which so many datagrams left for the messages."""
    listed, rows, journal = [], [], []
    for subscribers, count in datagrams.items():
        cell = f"fanout-{subscribers}"
        listed.append({"id": cell, "factors": {"adapter": "a", "workload": cell}})
        rows.append({"cell": cell, "trial": 0, "edge": "source→sink-1", "transport": transport})
        line = {"cell": cell, "trial": 0, "valid": True, "reasons": [], "warnings": []}
        seen = {"private": private, "network": {"udp_sent": count}}
        counters = {"source": {"writers": [{"sent": messages}]}, "sink-1": {"writers": []}}
        journal.append({**line, "evidence": seen, "counters": counters})
    return list(cells_of({"cells": listed}, {}, rows, journal))


@pytest.mark.parametrize(
    ("datagrams", "kind"),
    [
        ({1: 118, 2: 230, 4: 438}, "a-copy-for-each-subscriber"),  # Fast DDS, as seen
        ({1: 104, 2: 107, 4: 117}, "one-copy-for-all"),  # Cyclone DDS, as seen
        ({2: 200, 4: 400}, "a-copy-for-each-subscriber"),
        ({1: 1200, 3: 3600}, "a-copy-for-each-subscriber"),  # each message is twelve datagrams
        ({1: 1200, 3: 1210}, "one-copy-for-all"),
    ],
)
def test_copies_are_told_by_what_each_further_subscriber_adds(datagrams: dict[int, int], kind: str) -> None:
    ((cell, said),) = found(sent(datagrams))
    assert (cell, said.kind) == (f"fanout-{max(datagrams)}", kind)


@pytest.mark.parametrize(
    "given",
    [
        sent({1: 100, 4: 220}),  # neither
        sent({2: 100}),
        sent({1: 100, 4: 400}, transport="tcp"),
        sent({1: 100, 4: 400}, private=False),  # others' datagrams among them
        sent({1: 5, 4: 5}),  # what is over UDP are not the messages
        sent({1: 0, 4: 0}, messages=0),
    ],
)
def test_nothing_is_said_of_copies_where_it_cannot_be_told(given: list[CellEvidence]) -> None:
    assert found(given) == []


def test_the_interval_of_the_slope_contains_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    x = np.repeat([2.0, 5.0, 10.0], 4)
    hits = 0
    for _ in range(400):
        slope, half = slope_of(x, 3.0 + 0.5 * x + random.normal(size=len(x)))
        hits += abs(slope - 0.5) <= half
    assert 0.92 <= hits / 400 <= 0.98
