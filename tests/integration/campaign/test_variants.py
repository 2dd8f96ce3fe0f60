# SPDX-License-Identifier: Apache-2.0
"""A vendor's own configuration as a variant: what took effect is what the campaign says."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from campaign_support import lagometer
from needs import need

PROFILES = """<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
  <transport_descriptors>
    <transport_descriptor>
      <transport_id>memory</transport_id><type>SHM</type><segment_size>4194304</segment_size>
    </transport_descriptor>
  </transport_descriptors>
  <participant profile_name="participant"{default}>
    <rtps>
      <userTransports><transport_id>memory</transport_id></userTransports>
      <useBuiltinTransports>false</useBuiltinTransports>
    </rtps>
  </participant>
  <data_writer profile_name="writer"{default}>
    <qos><publishMode><kind>ASYNCHRONOUS</kind></publishMode></qos>
  </data_writer>
</profiles>
"""
STUDY = """
name: files
duration: 300ms
warmup: 100ms
variants:
  default: {{env: {{FASTRTPS_DEFAULT_PROFILES_FILE: "{0}/default.xml"}}}}
  named: {{env: {{FASTRTPS_DEFAULT_PROFILES_FILE: "{0}/named.xml"}}}}
  absent: {{env: {{FASTRTPS_DEFAULT_PROFILES_FILE: "{0}/absent.xml"}}}}
matrix: {{adapter: fastdds, workload: pipeline-2, variant: [none, default, named, absent]}}
"""


def test_a_file_of_profiles_of_fast_dds_is_a_variant(tmp_path: Path) -> None:
    need("netns")
    need("fastdds")
    (tmp_path / "default.xml").write_text(PROFILES.format(default=' is_default_profile="true"'))
    (tmp_path / "named.xml").write_text(PROFILES.format(default=""))
    (tmp_path / "study.yaml").write_text(STUDY.format(tmp_path))
    out = tmp_path / "out"
    code, said, errors = lagometer(
        tmp_path, "run", str(tmp_path / "study.yaml"), "--out", str(out), "--no-report", "--json"
    )
    assert code == 3, said + errors
    tally = json.loads(said)
    (failure,) = tally["failures"]
    assert (tally["valid"], failure["cell"]) == (3, "fastdds/pipeline-2/absent")
    assert "absent.xml, which FASTRTPS_DEFAULT_PROFILES_FILE names, can't be read" in failure["reasons"][0]
    manifest = json.loads((out / "manifest.json").read_text())
    context, writer, _ = manifest["settings"]["fastdds/pipeline-2/default"]
    in_force = {name: each["value"] for name, each in context["settings"].items()}
    assert in_force["FASTRTPS_DEFAULT_PROFILES_FILE"] == str(tmp_path / "default.xml")
    assert (in_force["transports"], in_force["shm_segment_bytes"]) == ("SHM", 4 << 20)
    assert writer["settings"]["publish_mode"]["value"] == "async"
    # Without the file, 2.9 sends best effort over UDP: seen from outside, not claimed.
    edges = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") == "source→sink")
    transports = dict(edges.select("variant", "transport").iter_rows())
    assert transports["default"] == "shared-memory"
    assert "shared-memory" not in (transports["none"], transports["named"])
    # A file whose profiles nobody asks for changes nothing, and is not told as in force.
    _, said, _ = lagometer(tmp_path, "show", str(out), "--json")
    about = {each["cell"]: each["kind"] for each in json.loads(said)["findings"] if "setting" in each["kind"]}
    assert about == {"fastdds/pipeline-2/named": "setting-not-confirmed"}


def test_a_buffer_that_the_kernel_does_not_grant_fails_its_trials(tmp_path: Path) -> None:
    """No machine grants a gigabyte to a socket."""
    need("netns")
    need("fastdds")
    (tmp_path / "study.yaml").write_text(
        "{name: buffers, duration: 200ms, warmup: 50ms, "
        "options: {fastdds: {transport: udp}}, matrix: {adapter: fastdds, workload: pipeline-2, "
        "fastdds.socket_buffer_bytes: [64KB, 1000000000]}}"
    )
    out = tmp_path / "out"
    code, said, errors = lagometer(
        tmp_path, "run", str(tmp_path / "study.yaml"), "--out", str(out), "--no-report", "--json"
    )
    assert code == 3, said + errors
    (failure,) = json.loads(said)["failures"]
    (reason,) = failure["reasons"]
    assert reason.startswith("not-in-force: fastdds: socket_buffer_bytes 1000000000 asked for, ")
    _, said, _ = lagometer(tmp_path, "show", str(out), "--json")
    found = [each for each in json.loads(said)["findings"] if each["kind"] == "setting-not-in-force"]
    assert [each["cell"] for each in found] == [failure["cell"]]
    assert "net.core.rmem_max" in found[0]["fix"]
