# SPDX-License-Identifier: Apache-2.0
"""Why a combination of factors cannot exist. Each rule is one function that returns reasons in words.

A reason is never an error: the cell is listed as excluded, with every reason that applies.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from lagometer.study.adapter import Adapter
from lagometer.study.bridge_reasons import not_bridged
from lagometer.study.cell import Cell, Factors
from lagometer.study.daemons import daemons_in_use, missing_daemons
from lagometer.study.device_rules import device_reasons
from lagometer.study.graph import Graph
from lagometer.study.hosts import HERE, SSH, divided
from lagometer.study.interference import NETWORK, host_named, kind_and_level, missing_program
from lagometer.study.interference import NONE as NO_LOAD
from lagometer.study.links import link_reasons, too_many_changes
from lagometer.study.option_libraries import missing_libraries
from lagometer.study.own_installation import PRODUCTS, look_for
from lagometer.study.payload import holds_envelope, payload_reasons
from lagometer.study.policies import Policy
from lagometer.study.processors import processor_reasons, served_together, topics_read
from lagometer.study.security import unsecured
from lagometer.study.service_rules import late_servers, service_topic
from lagometer.study.sidecar import Limits
from lagometer.study.source_reasons import source_reasons
from lagometer.study.stacking import Options
from lagometer.study.surroundings import Surroundings
from lagometer.study.traffic import Traffic

# The programs that capture packets and dissect them afterwards; for each, its Debian package.
CAPTURE_PROGRAMS = {"dumpcap": "wireshark-common", "tshark": "tshark"}


def reasons(
    cell: Cell, template: Graph, warmup_ns: int, measure_ns: int, surroundings: Surroundings
) -> list[str]:
    """Why this cell cannot run here; empty if it can.

    template: its workload before rate and work are filled in.
    """
    factors, names = cell.factors, cell.adapters
    if cell_reasons := list(_own_installations(names, surroundings.adapters)):
        return cell_reasons
    for name in names:
        adapter = surroundings.adapters[name]
        if adapter.missing is not None:
            cell_reasons.append(f"{name}: {adapter.missing}" if len(names) > 1 else adapter.missing)
        cell_reasons += _placement(name, adapter, cell, cell.options)
        cell_reasons += _profile(name, adapter, factors)
        cell_reasons += _scale(name, adapter.sidecar.limits, cell)
        # What another machine lacks is asked from its agent before the first trial (run/lacking.py).
        if not _elsewhere(cell.hosts[0], surroundings):
            cell_reasons += missing_daemons(adapter, cell.options, factors.profile)
        if not all(_elsewhere(host, surroundings) for host in cell.hosts):
            cell_reasons += missing_libraries(adapter, cell.options)
    for name in dict.fromkeys(topic_traffic.subscriber_adapter for topic_traffic in cell.traffic.values()):
        cell_reasons += _dispatch(surroundings.adapters[name], factors)
    for topic, traffic in cell.traffic.items():
        prefix = f"topic '{topic}': " if topic in cell.graph.topics else ""
        serves = topic in cell.graph.service_of
        cell_reasons += (
            prefix + reason for reason in _topic(topic, traffic, cell.graph, surroundings.adapters, serves)
        )
        if cell.sides_of(traffic) is None:  # otherwise neither end gets a message of the other
            cell_reasons += (prefix + reason for reason in _pair(traffic, surroundings.adapters))
        if serves:
            cell_reasons += service_topic(traffic, surroundings.adapters)
    cell_reasons += late_servers(cell, surroundings.adapters)
    cell_reasons += _groups(cell, surroundings.adapters)
    cell_reasons += _hosts(cell, surroundings)
    cell_reasons += _capture(cell, surroundings)
    cell_reasons += _link(cell, measure_ns, surroundings)
    cell_reasons += unsecured(cell, surroundings.adapters)
    cell_reasons += not_bridged(cell, surroundings)
    cell_reasons += _waits(cell, surroundings.adapters)
    cell_reasons += _executors(cell, surroundings.adapters)
    cell_reasons += _worker(cell, surroundings.adapters)
    cell_reasons += source_reasons(cell, template, warmup_ns, measure_ns)
    workers_here = [
        worker
        for worker in range(len(cell.workers))
        if not _elsewhere(cell.worker_host(worker), surroundings)
    ]
    cell_reasons += processor_reasons(cell, workers_here, surroundings.cpus)
    if not all(_elsewhere(host, surroundings) for host in _loaded(cell)):
        cell_reasons += filter(None, [missing_program(factors.interference)])
    if factors.tuning != "none" and os.geteuid() != 0:
        cell_reasons.append("tuning needs root")
    return list(dict.fromkeys(cell_reasons))


def _elsewhere(host: str, surroundings: Surroundings) -> bool:
    """Whether a host is another machine."""
    return host in surroundings.hosts and surroundings.hosts[host].launcher == SSH


def _loaded(cell: Cell) -> tuple[str, ...]:
    """The hosts that need the program that makes the cell's load."""
    load = cell.factors.interference
    if load != NO_LOAD and kind_and_level(load)[0] == NETWORK:
        return cell.hosts
    return (host_named(load) or cell.hosts[0],)


def _own_installations(names: Collection[str], adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """The only possible reason if nobody has written the cell's adapter."""
    for name in names:
        if name not in adapters:
            says = look_for(PRODUCTS[name]).says
            yield f"{name}: {says}" if len(names) > 1 else says


def _placement(name: str, adapter: Adapter, cell: Cell, options: Options) -> Iterator[str]:
    worker_of = {node: index for index, nodes in enumerate(cell.workers) for node in nodes}
    crossing = any(
        name in cell.traffic[edge.topic].adapters and worker_of[edge.publisher] != worker_of[edge.subscriber]
        for edge in cell.graph.edges()
    )
    if not crossing:
        return
    restriction = f"works only within one process, and the placement has {len(cell.workers)}"
    if adapter.sidecar.scope == "process":
        yield f"{name} {restriction}"
    for key, value in options.get(name, {}).items():
        option = adapter.sidecar.options.get(key)
        if option is not None and value in option.within_process:
            yield f"{name} with {key} {value} {restriction}"


def _profile(name: str, adapter: Adapter, factors: Factors) -> Iterator[str]:
    offered = adapter.sidecar.abilities.profiles
    if factors.profile not in offered:
        yield _lacks(name, "profile", factors.profile, offered)


def _topic(
    topic: str, traffic: Traffic, graph: Graph, adapters: Mapping[str, Adapter], serves: bool
) -> Iterator[str]:
    """Why these messages can't use this topic. serves: they are requests or replies of a service."""
    for name in traffic.adapters:
        yield from _abilities(name, adapters[name], traffic, serves)
        limit = adapters[name].sidecar.limits
        if limit.topic_names is not None and not re.fullmatch(limit.topic_names, topic):
            yield f"{name} refuses the topic's name '{topic}': {limit.topic_names_reason}; rename it"
    smallest = min(traffic.sizes_bytes, default=traffic.payload_bytes)
    if not holds_envelope(traffic.type, smallest):
        for reason in _unknown_senders(topic, graph):
            yield f"a payload of {smallest}B does not say who sent it, and {reason}"
    for size_bytes in sorted({traffic.payload_bytes, *traffic.sizes_bytes}, reverse=True):
        yield from payload_reasons(traffic.type, size_bytes, traffic.content, (topic,))


def _unknown_senders(topic: str, graph: Graph) -> Iterator[str]:
    """Why a subscriber can't know the publisher of a message that does not name it: it knows only the one
    that it waits for."""
    streams = [graph.streams[number] for number in graph.streams_on(topic)]
    if len(streams) > 1:
        yield f"{len(streams)} nodes publish '{topic}'"
    for stream in streams:
        joins_ns = graph.start_ns(stream.publisher)
        if any(graph.start_ns(subscriber) < joins_ns for subscriber in stream.subscribers):
            yield f"{stream.publisher}, which publishes '{topic}', joins after a subscriber"


def _abilities(name: str, adapter: Adapter, traffic: Traffic, serves: bool) -> Iterator[str]:
    """What both ends of a stream need; only the subscriber needs the dispatch."""
    abilities = adapter.sidecar.abilities
    # The sidecar lists the reliability of topics; requests and replies can always be reliable.
    reliability = (
        (*abilities.reliability, "reliable") if serves and abilities.services else abilities.reliability
    )
    requirements: tuple[tuple[str, str, Collection[str]], ...] = (
        ("reliability", traffic.reliability, reliability),
        ("history", traffic.history, abilities.history),
        ("durability", traffic.durability, abilities.durability),
        ("type", traffic.type, abilities.types),
    )
    for ability, value, offered in requirements:
        if value not in offered:
            yield _lacks(name, ability, value, offered)
    if any(traffic.domains_of(name)) and not abilities.domains:
        yield f"{name} has no domains"
    for policy in traffic.policies:
        if policy not in abilities.policies:
            yield _without_policy(name, policy)
    if traffic.instances and traffic.type != "bytes":
        yield f"messages of type {traffic.type} have no key: only those of type bytes have instances"
    yield from _limits(name, adapter.sidecar.limits, traffic, serves)


def _without_policy(name: str, policy: Policy) -> str:
    if policy == "instances":
        return f"{name} has no keyed topics, so a topic of it has no instances"
    return f"{name} does not offer the QoS {policy}"


def _limits(name: str, limit: Limits, traffic: Traffic, serves: bool) -> Iterator[str]:
    if limit.payload_bytes_max is not None and traffic.payload_bytes > limit.payload_bytes_max:
        reason = limit.payload_bytes_max_reason or "larger messages do not exist"
        yield f"{name} carries at most {limit.payload_bytes_max} B: {reason}"
    keeps_all = traffic.history == "keep_all"
    if limit.depth_max is not None and not keeps_all and traffic.depth > limit.depth_max:
        yield _with_reason(f"{name} keeps at most {limit.depth_max} messages", limit.depth_max_reason)
    service_depth_max = limit.service_depth_max
    if serves and service_depth_max is not None and (keeps_all or traffic.depth > service_depth_max):
        at_most = f"{name} keeps at most {service_depth_max} requests or replies"
        yield _with_reason(at_most, limit.service_depth_max_reason)
    durable_depth_max = limit.transient_local_depth_max
    is_durable = traffic.durability == "transient_local"
    if durable_depth_max is not None and is_durable and (keeps_all or traffic.depth > durable_depth_max):
        at_most = f"{name} keeps at most {durable_depth_max} messages for late joiners"
        yield _with_reason(at_most, limit.transient_local_depth_max_reason)


def _scale(name: str, limit: Limits, cell: Cell) -> Iterator[str]:
    """Limits on the number of topics in use at once, and on the endpoints of each."""
    graph = cell.graph
    topics = {topic for topic, traffic in cell.traffic.items() if name in traffic.adapters}
    if limit.topics_max is not None and len(topics) > limit.topics_max:
        at_most = f"{name} has at most {limit.topics_max} topics at once, and {graph.name} has {len(topics)}"
        yield _with_reason(at_most, limit.topics_max_reason)
    if limit.endpoints_max is None:
        return
    readers_on = Counter(topic for _, topic in {(edge.subscriber, edge.topic) for edge in graph.edges()})
    for topic in sorted(topics):
        writers, readers = len(graph.streams_on(topic)), readers_on[topic]
        if writers + readers > limit.endpoints_max:
            at_most = f"{name} has at most {limit.endpoints_max} endpoints on a topic"
            yield _with_reason(
                f"{at_most}, and '{topic}' has {writers + readers}", limit.endpoints_max_reason
            )


def _groups(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """Why the placement by groups, one participant or thread for each, or the start order is impossible."""
    if lacking := cell.graph.lacks_placement(cell.factors.placement):
        yield lacking
    if cell.factors.participants == "per-node" and all(len(nodes) == 1 for nodes in cell.workers):
        yield "each process has one node, so a participant per node is one per process"
    if cell.factors.threads == "per-process" and all(len(nodes) == 1 for nodes in cell.workers):
        yield "each process has one node, so a thread per process is one per node"
    if cell.factors.start != "matched" and not _has_pure_publishers(cell):
        yield "no process only publishes, so none can start before or after those that subscribe"
    for name in cell.adapters if cell.factors.start == "publisher-first" else ():
        if not adapters[name].sidecar.abilities.late_readers:
            yield f"{name} does not discover subscribers that join while messages flow"
    for nodes in cell.workers:
        if len({(cell.graph.start_ns(node), cell.graph.stop_ns(node)) for node in nodes}) > 1:
            yield f"the nodes of one process join or leave at different times: {', '.join(nodes)}"
    for name in cell.adapters if any(node.start_ns for node in cell.graph.nodes) else ():
        if not adapters[name].sidecar.abilities.late_readers:
            yield f"{name} does not discover subscribers that join while messages flow"
    if cell.factors.start != "matched" and cell.graph.closed_loop:
        yield f"{cell.graph.name} waits for each answer, so a message lost before endpoints match blocks it"


def _hosts(cell: Cell, surroundings: Surroundings) -> Iterator[str]:
    yield from divided(cell.workers, cell.host_of)
    hosts = {name: surroundings.hosts[name] for name in cell.hosts if name in surroundings.hosts}
    yield from device_reasons(cell, hosts)
    remote = [name for name, host in hosts.items() if host.launcher == SSH]
    if cell.factors.tuning != "none" and remote:
        yield f"tuning is for the machine that lagometer runs on, and {remote[0]} is another one"
    for name in cell.factors.hosts.split("+"):
        if name not in (HERE, *cell.hosts):
            yield f"host {name} runs no node of {cell.graph.name}: write its `runs`"
    loaded_host = host_named(cell.factors.interference)
    if loaded_host and loaded_host not in cell.hosts:
        yield f"interference '{cell.factors.interference}' is for a host that this cell does not have"
    if len(cell.hosts) < 2:
        return
    names = " and ".join(cell.hosts)
    for name in cell.adapters:
        for daemon in daemons_in_use(surroundings.adapters[name], cell.options, cell.factors.profile):
            if not daemon.serves_hosts:
                yield f"{name}: its {daemon.name} serves the workers of one host"
            elif any(not hosts[host_name].address for host_name in hosts):
                yield f"{name}: its {daemon.name} is reached by an address: give each host its `address`"
    emulated = [host.is_emulated for host in hosts.values()]
    if any(host.is_apart for host in hosts.values()):
        yield from _across_hosts(cell, surroundings.adapters)
    if any(emulated) and not all(emulated):
        yield f"no link joins {names}: those of the launcher netns reach each other alone"
    if cell.factors.network == "private":
        yield f"{names} each have a private network: set `network: host`"
    if cell.factors.interference != NO_LOAD and not host_named(cell.factors.interference):
        yield f"of several hosts one has the load: write {cell.factors.interference}@{cell.hosts[-1]}"
    if cell.factors.interference.startswith("network") and not all(host.address for host in hosts.values()):
        yield "load of the network between hosts needs their addresses: give each host its `address`"
    if cell.factors.tuning != "none" and not remote:
        yield "tuning is for one host"


def _capture(cell: Cell, surroundings: Surroundings) -> Iterator[str]:
    """Why packets can't be captured for this cell."""
    if not surroundings.captures:
        return
    for program, package in CAPTURE_PROGRAMS.items():
        if shutil.which(program) is None:
            yield f"`capture: on` needs {program}, which is not installed (Debian package: {package})"
    emulated = [surroundings.hosts[name].is_emulated for name in cell.hosts if name in surroundings.hosts]
    if cell.factors.network != "private" and not (emulated and all(emulated)):
        yield (
            "`capture: on` would count the packets of other programs on the host's network: "
            "set `network: private`, or use hosts of the launcher netns"
        )


def _link(cell: Cell, measure_ns: int, surroundings: Surroundings) -> Iterator[str]:
    """Why no link can be emulated for this cell, or why nothing would cross it."""
    if cell.link is None:
        return
    hosts = [
        (name, name in surroundings.hosts and surroundings.hosts[name].is_emulated) for name in cell.hosts
    ]
    yield from too_many_changes(cell.factors.link, cell.link, measure_ns)
    yield from link_reasons(cell.factors.link, cell.link, cell.factors.network, hosts)
    if len(hosts) > 1:
        return
    if len(cell.workers) < 2:
        yield f"nothing crosses link '{cell.factors.link}': all nodes are in one process"
    for name in cell.adapters:
        if surroundings.adapters[name].sidecar.scope != "network":
            yield f"nothing crosses link '{cell.factors.link}': {name} does not use the network"
        given = cell.options.get(name, {})
        for key, option in surroundings.adapters[name].sidecar.options.items():
            value = given.get(key, option.default)
            if value in option.within_host:
                yield f"nothing crosses link '{cell.factors.link}': {name} with {key} {value} does not use it"


def _across_hosts(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """Why messages can't go from one host to another."""
    edges = cell.graph.edges()
    crossing = {edge.topic for edge in edges if cell.host_of[edge.publisher] != cell.host_of[edge.subscriber]}
    for name in cell.adapters:
        if not any(name in cell.traffic[topic].adapters for topic in crossing):
            continue
        if adapters[name].sidecar.scope != "network":
            yield f"{name} reaches only the processes of its own host"
        for key, value in cell.options.get(name, {}).items():
            option = adapters[name].sidecar.options.get(key)
            if option is not None and value in option.within_host:
                yield f"{name} with {key} {value} reaches only the processes of its own host"


def _with_reason(limitation: str, reason: str) -> str:
    return f"{limitation}: {reason}" if reason else limitation


def _dispatch(adapter: Adapter, factors: Factors) -> Iterator[str]:
    offered = adapter.sidecar.abilities.dispatch
    if factors.dispatch not in offered:
        yield _lacks(adapter.name, "dispatch", factors.dispatch, offered)


def _has_pure_publishers(cell: Cell) -> bool:
    """Whether some processes subscribe to nothing, and others do."""
    rules = [[rule for node in nodes for rule in cell.graph.rules_of(node)] for nodes in cell.workers]
    subscribing = [any(rule.subscribes for rule in process_rules) for process_rules in rules]
    return any(subscribing) and not all(subscribing)


def _waits(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """A thread blocks on one waitset. Not every adapter can attach several participants to it."""
    if cell.factors.dispatch != "waitset":
        return
    for nodes in served_together(cell):
        owner = nodes[0] if len(nodes) == 1 else f"the {len(nodes)} nodes of a process"
        hint = "use poll or listener" if len(nodes) == 1 else "use poll"
        readers = [(node, topic) for node in nodes for topic in topics_read(cell, node)]
        names = sorted({cell.traffic[topic].subscriber_adapter for _, topic in readers})
        domains = {cell.traffic[topic].subscriber_domain for _, topic in readers}
        participants = {node for node, _ in readers} if cell.factors.participants == "per-node" else set()
        if len(names) > 1:
            yield f"one waitset of {owner} can't wait for readers of {' and '.join(names)}: {hint}"
        elif (
            max(len(domains), len(participants)) <= 1 or adapters[names[0]].sidecar.abilities.waitset_contexts
        ):
            continue
        elif len(domains) > 1:
            yield f"one waitset of {names[0]} can't wait in the {len(domains)} domains of {owner}: {hint}"
        else:
            count = len(participants)
            yield f"one waitset of {names[0]} can't wait for the participants of {count} nodes: {hint}"


def _executors(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """One thread that calls back all nodes needs an executor, and an executor serves one participant."""
    if cell.factors.dispatch != "listener" or cell.factors.threads != "per-process":
        return
    for nodes in cell.workers:
        if len(nodes) == 1:
            continue
        participants = set()
        for node in nodes:
            participant_node = node if cell.factors.participants == "per-node" else ""
            subscribing = {
                (traffic.subscriber_adapter, traffic.subscriber_domain, participant_node)
                for traffic in (cell.traffic[topic] for topic in topics_read(cell, node))
            }
            for name in sorted({name for name, _, _ in subscribing}):
                if not adapters[name].sidecar.abilities.executor:
                    reason = "so one thread can't serve all nodes of a process: use waitset or poll"
                    yield f"{name} calls back on its own threads, {reason}"
            participants |= {*subscribing, *_timed_in(cell, node, participant_node)}
        participants = {
            participant for participant in participants if adapters[participant[0]].sidecar.abilities.executor
        }
        if len(participants) > 1:
            several = f"the {len(participants)} participants of a process"
            yield f"one executor can't serve {several}: use waitset or poll"


def _timed_in(cell: Cell, node: str, participant_node: str) -> Iterator[tuple[str, int, str]]:
    """The participant whose executor, if it has one, fires the node's timers: that of the first topic it
    publishes."""
    rules = cell.graph.rules_of(node)
    written = [topic for rule in rules for topic in rule.writes]
    if written and any(rule.trigger in ("timer", "closed_loop") for rule in rules):
        traffic = cell.traffic[written[0]]
        yield traffic.publisher_adapter, traffic.domain, participant_node


def _pair(traffic: Traffic, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    publisher, subscriber = traffic.publisher_adapter, traffic.subscriber_adapter
    if publisher != subscriber and subscriber not in adapters[publisher].sidecar.interoperates_with:
        yield f"{subscriber} does not understand {publisher}"
        return
    for name, other in ((publisher, subscriber), (subscriber, publisher)):
        if name != other and traffic.type in adapters[name].sidecar.own_types:
            yield f"{other} does not understand {name}'s type {traffic.type}, only messages that both know"


def _worker(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """A process is one worker, and a worker supports one language."""
    for nodes in cell.workers:
        rules = [rule for node in nodes for rule in cell.graph.rules_of(node)]
        publishing = {cell.traffic[topic].publisher_adapter for rule in rules for topic in rule.writes}
        subscribing = {cell.traffic[topic].subscriber_adapter for rule in rules for topic in rule.subscribes}
        workers = {name: adapters[name].sidecar.worker for name in sorted(publishing | subscribing)}
        if len(set(workers.values())) > 1:
            process = nodes[0] if len(nodes) == 1 else f"{nodes[0]}, …"
            sends, hears = ", ".join(sorted(publishing)), ", ".join(sorted(subscribing))
            activity = f"publishes through {sends} and subscribes through {hears}"
            in_words = ", ".join(workers[name] for name in (*sorted(publishing), *sorted(subscribing)))
            yield f"the process of {process} {activity}, which run in different workers ({in_words})"
            return


def _lacks(name: str, ability: str, value: str, offered: Collection[str]) -> str:
    return f"{name} does not offer {ability} '{value}' (it offers: {', '.join(offered) or 'none'})"
