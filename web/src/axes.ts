// SPDX-License-Identifier: Apache-2.0
// What latency can be plotted over, and what can distinguish the lines.

import type { Model } from "./model";

/** What the number in a workload's name counts: of a pipeline, a fan-out, a fan-in. */
export const SIZES = ["nodes", "subscribers", "publishers"];
const AXES = ["rate_hz", ...SIZES, "payload_bytes", "depth"];
export const P50 = "latency_p50_ns";
export const MEAN = "latency_mean_ns";
export const HALF = "half_round_trip_p50_ns";
const ADAPTER = "adapter";

/** The axes for which the campaign has several values. */
export function axesOf(model: Model): string[] {
  const values = (axis: string): Set<number> =>
    new Set(model.report.cells.flatMap((cell) => cell.axes[axis] ?? []));
  return AXES.filter((axis) => values(axis).size > 1);
}

/** A factor's name in a cell; the sizes stand for the workload. */
export function factorOf(axis: string): string {
  return SIZES.includes(axis) ? "workload" : axis;
}

/** The factors that can distinguish the lines: those with several values, except the axis itself. */
export function linesBy(model: Model, axis: string): string[] {
  const varied = model.report.factors.filter(
    ({ name, values }) => values.length > 1 && name !== factorOf(axis),
  );
  return varied.map(({ name }) => name).sort((a, b) => Number(b === ADAPTER) - Number(a === ADAPTER));
}

/** The figures that the campaign has, end to end. */
export function figuresOf({ report }: Model): string[] {
  const means = report.rows.some((row) => row.latency_mean_ns !== null);
  const halves = report.chains.some((each) => each.half_round_trip_p50_ns !== null);
  return [P50, ...(means ? [MEAN] : []), ...(halves ? [HALF] : [])];
}
