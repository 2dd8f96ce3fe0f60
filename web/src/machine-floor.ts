// SPDX-License-Identifier: Apache-2.0
// The machine's own floor: how late it wakes a thread, from its best to its worst CPU. It is drawn below
// every tail.

import type uPlot from "uplot";
import { clipped } from "./chart";
import type { MachineFloor } from "./steadiness-data";
import type { Report } from "./report-data";
import { intervalText, shareText } from "./format";
import { theme } from "./palette";

export interface FloorRow {
  probability: number;
  best: number;
  worst: number;
}

/** 0.9 is 1, 0.99 is 2, 0.999 is 3. */
export function nines(probability: number): number {
  return -Math.log10(1 - probability);
}

/** Best and worst CPU at the quantiles in the floor's measurement. */
export function floorRows(floor: MachineFloor): FloorRow[] {
  const names = [[0.5, "p50_ns"] as const, [0.99, "p99_ns"] as const, [0.999, "p999_ns"] as const];
  return names.flatMap(([probability, name]) => {
    const values = floor.cores.map((core) => core[name]).filter((each) => each !== null);
    if (values.length === 0 || values.length < floor.cores.length) return []; // too few wake-ups on some CPU
    return [{ probability, best: Math.min(...values), worst: Math.max(...values) }];
  });
}

/** The floor at p99, for charts of a p99 to show below it. */
export function tailFloor(floor: MachineFloor | null): FloorRow | null {
  return floor === null ? null : (floorRows(floor).find(({ probability }) => probability === 0.99) ?? null);
}

/** `the machine's wake-up p99  5.20–6.10 µs`, for the box next to a cursor. */
export function tailText(tail: FloorRow): string {
  return `the machine's wake-up p99  ${intervalText(tail.best, tail.worst)}`;
}

/** What a hypervisor took: while the floor was measured, and at most in a trial. */
export function stolenText(report: Report): string {
  const shares = (report.control?.load ?? [])
    .map((each) => each.stolen_share)
    .filter((each) => each !== null);
  const meanwhile = report.machine_floor?.steal_share ?? null;
  const parts = [
    ...(meanwhile === null ? [] : [`${shareText(meanwhile)} while that was measured`]),
    ...(shares.length === 0 ? [] : [`at most ${shareText(Math.max(...shares))} during a trial`]),
  ];
  return parts.length === 0
    ? "It is not known whether a hypervisor took time."
    : `A hypervisor took this share of the CPUs' time: ${parts.join(", ")}.`;
}

function inkOf(context: CanvasRenderingContext2D, pixel: number): void {
  context.fillStyle = context.strokeStyle = theme().muted;
  context.lineWidth = pixel;
  context.setLineDash([4 * pixel, 3 * pixel]);
}

function nameIt(context: CanvasRenderingContext2D, pixel: number, text: string, x: number, y: number): void {
  context.globalAlpha = 1;
  context.font = `${String(12 * pixel)}px system-ui, sans-serif`;
  context.textBaseline = "bottom";
  context.textAlign = "right";
  context.fillText(text, x - 4 * pixel, y - 5 * pixel);
}

/** On a chart of quantiles: a band from quantile to quantile. */
export function drawFloorCurve(chart: uPlot, floor: MachineFloor): void {
  const rows = floorRows(floor);
  const last = rows.at(-1);
  if (last === undefined) return;
  clipped(chart, (context, pixel) => {
    const point = (probability: number, value: number): [number, number] => [
      chart.valToPos(nines(probability), "x", true),
      chart.valToPos(value, "y", true),
    ];
    inkOf(context, pixel);
    context.beginPath();
    for (const { probability, best } of rows) context.lineTo(...point(probability, best));
    for (const { probability, worst } of [...rows].reverse()) context.lineTo(...point(probability, worst));
    context.closePath();
    context.stroke();
    context.globalAlpha = 0.14;
    context.fill();
    const [x, y] = point(last.probability, last.worst);
    nameIt(context, pixel, "the machine's wake-up", Math.min(x, chart.bbox.left + chart.bbox.width), y);
  });
}

/** On a chart of latencies over something else: a band across at the floor's p99. */
export function drawFloorLevel(chart: uPlot, tail: FloorRow): void {
  clipped(chart, (context, pixel) => {
    const { left, width } = chart.bbox;
    const [top, foot] = [chart.valToPos(tail.worst, "y", true), chart.valToPos(tail.best, "y", true)];
    inkOf(context, pixel);
    context.globalAlpha = 0.14;
    context.fillRect(left, top, width, foot - top);
    context.globalAlpha = 1;
    context.beginPath();
    for (const y of top === foot ? [top] : [top, foot]) {
      context.moveTo(left, y);
      context.lineTo(left + width, y);
    }
    context.stroke();
    nameIt(context, pixel, "the machine's wake-up p99", left + width, top);
  });
}
