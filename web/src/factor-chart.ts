// SPDX-License-Identifier: Apache-2.0
// Latency against a factor that the reader chooses, with a line for each value of another factor: over rate
// per payload, or over nodes per rate, as papers draw it; or by how much each line differs from one of them,
// such as reliable from best effort. p50, or what a paper shows instead: the mean, or half a round trip.

import { axesOf, factorOf, figuresOf, HALF, linesBy, MEAN, P50, SIZES } from "./axes";
import { drawChart, logRange, type Chart, type TipLine } from "./chart";
import type { Cell, Row } from "./data";
import { choice, element, numbers, section } from "./dom";
import { ABSENT, countText, durationText, factorLabel, percentText, rateText, sizeText } from "./format";
import { lossText, timeWithInterval } from "./payload-chart";
import { END_TO_END, key, type Model } from "./model";
import { LINES, lineLook, type Look } from "./palette";
import { queuesNote } from "./queue-note";
import type { State } from "./state";
import type { Context, View } from "./view";

interface Line {
  name: string;
  rows: (Row | null)[];
  /** What is drawn at each point: the figure in ns, or its relative difference from the reference line. */
  values: (number | null)[];
}

interface DrawnLine extends Line {
  look: Look;
}

// Lines by which a study compares its parts, such as one domain and two, or DDS and what stands on it.
const ACROSS_PARTS = ["adapter", "workload"];
const PART = "part";

/**
 * The cells that match the page's choice in every factor except the two of the chart. A line that the chosen
 * part of the study does not have is that of another part, so that the two can be held against each other.
 */
export function chosen(model: Model, state: State): Cell[] {
  const free = [factorOf(state.axis), state.by, PART];
  const wanted: Record<string, string> = { ...state.facets };
  const payload = model.report.cells.find((cell) => cell.payload_bytes === state.payload)?.factors[
    "payload_bytes"
  ];
  if (payload !== undefined) wanted["payload_bytes"] = payload;
  if (state.chartAdapter !== "") wanted["adapter"] = state.chartAdapter;
  const matching = model.report.cells.filter((cell) =>
    Object.entries(wanted).every(
      ([name, value]) => free.includes(name) || (cell.factors[name] ?? value) === value,
    ),
  );
  const part = state.facets[PART];
  if (part === undefined || state.by === PART) return matching;
  const own = matching.filter((cell) => (cell.factors[PART] ?? part) === part);
  if (!ACROSS_PARTS.includes(state.by)) return own;
  const lines = new Set(own.map((cell) => cell.factors[state.by]));
  return [...own, ...matching.filter((cell) => !lines.has(cell.factors[state.by]))];
}

/** The figure that the reader chose, of a cell's row. Half a round trip is that of the cell's chain. */
function figureOf(model: Model, state: State, row: Row | null): number | null {
  if (row === null) return null;
  if (state.figure === MEAN) return row.latency_mean_ns;
  if (state.figure !== HALF) return row.latency_p50_ns;
  const chains = model.report.chains.filter((each) => each.cell === row.cell);
  return chains.find((each) => each.half_round_trip_p50_ns !== null)?.half_round_trip_p50_ns ?? null;
}

const NAMES: Record<string, string> = { [MEAN]: "mean", [HALF]: "half a round trip, p50" };
const IN_WORDS: Record<string, string> = { [MEAN]: "mean latency", [HALF]: "half a round trip" };

/** What the chart's axis, its table and its tips call the figure. */
function nameOf(state: State): string {
  return NAMES[state.figure] ?? "p50";
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
    return { name, rows, values: rows.map((row) => figureOf(model, state, row)) };
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

function tipLines({ model, state }: Context, lines: DrawnLine[], label: string, place: number): TipLine[] {
  const shown = lines.flatMap((line) => {
    const row = line.rows[place];
    if (row == null) return [];
    const figure = figureOf(model, state, row);
    const time = state.figure === P50 ? timeWithInterval(row, P50) : durationText(figure);
    const text = figure === null ? "no valid trial" : `${nameOf(state)} ${time}${lossText(row)}`;
    const value = line.values[place] ?? null;
    const change = state.against !== "" && value !== null ? ` (${percentText(1 + value)})` : "";
    return [{ text: `${line.name}  ${text}${change}`, colour: line.look.colour }];
  });
  return [{ text: label }, ...shown];
}

/** From the first value to the last, with room on both sides. */
function rangeWithRoom(places: number[]): [number, number] {
  const [first, last] = [places[0] ?? 0, places.at(-1) ?? 1];
  const room = Math.max(1, 0.05 * (last - first));
  return [first - room, last + room];
}

function legendItem({ look, name }: { look: Look; name: string }): HTMLElement {
  const mark = element("span", { class: "glyph", "aria-hidden": "true" }, "━");
  mark.style.color = look.colour;
  return element("span", { class: "name" }, mark, ` ${name} `);
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
  parent.append(element("p", { class: "legend" }, `${factorLabel(state.by)}: `, ...lines.map(legendItem)));
  const log = !SIZES.includes(state.axis);
  const latency = IN_WORDS[state.figure] ?? "median latency";
  const drawn = relative ? `Difference of the ${latency} from ${state.against}` : `The ${latency}`;
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
        : { time: false, range: rangeWithRoom(places) },
      splits: () =>
        places.length > 6 && parent.clientWidth < 500 ? places.filter((_, i) => i % 2 === 0) : places,
      format: (value) => labelOf(state.axis, value),
      label: factorLabel(state.axis),
    },
    y: relative
      ? {
          scale: { range: paddedRange(values) },
          label: `${nameOf(state)} against ${state.against}`,
          format: (value) => percentText(1 + value),
        }
      : {
          scale: { distr: 3, log: 10, range: logRange(values, 1.35) },
          label: state.figure === HALF ? nameOf(state) : `${nameOf(state)}, end to end`,
        },
    tip: (place) => tipLines(context, lines, labelOf(state.axis, places[place] ?? 0), place),
    height: 340,
  });
  const heads = [
    factorLabel(state.by),
    factorLabel(state.axis),
    "n",
    "p50",
    "p99",
    "verdict",
    ...(state.figure === P50 ? [] : [nameOf(state)]),
    ...(relative ? [`against ${state.against}`] : []),
  ];
  parent.append(
    queuesNote(
      model.report.queues,
      lines.flatMap(({ rows }) => rows),
    ) ?? "",
  );
  parent.append(numbers("The same in numbers", heads, tableRows(context, lines, places)));
  return chart;
}

export function tableRows({ model, state }: Context, lines: Line[], places: number[]): string[][] {
  return lines.flatMap((line) =>
    line.rows.flatMap((row, place) => {
      if (row === null) return [];
      const value = line.values[place] ?? null;
      const change = value === null ? ABSENT : percentText(1 + value);
      return [
        [
          line.name,
          labelOf(state.axis, places[place] ?? 0),
          countText(row.n),
          timeWithInterval(row, "latency_p50_ns"),
          durationText(row.latency_p99_ns),
          row.valid ? "valid" : "no valid trial",
          ...(state.figure === P50 ? [] : [durationText(figureOf(model, state, row))]),
          ...(state.against !== "" ? [change] : []),
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
  const figures = figuresOf(model).map((value) => ({ value, label: nameOf({ ...state, figure: value }) }));
  const figure = choice("figure", figures, state.figure, (value) => {
    change({ figure: value });
  });
  const names = model.report.factors.find(({ name }) => name === state.by)?.values ?? [];
  const shown = [
    { value: "", label: nameOf(state) },
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
    ...(figures.length > 1 ? [figure] : []),
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
