// SPDX-License-Identifier: Apache-2.0
// Whether the machine stayed the same: the control cell over the campaign, the load below it, the long trials
// next to it.

import type uPlot from "uplot";
import { clipped, drawChart, linearSplits, type Chart } from "./chart";
import type { Control, ControlTrial, Load, LongFigure, LongTrial } from "./steadiness-data";
import type { Report } from "./report-data";
import { element, numbers, section } from "./dom";
import { ABSENT, countText, durationText, intervalText, percentText, shareText, timeText } from "./format";
import { drawMarker, theme } from "./palette";
import type { View } from "./view";

const TOLERANCE = 0.05;

function median(values: number[]): number {
  const ordered = [...values].sort((a, b) => a - b);
  return ordered[Math.floor((ordered.length - 1) / 2)] ?? 0;
}

type Measured = ControlTrial & { latency_p50_ns: number };

function measured(control: Control): Measured[] {
  return control.trials.filter((each): each is Measured => each.valid && each.latency_p50_ns !== null);
}

/** The blocks' median, with 5 % on either side as a visual scale. */
function drawTolerance(chart: uPlot, middle: number): void {
  const colours = theme();
  clipped(chart, (context, pixel) => {
    const { left, width } = chart.bbox;
    const y = (value: number): number => chart.valToPos(value, "y", true);
    context.fillStyle = colours.floor;
    const [top, bottom] = [y(middle * (1 + TOLERANCE)), y(middle * (1 - TOLERANCE))];
    context.fillRect(left, top, width, bottom - top);
    context.strokeStyle = colours.muted;
    context.lineWidth = pixel;
    context.setLineDash([5 * pixel, 4 * pixel]);
    context.beginPath();
    context.moveTo(left, y(middle));
    context.lineTo(left + width, y(middle));
    context.stroke();
  });
}

function drawTrace(chart: uPlot, trials: Measured[]): void {
  const colours = theme();
  clipped(chart, (context, pixel) => {
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5 * pixel;
    const place = (each: Measured): [number, number] => [
      chart.valToPos(each.time_s, "x", true),
      chart.valToPos(each.latency_p50_ns, "y", true),
    ];
    context.beginPath();
    for (const each of trials) context.lineTo(...place(each));
    context.stroke();
    for (const each of trials) {
      context.fillStyle = each.remarks.length > 0 ? colours.alarm : colours.accent;
      drawMarker(context, each.remarks.length > 0 ? "triangle" : "circle", ...place(each), 4.2 * pixel);
    }
  });
}

function timeAxis(end: number): {
  scale: uPlot.Scale;
  splits: (chart: uPlot) => number[];
  format: (value: number) => string;
  label: string;
} {
  return {
    scale: { time: false, range: [-end * 0.02, end * 1.02] },
    splits: () => (end < 180 ? linearSplits(0, end) : linearSplits(0, end / 60).map((each) => each * 60)),
    format: timeText,
    label: "since the campaign's first trial",
  };
}

function drawControl(control: Control, end: number, parent: HTMLElement): Chart | null {
  const trials = measured(control);
  if (trials.length === 0) return null;
  const values = trials.map((each) => each.latency_p50_ns);
  const middle = median(values);
  const [low, high] = [Math.min(middle * 0.92, ...values), Math.max(middle * 1.08, ...values)];
  const room = (high - low) * 0.06;
  const range = `from ${durationText(Math.min(...values))} to ${durationText(Math.max(...values))}`;
  const blocks = `${String(trials.length)} blocks`;
  return drawChart(parent, {
    description: `p50 of the control cell ${control.cells.join(", ")} before each of ${blocks}: ${range}.`,
    data: [trials.map((each) => each.time_s), values],
    series: [{}, { paths: () => null, points: { show: false } }],
    x: timeAxis(end),
    y: { scale: { range: [low - room, high + room] }, label: "latency" },
    tip: (place) => {
      const each = trials[place];
      if (each === undefined) return [];
      return [
        { text: `block ${String(each.block)}, ${timeText(each.time_s)}` },
        { text: `p50 ${durationText(each.latency_p50_ns)}, p99 ${durationText(each.latency_p99_ns)}` },
        { text: `CPU ${durationText(each.cpu_per_message_ns)} a message` },
        ...each.remarks.map((text) => ({ text })),
      ];
    },
    underlay: (chart) => {
      drawTolerance(chart, middle);
    },
    overlay: (chart) => {
      drawTrace(chart, trials);
    },
    height: 240,
  });
}

/** A bar per trial: how much of all CPUs' time was used, and how much a hypervisor took. */
function drawLoad(load: Load[], end: number, parent: HTMLElement): Chart | null {
  if (load.length === 0) return null;
  const colours = theme();
  const busiest = Math.max(...load.map((each) => each.busy_share ?? 0));
  const stolen = Math.max(...load.map((each) => each.stolen_share ?? 0));
  const most = `at most ${shareText(busiest)} spent and ${shareText(stolen)} stolen by a hypervisor`;
  return drawChart(parent, {
    description: `Load of all CPUs in ${String(load.length)} trials: ${most}.`,
    data: [load.map((each) => each.time_s), load.map((each) => each.busy_share)],
    series: [{}, { paths: () => null, points: { show: false } }],
    x: timeAxis(end),
    y: {
      scale: { range: [0, 1] },
      label: "share of all CPUs' time",
      format: (value) => `${String(Math.round(value * 100))} %`,
    },
    tip: (place) => {
      const each = load[place];
      if (each === undefined) return [];
      return [
        { text: timeText(each.time_s) },
        { text: `spent ${shareText(each.busy_share)}` },
        { text: `stolen ${shareText(each.stolen_share)}`, colour: colours.alarm },
      ];
    },
    overlay: (chart) => {
      clipped(chart, (context, pixel) => {
        const bars: [string, (each: Load) => number | null][] = [
          [colours.muted, (each) => each.busy_share],
          [colours.alarm, (each) => each.stolen_share],
        ];
        const width = Math.max(1, Math.min(6, (0.6 * chart.bbox.width) / load.length / pixel)) * pixel;
        for (const [colour, value] of bars) {
          context.fillStyle = colour;
          context.globalAlpha = colour === colours.alarm ? 1 : 0.55;
          for (const each of load) {
            const x = chart.valToPos(each.time_s, "x", true);
            const top = chart.valToPos(value(each) ?? 0, "y", true);
            context.fillRect(x - width / 2, top, width, chart.valToPos(0, "y", true) - top);
          }
        }
      });
    },
    height: 150,
  });
}

function lead(control: Control): string {
  const { cells, spread } = control;
  if (cells.length > 1)
    return "The control was measured on several machines; see the report of each campaign before it was merged.";
  if (spread === null) return "This campaign has no control cell; the machine's load is shown below.";
  const change = (100 * (spread.p50_last_ns - spread.p50_first_ns)) / spread.p50_first_ns;
  const range = `${durationText(spread.p50_min_ns)} to ${durationText(spread.p50_max_ns)}`;
  const changeText = `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(1)} %`;
  return (
    `${cells.join(", ")}: p50 ${range} over ${String(spread.blocks)} blocks; ` +
    `the last block ${changeText} compared with the first.`
  );
}

function tables(report: Report): HTMLElement[] {
  const made: HTMLElement[] = [];
  const trials = report.control?.trials ?? [];
  const row = (each: ControlTrial): string[] => [
    String(each.block),
    timeText(each.time_s),
    durationText(each.latency_p50_ns),
    durationText(each.cpu_per_message_ns),
    durationText(each.latency_p90_ns),
    durationText(each.latency_p99_ns),
    each.remarks.join("; ") || (each.valid ? ABSENT : "not valid"),
  ];
  if (trials.length > 0)
    made.push(
      numbers(
        "The control",
        ["before block", "at", "p50", "CPU / message", "p90", "p99", "remarks"],
        trials.map(row),
      ),
    );
  if (report.long_trials.length > 0) made.push(longTable(report.long_trials));
  return made;
}

const PLACES: Record<string, string> = {
  inside: "inside the interval",
  outside: "outside, among the short ones",
  beyond: "beyond all short ones",
};

/** The result of the short trials, with its interval: `50.3 µs (49.8–50.9 µs)`. */
function shortText(value: number | null, low: number | null, high: number | null): string {
  return `${durationText(value)}${low === null || high === null ? "" : ` (${intervalText(low, high)})`}`;
}

function longFigure(figure: LongFigure): string[] {
  const { long_ns: long, short_ns: short } = figure;
  const change = long === null || short === null || short === 0 ? ABSENT : percentText(long / short);
  const place =
    figure.place === null ? "no interval to compare it with" : (PLACES[figure.place] ?? figure.place);
  return [durationText(long), shortText(short, figure.low_ns, figure.high_ns), change, place];
}

/** Whether short trials give the same result as a long one. */
function longTable(trials: LongTrial[]): HTMLElement {
  const rows = trials.map((each) => {
    const short = shortText(
      each.short_cpu_per_message_ns,
      each.short_cpu_per_message_low_ns,
      each.short_cpu_per_message_high_ns,
    );
    return [
      each.cell,
      countText(each.n),
      ...longFigure(each.p50),
      durationText(each.cpu_per_message_ns),
      short,
      ...longFigure(each.p99),
    ];
  });
  const heads = (name: string): string[] => [`${name} long`, `${name} short`, "difference", "it lies"];
  return numbers(
    "Long trials beside short ones",
    ["cell", "n", ...heads("p50"), "CPU / message long", "CPU / message short", ...heads("p99")],
    rows,
  );
}

/** Whether the long trials agree with the short ones, in a sentence, and each one that does not. */
function longRemarks(trials: LongTrial[]): HTMLElement[] {
  const judged = trials.flatMap((each) => [each.p50.place, each.p99.place]).filter((each) => each !== null);
  if (trials.length === 0) return [];
  const inside = judged.filter((each) => each === "inside").length;
  const counted = `${String(inside)} of ${String(judged.length)} figures`;
  const said =
    judged.length === 0
      ? "the short trials have no intervals to compare it with"
      : `${counted} (p50 and p99) lie in the short trials' 95 % intervals`;
  const remarks = trials.flatMap((each) =>
    each.remarks.map((text) =>
      element("li", { class: "failed" }, element("code", {}, each.cell), `: ${text}`),
    ),
  );
  const meaning =
    " A single trial has its own offset, which the interval of the estimate does not cover. So some " +
    "lie outside without any bias of short trials, and in 2 of k + 1 cells one lies beyond all k short " +
    "ones by chance.";
  return [
    element(
      "p",
      { class: "lead", "data-long": "said" },
      `Long trials as a check: ${said}.${remarks.length === 0 ? "" : meaning}`,
    ),
    ...(remarks.length === 0
      ? []
      : [element("ul", { class: "reasons", "data-long": "remarks" }, ...remarks)]),
  ];
}

/** The legend of the drawings. */
function noteOf(control: Control): string {
  const parts: string[] = [];
  if (control.trials.length > 0) {
    parts.push(
      "Markers: p50 of the control before each block; a red triangle: something disturbed that trial. " +
        "Grey: 5 % about their median.",
    );
  }
  if (control.load.length > 0) {
    parts.push(
      "Bars: share of all CPUs' time spent in a trial, including its own workers; red: time a " +
        "hypervisor gave to others.",
    );
  }
  return parts.join(" ");
}

export function controlView(report: Report): View {
  const body = element("div");
  const root = section("control", "Did the machine stay the same?", body);
  const { control } = report;
  let charts: (Chart | null)[] = [];
  return {
    root,
    update: () => {
      for (const chart of charts) chart?.destroy();
      charts = [];
      body.replaceChildren();
      const others = [...longRemarks(report.long_trials), ...tables(report)];
      if (control === null) {
        const none = "This campaign has neither a control cell nor a record of the machine's load.";
        body.append(element("p", { class: "quiet" }, none), ...others);
        return;
      }
      body.append(element("p", { class: "lead" }, lead(control)));
      const end = Math.max(
        1,
        ...control.load.map((each) => each.time_s),
        ...control.trials.map((each) => each.time_s),
      );
      charts = [drawControl(control, end, body), drawLoad(control.load, end, body)];
      body.append(element("p", { class: "note" }, noteOf(control)), ...others);
    },
  };
}
