# SPDX-License-Identifier: Apache-2.0
"""The paths of the files that secure a participant (OMG DDS Security 1.1), and the name it carries.

The names are fixed before the files exist: plans name them, `certificates.py` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["sign", "encrypt"]
FOLDER = "security"  # in the trial's own folder
AUTHORITY = "authority.pem"  # the certificate that signs for participants, governance and permissions


@dataclass(frozen=True)
class Identity:
    """One participant of a trial. worker: the number of its worker; context: its place among the worker's
    contexts; kind: how its domain is protected; domain: the only one that it may join."""

    worker: int
    context: int
    kind: Kind
    domain: int

    @property
    def name(self) -> str:
        """Its common name, unique in the trial, and its folder."""
        return f"participant-{self.worker}-{self.context}"

    @property
    def certificate(self) -> str:
        """The path of its certificate in the trial's folder."""
        return f"{FOLDER}/{self.name}/certificate.pem"

    @property
    def private_key(self) -> str:
        """The path of its key."""
        return f"{FOLDER}/{self.name}/key.pem"

    @property
    def governance(self) -> str:
        """The path of its domain's governance, which others with the same kind share."""
        return f"{FOLDER}/governance-{self.kind}.p7s"

    @property
    def permissions(self) -> str:
        """The path of its permissions."""
        return f"{FOLDER}/{self.name}/permissions.p7s"
