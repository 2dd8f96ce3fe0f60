# SPDX-License-Identifier: Apache-2.0
"""hiroz: what a caller's environment must not change, and the nodes of ROS 2 that it meets over Zenoh."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from campaign_support import run_campaign
from needs import need, require

from lagometer.study.adapters import load_adapter
from lagometer.study.daemons import missing_daemons

MATRIX = {
    "workload": ["pipeline-2"],
    "rate": ["50Hz"],
    "type": ["Imu"],
    "payload": ["328B"],
    "reliability": ["reliable"],
}
# What would stop every session: a port that nobody may listen at.
SPOILT = 'listen/endpoints=["tcp/192.0.2.1:1"]'


def settings_of(out: Path) -> dict[str, str]:
    """Each setting of the sessions of the only cell."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    (objects,) = manifest["settings"].values()
    return {key: str(each["value"]) for one in objects for key, each in one["settings"].items()}


def test_a_variable_of_the_callers_changes_no_session(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The middleware applies it over whatever it is told, so the settings would not be true."""
    need("hiroz")
    monkeypatch.setenv("ZENOH_CONFIG_OVERRIDE", SPOILT)
    out = run_campaign(build, tmp_path, {**MATRIX, "adapter": ["hiroz"]})
    assert pl.read_parquet(out / "cells.parquet")["valid"].all()
    assert "127.0.0.1" in settings_of(out)["listen/endpoints"]


@pytest.mark.parametrize("pair", ["hiroz+ros2", "ros2+hiroz", "hiroz"])
def test_it_meets_nodes_of_rmw_zenoh_through_their_router(build: Path, tmp_path: Path, pair: str) -> None:
    need("hiroz")
    need("ros2")
    options = {"hiroz": {"router": "rmw_zenohd"}, "ros2": {"rmw": "rmw_zenoh_cpp"}}
    missing = list(missing_daemons(load_adapter(build / "adapters" / "hiroz"), options, "default"))
    require("rmw_zenoh_cpp", not missing, " ".join(missing))
    named = {name: options[name] for name in pair.split("+")}
    out = run_campaign(build, tmp_path, {**MATRIX, "adapter": [pair]}, options=named)
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") != "end-to-end")
    assert rows["valid"].all() and (rows["n"] == rows["sent"]).all()
    assert rows["transport"].to_list() == ["tcp"]
    assert "17448" in settings_of(out)["connect/endpoints"]
