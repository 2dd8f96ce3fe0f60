# SPDX-License-Identifier: Apache-2.0
"""A queue on one edge says nothing about the whole way: its p50 does not depend on how long a trial is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from lagometer.cli.show.figures import grows
from lagometer.stats.verdict.growth import Growth
from lagometer.stats.verdict.validity import _queues
from lagometer.store.format import END_TO_END, FIGURES_SCHEMA
from lagometer.store.reader import Campaign
from lagometer.summary.answer import answers
from lagometer.summary.cell_data import Queue
from lagometer.summary.floor_ratio import with_floor
from lagometer.summary.glance import glance
from lagometer.summary.intervals import between
from lagometer.summary.queues import queues
from lagometer.summary.rows import trial_row

EDGE = "camera→recorder"
SCHEMA = {"cell": pl.String(), "trial": pl.Int64(), "edge": pl.String(), "valid": pl.Boolean()}
SCHEMA |= {name: FIGURES_SCHEMA[name] for name in ("warnings", "response_growth_ns_per_s")}


class Facts:
    """What the judgement looks at."""

    factors = {"depth": 10}  # noqa: RUF012


def trial(**growing: bool) -> list[dict[str, Any]]:
    """The rows of a trial in which a queue builds up on the edge, end to end, or nowhere."""
    grown = {name: Growth(1.0, 900, builds_up=up) for name, up in growing.items()}
    named = {EDGE if name == "edge" else END_TO_END: growth for name, growth in grown.items()}
    warnings = list(_queues(Facts(), named))  # type: ignore[arg-type]
    common = {"cell": "c", "trial": 0, "valid": True, "warnings": warnings}
    return [
        {**common, "edge": edge, "response_growth_ns_per_s": 1e9 * growth.slope}
        for edge, growth in named.items()
    ]


def found(rows: list[dict[str, Any]]) -> list[Queue]:
    return queues(Campaign(Path("out"), {}, {}, pl.DataFrame(rows, schema=SCHEMA), ()))


def test_only_a_queue_of_the_whole_way_is_one_of_the_cell() -> None:
    on_edge = trial(edge=True, whole=False)
    assert found(on_edge) == []
    assert [grows(row) for row in on_edge] == [True, False]
    (queue,) = found(trial(edge=False, whole=True))
    assert (queue.cell, queue.trials, queue.trials_growing, queue.growth_ns_per_s) == ("c", 1, 1, 5e8)


def test_what_is_faster_but_has_a_queue_does_not_overlap() -> None:
    factors: Any = {}
    rows = []
    for name, p50_ns in (("shm", 10.0), ("zenoh", 100.0), ("nng", 50.0)):
        factors[f"{name}/64B"] = {"adapter": name, "payload_bytes": 64}
        figures = {"cell": f"{name}/64B", "edge": END_TO_END, "latency_p50_ns": p50_ns}
        row = trial_row({**figures, "trial": 0, "valid": True})
        intervals = [between("latency_p50_ns", 0.95 * p50_ns, 1.05 * p50_ns)]
        rows.append(row.model_copy(update={"trial": None, "intervals": intervals}))
    queue = Queue(cell="nng/64B", trials=1, trials_growing=1, growth_ns_per_s=1e8, waiting=None)
    table = glance(with_floor(rows, factors), factors, [], [], [])
    (answer,) = answers(table, rows, [queue])
    assert (answer.adapter, answer.not_told_apart, answer.remarks) == ("zenoh", [], [])
