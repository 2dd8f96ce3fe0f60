// SPDX-License-Identifier: Apache-2.0
// p50 against a factor that the reader chooses, with a line for each value of another factor: latency over
// rate per payload, or over nodes per rate, as papers draw it; or by how much each line differs from one of
// them, such as reliable from best effort.

import { axesOf, factorOf, linesBy } from "./axes";
import { drawChart, logRange, type Chart, type TipLine } from "./chart";
import type { Cell, Row } from "./data";
import { choice, element, numbers, section } from "./dom";
import { ABSENT, countText, durationText, factorLabel, percentText, rateText, sizeText } from "./format";
import { lossText, timeWithInterval } from "./payload-chart";
import { END_TO_END, key, type Model } from "./model";
import { LINES, lineLook, type Look } from "./palette";
import type { State } from "./state";
import type { Context, View } from "./view";

interface Line {
  name: string;
  rows: (Row | null)[];
  /** What is drawn at each point: p50 in ns, or its relative difference from the reference line. */
  values: (number | null)[];
}

interface DrawnLine extends Line {
  look: Look;
}

/** The cells that match the page's choice in every factor except the two of the chart. */
export function chosen(model: Model, state: State): Cell[] {
  const free = [factorOf(state.axis), state.by];
  const wanted: Record<string, string> = { ...state.facets };
  const payload = model.report.cells.find((cell) => cell.payload_bytes === state.payload)?.factors[
    "payload_bytes"
  ];
  if (payload !== undefined) wanted["payload_bytes"] = payload;
  if (state.chartAdapter !== "") wanted["adapter"] = state.chartAdapter;
  return model.report.cells.filter((cell) =>
    Object.entries(wanted).every(
      ([name, value]) => free.includes(name) || (cell.factors[name] ?? value) === value,
    ),
  );
}

function labelOf(axis: string, value: number): string {
  if (axis === "payload_bytes") return sizeText(value);
  return axis === "rate_hz" ? rateText(value) : countText(value);
}

export function linesOf({ model, state }: Context, cells: Cell[], places: number[]): Line[] {
  const order = model.report.factors.find(({ name }) => name === state.by)?.values ?? [];
  const names = order.filter((name) => cells.some((cell) => cell.factors[state.by] === name));
  const lines = names.slice(0, LINES).map((name) => {
    const rows = places.map((place) => {
      const cell = cells.find((each) => each.factors[state.by] === name && each.axes[state.axis] === place);
      return cell === undefined ? null : (model.summaries.get(key(cell.id, END_TO_END)) ?? null);
    });
    return { name, rows, values: rows.map((row) => row?.latency_p50_ns ?? null) };
  });
  if (state.against === "") return lines;
  const reference = lines.find((line) => line.name === state.against);
  return lines.map((line) => ({
    ...line,
    values: line.values.map((value, place) => difference(value, reference?.values[place] ?? null)),
  }));
}

function difference(value: number | null, reference: number | null): number | null {
  return value === null || reference === null ? null : value / reference - 1;
}

function tipLines(lines: DrawnLine[], label: string, place: number, relative: boolean): TipLine[] {
  const shown = lines.flatMap((line) => {
    const row = line.rows[place];
    if (row == null) return [];
    const text =
      row.latency_p50_ns === null
        ? "no valid trial"
        : `p50 ${timeWithInterval(row, "latency_p50_ns")}${lossText(row)}`;
    const value = line.values[place] ?? null;
    const change = relative && value !== null ? ` (${percentText(1 + value)})` : "";
    return [{ text: `${line.name}  ${text}${change}`, colour: line.look.colour }];
  });
  return [{ text: label }, ...shown];
}

function draw(context: Context, parent: HTMLElement): Chart | null {
  const { model, state } = context;
  const cells = chosen(model, state);
  const places = [...new Set(cells.flatMap((cell) => cell.axes[state.axis] ?? []))].sort((a, b) => a - b);
  const lines = linesOf(context, cells, places).map((line, number) => ({ ...line, look: lineLook(number) }));
  const values = lines.flatMap((line) => line.values.flatMap((value) => value ?? []));
  const relative = state.against !== "";
  if (values.length === 0) {
    parent.append(element("p", { class: "empty" }, "Nothing valid was measured for this choice."));
    return null;
  }
  const legend = lines.map((line) => {
    const mark = element("span", { class: "glyph", "aria-hidden": "true" }, "━");
    mark.style.color = line.look.colour;
    return element("span", { class: "name" }, mark, ` ${line.name} `);
  });
  parent.append(element("p", { class: "legend" }, `${factorLabel(state.by)}: `, ...legend));
  const log = state.axis !== "nodes";
  const [first, last] = [places[0] ?? 0, places.at(-1) ?? 1];
  const room = Math.max(1, 0.05 * (last - first));
  const drawn = relative ? `Difference of the median latency from ${state.against}` : "Median latency";
  const chart = drawChart(parent, {
    description: `${drawn} against ${factorLabel(state.axis)}, a line for each ${factorLabel(state.by)}.`,
    data: [places, ...lines.map((line) => line.values)],
    series: [
      {},
      ...lines.map((line) => ({
        stroke: line.look.colour,
        width: 1.75,
        dash: line.look.dash,
        points: { show: true, size: 7, fill: line.look.colour },
        spanGaps: true,
      })),
    ],
    x: {
      scale: log
        ? { time: false, distr: 3, log: 10, range: logRange(places, 1.3) }
        : { time: false, range: [first - room, last + room] },
      splits: () =>
        places.length > 6 && parent.clientWidth < 500 ? places.filter((_, i) => i % 2 === 0) : places,
      format: (value) => labelOf(state.axis, value),
      label: factorLabel(state.axis),
    },
    y: relative
      ? {
          scale: { range: paddedRange(values) },
          label: `p50 against ${state.against}`,
          format: (value) => percentText(1 + value),
        }
      : { scale: { distr: 3, log: 10, range: logRange(values, 1.35) }, label: "p50, end to end" },
    tip: (place) => tipLines(lines, labelOf(state.axis, places[place] ?? 0), place, relative),
    height: 340,
  });
  const heads = [
    factorLabel(state.by),
    factorLabel(state.axis),
    "n",
    "p50",
    "p99",
    "verdict",
    ...(relative ? [`against ${state.against}`] : []),
  ];
  parent.append(numbers("The same in numbers", heads, tableRows(lines, state.axis, places, relative)));
  return chart;
}

export function tableRows(lines: Line[], axis: string, places: number[], relative: boolean): string[][] {
  return lines.flatMap((line) =>
    line.rows.flatMap((row, place) => {
      if (row === null) return [];
      const value = line.values[place] ?? null;
      const change = value === null ? ABSENT : percentText(1 + value);
      return [
        [
          line.name,
          labelOf(axis, places[place] ?? 0),
          countText(row.n),
          timeWithInterval(row, "latency_p50_ns"),
          durationText(row.latency_p99_ns),
          row.valid ? "valid" : "no valid trial",
          ...(relative ? [change] : []),
        ],
      ];
    }),
  );
}

/** The range of what is drawn, always including 0. */
function paddedRange(values: number[]): [number, number] {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const room = Math.max(0.02, 0.08 * (high - low));
  return [low - room, high + room];
}

/** The choice of both axes, of the adapter if lines are something else, and likewise of the payload. */
function controls({ model, state, change }: Context): HTMLElement {
  const option = (name: string): { value: string; label: string } => ({
    value: name,
    label: factorLabel(name),
  });
  const over = choice("over", axesOf(model).map(option), state.axis, (axis) => {
    change({ axis });
  });
  const by = choice("a line for each", linesBy(model, state.axis).map(option), state.by, (value) => {
    change({ by: value });
  });
  const adapters = model.adapters.map((adapter) => ({ value: adapter, label: adapter }));
  const adapter = choice("adapter", adapters, state.chartAdapter, (chartAdapter) => {
    change({ chartAdapter });
  });
  const sizes = [...new Set(model.report.cells.flatMap((cell) => cell.payload_bytes ?? []))].sort(
    (a, b) => a - b,
  );
  const payload = choice(
    "payload",
    sizes.map((size) => ({ value: String(size), label: sizeText(size) })),
    String(state.payload ?? ""),
    (size) => {
      change({ payload: Number(size) });
    },
  );
  const names = model.report.factors.find(({ name }) => name === state.by)?.values ?? [];
  const shown = [
    { value: "", label: "p50" },
    ...names.map((name) => ({ value: name, label: `difference from ${name}` })),
  ];
  const against = choice("shown", shown, state.against, (name) => {
    change({ against: name });
  });
  const free = [factorOf(state.axis), state.by];
  return element(
    "div",
    { class: "controls", role: "group", "aria-label": "What the chart shows" },
    over,
    by,
    ...(names.length > 1 ? [against] : []),
    ...(!free.includes("adapter") && adapters.length > 1 ? [adapter] : []),
    ...(!free.includes("payload_bytes") && sizes.length > 1 ? [payload] : []),
  );
}

export function factorView(): View {
  const body = element("div");
  const root = section("factor", "Latency against a factor", body);
  let chart: Chart | null = null;
  return {
    root,
    update: (context) => {
      chart?.destroy();
      chart = null;
      root.hidden = context.state.axis === "";
      body.replaceChildren();
      if (root.hidden) return;
      body.append(controls(context));
      chart = draw(context, body);
    },
  };
}
