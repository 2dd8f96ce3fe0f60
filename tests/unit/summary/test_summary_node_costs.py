# SPDX-License-Identifier: Apache-2.0
"""What a node costs, from columns and journal to the table's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from lagometer.store.format import FIGURES_SCHEMA
from lagometer.store.observed import RESOURCE_COUNTS
from lagometer.store.reader import Campaign
from lagometer.summary.node_costs import node_costs

TICK_NS = 10_000_000


def rows(cell: str, trial: int, *, valid: bool = True, **given: int | None) -> list[dict[str, Any]]:
    counts: dict[str, int | None] = {f"resources_{name}": 0 for name in RESOURCE_COUNTS}
    counts |= {"resources_energy_nj": None, "resources_cycles": None}
    counts |= {"memory_pss_bytes": 400, "startup_matched_ns": 7, "startup_participant_ns": 5}
    common = {"cell": cell, "trial": trial, "valid": valid, "cpu_per_message_ns": 9.0, **counts, **given}
    return [{**common, "edge": "source→sink", "n": 10}, {**common, "edge": "end-to-end", "n": 10}]


def line(cell: str, trial: int, **given: Any) -> dict[str, Any]:
    group = {"mapped_bytes": 0, "resident_bytes": 0, "files": {}}
    middleware = {"mapped_bytes": 30, "resident_bytes": 20, "files": {"b.so": 10, "a.so": 20}}
    processes = [
        {"host": "here", "process": name, "kind": "worker", "threads": {"gc": 1, name: 1}}
        for name in ("source", "sink")
    ]
    seen = {
        "nodes": 2,
        "processes": processes,
        "libraries": {"middleware": middleware, "other": group},
        "not_available": {"cycles": "ENOENT: none", "energy_nj": "EACCES: x", "minor_faults": "never shown"},
        "user_alone": False,
        **given,
    }
    return {"cell": cell, "trial": trial, "valid": True, "resources": seen}


def found(trials: list[list[dict[str, Any]]], lines: list[dict[str, Any]], factors: Any = None) -> Any:
    schema = {name: FIGURES_SCHEMA[name] for name in trials[0][0]}
    frame = pl.DataFrame([row for each in trials for row in each], schema=schema)
    campaign = Campaign(Path("out"), {}, {}, frame, tuple(lines))
    names = dict.fromkeys(frame["cell"])
    return node_costs(campaign, factors or {name: {"adapter": name} for name in names})


def test_a_row_has_medians_for_each_node_and_message() -> None:
    given = {"resources_threads": 8, "resources_voluntary_switches": 30, "resources_involuntary_switches": 10}
    more = {**given, "resources_threads": 12, "resources_network_sent_bytes": 500}
    table = found(
        [rows("a", 0, **given), rows("a", 1, **more), rows("a", 2, valid=False, resources_threads=99)],
        [line("a", 0), line("a", 1), line("a", 2)],
    )
    (row,) = table.rows
    assert (row.trials, row.nodes, row.processes, row.adapter) == (2, 2, 2, "a")
    assert (row.threads_per_node, row.pss_per_node_bytes) == (5.0, 200.0)
    assert (row.switches_per_message, row.network_bytes_per_message) == (4.0, 25.0)
    assert (row.cpu_per_message_ns, row.startup_participant_ns, row.startup_matched_ns) == (9.0, 5.0, 7.0)
    assert row.thread_names == {"gc": 2, "sink": 1, "source": 1}
    assert row.startup_participant_first_ns is None, "the journal has no start-up"
    (group,) = row.libraries
    assert (group.group, group.mapped_bytes, group.files) == ("middleware", 30, ["a.so", "b.so"])


def test_what_a_trial_lacks_is_not_available_with_its_reason() -> None:
    table = found(
        [rows("a", 0), rows("a", 1, resources_threads=None)],
        [line("a", 0), line("a", 1)],
    )
    assert table.rows[0].threads_per_node is None and table.rows[0].cycles_per_message is None
    said = [(each.figure, each.why) for each in table.not_available]
    assert said == [("cycles per message", "ENOENT: none"), ("energy per message", "EACCES: x")]


def test_a_reason_is_left_out_where_the_figure_is_there() -> None:
    table = found([rows("a", 0, resources_cycles=50, resources_energy_nj=20)], [line("a", 0)])
    assert table.not_available == []
    assert (table.rows[0].cycles_per_message, table.rows[0].energy_per_message_nj) == (5.0, 2.0)


def test_the_systems_share_needs_more_than_rounding() -> None:
    """Two processes in two trials: four ticks may be lost or won."""
    enough = {"resources_user_ns": 9 * TICK_NS, "resources_system_ns": 3 * TICK_NS}
    lines = [line("a", 0), line("a", 1)]
    assert found([rows("a", 0, **enough), rows("a", 1, **enough)], lines).rows[0].system_share == 0.25
    few = {"resources_user_ns": 5 * TICK_NS, "resources_system_ns": 5 * TICK_NS}
    assert found([rows("a", 0, **few), rows("a", 1, **few)], lines).rows[0].system_share is None


def test_of_an_adapter_the_smallest_payload_is_shown() -> None:
    factors = {
        "a/big": {"adapter": "a", "payload_bytes": 4096, "dispatch": "poll"},
        "a/small": {"adapter": "a", "payload_bytes": 64, "dispatch": "poll"},
        "a/wait": {"adapter": "a", "payload_bytes": 64, "dispatch": "waitset"},
    }
    table = found([rows(cell, 0) for cell in factors], [line(cell, 0) for cell in factors], factors)
    assert [(row.cell, row.settings) for row in table.rows] == [("a/small", "poll"), ("a/wait", "waitset")]
    assert not table.all_cells


def test_a_campaign_that_was_not_looked_at_has_no_table() -> None:
    plain = {key: value for key, value in line("a", 0).items() if key != "resources"}
    assert found([rows("a", 0)], [plain]) is None
    old = Campaign(Path("out"), {}, {}, pl.DataFrame({"cell": ["a"], "valid": [True]}), ())
    assert node_costs(old, {"a": {}}) is None


def test_messages_that_count_as_warm_up_share_the_costs() -> None:
    """Counts are those of the whole measure phase, and so must the messages be."""
    given = {"resources_minor_faults": 40, "resources_major_faults": 0, "taken": 80}
    (row,) = found([rows("a", 0, **given)], [line("a", 0)]).rows
    assert row.faults_per_message == 0.5


def test_threads_that_differ_in_their_number_alone_are_one_name() -> None:
    names = {"node:relay-1": 1, "node:relay-2": 2, "rmw2": 1, "12": 1}
    processes = [{"host": "here", "process": "p", "kind": "worker", "threads": names}]
    table = found([rows("a", 0)], [line("a", 0, processes=processes)])
    (row,) = table.rows
    assert row.thread_names == {"node:relay-N": 3, "12": 1, "rmw2": 1}


def test_the_start_up_has_its_ramp_over_the_workers() -> None:
    """The first worker beside the last; one that joined later is neither."""
    startup_ns = {
        "source": {"process": 1, "participant": 3, "matched": 6},
        "sink": {"process": 2, "participant": 5, "matched": 7},
        "late": {"process": 2, "plan": 90, "participant": 95},
    }
    more = {"startup_process_ns": 2, "startup_first_message_ns": 9}
    lines = [{**line("a", 0), "startup_ns": startup_ns}]
    (row,) = found([rows("a", 0, **more)], lines).rows
    ramp = (row.startup_participant_first_ns, row.startup_participant_ns)
    assert (row.startup_process_ns, *ramp) == (2, 3, 5)
    assert (row.startup_matched_first_ns, row.startup_matched_ns, row.startup_first_message_ns) == (6, 7, 9)
