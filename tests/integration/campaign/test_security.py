# SPDX-License-Identifier: Apache-2.0
"""The factor `security`: what goes over the wire, and what is in force."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import keys_left, running
from loopback_capture import Capture
from needs import need
from own_network import own_network

from lagometer.cli.main import main
from lagometer.run import secured
from lagometer.run.companions import certificates
from lagometer.run.companions.certificates import Authority, CertificatesError
from lagometer.store.reader import open_campaign

SECRET = b"The payload that nobody beside the subscriber may read. "
ADAPTERS = ["cyclonedds", "fastdds"]


def write_study(folder: Path, **matrix: Any) -> Path:
    (folder / "secret.bin").write_bytes(SECRET)
    study = {
        "name": "secured",
        "duration": "300ms",
        "warmup": "100ms",
        "discovery_timeout": "20s",
        "machine_floor": "off",
        "options": {"fastdds": {"transport": "udp"}},
        "matrix": {
            "workload": "pipeline-2",
            "payload": "2KB",
            "rate": "20Hz",
            "reliability": "reliable",
            "content": "recorded-secret.bin",
            "touch": "header",
            **matrix,
        },
    }
    path = folder / "study.yaml"
    path.write_text(json.dumps(study))
    return path


@pytest.mark.parametrize("kind", ["none", "sign", "encrypt"])
def test_only_what_is_encrypted_can_not_be_read_on_the_wire(kind: str, tmp_path: Path) -> None:
    for name in ("netns", "openssl", "cyclonedds", "fastdds"):
        need(name)
    study = write_study(tmp_path, adapter=ADAPTERS, security=kind, network="host")
    out = tmp_path / "out"
    command = ("run", str(study), "--out", str(out), "--no-report", "--json")
    with running(tmp_path, *command, preexec_fn=own_network) as run, Capture(run.process.pid) as capture:
        code, said, errors = run.end()
    assert code == 0, said + errors
    assert json.loads(said)["valid"] == len(ADAPTERS)
    # The secret is longer than the envelope that stands in its beginning.
    assert capture.holds(SECRET) == (kind != "encrypt")
    assert capture.holds(b"lagometer::Bytes") == (kind != "encrypt"), "what discovery says"
    for entries in json.loads((out / "manifest.json").read_text())["settings"].values():
        contexts = [each["settings"] for each in entries if each["object"] == "context"]
        told = {each.get("security", {}).get("value", "none") for each in contexts}
        assert contexts and told == {kind}
    edges = pl.read_parquet(out / "cells.parquet")
    assert set(edges["security"]) == {kind}
    assert set(edges["transport"].drop_nulls()) == {"udp"}
    assert edges["discovery_ns"].null_count() == 0
    assert not keys_left(), "the keys went with the trial"


@pytest.fixture
def one_cell(tmp_path: Path) -> Iterator[Path]:
    need("netns")
    need("openssl")
    need("cyclonedds")
    yield write_study(tmp_path, adapter="cyclonedds", security="sign")


def reasons_of(study: Path) -> list[str]:
    out = study.parent / "out"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(study), "--out", str(out), "--no-report"])
    assert ended.value.code == 3
    return list(open_campaign(out).cells["reasons"][0])


def test_what_is_not_in_force_fails_the_trial(one_cell: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The governance says another kind than the cell."""
    other = certificates.governance("encrypt")
    monkeypatch.setattr(certificates, "governance", lambda _: other)
    (reason,) = reasons_of(one_cell)
    assert reason == "not-in-force: cyclonedds: security sign asked for, encrypt in force"


def test_a_trial_without_certificates_fails(one_cell: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Authority:
        raise CertificatesError("openssl req ended with 1: no entropy")

    monkeypatch.setattr(secured, "Authority", refused)
    first, *others = reasons_of(one_cell)
    assert first == "launch-failed: no certificates: openssl req ended with 1: no entropy"
    assert any(each.startswith("adapter-failed:") for each in others)
