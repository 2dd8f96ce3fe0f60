# SPDX-License-Identifier: Apache-2.0
"""Runs an adapter through the abilities, one after the other; each gets one verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from lagometer.conformance.abilities import ABILITIES, NAMES, Ability
from lagometer.conformance.bench import UNSUPPORTED, PeerFailure, Refused, Subject
from lagometer.conformance.findings import AdapterReport, Findings, Otherwise, Result
from lagometer.conformance.manual import Manual, manual_of
from lagometer.conformance.pubsub import NotMet
from lagometer.errors import LagometerError
from lagometer.study.adapters import probe


def examine(
    subject: Subject,
    wanted: Sequence[Ability] = ABILITIES,
    report: Callable[[Result], None] = lambda _: None,
) -> AdapterReport:
    """Checks each wanted ability; `report` gets each result as it arrives. Raises `BadInput`."""
    adapter = subject.adapter
    manual = manual_of(adapter, NAMES)
    version = probe(adapter).version if adapter.built else None
    results = []
    for ability in wanted:
        results.append(_result(subject, ability, manual))
        report(results[-1])
    return AdapterReport(adapter.name, adapter.sidecar.title, version, tuple(results), subject.options)


def _result(subject: Subject, ability: Ability, manual: Manual | None) -> Result:
    if (missing := subject.missing) is not None:
        return Result(ability.name, "not-run", missing)
    lacking = ability.lacks(subject.adapter.sidecar)
    if lacking is not None:
        return _absent(ability, f"declared absent: {lacking}", manual)
    if subject.adapter.sidecar.worker == "python" and ability.not_from_python:
        return Result(ability.name, "not-run", f"not applicable: {ability.not_from_python}")
    began_s = time.monotonic()
    findings = Findings()
    otherwise: Otherwise | None = None
    try:
        otherwise = ability.check(subject, findings)
    except (NotMet, PeerFailure, Refused) as failure:
        if subject.options and isinstance(failure, Refused) and failure.status == UNSUPPORTED:
            return _absent(ability, f"refused with these options: {failure.reason}", manual)
        if not findings.broken or not isinstance(failure, NotMet):
            findings.judge(_last_line(findings), False, str(failure))
    except LagometerError as error:
        if error.exit_code == 130:
            raise
        findings.judge("carried out", False, str(error))
    for warning in subject.noticed:
        findings.note("the machine that the check ran in", warning)
    seconds, lines = time.monotonic() - began_s, tuple(findings.lines)
    if findings.broken:
        first = findings.broken[0]
        more = f" (and {len(findings.broken) - 1} more)" if len(findings.broken) > 1 else ""
        warnings = "".join(f"; {warning}" for warning in subject.noticed)
        return Result(ability.name, "fail", f"{first.name}: {first.detail}{more}{warnings}", lines, seconds)
    if otherwise is None:
        return Result(ability.name, "pass", "", lines, seconds)
    if otherwise.verdict == "not-run":
        return Result(ability.name, "not-run", otherwise.reason, lines, seconds)
    absent = _absent(ability, otherwise.reason, manual)
    return Result(absent.ability, absent.verdict, absent.reason, lines, seconds)


def _last_line(findings: Findings) -> str:
    """Where a check stopped."""
    if findings.under_way:
        return findings.under_way
    return f"after '{findings.lines[-1].name}'" if findings.lines else "from the beginning"


def _absent(ability: Ability, reason: str, manual: Manual | None) -> Result:
    objection = manual.objection(ability.name) if manual is not None else None
    if objection is None:
        return Result(ability.name, "absent", reason)
    return Result(ability.name, "absent-against-manual", f"{reason}, but {objection}")
