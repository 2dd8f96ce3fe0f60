# SPDX-License-Identifier: Apache-2.0
"""`lagometer doctor --hosts`: what it finds on this machine, on one behind ssh, and on the way between."""

from __future__ import annotations

import json
from pathlib import Path

from campaign_support import lagometer
from needs import need
from ssh_machine import CABLE, OURS, machine

SMALL_MTU = 1280


def test_each_host_and_each_way_between_two_is_looked_at(tmp_path: Path) -> None:
    """What is wrong was made so: one interface lets small packets through alone, one host is not there."""
    need("cyclonedds")
    with machine(tmp_path) as base:
        gone = base.host(destination="nowhere", address="10.79.0.9")
        hosts = {"robot": {"address": OURS}, "base": base.host(runs=["pong"]), "gone": gone}
        matrix = {"adapter": "cyclonedds", "workload": "pingpong", "network": "host", "hosts": ["robot+base"]}
        study = tmp_path / "study.yaml"
        study.write_text(json.dumps({"name": "pair", "hosts": hosts, "matrix": matrix}))
        base.on("ip", "link", "set", "eth0", "mtu", str(SMALL_MTU))
        words = ("doctor", "--hosts", str(study), "--json")
        code, output, errors = lagometer(tmp_path, *words, preexec_fn=base.on_cable)
        assert code == 0, errors
        assert not base.left()
    found = json.loads(output)
    (unreachable,) = found["hosts"]["gone"]
    assert unreachable["verdict"] == "fail" and "nowhere" in unreachable["found"]
    by_check = {each["check"]: each for each in found["hosts"]["base"]}
    assert by_check["reachable"]["found"].startswith("base, ")
    assert by_check["adapters"]["found"] == "2 work as here"  # tcp, too: the transfer
    assert by_check["link"]["found"].startswith("eth0: ") and f"MTU {SMALL_MTU}" in by_check["link"]["found"]
    assert CABLE in {each["check"]: each["found"] for each in found["hosts"]["robot"]}["link"]
    ways = {(each["sender"], each["receiver"]): each for each in found["ways"]}
    assert set(ways) == {("robot", "base"), ("base", "robot")}
    for way in ways.values():
        assert len(way["round_trips_ns"]) == way["sent"] == 20 and way["multicast"]
        # Fragments of the other side's larger MTU do not come through.
        assert way["path_mtu"] == SMALL_MTU and way["large_arrives"] is False
        assert {each["check"]: each["verdict"] for each in way["checks"]}["path-mtu"] == "warn"


def test_hosts_by_themselves_are_enough(tmp_path: Path) -> None:
    """In words; without an address nothing is known of the way."""
    path = tmp_path / "hosts.yaml"
    path.write_text("hosts: {robot: {}, base: {}}\n")
    code, output, errors = lagometer(tmp_path, "doctor", "--hosts", str(path))
    assert code == 0, errors
    assert "robot → base" in output and "base: it has no `address`" in " ".join(output.split())
    path.write_text("matrix: {}\n")
    code, _, errors = lagometer(tmp_path, "doctor", "--hosts", str(path))
    assert code == 2 and "no hosts" in errors
