# SPDX-License-Identifier: Apache-2.0
"""The factor `security`: how a trial's participants are secured, and whether they confirm it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lagometer.run.companions.certificates import Authority, CertificatesError
from lagometer.run.companions.identities import Identity
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.run.worker.plan import Plan

NONE = "none"


@dataclass(frozen=True)
class Secured:
    """What secures the participants of one trial. kinds: of each worker's participants, by its number; files:
    by host, text by name in the trial's folder; reasons: why there are no files."""

    kinds: Mapping[int, Sequence[str]]
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def noted(self, outcome: TrialOutcome) -> TrialOutcome:
        """The outcome of the trial, with a reason for each participant that reports a different kind."""
        problems: dict[str, None] = {}
        for worker in outcome.workers:
            if worker.ready is None:
                continue
            # Workers describe their participants in the plan's order. One without a description is unsecured.
            participants = [entry for entry in worker.ready.settings if entry.get("object") == "context"]
            for place, kind in enumerate(self.kinds[worker.index]):
                participant = participants[place] if place < len(participants) else {}
                in_force = _security_of(participant.get("effective"))
                if in_force != kind:
                    asked = f"security {kind} asked for, {in_force} in force"
                    problems[f"not-in-force: {participant.get('adapter', worker.name)}: {asked}"] = None
        return replace(outcome, reasons=(*self.reasons, *outcome.reasons, *problems))


def secured_for(plans: Sequence[Plan]) -> Secured:
    """Makes what the participants of one trial need. Each host gets only the keys of its own participants."""
    kinds = {
        plan.worker.index: [context.security.kind if context.security else NONE for context in plan.contexts]
        for plan in plans
    }
    identities = {plan.worker.host: _identities(plans, plan.worker.host) for plan in plans}
    if not any(identities.values()):
        return Secured(kinds)
    try:
        with Authority() as authority:
            files = {host: authority.files(own) for host, own in identities.items() if own}
    except CertificatesError as error:
        return Secured(kinds, reasons=(f"launch-failed: no certificates: {error}",))
    return Secured(kinds, files)


def _identities(plans: Sequence[Plan], host: str) -> list[Identity]:
    return [
        Identity(plan.worker.index, place, context.security.kind, context.domain)
        for plan in plans
        if plan.worker.host == host
        for place, context in enumerate(plan.contexts)
        if context.security is not None
    ]


def _security_of(effective: object) -> object:
    settings = effective.get("settings") if isinstance(effective, dict) else None
    setting = settings.get("security") if isinstance(settings, dict) else None
    return setting.get("value") if isinstance(setting, dict) else NONE
