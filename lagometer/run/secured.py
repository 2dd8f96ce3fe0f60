# SPDX-License-Identifier: Apache-2.0
"""The factor `security`: how a trial's participants are secured, and whether they confirm it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lagometer.run.companions.certificates import Authority, CertificatesError
from lagometer.run.companions.identities import Identity
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.run.worker.plan import Plan
from lagometer.study import Cell

NONE = "none"


@dataclass(frozen=True)
class Secured:
    """What secures the participants of one trial. kind: the cell's; files: by host, text by name in the
    trial's folder; reasons: why there are no files."""

    kind: str = NONE
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def noted(self, outcome: TrialOutcome) -> TrialOutcome:
        """The outcome of the trial, with a reason for each participant that reports a different kind."""
        problems: dict[str, None] = {}
        for worker in outcome.workers:
            for setting in worker.ready.settings if worker.ready is not None else ():
                in_force = _security_of(setting.get("effective"))
                if setting.get("object") == "context" and in_force != self.kind:
                    asked = f"security {self.kind} asked for, {in_force} in force"
                    problems[f"not-in-force: {setting.get('adapter')}: {asked}"] = None
        return replace(outcome, reasons=(*self.reasons, *outcome.reasons, *problems))


def secured_for(cell: Cell, plans: Sequence[Plan]) -> Secured:
    """Makes what the participants of one trial need. Each host gets only the keys of its own participants."""
    kind = cell.factors.security
    if kind == "none":
        return Secured()
    try:
        with Authority(kind) as authority:
            files = {host: authority.files(_identities(plans, host)) for host in cell.hosts}
    except CertificatesError as error:
        return Secured(kind, reasons=(f"launch-failed: no certificates: {error}",))
    return Secured(kind, files)


def _identities(plans: Sequence[Plan], host: str) -> list[Identity]:
    return [
        Identity(plan.worker.index, place)
        for plan in plans
        if plan.worker.host == host
        for place, _ in enumerate(plan.contexts)
    ]


def _security_of(effective: object) -> object:
    settings = effective.get("settings") if isinstance(effective, dict) else None
    setting = settings.get("security") if isinstance(settings, dict) else None
    return setting.get("value") if isinstance(setting, dict) else NONE
