# SPDX-License-Identifier: Apache-2.0
"""The factor `security` in two domains with a bridge between them: the wire, identities, and strangers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import keys_left, running
from loopback_capture import Capture
from needs import need
from own_network import own_network

from lagometer.cli.main import main
from lagometer.run import trial as trials
from lagometer.run.companions import certificates
from lagometer.run.companions.identities import FOLDER
from lagometer.run.secured import Secured
from lagometer.run.worker.plan import Context, Plan
from lagometer.store.reader import Campaign, open_campaign
from lagometer.summary.summarise import summarise

ADAPTERS = ["cyclonedds", "fastdds"]
DOMAINS = {"left": 5, "right": 10}
# Longer than the envelope that stands in the beginning of a payload.
SECRETS = {
    "left": b"The payload that nobody in the first domain may read beside its subscriber. ",
    "right": b"The payload that nobody in the second domain may read beside its subscriber. ",
}
NODES: dict[str, dict[str, Any]] = {
    "source": {"trigger": "timer", "publishes": ["left"]},
    "bridge": {"trigger": "any", "subscribes": ["left"], "publishes": ["right"]},
    "sink": {"trigger": "any", "subscribes": ["right"]},
}
STRANGERS = {"stranger-left": "left", "stranger-right": "right"}


def write_study(
    folder: Path,
    topics: dict[str, dict[str, Any]] | None = None,
    nodes: dict[str, dict[str, Any]] | None = None,
    duration: str = "300ms",
    discovery_timeout: str = "20s",
    **matrix: Any,
) -> Path:
    """A study of a bridge between the domains 5 and 10; topics, nodes: more of the workload."""
    for topic, secret in SECRETS.items():
        (folder / f"{topic}.bin").write_bytes(secret)
    settings = {
        topic: {"domain": domain, "content": f"recorded-{topic}.bin", **(topics or {}).get(topic, {})}
        for topic, domain in DOMAINS.items()
    }
    workload = {"name": "bridged", "topics": settings, "nodes": {**NODES, **(nodes or {})}}
    (folder / "bridged.yaml").write_text(json.dumps(workload))
    study = {
        "name": "secured",
        "duration": duration,
        "warmup": "100ms",
        "discovery_timeout": discovery_timeout,
        "machine_floor": "off",
        "options": {"fastdds": {"transport": "udp"}},
        "matrix": {
            "workload": str(folder / "bridged.yaml"),
            "payload": "2KB",
            "rate": "20Hz",
            "reliability": "reliable",
            "touch": "header",
            **matrix,
        },
    }
    path = folder / "study.yaml"
    path.write_text(json.dumps(study))
    return path


def captured(folder: Path, study: Path, trial_count: int) -> Capture:
    """What went over the wire of a campaign whose trials are all valid."""
    for name in ("netns", "openssl", *ADAPTERS):
        need(name)
    command = ("run", str(study), "--out", str(folder / "out"), "--no-report", "--json")
    with running(folder, *command, preexec_fn=own_network) as run, Capture(run.process.pid) as capture:
        code, output, errors = run.end()
    assert code == 0, output + errors
    assert json.loads(output)["valid"] == trial_count
    return capture


def check_carried(campaign: Campaign, kinds: Collection[str]) -> None:
    """That every message went over UDP, and that participants have these kinds of security in force."""
    edges = campaign.cells.filter(pl.col("edge").is_in(["source→bridge", "bridge→sink"]))
    assert (edges["n"] > 0).all()
    assert set(edges["transport"]) == {"udp"}
    for entries in campaign.manifest["settings"].values():
        contexts = [entry["settings"] for entry in entries if entry["object"] == "context"]
        in_force = {settings.get("security", {}).get("value", "none") for settings in contexts}
        assert in_force == set(kinds)
    assert not keys_left(), "the keys went with the trial"


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("left", "right"),
    [("sign", "sign"), ("encrypt", "encrypt"), ("encrypt", "none"), ("none", "encrypt")],
)
def test_each_domain_is_protected_as_the_study_says(left: str, right: str, tmp_path: Path) -> None:
    own = {"right": {"security": right}} if right != left else {}
    study = write_study(tmp_path, own, adapter=ADAPTERS, security=left, network="host")
    capture = captured(tmp_path, study, len(ADAPTERS))
    for topic, kind in (("left", left), ("right", right)):
        assert capture.of_domain(DOMAINS[topic])
        readable = kind != "encrypt"
        assert capture.holds(SECRETS[topic]) == readable
        assert capture.holds(SECRETS[topic], DOMAINS[topic]) == readable
        assert capture.holds(f"lagometer/{topic}".encode()) == readable, "what discovery says"
    campaign = open_campaign(tmp_path / "out")
    check_carried(campaign, {left, right})
    shares = [bridge.stay_share for bridge in summarise(campaign).bridges]
    assert len(shares) == len(ADAPTERS)
    assert all(share is not None and 0 < share < 1 for share in shares)


def test_a_bridge_between_two_middleware_is_encrypted_on_both_sides(tmp_path: Path) -> None:
    """Secured participants of both don't meet, but a bridge has one of each."""
    own = {"left": {"adapter": "cyclonedds"}, "right": {"adapter": "fastdds"}}
    study = write_study(tmp_path, own, adapter="cyclonedds", security="encrypt", network="host")
    capture = captured(tmp_path, study, 1)
    for topic, domain in DOMAINS.items():
        assert capture.of_domain(domain)
        assert not capture.holds(SECRETS[topic])
        assert not capture.holds(f"lagometer/{topic}".encode())
    check_carried(open_campaign(tmp_path / "out"), {"encrypt"})


def with_strangers(monkeypatch: pytest.MonkeyPatch, names: Collection[str]) -> None:
    """Lets another authority make everything of these workers' participants."""
    real_plans, real_secured = trials.worker_plans, trials.secured_for

    def elsewhere(context: Context) -> Context:
        assert context.security is not None
        paths = {
            field: path.replace(f"/{FOLDER}/", "/strangers/")
            for field, path in context.security.model_dump().items()
        }
        return context.model_copy(update={"security": context.security.model_copy(update=paths)})

    def plans_for(*arguments: Any, **more: Any) -> list[Plan]:
        return [
            plan.model_copy(update={"contexts": [elsewhere(context) for context in plan.contexts]})
            if plan.worker.name in names
            else plan
            for plan in real_plans(*arguments, **more)
        ]

    def secured_by_two(plans: Sequence[Plan]) -> Secured:
        ours, theirs = real_secured(plans), real_secured(plans)
        files = dict(ours.files["here"])
        for name, text in theirs.files["here"].items():
            files[name.replace(f"{FOLDER}/", "strangers/")] = text
        return Secured(ours.kinds, {"here": files}, ours.reasons)

    monkeypatch.setattr(trials, "worker_plans", plans_for)
    monkeypatch.setattr(trials, "secured_for", secured_by_two)


def rows_of(study: Path) -> pl.DataFrame:
    """The rows of a campaign that was carried out in this process, whether its trials are valid or not."""
    for name in ("netns", "openssl", *ADAPTERS):
        need(name)
    out = study.parent / "out"
    with contextlib.suppress(SystemExit):
        main(["run", str(study), "--out", str(out), "--no-report"])
    return open_campaign(out).cells


@pytest.mark.parametrize("certified", [True, False])
def test_who_has_a_wrong_certificate_gets_nothing_in_either_domain(
    certified: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with right certificates are there from the beginning. Strangers come when all others have
    matched, so that nobody waits for them, and listen for two seconds."""
    late = {} if certified else {"start": "100ms"}
    listeners = {name: {"trigger": "any", "subscribes": [topic], **late} for name, topic in STRANGERS.items()}
    kinds = ["encrypt"] if certified else ["sign", "encrypt"]
    duration = "300ms" if certified else "2s"
    study = write_study(tmp_path, {}, listeners, duration, adapter=ADAPTERS, security=kinds)
    if not certified:
        with_strangers(monkeypatch, STRANGERS)
    rows = rows_of(study)
    assert rows["cell"].n_unique() == len(ADAPTERS) * len(kinds)
    counts = {
        edge: rows.filter(pl.col("edge") == edge)["n"].to_list()
        for edge in ("source→bridge", "bridge→sink", "source→stranger-left", "bridge→stranger-right")
    }
    assert all(count > 0 for edge in ("source→bridge", "bridge→sink") for count in counts[edge]), counts
    for edge in ("source→stranger-left", "bridge→stranger-right"):
        assert all((count > 0) == certified for count in counts[edge]), counts
        assert counts[edge]
        nothing = [f"nothing-received: {edge}" in reasons for reasons in rows["reasons"].to_list()]
        assert all(nothing) if not certified else not any(nothing)


def test_permissions_for_one_domain_do_not_open_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = certificates.permissions
    wrong = {DOMAINS["right"]: DOMAINS["left"]}
    monkeypatch.setattr(certificates, "permissions", lambda name, at: real(name, wrong.get(at, at)))
    rows = rows_of(write_study(tmp_path, adapter=ADAPTERS, security="sign", discovery_timeout="5s"))
    reasons = {cell.split("/")[0]: reasons for cell, reasons in rows.select("cell", "reasons").iter_rows()}
    # Cyclone DDS refuses its own participant; with Fast DDS the others refuse it.
    assert any(
        reason.startswith("adapter-failed: bridge") and "domain 10" in reason
        for reason in reasons["cyclonedds"]
    )
    assert any(
        reason.startswith("endpoints-missing: sink") and "heard 0 of 1" in reason
        for reason in reasons["fastdds"]
    )
    assert not any("domain 5" in reason or "/left" in reason for each in reasons.values() for reason in each)
