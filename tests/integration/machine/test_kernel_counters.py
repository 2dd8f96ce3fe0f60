# SPDX-License-Identifier: Apache-2.0
"""What the kernel counts of a trial, forced by a companion that spoils the trial's own network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from campaign_support import journal, lagometer, programs, write_study
from needs import adapter_library, need, require

# Datagrams are cut into fragments; every other 100 ms there is no room to put any together again.
SPOILER = """
import fcntl, pathlib, socket, struct, sys, time

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    set_mtu = 0x8922
    fcntl.ioctl(any_socket, set_mtu, struct.pack("16si", b"lo", 1500).ljust(40, b"\\0"))
room = pathlib.Path("/proc/sys/net/ipv4/ipfrag_high_thresh")
usual = room.read_text()
room.with_name("ipfrag_low_thresh").write_text("0")
pathlib.Path(sys.argv[1]).touch()
while True:
    for bytes_of_room in (sys.argv[2], usual):
        room.write_text(bytes_of_room or usual)
        time.sleep(0.1)
"""


@pytest.mark.parametrize("room", ["0", ""])
def test_a_loss_to_failed_reassemblies_is_explained(build: Path, tmp_path: Path, room: str) -> None:
    need("netns")
    library = adapter_library("udp", build)
    place = tmp_path / "adapters" / "udp"
    place.mkdir(parents=True)
    sidecar = json.loads((library.parent / "adapter.json").read_text())
    command = [sys.executable, "-c", SPOILER, "{runtime}/serves", room]
    ready = {"file": "{runtime}/serves"}
    sidecar["daemons"] = [{"name": "spoiler", "command": command, "package": "none", "ready": ready}]
    (place / "adapter.json").write_text(json.dumps(sidecar))
    (place / library.name).symlink_to(library)
    environment = {**programs(build), "LAGOMETER_ADAPTER_PATH": str(place.parent)}
    matrix = {"adapter": "udp", "workload": "pipeline-2", "payload": "8KB", "rate": "100Hz"}
    study = write_study(tmp_path, matrix=matrix, duration="1s", machine_floor="off")
    run = ("run", str(study), "--out", str(tmp_path / "out"), "--no-report")
    lagometer(tmp_path, *run, environment=environment)
    (entry,) = journal(tmp_path / "out")
    may = not any(reason.startswith("daemon-died") for reason in entry["reasons"])
    require("netns", may, f"the right to set a private network's sysctls: {entry['reasons']}")
    rows = pl.read_parquet(tmp_path / "out" / "cells.parquet")
    row = rows.row(by_predicate=pl.col("edge") == "source→sink", named=True)
    failed = row["kernel_ip_reassembly_failed"]
    assert entry["evidence"]["network"]["ip_reassembly_failed"] == failed
    assert row["n"] > 0
    if room == "":
        assert failed == row["lost"] == 0
        return
    assert failed >= row["lost"] > 0
    (told,) = [warning for warning in row["warnings"] if warning.startswith("lost: ")]
    assert f"{failed} failed reassemblies in the kernel" in told
