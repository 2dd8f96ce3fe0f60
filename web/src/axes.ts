// SPDX-License-Identifier: Apache-2.0
// What latency can be plotted over, and what can distinguish the lines.

import type { Model } from "./model";

const AXES = ["rate_hz", "nodes", "payload_bytes", "depth"];
const ADAPTER = "adapter";

/** The axes for which the campaign has several values. */
export function axesOf(model: Model): string[] {
  const values = (axis: string): Set<number> =>
    new Set(model.report.cells.flatMap((cell) => cell.axes[axis] ?? []));
  return AXES.filter((axis) => values(axis).size > 1);
}

/** A factor's name in a cell; `nodes` stands for the workload. */
export function factorOf(axis: string): string {
  return axis === "nodes" ? "workload" : axis;
}

/** The factors that can distinguish the lines: those with several values, except the axis itself. */
export function linesBy(model: Model, axis: string): string[] {
  const varied = model.report.factors.filter(
    ({ name, values }) => values.length > 1 && name !== factorOf(axis),
  );
  return varied.map(({ name }) => name).sort((a, b) => Number(b === ADAPTER) - Number(a === ADAPTER));
}
