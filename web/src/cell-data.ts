// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/summary/cell_data.py by `python -m lagometer.report.typescript web/src`; do not edit.

/**
 * How the messages of one edge of a cell kept the study's deadline, over its valid trials.
 *
 * `miss_share` is the mean of the trials' shares of messages that missed it, with its 95 % interval where
 * there are trials enough; `needed_trials` would do. `missed` of `due` messages are sums over the trials.
 * The rest is the worst of any trial: `run_max`, most misses in a row; `met_of_k_min`, the fewest met of any
 * `k` in a row; `data_age_max_ns`, the oldest that data got before newer data replaced it.
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
 * One quantile of latency, of what was delivered and with what never came as infinite.
 *
 * `of`: `messages`, the quantile of all valid trials' messages; or `trials`, the median of the trials'
 * quantiles, where those support no more. `infinite`: it is one of the lost, and `value_ns` is null. With an
 * `interval` (95 %), an end that is null is infinite.
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
 * `lost` counts censored messages, too. `arrived_share` is the mean of the trials' shares that arrived:
 * every quantile above it is infinite.
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
 * What the load beside a cell's workers used and did, from the common start to the last worker's end.
 *
 * `load` is the factor's value. `cpu_ns` and `achieved_per_s` are medians over the valid trials, with the
 * 95 % interval of a median where there are trials enough. `unit` of what was achieved: `bytes`, or
 * `operations` (stress-ng's own count, over its whole life).
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
 * `whole`: from the first publishing to the end of the last callback, with its parts; `half_round_trip`: of
 * a chain that ends where it began; `age_mean_ns`: how old data is at its end; `n`: over all trials.
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
  reaction_max_ns: number | null;
}

/**
 * What was possible with one payload.
 *
 * `verdict`: `possible`, `late`, `lossy`, `halt`, `configuration` or `size`; `why`: the figure or the reason
 * that says so, empty for what is possible; `initial_loss`: whether a subscriber missed messages before its
 * first one in any trial, null where none came.
 */
export interface Feasible {
  cell: string;
  payload_bytes: number;
  verdict: string;
  why: string;
  initial_loss: boolean | null;
}

/**
 * One line of cells that differ in their payload alone, ascending; `series`: their id without it.
 */
export interface Feasibility {
  series: string;
  payloads: Feasible[];
}

/**
 * A cell whose sources fell behind, in a study that keeps such trials: neither valid nor failed.
 *
 * `trials`: that were saturated; figures: medians over them, end to end; `goodput_bytes_per_s`: payload that
 * was delivered; `latency_p50_ns`: of what was delivered, while the sources sent as fast as they could.
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
 * What the messages of a cell cost on its networks, where packets were captured: medians over valid
 * trials, of a cell without any over saturated ones (`saturated`).
 *
 * Bytes count whole frames, each once. `bytes_per_payload_byte`: for each byte of payload that a reader
 * took; `..._per_message`: for each message that a reader took; `..._share`: of all bytes;
 * `startup_discovery_bytes`: of the middleware's own traffic before the measure phase. What is RTPS's alone
 * is null without it.
 *
 * With one payload for all messages: `least_bytes_per_payload_byte`, Ethernet, IP and UDP alone, in frames
 * that fill the MTU. Of a link with a rate: `ideal_bytes_per_s`, that rate as if messages were their payload
 * alone; `theoretical_bytes_per_s`, with these headers and what a frame takes beside its bytes;
 * `link_goodput_bytes_per_s`, the payload that readers took over it, the busier way; `theoretical_share`, of
 * what is possible.
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
 * A cell in which a queue builds up, so that its p50 depends on how long a trial is.
 *
 * growth_ns_per_s: of the median response time, the median over the trials in which it grows; waiting: how
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
 * The libraries of one group (`middleware, abstraction, tracer, lagometer, runtime, other`) that the
 * processes of a cell have loaded, each once: sizes in the address space and in memory, the files' names.
 */
export interface LibraryGroup {
  group: string;
  mapped_bytes: number;
  resident_bytes: number;
  files: string[];
}

/**
 * What a node of a cell costs: medians over valid trials, daemons included, over the cell's `nodes`.
 *
 * `..._per_node`: threads, memory, descriptors, sockets; `..._per_message`: for each message that a reader
 * took; `system_share`: of the CPU time, what the kernel spent, null where that is too little to tell;
 * `switches`: between threads, of either kind; `thread_names`: how many threads have which name;
 * `startup_..._ns`: from when the workers were started; `energy_per_message_nj` is the whole machine's.
 * Null is not available.
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
  startup_participant_ns: number | null;
  startup_matched_ns: number | null;
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
 * What a node costs, a row for each adapter and set of settings. `all_cells`: false where a row shows one
 * cell of several, that of the smallest payload and lowest rate.
 */
export interface NodeCosts {
  rows: NodeCost[];
  all_cells: boolean;
  not_available: NotAvailable[];
}

/**
 * What a node takes that passes messages on into another domain, or to another adapter.
 *
 * process: that it runs in, whose CPU time, threads and memory these are, with all other nodes in it;
 * passed_on: messages of the valid trials' measure phases; stay: of one, from when the callback began that
 * took it to when it was published again; stay_share: of messages that pass it, the mean part of their
 * end-to-end latency from taken to published again, of up to 200 messages of a trial, evenly spread;
 * cpu_per_message_ns: of the whole process, for each message passed on; medians over trials. Null is not
 * available.
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
  cpu_per_message_ns: number | null;
  threads: number | null;
  rss_bytes: number | null;
  pss_bytes: number | null;
  uss_bytes: number | null;
}
