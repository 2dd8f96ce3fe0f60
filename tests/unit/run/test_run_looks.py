# SPDX-License-Identifier: Apache-2.0
"""What `doctor --hosts` says of hosts and of the ways between them."""

from __future__ import annotations

import platform

import pytest

from lagometer.run.hosts.looks import HostLook, WayLook
from lagometer.run.hosts.verdicts import host_findings, way_findings
from lagometer.stats.verdict.health import Finding
from lagometer.study.hosts import Host


def same_builds(machine: str) -> Finding:
    hello = {"host": "base", "machine": machine, "version": "0.1.0"}
    facts = {"probes": {"tcp": {"code": 0, "said": "{}"}}}
    look = HostLook("base", Host(), hello=hello, facts=facts, libraries={"tcp": ("a" * 64, "b" * 64)})
    return next(finding for finding in host_findings(look) if finding.check == "same-builds")


def test_a_machine_of_another_type_is_not_told_to_take_a_copy() -> None:
    """A copy would be refused there."""
    alike, apart = same_builds(platform.machine()), same_builds("another")
    assert alike.found == "another build of tcp" and "leave `path` out" in alike.fix
    assert apart.found == "another build of tcp, for another" and "path" not in apart.fix
    assert "install the same versions there" in apart.fix


@pytest.mark.parametrize("wrong", [None, "Operation not permitted"])
def test_a_cast_that_was_not_sent_says_why(wrong: str | None) -> None:
    way = WayLook("robot", "base", None, (1000,), 1, 1500, True, multicast=False, cast_wrong=wrong)
    finding = next(each for each in way_findings(way) if each.check == "multicast")
    assert finding.verdict == "fail"
    assert finding.found == (f"robot can't send it: {wrong}" if wrong else "does not arrive")
