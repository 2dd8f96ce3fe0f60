# SPDX-License-Identifier: Apache-2.0
"""What an agent reads of chrony's and linuxptp's answers. The programs are stand-ins."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from time_services import MASTER, OWN, port_properties, time_status, tracking, write_programs

from lagometer.agent.observe import synchronisation as module
from lagometer.agent.observe.synchronisation import synchronisation
from lagometer.agent.observe.time_service import ServiceReport, service_report


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The services that run, as far as an agent sees."""
    names: list[str] = []
    monkeypatch.setattr(module, "_running", lambda: names)
    return names


def answer(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> None:
    programs = write_programs(folder / f"bin{len(list(folder.iterdir()))}", **texts)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


def test_ptp_says_its_master_its_offset_and_what_stamps_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: list[str]
) -> None:
    services += ["ptp4l", "phc2sys"]
    answer(tmp_path, monkeypatch, status=time_status(), properties=port_properties())
    assert synchronisation()["ptp"] == {
        "master": MASTER,
        "present": True,
        "offset_ns": -6,
        "clock": OWN,
        "timestamping": "HARDWARE",
    }
    both = port_properties(ports=2).replace("HARDWARE", "SOFTWARE", 1)
    for properties in (both, "", "sending: GET PORT_PROPERTIES_NP\n"):
        answer(tmp_path, monkeypatch, status=time_status(present=False), properties=properties)
        ptp = synchronisation()["ptp"]
        assert (ptp["present"], ptp["timestamping"]) == (False, None)
    answer(tmp_path, monkeypatch, status="sending: GET TIME_STATUS_NP\n")
    assert synchronisation()["ptp"] is None


def test_chrony_says_its_own_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: list[str]
) -> None:
    services.append("chronyd")
    answer(tmp_path, monkeypatch, chrony=tracking())
    chrony = synchronisation()["chrony"]
    # |offset| + dispersion + delay / 2 (RFC 5905)
    assert (chrony["bound_ns"], chrony["offset_ns"], chrony["leap"]) == (320_000, 20_000, "Normal")
    answer(tmp_path, monkeypatch, chrony="506 Cannot talk to daemon\n")
    assert synchronisation()["chrony"] is None


def test_a_report_says_where_the_wall_clock_was_and_survives_the_way(services: list[str]) -> None:
    before_ns = time.time_ns() - time.monotonic_ns()
    report = service_report()
    assert report.ahead_ns[0] <= report.ahead_ns[1]
    assert abs(report.ahead_ns[0] - before_ns) < 10**9
    assert ServiceReport.from_json(report.as_json()) == report and report.facts["services"] == services
    for wrong in ({**report.as_json(), "ahead_ns": [1]}, {**report.as_json(), "at_ns": [None]}, {}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            ServiceReport.from_json(wrong)
