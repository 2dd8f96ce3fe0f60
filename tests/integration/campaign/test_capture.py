# SPDX-License-Identifier: Apache-2.0
"""Captured packets: on the private loopback and between emulated hosts, counted once, and kept as files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from campaign_support import journal, lagometer, write_study
from needs import need

from lagometer.run.captured import packets_of
from lagometer.store.observed import WIRE_COUNTS


def need_capture() -> None:
    need("root")
    need("netns")
    need("mount")
    need("dumpcap")
    need("tshark")


def campaign_of(folder: Path, study: Path) -> Path:
    out = folder / "out"
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, errors or journal(out)[0]["reasons"]
    return out


def test_the_price_of_reliability_is_counted(tmp_path: Path) -> None:
    """A message of 8 KB that Cyclone DDS sends reliably costs its bytes, some headers, and heartbeats."""
    need_capture()
    need("cyclonedds")
    matrix = {"adapter": "cyclonedds", "workload": "pipeline-3", "rate": "10Hz", "payload": "8KB"}
    study = write_study(tmp_path, capture=True, matrix={**matrix, "reliability": "reliable"})
    out = campaign_of(tmp_path, study)
    row = pl.read_parquet(out / "cells.parquet").filter(edge="end-to-end").to_dicts()[0]
    assert row["wire_data"] >= 6 and row["wire_heartbeats"] > 0 and row["wire_startup_discovery_bytes"] > 1000
    parts = ("data_bytes", "control_bytes", "discovery_bytes", "other_bytes")
    assert row["wire_bytes"] == sum(row[f"wire_{name}"] for name in parts) > 8_000
    assert 1.0 < row["wire_bytes_per_payload_byte"] < 1.5
    (file,) = (out / "captures").rglob("*.pcapng")
    assert len(list(packets_of(file))) >= row["wire_packets"]
    code, text, _ = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "on the wire" in text
    code, text, _ = lagometer(tmp_path, "show", str(out), "--json")
    (wire,) = json.loads(text)["wire"]
    assert wire["bytes_per_payload_byte"] == row["wire_bytes_per_payload_byte"]


@pytest.mark.parametrize("adapter", ["cyclonedds", "fastdds"])
def test_what_encryption_hides_is_not_counted_as_zero(tmp_path: Path, adapter: str) -> None:
    """Signed messages are told apart as plain ones are; of encrypted ones only the bytes are known."""
    need_capture()
    need("openssl")
    need(adapter)
    matrix = {"adapter": adapter, "workload": "pipeline-2", "rate": "20Hz", "payload": "2KB"}
    matrix |= {"reliability": "reliable", "security": ["none", "sign", "encrypt"]}
    options = {"fastdds": {"transport": "udp"}}
    study = write_study(
        tmp_path, capture=True, matrix=matrix, options=options, duration="1s", discovery_timeout="20s"
    )
    out = campaign_of(tmp_path, study)
    rows = {
        row["security"] or "none": row
        for row in pl.read_parquet(out / "cells.parquet").filter(edge="end-to-end").to_dicts()
    }
    for kind in ("none", "sign"):
        row = rows[kind]
        assert row["wire_data"] >= 15 and row["wire_data_bytes"] > 15 * 2_000, (kind, row["wire_data"])
        assert (row["wire_heartbeats"] > 0) >= (adapter == "cyclonedds"), kind  # Fast DDS: every 3 s
        assert row["wire_startup_discovery_bytes"] > 1_000, kind
    assert rows["sign"]["wire_startup_discovery_bytes"] > rows["none"]["wire_startup_discovery_bytes"]
    hidden = [name for name, value in rows["encrypt"].items() if name.startswith("wire_") and value is None]
    assert set(hidden) == {f"wire_{name}" for name in WIRE_COUNTS} - {"wire_packets", "wire_bytes"}
    # Announcements fall into the measure phase of either cell, or before it, so messages alone are compared.
    assert (
        rows["encrypt"]["wire_bytes"] / rows["encrypt"]["n"]
        > rows["none"]["wire_data_bytes"] / rows["none"]["n"]
    )
    code, text, _ = lagometer(tmp_path, "show", str(out), "--json")
    wire = {each["cell"]: each for each in json.loads(text)["wire"]}
    assert code == 0 and len(wire) == 3
    (encrypted,) = [each for cell, each in wire.items() if cell.endswith("/security-encrypt")]
    assert encrypted["control_share"] is None and encrypted["heartbeats_per_message"] is None


def test_a_packet_between_emulated_hosts_counts_once(tmp_path: Path) -> None:
    need_capture()
    need("ip")
    need("ethtool")
    hosts = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": ["sink"]}}
    matrix = {"adapter": "udp", "workload": "pipeline-3", "rate": "10Hz", "network": "host", "payload": "8KB"}
    study = write_study(tmp_path, capture=True, hosts=hosts, matrix=matrix, duration="1s")
    out = campaign_of(tmp_path, study)
    row = pl.read_parquet(out / "cells.parquet").filter(edge="end-to-end").to_dicts()[0]
    # Each of the two edges once; a busy machine may send a message of the phase's edge beyond it.
    assert 0.9 < row["wire_bytes_per_payload_byte"] < 1.4
    assert {path.name for path in (out / "captures").rglob("*.pcapng")} == {"0.robot.pcapng", "0.base.pcapng"}


def test_other_programs_packets_are_not_counted(tmp_path: Path) -> None:
    matrix = {"adapter": "udp", "workload": "pipeline-3", "rate": "10Hz", "network": "host"}
    study = write_study(tmp_path, capture=True, matrix=matrix)
    _, output, errors = lagometer(tmp_path, "plan", str(study))
    assert "would count the packets of other programs" in " ".join(output.split()), errors
