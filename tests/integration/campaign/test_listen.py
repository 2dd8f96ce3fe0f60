# SPDX-License-Identifier: Apache-2.0
"""`lagometer listen` beside writers of Cyclone DDS and Fast DDS that run already."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from campaign_support import lagometer
from needs import ROOT, need

LOOPBACK = "ip link set lo up multicast on; ip route add 224.0.0.0/4 dev lo; "
INTERFACE = '<General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General>'


def heard(script: str, *words: str, code: int = 0) -> dict[str, Any]:
    """What a listener says beside a script, both in a network of their own."""
    need("netns")
    need("fastdds")
    listen = f"{sys.executable} -m lagometer.cli.main listen --json {' '.join(words)}"
    command = ["unshare", "--net", "sh", "-c", f"{LOOPBACK}{script} {listen}; code=$?; wait; exit $code"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == code, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_writer_of_cyclone_dds_is_heard(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("ddsperf")
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    told = heard("ddsperf -D 8 pub 100Hz size 1k >/dev/null 2>&1 &", "DDSPerfRDataKS", "--duration", "3s")
    assert told["writer"] == {"type": "KeyedSeq", "keyed": True, "reliable": True, "transient_local": False}
    assert told["messages"] > 20 and told["writers"] == 1 and told["lost"] == 0
    assert told["payload_bytes_min"] == told["payload_bytes_max"] == 1028
    assert told["age"]["min_ns"] > 0 and told["age"]["count"] == told["messages"]
    assert told["header_age"] is None
    assert any("subscriber" in each for each in told["warnings"])


def test_writers_in_partitions_are_heard(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Cyclone DDS's own example of a round trip. Both were found, and nothing was heard of them."""
    need("cyclonedds")
    need("c++")
    echo = tmp_path / "echo"
    source = ROOT / "tests" / "programs" / "cyclonedds_echo.c"
    subprocess.run(["cc", "-o", echo, source, "-lddsc"], check=True)
    monkeypatch.setenv("CYCLONEDDS_URI", INTERFACE)
    both = f"{echo} answer 4000 & {echo} ask 4000 &"
    told = heard(both, "rt/numbers", "--duration", "3s")
    assert told["partitions"] == ["answered", "asked"]
    assert told["writers"] == 2 and told["messages"] > 20


def test_a_header_says_how_old_a_message_is(build: Path, tmp_path: Path) -> None:
    need("c++")
    program = tmp_path / "pair"
    source = ROOT / "tests" / "programs" / "fastdds_pair.cpp"
    subprocess.run(["c++", "-std=c++17", "-o", program, source, "-lfastrtps", "-lfastcdr"], check=True)
    told = heard(f"{program} publish 400 10 1000 &", "/numbers", "--header", "--duration", "5s")
    assert told["writer"]["type"] == "Bytes"
    assert told["messages"] > 20 and told["lost"] == 0
    assert told["header_age"]["count"] == told["messages"]
    # The program stamps a message before it writes it.
    assert told["header_age"]["min_ns"] > told["age"]["min_ns"] > 0


def test_a_topic_that_nobody_writes_ends_with_3(build: Path) -> None:
    told = heard("", "/no_such_topic", "--duration", "200ms", code=3)
    assert told["messages"] == 0 and told["writer"] is None
    assert "nobody in this domain writes 'rt/no_such_topic'" in told["warnings"][0]


def test_a_domain_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    code, _, errors = lagometer(tmp_path, "listen", "/chatter", "--domain", "300")
    assert code == 2 and "300 is not a domain" in errors
