# SPDX-License-Identifier: Apache-2.0
"""Layers of whole cells: means that add up to the mean latency, and what would have to change to halve it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from way_campaign import CELL, FIRST, IN_NODE_NS, SECOND, Made, whole_ns, write_ways

from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary.cell_layers import campaign_layers, layers_of
from lagometer.summary.layers import layer_tables
from lagometer.summary.summarise import summarise
from lagometer.summary.way_data import CellLayers
from lagometer.summary.ways import message_ways

TRIALS = [[20_000, 40_000], [60_000, 80_000]]


def only(directory: Path) -> CellLayers:
    (found,) = campaign_layers(open_campaign(directory)).cells
    return found


def means(found: CellLayers) -> dict[str, float]:
    return {layer.name: layer.mean_ns for layer in found.layers}


def test_the_layers_of_a_line_are_those_of_the_whole_way(tmp_path: Path) -> None:
    found = only(write_ways(tmp_path, Made(TRIALS)))
    assert (found.of, found.trials, found.messages) == ("chain", 2, 4)
    assert found.latency_mean_ns == pytest.approx(
        sum(whole_ns(each) for trial in TRIALS for each in trial) / 4
    )
    # Both edges together are one and a half times the first, whose mean is 50 µs.
    assert means(found) == pytest.approx(
        {
            "send_path": 7_500,
            "transport": 37_500,
            "wake": 22_500,
            "take": 3_000,
            "computation": IN_NODE_NS,
            "unattributed": 4_500,
        }
    )
    assert sum(layer.share for layer in found.layers) == pytest.approx(1)
    assert found.layers[-1].name == "unattributed"


def test_in_a_bridge_a_message_is_still_on_its_way(tmp_path: Path) -> None:
    """As in its time line."""
    directory = write_ways(tmp_path, Made(TRIALS))
    plain = only(directory)
    manifest = json.loads((directory / form.MANIFEST).read_text())
    manifest["cells"][0]["forwarding"] = [[FIRST, SECOND]]
    (directory / form.MANIFEST).write_text(json.dumps(manifest))
    found = only(directory)
    expected = means(plain)
    expected["bridge"] = expected.pop("computation")
    assert means(found) == pytest.approx(expected) and expected["bridge"] == IN_NODE_NS
    assert found.latency_mean_ns == plain.latency_mean_ns
    assert found.categories == plain.categories, "the bridge is ours, as the other nodes are"
    (way, *_), _ = message_ways(open_campaign(directory), [CELL])
    stays = {stay.layer: stay.end_ns - stay.begin_ns for stay in way.stays}
    assert stays["bridge"] == IN_NODE_NS and "computation" not in stays


def test_until_another_callback_uses_the_data_a_node_is_idle(tmp_path: Path) -> None:
    """The relay is done after 500 ns, and publishes by a timer that fires 2,000 ns later."""
    directory = write_ways(tmp_path, Made(TRIALS))
    for trial in range(len(TRIALS)):
        path = directory / form.SAMPLES / CELL / f"{trial}.parquet"
        handled = pl.when(pl.col("edge").cast(pl.String()) == FIRST).then(pl.col("taken_ns") + 500)
        begun = pl.when(pl.col("edge").cast(pl.String()) == SECOND).then(pl.col("publish_ns") - 500)
        pl.read_parquet(path, glob=False).with_columns(
            handled.otherwise("handled_ns").alias("handled_ns"), begun.otherwise("begun_ns").alias("begun_ns")
        ).write_parquet(path)
    found = only(directory)
    assert (means(found)["idle"], means(found)["computation"]) == (IN_NODE_NS - 1_000, 1_000)
    assert sum(means(found).values()) == pytest.approx(found.latency_mean_ns)


def test_the_wait_for_the_callbacks_of_other_messages_is_no_computation(tmp_path: Path) -> None:
    """The call of the relay took others before; a file of an older lagometer does not say so."""
    directory = write_ways(tmp_path, Made(TRIALS))
    for trial in range(len(TRIALS)):
        path = directory / form.SAMPLES / CELL / f"{trial}.parquet"
        started = pl.when(pl.col("edge").cast(pl.String()) == FIRST).then(pl.col("taken_ns") + 700)
        pl.read_parquet(path, glob=False).with_columns(started.alias("started_ns")).write_parquet(path)
    found = only(directory)
    assert (means(found)["callback_queue"], means(found)["computation"]) == (700, IN_NODE_NS - 700)
    assert sum(means(found).values()) == pytest.approx(found.latency_mean_ns)
    for trial in range(len(TRIALS)):
        path = directory / form.SAMPLES / CELL / f"{trial}.parquet"
        pl.read_parquet(path, glob=False).drop("started_ns").write_parquet(path)
    assert means(only(directory))["computation"] == IN_NODE_NS


def test_without_a_single_line_they_are_those_of_an_edge(tmp_path: Path) -> None:
    directory = write_ways(tmp_path, Made(TRIALS))
    for trial in range(2):
        path = directory / form.SAMPLES / CELL / f"{trial}.parquet"
        # The second edge begins a chain of its own.
        pl.read_parquet(path, glob=False).with_columns(
            pl.lit(None, pl.UInt32).alias("cause_stream")
        ).write_parquet(path)
    found = only(directory)
    assert (found.of, found.messages) == ("edge", 8)
    assert found.latency_mean_ns == pytest.approx(50_000 * 0.75)
    assert "computation" not in means(found)


def test_a_way_with_a_part_that_has_no_layers_is_not_added_up(tmp_path: Path) -> None:
    directory = write_ways(tmp_path, Made(TRIALS))
    path = directory / form.LAYER_FILES / CELL / "1.parquet"
    layers = pl.read_parquet(path, glob=False)
    layers.filter((pl.col("edge") == FIRST) | (pl.col("sequence") == 0)).write_parquet(path)
    found = only(directory)
    assert (found.of, found.messages) == ("edge", 7)
    assert layers.filter(pl.col("edge") == SECOND).height > 0


def test_cells_without_layers_have_no_row(tmp_path: Path) -> None:
    assert campaign_layers(open_campaign(write_ways(tmp_path, Made(TRIALS, layers=False)))).cells == []


def test_each_edge_has_its_own_table(tmp_path: Path) -> None:
    campaign = open_campaign(write_ways(tmp_path, Made(TRIALS)))
    found = campaign_layers(campaign).edges
    assert found == layer_tables([campaign])
    assert [(each.cell, each.edge, each.trials) for each in found] == [(CELL, FIRST, 2), (CELL, SECOND, 2)]


def test_a_summary_reads_each_file_of_layers_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write_ways(tmp_path, Made(TRIALS))
    whole, read = pl.read_parquet, []

    def counted(path: Path, **given: bool) -> pl.DataFrame:
        read.append(Path(path))
        return whole(path, **given)

    monkeypatch.setattr(pl, "read_parquet", counted)
    campaign = open_campaign(directory)
    layers = campaign_layers(campaign)
    summarise(campaign, layers=layers)
    assert len([path for path in read if form.LAYER_FILES in path.parts]) == len(TRIALS)


def test_categories_add_up_to_the_latency(tmp_path: Path) -> None:
    found = only(write_ways(tmp_path, Made(TRIALS)))
    assert {each.name: each.mean_ns for each in found.categories} == pytest.approx(
        {"dds": 48_000, "notification": 22_500, "benchmarking": IN_NODE_NS, "unattributed": 4_500}
    )
    for parts in (found.categories, found.breakdown):
        assert sum(each.mean_ns for each in parts) == pytest.approx(found.latency_mean_ns)
        assert sum(each.share for each in parts) == pytest.approx(1)
    assert (found.overhead_least, found.overhead_most) == (None, None)
    assert found.overhead_absent is not None and "no stamps of ROS 2" in found.overhead_absent


def test_the_largest_layers_until_half_is_reached() -> None:
    found = layers_of("a", 1, 10, "chain", {"wake": 30_000.0, "transport": 40_000.0, "take": 30_000.0})
    assert found.half == ["transport", "wake"]
    assert found.to_halve == (
        "To halve the mean of 100 µs, transport (40%) and wake (30%), together 70%, "
        "would have to shrink by 71%."
    )
    assert found.layers[-1].mean_ns == 0  # unattributed is shown also where there is nothing


def test_one_layer_may_do() -> None:
    found = layers_of("a", 1, 10, "chain", {"transport": 80_000.0, "take": 20_000.0})
    assert found.half == ["transport"]
    assert found.to_halve == "To halve the mean of 100 µs, transport (80%) would have to shrink by 62%."


def test_what_is_unattributed_has_to_be_found_first() -> None:
    found = layers_of("a", 1, 10, "edge", {"unattributed": 90_000.0, "take": 10_000.0})
    assert found.half == ["unattributed"]
    assert found.to_halve.endswith("; where the unattributed part goes has to be found first.")
