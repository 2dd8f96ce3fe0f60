# SPDX-License-Identifier: Apache-2.0
"""Collects what is known about a trial besides its records: the input of estimates and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl

from lagometer.run.captured import wire_counts
from lagometer.run.companions.links import link_done, link_reasons, link_warnings
from lagometer.run.exchanged import exchanges, slewed
from lagometer.run.transport import OVER_NETWORK, matches
from lagometer.run.worker.layout import topics_read
from lagometer.run.worker.messages import WriterDone
from lagometer.run.worker.outcome import STARTUP, TrialOutcome, WorkerOutcome
from lagometer.stats.trial.recovery import outages_of, recoveries
from lagometer.store.facts import ChainSpec, EdgeSpec, ReaderFacts, TrialFacts, WriterFacts, ways_through
from lagometer.store.observed import KERNEL_COUNTERS, Observed, RealtimeThread
from lagometer.study.adapters import NOT_FOR_MEASURING
from lagometer.study.cell import Cell
from lagometer.study.graph import Edge, Graph, Rule
from lagometer.study.hosts import HERE, Host
from lagometer.study.link_changes import steps_of

FOREVER_NS = 2**63 - 1


def trial_facts(
    cell: Cell,
    trial: int,
    outcome: TrialOutcome,
    reasons: tuple[str, ...] = (),
    hosts: Mapping[str, Host] | None = None,
) -> TrialFacts:
    """Returns the facts of one trial. reasons: those found after the conductor's; hosts: the study's."""
    done = [worker.done for worker in outcome.workers if worker.done is not None]
    warnings = [
        f"{worker.name}: {warning}"
        for worker in outcome.workers
        for message in (worker.ready, worker.done)
        if message is not None
        for warning in message.warnings
    ]
    warnings += builds_for_tests(outcome.workers)
    warnings += slewed(outcome, hosts or {})
    encrypts = any(traffic.security == "encrypt" for traffic in cell.traffic.values())
    wire, wire_warnings = wire_counts(outcome, encrypts)
    warnings += wire_warnings
    links = [link_done(link) for _, link in outcome.links]
    warnings += [warning for link in links for warning in link_warnings(link)]
    observation = observed(cell, outcome, wire)
    link_failures = [reason for link in links for reason in link_reasons(link, bool(outcome.reasons))]
    link_failures += past_the_link(cell, observation)
    timers = _timers(cell.graph)
    return TrialFacts(
        cell=cell.id,
        trial=trial,
        factors=cell.columns(),
        edges=edge_specs(
            cell,
            _joined_ns(cell, outcome),
            outcome.begin_ns,
            clocks_of(outcome),
            start_order(cell, outcome.workers),
        ),
        chains=chain_specs(cell.graph, cell.forwards),
        forwarding=frozenset(cell.forwarding),
        source_streams=cell.graph.source_streams(),
        sink_edges=cell.graph.sink_edges(),
        closed_loop=cell.graph.closed_loop,
        begin_ns=outcome.begin_ns,
        measure_begin_ns=outcome.measure_begin_ns,
        measure_end_ns=outcome.measure_end_ns,
        drain_end_ns=outcome.drain_end_ns,
        cpu_ns=sum(process.cpu_ns for process in done)
        + sum(process.cpu_ns or 0 for process in outcome.daemons),
        overhead_s=outcome.overhead_s,
        started=outcome.started,
        writers=tuple(
            _writer_facts(writer, timers.get(writer.stream), cell.graph)
            for worker_done in done
            for writer in worker_done.writers
        ),
        readers=tuple(
            ReaderFacts(**reader.model_dump()) for worker_done in done for reader in worker_done.readers
        ),
        reasons=(*outcome.reasons, *reasons, *link_failures),
        warnings=(*outcome.warnings, *dict.fromkeys(warnings)),
        observed=observation,
        discovery_ns=outcome.discovery_ns,
        workers_started_ns=outcome.workers_started_ns,
        join_startup_ns=_join_startup_ns(cell, outcome),
        exchanges=exchanges(outcome, hosts or {}),
        startup_ns=_startup_ns(
            [worker for worker in outcome.workers if not cell.worker_start_ns(worker.index)]
        ),
    )


def past_the_link(cell: Cell, observation: Observed | None) -> list[str]:
    """Why this trial did not use its link: on one host messages can take another way."""
    if cell.link is None or observation is None or len(cell.hosts) > 1:
        return []
    crossing = crossing_edges(cell)
    past = "past the link on the loopback: choose a transport over the network"
    return [
        f"link-not-crossed: messages of {match.edge} went by {' or '.join(match.possible)}, {past}"
        for match in observation.matches
        if match.edge in crossing and match.possible and not OVER_NETWORK & set(match.possible)
    ]


def crossing_edges(cell: Cell) -> list[str]:
    """Returns the edges whose messages go over the link, if the cell has one: from one host to another, or on
    one host from one process to another."""
    worker_of = {node: index for index, nodes in enumerate(cell.workers) for node in nodes}
    place_of = cell.host_of if len(cell.hosts) > 1 else worker_of
    return [edge.name for edge in cell.graph.edges() if place_of[edge.publisher] != place_of[edge.subscriber]]


def outage_recoveries(cell: Cell, outcome: TrialOutcome, samples: pl.DataFrame) -> list[Mapping[str, Any]]:
    """Returns how long after each outage of the link messages arrived again, by edge. Empty if hosts have
    clocks of their own: a recovery needs one clock."""
    if cell.link is None or not cell.link.changes or not all(host.clock.same for host in outcome.hosts):
        return []
    length_ns = outcome.measure_end_ns - outcome.measure_begin_ns
    changes = [(step.at_ns, step.loss >= 1) for step in steps_of(cell.link, cell.link.changes, length_ns)]
    outages = outages_of(changes, outcome.measure_begin_ns, outcome.drain_end_ns)
    return recoveries(samples, crossing_edges(cell), outages)


def builds_for_tests(workers: Sequence[WorkerOutcome]) -> list[str]:
    """Returns a warning for each adapter whose version says that it was built for tests, not for
    measurements."""
    versions = {
        adapter.name: adapter.library_version or ""
        for worker in workers
        if worker.ready is not None
        for adapter in worker.ready.adapters
    }
    return [
        f"build: {name} {version}; to measure: tools/setup --rust"
        for name, version in sorted(versions.items())
        if version.endswith(NOT_FOR_MEASURING)
    ]


def _startup_ns(workers: Sequence[WorkerOutcome]) -> dict[str, int]:
    """Returns when the last worker reached each step, without steps that some workers never reached."""
    return {
        name: max(worker.startup_ns[name] for worker in workers)
        for name in STARTUP.values()
        if workers and all(name in worker.startup_ns for worker in workers)
    }


def observed(cell: Cell, outcome: TrialOutcome, wire: Mapping[str, int]) -> Observed | None:
    """Returns what was observed of the trial from outside; None if it ended before its common start.

    wire: the counts of its captured packets.
    """
    evidence = outcome.evidence
    if evidence is None:
        return None
    done = [(worker, worker.done) for worker in outcome.workers if worker.done is not None]
    limits = {
        index: host.evidence.realtime_limit
        for host in outcome.hosts
        if host.evidence is not None
        for index in host.workers
    }
    daemon_cpu_ns = _sum([daemon.cpu_ns for daemon in outcome.daemons])
    daemon_bytes = _sum([daemon.pss_bytes for daemon in outcome.daemons])
    return Observed(
        window_ns=evidence.window_ns,
        private=evidence.private,
        kernel={name: evidence.network[name] for name in KERNEL_COUNTERS if name in evidence.network},
        clocks=evidence.clocks,
        other_clocks=tuple(host.evidence.clocks for host in outcome.hosts[1:] if host.evidence is not None),
        load=evidence.load,
        realtime_threads=tuple(
            RealtimeThread(
                worker=worker.name,
                name=str(thread.get("name")),
                run_ns=int(thread["run_ns"]),
                wait_ns=int(thread["wait_ns"]),
                limit=limits.get(worker.index),
            )
            for worker, worker_done in done
            for thread in worker_done.threads
            if thread.get("policy") == "fifo" and "run_ns" in thread and "wait_ns" in thread
        ),
        involuntary_switches=sum(worker_done.context_switches.involuntary for _, worker_done in done),
        matches=matches(cell, outcome),
        interference_cpu_ns=outcome.load.cpu_ns if outcome.load is not None else None,
        interference_achieved_per_s=outcome.load.achieved_per_s if outcome.load is not None else None,
        link_cpu_ns=_sum([link.cpu_ns for _, link in outcome.links]) if outcome.links else None,
        memory_pss_bytes=_sum([evidence.workers_bytes, daemon_bytes if outcome.daemons else 0]),
        daemon_cpu_ns=daemon_cpu_ns if outcome.daemons else None,
        daemon_pss_bytes=daemon_bytes if outcome.daemons else None,
        wire=wire,
    )


def _sum(figures: Sequence[int | None]) -> int | None:
    """Returns the sum; None if one is not known."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if len(known) == len(figures) else None


def _joined_ns(cell: Cell, outcome: TrialOutcome) -> dict[str, int]:
    """Returns when each node that joined late had created its endpoints."""
    return {
        node: outcome.workers_started_ns + worker.startup_ns["participant"]
        for worker in outcome.workers
        if cell.worker_start_ns(worker.index) and "participant" in worker.startup_ns
        for node in cell.workers[worker.index]
    }


def _join_startup_ns(cell: Cell, outcome: TrialOutcome) -> dict[str, dict[str, int]]:
    """Returns how long each node that joined late took to start: its process, which starts with the others
    and waits, and its participants, counted from its admission."""
    by_node: dict[str, dict[str, int]] = {}
    for worker in outcome.workers:
        startup_ns = worker.startup_ns
        if cell.worker_start_ns(worker.index) and {"process", "plan", "participant"} <= startup_ns.keys():
            durations_ns = {
                "process": startup_ns["process"],
                "participant": startup_ns["participant"] - startup_ns["plan"],
            }
            by_node |= dict.fromkeys(cell.workers[worker.index], durations_ns)
    return by_node


def start_order(cell: Cell, workers: Sequence[WorkerOutcome]) -> list[str]:
    """Returns the nodes in the order in which their processes had created their endpoints; the nodes of one
    process, and those of processes that never did, in the workload's order."""
    created_ns = {
        worker.index: worker.startup_ns["participant"]
        for worker in workers
        if "participant" in worker.startup_ns
    }
    never = max(created_ns.values(), default=0) + 1
    order = sorted(range(len(cell.workers)), key=lambda index: created_ns.get(index, never))
    return [node for index in order for node in cell.workers[index]]


def edge_specs(
    cell: Cell,
    joined_ns: Mapping[str, int] | None = None,
    begin_ns: int = 0,
    clocks: Mapping[str, str] | None = None,
    order: Sequence[str] = (),
) -> tuple[EdgeSpec, ...]:
    """Returns every stream as each of its readers sees it.

    joined_ns: of the nodes that joined late; begin_ns: the common start; clocks: host → the host whose clock
    it has; order: the nodes as they started, empty for the workload's order.
    """
    joined = joined_ns or {}
    left_ns = {node.name: begin_ns + node.stop_ns for node in cell.graph.nodes if node.stop_ns}
    graph, traffic = cell.graph, cell.traffic
    calls_ns, waits_for, timed = _calls_ns(graph, begin_ns), _waits_for(graph), _timed(graph)

    def host_of(node: str) -> str:
        return cell.host_of.get(node, HERE)

    def clock_of(node: str) -> str:
        return (clocks or {}).get(host_of(node), "")

    started = list(order) or start_order(cell, ())
    return tuple(
        EdgeSpec(
            name=edge.name,
            stream=edge.stream,
            sender=edge.publisher,
            receiver=edge.subscriber,
            receiver_node=graph.node_index(edge.subscriber),
            reader=topics_read(graph, edge.subscriber).index(edge.topic),
            reliability=traffic[edge.topic].reliability,
            history=traffic[edge.topic].history,
            payload_bytes=traffic[edge.topic].payload_bytes,
            sizes_bytes=traffic[edge.topic].sizes_bytes,
            lifespan_ns=traffic[edge.topic].lifespan_ns,
            receiver_start=started.index(edge.subscriber),
            sender_host=host_of(edge.publisher),
            receiver_host=host_of(edge.subscriber),
            sender_clock=clock_of(edge.publisher),
            receiver_clock=clock_of(edge.subscriber),
            sender_joined_ns=joined.get(edge.publisher),
            receiver_joined_ns=joined.get(edge.subscriber),
            sender_left_ns=left_ns.get(edge.publisher),
            receiver_left_ns=left_ns.get(edge.subscriber),
            polled=cell.factors.dispatch == "poll",
            in_order=edge.stream not in graph.answered and traffic[edge.topic].instances <= 1,
            called=edge.topic in graph.service_of,
            calls_ns=calls_ns.get(edge.name),
            waits_for=waits_for.get((edge.subscriber, edge.topic), ()),
            timed=edge.stream in timed,
        )
        for edge in graph.edges()
    )


def _waits_for(graph: Graph) -> dict[tuple[str, str], tuple[int, ...]]:
    """Returns, by node and topic, the other readers of a rule that waits for each of its topics."""
    return {
        (rule.node, topic): tuple(
            topics_read(graph, rule.node).index(other) for other in rule.reads if other != topic
        )
        for rule in graph.rules
        if rule.trigger == "all"
        for topic in rule.reads
    }


def _timed(graph: Graph) -> set[int]:
    """Returns the streams that do not wait for a message."""
    return {
        graph.stream_number(rule.node, topic)
        for rule in graph.rules
        if rule.trigger in ("timer", "closed_loop")
        for topic in rule.writes
    }


def _calls_ns(graph: Graph, begin_ns: int) -> dict[str, tuple[int, int]]:
    """Returns, for the requests to a server that is not always there, or of such a client, from when until
    when they belong to that server: to one that restarts, until it leaves; then to the one that replaces it.
    """
    lives = {node.name: node for node in graph.nodes}
    times_ns = {}
    for edge in graph.edges():
        service, server = graph.service_of.get(edge.topic), lives[edge.subscriber]
        if service is None or edge.topic != service.request:
            continue
        ends = (lives[edge.publisher], server)
        if not any(node.start_ns or node.stop_ns for node in ends):
            continue
        from_ns = begin_ns + lives[server.again_of].stop_ns if server.again_of else 0
        is_replaced = any(lives[other].again_of == server.name for other in service.servers)
        until_ns = begin_ns + server.stop_ns if is_replaced else FOREVER_NS
        times_ns[edge.name] = (from_ns, until_ns)
    return times_ns


def clocks_of(outcome: TrialOutcome) -> dict[str, str]:
    """Returns for each host whose clock it has: empty for the conductor's."""
    return {host.name: "" if host.clock.same else host.name for host in outcome.hosts}


def chain_specs(graph: Graph, forwards: Callable[[Edge, Edge], bool]) -> tuple[ChainSpec, ...]:
    """Returns the named chains, whether each returns exactly once to the node where it began, and where a
    bridge is on its way (docs/methodology/chains.md).

    forwards: whether a bridge passes on the messages that it takes on the first edge as those of the second.
    """
    edges = {edge.name: edge for edge in graph.edges()}
    specs = []
    for chain in graph.chains:
        way = [edges[name] for name in chain.edges]
        # If messages go back and forth several times, as in an action, half of the chain is not a one-way
        # path.
        back = [edge.subscriber == way[0].publisher for edge in way]
        returns = back[-1] and sum(back) == 1
        places, returns = ways_through([forwards(*hop) for hop in pairwise(way)], returns)
        forwarded = frozenset(chain.edges[place] for place in places)
        specs.append(ChainSpec(chain.name, chain.edges, returns, forwarded))
    return tuple(specs)


def _timers(graph: Graph) -> dict[int, Rule]:
    """Returns the timer of each stream that is sent only by that timer."""
    timers: dict[int, Rule] = {}
    shared: set[int] = set()
    for rule in graph.rules:
        for topic in rule.writes:
            stream = graph.stream_number(rule.node, topic)
            if rule.trigger == "timer" and stream not in timers:
                timers[stream] = rule
            else:
                shared.add(stream)
    return {stream: rule for stream, rule in timers.items() if stream not in shared}


def _writer_facts(writer_done: WriterDone, timer: Rule | None, graph: Graph) -> WriterFacts:
    """Returns what a worker reported about a writer, and what is known of its schedule."""
    facts = WriterFacts(**writer_done.model_dump())
    if timer is None:
        return facts
    # If a node joins late or leaves early, its worker counts the messages that are due.
    partly = graph.start_ns(timer.node) > 0 or graph.stop_ns(timer.node) > 0
    even = timer.schedule.kind == "periodic" and not timer.jitter_ns and not partly
    period_ns = timer.period_ns if even else None
    return replace(facts, period_ns=period_ns, at_once=timer.schedule.messages)
