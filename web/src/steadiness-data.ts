// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/summary/steadiness_data.py by `python -m lagometer.report.typescript web/src`; do not edit.

/**
 * The control cell before one block: its end-to-end figures. `time_s` counts from the first trial.
 */
export interface ControlTrial {
  block: number;
  time_s: number;
  valid: boolean;
  n: number;
  latency_p50_ns: number | null;
  latency_p90_ns: number | null;
  latency_p99_ns: number | null;
  cpu_per_message_ns: number | null;
  remarks: string[];
}

/**
 * What the machine did during a trial: the share of all CPUs' time that was used (including the trial's
 * own), and the share that a hypervisor gave to others. `time_s` counts from the campaign's first trial. Of
 * many trials, neighbours stand together, with the most of each share.
 */
export interface Load {
  time_s: number;
  busy_share: number | null;
  stolen_share: number | null;
}

/**
 * What the control's valid trials measured, before so many `blocks`: from the smallest to the largest p50
 * and CPU time per message, and p50 in the first and in the last of them.
 */
export interface ControlRange {
  blocks: number;
  p50_min_ns: number;
  p50_max_ns: number;
  p50_first_ns: number;
  p50_last_ns: number;
  cpu_per_message_min_ns: number | null;
  cpu_per_message_max_ns: number | null;
}

/**
 * The control cell over the campaign, and the machine's load in all trials. `spread` is null if no valid
 * trial of the control has a p50. Merged campaigns have a control of each machine: then `trials` is empty.
 */
export interface Control {
  cells: string[];
  trials: ControlTrial[];
  spread: ControlRange | null;
  load: Load[];
}

/**
 * A quantile of a long trial, and its estimate from the short trials with its 95 % interval; without an
 * interval, the median of their figures.
 *
 * `place`: `inside` the interval, `outside` it, or `beyond` the figures of all short trials, too; null if
 * there is no interval to compare with.
 */
export interface LongFigure {
  long_ns: number | null;
  short_ns: number | null;
  low_ns: number | null;
  high_ns: number | null;
  place: string | null;
}

/**
 * A cell's long trial next to the short ones, end to end: a check on the bias of short trials.
 *
 * The short trials' CPU time per message is their median, with its interval. `remarks`: warnings.
 */
export interface LongTrial {
  cell: string;
  n: number;
  p50: LongFigure;
  p99: LongFigure;
  cpu_per_message_ns: number | null;
  short_cpu_per_message_ns: number | null;
  short_cpu_per_message_low_ns: number | null;
  short_cpu_per_message_high_ns: number | null;
  remarks: string[];
}

/**
 * Wake-up latency of one CPU: how late a timer's thread runs there when it has nothing else to do. A
 * quantile with fewer than 10 wake-ups beyond it is null.
 */
export interface CoreFloor {
  cpu: number;
  n: number;
  p50_ns: number | null;
  p99_ns: number | null;
  p999_ns: number | null;
  max_ns: number;
}

/**
 * The machine's wake-up latency without any middleware, and the time a hypervisor took meanwhile.
 * `policy`: of the woken threads, `fifo` or `other`.
 */
export interface MachineFloor {
  policy: string | null;
  cores: CoreFloor[];
  duration_s: number;
  steal_share: number | null;
}
