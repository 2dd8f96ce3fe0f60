# SPDX-License-Identifier: Apache-2.0
"""What `explain` finds beside the latencies of two cells: each fact by its value, and no other with it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lagometer.cli import explain
from lagometer.stats.compare.explain_facts import COLUMNS, Fact, facts
from lagometer.store import format as form
from lagometer.store.reader import Campaign, open_campaign

GOLDEN = Path(__file__).parents[2] / "golden" / "campaign-v1"
CELL, EDGE = "udp/pipeline-2", "source→sink"
WHOLE_ROW: dict[str, Any] = {
    "n": 100,
    "send_lag_p50_ns": 1_000,
    "blocked_p50_ns": 2_000,
    "handle_p50_ns": 3_000,
    "rate_achieved_hz": 200.0,
    "cpu_per_message_ns": 40_000.0,
    "noisy": False,
    "kernel_loopback_bytes": 24_000,
    "kernel_loopback_packets": 480,
}
EDGE_ROW: dict[str, Any] = {"n": 100, "transport": "udp"}
WORKERS: dict[str, Any] = {
    "source": {
        "writers": [{"origin": "loaned"}],
        "readers": [],
        "context_switches": {"voluntary": 50, "involuntary": 4},
        "resident_bytes_max": 4_000_000,
    },
    "sink": {
        "writers": [],
        "readers": [{"received": 120}],  # warm-up and drain included, as in what the loopback counted
        "context_switches": {"voluntary": 150, "involuntary": 16},
        "resident_bytes_max": 5_000_000,
    },
}
THREADS: dict[str, list[dict[str, Any]]] = {"source": [{}], "sink": [{}, {}]}


@dataclass
class Known:
    """All that is known of one trial; the same for every trial unless a test changes it."""

    whole: dict[str, Any] = field(default_factory=lambda: dict(WHOLE_ROW))
    edge: dict[str, Any] = field(default_factory=lambda: dict(EDGE_ROW))
    workers: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(WORKERS))
    threads: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: copy.deepcopy(THREADS))
    cpus: list[tuple[int | None, int | None]] = field(
        default_factory=lambda: [(0, 0), (0, 1), (0, 0), (0, 1)]
    )
    valid: bool = True
    cell: str = CELL

    def samples(self, edge: str = EDGE, phase: str = "measure") -> pl.DataFrame:
        """The messages, taken and sent on these CPUs."""
        rows = [
            {"edge": edge, "phase": phase, "cpu_publish": sent, "cpu_taken": taken}
            for sent, taken in self.cpus
        ]
        return pl.DataFrame(rows, schema={name: form.SAMPLES_SCHEMA[name] for name in COLUMNS})


Side = tuple[Campaign, str, list[pl.DataFrame]]


def side(*trials: Known) -> Side:
    """A cell of these trials, as `explain` gets it."""
    rows: list[dict[str, Any]] = []
    journal: list[dict[str, Any]] = []
    for number, trial in enumerate(trials):
        same = {"cell": trial.cell, "trial": number, "valid": trial.valid}
        rows += [
            {**same, "edge": EDGE, **trial.edge},
            {**same, "edge": form.END_TO_END, **trial.whole},
        ]
        journal.append({**same, "counters": trial.workers, "threads": trial.threads})
    campaign = Campaign(Path("made-up"), {}, {}, form.cells_of_rows(rows), tuple(journal))
    return campaign, CELL, [trial.samples() for trial in trials if trial.valid and trial.cell == CELL]


def differing(*trials: Known) -> list[Fact]:
    """What differs between a cell of one usual trial and one of these."""
    return facts(*side(Known()), *side(*trials))


def changed(part: str, *path: Any, to: Any) -> Callable[[Known], None]:
    """Sets one entry of a trial."""

    def change(trial: Known) -> None:
        place = getattr(trial, part)
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to

    return change


EACH = [
    (changed("whole", "send_lag_p50_ns", to=1_500), Fact("send lag, p50", 1_000.0, 1_500.0, "ns")),
    (changed("whole", "blocked_p50_ns", to=1_000), Fact("blocked in publish, p50", 2_000.0, 1_000.0, "ns")),
    (changed("whole", "handle_p50_ns", to=30_000), Fact("handling, p50", 3_000.0, 30_000.0, "ns")),
    (changed("whole", "rate_achieved_hz", to=180.0), Fact("rate achieved", 200.0, 180.0, "Hz")),
    (changed("whole", "cpu_per_message_ns", to=8e4), Fact("CPU per message", 40_000.0, 80_000.0, "ns")),
    (changed("edge", "transport", to="tcp"), Fact("transport, as observed from outside", "udp", "tcp")),
    (changed("whole", "noisy", to=True), Fact("noisy trials, share", 0.0, 1.0)),
    (
        changed("workers", "sink", "context_switches", "voluntary", to=350),
        Fact("wake-ups (voluntary context switches) per message", 2.0, 4.0),
    ),
    (
        changed("workers", "source", "context_switches", "involuntary", to=24),
        Fact("involuntary context switches per message", 0.2, 0.4),
    ),
    (changed("threads", "source", to=[{}] * 7), Fact("threads", 3.0, 9.0)),
    (
        changed("workers", "source", "resident_bytes_max", to=6_000_000),
        Fact("memory of the largest worker", 5_000_000.0, 6_000_000.0, "B"),
    ),
    (
        changed("workers", "source", "writers", to=[{"origin": "native"}, {"origin": "copied"}]),
        Fact("origin of the sender's buffer", "loaned", "copied, native"),
    ),
    (
        changed("whole", "kernel_loopback_bytes", to=48_000),
        Fact("bytes over the loopback per message", 200.0, 400.0, "B"),
    ),
    (
        changed("whole", "kernel_loopback_packets", to=240),
        Fact("packets over the loopback per message", 4.0, 2.0),
    ),
]


@pytest.mark.parametrize(("change", "fact"), EACH, ids=[fact.what for _, fact in EACH])
def test_each_fact_is_found_alone(change: Callable[[Known], None], fact: Fact) -> None:
    other = Known()
    change(other)
    assert differing(other) == [fact]


@pytest.mark.parametrize(
    ("cpus", "fact"),
    [
        (
            [(0, 0), (1, 1), (0, 0), (1, 1)],
            Fact("messages taken on another CPU than sent, share", 0.5, 0.0),
        ),
        (
            [(0, 0), (0, 0), (0, 1), (0, 1)],
            Fact("messages before which the receiver changed its CPU, share", 1.0, 1 / 3),
        ),
        ([(0, 0), (0, 3), (0, 0), (0, 3)], Fact("CPUs used", "0, 1", "0, 3")),
    ],
)
def test_each_fact_of_the_cpus_is_found_alone(cpus: list[tuple[int | None, int | None]], fact: Fact) -> None:
    assert differing(Known(cpus=cpus)) == [fact]


def test_the_same_cell_twice_differs_in_nothing() -> None:
    assert differing(Known()) == []
    assert differing(Known(), Known(), Known()) == []


def test_every_figure_is_the_median_of_the_trials() -> None:
    trials = [Known(), Known(), Known()]
    values = ((900, 1, 40), (4_000, 9, 50), (70_000, 4, 900))
    for trial, (lag_ns, threads, switches) in zip(trials, values, strict=True):
        trial.whole["send_lag_p50_ns"] = lag_ns
        trial.threads["sink"] = [{}] * threads
        trial.workers["source"]["context_switches"]["voluntary"] = switches
    assert differing(*trials) == [
        Fact("send lag, p50", 1_000.0, 4_000.0, "ns"),
        Fact("threads", 3.0, 5.0),
    ]


def test_switches_are_shared_out_by_the_messages_of_all_edges_of_their_own_trial() -> None:
    busier = Known(edge={**EDGE_ROW, "n": 400})
    busier.workers["sink"]["context_switches"] = {"voluntary": 750, "involuntary": 76}
    assert differing(busier) == []
    nothing = Known(edge={**EDGE_ROW, "n": 0})
    assert differing(nothing) == []  # not a division by zero, and no figure


def test_failed_trials_and_other_cells_do_not_count() -> None:
    strange = [Known(valid=False), Known(cell="udp/pipeline-3")]
    for trial in strange:
        for change, _ in EACH:
            change(trial)
    assert differing(Known(), *strange) == []


def test_cpus_are_those_of_messages_on_edges_in_the_measure_phase() -> None:
    campaign, cell, (usual,) = side(Known())
    elsewhere = Known(cpus=[(7, 6), (5, 4)])
    unknown = Known(cpus=[(0, None), (None, 9)])
    more = [
        elsewhere.samples(phase="warm-up"),
        elsewhere.samples(phase="drain"),
        elsewhere.samples(edge=form.END_TO_END),
        unknown.samples(),
    ]
    assert facts(*side(Known()), campaign, cell, [pl.concat([usual, *more])]) == []
    # Each edge has a receiver of its own: from one to the other nobody moves.
    second = Known(cpus=[(1, 1), (1, 0), (1, 1), (1, 0)]).samples(edge="relay→sink")
    assert facts(*side(Known()), campaign, cell, [pl.concat([usual, second])]) == []


def test_what_an_older_lagometer_did_not_know_is_no_difference() -> None:
    known = {"whole": {"n": 100, "send_lag_p50_ns": 1_000}, "edge": {"n": 100}}
    older = Known(**known, workers={}, threads={}, cpus=[(None, None)])
    assert differing(older) == []
    assert facts(*side(older), *side(Known())) == []


@pytest.mark.parametrize(("lag_ns", "found"), [(1_050, 0), (1_054, 1), (953, 0), (950, 1), (0, 1)])
def test_a_twentieth_is_not_worth_a_line(lag_ns: int, found: int) -> None:
    """By the logarithm of the ratio."""
    assert len(differing(Known(whole={**WHOLE_ROW, "send_lag_p50_ns": lag_ns}))) == found


def test_texts_come_first_then_the_largest_ratio() -> None:
    other = Known()
    for change, _ in EACH:
        change(other)
    other.whole["send_lag_p50_ns"] = 1  # a thousand times less
    found = [fact.what for fact in differing(other)]
    assert sorted(found) == sorted(fact.what for _, fact in EACH)
    assert set(found[:2]) == {"transport, as observed from outside", "origin of the sender's buffer"}
    assert found[2:5] == ["noisy trials, share", "send lag, p50", "handling, p50"]
    assert found[-1] == "rate achieved"


def test_two_cells_of_a_real_campaign() -> None:
    campaign = open_campaign(GOLDEN)
    sides: list[Side] = []
    for cell in ("cyclonedds", "shm"):
        whole = f"{cell}/pipeline-2/64B/400Hz/best_effort/process-per-node"
        sides.append((campaign, whole, [campaign.samples(whole, 0, COLUMNS)]))
    found = {fact.what: (fact.a, fact.b) for fact in facts(*sides[0], *sides[1])}
    assert found["origin of the sender's buffer"] == ("copied", "loaned")
    assert found["threads"] == (18.0, 4.0)
    assert found["memory of the largest worker"] == (8_167_424.0, 4_608_000.0)
    assert found["blocked in publish, p50"] == (44_005.0, 6_570.0)
    assert found["handling, p50"] == (210.0, 451.0)
    assert found["wake-ups (voluntary context switches) per message"] == (4_201 / 1_040, 2_081 / 1_040)
    assert found["involuntary context switches per message"] == (443 / 1_040, 376 / 1_040)
    assert "rate achieved" not in found and "transport, as observed from outside" not in found


def test_the_terminal_lists_them_without_calling_them_causes(capsys: pytest.CaptureFixture[str]) -> None:
    explain.command(f"{GOLDEN}:cyclonedds*", ":shm*")
    lines = capsys.readouterr().out.splitlines()
    beside = lines[lines.index("also differs (not necessarily the cause)") + 1 :]
    assert beside[0] == "  origin of the sender's buffer: copied → loaned"
    assert "  threads: 18 → 4" in beside
    assert "  memory of the largest worker: 8.167e+06 B → 4.608e+06 B" in beside
    assert "  wake-ups (voluntary context switches) per message: 4.039 → 2.001" in beside
