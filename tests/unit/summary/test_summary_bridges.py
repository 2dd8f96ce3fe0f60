# SPDX-License-Identifier: Apache-2.0
"""What a bridge takes of its messages' latency: on a campaign whose every stay is known."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest
from way_campaign import CELL, FIRST, IN_NODE_NS, SECOND, Made, whole_ns, write_ways

from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary import bridges as bridges_of
from lagometer.summary.bridges import bridges
from lagometer.summary.cell_data import Bridge

LATENCIES_NS = [20_000 + 100 * number for number in range(50)]


def bridge_of(
    directory: Path, node: str, trials: list[list[int]], pairs: list[list[str]] | None = None
) -> Bridge:
    """The row of a node that the manifest calls a bridge; pairs: as it lists them, if it does."""
    write_ways(directory, Made(trials, layers=False))
    manifest = json.loads((directory / form.MANIFEST).read_text())
    manifest["cells"][0]["bridges"] = {node: node}
    if pairs is not None:
        manifest["cells"][0]["forwarding"] = pairs
    (directory / form.MANIFEST).write_text(json.dumps(manifest))
    (bridge,) = bridges(open_campaign(directory), [CELL])
    return bridge


def share(latencies_ns: list[int]) -> float:
    return fmean(IN_NODE_NS / whole_ns(latency_ns) for latency_ns in latencies_ns)


def test_the_share_is_the_mean_part_of_each_messages_latency(tmp_path: Path) -> None:
    bridge = bridge_of(tmp_path, "relay", [LATENCIES_NS])
    assert bridge.passed_on == len(LATENCIES_NS)
    assert bridge.stay_p50_ns == bridge.stay_p99_ns == IN_NODE_NS
    assert bridge.stay_share == pytest.approx(share(LATENCIES_NS))


def test_only_what_passes_from_one_side_to_the_other_counts(tmp_path: Path) -> None:
    """The node also answers on its own side: what it publishes there is no message passed on."""
    both = bridge_of(tmp_path / "both", "relay", [LATENCIES_NS], [[FIRST, SECOND]])
    assert (both.passed_on, both.stay_p50_ns) == (len(LATENCIES_NS), IN_NODE_NS)
    assert both.stay_share == pytest.approx(share(LATENCIES_NS))
    elsewhere = bridge_of(tmp_path / "elsewhere", "relay", [LATENCIES_NS], [[FIRST, "relay→far"]])
    assert (elsewhere.passed_on, elsewhere.stay_p50_ns, elsewhere.stay_share) == (0, None, None)


def test_what_a_node_took_on_the_other_side_already_is_not_passed_on(tmp_path: Path) -> None:
    """It publishes both on one topic: the cause says which is which."""
    other = bridge_of(tmp_path, "relay", [LATENCIES_NS], [["near→relay", SECOND]])
    assert (other.passed_on, other.stay_share) == (0, None)


def test_of_several_trials_the_middle_one_counts(tmp_path: Path) -> None:
    trials = [[factor * latency_ns for latency_ns in LATENCIES_NS] for factor in (4, 1, 2)]
    assert bridge_of(tmp_path, "relay", trials).stay_share == pytest.approx(share(trials[2]))


def test_of_many_messages_some_are_followed_evenly_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridges_of, "FOLLOWED", 11)
    bridge = bridge_of(tmp_path, "relay", [LATENCIES_NS])
    assert bridge.stay_share == pytest.approx(share(LATENCIES_NS[::5]))


def with_two_clocks(directory: Path, **columns: Any) -> None:
    path = directory / form.CELLS
    cells = pl.read_parquet(path)
    changed = [pl.lit(value).cast(cells.schema[name]).alias(name) for name, value in columns.items()]
    cells.with_columns(changed).write_parquet(path)


def test_by_two_clocks_no_share_is_known(tmp_path: Path) -> None:
    """How long a message stays is told by the bridge's own clock."""
    bridge_of(tmp_path, "relay", [LATENCIES_NS])
    with_two_clocks(tmp_path, clock="offset", clock_bound_ns=2_000)
    (bridge,) = bridges(open_campaign(tmp_path), [CELL])
    assert (bridge.stay_p50_ns, bridge.stay_share) == (IN_NODE_NS, None)


def test_a_node_that_no_message_passes_has_no_share(tmp_path: Path) -> None:
    assert bridge_of(tmp_path, "sink", [LATENCIES_NS]).stay_share is None


def bridged(directory: Path, trials: list[list[int]], plain: list[list[int]] | None) -> list[Bridge]:
    """The rows of a cell whose second edge goes over a program of two processes, and of the same cell without
    it, if it was measured."""
    across = f"{CELL}/bridge-toy"
    made = [Made(trials, layers=False, cell=across)]
    made += [Made(plain, layers=False, cell=f"{CELL}/bridge-none")] if plain is not None else []
    write_ways(directory, *made)
    manifest = json.loads((directory / form.MANIFEST).read_text())
    processes = ["toy-5", "toy-10"]
    for cell in manifest["cells"]:
        cell["factors"]["bridge"] = cell["id"].rpartition("bridge-")[2]
    manifest["cells"][0]["bridge"] = {"name": "toy", "processes": processes, "edges": [SECOND]}
    (directory / form.MANIFEST).write_text(json.dumps(manifest))
    for trial in range(len(trials)):
        path = directory / form.RESOURCES / across / f"{trial}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        form.write_resources(resources(processes), path)
    return bridges(open_campaign(directory), [cell["id"] for cell in manifest["cells"]])


def resources(processes: list[str]) -> pl.DataFrame:
    """Of processes that cost more and more; and of a worker of the same name, which counts for nothing."""
    rows: list[dict[str, object]] = []
    for number, process in enumerate(processes, 1):
        absent = dict.fromkeys(form.RESOURCES_SCHEMA)
        common = {**absent, "host": "here", "process": process, "kind": "daemon"}
        sizes = {"rss_bytes": 3000 * number, "pss_bytes": 2000 * number, "uss_bytes": 1000 * number}
        rows.append({**common, "what": "process", **sizes})
        rows += [{**common, "what": "thread", "run_ns": 50_000 * number} for _ in range(3)]
    worker = {"host": "here", "process": "toy-5", "kind": "worker", "what": "thread", "run_ns": 1}
    rows.append({**dict.fromkeys(form.RESOURCES_SCHEMA), **worker})
    return pl.DataFrame(rows, schema=form.RESOURCES_SCHEMA, orient="row")


def test_of_a_program_each_process_has_a_row_without_a_stay(tmp_path: Path) -> None:
    first, second = bridged(tmp_path, [LATENCIES_NS], [[each // 2 for each in LATENCIES_NS]])
    assert (first.node, first.process) == ("toy-5", "toy-5")
    assert first.passed_on == second.passed_on == len(LATENCIES_NS)  # of the edge that crosses alone
    assert (first.stay_p50_ns, first.stay_p99_ns, first.stay_share) == (None, None, None)
    assert (first.threads, first.rss_bytes, first.uss_bytes) == (3, 3000, 1000)
    assert second.pss_bytes == 4000
    assert first.cpu_per_message_ns == 150_000 / len(LATENCIES_NS)
    assert second.cpu_per_message_ns == 2 * first.cpu_per_message_ns


def test_a_message_for_two_subscribers_passes_a_program_once(tmp_path: Path) -> None:
    bridged(tmp_path, [LATENCIES_NS], None)
    path = tmp_path / form.SAMPLES / f"{CELL}/bridge-toy" / "0.parquet"
    samples = pl.read_parquet(path).with_columns(pl.col("edge").cast(pl.String))
    other = samples.filter(pl.col("edge") == SECOND).with_columns(pl.lit(f"{SECOND}-2").alias("edge"))
    pl.concat([samples, other]).with_columns(pl.col("edge").cast(pl.Categorical)).write_parquet(path)
    manifest = json.loads((tmp_path / form.MANIFEST).read_text())
    manifest["cells"][0]["bridge"]["edges"].append(f"{SECOND}-2")
    (tmp_path / form.MANIFEST).write_text(json.dumps(manifest))
    rows = bridges(open_campaign(tmp_path), [manifest["cells"][0]["id"]])
    assert [row.passed_on for row in rows] == [len(LATENCIES_NS)] * 2


def test_what_it_adds_is_the_difference_to_the_same_cell_without_it(tmp_path: Path) -> None:
    shorter_ns = [each // 2 for each in LATENCIES_NS]
    rows = bridged(tmp_path, [LATENCIES_NS], [shorter_ns])
    middle = (len(LATENCIES_NS) - 1) // 2
    added_ns = whole_ns(LATENCIES_NS[middle]) - whole_ns(shorter_ns[middle])
    assert [row.added_p50_ns for row in rows] == [added_ns, added_ns]


def test_without_that_cell_nothing_says_what_it_adds(tmp_path: Path) -> None:
    assert [row.added_p50_ns for row in bridged(tmp_path, [LATENCIES_NS], None)] == [None, None]


def test_by_two_clocks_nothing_says_what_it_adds(tmp_path: Path) -> None:
    bridged(tmp_path, [LATENCIES_NS], [LATENCIES_NS])
    with_two_clocks(tmp_path, clock="offset", clock_bound_ns=2_000)
    campaign = open_campaign(tmp_path)
    rows = bridges(campaign, [cell["id"] for cell in campaign.manifest["cells"]])
    assert [row.added_p50_ns for row in rows] == [None, None]
