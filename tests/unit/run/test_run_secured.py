# SPDX-License-Identifier: Apache-2.0
"""Certificates of a trial: who has which, that they are vouched for, and that plans name them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from needs import need
from study_adapters import SPECIAL, write_adapters

from lagometer.run.companions.certificates import Authority, CertificatesError, governance
from lagometer.run.companions.identities import Identity
from lagometer.run.secured import Secured, secured_for
from lagometer.run.worker.layout import worker_plans
from lagometer.run.worker.messages import Ready
from lagometer.run.worker.outcome import TrialOutcome, WorkerOutcome
from lagometer.run.worker.plan import Plan
from lagometer.study import Expansion, expand, study_from_mapping

HOSTS = {"robot": {"launcher": "local"}, "base": {"launcher": "local", "runs": ["sink"]}}


@pytest.fixture(autouse=True)
def _can_be_secured(monkeypatch: pytest.MonkeyPatch) -> None:
    secured = {**SPECIAL["cyclonedds"]["abilities"], "security": ["sign", "encrypt"]}
    options = {
        **SPECIAL["cyclonedds"]["options"],
        "loud": {"type": "boolean", "description": "", "unsecured": [True]},
    }
    limits = {**SPECIAL["cyclonedds"]["limits"], "security_pair_reason": "its handshake"}
    more = {"abilities": secured, "options": options, "limits": limits}
    monkeypatch.setitem(SPECIAL, "cyclonedds", {**SPECIAL["cyclonedds"], **more})


BRIDGED = """
topics:
  left: {{domain: 5}}
  right: {{domain: {domain}, security: {security}}}
nodes:
  source: {{trigger: timer, publishes: [left]}}
  bridge: {{trigger: any, subscribes: [left], publishes: [right]}}
  sink: {{trigger: any, subscribes: [right]}}
"""


def bridged(
    tmp_path: Path, security: str, domain: int = 10, top: dict[str, Any] | None = None, **matrix: Any
) -> tuple[Expansion, list[Plan]]:
    """A bridge whose first side is encrypted, and whose other is like this."""
    path = tmp_path / "bridged.yaml"
    path.write_text(BRIDGED.format(domain=domain, security=security))
    return expanded(tmp_path, top, workload=str(path), security="encrypt", **matrix)


def expanded(
    tmp_path: Path, top: dict[str, Any] | None = None, **matrix: Any
) -> tuple[Expansion, list[Plan]]:
    adapters = write_adapters(tmp_path)
    mapping = {
        "name": "x",
        "matrix": {"adapter": "cyclonedds", "workload": "pipeline-3", **matrix},
        **(top or {}),
    }
    study = study_from_mapping(mapping, "test")
    found = expand(study, adapters, cpus=(0, 1))
    return found, worker_plans(study, found.cells[0], 0, adapters) if found.cells else []


def openssl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *arguments], capture_output=True)


def test_what_is_made_is_what_plans_name_and_the_authority_vouches_for_it(tmp_path: Path) -> None:
    need("openssl")
    found, plans = expanded(tmp_path, security="encrypt", participants="per-process")
    assert len(found.cells) == 1
    files = secured_for(plans).files["here"]
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    prefix = f"{plans[0].runtime_directory}/"
    named = set()
    for plan in plans:
        for context in plan.contexts:
            assert context.security is not None
            told = context.security.model_dump()
            assert told.pop("kind") == "encrypt"
            named |= {path.removeprefix(prefix) for path in told.values()}
            mine = {name: str(tmp_path / path.removeprefix(prefix)) for name, path in told.items()}
            assert openssl("verify", "-CAfile", mine["identity_ca"], mine["certificate"]).returncode == 0
            for name in ("governance", "permissions"):
                seen = openssl(
                    "smime", "-verify", "-text", "-in", mine[name], "-CAfile", mine["permissions_ca"]
                )
                assert seen.returncode == 0, seen.stderr
            subject = openssl("x509", "-in", mine["certificate"], "-noout", "-subject", "-nameopt", "RFC2253")
            assert (
                f"<subject_name>{subject.stdout.decode().strip().removeprefix('subject=')}<"
                in files[mine["permissions"].removeprefix(f"{tmp_path}/")]
            )
    assert named == set(files)
    keys = [text for text in files.values() if "PRIVATE KEY" in text]
    assert len(keys) == len(set(keys)) == len(plans), (
        "each participant has its own, and nobody the authority's"
    )


def test_a_host_gets_the_keys_of_its_own_participants(tmp_path: Path) -> None:
    need("openssl")
    _, plans = expanded(
        tmp_path,
        {"hosts": HOSTS},
        security="sign",
        hosts="robot+base",
        network="host",
        reliability="reliable",
    )
    secured = secured_for(plans)
    keys = {
        host: {name for name in files if name.endswith("key.pem")} for host, files in secured.files.items()
    }
    assert keys == {
        "robot": {Identity(worker, 0, "sign", 0).private_key for worker in (0, 1)},
        "base": {Identity(2, 0, "sign", 0).private_key},
    }
    assert secured.files["robot"]["security/authority.pem"] == secured.files["base"]["security/authority.pem"]


def test_without_security_nothing_is_made(tmp_path: Path) -> None:
    _, plans = expanded(tmp_path)
    assert secured_for(plans).files == {}
    assert all("security" not in context for plan in plans for context in plan.model_dump()["contexts"])


def test_a_bridge_has_an_identity_in_each_domain_which_opens_no_other(tmp_path: Path) -> None:
    need("openssl")
    _, plans = bridged(tmp_path, "sign")
    files = secured_for(plans).files["here"]
    participants = {
        (plan.worker.name, context.domain): context.security for plan in plans for context in plan.contexts
    }
    kinds = {at: security.kind for at, security in participants.items() if security is not None}
    assert kinds == {
        ("source", 5): "encrypt",
        ("bridge", 5): "encrypt",
        ("bridge", 10): "sign",
        ("sink", 10): "sign",
    }
    prefix = f"{plans[0].runtime_directory}/"
    for (_, domain), security in participants.items():
        assert security is not None
        permissions = files[security.permissions.removeprefix(prefix)]
        assert f"<domains><id>{domain}</id></domains>" in permissions
        assert permissions.count("<domains>") == 1
        governance = files[security.governance.removeprefix(prefix)]
        assert f"<data_protection_kind>{security.kind.upper()}<" in governance
    certificates = {security.certificate for security in participants.values() if security is not None}
    assert len({files[path.removeprefix(prefix)] for path in certificates}) == len(participants)


def test_a_side_without_security_gets_nothing(tmp_path: Path) -> None:
    need("openssl")
    top = {"hosts": HOSTS}
    _, plans = bridged(tmp_path, "none", top=top, hosts="robot+base", network="host", reliability="reliable")
    in_plans = {
        (plan.worker.name, context.domain): context.security is not None
        for plan in plans
        for context in plan.contexts
    }
    assert in_plans == {("source", 5): True, ("bridge", 5): True, ("bridge", 10): False, ("sink", 10): False}
    secured = secured_for(plans)
    assert set(secured.files) == {"robot"}
    assert sum(name.endswith("key.pem") for name in secured.files["robot"]) == 2


def test_each_participant_confirms_its_own_kind() -> None:
    """The second of the worker's participants says what the first was asked for."""
    settings = [
        {"adapter": "a", "object": what, "effective": {"settings": {"security": {"value": kind}}}}
        for what, kind in (("context", "encrypt"), ("context", "encrypt"), ("writer x", "none"))
    ]
    worker = WorkerOutcome(0, "bridge", Ready(event="ready", settings=settings), None, None, "")
    outcome = TrialOutcome((worker,), 0, 0, 0, 0, "", 0.0, 0.0, {})
    assert Secured({0: ["encrypt", "encrypt"]}).noted(outcome).reasons == ()
    (reason,) = Secured({0: ["encrypt", "none"]}).noted(outcome).reasons
    assert reason == "not-in-force: a: security none asked for, encrypt in force"


def test_a_participant_that_is_not_described_has_nothing_in_force() -> None:
    """The second side of a bridge, whose worker tells of the first alone."""
    described = {"security": {"value": "encrypt"}}
    settings = [{"adapter": "a", "object": "context", "effective": {"settings": described}}]
    worker = WorkerOutcome(0, "bridge", Ready(event="ready", settings=settings), None, None, "")
    outcome = TrialOutcome((worker,), 0, 0, 0, 0, "", 0.0, 0.0, {})
    assert Secured({0: ["encrypt", "none"]}).noted(outcome).reasons == ()
    (reason,) = Secured({0: ["encrypt", "sign"]}).noted(outcome).reasons
    assert reason == "not-in-force: bridge: security sign asked for, none in force"


@pytest.mark.parametrize(
    ("security", "together", "domain"),
    [("sign", "bridge, sink", 10), ("sign", "source, bridge", 5), ("none", "source, bridge", 5)],
)
def test_a_side_whose_messages_never_leave_a_process_is_not_secured(
    security: str, together: str, domain: int, tmp_path: Path
) -> None:
    path = tmp_path / "bridged.yaml"
    path.write_text(BRIDGED.format(domain=10, security=security) + f"groups: {{together: [{together}]}}\n")
    found, _ = expanded(tmp_path, workload=str(path), security="encrypt", placement="groups")
    (excluded,) = found.excluded
    assert excluded.reason == (
        f"no secured message of cyclonedds in domain {domain} leaves its process, "
        "within which nothing is signed or encrypted"
    )


def test_a_side_without_security_may_be_within_a_process(tmp_path: Path) -> None:
    path = tmp_path / "bridged.yaml"
    path.write_text(BRIDGED.format(domain=10, security="none") + "groups: {together: [bridge, sink]}\n")
    found, _ = expanded(tmp_path, workload=str(path), security="encrypt", placement="groups")
    assert len(found.cells) == 1


def test_a_domain_has_one_kind_of_security(tmp_path: Path) -> None:
    found, _ = bridged(tmp_path, "none", domain=5)
    assert found.excluded[0].reason == (
        "cyclonedds has topics with security encrypt and none in domain 5: a domain has one governance"
    )


def test_only_a_secured_domain_must_be_one_that_governance_knows(tmp_path: Path) -> None:
    found, _ = bridged(tmp_path, "none", domain=231)
    assert not found.excluded
    found, _ = bridged(tmp_path, "sign", domain=231)
    assert found.excluded[0].reason == "domain 231 can't be secured: governance knows 0 to 230"


def test_what_a_topic_says_itself_does_not_follow_the_factor(tmp_path: Path) -> None:
    path = tmp_path / "bridged.yaml"
    text = BRIDGED.format(domain=10, security="sign")
    path.write_text(text.replace("domain: 5", "domain: 5, security: none"))
    found, plans = expanded(tmp_path, workload=str(path), security=["none", "encrypt"])
    assert [cell.columns()["security"] for cell in found.cells] == [None]
    assert "every topic of bridged has its own security: measured once" in found.excluded[0].reason
    assert sum(context.security is not None for plan in plans for context in plan.contexts) == 2


def test_two_trials_share_nothing(tmp_path: Path) -> None:
    need("openssl")
    _, plans = expanded(tmp_path, security="sign")
    one, other = (set(secured_for(plans).files["here"].values()) for _ in range(2))
    assert not one & other


def test_sign_encrypts_nothing() -> None:
    assert "ENCRYPT" not in governance("sign")
    assert governance("encrypt").count("ENCRYPT") == 4


def test_what_openssl_says_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    need("openssl")
    with (
        Authority() as authority,
        pytest.raises(CertificatesError, match="openssl smime ended with 3: Unable to load"),
    ):
        (authority._at / "authority.pem").write_text("no certificate")
        authority.files([Identity(0, 0, "sign", 0)])


@pytest.mark.parametrize(
    ("top", "matrix", "reason"),
    [
        ({}, {"adapter": "fastdds"}, "fastdds does not offer security 'sign' (it offers: none)"),
        (
            {},
            {"adapter": "cyclonedds+fastdds"},
            "secured participants of cyclonedds and fastdds don't meet: its handshake",
        ),
        ({}, {"domain": 231}, "domain 231 can't be secured: governance knows 0 to 230"),
        ({}, {"placement": "single-process"}, "within which nothing is signed or encrypted"),
        (
            {"options": {"cyclonedds": {"loud": True}}},
            {},
            "cyclonedds with loud true neither signs nor encrypts",
        ),
    ],
)
def test_what_can_not_be_secured_is_excluded(
    top: dict[str, Any], matrix: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    found, _ = expanded(tmp_path, top, security="sign", **matrix)
    assert reason in found.excluded[0].reason


def test_without_openssl_it_is_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found, _ = expanded(tmp_path, security="sign")
    assert found.excluded[0].reason == (
        "security needs the program openssl, which is not installed (package: openssl)"
    )
