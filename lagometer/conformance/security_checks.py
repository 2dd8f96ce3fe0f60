# SPDX-License-Identifier: Apache-2.0
"""Security: participants with certificates from one authority communicate; nobody else receives anything."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from lagometer.conformance import asks
from lagometer.conformance.bench import Subject
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import MEET_S, PAUSE_S, Endpoint, NotMet, PubSub
from lagometer.run.companions.certificates import Authority
from lagometer.run.companions.identities import AUTHORITY, FOLDER, Identity, Kind

SILENT_S = 1.0  # after the last permitted pair has matched
TOPIC = "secured"
MEMBERS = (0, 1)
STRANGERS = {2: "a participant with another authority's certificate", 3: "one without any"}


def check_security(subject: Subject, findings: Findings) -> None:
    """Checks every kind that the sidecar declares."""
    for kind in get_args(Kind):
        if kind not in subject.adapter.sidecar.abilities.security:
            continue
        with tempfile.TemporaryDirectory(prefix="lagometer-conformance-") as folder:
            with Authority() as own_authority, Authority() as other_authority:
                security = {
                    role: written(authority, kind, Path(folder) / f"role-{role}", role)
                    for role, authority in ((0, own_authority), (1, own_authority), (2, other_authority))
                }
            with PubSub(subject, roles=4, security=security) as pubsub:
                _check_kind(pubsub, kind, findings)


def written(authority: Authority, kind: Kind, folder: Path, role: int) -> dict[str, str]:
    """Writes the files of one participant; returns the settings for its context."""
    identity = Identity(role, 0, kind, domain=0)
    for name, text in authority.files([identity]).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return {
        "kind": kind,
        "identity_ca": str(folder / FOLDER / AUTHORITY),
        "permissions_ca": str(folder / FOLDER / AUTHORITY),
        "certificate": str(folder / identity.certificate),
        "private_key": str(folder / identity.private_key),
        "governance": str(folder / identity.governance),
        "permissions": str(folder / identity.permissions),
    }


def _check_kind(pubsub: PubSub, kind: Kind, findings: Findings) -> None:
    qos = pubsub.qos_of(asks.SECURITY)
    writer, reader = pubsub.writer(0, TOPIC, qos=qos), pubsub.reader(1, TOPIC, qos=qos)
    pubsub.meet()
    findings.judge(f"{kind}: two participants with certificates of one authority meet", True)
    sent = pubsub.deliver(writer, [reader], asks.SECURITY.messages, qos)
    (account,) = pubsub.settled([(reader, writer)], len(sent.accepted))
    findings.judge(
        f"{kind}: what was sent arrives",
        account.count == len(sent.accepted) > 0 and not account.trouble,
        account.trouble or f"{account.count} of {len(sent.accepted)} arrived",
    )
    for role in MEMBERS:
        description = json.loads(pubsub.peer(role).do("describe", id=pubsub.context(role))["text"])
        kind_in_force = description.get("settings", {}).get("security", {}).get("value")
        findings.judge(
            f"{kind}: participant {role} says that it is in force",
            kind_in_force == kind,
            f"it says {kind_in_force}",
        )
    for role, stranger in STRANGERS.items():
        stranger_endpoints = (pubsub.writer(role, TOPIC, qos=qos), pubsub.reader(role, TOPIC, qos=qos))
        pairs = {
            f"{stranger} hears nothing": (stranger_endpoints[1], writer),
            f"{stranger} is not heard": (reader, stranger_endpoints[0]),
        }
        for name, count in _probes(pubsub, pairs).items():
            findings.judge(f"{kind}: {name}", count == 0, f"{count} probes came through")


def _probes(pubsub: PubSub, pairs: Mapping[str, tuple[Endpoint, Endpoint]]) -> dict[str, int]:
    """The number of probes each pair exchanged, a little after a pair created later has matched."""
    qos = pubsub.qos_of(asks.SECURITY)
    topic = f"after_{len(pubsub.streams_heard())}"
    control = (pubsub.reader(1, topic, qos=qos), pubsub.writer(0, topic, qos=qos))
    until_s: float | None = None
    latest_s = time.monotonic() + MEET_S
    while until_s is None or time.monotonic() < until_s:
        pubsub.probe()
        (control_account,) = pubsub.accounts([control])
        if control_account.probes and until_s is None:
            until_s = time.monotonic() + SILENT_S
        if until_s is None and time.monotonic() > latest_s:
            counts = pubsub.counted([control])
            raise NotMet(f"two secured participants did not hear each other on {topic}; {counts}")
        time.sleep(PAUSE_S)
    accounts = pubsub.accounts(list(pairs.values()))
    return {name: account.probes for name, account in zip(pairs, accounts, strict=True)}
