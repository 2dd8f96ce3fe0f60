// SPDX-License-Identifier: Apache-2.0
// Percentile curves: what share of the messages arrived within what time, the tail stretched by nines.

import type uPlot from "uplot";
import { clipped, drawChart, logRange, type Chart, type TipLine } from "./chart";
import type { Curve } from "./sample-data";
import type { Row } from "./data";
import type { Report } from "./report-data";
import type { MachineFloor } from "./steadiness-data";
import { choice, element, numbers, section } from "./dom";
import { ABSENT, countText, durationText, intervalText, percentileText, sizeText } from "./format";
import { drawFloorCurve, floorRows, nines, stolenText } from "./machine-floor";
import { key, payloadsOf, selectedCells } from "./model";
import { drawMarker, type Look } from "./palette";
import { timeWithInterval } from "./payload-chart";
import { adapterLooks, legend, type Context, type View } from "./view";

interface Drawn {
  adapter: string;
  look: Look;
  curve: Curve;
  row: Row | null;
}

function curvesOf({ model, state }: Context): Drawn[] {
  const styles = adapterLooks(model);
  return selectedCells(model, state.facets)
    .filter((cell) => cell.payload_bytes === state.payload)
    .flatMap((cell) => {
      const curve = model.curves.get(key(cell.id, state.edge));
      const look = styles.get(cell.adapter);
      const row = model.summaries.get(key(cell.id, state.edge)) ?? null;
      return curve === undefined || look === undefined ? [] : [{ adapter: cell.adapter, look, curve, row }];
    });
}

function valueAt(curve: Curve, probability: number): number | null {
  const place = curve.probabilities.findIndex((each) => Math.abs(each - probability) < 1e-9);
  return place < 0 ? null : (curve.latency_ns[place] ?? null);
}

const TICKS = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];

/** Markers at the quantiles that the axis names and at each curve's end, so that colour is not needed. */
function drawMarkers(chart: uPlot, drawn: Drawn[]): void {
  clipped(chart, (context, pixel) => {
    for (const { curve, look } of drawn) {
      context.fillStyle = context.strokeStyle = look.colour;
      const ends = [...TICKS, curve.probabilities.at(-1) ?? 0];
      for (const probability of new Set(ends)) {
        const value = valueAt(curve, probability);
        if (value === null) continue;
        const x = chart.valToPos(nines(probability), "x", true);
        drawMarker(context, look.marker, x, chart.valToPos(value, "y", true), 4 * pixel);
      }
    }
  });
}

/** The pointwise 95 % band of each curve. */
function drawBands(chart: uPlot, drawn: Drawn[]): void {
  clipped(chart, (context) => {
    for (const { curve, look } of drawn) {
      const place = (probability: number, value: number): [number, number] => [
        chart.valToPos(nines(probability), "x", true),
        chart.valToPos(value, "y", true),
      ];
      const lower = curve.band_probabilities.map((each, i) => place(each, curve.band_low_ns[i] ?? 0));
      const upper = curve.band_probabilities.map((each, i) => place(each, curve.band_high_ns[i] ?? 0));
      context.beginPath();
      for (const point of [...lower, ...upper.reverse()]) context.lineTo(...point);
      context.closePath();
      context.fillStyle = look.colour;
      context.globalAlpha = 0.18;
      context.fill();
    }
  });
}

function bandAt(curve: Curve, probability: number): string {
  const place = curve.band_probabilities.findIndex((each) => Math.abs(each - probability) < 1e-9);
  const [low, high] = [curve.band_low_ns[place], curve.band_high_ns[place]];
  return low === undefined || high === undefined ? "" : `  (${intervalText(low, high)})`;
}

function draw(drawn: Drawn[], parent: HTMLElement, edge: string, floor: MachineFloor | null): Chart | null {
  if (drawn.length === 0) {
    parent.append(element("p", { class: "empty" }, "No shown adapter delivered enough messages here."));
    return null;
  }
  const probabilities = [...new Set(drawn.flatMap(({ curve }) => curve.probabilities))].sort((a, b) => a - b);
  const xs = probabilities.map(nines);
  const end = xs.at(-1) ?? 1;
  const columns = drawn.map(({ curve }) => {
    const values = new Map(curve.probabilities.map((each, place) => [each, curve.latency_ns[place] ?? null]));
    return probabilities.map((each) => values.get(each) ?? null);
  });
  const tip = (place: number): TipLine[] => [
    { text: percentileText(probabilities[place] ?? 0) },
    ...drawn.flatMap(({ adapter, look, curve }, number) => {
      const value = columns[number]?.[place] ?? null;
      if (value === null) return [];
      const band = bandAt(curve, probabilities[place] ?? 0);
      return [{ text: `${adapter}  ${durationText(value)}${band}`, colour: look.colour }];
    }),
  ];
  const below = floor === null ? [] : floorRows(floor).flatMap(({ best, worst }) => [best, worst]);
  const reached = [
    ...columns.flat().filter((each) => each !== null),
    ...drawn.flatMap(({ curve }) => curve.band_high_ns),
    ...below,
  ];
  const adapters = drawn.map((each) => each.adapter);
  return drawChart(parent, {
    description: `Percentile curves of latency on the edge ${edge}, for ${adapters.join(", ")}.`,
    data: [xs, ...columns],
    series: [
      {},
      ...drawn.map(({ look }) => ({
        stroke: look.colour,
        width: 1.75,
        dash: look.dash,
        points: { show: false },
        // Curves of different length share one grid; a gap is only a point that another curve has.
        spanGaps: true,
      })),
    ],
    x: {
      scale: { time: false, range: [0, end * 1.03] },
      splits: () => TICKS.map(nines).filter((each) => each <= end * 1.03),
      format: (value) => percentileText(Number((1 - 10 ** -value).toFixed(7))),
      label: "share of the messages",
    },
    y: { scale: { distr: 3, log: 10, range: logRange(reached, 1.2) }, label: "latency" },
    tip,
    underlay: (chart) => {
      if (floor !== null) drawFloorCurve(chart, floor);
      drawBands(chart, drawn);
    },
    overlay: (chart) => {
      drawMarkers(chart, drawn);
    },
    height: 360,
  });
}

function table(drawn: Drawn[]): HTMLElement {
  const shown = [0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];
  const rows = drawn.map(({ adapter, curve, row }) => {
    const last = curve.probabilities.length - 1;
    const end = durationText(curve.latency_ns[last] ?? null);
    const values = shown.map((each) => `${durationText(valueAt(curve, each))}${bandAt(curve, each)}`);
    const cost = row === null ? ABSENT : timeWithInterval(row, "cpu_per_message_ns");
    return [
      adapter,
      countText(curve.n),
      countText(row?.missing ?? null),
      String(curve.trials),
      cost,
      ...values,
      `${percentileText(curve.probabilities[last] ?? 0)}: ${end}`,
    ];
  });
  return numbers(
    "Percentile curves",
    ["adapter", "n", "lost", "trials", "CPU / message", ...shown.map(percentileText), "last supported"],
    rows.length > 0 ? rows : [[ABSENT]],
  );
}

/** The legend of the drawing. */
function noteOf(report: Report, drawn: Drawn[]): string {
  const parts = [
    "Delivered messages of all valid trials of a cell together. A curve ends at its last quantile with " +
      "10 messages beyond it. It does not include lost messages; the table counts them.",
  ];
  if (drawn.some(({ curve }) => curve.band_probabilities.length > 0)) {
    parts.push("Band: the 95 % interval over trials, point by point.");
  }
  if (report.machine_floor !== null) {
    parts.push(
      "Dashed: how late the machine itself wakes a thread, from its best to its worst CPU.",
      stolenText(report),
    );
  }
  return parts.join(" ");
}

export function percentileView(): View {
  const body = element("div");
  const root = section("percentiles", "Percentile curves", body);
  let chart: Chart | null = null;
  return {
    root,
    update: (context) => {
      chart?.destroy();
      const payloads = payloadsOf(selectedCells(context.model, context.state.facets));
      const pick = choice(
        "Payload",
        payloads.map((each) => ({ value: String(each), label: sizeText(each) })),
        String(context.state.payload ?? ""),
        (value) => {
          context.change({ payload: Number(value) });
        },
      );
      body.replaceChildren(
        element("div", { class: "controls" }, payloads.length > 1 ? pick : null),
        legend(context),
      );
      const all = curvesOf(context);
      chart = draw(
        all.filter(({ adapter }) => !context.state.hidden.includes(adapter)),
        body,
        context.state.edge,
        context.model.report.machine_floor,
      );
      const note = noteOf(context.model.report, all);
      body.append(element("p", { class: "note" }, note), table(all));
    },
  };
}
