// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/report/comparison_data.py by `python -m lagometer.report.typescript web/src`; do not edit.

import type { Campaign, Finding } from "./data";

/**
 * B over A in one quantity of latency. An end of the interval that lies at infinity is null; without a
 * ratio, `why` says what is in the way. `a_low_ns` to `b_high_ns`: the 95 % intervals of each side's own
 * figure, null where the samples support none.
 *
 * `p` is corrected for the number of tests. `detectable`: the difference that would have been found with
 * 95 % probability, 0.05 for 5 %.
 */
export interface ComparedQuantity {
  quantity: string;
  a_ns: number | null;
  a_low_ns: number | null;
  a_high_ns: number | null;
  b_ns: number | null;
  b_low_ns: number | null;
  b_high_ns: number | null;
  ratio: number | null;
  low: number | null;
  high: number | null;
  p: number | null;
  detectable: number | null;
  verdict: string;
  why: string | null;
}

/**
 * The mean time of a message in one layer, in A and in B.
 */
export interface ComparedLayer {
  name: string;
  a_ns: number;
  b_ns: number;
}

/**
 * Two cells: one verdict over the quantities. CPU per message is the median of the valid trials', with
 * its 95 % interval; null where they are too few for one. `layers`: empty unless both cells have them, of a
 * `chain` or of any `edge`, as `layers_of` says; `unattributed` is the last one.
 */
export interface ComparedCell {
  cell_a: string;
  cell_b: string;
  adapter: string;
  payload_bytes: number | null;
  trials_a: number;
  trials_b: number;
  paired: boolean;
  verdict: string;
  why: string | null;
  notes: string[];
  quantities: ComparedQuantity[];
  cpu_per_message_a_ns: number | null;
  cpu_per_message_a_low_ns: number | null;
  cpu_per_message_a_high_ns: number | null;
  cpu_per_message_b_ns: number | null;
  cpu_per_message_b_low_ns: number | null;
  cpu_per_message_b_high_ns: number | null;
  layers_of: string | null;
  layers: ComparedLayer[];
}

/**
 * Something in which the campaigns differ; null where one does not have it.
 */
export interface Difference {
  what: string;
  a: string | null;
  b: string | null;
}

/**
 * An effective setting of an adapter's object that is not the same in A and B, and in how many cells.
 */
export interface SettingDifference {
  adapter: string;
  object: string;
  name: string;
  a: string | null;
  b: string | null;
  cells: number;
}

/**
 * Everything that the page of a comparison shows. `verdict` is over all cells, `alpha` the probability
 * of any false alarm among them. `findings_a`, `findings_b`: those in the compared cells, each side with
 * footnotes of its own.
 */
export interface ComparisonReport {
  format: number;
  kind: string;
  a: Campaign;
  b: Campaign;
  directory_a: string;
  directory_b: string;
  alpha: number;
  verdict: string;
  cells: ComparedCell[];
  control: ComparedCell | null;
  only_a: string[];
  only_b: string[];
  differences: Difference[];
  settings: SettingDifference[];
  findings_a: Finding[];
  findings_b: Finding[];
}
