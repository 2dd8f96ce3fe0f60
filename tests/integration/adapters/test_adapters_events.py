# SPDX-License-Identifier: Apache-2.0
"""What a middleware reports of its endpoints reaches the verdict, cells.parquet and the files of events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import write_study
from needs import need

from lagometer.cli.main import main
from lagometer.run.worker import layout
from lagometer.run.worker.plan import Writer
from lagometer.store.format import EVENT_COLUMNS
from lagometer.store.reader import Campaign, open_campaign
from lagometer.summary.summarise import summarise

OFFERING = ("cyclonedds", "fastdds")
DUE = """
topics: {t0: {deadline: 20ms}}
nodes: {source: {trigger: timer, publishes: [t0]}, sink: {trigger: any, subscribes: [t0]}}
"""


def campaign_of(folder: Path, adapter: str, workload: str = "pipeline-2", **keys: Any) -> Campaign:
    """One short trial at 10 Hz."""
    need(adapter)
    need("netns")
    matrix = {"adapter": adapter, "workload": workload, "rate": "10Hz", "reliability": "reliable"}
    study = write_study(folder, matrix=matrix, machine_floor="off", **keys)
    with pytest.raises(SystemExit):
        main(["run", str(study), "--out", str(folder / "out"), "--no-report"])
    return open_campaign(folder / "out")


def edge_of(campaign: Campaign) -> dict[str, Any]:
    """The row of the one edge."""
    (row,) = campaign.cells.filter(pl.col("edge") != "end-to-end").to_dicts()
    return row


def events_of(campaign: Campaign) -> pl.DataFrame:
    return pl.read_parquet(campaign.events_path(campaign.cells["cell"][0], 0))


@pytest.mark.parametrize("adapter", OFFERING)
def test_a_quality_of_service_that_does_not_fit_is_the_reason(
    adapter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader is reliable, its writer best-effort: the middleware says so to both sides."""
    original = layout._Layout._writer

    def best_effort(self: Any, *arguments: Any) -> Writer:
        written = original(self, *arguments)
        qos = written.qos.model_copy(update={"reliability": "best_effort"})
        return written.model_copy(update={"qos": qos})

    monkeypatch.setattr(layout._Layout, "_writer", best_effort)
    campaign = campaign_of(tmp_path, adapter, discovery_timeout="1s")
    row = edge_of(campaign)
    (reason,) = row["reasons"][:1]
    assert not row["valid"]
    named = "reliability: offered best_effort, requested reliable; "
    assert reason.startswith(f"incompatible-qos: {named}the middleware says so of "), reason
    assert "writer source on lagometer/" in reason and "reader sink on lagometer/" in reason
    (kind,) = {finding.kind for finding in summarise(campaign).findings}
    assert kind == "incompatible-qos"


@pytest.mark.parametrize("adapter", OFFERING)
def test_missed_deadlines_are_counted_on_both_sides(adapter: str, tmp_path: Path) -> None:
    """A message every 100 ms where one is due every 20 ms."""
    (tmp_path / "due.yaml").write_text(DUE)
    campaign = campaign_of(tmp_path, adapter, "due.yaml", duration="1s")
    row = edge_of(campaign)
    assert row["n"] > 0
    assert row["event_deadline_missed"] > 5 and row["event_deadline_missed_offered"] > 5
    assert (row["event_lost"], row["event_incompatible_qos"]) == (0, 0)
    events = events_of(campaign)
    told = events.filter(pl.col("event") == "deadline_missed")
    assert set(told["side"].cast(pl.String)) == {"sender", "receiver"}
    assert set(told["node"].cast(pl.String)) == {"source", "sink"}
    for side in ("sender", "receiver"):
        totals = told.filter(pl.col("side") == side).sort("time_ns")["total"].to_list()
        assert totals == sorted(totals), "each time at least one more"
    # What came in the warm-up and in the drain is in the file, and not in the column.
    assert told.filter(pl.col("side") == "receiver")["total"].max() > row["event_deadline_missed"]


def test_messages_that_the_middleware_knows_to_be_lost_are_counted(tmp_path: Path) -> None:
    """Best effort, over a loopback that loses every twentieth frame: the gaps in the numbers tell. Cyclone
    DDS reports none of them, so what it does not report says nothing."""
    for name in ("tun", "nft", "root", "netns", "ip", "tc", "ethtool", "sysctl", "fastdds"):
        need(name)
    matrix = {
        "adapter": "fastdds",
        "workload": "pipeline-2",
        "rate": "200Hz",
        "reliability": "best_effort",
        "link": "lossy-5",
    }
    options = {"fastdds": {"transport": "udp"}}
    study = write_study(
        tmp_path, matrix=matrix, options=options, duration="2s", drain="500ms", machine_floor="off"
    )
    with pytest.raises(SystemExit):
        main(["run", str(study), "--out", str(tmp_path / "out"), "--no-report"])
    campaign = open_campaign(tmp_path / "out")
    row = edge_of(campaign)
    assert row["lost"] > 0, row["reasons"]
    assert 0 < row["event_lost"] <= 2 * row["lost"]
    kinds = {finding.kind for finding in summarise(campaign).findings}
    assert "lost-on-the-link" in kinds and "lost-in-a-queue" not in kinds


@pytest.mark.parametrize("adapter", OFFERING)
def test_a_trial_without_trouble_has_matched_and_nothing_else(adapter: str, tmp_path: Path) -> None:
    campaign = campaign_of(tmp_path, adapter)
    row = edge_of(campaign)
    assert {name: row[name] for name in EVENT_COLUMNS} == dict.fromkeys(EVENT_COLUMNS, 0)
    events = events_of(campaign)
    assert set(events["event"].cast(pl.String)) == {"matched"}
    assert set(events["side"].cast(pl.String)) == {"sender", "receiver"}


def test_what_is_not_offered_is_null(tmp_path: Path) -> None:
    campaign = campaign_of(tmp_path, "shm")
    row = edge_of(campaign)
    assert {name: row[name] for name in EVENT_COLUMNS} == dict.fromkeys(EVENT_COLUMNS)
    assert not campaign.events_path(row["cell"], 0).exists()
