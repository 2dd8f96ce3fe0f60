# SPDX-License-Identifier: Apache-2.0
"""Two hosts with clocks of their own whose time services answer.

The services are stand-ins, where an agent starts `pmc` and `chronyc`; the offset, and what agents read, are
real.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, write_study
from needs import ROOT, need
from time_services import OTHER, OWN, port_properties, time_status, tracking, write_programs

AHEAD_S = 3600
WRONG_NS = 50_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library with a kernel whose clock is kept, since that of a test machine may not be."""
    for name in ("root", "mount", "netns", "ip", "ethtool", "timens", "cc"):
        need(name)
    library = tmp_path_factory.mktemp("preload") / "served_clock.so"
    source = ROOT / "tests" / "preload" / "served_clock.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return str(library)


def host(programs: Path, library: str, runs: str, wall_ns: int = 0, ahead_s: int = 0) -> dict[str, Any]:
    """An emulated host with these programs, and the services that have an answer."""
    names = [*(["ptp4l", "phc2sys"] if (programs / "status").read_text() else [])]
    names += ["chronyd"] if (programs / "tracking").read_text() else []
    begin = "".join(f"{programs}/{name} 600 </dev/null >/dev/null 2>&1 & " for name in names)
    variables = [f"PATH={programs}:/usr/bin:/bin:/usr/sbin:/sbin", f"LD_PRELOAD={library}"]
    variables += [f"LAGOMETER_TEST_WALL_NS={wall_ns}"] if wall_ns else []
    words = ["sh", "-c", f'{begin}exec "$@"', "sh"]
    words += ["unshare", "--time", "--monotonic", str(ahead_s), "--fork"] if ahead_s else []
    return {"launcher": "netns", "runs": [runs], "before": [*words, "env", *variables]}


def run(folder: Path, library: str, wall_ns: int = 0, **texts: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The trial, and the row of the edge between the hosts. wall_ns: how wrong the other's wall clock is."""
    ours = write_programs(folder / "ours", **texts)
    others = write_programs(
        folder / "others", **{key: text.replace(OWN, OTHER) for key, text in texts.items()}
    )
    hosts = {
        "robot": host(ours, library, "source"),
        "base": host(others, library, "sink", wall_ns, AHEAD_S),
    }
    matrix = {"adapter": "tcp", "workload": "pipeline-2", "rate": "20Hz", "network": "host"}
    study, out = write_study(folder, hosts=hosts, matrix=matrix, duration="1s"), folder / "out"
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(out), "--no-report")
    (trial,) = journal(out)
    assert code == 0, errors or trial["reasons"]
    rows = pl.read_parquet(out / "cells.parquet").filter(edge="source→sink")
    return trial, rows.row(0, named=True)


def test_ptp_of_the_network_cards_narrows_the_bound_if_it_agrees(tmp_path: Path, served: str) -> None:
    trial, row = run(tmp_path, served, status=time_status(), properties=port_properties())
    assert (row["clock"], row["clock_bound"]) == ("offset", "ptp"), trial["warnings"]
    assert -row["clock_bound_ns"] < row["latency_min_ns"] <= row["latency_max_ns"] < 10**9
    for each in trial["hosts"]:
        before, after = each["services"]
        assert before["at_ns"] < after["at_ns"] and after["ptp"]["timestamping"] == "HARDWARE"
        assert set(after["services"]) == {"ptp4l", "phc2sys"}
    assert not any("clock" in warning for warning in trial["warnings"])


def test_ptp_by_programs_narrows_nothing(tmp_path: Path, served: str) -> None:
    """It sees the same delays as the exchanges do, so that it would confirm a wrong offset."""
    properties = port_properties(stamped_by="SOFTWARE")
    _, row = run(tmp_path, served, status=time_status(), properties=properties)
    assert row["clock_bound"] == "hard"


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("ptp", {"status": time_status(), "properties": port_properties()}),
        ("chrony", {"chrony": tracking()}),
    ],
)
def test_a_service_that_is_wrong_is_named(
    tmp_path: Path, served: str, source: str, texts: dict[str, str]
) -> None:
    trial, row = run(tmp_path, served, WRONG_NS, **texts)
    assert row["clock_bound"] == "hard" and -row["clock_bound_ns"] < row["latency_min_ns"] < WRONG_NS // 2
    (warning,) = (each for each in trial["warnings"] if each.startswith("clock-disagrees: "))
    assert f"{source} and the time stamps that base and robot exchanged differ by " in warning
    code, output, errors = lagometer(tmp_path, "show", str(tmp_path / "out"), "--json")
    assert code == 0, errors
    (finding,) = (each for each in json.loads(output)["findings"] if each["kind"] == "clock-disagrees")
    assert source in finding["number"]


def test_a_service_that_is_right_is_not(tmp_path: Path, served: str) -> None:
    trial, row = run(tmp_path, served, chrony=tracking())
    assert row["clock_bound"] == "hard" and not any("clock-" in each for each in trial["warnings"])
    assert [each["services"][0]["chrony"]["bound_ns"] for each in trial["hosts"]] == [320_000] * 2
