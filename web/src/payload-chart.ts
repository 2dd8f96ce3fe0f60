// SPDX-License-Identifier: Apache-2.0
// Latency against payload, one line per adapter, the floor below.

import type uPlot from "uplot";
import { clipped, drawChart, drawInterval, logRange, type Chart, type TipLine } from "./chart";
import type { Row } from "./data";
import type { Report } from "./report-data";
import { element, numbers, section } from "./dom";
import { ABSENT, countText, durationText, endsText, intervalText, ratioText, sizeText } from "./format";
import { drawFloorLevel, stolenText, tailFloor, tailText, type FloorRow } from "./machine-floor";
import { ends as endsOf, floorRatio, key, payloadsOf, selectedCells } from "./model";
import { drawMarker, theme, type Look } from "./palette";
import { queuesNote } from "./queue-note";
import { adapterLooks, legend, type Context, type View } from "./view";

export interface Line {
  adapter: string;
  look: Look;
  rows: (Row | null)[];
}

interface Floor {
  payload: number;
  adapter: string;
  latencyNs: number;
}

/** Rows by adapter, at each payload. If facets leave several cells for one point, the first one is used. */
export function linesOf({ model, state }: Context, payloads: number[]): Line[] {
  const cells = selectedCells(model, state.facets);
  const styles = adapterLooks(model);
  const lines: Line[] = [];
  for (const adapter of model.adapters) {
    const look = styles.get(adapter);
    if (look === undefined || !cells.some((cell) => cell.adapter === adapter)) continue;
    const rows = payloads.map((payload) => {
      const cell = cells.find((each) => each.adapter === adapter && each.payload_bytes === payload);
      return cell === undefined ? null : (model.summaries.get(key(cell.id, state.edge)) ?? null);
    });
    lines.push({ adapter, look, rows });
  }
  return lines;
}

function floorsOf({ model }: Context, lines: Line[], payloads: number[]): Floor[] {
  const floors: Floor[] = [];
  payloads.forEach((payload, place) => {
    const row = lines.map((line) => line.rows[place]).find((each) => each?.floor_latency_p50_ns != null);
    if (row?.floor_latency_p50_ns == null) return;
    const adapter = model.cells.get(row.floor_cell ?? "")?.adapter ?? "";
    floors.push({ payload, adapter, latencyNs: row.floor_latency_p50_ns });
  });
  return floors;
}

function drawFloor(chart: uPlot, floors: Floor[]): void {
  const first = floors[0];
  const last = floors.at(-1);
  if (first === undefined || last === undefined) return;
  const colours = theme();
  clipped(chart, (context, pixel) => {
    const { left, width, top, height } = chart.bbox;
    const points = floors.map(
      (floor) =>
        [chart.valToPos(floor.payload, "x", true), chart.valToPos(floor.latencyNs, "y", true)] as const,
    );
    const begin = floors.length === 1 ? left : (points[0]?.[0] ?? left);
    const end = floors.length === 1 ? left + width : (points.at(-1)?.[0] ?? left);
    context.beginPath();
    context.moveTo(begin, points[0]?.[1] ?? 0);
    for (const [x, y] of points) context.lineTo(x, y);
    context.lineTo(end, points.at(-1)?.[1] ?? 0);
    context.strokeStyle = colours.muted;
    context.lineWidth = pixel;
    context.setLineDash([4 * pixel, 3 * pixel]);
    context.stroke();
    context.lineTo(end, top + height);
    context.lineTo(begin, top + height);
    context.closePath();
    context.fillStyle = colours.floor;
    context.globalAlpha = 0.7;
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = colours.muted;
    context.font = `${String(12 * pixel)}px system-ui, sans-serif`;
    context.textBaseline = "bottom";
    context.textAlign = "left";
    const names = [...new Set(floors.map((floor) => floor.adapter))].join(", ");
    context.fillText(`the floor: ${names}`, begin + 10 * pixel, top + height - 8 * pixel);
  });
}

/**
 * p50 as a marker, a whisker up to p99 with a tick at p90; a cell without a valid trial as a cross at the
 * edge.
 */
function drawWhiskers(chart: uPlot, lines: Line[], payloads: number[]): void {
  clipped(chart, (context, pixel) => {
    lines.forEach((line, number) => {
      const shift = (number - (lines.length - 1) / 2) * 5 * pixel;
      context.strokeStyle = context.fillStyle = line.look.colour;
      line.rows.forEach((row, place) => {
        const x = chart.valToPos(payloads[place] ?? 0, "x", true) + shift;
        const y = (value: number): number => chart.valToPos(value, "y", true);
        context.lineWidth = 1.25 * pixel;
        if (row === null) return;
        if (row.latency_p50_ns === null) {
          const bottom = chart.bbox.top + chart.bbox.height;
          if (!row.valid) drawMarker(context, "cross", x, bottom - 8 * pixel, 4 * pixel);
          return;
        }
        const ends = [row.latency_p90_ns, row.latency_p99_ns].filter((value) => value !== null);
        context.beginPath();
        if (ends.length > 0) {
          context.moveTo(x, y(row.latency_p50_ns));
          context.lineTo(x, y(Math.max(...ends)));
        }
        for (const value of ends) {
          const half = (value === row.latency_p99_ns ? 4 : 2) * pixel;
          context.moveTo(x - half, y(value));
          context.lineTo(x + half, y(value));
        }
        context.stroke();
        for (const figure of ["latency_p50_ns", "latency_p99_ns"])
          drawInterval(chart, context, x, endsOf(row, figure));
        drawMarker(context, line.look.marker, x, y(row.latency_p50_ns), 4.2 * pixel);
      });
    });
  });
}

/** A latency only describes what arrived, so what did not arrive is shown next to it. */
export function lossText(row: Row): string {
  if (row.missing === null || row.missing === 0) return "";
  const sent = row.sent === null ? null : row.sent + (row.rejected ?? 0);
  return `, ${countText(row.missing)} of ${countText(sent)} lost${intervalBeside(row, "lost_share")}`;
}

/** ` (37.9–38.6 µs)`, or nothing if there is no interval. */
export function intervalBeside(row: Row, figure: string): string {
  const both = endsOf(row, figure);
  return both === null ? "" : ` (${endsText(figure, ...both)})`;
}

type Time = "latency_p50_ns" | "latency_p90_ns" | "latency_p99_ns" | "cpu_per_message_ns";

/** A time with its interval: `38.2 µs (37.9–38.6 µs)`. */
export function timeWithInterval(row: Row, figure: Time): string {
  return `${durationText(row[figure])}${intervalBeside(row, figure)}`;
}

/** A row's figures as a line in the box next to the cursor. */
function tipText(row: Row): string {
  if (row.latency_p50_ns === null) return "no valid trial";
  const parts = [`p50 ${timeWithInterval(row, "latency_p50_ns")}`];
  if (row.latency_p99_ns !== null) parts.push(`p99 ${timeWithInterval(row, "latency_p99_ns")}`);
  if (row.cpu_per_message_ns !== null) parts.push(`CPU ${timeWithInterval(row, "cpu_per_message_ns")}`);
  return `${parts.join(", ")}${lossText(row)}`;
}

function tipLines(
  lines: Line[],
  payloads: number[],
  floors: Floor[],
  tail: FloorRow | null,
  place: number,
): TipLine[] {
  const payload = payloads[place] ?? 0;
  const tips: TipLine[] = [{ text: sizeText(payload) }];
  for (const { adapter, look, rows } of lines) {
    const row = rows[place];
    if (row != null) tips.push({ text: `${adapter}  ${tipText(row)}`, colour: look.colour });
  }
  const floor = floors.find((each) => each.payload === payload);
  if (floor !== undefined) {
    tips.push({ text: `floor (${floor.adapter})  p50 ${durationText(floor.latencyNs)}` });
  }
  if (tail !== null) tips.push({ text: tailText(tail) });
  return tips;
}

function draw(context: Context, parent: HTMLElement): Chart | null {
  const payloads = payloadsOf(selectedCells(context.model, context.state.facets));
  const all = linesOf(context, payloads);
  const lines = all.filter((line) => !context.state.hidden.includes(line.adapter));
  const floors = floorsOf(context, all, payloads);
  const figures = lines.flatMap((line) =>
    line.rows.flatMap((row) => [
      row?.latency_p50_ns ?? null,
      row?.latency_p90_ns ?? null,
      row?.latency_p99_ns ?? null,
    ]),
  );
  const intervals = lines.flatMap((line) =>
    line.rows.flatMap((row) => (row === null ? [] : (endsOf(row, "latency_p99_ns") ?? []))),
  );
  const tail = tailFloor(context.model.report.machine_floor);
  const measured = [...figures.filter((value) => value !== null), ...intervals];
  const values = [
    ...measured,
    ...floors.map((floor) => floor.latencyNs),
    ...(measured.length === 0 || tail === null ? [] : [tail.best, tail.worst]),
  ];
  if (values.length === 0 || payloads.length === 0) {
    parent.append(element("p", { class: "empty" }, "Nothing valid was measured for this choice."));
    return null;
  }
  return drawChart(parent, {
    description: `Latency against payload on the edge ${context.state.edge}: ${describe(lines, payloads)}`,
    data: [payloads, ...lines.map((line) => line.rows.map((row) => row?.latency_p50_ns ?? null))],
    series: [
      {},
      ...lines.map((line) => ({
        stroke: line.look.colour,
        width: 1.75,
        dash: line.look.dash,
        points: { show: false },
        spanGaps: false,
      })),
    ],
    x: {
      scale: { time: false, distr: 3, log: 2, range: logRange(payloads, 1.6) },
      splits: () =>
        payloads.length > 6 && parent.clientWidth < 500 ? payloads.filter((_, i) => i % 2 === 0) : payloads,
      format: sizeText,
      label: "payload",
    },
    y: { scale: { distr: 3, log: 10, range: rangeOf(values, floors) }, label: "latency" },
    tip: (place) => tipLines(lines, payloads, floors, tail, place),
    underlay: (chart) => {
      drawFloor(chart, floors);
      if (tail !== null) drawFloorLevel(chart, tail);
    },
    overlay: (chart) => {
      drawWhiskers(chart, lines, payloads);
    },
    height: 380,
  });
}

/** There is space for its name below the floor. */
function rangeOf(values: number[], floors: Floor[]): [number, number] {
  const [min, max] = logRange(values, 1.35);
  return [floors.length > 0 ? min / 1.5 : min, max];
}

function describe(lines: Line[], payloads: number[]): string {
  const ends = lines.flatMap((line) => {
    const parts = [0, payloads.length - 1].map((place) => line.rows[place]?.latency_p50_ns ?? null);
    return parts[0] == null
      ? []
      : [`${line.adapter} p50 from ${durationText(parts[0])} to ${durationText(parts[1] ?? null)}`];
  });
  return `${ends.join("; ")}.`;
}

function tableRow(adapter: string, payload: number, row: Row): string[] {
  return [
    adapter,
    sizeText(payload),
    countText(row.n),
    countText(row.missing),
    timeWithInterval(row, "latency_p50_ns"),
    timeWithInterval(row, "cpu_per_message_ns"),
    timeWithInterval(row, "latency_p90_ns"),
    timeWithInterval(row, "latency_p99_ns"),
    durationText(row.floor_latency_p50_ns),
    `${ratioText(floorRatio(row))}${intervalBeside(row, "times_floor_p50")}`,
    row.valid ? "valid" : "no valid trial",
  ];
}

const HEADS = [
  "adapter",
  "payload",
  "n",
  "lost",
  "p50",
  "CPU / message",
  "p90",
  "p99",
  "floor p50",
  "p50 ÷ floor",
  "verdict",
];

function table(context: Context): HTMLElement {
  const payloads = payloadsOf(selectedCells(context.model, context.state.facets));
  const rows = linesOf(context, payloads).flatMap((line) =>
    line.rows.flatMap((row, place) =>
      row === null ? [] : [tableRow(line.adapter, payloads[place] ?? 0, row)],
    ),
  );
  return numbers("Latency against payload", HEADS, rows);
}

/** An adapter's median and, in brackets, what to judge it by; null without a median. */
function leadPart(adapter: string, row: Row | null | undefined): string | null {
  if (row?.latency_p50_ns == null) return null;
  const beside: string[] = [];
  const interval = endsOf(row, "latency_p50_ns");
  if (interval !== null) beside.push(intervalText(...interval));
  const ratio = floorRatio(row);
  if (ratio !== null) {
    beside.push(`${ratioText(ratio)} the floor${intervalBeside(row, "times_floor_p50")}`);
  }
  if (row.cpu_per_message_ns !== null) {
    beside.push(`CPU ${timeWithInterval(row, "cpu_per_message_ns")} a message`);
  }
  const brackets = beside.length === 0 ? "" : ` (${beside.join(", ")})`;
  return `${adapter} ${durationText(row.latency_p50_ns)}${brackets}${lossText(row)}`;
}

/** A sentence with the smallest payload's figures, which gives the chart's main result without the chart. */
function lead(context: Context): string {
  const payloads = payloadsOf(selectedCells(context.model, context.state.facets));
  const all = linesOf(context, payloads);
  const said = all
    .filter((line) => !context.state.hidden.includes(line.adapter))
    .map((line) => leadPart(line.adapter, line.rows[0]))
    .filter((part) => part !== null);
  if (said.length === 0) return "";
  const size = payloads[0] === undefined ? ABSENT : sizeText(payloads[0]);
  const known = all.some((line) => line.rows[0] != null && endsOf(line.rows[0], "latency_p50_ns") !== null);
  const median = `Median latency at ${size}${known ? ", with its 95 % interval" : ""}`;
  const [floor] = floorsOf(context, all, payloads);
  const ground =
    floor === undefined ? "" : ` The floor, ${floor.adapter}, takes ${durationText(floor.latencyNs)}.`;
  return `${median}: ${said.join("; ")}.${ground}`;
}

/** The legend of the drawing. */
function noteOf(report: Report): string {
  const parts = [
    "Marker: p50. Whisker: p90 (short tick) and p99 (long tick), where at least 10 messages lie " +
      "beyond. Pale bar: 95 % interval of p50 and of p99, where the trials support one.",
    "A cross at the bottom: no valid trial.",
    "Shaded: the floor, the p50 of the fastest bare transport that did the same work.",
  ];
  if (tailFloor(report.machine_floor) !== null) {
    parts.push(
      "Dashed band across: p99 of how late the machine itself wakes a thread, from its best to its " +
        "worst CPU.",
      stolenText(report),
    );
  }
  return parts.join(" ");
}

export function payloadView(): View {
  const body = element("div");
  const root = section("payload", "Latency against payload", body);
  let chart: Chart | null = null;
  return {
    root,
    update: (context) => {
      chart?.destroy();
      body.replaceChildren(element("p", { class: "lead" }, lead(context)), legend(context));
      chart = draw(context, body);
      const report = context.model.report;
      const payloads = payloadsOf(selectedCells(context.model, context.state.facets));
      const rows = linesOf(context, payloads).flatMap((line) => line.rows);
      body.append(queuesNote(report.queues, rows) ?? "");
      body.append(element("p", { class: "note" }, noteOf(report)), table(context));
    },
  };
}
