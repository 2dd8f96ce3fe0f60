# SPDX-License-Identifier: Apache-2.0
"""What request and reply can't be, and why: reasons to exclude a cell whose workload has services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lagometer.study.adapter import Adapter
from lagometer.study.cell import Cell
from lagometer.study.traffic import Traffic


def service_topic(traffic: Traffic, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """Why this can't be a topic of a service."""
    for policy in traffic.policies:
        yield f"a request and its reply have no {'keys' if policy == 'instances' else f'QoS {policy}'} here"
    if len(traffic.adapters) > 1:
        yield f"a request and its reply are of one adapter, not of {' and '.join(traffic.adapters)}"
    for name in traffic.adapters:
        if not adapters[name].sidecar.abilities.services:
            yield f"{name} has no request and reply of its own"


def late_servers(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """Why a server can't start late or restart. One that only leaves needs nothing of the adapter."""
    for service in cell.graph.services:
        if not any(cell.graph.start_ns(server) for server in service.servers):
            continue
        for name in cell.traffic[service.request].adapters:
            reason = adapters[name].sidecar.limits.late_server_reason
            if reason:
                yield f"{name}: clients don't find a server that starts while they call: {reason}"
