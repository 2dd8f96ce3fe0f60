# SPDX-License-Identifier: Apache-2.0
"""What can't be signed or encrypted, and why: reasons to exclude a cell with the factor `security`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lagometer.study.adapter import Adapter
from lagometer.study.cell import Cell
from lagometer.study.daemons import daemons_in_use
from lagometer.study.traffic import SecurityKind, Traffic

DOMAIN_MAX = 230  # Cyclone DDS 0.10 rejects a governance with a higher domain
NONE = "none"
OPENSSL = "openssl"  # makes the certificates of a trial


def unsecured(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """Why this cell can't be secured as it requests; yields nothing if it requests no security."""
    secured = [traffic for traffic in cell.traffic.values() if traffic.security != NONE]
    if not secured:
        return
    for name in dict.fromkeys(name for traffic in secured for name in traffic.adapters):
        kinds = dict.fromkeys(traffic.security for traffic in secured if name in traffic.adapters)
        yield from _adapter(cell, adapters[name], list(kinds))
    for pair in sorted({traffic.adapters for traffic in secured if len(set(traffic.adapters)) > 1}):
        causes = [adapters[name].sidecar.limits.security_pair_reason for name in pair]
        statement = f"secured participants of {' and '.join(sorted(pair))} don't meet"
        yield ": ".join([statement, *filter(None, causes)])
    for domain in sorted({domain for traffic in secured for domain in traffic.domains}):
        if domain > DOMAIN_MAX:
            yield f"domain {domain} can't be secured: governance knows 0 to {DOMAIN_MAX}"
    yield from _several_in_one_domain(cell.traffic.values())
    yield from _within_one_process(cell)
    if shutil.which(OPENSSL) is None:
        yield f"security needs the program {OPENSSL}, which is not installed (package: {OPENSSL})"


def _adapter(cell: Cell, adapter: Adapter, kinds: Sequence[SecurityKind]) -> Iterator[str]:
    offered = adapter.sidecar.abilities.security
    for kind in kinds:
        if kind not in offered:
            offered_text = ", ".join(offered) or "none"
            yield f"{adapter.name} does not offer security '{kind}' (it offers: {offered_text})"
    for key, value in cell.options.get(adapter.name, {}).items():
        option = adapter.sidecar.options.get(key)
        if option is not None and value in option.unsecured:
            written = str(value).lower() if isinstance(value, bool) else str(value)
            yield f"{adapter.name} with {key} {written} neither signs nor encrypts"
    for daemon in daemons_in_use(adapter, cell.options, cell.factors.profile):
        yield f"{adapter.name}: its {daemon.name} has no certificate"


def _several_in_one_domain(topics: Iterable[Traffic]) -> Iterator[str]:
    """A governance is for a domain: it protects all its topics in the same way, and admits nobody else."""
    kinds: dict[tuple[str, int], set[str]] = {}
    for traffic in topics:
        for participant in (
            (traffic.publisher_adapter, traffic.domain),
            (traffic.subscriber_adapter, traffic.subscriber_domain),
        ):
            kinds.setdefault(participant, set()).add(traffic.security)
    for (name, domain), found in sorted(kinds.items()):
        if len(found) > 1:
            several = " and ".join(sorted(found))
            yield f"{name} has topics with security {several} in domain {domain}: a domain has one governance"


def _within_one_process(cell: Cell) -> Iterator[str]:
    """A middleware protects what leaves a process. A side of a bridge whose messages never do would be
    measured as if it had no security."""
    within = "within which nothing is signed or encrypted"
    if len(cell.workers) == 1:
        yield f"all nodes are in one process, {within}"
        return
    worker_of = {node: worker for worker, nodes in enumerate(cell.workers) for node in nodes}
    leaves: dict[tuple[str, int], bool] = {}
    for edge in cell.graph.edges():
        traffic = cell.traffic[edge.topic]
        if traffic.security != NONE:
            side = (traffic.publisher_adapter, traffic.domain)
            goes_out = worker_of[edge.publisher] != worker_of[edge.subscriber]
            leaves[side] = leaves.get(side, False) or goes_out
    for (name, domain), goes_out in sorted(leaves.items()):
        if not goes_out:
            yield f"no secured message of {name} in domain {domain} leaves its process, {within}"
