// SPDX-License-Identifier: Apache-2.0
// The table of all figures: cells × edges, over trials or each trial; it sorts by any column and filters by
// words.

import type { Row } from "./data";
import type { Report } from "./report-data";
import { check, element, scrolled, section } from "./dom";
import { marks, ofCell } from "./findings";
import {
  ABSENT,
  countOf,
  countText,
  duration,
  durationText,
  endsText,
  exactDurationText,
  factorLabel,
  rateText,
  ratioText,
  shareText,
} from "./format";
import { END_TO_END, ends, floorRatio, intervalOf, isSaturated, matches, type Model } from "./model";
import { queueNote } from "./queue-note";
import type { State } from "./state";
import { adapterLooks, type Context, type View } from "./view";

export interface Column {
  id: string;
  label: string;
  /** What the figure means, shown on the column's header. */
  meaning: string;
  value: (row: Row) => string | number | null;
  show: (row: Row) => string;
  numeric: boolean;
}

type Figure = { [Name in keyof Row]: Row[Name] extends number | null ? Name : never }[keyof Row];

function figure(id: Figure, label: string, meaning: string, show: (value: number | null) => string): Column {
  return { id, label, meaning, value: (row) => row[id], show: (row) => show(row[id]), numeric: true };
}

function text(id: string, label: string, meaning: string, value: (row: Row) => string): Column {
  return { id, label, meaning, value, show: value, numeric: false };
}

/** A column for each factor that varies; its values are in the study's order. */
function factorColumns(model: Model): Column[] {
  return model.report.factors
    .filter(({ name, values }) => name === "adapter" || name === "payload_bytes" || values.length > 1)
    .map(({ name, values }): Column => {
      const show = (row: Row): string => model.cells.get(row.cell)?.factors[name] ?? ABSENT;
      if (name === "adapter") return text(name, name, "the middleware, or publisher+subscriber", show);
      const value = (row: Row): number => values.indexOf(show(row));
      const label = factorLabel(name);
      return { id: name, label, meaning: "a factor of the study", value, show, numeric: false };
    });
}

const EDGE = text("edge", "edge", "publisher→subscriber, or end-to-end", (row) => row.edge);
const TRIAL = text("trial", "trial", "valid trials, or the number of the trial", (row) =>
  row.trial === null ? `${String(row.trials)} valid` : `no. ${String(row.trial)}`,
);
function notValid(row: Row): string {
  return isSaturated(row) ? "saturated" : "failed";
}

const VERDICT = text("valid", "verdict", "valid, failed, or saturated: behind its schedule", (row) =>
  row.valid ? "valid" : notValid(row),
);
const TIMES_FLOOR: Column = {
  id: "times_floor_p50",
  label: "÷ floor",
  meaning: "p50 divided by the p50 of the fastest bare transport doing the same work",
  value: floorRatio,
  show: (row) => ratioText(floorRatio(row)),
  numeric: true,
};

const FIGURES: Column[] = [
  figure("n", "n", "messages delivered in the measure phase", countText),
  figure("missing", "lost", "did not arrive: lost, overwritten, censored or rejected", countText),
  figure(
    "lost_share",
    "share lost",
    "what did not arrive, of all messages: the mean of the trials",
    shareText,
  ),
  figure("latency_p50_ns", "p50", "latency, publish → taken: half of the messages are faster", durationText),
  figure(
    "cpu_per_message_ns",
    "CPU / message",
    "CPU time of all workers and daemons per delivered message: the cost of the latency",
    durationText,
  ),
  figure("latency_p90_ns", "p90", "latency: 90 % are faster", durationText),
  figure("latency_p99_ns", "p99", "latency: 99 % are faster", durationText),
  figure("latency_p999_ns", "p99.9", "latency: 99.9 % are faster", durationText),
  figure("latency_max_ns", "max", "latency of the slowest message", durationText),
  figure("latency_mean_ns", "mean", "latency: the mean, which a few slow messages move", durationText),
  TIMES_FLOOR,
  figure("response_p99_ns", "response p99", "intended → taken: a late sender shows here", durationText),
  figure("send_lag_p99_ns", "send lag p99", "intended → publish: how late the sender was", durationText),
  figure(
    "blocked_p50_ns",
    "blocked p50",
    "publish → published: how long the call to publish held the sender",
    durationText,
  ),
];
const LOSSES = 3; // of them
const WAKE = figure(
  "wake_p50_ns",
  "wake p50",
  "signalled → woken: how long the node's thread took to run",
  durationText,
);
const UNREACHABLE = figure(
  "unreachable",
  "unreachable",
  "not among those sent: nobody was there to pass them on, as nodes had left or not yet joined",
  countText,
);
const RATE = figure("rate_achieved_hz", "rate", "messages sent per second, as achieved", rateText);

/** What happened in a row's cell: its findings' footnotes, by which it also sorts. */
function findingsColumn({ report }: Model): Column {
  const notes = (row: Row): number[] => ofCell(report.findings, row.cell).map(({ footnote }) => footnote);
  return {
    id: "findings",
    label: "findings",
    meaning: "what happened in this cell, by the numbers under Findings",
    value: (row) => notes(row)[0] ?? null,
    show: (row) => notes(row).join(", "),
    numeric: false,
  };
}

/** Columns of the table: the factors that vary, then the figures. */
export function columnsOf(model: Model, state: Pick<State, "eachTrial" | "allEdges">): Column[] {
  const woken = model.report.rows.some((row) => row.wake_p50_ns !== null);
  const cutOff = model.report.rows.some((row) => (row.unreachable ?? 0) > 0);
  return [
    ...factorColumns(model),
    ...(state.allEdges ? [EDGE] : []),
    ...(state.eachTrial ? [TRIAL] : []),
    VERDICT,
    ...(model.report.findings.length > 0 ? [findingsColumn(model)] : []),
    ...FIGURES.slice(0, LOSSES),
    ...(cutOff ? [UNREACHABLE] : []),
    ...FIGURES.slice(LOSSES),
    ...(woken ? [WAKE] : []),
    RATE,
  ];
}

/** Every word must occur in the row's text; a word that starts with `-` must not. */
export function passes(row: Row, factors: string, words: string[]): boolean {
  const verdict = row.valid ? "valid" : "failed";
  const searched = [row.cell, factors, row.edge, verdict, ...row.reasons].join(" ").toLowerCase();
  return words.every((word) => {
    const excludes = word.startsWith("-") && word.length > 1;
    return excludes ? !searched.includes(word.slice(1)) : searched.includes(word);
  });
}

/** Rows in the requested order; rows without a value come last in either direction. */
export function sorted(rows: Row[], column: Column | undefined, descending: boolean): Row[] {
  if (column === undefined) return rows;
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [column.value(a), column.value(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === "number" && typeof right === "number") return sign * (left - right);
    return sign * String(left).localeCompare(String(right), "en", { numeric: true });
  });
}

export function visibleRows(model: Model, state: State): Row[] {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const all = model.report.rows.filter((row) => row.trial === null);
  const shown = state.eachTrial ? withSingles(all, model.trialRows) : all;
  return shown.filter((row) => {
    const cell = model.cells.get(row.cell);
    return (
      (state.allEdges || row.edge === state.edge) &&
      (state.allCells || (cell !== undefined && matches(cell, state.facets))) &&
      (!state.failedOnly || !row.valid) &&
      passes(row, Object.values(cell?.factors ?? {}).join(" "), words)
    );
  });
}

/** Rows of single trials; if a cell has only one, its row over trials is that trial's. */
function withSingles(summaries: Row[], trialRows: Row[]): Row[] {
  const own = new Set(trialRows.map((row) => `${row.cell} ${row.edge}`));
  return [...trialRows, ...summaries.filter((row) => !own.has(`${row.cell} ${row.edge}`))];
}

function cellOf(row: Row, column: Column, context: Context): HTMLElement {
  const value = column.value(row);
  if (column.id === "adapter") {
    const look = adapterLooks(context.model).get(String(value));
    const dot = element("span", { class: "dot", "aria-hidden": "true" });
    dot.style.background = look?.colour ?? "";
    const open = (): void => {
      const cell = context.model.cells.get(row.cell);
      const facets = Object.fromEntries(
        Object.entries(context.state.facets).map(([name, old]) => [name, cell?.factors[name] ?? old]),
      );
      const place = { facets, cell: row.cell, edge: row.edge, payload: cell?.payload_bytes ?? null };
      context.change(row.trial === null ? place : { ...place, trial: row.trial });
      document.getElementById("series")?.scrollIntoView();
    };
    const button = element("button", {
      type: "button",
      class: "plain",
      onclick: open,
      title: `${row.cell}: show its series`,
    });
    button.append(dot, String(value));
    return element("th", { scope: "row" }, button);
  }
  const attributes: Record<string, string> = { "data-column": column.id };
  if (typeof value === "number") attributes["data-value"] = String(value);
  if (column.id === "valid" && !row.valid) {
    attributes["class"] = "failed";
    attributes["title"] = row.reasons.join("; ");
  }
  if (column.id === "valid" && row.trials_noisy > 0) {
    attributes["title"] = row.noise.join("; ");
    const said =
      row.trial === null && row.trials > 1
        ? `${String(row.trials_noisy)} of ${String(row.trials)} disturbed`
        : "disturbed";
    return element("td", attributes, column.show(row), element("span", { class: "interval wanting" }, said));
  }
  if (column.id === "findings")
    return element("td", { "data-column": column.id }, marks(context.model.report.findings, row.cell));
  if (!column.numeric) return element("td", attributes, column.show(row));
  attributes["class"] = "number";
  if (typeof value === "number" && column.id.endsWith("_ns")) {
    const { digits, unit } = duration(value);
    attributes["title"] = exactDurationText(value);
    const below = confidence(row, column, attributes, context);
    const bound = clockBound(row, column, value);
    return element(
      "td",
      attributes,
      digits,
      element("span", { class: "unit" }, unit),
      bound,
      below,
      growth(row, column, context),
    );
  }
  const below = confidence(row, column, attributes, context);
  return element("td", attributes, column.show(row), below);
}

/** Below a figure between two clocks: its maximum error. */
function clockBound(row: Row, column: Column, value: number): HTMLElement | null {
  if (row.clock_bound_ns === null || !/^(latency|response)_/.test(column.id)) return null;
  const less = value < row.clock_bound_ns ? ", more than the figure" : "";
  const title = `between two clocks, whose offset is known to this (${row.clock_bound ?? "hard"} bound)`;
  return element("span", { class: "interval", title }, `± ${durationText(row.clock_bound_ns)}${less}`);
}

/** Below p50: that a queue builds up, so that the figure depends on the trial's length. */
function growth(row: Row, column: Column, context: Context): HTMLElement | null {
  if (column.id !== "latency_p50_ns" || row.edge !== END_TO_END) return null;
  const own =
    row.trial === null || row.warnings.some((each) => each.startsWith(`queue-builds-up: ${END_TO_END},`));
  return own ? queueNote(context.model.report.queues, row.cell) : null;
}

/** Below a figure: its 95 % interval, or how many trials would be enough for one. */
function confidence(
  row: Row,
  column: Column,
  attributes: Record<string, string>,
  context: Context,
): HTMLElement | null {
  const known = intervalOf(row, column.id);
  const both = ends(row, column.id);
  if (both !== null) {
    attributes["data-low"] = String(both[0]);
    attributes["data-high"] = String(both[1]);
    return element("span", { class: "interval" }, endsText(column.id, ...both));
  }
  // If no cell has an interval, one sentence under the table says so.
  if (known === null || known.needed_trials === null || context.model.report.trials_needed !== null)
    return null;
  const trials = `${String(known.needed_trials)} trials`;
  const messages = known.needed_messages === null ? "" : ` (${countText(known.needed_messages)} messages)`;
  attributes["title"] = `not enough samples for a 95 % interval: ${trials}${messages} would be enough`;
  return element("span", { class: "interval wanting" }, `needs ${trials}`);
}

function headOf(column: Column, context: Context): HTMLElement {
  const { state, change } = context;
  const active = state.sort === column.id;
  const sort = (): void => {
    // First click ascending, second descending, third back to the study's order.
    if (active && state.descending) change({ sort: "", descending: false });
    else change({ sort: column.id, descending: active });
  };
  const sorting = state.descending ? { order: "descending", arrow: "▾" } : { order: "ascending", arrow: "▴" };
  const { order, arrow } = active ? sorting : { order: "none", arrow: "" };
  const button = element("button", {
    type: "button",
    id: `sort-${column.id}`,
    class: "plain",
    title: column.meaning,
    onclick: sort,
  });
  button.append(column.label, element("span", { class: "arrow", "aria-hidden": "true" }, arrow));
  return element(
    "th",
    { scope: "col", "aria-sort": order, class: column.numeric ? "number" : "", "data-column": column.id },
    button,
  );
}

function fill(table: HTMLTableElement, count: HTMLElement, context: Context): void {
  const columns = columnsOf(context.model, context.state);
  const column = columns.find((each) => each.id === context.state.sort);
  const rows = sorted(visibleRows(context.model, context.state), column, context.state.descending);
  const head = element("thead", {}, element("tr", {}, ...columns.map((each) => headOf(each, context))));
  const body = element("tbody");
  for (const row of rows) {
    const attributes: Record<string, string> = { "data-cell": row.cell, "data-edge": row.edge };
    if (row.trial !== null) attributes["data-trial"] = String(row.trial);
    if (!row.valid) attributes["class"] = "invalid";
    if (row.cell === context.state.cell && row.edge === context.state.edge)
      attributes["aria-current"] = "true";
    body.append(element("tr", attributes, ...columns.map((each) => cellOf(row, each, context))));
  }
  table.replaceChildren(element("caption", { class: "unseen" }, "Figures of each cell"), head, body);
  count.textContent = countOf(rows.length, "row", "rows");
}

/** Which figures have an interval, and why others have none. */
function intervalsNote({ intervals_absent: why, trials_needed: needed }: Report): string {
  if (why !== null) return `Quantiles have no intervals, and more trials would not help: ${why}.`;
  if (needed !== null) {
    const enough = `${String(needed)} trials of each cell would be enough`;
    return `There are no intervals: not enough samples; ${enough}.`;
  }
  return (
    "Below a figure is its 95 % interval. A quantile with an interval is that of all valid trials, each " +
    "with the same weight; “needs … trials” means that the samples do not support one yet."
  );
}

const ABSENT_NOTE =
  `${ABSENT} stands for a figure that does not exist: not observed, or a quantile with fewer than 10 ` +
  "messages beyond it.";
const OVER_TRIALS_NOTE =
  "Over several trials: counts are summed, max is the largest, the share lost is the trials' mean, " +
  "every other figure is the median of the valid trials' figures. These have no interval: counts, " +
  "minimum and maximum (they estimate nothing), every figure of a single trial, and a share of losses " +
  "that are worth fewer than ten independent ones.";

function noteOf(report: Report, several: boolean): string {
  return [ABSENT_NOTE, intervalsNote(report), ...(several ? [OVER_TRIALS_NOTE] : [])].join(" ");
}

export function tableView(): View {
  const filter = element("input", {
    type: "search",
    id: "table-filter",
    placeholder: "words; -word excludes",
    autocomplete: "off",
    spellcheck: "false",
  });
  let latest: Context | null = null;
  filter.addEventListener("input", () => latest?.change({ filter: filter.value }));
  const checks = element("div", { class: "checks" });
  const count = element("output", { for: "table-filter", "aria-live": "polite" });
  const table = element("table", { id: "figures" });
  const bar = element(
    "div",
    { class: "controls" },
    element("label", { class: "choice" }, element("span", {}, "Filter"), filter),
    checks,
    count,
  );
  const note = element("p", { class: "note" });
  return {
    root: section("figures-section", "All figures", bar, scrolled("Table of figures", table), note),
    readsTable: true,
    update: (context) => {
      latest = context;
      const { state, change, model } = context;
      if (filter.value !== state.filter) filter.value = state.filter;
      const several = model.report.cells.some((cell) => cell.trials.length > 1);
      checks.replaceChildren(
        check("All edges", state.allEdges, (allEdges) => {
          change({ allEdges });
        }),
        model.facets.length > 0
          ? check("All cells", state.allCells, (allCells) => {
              change({ allCells });
            })
          : "",
        several
          ? check("Each trial", state.eachTrial, (eachTrial) => {
              change({ eachTrial });
            })
          : "",
        check("Failed only", state.failedOnly, (failedOnly) => {
          change({ failedOnly });
        }),
      );
      note.textContent = noteOf(model.report, several);
      fill(table, count, context);
    },
  };
}
