// SPDX-License-Identifier: Apache-2.0
// What the reader has chosen. It is kept in the URL's fragment, so that a link shows the same view.

import type { Cell } from "./data";
import { axesOf, figuresOf, linesBy, P50 } from "./axes";
import type { Model } from "./model";
import { edgesOf, END_TO_END, key, payloadsOf, richestFacets, selectedCells } from "./model";

export interface State {
  facets: Record<string, string>;
  edge: string;
  payload: number | null;
  cell: string;
  trial: number;
  /** For the chart against a factor: the axis ("" for no such chart), the lines, and the adapter. */
  axis: string;
  by: string;
  chartAdapter: string;
  /** What is drawn: p50, the mean, or half a round trip. */
  figure: string;
  /** The reference line for relative differences; "" for the times themselves. */
  against: string;
  hidden: string[];
  filter: string;
  sort: string;
  descending: boolean;
  allCells: boolean;
  allEdges: boolean;
  eachTrial: boolean;
  failedOnly: boolean;
  theme: "auto" | "light" | "dark";
}

export function initialState(model: Model): State {
  const facets = richestFacets(model);
  const cells = selectedCells(model, facets);
  const middleware = cells.some((cell) => !cell.bare);
  return {
    facets,
    edge: END_TO_END,
    payload: null,
    cell: "",
    trial: 0,
    axis: "",
    by: "payload_bytes",
    chartAdapter: "",
    figure: P50,
    against: "",
    // The floor already shows bare transports; as separate lines they would crowd the chart.
    hidden: middleware ? [...new Set(cells.filter((cell) => cell.bare).map((cell) => cell.adapter))] : [],
    filter: "",
    sort: "",
    descending: false,
    allCells: true,
    allEdges: false,
    eachTrial: false,
    failedOnly: false,
    theme: "auto",
  };
}

/**
 * The nearest state that the campaign can show: a choice that no longer exists falls back to the first one
 * that does.
 */
export function settle(model: Model, state: State): State {
  const cells = selectedCells(model, state.facets);
  const edges = edgesOf(cells);
  const payloads = payloadsOf(cells);
  const edge = edges.includes(state.edge) ? state.edge : (edges[0] ?? END_TO_END);
  const payload =
    state.payload !== null && payloads.includes(state.payload) ? state.payload : (payloads[0] ?? null);
  const drawn = cells.filter((cell) =>
    model.report.series.some((each) => each.cell === cell.id && each.edge === edge),
  );
  const wanted = drawn.find((cell) => cell.id === state.cell);
  const fallback = drawn.find((cell) => !cell.bare && cell.payload_bytes === payload) ?? drawn[0];
  const cell = wanted ?? fallback;
  const trials = model.report.series.filter((each) => each.cell === cell?.id && each.edge === edge);
  const trial = trials.some((each) => each.trial === state.trial) ? state.trial : (trials[0]?.trial ?? 0);
  return { ...state, edge, payload, cell: cell?.id ?? "", trial, ...settledChart(model, state, cells) };
}

/** The chart over payload always exists, so another axis comes first. */
function settledChart(
  model: Model,
  state: State,
  cells: Cell[],
): Pick<State, "axis" | "by" | "chartAdapter" | "figure" | "against"> {
  const axes = axesOf(model);
  const axis = axes.includes(state.axis) ? state.axis : (axes.find((each) => each !== "payload_bytes") ?? "");
  const lines = linesBy(model, axis);
  const by = lines.includes(state.by) ? state.by : (lines[0] ?? "adapter");
  const measured = cells.find(
    (cell) => !cell.bare && model.summaries.get(key(cell.id, END_TO_END))?.valid === true,
  );
  const chartAdapter = model.adapters.includes(state.chartAdapter)
    ? state.chartAdapter
    : (measured?.adapter ?? model.adapters[0] ?? "");
  const names = model.report.factors.find(({ name }) => name === by)?.values ?? [];
  const figure = figuresOf(model).includes(state.figure) ? state.figure : P50;
  return { axis, by, chartAdapter, figure, against: names.includes(state.against) ? state.against : "" };
}

const FLAGS = ["descending", "allCells", "allEdges", "eachTrial", "failedOnly"] as const;
const TEXTS = ["edge", "cell", "filter", "sort", "axis", "by", "chartAdapter", "figure", "against"] as const;

/** The URL fragment for a state: only what differs from the first view. */
export function toFragment(state: State, initial: State): string {
  const parameters = new URLSearchParams();
  for (const name of TEXTS) if (state[name] !== initial[name]) parameters.set(name, state[name]);
  for (const name of FLAGS) if (state[name] !== initial[name]) parameters.set(name, state[name] ? "1" : "0");
  if (state.payload !== initial.payload) parameters.set("payload", String(state.payload ?? ""));
  if (state.trial !== initial.trial) parameters.set("trial", String(state.trial));
  if (state.theme !== "auto") parameters.set("theme", state.theme);
  if (state.hidden.join() !== initial.hidden.join()) parameters.set("hidden", state.hidden.join());
  for (const [name, value] of Object.entries(state.facets)) {
    if (initial.facets[name] !== value) parameters.set(`f.${name}`, value);
  }
  return parameters.toString();
}

/** The URL that opens the report at this cell, wherever its file is. */
export function cellLink(state: State): string {
  const parameters = new URLSearchParams(location.hash.replace(/^#/, ""));
  const wanted = { cell: state.cell, edge: state.edge, trial: String(state.trial) };
  for (const [name, value] of Object.entries(wanted)) parameters.set(name, value);
  return `${location.href.replace(/#.*$/, "")}#${parameters.toString()}`;
}

/** A link that only names a cell also selects that cell's factors and payload. */
export function withCell(model: Model, state: State, fragment: string): State {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const cell = model.cells.get(parameters.get("cell") ?? "");
  if (cell === undefined) return state;
  const facets = Object.fromEntries(
    Object.entries(state.facets).map(([name, old]) => [
      name,
      parameters.has(`f.${name}`) ? old : (cell.factors[name] ?? old),
    ]),
  );
  return { ...state, facets, payload: parameters.has("payload") ? state.payload : cell.payload_bytes };
}

/** The state that a URL fragment stands for; wrong parts are left out. */
export function fromFragment(fragment: string, initial: State): State {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const state: State = { ...initial, facets: { ...initial.facets } };
  for (const name of TEXTS) state[name] = parameters.get(name) ?? initial[name];
  for (const name of FLAGS) if (parameters.has(name)) state[name] = parameters.get(name) === "1";
  const payload = Number(parameters.get("payload") ?? NaN);
  if (Number.isInteger(payload) && payload > 0) state.payload = payload;
  const trial = Number(parameters.get("trial") ?? NaN);
  if (Number.isInteger(trial) && trial >= 0) state.trial = trial;
  const theme = parameters.get("theme");
  if (theme === "light" || theme === "dark") state.theme = theme;
  const hidden = parameters.get("hidden");
  if (hidden !== null) state.hidden = hidden.split(",").filter((name) => name !== "");
  for (const name of Object.keys(state.facets)) {
    const value = parameters.get(`f.${name}`);
    if (value !== null) state.facets[name] = value;
  }
  return state;
}
