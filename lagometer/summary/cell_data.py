# SPDX-License-Identifier: Apache-2.0
"""The page's data about whole cells besides their latencies, typed as in `lagometer.summary.data`.

`cpu_per_message_ns` is always the median over the cell's valid trials.
"""

from __future__ import annotations

from lagometer.summary.model import Model


class Deadline(Model):
    """How the messages of one edge of a cell met the study's deadline, over its valid trials.

    `miss_share` is the mean of the trials' shares of messages that missed it, with its 95 % interval if there
    are enough trials; `needed_trials` would be enough. `missed` of `due` messages are sums over the trials.
    The rest is the worst value of any trial: `run_max`, the most consecutive misses; `met_of_k_min`, the
    fewest met in any `k` consecutive activations; `data_age_max_ns`, the oldest that data got before newer
    data replaced it.
    """

    cell: str
    edge: str
    trials: int
    deadline_ns: int
    missed: int
    due: int | None
    miss_share: float | None
    miss_share_low: float | None
    miss_share_high: float | None
    needed_trials: int | None
    run_max: int
    k: int
    met_of_k_min: int | None
    data_age_max_ns: int | None
    cpu_per_message_ns: float | None


class LostQuantile(Model):
    """One latency quantile, over delivered messages and with lost ones as infinite.

    `of`: `messages`, the quantile of all valid trials' messages; or `trials`, the median of the trials'
    quantiles, if the data support no more. `infinite`: it is one of the lost messages, and `value_ns` is
    null. With an `interval` (95 %), a null end is infinite.
    """

    figure: str
    of: str
    delivered_ns: float | None
    value_ns: float | None
    infinite: bool
    interval: bool
    low_ns: float | None
    high_ns: float | None


class LostTail(Model):
    """The tail of one edge of a cell that lost messages, over its valid trials.

    `lost` includes censored messages. `arrived_share` is the mean of the trials' shares that arrived; every
    quantile above it is infinite.
    """

    cell: str
    edge: str
    trials: int
    n: int
    lost: int
    arrived_share: float
    cpu_per_message_ns: float | None
    quantiles: list[LostQuantile]


class Daemons(Model):
    """What a cell's daemons take beside its workers: medians over the valid trials, each with its total.

    Memory is PSS. A figure is null unless every trial has it.
    """

    cell: str
    trials: int
    cpu_per_message_ns: float | None
    daemon_cpu_per_message_ns: float | None
    memory_pss_bytes: float | None
    daemon_pss_bytes: float | None


class Interference(Model):
    """What the load next to a cell's workers used and did, from the common start to the last worker's end.

    `load` is the factor's value. `cpu_ns` and `achieved_per_s` are medians over the valid trials, with the
    median's 95 % interval if there are enough trials. `unit` of what was achieved: `bytes`, or `operations`
    (stress-ng's own count, over its whole life).
    """

    cell: str
    load: str
    trials: int
    cpu_ns: float | None
    cpu_low_ns: float | None
    cpu_high_ns: float | None
    achieved_per_s: float | None
    achieved_low_per_s: float | None
    achieved_high_per_s: float | None
    unit: str
    cpu_per_message_ns: float | None


class ChainRow(Model):
    """A named chain in one cell: medians over its valid trials, each a figure of `cells.parquet`.

    `whole`: from the first publish to the end of the last callback, with its parts. `half_round_trip`: of a
    chain that ends where it began. `age_mean_ns`: how old data is at its end, by the shortest and the longest
    path `age_best_ns` and `age_worst_ns`. `reaction`: from an event until the first callback that knows it.
    `n`, `unanswered`, `unreachable`: over all trials. `unanswered`: calls that were due while a service's
    server was away. `unreachable`: messages that nobody was there to pass on. Neither is among `lost`.
    `join_first_message_ns`: from when a server or client that joined had created its endpoints until the
    first answer.
    """

    cell: str
    chain: str
    trials: int
    n: int
    lost: int
    whole_p50_ns: float | None
    whole_p99_ns: float | None
    communication_p50_ns: float | None
    computation_p50_ns: float | None
    idle_p50_ns: float | None
    half_round_trip_p50_ns: float | None
    age_mean_ns: float | None
    age_best_ns: float | None
    age_worst_ns: float | None
    reaction_p50_ns: float | None
    reaction_max_ns: float | None
    unanswered: int
    unreachable: int
    join_first_message_ns: float | None


class Served(Model):
    """How evenly the subscribers of a topic are served, and what they miss at first; medians over trials.

    `p50_ratio`: p50 of the slowest subscriber over that of the fastest, for the least fair topic.
    `order_correlation`: of these p50 with the order in which the subscribers started, by rank; from three
    subscribers on. `initial_lost`: messages sent before the first one that arrived, of the subscriber that
    missed most. Null means not available.
    """

    cell: str
    trials: int
    p50_ratio: float | None
    order_correlation: float | None
    initial_lost: float | None


class Joined(Model):
    """What nodes that join late or leave early mean for one edge of a cell, over its valid trials.

    Edges of a node that joined, medians: `process_ns` until its process was up; `participant_ns` from its
    admission until its endpoints were created; `first_message_ns` from then to the first message. Edges of
    nodes that stay, the largest of any trial: `gap_max_ns` between two messages, and latency, while others
    joined, and in the second after one left.
    """

    cell: str
    edge: str
    trials: int
    process_ns: float | None
    participant_ns: float | None
    first_message_ns: float | None
    joining_gap_max_ns: float | None
    joining_latency_max_ns: float | None
    leaving_gap_max_ns: float | None
    leaving_latency_max_ns: float | None


class Feasible(Model):
    """What was possible with one payload.

    `verdict`: `possible`, `late`, `lossy`, `halt`, `failed`, `configuration` or `size`. `why`: the figure or
    reason for it; empty if possible. `initial_loss`: whether a subscriber missed messages before its first
    one in any trial; null if none arrived.
    """

    cell: str
    payload_bytes: int
    verdict: str
    why: str
    initial_loss: bool | None


class Feasibility(Model):
    """A series of cells that differ only in their payload, ascending. `series`: their id without it."""

    series: str
    payloads: list[Feasible]


class Saturated(Model):
    """A cell whose sources fell behind, in a study that keeps such trials: neither valid nor failed.

    `trials`: the saturated ones. The figures are medians over them, end to end. `goodput_bytes_per_s`:
    delivered payload. `lost_share`: all that did not arrive (lost, overwritten, censored or rejected), of all
    trials. `latency_p50_ns`: of delivered messages, while the sources sent as fast as they could.
    """

    cell: str
    trials: int
    of_trials: int
    rate_intended_hz: float | None
    rate_achieved_hz: float | None
    goodput_bytes_per_s: float | None
    lost_share: float | None
    deadline_miss_share: float | None
    latency_p50_ns: float | None


class OnTheWire(Model):
    """What the messages of a cell cost on its networks, if packets were captured: medians over valid trials,
    or, in a cell without any, over saturated ones (`saturated`).

    Bytes count whole frames, each once. `bytes_per_payload_byte`: per payload byte that a reader took.
    `..._per_message`: per message that a reader took. `..._share`: of all bytes. `startup_discovery_bytes`:
    of the middleware's own traffic before the measure phase. RTPS figures are null without RTPS, and if
    messages are encrypted.

    If all messages have the same payload: `least_bytes_per_payload_byte`: Ethernet, IP and UDP alone, in
    frames that fill the MTU. For a link with a rate: `ideal_bytes_per_s`: that rate as if messages were
    payload only. `theoretical_bytes_per_s`: with these headers and a frame's overhead besides its bytes.
    `link_goodput_bytes_per_s`: the payload that readers took over it, in the busier direction.
    `theoretical_share`: of what is possible.
    """

    cell: str
    trials: int
    saturated: bool
    payload_bytes: int | None
    link: str | None
    least_bytes_per_payload_byte: float | None
    ideal_bytes_per_s: float | None
    theoretical_bytes_per_s: float | None
    link_goodput_bytes_per_s: float | None
    theoretical_share: float | None
    bytes_per_payload_byte: float | None
    bytes_per_s: float | None
    goodput_bytes_per_s: float | None
    packets_per_message: float | None
    fragments_per_message: float | None
    heartbeats_per_message: float | None
    acknacks_per_message: float | None
    resent_per_message: float | None
    control_share: float | None
    discovery_share: float | None
    startup_discovery_bytes: float | None


class Queue(Model):
    """A cell in which a queue builds up, so that its p50 depends on the length of a trial.

    growth_ns_per_s: of the median response time; the median over the trials in which it grows. waiting: how
    many messages wait where depth should hold fewer.
    """

    cell: str
    trials: int
    trials_growing: int
    growth_ns_per_s: float
    waiting: str | None


class LibraryGroup(Model):
    """The libraries of one group (`middleware, abstraction, tracer, lagometer, runtime, other`) that a cell's
    processes have loaded, each counted once: sizes in the address space and in memory, and file names."""

    group: str
    mapped_bytes: int
    resident_bytes: int
    files: list[str]


class NodeCost(Model):
    """What a node of a cell costs: medians over valid trials, with daemons, divided by its `nodes`.

    `..._per_node`: threads, memory, descriptors, sockets. `..._per_message`: per message that a reader took.
    `system_share`: the kernel's part of the CPU time; null if that is too little to tell. `switches`: between
    threads, of either kind. `thread_names`: how many threads have each name. `startup_..._ns`: from the start
    of the workers until the last of them (`..._first_ns`: the first) had reached the step, or until the first
    message. `energy_per_message_nj` is the whole machine's. Null means not available.
    """

    cell: str
    adapter: str
    settings: str
    trials: int
    nodes: int
    processes: int
    threads_per_node: float | None
    thread_names: dict[str, int]
    rss_per_node_bytes: float | None
    pss_per_node_bytes: float | None
    uss_per_node_bytes: float | None
    descriptors_per_node: float | None
    tcp_sockets_per_node: float | None
    udp_sockets_per_node: float | None
    unix_sockets_per_node: float | None
    other_sockets_per_node: float | None
    libraries: list[LibraryGroup]
    cpu_per_message_ns: float | None
    system_share: float | None
    switches_per_message: float | None
    faults_per_message: float | None
    network_bytes_per_message: float | None
    startup_process_ns: float | None
    startup_participant_first_ns: float | None
    startup_participant_ns: float | None
    startup_matched_first_ns: float | None
    startup_matched_ns: float | None
    startup_first_message_ns: float | None
    cycles_per_message: float | None
    instructions_per_message: float | None
    cache_misses_per_message: float | None
    tlb_misses_per_message: float | None
    energy_per_message_nj: float | None


class NotAvailable(Model):
    """A figure that no row has, and why."""

    figure: str
    why: str


class NodeCosts(Model):
    """What a node costs, one row per adapter and set of settings. `all_cells`: false if a row shows one of
    several cells: the one with the smallest payload and lowest rate."""

    rows: list[NodeCost]
    all_cells: bool
    not_available: list[NotAvailable]


class Bridge(Model):
    """The cost of a node, or of a process of a program, that passes messages on to another domain or adapter.

    process: the process it runs in; CPU time, threads and memory are that process's, including all other
    nodes in it. passed_on: messages in the valid trials' measure phases. stay: from the start of the callback
    that took a message to its republishing. stay_share: for messages that pass it, the mean part of their
    end-to-end latency from taking to republishing, over up to 200 messages of a trial, evenly spread.
    added_p50_ns: of a program, in which nothing can be stamped, all its processes together: the median
    end-to-end latency minus that of the same cell without a bridge. cpu_per_message_ns: of the whole process,
    per message passed on. Figures are medians over trials. Null means not available.
    """

    cell: str
    node: str
    process: str
    trials: int
    passed_on: int
    stay_p50_ns: float | None
    stay_p99_ns: float | None
    stay_share: float | None
    added_p50_ns: float | None
    cpu_per_message_ns: float | None
    threads: float | None
    rss_bytes: float | None
    pss_bytes: float | None
    uss_bytes: float | None
