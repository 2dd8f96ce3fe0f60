// SPDX-License-Identifier: Apache-2.0
// One trial over time: every message is a point, the slowest are ringed, CPU migrations and losses are marked
// at the edges.

import type uPlot from "uplot";
import { clipped, drawChart, logRange, type Chart, type TipLine } from "./chart";
import type { Row } from "./data";
import type { MachineFloor } from "./steadiness-data";
import type { Series } from "./sample-data";
import { choice, element, linkButton, numbers, section } from "./dom";
import { ABSENT, axisMomentText, countText, durationText, momentText } from "./format";
import { tailFloor } from "./machine-floor";
import { cellLink } from "./state";
import { key, selectedCells, type Model } from "./model";
import { theme } from "./palette";
import { adapterLooks, type Context, type View } from "./view";

const RINGED = 20;

function cpuText(cpu: number | null): string {
  return cpu === null ? ABSENT : String(cpu);
}

function drawPoints(chart: uPlot, series: Series, colour: string): void {
  clipped(chart, (context, pixel) => {
    context.fillStyle = colour;
    context.globalAlpha = series.latency_ns.length > 800 ? 0.55 : 0.8;
    series.latency_ns.forEach((latency, place) => {
      const x = chart.valToPos((series.time_us[place] ?? 0) / 1e6, "x", true);
      const y = chart.valToPos(latency, "y", true);
      context.beginPath();
      context.arc(x, y, 1.5 * pixel, 0, 2 * Math.PI);
      context.fill();
    });
  });
}

function drawMarks(chart: uPlot, series: Series): void {
  const colours = theme();
  clipped(chart, (context, pixel) => {
    const { top, height } = chart.bbox;
    const bottom = top + height;
    for (const migration of series.migrations) {
      const x = chart.valToPos(migration.time_ns / 1e9, "x", true);
      const low = migration.side === "sender" ? bottom : bottom - 9 * pixel;
      context.strokeStyle = migration.side === "sender" ? colours.ink : colours.accent;
      context.lineWidth = 1.5 * pixel;
      context.beginPath();
      context.moveTo(x, low);
      context.lineTo(x, low - 8 * pixel);
      context.stroke();
    }
    context.strokeStyle = colours.alarm;
    context.lineWidth = 1.25 * pixel;
    context.globalAlpha = 0.8;
    for (const time of series.lost_time_us) {
      const x = chart.valToPos(time / 1e6, "x", true);
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, top + 8 * pixel);
      context.stroke();
    }
    context.globalAlpha = 1;
    series.slowest.slice(0, RINGED).forEach((slow, place) => {
      const x = chart.valToPos(slow.time_ns / 1e9, "x", true);
      const y = chart.valToPos(slow.latency_ns, "y", true);
      context.beginPath();
      context.arc(x, y, 4.5 * pixel, 0, 2 * Math.PI);
      context.stroke();
      if (place > 0) return;
      context.fillStyle = colours.alarm;
      context.font = `${String(12 * pixel)}px system-ui, sans-serif`;
      const text = `slowest: ${durationText(slow.latency_ns)}`;
      const right = x > chart.bbox.left + chart.bbox.width * 0.85;
      const width = context.measureText(text).width;
      const left = right ? x - width : Math.max(x - width / 2, chart.bbox.left + 4 * pixel);
      context.textAlign = "left";
      context.textBaseline = "bottom";
      context.fillText(text, left, y - 8 * pixel);
    });
  });
}

function drawLevels(chart: uPlot, levels: [string, number | null][]): void {
  const colours = theme();
  clipped(chart, (context, pixel) => {
    const { left, width } = chart.bbox;
    context.strokeStyle = context.fillStyle = colours.muted;
    context.lineWidth = pixel;
    context.font = `${String(11 * pixel)}px system-ui, sans-serif`;
    context.textAlign = "right";
    context.textBaseline = "bottom";
    for (const [name, value] of levels) {
      if (value === null) continue;
      const y = chart.valToPos(value, "y", true);
      context.setLineDash([5 * pixel, 4 * pixel]);
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(left + width, y);
      context.stroke();
      // Its own background keeps the name readable among the points.
      const right = left + width - 4 * pixel;
      context.fillStyle = colours.ground;
      const wide = context.measureText(name).width + 6 * pixel;
      context.fillRect(right - wide + 3 * pixel, y - 16 * pixel, wide, 15 * pixel);
      context.fillStyle = colours.muted;
      context.fillText(name, right, y - 2 * pixel);
    }
  });
}

function tip(series: Series, place: number): TipLine[] {
  const time = (series.time_us[place] ?? 0) / 1e6;
  const lines: TipLine[] = [
    { text: momentText(time, 4) },
    { text: `latency ${durationText(series.latency_ns[place] ?? null)}` },
  ];
  const slow = series.slowest.find((each) => Math.floor(each.time_ns / 1000) === series.time_us[place]);
  if (slow !== undefined)
    lines.push({ text: `sequence ${String(slow.sequence)}, send lag ${durationText(slow.send_lag_ns)}` });
  return lines;
}

/** The figures of the series' trial; if its cell has only one, the figures over trials are that trial's. */
function rowOf(model: Model, { cell, trial, edge }: Series): Row | undefined {
  const ofTrial = model.trialRows.find(
    (each) => each.cell === cell && each.trial === trial && each.edge === edge,
  );
  return ofTrial ?? model.summaries.get(key(cell, edge));
}

function describe(series: Series, end: number): string {
  const [slowest] = series.slowest;
  const messages = `Latency of ${countText(series.n)} messages over ${momentText(end, 2)}`;
  return (
    `${messages}, trial ${String(series.trial)} of ${series.cell}, edge ${series.edge}. ` +
    (slowest === undefined ? "" : `The slowest took ${durationText(slowest.latency_ns)}.`)
  );
}

function draw(context: Context, series: Series, parent: HTMLElement): Chart {
  const cell = context.model.cells.get(series.cell);
  const colour = adapterLooks(context.model).get(cell?.adapter ?? "")?.colour ?? theme().accent;
  const row = rowOf(context.model, series);
  const xs = series.time_us.map((each) => each / 1e6);
  const end = Math.max(xs.at(-1) ?? 1, 1e-6);
  const tail = tailFloor(context.model.report.machine_floor);
  const [min, max] = logRange([...series.latency_ns, ...(tail === null ? [] : [tail.worst])], 1.25);
  return drawChart(parent, {
    description: describe(series, end),
    data: [xs, series.latency_ns],
    series: [{}, { stroke: colour, paths: () => null, points: { show: false } }],
    x: {
      scale: { time: false, range: [-end * 0.01, end * 1.01] },
      splits: (chart) => timeSplits(end, chart.width),
      format: axisMomentText,
      label: "sent, from the first measured message",
    },
    // Room for the strip of migrations at the bottom, and for the slowest one's label at the top.
    y: {
      scale: { distr: 3, log: 10, range: [min * (min / max) ** 0.12, max * (max / min) ** 0.12] },
      label: "latency",
    },
    tip: (place) => tip(series, place),
    overlay: (chart) => {
      drawPoints(chart, series, colour);
      const own: [string, number | null][] = [
        ["p50", row?.latency_p50_ns ?? null],
        ["p99", row?.latency_p99_ns ?? null],
      ];
      drawLevels(chart, [["the machine's wake-up p99", tail?.worst ?? null], ...own]);
      drawMarks(chart, series);
    },
    height: 340,
  });
}

function timeSplits(end: number, width: number): number[] {
  const raw = end / Math.max(3, Math.min(10, width / 90));
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((each) => each * power >= raw) ?? 10) * power;
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, place) => place * step);
}

function periodText(period: Series["period"]): string {
  if (period === null) return "no strict period found";
  const share = (period.share_of_variance * 100).toFixed(0);
  return `repeats every ${durationText(period.period_ns)} (${share} % of the variance of log latency)`;
}

/** Says so if not all marks are drawn. */
function marked(drawn: number, count: number): string {
  return drawn < count ? ` (${countText(drawn)} of them marked)` : "";
}

/** What the series shows, in words. */
function facts(series: Series, cpuNs: number | null): string {
  const shown = series.time_us.length < series.n ? `, ${countText(series.time_us.length)} drawn` : "";
  const side = (count: number | null, who: string): string =>
    count === null
      ? `migrations of the ${who} are not known (several share this edge)`
      : `${who} moved CPU ${String(count)}×${marked(
          series.migrations.filter((each) => each.side === who).length,
          count,
        )}`;
  const cost = cpuNs === null ? [] : [`CPU ${durationText(cpuNs)} a message`];
  const parts = [
    `${countText(series.n)} messages${shown}`,
    ...cost,
    `${countText(series.lost)} lost${marked(series.lost_time_us.length, series.lost)}`,
    side(series.migrations_sender, "sender"),
    side(series.migrations_receiver, "receiver"),
    periodText(series.period),
  ];
  return `${parts.join(" · ")}.`;
}

function tables(series: Series): HTMLElement[] {
  const slow = series.slowest.map((each) => [
    String(each.sequence),
    momentText(each.time_ns / 1e9, 6),
    durationText(each.latency_ns),
    durationText(each.send_lag_ns),
    durationText(each.blocked_ns),
    cpuText(each.cpu_publish),
    cpuText(each.cpu_taken),
  ]);
  const head = ["sequence", "sent at", "latency", "send lag", "blocked", "sender CPU", "receiver CPU"];
  const moves = series.migrations.map((each) => [
    momentText(each.time_ns / 1e9, 6),
    each.side,
    String(each.cpu_from),
    String(each.cpu_to),
  ]);
  const made = [numbers("The slowest messages", head, slow)];
  if (moves.length > 0) made.push(numbers("CPU migrations", ["sent at", "who", "from CPU", "to CPU"], moves));
  return made;
}

function controls({ model, state, change }: Context): HTMLElement {
  const drawn = new Set(
    model.report.series.filter((each) => each.edge === state.edge).map((each) => each.cell),
  );
  const cells = selectedCells(model, state.facets).filter((cell) => drawn.has(cell.id));
  const trials = model.report.series.filter((each) => each.cell === state.cell && each.edge === state.edge);
  const failed = new Set(model.report.failures.map((each) => key(each.cell, each.trial)));
  const cell = choice(
    "Cell",
    cells.map((each) => ({ value: each.id, label: each.id })),
    state.cell,
    (value) => {
      change({ cell: value });
    },
  );
  cell.classList.add("wide");
  const trial = choice(
    "Trial",
    trials.map((each) => {
      const note = failed.has(key(each.cell, each.trial)) ? " (failed)" : "";
      return { value: String(each.trial), label: `${String(each.trial)}${note}` };
    }),
    String(state.trial),
    (value) => {
      change({ trial: Number(value) });
    },
  );
  return element(
    "div",
    { class: "controls" },
    cell,
    trials.length > 1 ? trial : null,
    linkButton("Copy link to this cell", () => cellLink(state)),
  );
}

/** The legend of the drawing. */
function noteOf(floor: MachineFloor | null): string {
  const note =
    `Each point is a message. Ringed: the slowest ${String(RINGED)}. Ticks at the top: lost messages. ` +
    "Ticks at the bottom: the sender (lower row) or the receiver (upper row) was on another CPU than for " +
    "the message before.";
  const level = "The machine's wake-up: p99 of how late its worst CPU wakes a thread.";
  return tailFloor(floor) === null ? note : `${note} ${level}`;
}

export function seriesView(): View {
  const body = element("div");
  const root = section("series", "A trial over time", body);
  let chart: Chart | null = null;
  return {
    root,
    update: (context) => {
      chart?.destroy();
      chart = null;
      const { model, state } = context;
      const series = model.series.get(key(state.cell, state.trial, state.edge));
      body.replaceChildren(controls(context));
      if (series === undefined) {
        body.append(element("p", { class: "empty" }, "There is no series for this choice."));
        return;
      }
      const row = rowOf(model, series);
      body.append(element("p", { class: "lead" }, facts(series, row?.cpu_per_message_ns ?? null)));
      chart = draw(context, series, body);
      body.append(element("p", { class: "note" }, noteOf(model.report.machine_floor)), ...tables(series));
    },
  };
}
