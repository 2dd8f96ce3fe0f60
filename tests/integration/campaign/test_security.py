# SPDX-License-Identifier: Apache-2.0
"""The factor `security`: what goes over the wire, and what is in force."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import running
from needs import need
from own_network import CLONE_NEWNET, own_network

from lagometer.cli.main import main
from lagometer.run import secured
from lagometer.run.companions.certificates import Authority, CertificatesError
from lagometer.store.reader import open_campaign

SECRET = b"The payload that nobody beside the subscriber may read. "
ALL_PROTOCOLS = 0x0003  # ETH_P_ALL
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


class Capture:
    """Every packet of another process's loopback, from outside of it."""

    def __init__(self, pid: int) -> None:
        self.packets: list[bytes] = []
        self._opened = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(pid,))

    def __enter__(self) -> Capture:
        self._thread.start()
        assert self._opened.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _listen(self, pid: int) -> None:
        """A thread may enter a network of its own, and a socket stays in the one that it was made in."""
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        assert ctypes.CDLL(None).setns(network, CLONE_NEWNET) == 0
        os.close(network)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
            raw.settimeout(0.1)
            self._opened.set()
            while not self._over.is_set():
                with contextlib.suppress(TimeoutError):
                    self.packets.append(raw.recv(1 << 16))

    def holds(self, text: bytes) -> bool:
        return any(text in packet for packet in self.packets)


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
    assert not list(Path("/dev/shm").glob("lagometer-*/security")), "the keys went with the trial"


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
    monkeypatch.setattr(secured, "Authority", lambda _: Authority("encrypt"))
    (reason,) = reasons_of(one_cell)
    assert reason == "not-in-force: cyclonedds: security sign asked for, encrypt in force"


def test_a_trial_without_certificates_fails(one_cell: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> Authority:
        raise CertificatesError("openssl req ended with 1: no entropy")

    monkeypatch.setattr(secured, "Authority", refused)
    first, *others = reasons_of(one_cell)
    assert first == "launch-failed: no certificates: openssl req ended with 1: no entropy"
    assert any(each.startswith("adapter-failed:") for each in others)
