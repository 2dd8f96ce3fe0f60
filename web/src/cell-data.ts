// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/summary/cell_data.py by `python -m lagometer.report.typescript web/src`; do not edit.

/**
 * How the messages of one edge of a cell met the study's deadline, over its valid trials.
 *
 * `miss_share` is the mean of the trials' shares of messages that missed it, with its 95 % interval if there
 * are enough trials; `needed_trials` would be enough. `missed` of `due` messages are sums over the trials.
 * The rest is the worst value of any trial: `run_max`, the most consecutive misses; `met_of_k_min`, the
 * fewest met in any `k` consecutive activations; `data_age_max_ns`, the oldest that data got before newer
 * data replaced it.
 */
export interface Deadline {
  cell: string;
  edge: string;
  trials: number;
  deadline_ns: number;
  missed: number;
  due: number | null;
  miss_share: number | null;
  miss_share_low: number | null;
  miss_share_high: number | null;
  needed_trials: number | null;
  run_max: number;
  k: number;
  met_of_k_min: number | null;
  data_age_max_ns: number | null;
  cpu_per_message_ns: number | null;
}

/**
 * One latency quantile, over delivered messages and with lost ones as infinite.
 *
 * `of`: `messages`, the quantile of all valid trials' messages; or `trials`, the median of the trials'
 * quantiles, if the data support no more. `infinite`: it is one of the lost messages, and `value_ns` is
 * null. With an `interval` (95 %), a null end is infinite.
 */
export interface LostQuantile {
  figure: string;
  of: string;
  delivered_ns: number | null;
  value_ns: number | null;
  infinite: boolean;
  interval: boolean;
  low_ns: number | null;
  high_ns: number | null;
}

/**
 * The tail of one edge of a cell that lost messages, over its valid trials.
 *
 * `lost` includes censored messages. `arrived_share` is the mean of the trials' shares that arrived; every
 * quantile above it is infinite.
 */
export interface LostTail {
  cell: string;
  edge: string;
  trials: number;
  n: number;
  lost: number;
  arrived_share: number;
  cpu_per_message_ns: number | null;
  quantiles: LostQuantile[];
}

/**
 * What a cell's daemons take beside its workers: medians over the valid trials, each with its total.
 *
 * Memory is PSS. A figure is null unless every trial has it.
 */
export interface Daemons {
  cell: string;
  trials: number;
  cpu_per_message_ns: number | null;
  daemon_cpu_per_message_ns: number | null;
  memory_pss_bytes: number | null;
  daemon_pss_bytes: number | null;
}

/**
 * What the load next to a cell's workers used and did, from the common start to the last worker's end.
 *
 * `load` is the factor's value. `cpu_ns` and `achieved_per_s` are medians over the valid trials, with the
 * median's 95 % interval if there are enough trials. `unit` of what was achieved: `bytes`, or `operations`
 * (stress-ng's own count, over its whole life).
 */
export interface Interference {
  cell: string;
  load: string;
  trials: number;
  cpu_ns: number | null;
  cpu_low_ns: number | null;
  cpu_high_ns: number | null;
  achieved_per_s: number | null;
  achieved_low_per_s: number | null;
  achieved_high_per_s: number | null;
  unit: string;
  cpu_per_message_ns: number | null;
}

/**
 * A named chain in one cell: medians over its valid trials, each a figure of `cells.parquet`.
 *
 * `whole`: from the first publish to the end of the last callback, with its parts. `half_round_trip`: of a
 * chain that ends where it began. `age_mean_ns`: how old data is at its end, by the shortest and the longest
 * path `age_best_ns` and `age_worst_ns`. `reaction`: from an event until the first callback that knows it.
 * `n`, `unanswered`, `unreachable`: over all trials. `unanswered`: calls that were due while a service's
 * server was away. `unreachable`: messages that nobody was there to pass on. Neither is among `lost`.
 * `join_first_message_ns`: from when a server or client that joined had created its endpoints until the
 * first answer.
 */
export interface ChainRow {
  cell: string;
  chain: string;
  trials: number;
  n: number;
  lost: number;
  whole_p50_ns: number | null;
  whole_p99_ns: number | null;
  communication_p50_ns: number | null;
  computation_p50_ns: number | null;
  idle_p50_ns: number | null;
  half_round_trip_p50_ns: number | null;
  age_mean_ns: number | null;
  age_best_ns: number | null;
  age_worst_ns: number | null;
  reaction_p50_ns: number | null;
  reaction_max_ns: number | null;
  unanswered: number;
  unreachable: number;
  join_first_message_ns: number | null;
}

/**
 * How evenly the subscribers of a topic are served, and what they miss at first; medians over trials.
 *
 * `p50_ratio`: p50 of the slowest subscriber over that of the fastest, for the least fair topic.
 * `order_correlation`: of these p50 with the order in which the subscribers started, by rank; from three
 * subscribers on. `initial_lost`: messages sent before the first one that arrived, of the subscriber that
 * missed most. Null means not available.
 */
export interface Served {
  cell: string;
  trials: number;
  p50_ratio: number | null;
  order_correlation: number | null;
  initial_lost: number | null;
}

/**
 * What nodes that join late or leave early mean for one edge of a cell, over its valid trials.
 *
 * Edges of a node that joined, medians: `process_ns` until its process was up; `participant_ns` from its
 * admission until its endpoints were created; `first_message_ns` from then to the first message. Edges of
 * nodes that stay, the largest of any trial: `gap_max_ns` between two messages, and latency, while others
 * joined, and in the second after one left.
 */
export interface Joined {
  cell: string;
  edge: string;
  trials: number;
  process_ns: number | null;
  participant_ns: number | null;
  first_message_ns: number | null;
  joining_gap_max_ns: number | null;
  joining_latency_max_ns: number | null;
  leaving_gap_max_ns: number | null;
  leaving_latency_max_ns: number | null;
}

/**
 * What was possible with one payload.
 *
 * `verdict`: `possible`, `late`, `lossy`, `halt`, `failed`, `configuration` or `size`. `why`: the figure or
 * reason for it; empty if possible. `initial_loss`: whether a subscriber missed messages before its first
 * one in any trial; null if none arrived.
 */
export interface Feasible {
  cell: string;
  payload_bytes: number;
  verdict: string;
  why: string;
  initial_loss: boolean | null;
}

/**
 * A series of cells that differ only in their payload, ascending. `series`: their id without it.
 */
export interface Feasibility {
  series: string;
  payloads: Feasible[];
}

/**
 * A cell whose sources fell behind, in a study that keeps such trials: neither valid nor failed.
 *
 * `trials`: the saturated ones. The figures are medians over them, end to end. `goodput_bytes_per_s`:
 * delivered payload. `lost_share`: all that did not arrive (lost, overwritten, censored or rejected), of all
 * trials. `latency_p50_ns`: of delivered messages, while the sources sent as fast as they could.
 */
export interface Saturated {
  cell: string;
  trials: number;
  of_trials: number;
  rate_intended_hz: number | null;
  rate_achieved_hz: number | null;
  goodput_bytes_per_s: number | null;
  lost_share: number | null;
  deadline_miss_share: number | null;
  latency_p50_ns: number | null;
}

/**
 * What the messages of a cell cost on its networks, if packets were captured: medians over valid trials,
 * or, in a cell without any, over saturated ones (`saturated`).
 *
 * Bytes count whole frames, each once. `bytes_per_payload_byte`: per payload byte that a reader took.
 * `..._per_message`: per message that a reader took. `..._share`: of all bytes. `startup_discovery_bytes`:
 * of the middleware's own traffic before the measure phase. RTPS figures are null without RTPS, and if
 * messages are encrypted.
 *
 * If all messages have the same payload: `least_bytes_per_payload_byte`: Ethernet, IP and UDP alone, in
 * frames that fill the MTU. For a link with a rate: `ideal_bytes_per_s`: that rate as if messages were
 * payload only. `theoretical_bytes_per_s`: with these headers and a frame's overhead besides its bytes.
 * `link_goodput_bytes_per_s`: the payload that readers took over it, in the busier direction.
 * `theoretical_share`: of what is possible.
 */
export interface OnTheWire {
  cell: string;
  trials: number;
  saturated: boolean;
  payload_bytes: number | null;
  link: string | null;
  least_bytes_per_payload_byte: number | null;
  ideal_bytes_per_s: number | null;
  theoretical_bytes_per_s: number | null;
  link_goodput_bytes_per_s: number | null;
  theoretical_share: number | null;
  bytes_per_payload_byte: number | null;
  bytes_per_s: number | null;
  goodput_bytes_per_s: number | null;
  packets_per_message: number | null;
  fragments_per_message: number | null;
  heartbeats_per_message: number | null;
  acknacks_per_message: number | null;
  resent_per_message: number | null;
  control_share: number | null;
  discovery_share: number | null;
  startup_discovery_bytes: number | null;
}

/**
 * A cell in which a queue builds up, so that its p50 depends on the length of a trial.
 *
 * growth_ns_per_s: of the median response time; the median over the trials in which it grows. waiting: how
 * many messages wait where depth should hold fewer.
 */
export interface Queue {
  cell: string;
  trials: number;
  trials_growing: number;
  growth_ns_per_s: number;
  waiting: string | null;
}

/**
 * The libraries of one group (`middleware, abstraction, tracer, lagometer, runtime, other`) that a cell's
 * processes have loaded, each counted once: sizes in the address space and in memory, and file names.
 */
export interface LibraryGroup {
  group: string;
  mapped_bytes: number;
  resident_bytes: number;
  files: string[];
}

/**
 * What a node of a cell costs: medians over valid trials, with daemons, divided by its `nodes`.
 *
 * `..._per_node`: threads, memory, descriptors, sockets. `..._per_message`: per message that a reader took.
 * `system_share`: the kernel's part of the CPU time; null if that is too little to tell. `switches`: between
 * threads, of either kind. `thread_names`: how many threads have each name. `startup_..._ns`: from the start
 * of the workers until the last of them (`..._first_ns`: the first) had reached the step, or until the first
 * message. `energy_per_message_nj` is the whole machine's. Null means not available.
 */
export interface NodeCost {
  cell: string;
  adapter: string;
  settings: string;
  trials: number;
  nodes: number;
  processes: number;
  threads_per_node: number | null;
  thread_names: Record<string, number>;
  rss_per_node_bytes: number | null;
  pss_per_node_bytes: number | null;
  uss_per_node_bytes: number | null;
  descriptors_per_node: number | null;
  tcp_sockets_per_node: number | null;
  udp_sockets_per_node: number | null;
  unix_sockets_per_node: number | null;
  other_sockets_per_node: number | null;
  libraries: LibraryGroup[];
  cpu_per_message_ns: number | null;
  system_share: number | null;
  switches_per_message: number | null;
  faults_per_message: number | null;
  network_bytes_per_message: number | null;
  startup_process_ns: number | null;
  startup_participant_first_ns: number | null;
  startup_participant_ns: number | null;
  startup_matched_first_ns: number | null;
  startup_matched_ns: number | null;
  startup_first_message_ns: number | null;
  cycles_per_message: number | null;
  instructions_per_message: number | null;
  cache_misses_per_message: number | null;
  tlb_misses_per_message: number | null;
  energy_per_message_nj: number | null;
}

/**
 * A figure that no row has, and why.
 */
export interface NotAvailable {
  figure: string;
  why: string;
}

/**
 * What a node costs, one row per adapter and set of settings. `all_cells`: false if a row shows one of
 * several cells: the one with the smallest payload and lowest rate.
 */
export interface NodeCosts {
  rows: NodeCost[];
  all_cells: boolean;
  not_available: NotAvailable[];
}

/**
 * The cost of a node, or of a process of a program, that passes messages on to another domain or adapter.
 *
 * process: the process it runs in; CPU time, threads and memory are that process's, including all other
 * nodes in it. passed_on: messages in the valid trials' measure phases. stay: from the start of the callback
 * that took a message to its republishing. stay_share: for messages that pass it, the mean part of their
 * end-to-end latency from taking to republishing, over up to 200 messages of a trial, evenly spread.
 * added_p50_ns: of a program, in which nothing can be stamped, all its processes together: the median
 * end-to-end latency minus that of the same cell without a bridge. cpu_per_message_ns: of the whole process,
 * per message passed on. Figures are medians over trials. Null means not available.
 */
export interface Bridge {
  cell: string;
  node: string;
  process: string;
  trials: number;
  passed_on: number;
  stay_p50_ns: number | null;
  stay_p99_ns: number | null;
  stay_share: number | null;
  added_p50_ns: number | null;
  cpu_per_message_ns: number | null;
  threads: number | null;
  rss_bytes: number | null;
  pss_bytes: number | null;
  uss_bytes: number | null;
}
