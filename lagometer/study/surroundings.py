# SPDX-License-Identifier: Apache-2.0
"""What decides beside a cell itself whether it can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lagometer.study.adapter import Adapter
from lagometer.study.hosts import Host


@dataclass(frozen=True)
class Surroundings:
    """What reasons depend on besides the cell: adapters by name, the CPUs that this process may use, the
    study's hosts, and whether it captures packets and stamps layers."""

    adapters: Mapping[str, Adapter]
    cpus: tuple[int, ...]
    hosts: Mapping[str, Host] = field(default_factory=dict)
    captures: bool = False
    layers: bool = False
