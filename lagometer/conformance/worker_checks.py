# SPDX-License-Identifier: Apache-2.0
"""The adapter in real workers, with the same machinery as `lagometer run`."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, get_args

from lagometer.conformance.asks import USUAL_DEPTH
from lagometer.conformance.bench import Subject
from lagometer.conformance.findings import NOT_JUDGED, Findings
from lagometer.conformance.pubsub import PubSub
from lagometer.run.campaign import Assignment, CampaignRun
from lagometer.store.reader import Campaign, open_campaign
from lagometer.study import discover_adapters, expand, study_from_mapping
from lagometer.study.sidecar import Stamp

# Two hosts made from namespaces: nothing but their network joins them, not even /dev/shm.
HOSTS: dict[str, dict[str, object]] = {
    "sender": {"launcher": "netns"},
    "receiver": {"launcher": "netns", "runs": "sink"},
}
# Reasons of a trial that had no such hosts; the adapter is not to blame.
NO_HOSTS = ("agent-lost", "launch-failed")


def check_output(subject: Subject, findings: Findings) -> None:
    """A trial with real workers is valid, whatever the middleware prints on standard output.

    Valid means that every line of the protocol was understood, nothing is left behind, and the adapter's
    claimed transport is the one observed from outside (docs/methodology/noise.md). The messages have the
    stamps that the sidecar lists, and no others.
    """
    with PubSub(subject) as pubsub:
        writer, _ = pubsub.writer(0, "print"), pubsub.reader(1, "print")
        pubsub.meet()
        pubsub.send(writer, 10)
        printed = pubsub.peer(0).do("held")["printed_bytes"]
    findings.note("standard output", f"{printed} bytes were printed there" if printed else "nothing printed")
    abilities = subject.adapter.sidecar.abilities
    for dispatch in abilities.dispatch:
        rows, problems, brought = _trial(subject, dispatch)
        reasons = sorted({reason for row in rows for reason in row["reasons"]}) + problems
        valid = bool(rows) and all(row["valid"] for row in rows)
        findings.judge(f"a trial with real workers is valid, by {dispatch}", valid, "; ".join(reasons))
        if valid:
            wrong = wrong_stamps(dispatch, abilities.stamps.get(dispatch, ()), brought)
            findings.judge(f"messages have the stamps that `stamps` lists, by {dispatch}", not wrong, wrong)
    if subject.adapter.sidecar.scope == "network":
        _check_hosts(subject, findings)


def _check_hosts(subject: Subject, findings: Findings) -> None:
    """What the scope `network` promises: messages reach another host."""
    name = "messages go from one host to another, by the scope `network`"
    dispatch = subject.adapter.sidecar.abilities.dispatch[0]
    load = {"workload": "pipeline-2", "rate": "20Hz"}
    rows, problems, _ = _trial(subject, dispatch, load, HOSTS)
    reasons = sorted({reason for row in rows for reason in row["reasons"]})
    if problems or any(reason.startswith(NO_HOSTS) for reason in reasons):
        findings.skip(name, f"{NOT_JUDGED}{'; '.join(problems or reasons)}")
        return
    arrived = sum(int(row["n"]) for row in rows)
    hint = 'if they reach only processes of the same host, declare `"scope": "host"`'
    findings.judge(name, arrived > 0, f"{'; '.join(reasons) or 'nothing arrived'}: {hint}")


def wrong_stamps(dispatch: str, listed: Collection[str], brought: Collection[str]) -> str:
    """How the sidecar's list of a dispatch differs from the stamps of real messages; empty if it doesn't."""
    missing = [stamp for stamp in listed if stamp not in brought]
    unlisted = [stamp for stamp in brought if stamp not in listed]
    told = [f"no message has {stamp}, which the sidecar lists" for stamp in missing]
    told += [f"messages have {stamp}, which the sidecar does not list" for stamp in unlisted]
    right = ", ".join(f'"{stamp}"' for stamp in brought)
    return f'{"; ".join(told)}: write "{dispatch}": [{right}] under abilities.stamps' if told else ""


def check_services(subject: Subject, findings: Findings) -> None:
    """Two clients send requests to one server, open loop: each gets all replies to its own requests."""
    for dispatch in subject.adapter.sidecar.abilities.dispatch:
        rows, problems, _ = _trial(subject, dispatch, {"workload": "request-reply", "rate": "20Hz"})
        # A polled graph on few CPUs does not hold its rate.
        reasons = sorted({reason for row in rows for reason in row["reasons"]})
        failures = [
            reason for reason in reasons if not (dispatch == "poll" and reason.startswith("rate-missed"))
        ]
        lost = [f"{row['edge']}: {row['lost']} lost" for row in rows if row["lost"]]
        name = f"two clients and a server in real workers, by {dispatch}"
        findings.judge(
            name, bool(rows) and not (failures or lost or problems), "; ".join(failures + lost + problems)
        )


def _trial(
    subject: Subject,
    dispatch: str,
    load: dict[str, str] | None = None,
    hosts: dict[str, dict[str, object]] | None = None,
) -> tuple[list[dict[str, Any]], list[str], tuple[str, ...]]:
    """Runs one short trial; returns its rows of cells.parquet, why there are none, and the stamps that its
    messages have in addition to *taken* and *handled*. hosts: where it runs, if not on this one."""
    abilities = subject.adapter.sidecar.abilities
    placement = "single-process" if subject.within_process else "process-per-node"
    if load is None:
        # A polled pipeline on few CPUs does not hold its rate; a closed loop has none.
        load = {"workload": "pingpong"} if dispatch == "poll" else {"workload": "pipeline-2", "rate": "50Hz"}
    depth_max = subject.adapter.sidecar.limits.depth_max
    depth_limit = {"depth": str(min(depth_max, USUAL_DEPTH))} if depth_max is not None else {}
    reliability = "reliable" if "reliable" in abilities.reliability else abilities.reliability[0]
    study = study_from_mapping(
        {
            "name": "conformance",
            "duration": "400ms",
            "warmup": "100ms",
            "drain": "200ms",
            "discovery_timeout": "10s" if hosts else "20s",
            "trials": "1",
            "machine_floor": "off",
            "transfer": "off",
            "matrix": {
                "adapter": subject.name,
                **load,
                "dispatch": dispatch,
                "reliability": reliability,
                "history": abilities.history[0],
                "type": "bytes" if "bytes" in abilities.types else abilities.types[0],
                "placement": placement,
                **depth_limit,
                "network": "host" if hosts else subject.network,
            },
            **({"hosts": hosts} if hosts else {}),
            **({"options": {subject.name: dict(subject.options)}} if subject.options else {}),
        },
        "lagometer conformance",
    )
    adapters = discover_adapters(study.options)
    expansion = expand(study, adapters)
    if not expansion.cells:
        return [], [f"excluded: {excluded.reason}" for excluded in expansion.excluded], ()
    with tempfile.TemporaryDirectory(prefix="lagometer-") as folder:
        directory = Path(folder) / "campaign"
        CampaignRun(Assignment(study, expansion.cells, expansion.excluded, adapters, directory)).carry_out()
        campaign = open_campaign(directory)
        return campaign.cells.to_dicts(), [], _stamps_of(campaign)


def _stamps_of(campaign: Campaign) -> tuple[str, ...]:
    """The stamps that any received message of a valid trial has."""
    columns = {stamp: f"{stamp}_ns" for stamp in get_args(Stamp)}
    valid = campaign.cells.filter("valid").select("cell", "trial").unique()
    samples = [campaign.samples(cell, trial, list(columns.values())) for cell, trial in valid.iter_rows()]
    return tuple(
        stamp
        for stamp, column in columns.items()
        if any(rows[column].is_not_null().any() for rows in samples)
    )
