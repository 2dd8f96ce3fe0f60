# SPDX-License-Identifier: Apache-2.0
"""Hosts alone: from a study, or from a file that contains only `hosts:`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lagometer.errors import BadInput
from lagometer.study.adapter import Adapter
from lagometer.study.adapters import discover_adapters
from lagometer.study.document import read_document
from lagometer.study.hosts import KEY, Host, hosts_of_file
from lagometer.study.load import load_study
from lagometer.study.matrix import expand


def load_hosts(path: Path) -> tuple[Mapping[str, Host], Mapping[str, Adapter]]:
    """Returns the hosts, and the adapters to run on them: those of the study's cells or, for a file of hosts
    alone, those that reach other hosts and are built here. Raises BadInput."""
    document, _ = read_document(path)
    keys = [key.text for key, _ in document.entries]
    if KEY not in keys:
        raise BadInput(
            "no hosts", where=str(path), hint="write `hosts: {robot: {launcher: ssh, address: 192.168.1.2}}`"
        )
    if keys != [KEY]:
        study = load_study(path)
        adapters = discover_adapters(study.options)
        adapter_names = dict.fromkeys(
            name for cell in expand(study, adapters).cells for name in cell.adapters
        )
        return study.hosts, {name: adapters[name] for name in adapter_names}
    hosts = hosts_of_file(path)
    adapters = discover_adapters()
    return hosts, {
        name: adapter
        for name, adapter in adapters.items()
        if adapter.built and adapter.sidecar.scope == "network"
    }
