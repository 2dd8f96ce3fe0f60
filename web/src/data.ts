// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/summary/data.py by `python -m lagometer.report.typescript web/src`; do not edit.

import type { Bridge, ChainRow, Daemons, Deadline, Feasibility, Interference, Joined, LostTail, NodeCosts, OnTheWire, Queue, Saturated, Served } from "./cell-data";
import type { CellScheduling } from "./scheduling-data";
import type { Control, LongTrial, MachineFloor } from "./steadiness-data";
import type { CellLayers } from "./way-data";

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
 * Sizes of the campaign. `messages` counts deliveries on all edges except `end-to-end`, in the measure
 * phase, over all trials. `trials_noisy` counts valid trials that something disturbed.
 */
export interface Counts {
  cells: number;
  trials: number;
  trials_valid: number;
  trials_saturated: number;
  trials_failed: number;
  trials_noisy: number;
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
 * One point of the matrix. `factors` are text, as displayed. `axes`: the numeric ones, and for a built-in
 * workload its `nodes` (pipeline), `subscribers` (fan-out) or `publishers` (fan-in). `bare` marks a bare
 * transport (the floor).
 */
export interface Cell {
  id: string;
  adapter: string;
  bare: boolean;
  payload_bytes: number | null;
  factors: Record<string, string>;
  axes: Record<string, number>;
  edges: string[];
  trials: number[];
}

/**
 * What is known about one figure of a row over trials: its 95 % interval, or how many trials it takes.
 *
 * `figure` names the field, or is `times_floor_p50`: p50 as a multiple of the floor's. With an interval,
 * both ends are given, in the figure's unit. Without one, `needed_trials` (of the same length) and
 * `needed_messages` say what should be enough.
 */
export interface Interval {
  figure: string;
  low: number | null;
  high: number | null;
  needed_trials: number | null;
  needed_messages: number | null;
}

/**
 * The figures of one edge: of one trial, or (if `trial` is null) of a cell over its valid trials.
 *
 * Over trials, counts are summed, `max` is the largest, `min` the smallest. A quantile of latency or
 * response time with an interval is the quantile of all valid trials (docs/methodology/intervals.md). Every
 * other figure is the median of the trials' figures (`lost_share`: their mean), and
 * null unless each valid trial has it. Only rows over trials have `intervals`. `floor_latency_p50_ns` is the
 * smallest p50 among the bare transports with the same placement, dispatch, payload and touch; `floor_cell`
 * names its cell. `stopped` is what ended the cell of an adaptive campaign: precision, time or trials.
 * `trials_noisy` counts the valid trials that something external disturbed; `noise` says what.
 * `clock_bound_ns` is how far off each latency and response time may be whose two ends have separate clocks
 * (`clock_bound`: hard, narrow or ptp); null if they share one. `unreachable`, end to end: messages that
 * nobody was there to pass on, not among `sent`. `missing`: messages that did not arrive (lost, overwritten,
 * censored or rejected); `lost_share`: their share of all that were meant to be sent.
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
  missing: number | null;
  lost_share: number | null;
  overwritten: number | null;
  censored: number | null;
  rejected: number | null;
  send_failed: number | null;
  duplicated: number | null;
  reordered: number | null;
  corrupted: number | null;
  unreachable: number | null;
  latency_min_ns: number | null;
  latency_p50_ns: number | null;
  latency_p90_ns: number | null;
  latency_p99_ns: number | null;
  latency_p999_ns: number | null;
  latency_max_ns: number | null;
  latency_mean_ns: number | null;
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
  noise: string[];
  trials_noisy: number;
  transport: string | null;
  clock_bound_ns: number | null;
  clock_bound: string | null;
  intervals: Interval[];
  stopped: string | null;
}

/**
 * A trial that failed, and why.
 */
export interface Failure {
  cell: string;
  trial: number;
  reasons: string[];
  log: string | null;
}

/**
 * A reason, a warning or a kind of noise: its code word, its meaning, and how many trials had it.
 *
 * `kind`: failure, warning or noise; noise counts in valid trials only. `word` is empty for a warning that
 * has none; `meaning` is then its text.
 */
export interface ReasonCount {
  kind: string;
  word: string;
  meaning: string;
  trials: number;
}

/**
 * One end-to-end figure of a cell, over all valid trials and over the undisturbed ones alone.
 *
 * `of`: `messages`, the quantile of all messages with its 95 % interval; or `trials`, the median of the
 * trials' figures, for CPU time per message and if there are too few quiet trials for the former; it has an
 * interval from six trials on. `half`: the same median, but no trial was quiet, and the half from which
 * others took the least CPU time stands for the quiet ones. Both sides are of the same kind. Cells without
 * disturbed trials are not listed.
 */
export interface WithoutNoise {
  cell: string;
  figure: string;
  of: string;
  trials: number;
  trials_noisy: number;
  all_ns: number | null;
  all_low_ns: number | null;
  all_high_ns: number | null;
  quiet_ns: number | null;
  quiet_low_ns: number | null;
  quiet_high_ns: number | null;
}

/**
 * A valid trial whose workers were switched out involuntarily this often per message. `times` is the rate
 * over the median of its cell (or, for a cell with fewer than three trials, of all such cells).
 */
export interface PreemptedTrial {
  cell: string;
  trial: number;
  per_message: number;
  times: number;
  stands_out: boolean;
  latency_p50_ns: number | null;
  cell_p50_ns: number | null;
}

/**
 * How often the workers' threads were switched out, and how much that moved the figures.
 *
 * trials_above: how many of `trials` have more than one such switch in 10 messages. trials_outstanding: how
 * many are flagged. p50_change and p99_change: the quieter half of each cell's trials compared with all of
 * them, as a share; the median over `cells_compared` cells. ranked: the trials that stand furthest above
 * comparable ones.
 */
export interface Preemption {
  trials: number;
  trials_above: number;
  trials_outstanding: number;
  per_message_median: number;
  cells_compared: number;
  p50_change: number | null;
  p99_change: number | null;
  ranked: PreemptedTrial[];
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
 * Text to paste, and the file or variable it belongs in.
 */
export interface PasteFile {
  file: string;
  text: string;
}

/**
 * What objects reported besides their settings; of several values, each once.
 */
export interface Observation {
  name: string;
  values: string[];
}

/**
 * Effective settings of one kind of object of an adapter, and the cells in which they were in force.
 */
export interface Settings {
  adapter: string;
  object: string;
  cells: string[];
  settings: Setting[];
  observed: Observation[];
  paste: PasteFile[];
}

/**
 * One cell of the at-a-glance table, end to end over its valid trials.
 *
 * `times_floor_…`: as a multiple of the same quantile of the floor (of the row's `floor_cell`); null without
 * one. `intervals`: of these figures, as far as known.
 */
export interface GlanceFigure {
  cell: string;
  latency_p50_ns: number;
  latency_p99_ns: number | null;
  times_floor_p50: number | null;
  times_floor_p99: number | null;
  cpu_per_message_ns: number | null;
  intervals: Interval[];
}

/**
 * One adapter under one set of the other factors. `settings` names those that vary in the campaign.
 *
 * `figures`: in the order of the table's payloads; null if nothing was measured. `threads` of all processes
 * and `memory_pss_bytes` of workers and daemons: at the smallest measured payload.
 */
export interface GlanceRow {
  adapter: string;
  bare: boolean;
  settings: string;
  figures: (GlanceFigure | null)[];
  threads: number | null;
  memory_pss_bytes: number | null;
}

/**
 * Requested cells of an adapter that have no figures, and why.
 *
 * `cells`: which of its cells, named by what distinguishes them; empty if the adapter has no figures at all.
 */
export interface Missing {
  adapter: string;
  cells: string[];
  reasons: string[];
}

/**
 * Every adapter next to the floor, at up to three payloads.
 */
export interface Glance {
  payloads_bytes: number[];
  rows: GlanceRow[];
  missing: Missing[];
}

/**
 * The fastest middleware for a payload, out of `among` that have figures; bare transports do not count.
 *
 * low_ns, high_ns: the 95 % interval of p50, if there is one. not_told_apart: the others whose intervals
 * overlap with it. queue_builds_up: its p50 depends on the length of a trial. remarks: what to keep in mind.
 */
export interface Fastest {
  payload_bytes: number;
  adapter: string;
  settings: string;
  cell: string;
  latency_p50_ns: number;
  low_ns: number | null;
  high_ns: number | null;
  cpu_per_message_ns: number | null;
  times_floor_p50: number | null;
  lost_share: number | null;
  queue_builds_up: boolean;
  among: number;
  not_told_apart: string[];
  remarks: string[];
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
 * The result for one ability of an adapter. `verdict`: pass, fail, absent (declared so),
 * absent-against-manual, not-run; `reason` says why it is not a plain pass.
 */
export interface AbilityVerdict {
  ability: string;
  verdict: string;
  reason: string;
}

/**
 * What the conformance suite found about an adapter, in the order of the abilities.
 */
export interface Conformance {
  adapter: string;
  version: string | null;
  findings: AbilityVerdict[];
}

/**
 * What happened in a cell and why, as far as evidence, settings and counters show.
 *
 * `kind`: its code word. `what`: a sentence. `number`: what shows it. `fix`: what to change. `source`: where
 * this is documented. Seen in `trials` of the cell's `of_trials`, including failed ones. `footnote`: its
 * number beside figures; findings that differ only in cell and `number` share one.
 */
export interface Finding {
  footnote: number;
  cell: string;
  kind: string;
  trials: number;
  of_trials: number;
  what: string;
  number: string;
  fix: string;
  source: string;
}

/**
 * A campaign as the terminal, `--json` and the report show it: derived once, with each list in display
 * order. Cells are in the study's order.
 *
 * `rows`: first each cell's rows over its trials, then those of single trials. `trials_needed`: how many
 * trials of each cell intervals would take, if no cell has one. `intervals_absent`: why there are none, if
 * more trials would not help. `notes`: what could not be read or computed.
 */
export interface Summary {
  campaign: Campaign;
  counts: Counts;
  factors: Factor[];
  cells: Cell[];
  glance: Glance | null;
  fastest: Fastest[];
  rows: Row[];
  deadlines: Deadline[];
  lost_tails: LostTail[];
  interference: Interference[];
  daemons: Daemons[];
  findings: Finding[];
  failures: Failure[];
  saturated: Saturated[];
  chains: ChainRow[];
  served: Served[];
  joined: Joined[];
  wire: OnTheWire[];
  node_costs: NodeCosts | null;
  bridges: Bridge[];
  layers: CellLayers[];
  scheduling: CellScheduling[];
  feasibility: Feasibility[];
  reasons: ReasonCount[];
  without_noise: WithoutNoise[];
  preemption: Preemption | null;
  queues: Queue[];
  control: Control | null;
  long_trials: LongTrial[];
  machine_floor: MachineFloor | null;
  trials_needed: number | null;
  intervals_absent: string | null;
  exclusions: Exclusion[];
  settings: Settings[];
  conformance: Conformance[];
  environment: Fact[];
  notes: string[];
}
