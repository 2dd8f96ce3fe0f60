// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/report/samples/data.py by `python -m lagometer.report.typescript web/src`; do not edit.

/**
 * Quantiles of an edge over the delivered messages of all valid trials of a cell together.
 *
 * `probabilities` end at the last one with 10 samples beyond it; `latency_ns` are order statistics (type 1).
 * The band is the 95 % interval of the quantile at each of `band_probabilities`, point by point; empty
 * where the trials are too few.
 */
export interface Curve {
  cell: string;
  edge: string;
  trials: number;
  n: number;
  probabilities: number[];
  latency_ns: number[];
  band_probabilities: number[];
  band_low_ns: number[];
  band_high_ns: number[];
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
