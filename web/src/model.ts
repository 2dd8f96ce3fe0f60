// SPDX-License-Identifier: Apache-2.0
// Look-ups in the report's data, and which cells the selection matches.

import type { Cell, Factor, Interval, Row } from "./data";
import type { Curve, Series } from "./sample-data";
import type { Report } from "./report-data";

export const END_TO_END = "end-to-end";

export interface Model {
  report: Report;
  cells: Map<string, Cell>;
  summaries: Map<string, Row>;
  trialRows: Row[];
  curves: Map<string, Curve>;
  series: Map<string, Series>;
  /**
   * Factors other than adapter and payload with more than one value: the page shows one value of each at a
   * time.
   */
  facets: Factor[];
  adapters: string[];
}

export function key(...parts: (string | number)[]): string {
  return parts.join("\u0000");
}

export function index(report: Report): Model {
  const summaryRows = report.rows.filter((row) => row.trial === null);
  return {
    report,
    cells: new Map(report.cells.map((cell) => [cell.id, cell])),
    summaries: new Map(summaryRows.map((row) => [key(row.cell, row.edge), row])),
    trialRows: report.rows.filter((row) => row.trial !== null),
    curves: new Map(report.curves.map((curve) => [key(curve.cell, curve.edge), curve])),
    series: new Map(report.series.map((each) => [key(each.cell, each.trial, each.edge), each])),
    facets: report.factors.filter(
      ({ name, values }) => name !== "adapter" && name !== "payload_bytes" && values.length > 1,
    ),
    adapters: [...new Set(report.cells.map((cell) => cell.adapter))],
  };
}

/** A cell without a value of a factor (a closed loop has no rate) matches every value of it. */
export function matches(cell: Cell, facets: Record<string, string>): boolean {
  return Object.entries(facets).every(([name, value]) => (cell.factors[name] ?? value) === value);
}

/** The combination of factors with the most valid cells; the study's order breaks ties. */
export function richestFacets(model: Model): Record<string, string> {
  const counts = new Map<string, number>();
  for (const cell of model.report.cells) {
    const combination = JSON.stringify(model.facets.map(({ name }) => cell.factors[name] ?? null));
    const valid = model.summaries.get(key(cell.id, END_TO_END))?.valid === true;
    counts.set(combination, (counts.get(combination) ?? 0) + (valid ? 1 : 0));
  }
  const best = [...counts].reduce<[string, number] | null>(
    (a, b) => (a === null || b[1] > a[1] ? b : a),
    null,
  );
  const values = best === null ? [] : (JSON.parse(best[0]) as (string | null)[]);
  return Object.fromEntries(
    model.facets.map(({ name, values: all }, i) => [name, values[i] ?? all[0] ?? ""]),
  );
}

export function selectedCells(model: Model, facets: Record<string, string>): Cell[] {
  return model.report.cells.filter((cell) => matches(cell, facets));
}

/** Edges of the cells, `end-to-end` first. */
export function edgesOf(cells: Cell[]): string[] {
  const edges = new Set(cells.flatMap((cell) => cell.edges));
  return [...edges].sort((a, b) => Number(b === END_TO_END) - Number(a === END_TO_END));
}

export function payloadsOf(cells: Cell[]): number[] {
  const payloads = cells.map((cell) => cell.payload_bytes).filter((each) => each !== null);
  return [...new Set(payloads)].sort((a, b) => a - b);
}

/** How certain a figure is; null for one from a single trial, or one without estimates. */
export function intervalOf(row: Row, figure: string): Interval | null {
  return row.intervals.find((each) => each.figure === figure) ?? null;
}

/** The ends of a figure's 95 % interval, in its own unit, if it has one. */
export function ends(row: Row, figure: string): [number, number] | null {
  const known = intervalOf(row, figure);
  return known === null || known.low === null || known.high === null ? null : [known.low, known.high];
}

/** Whether a trial only fell behind its schedule, in a study that keeps such trials. */
export function isSaturated(row: Row): boolean {
  return row.reasons.length > 0 && row.reasons.every((each) => each.startsWith("saturated:"));
}

/** A row's floor as a factor; null if none was measured, or if the offset of two clocks is in it without an
 * interval that says how much. */
export function floorRatio(row: Row): number | null {
  if (row.clock_bound_ns !== null && row.clock_bound_ns > 0 && ends(row, "times_floor_p50") === null)
    return null;
  if (row.latency_p50_ns === null || row.floor_latency_p50_ns === null || row.floor_latency_p50_ns === 0)
    return null;
  return row.latency_p50_ns / row.floor_latency_p50_ns;
}
