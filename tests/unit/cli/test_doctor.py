# SPDX-License-Identifier: Apache-2.0
"""The doctor: a verdict for every check, whatever the machine shows; the documents name each."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from lagometer.cli import doctor
from lagometer.cli.common import output_console
from lagometer.stats.verdict.health import CHECKS, examine

GOOD: dict[str, Any] = {
    "cpu": {"threads": 4, "allowed": [0, 1, 2, 3]},
    "governor": "performance",
    "idle_states": {
        "driver": "intel_idle",
        "states": [{"name": "C1", "exit_latency_us": 2, "disabled": False}],
    },
    "boost": False,
    "smt": False,
    "clock_source": "tsc",
    "clock_read_ns": 25.0,
    "preempt": "PREEMPT_RT",
    "virtualisation": "none",
    "sysctls": {
        "kernel.sched_rt_runtime_us": -1,
        "kernel.sched_rt_period_us": 1_000_000,
        "net.core.rmem_max": 16 << 20,
        "net.core.wmem_max": 16 << 20,
        "net.ipv4.ipfrag_high_thresh": 128 << 20,
        "net.ipv4.ipfrag_time": 3,
        "vm.swappiness": 1,
    },
    "rlimits": {"memlock": {"soft": None, "hard": None}},
    "capabilities": [],
    "shared_memory": {"bytes": 1 << 30, "free_bytes": 1 << 30},
    "transparent_hugepages": "madvise",
    "isolation": True,
    "realtime": True,
    "load": {"before": [0.1, 0.1, 0.1], "after": None},
    "steal_ticks": {"before": {"total": 1000, "steal": 0}, "after": None},
    "timer_slack_ns": 50_000,
    "build_type": "RelWithDebInfo",
}


def verdicts(environment: dict[str, Any]) -> dict[str, str]:
    return {finding.check: finding.verdict for finding in examine(environment)}


def test_a_good_machine_is_in_order() -> None:
    assert set(verdicts(GOOD).values()) == {"ok"}


@pytest.mark.parametrize(
    ("path", "value", "check", "verdict"),
    [
        (("clock_source",), "hpet", "clock-source", "fail"),
        (("clock_read_ns",), 300.0, "clock-cost", "warn"),
        (("clock_read_ns",), 2000.0, "clock-cost", "fail"),
        (("cpu", "allowed"), [0], "cpus", "fail"),
        (("load", "before"), [2.0, 0.0, 0.0], "load", "warn"),
        (("load", "before"), [5.0, 0.0, 0.0], "load", "fail"),
        (("steal_ticks", "after"), {"total": 2000, "steal": 100}, "steal", "warn"),
        (("virtualisation",), "virtual machine (kvm)", "virtualisation", "warn"),
        (("governor",), "powersave", "governor", "warn"),
        (("governor",), None, "governor", "unknown"),
        (("boost",), True, "boost", "warn"),
        (("smt",), True, "smt", "warn"),
        (("idle_states", "states", 0, "exit_latency_us"), 200, "idle-states", "warn"),
        (("preempt",), "voluntary", "preemption", "warn"),
        (("sysctls", "kernel.sched_rt_runtime_us"), 950_000, "rt-throttling", "warn"),
        (("realtime",), False, "realtime", "warn"),
        (("rlimits", "memlock", "soft"), 8 << 20, "memlock", "warn"),
        (("sysctls", "vm.swappiness"), 60, "swappiness", "warn"),
        (("transparent_hugepages",), "always", "huge-pages", "warn"),
        (("timer_slack_ns",), 10_000_000, "timer-slack", "warn"),
        (("sysctls", "net.core.rmem_max"), 212_992, "socket-buffers", "warn"),
        (("sysctls", "net.ipv4.ipfrag_high_thresh"), 262_144, "fragments", "warn"),
        (("shared_memory", "free_bytes"), 64 << 20, "shared-memory", "warn"),
        (("isolation",), False, "isolation", "fail"),
        (("build_type",), "Debug", "build", "fail"),
        (("build_type",), None, "build", "unknown"),
    ],
)
def test_each_fault_shows_in_its_check_alone(
    path: tuple[Any, ...], value: object, check: str, verdict: str
) -> None:
    environment = copy.deepcopy(GOOD)
    place: Any = environment
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    wrong = {name: found for name, found in verdicts(environment).items() if found != "ok"}
    assert wrong == {check: verdict}
    finding = next(each for each in examine(environment) if each.check == check)
    assert finding.found and finding.spoils and (finding.fix or verdict == "unknown")


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(GOOD)),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4),
    )
)
def test_an_environment_of_any_shape_gives_a_verdict_for_each_check(odd: dict[str, Any]) -> None:
    assert list(verdicts({**GOOD, **odd})) == list(CHECKS)
    assert set(verdicts({}).values()) <= {"unknown", "warn"}


def test_a_file_gets_each_fix_whole(capsys: pytest.CaptureFixture[str]) -> None:
    findings = examine({**GOOD, "smt": True, "virtualisation": "virtual machine (kvm)", "boost": True})
    doctor.render(findings, output_console())
    lines = capsys.readouterr().out.splitlines()
    bad = [finding for finding in findings if finding.verdict in ("warn", "fail")]
    assert max(len(finding.fix) for finding in bad) > 80
    for finding in bad:
        assert f"      spoils: {finding.spoils}" in lines and f"      fix:   {finding.fix}" in lines


def test_the_page_fits_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.render(examine({**GOOD, "smt": True}), Console(width=60, highlight=False))
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 60
    assert lines[0].startswith("warn  smt: on") and lines[-1] == "22 checks, 1 of them not in order"


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.command(json=True)
    report = json.loads(capsys.readouterr().out)
    assert [check["check"] for check in report["checks"]] == [*CHECKS, "scheduler"]
    assert report["ok"] + report["warn"] + report["fail"] + report["unknown"] == len(CHECKS) + 1


def test_where_the_scheduler_is_not_recorded_doctor_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "lagometer-scheduler"
    refusing.write_text("""#!/bin/sh\necho '{"event":"failed","reason":"EPERM: run as root"}'\n""")
    refusing.chmod(0o755)
    monkeypatch.setenv("LAGOMETER_SCHEDULER", str(refusing))
    doctor.command(json=True)
    (found,) = [
        each for each in json.loads(capsys.readouterr().out)["checks"] if each["check"] == "scheduler"
    ]
    assert found["verdict"] == "unknown" and found["found"].endswith("not available: EPERM: run as root")
