// SPDX-License-Identifier: Apache-2.0
// Latency against its cost: CPU time per message. Busy polling is fast, and this shows what it costs.

import type uPlot from "uplot";
import { clipped, drawChart, drawInterval, logRange, logSplits, type Chart, type TipLine } from "./chart";
import type { Row } from "./data";
import { element, numbers, section } from "./dom";
import { durationText, roundDurationText, sizeText } from "./format";
import { ends, payloadsOf, selectedCells } from "./model";
import { drawMarker, type Look } from "./palette";
import { linesOf, lossText, timeWithInterval } from "./payload-chart";
import { queuesNote } from "./queue-note";
import { legend, type Context, type View } from "./view";

interface Point {
  adapter: string;
  look: Look;
  payload: number;
  row: Row;
  cpuNs: number;
  latencyNs: number;
}

/** A point for each cell that has both figures; an adapter's points in the order of payloads. */
function pointsOf(context: Context): Point[] {
  const payloads = payloadsOf(selectedCells(context.model, context.state.facets));
  return linesOf(context, payloads).flatMap(({ adapter, look, rows }) =>
    rows.flatMap((row, place) => {
      const [cpuNs, latencyNs] = [row?.cpu_per_message_ns ?? null, row?.latency_p50_ns ?? null];
      if (row === null || cpuNs === null || latencyNs === null || cpuNs <= 0) return [];
      return [{ adapter, look, payload: payloads[place] ?? 0, row, cpuNs, latencyNs }];
    }),
  );
}

/** Markers, a line from each adapter's smallest payload to its largest, and intervals in both directions. */
function drawPoints(chart: uPlot, points: Point[]): void {
  clipped(chart, (context, pixel) => {
    const place = (point: Point): [number, number] => [
      chart.valToPos(point.cpuNs, "x", true),
      chart.valToPos(point.latencyNs, "y", true),
    ];
    for (const adapter of new Set(points.map((each) => each.adapter))) {
      const own = points.filter((each) => each.adapter === adapter);
      context.strokeStyle = own[0]?.look.colour ?? "";
      context.lineWidth = 1.25 * pixel;
      context.setLineDash((own[0]?.look.dash ?? []).map((each) => each * pixel));
      context.beginPath();
      for (const point of own) context.lineTo(...place(point));
      context.stroke();
    }
    context.setLineDash([]);
    for (const point of points) {
      const [x, y] = place(point);
      context.strokeStyle = context.fillStyle = point.look.colour;
      drawInterval(chart, context, x, ends(point.row, "latency_p50_ns"));
      const across = ends(point.row, "cpu_per_message_ns");
      if (across !== null) {
        context.lineWidth = 1.5 * pixel;
        context.beginPath();
        context.moveTo(chart.valToPos(across[0], "x", true), y);
        context.lineTo(chart.valToPos(across[1], "x", true), y);
        context.stroke();
      }
      drawMarker(context, point.look.marker, x, y, 4.2 * pixel);
    }
  });
}

function draw(points: Point[], parent: HTMLElement, edge: string): Chart | null {
  if (points.length === 0) {
    parent.append(element("p", { class: "empty" }, "No shown cell has both a latency and its CPU time."));
    return null;
  }
  const ordered = [...points].sort((a, b) => a.cpuNs - b.cpuNs);
  const tip = (place: number): TipLine[] => {
    const point = ordered[place];
    if (point === undefined) return [];
    const { adapter, look, payload, row } = point;
    return [
      { text: `${adapter}, ${sizeText(payload)}`, colour: look.colour },
      { text: `p50 ${timeWithInterval(row, "latency_p50_ns")}${lossText(row)}` },
      { text: `CPU ${timeWithInterval(row, "cpu_per_message_ns")} a message` },
    ];
  };
  const xRange = logRange(
    [
      ...ordered.map((each) => each.cpuNs),
      ...ordered.flatMap((each) => ends(each.row, "cpu_per_message_ns") ?? []),
    ],
    1.25,
  );
  const heights = ordered.flatMap((each) => [each.latencyNs, ...(ends(each.row, "latency_p50_ns") ?? [])]);
  const described = ordered.map(({ adapter, payload, latencyNs, cpuNs }) => {
    const figures = `${durationText(latencyNs)} for ${durationText(cpuNs)}`;
    return `${adapter} ${sizeText(payload)} ${figures}`;
  });
  return drawChart(parent, {
    description: `p50 of latency against CPU time per message on the edge ${edge}: ${described.join("; ")}.`,
    data: [ordered.map((each) => each.cpuNs), ordered.map((each) => each.latencyNs)],
    series: [{}, { paths: () => null, points: { show: false } }],
    x: {
      scale: { time: false, distr: 3, log: 10, range: xRange },
      splits: (chart) =>
        logSplits(...xRange).filter(
          (_, place, all) => all.length < 8 || chart.width > 500 || place % 2 === 0,
        ),
      format: roundDurationText,
      label: "CPU time per message",
    },
    y: { scale: { distr: 3, log: 10, range: logRange(heights, 1.35) }, label: "latency" },
    tip,
    overlay: (chart) => {
      drawPoints(chart, points);
    },
    height: 340,
  });
}

function table(points: Point[]): HTMLElement {
  const rows = points.map((each) => [
    each.adapter,
    sizeText(each.payload),
    timeWithInterval(each.row, "latency_p50_ns"),
    timeWithInterval(each.row, "cpu_per_message_ns"),
    timeWithInterval(each.row, "latency_p99_ns"),
  ]);
  return numbers("Latency against its cost", ["adapter", "payload", "p50", "CPU / message", "p99"], rows);
}

export function costView(): View {
  const body = element("div");
  let chart: Chart | null = null;
  return {
    root: section("cost", "Latency against its cost", body),
    update: (context) => {
      chart?.destroy();
      body.replaceChildren(legend(context));
      const all = pointsOf(context);
      chart = draw(
        all.filter(({ adapter }) => !context.state.hidden.includes(adapter)),
        body,
        context.state.edge,
      );
      const note =
        "Marker: p50 of latency over the CPU time of all workers and daemons per delivered message, " +
        "lower is better for both. A line joins an adapter's payloads from the smallest to the " +
        "largest. Pale bar and cross stroke: 95 % intervals, where the trials support them.";
      const rows = all.map(({ row }) => row);
      body.append(queuesNote(context.model.report.queues, rows) ?? "");
      body.append(element("p", { class: "note" }, note), table(all));
    },
  };
}
