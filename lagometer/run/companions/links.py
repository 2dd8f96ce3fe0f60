# SPDX-License-Identifier: Apache-2.0
"""The emulated link of a cell: what runs it on each host, and its results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lagometer.agent.commands import Companion
from lagometer.agent.daemons import Done, Ready, Wanted
from lagometer.agent.emulated import LINK as CABLE
from lagometer.agent.link.orders import DIFFERS, LOOPBACK, NAME, READY, LinkOrders, LinkProfile, LinkStep
from lagometer.installation import link_path
from lagometer.study.cell import Cell
from lagometer.study.hosts import Host
from lagometer.study.link_changes import steps_of
from lagometer.study.links import Link
from lagometer.units import duration_text, plain_duration_text

READY_S = 90.0  # hosts synchronise, and measuring a slow link takes some seconds
LOCAL = "127.0.0.1"
LATE_SHARE_MAX = 0.01
# Frames that the emulation itself lost, not the link as requested.
LOST_BY_ITSELF = ("overflowed", "unsent")
LATE_CHANGE_NS_MAX = 5_000_000
TRACE = "link-capacity"  # name of the file in the trial's folder
_OF_THE_STUDY = ("changes", "capacity", "description", "sources")


def wanted_link(
    cell: Cell, hosts: Mapping[str, Host], host: str, seed: int, measure_ns: int, directory: str
) -> tuple[Wanted, ...]:
    """Returns the program that makes, measures and keeps the link of a cell on one of its hosts, for a
    measure phase of this length. Empty without a link. directory: where the host finds the trial's files."""
    if cell.link is None:
        return ()
    several = len(cell.hosts) > 1
    peers = tuple(hosts[name].address for name in cell.hosts) if several else (LOCAL,)
    orders = LinkOrders(
        profile=profile_of(cell.factors.link, cell.link, measure_ns, f"{directory}/{TRACE}"),
        device=CABLE if several else LOOPBACK,
        address=hosts[host].address if several else LOCAL,
        peers=peers,
        program=str(link_path()),
        seed=seed + cell.hosts.index(host),
    )
    command = (sys.executable, "-I", "-m", "lagometer.agent.link", json.dumps(orders.as_json()))
    return (Wanted(NAME, Companion(command, daemon=True), Ready(output=f"^{READY}$", timeout_s=READY_S)),)


def link_files(cell: Cell) -> dict[str, str]:
    """Returns the files that a host needs for the link, as text by name."""
    if cell.link is None or cell.link.capacity is None:
        return {}
    return {TRACE: cell.link.capacity.text()}


def profile_of(name: str, link: Link, measure_ns: int, trace: str) -> LinkProfile:
    """Returns a study's link in the agent's form, for a measure phase of this length. trace: path of its
    recorded capacity, if it has one."""
    values = {key: value for key, value in vars(link).items() if key not in _OF_THE_STUDY}
    steps = steps_of(link, link.changes, measure_ns)
    return LinkProfile(
        name=name,
        **values,
        steps=tuple(LinkStep(**vars(step)) for step in steps),
        trace=trace if link.capacity is not None else "",
    )


def link_done(daemon: Done) -> dict[str, Any]:
    """Returns what a link reported, and what its emulation cost: back_end, device, commands, figures
    (requested and measured before the workers started), did, cpu_ns of the measure phase."""
    report: dict[str, Any] = {}
    for line in daemon.output.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            report |= message
    return {**report, "cpu_ns": daemon.cpu_ns, "ready_s": daemon.ready_s}


def link_reasons(report: Mapping[str, Any], ended_early: bool = False) -> Iterator[str]:
    """Why a trial did not have the requested link, although the link was as requested when the trial began.
    ended_early: the trial failed for another reason, so not all changes were due."""
    effects = report.get("did") or {}
    program = effects.get("program") or {}
    lost = sum(int(program.get(name) or 0) for name in LOST_BY_ITSELF) + int(
        effects.get("program_missed") or 0
    )
    if lost:
        frames = int(program.get("frames") or 0) + int(effects.get("program_missed") or 0)
        yield f"{DIFFERS}: the emulation itself lost {lost:,} of {frames:,} frames: lower the rate"
    if report.get("traced") and not program.get("traced") and not ended_early:
        yield f"{DIFFERS}: its recorded capacity did not begin"
    if report.get("steps") and not ended_early:
        yield from _changes_amiss(int(report["steps"]), program.get("changes") or ())


def _changes_amiss(steps: int, changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which changes of a link were not as requested."""
    if len(changes) != steps:
        yield f"{DIFFERS}: nothing is known of {steps - len(changes)} of its {steps} changes"
    for change in changes:
        at, late_ns = plain_duration_text(int(change["at_ns"])), change["late_ns"]
        if late_ns is None:
            yield f"{DIFFERS}: the change at {at} was not carried out"
        elif int(late_ns) > LATE_CHANGE_NS_MAX:
            bound = f"more than {plain_duration_text(LATE_CHANGE_NS_MAX)}"
            yield f"{DIFFERS}: the change at {at} came {duration_text(int(late_ns))} late, {bound}"


def link_warnings(report: Mapping[str, Any]) -> Iterator[str]:
    """What was unusual about the emulation."""
    program = (report.get("did") or {}).get("program") or {}
    frames, late = int(program.get("frames") or 0), int(program.get("late") or 0)
    if frames and late > LATE_SHARE_MAX * frames:
        most = duration_text(int(program.get("late_max_ns") or 0))
        share = f"{late:,} of {frames:,} frames"
        yield f"link-late: {share} left the emulated link more than 1 ms late, {most} at most"
