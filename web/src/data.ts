// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/report/data.py by `python -m lagometer.report.typescript`; do not edit.

/**
 * Where the figures come from: the head of `manifest.json`.
 */
export interface Campaign {
  name: string;
  description: string | null;
  created: string;
  finished: string | null;
  state: string;
  seed: number | null;
  lagometer_version: string;
  versions: Record<string, string>;
  machine: string;
  study_text: string;
}

/**
 * Sizes of the campaign. `messages` counts deliveries on all edges but `end-to-end`, measure phase,
 * all trials.
 */
export interface Counts {
  cells: number;
  trials: number;
  trials_valid: number;
  trials_failed: number;
  excluded: number;
  messages: number;
}

/**
 * One factor of the matrix and the values that occur, in the study's order.
 */
export interface Factor {
  name: string;
  values: string[];
}

/**
 * One point of the matrix. `factors` are text, as they are shown; `bare` marks a bare transport (the
 * floor).
 */
export interface Cell {
  id: string;
  adapter: string;
  bare: boolean;
  payload_bytes: number | null;
  factors: Record<string, string>;
  edges: string[];
  trials: number[];
}

/**
 * The figures of one edge: of one trial, or (`trial` is null) of a cell over its valid trials.
 *
 * Over trials: counts are summed, `max` is the largest, `min` the smallest, every other figure is the
 * median of the trials' figures, and null unless each valid trial has it. `floor_latency_p50_ns` is the
 * smallest such median among the bare transports with the same placement, dispatch, payload and touch;
 * `floor_cell` says which.
 */
export interface Row {
  cell: string;
  trial: number | null;
  trials: number;
  edge: string;
  valid: boolean;
  reasons: string[];
  warnings: string[];
  n: number;
  sent: number | null;
  lost: number | null;
  overwritten: number | null;
  censored: number | null;
  rejected: number | null;
  send_failed: number | null;
  duplicated: number | null;
  reordered: number | null;
  corrupted: number | null;
  latency_min_ns: number | null;
  latency_p50_ns: number | null;
  latency_p90_ns: number | null;
  latency_p99_ns: number | null;
  latency_p999_ns: number | null;
  latency_max_ns: number | null;
  response_p50_ns: number | null;
  response_p90_ns: number | null;
  response_p99_ns: number | null;
  response_max_ns: number | null;
  send_lag_p50_ns: number | null;
  send_lag_p99_ns: number | null;
  blocked_p50_ns: number | null;
  blocked_p99_ns: number | null;
  wake_p50_ns: number | null;
  rate_intended_hz: number | null;
  rate_achieved_hz: number | null;
  cpu_per_message_ns: number | null;
  overhead_s: number | null;
  floor_cell: string | null;
  floor_latency_p50_ns: number | null;
}

/**
 * Quantiles of an edge over the delivered messages of all valid trials of a cell together.
 *
 * `probabilities` end at the last one with 10 samples beyond it; `latency_ns` are order statistics (type 1).
 */
export interface Curve {
  cell: string;
  edge: string;
  trials: number;
  n: number;
  probabilities: number[];
  latency_ns: number[];
}

/**
 * One of the slowest messages of a series.
 */
export interface SlowMessage {
  sequence: number;
  time_ns: number;
  latency_ns: number;
  send_lag_ns: number | null;
  blocked_ns: number | null;
  cpu_publish: number | null;
  cpu_taken: number | null;
}

/**
 * A message before which the sender or the receiver had moved to another CPU.
 */
export interface Migration {
  time_ns: number;
  side: string;
  cpu_from: number;
  cpu_to: number;
}

/**
 * A regular repetition in the latency: its spacing, and the probability that noise alone shows such
 * a line.
 */
export interface Period {
  period_ns: number;
  p_value: number;
  share_of_variance: number;
}

/**
 * The messages of one edge in one trial, in sending order. Times count from the trial's first measured
 * message.
 *
 * Where fewer than `n` messages are given, each run of messages keeps its fastest and slowest, and the
 * slowest 20 of all are always kept. `lost_time_us` are the sending times of messages that never arrived
 * (at most 200). The counts of migrations are null where the edge joins several senders or receivers, so
 * that they can't be told.
 */
export interface Series {
  cell: string;
  trial: number;
  edge: string;
  n: number;
  time_us: number[];
  latency_ns: number[];
  lost: number;
  lost_time_us: number[];
  slowest: SlowMessage[];
  migrations_sender: number | null;
  migrations_receiver: number | null;
  migrations: Migration[];
  period: Period | null;
}

/**
 * A trial that did not count, and why.
 */
export interface Failure {
  cell: string;
  trial: number;
  reasons: string[];
  log: string | null;
}

/**
 * A combination that cannot exist, and why.
 */
export interface Exclusion {
  cell: string;
  reason: string;
}

/**
 * One effective setting; `changed` if it differs from the vendor's default.
 */
export interface Setting {
  name: string;
  value: string;
  default: string | null;
  changed: boolean;
}

/**
 * Text to paste, and the file or variable that it belongs in.
 */
export interface PasteFile {
  file: string;
  text: string;
}

/**
 * Effective settings of one kind of object of an adapter, and the cells in which they held.
 */
export interface Settings {
  adapter: string;
  object: string;
  cells: string[];
  settings: Setting[];
  paste: PasteFile[];
}

/**
 * One fact about the machine, as text; null where it could not be read.
 */
export interface Fact {
  section: string;
  name: string;
  value: string | null;
}

/**
 * Everything that the page shows.
 */
export interface Report {
  format: number;
  campaign: Campaign;
  counts: Counts;
  factors: Factor[];
  cells: Cell[];
  rows: Row[];
  curves: Curve[];
  series: Series[];
  failures: Failure[];
  exclusions: Exclusion[];
  settings: Settings[];
  environment: Fact[];
  thinned: string[];
}
