// SPDX-License-Identifier: Apache-2.0
// Tables of whole cells: deadlines, tails with lost messages as infinite, load next to the workers.

import type { Daemons, Deadline, Interference, LostQuantile, LostTail } from "./cell-data";
import type { Report } from "./report-data";
import { cellHead, element, headedTable, scrolled, section } from "./dom";
import {
  ABSENT,
  bytesText,
  countText,
  durationText,
  intervalText,
  percentileText,
  shareText,
  threeDigits,
} from "./format";
import { END_TO_END, key } from "./model";
import { queueNote } from "./queue-note";
import type { Context, View } from "./view";

export const INFINITE = "∞";
const THIN_SPACE = "\u202f";
const PROBABILITIES: Record<string, number> = {
  latency_p50_ns: 0.5,
  latency_p90_ns: 0.9,
  latency_p99_ns: 0.99,
  latency_p999_ns: 0.999,
};

interface Head {
  text: string;
  meaning: string;
}

/** A figure, its exact value for programs that read the page, and the text below it. */
function figure(
  column: string,
  value: number | null,
  text: string,
  below: string | null = null,
): HTMLElement {
  const attributes: Record<string, string> = { class: "number", "data-column": column };
  if (value !== null) attributes["data-value"] = String(value);
  return element(
    "td",
    attributes,
    text,
    below === null ? null : element("span", { class: "interval" }, below),
  );
}

function time(column: string, value: number | null, below: string | null = null): HTMLElement {
  return figure(column, value, durationText(value), below);
}

function row(cell: string, edge: string, ...figures: HTMLElement[]): HTMLElement {
  return element("tr", { "data-cell": cell, "data-edge": edge }, cellHead(cell), ...figures);
}

function table(id: string, label: string, heads: Head[], rows: HTMLElement[]): HTMLElement {
  const cells = heads.map(({ text, meaning }, place) =>
    element("th", { scope: "col", class: place === 0 ? "" : "number", title: meaning }, text),
  );
  return scrolled(label, headedTable({ id, class: "cell-table" }, cells, rows));
}

/** A section whose rows belong to the chosen edge. */
function edgeView(id: string, title: string, none: string, make: (context: Context) => HTMLElement[]): View {
  const body = element("div");
  return {
    root: section(id, title, body),
    update: (context) => {
      const made = make(context);
      body.replaceChildren(...(made.length > 0 ? made : [element("p", { class: "quiet" }, none)]));
    },
  };
}

const CELL: Head = { text: "cell", meaning: "the cell's id" };
const TRIALS: Head = { text: "trials", meaning: "valid trials" };
const COST: Head = {
  text: "CPU / message",
  meaning: "CPU time of all workers and daemons per delivered message: the median over trials",
};

/** A share in two digits; near the whole, two digits of what is missing: one message in time is not zero. */
export function missedText(share: number | null): string {
  return share !== null && share > 0.9 ? wholeText(share) : shareText(share);
}

/** Both ends of an interval of shares. */
export function shareIntervalText(low: number, high: number): string {
  return `${missedText(low)}–${missedText(high)}`;
}

function deadlineRow(each: Deadline): HTMLElement {
  const [low, high] = [each.miss_share_low, each.miss_share_high];
  const wanting = each.needed_trials === null ? null : `needs ${String(each.needed_trials)} trials`;
  const below = low === null || high === null ? wanting : shareIntervalText(low, high);
  const share = figure("miss_share", each.miss_share, missedText(each.miss_share), below);
  if (low !== null && high !== null) {
    share.dataset["low"] = String(low);
    share.dataset["high"] = String(high);
  }
  return row(
    each.cell,
    each.edge,
    figure("trials", each.trials, countText(each.trials)),
    figure("missed", each.missed, countText(each.missed)),
    figure("due", each.due, countText(each.due)),
    share,
    figure("run_max", each.run_max, countText(each.run_max)),
    figure("met_of_k_min", each.met_of_k_min, countText(each.met_of_k_min)),
    time("data_age_max_ns", each.data_age_max_ns),
    time("cpu_per_message_ns", each.cpu_per_message_ns),
  );
}

function deadlineHeads(k: string): Head[] {
  return [
    CELL,
    TRIALS,
    {
      text: "missed",
      meaning: "messages that were late, lost, overwritten, rejected or skipped, of all valid trials",
    },
    { text: "of", meaning: "messages that were due" },
    { text: "share missed", meaning: "the mean of the trials' shares, with its 95 % interval" },
    { text: "most in a row", meaning: "the longest run of misses in any trial" },
    {
      text: `minimum of ${k}`,
      meaning: `m of (m, k): the minimum of deadlines met in any ${k} consecutive messages, in any trial`,
    },
    {
      text: "oldest data",
      meaning: "the longest time that data was in use before newer data replaced it, in any trial",
    },
    COST,
  ];
}

/** Each value once: `1.00 ms or 5.00 ms`. */
function eachOnce(texts: string[]): string {
  return [...new Set(texts)].join(" or ");
}

function deadlineView(found: Deadline[]): View {
  const deadline = eachOnce(found.map((each) => durationText(each.deadline_ns)));
  const k = eachOnce(found.map((each) => String(each.k)));
  const said =
    `A message that was not taken within ${deadline} after it was due missed its deadline, and so did ` +
    "each message that never arrived. Every trial has the same weight in the share. Its 95 % interval " +
    "treats trials as independent, not messages; where none missed, its upper end says how often misses " +
    `may begin. Most in a row, minimum of ${k} and oldest data are the worst values observed in any ` +
    "trial, not a guarantee.";
  return edgeView("deadlines", "Deadlines", "No message was due on this edge.", ({ state }) => {
    const rows = found.filter((each) => each.edge === state.edge).map(deadlineRow);
    if (rows.length === 0) return [];
    return [
      element("p", { class: "note" }, said),
      table("deadline-table", "Deadlines", deadlineHeads(k), rows),
    ];
  });
}

/** The ends of an interval; either may be infinite. */
export function openIntervalText(low: number | null, high: number | null): string {
  if (low === null) return INFINITE;
  return high === null ? `${durationText(low)}–${INFINITE}` : intervalText(low, high);
}

function withLost(each: LostQuantile): HTMLElement {
  const below = each.interval ? openIntervalText(each.low_ns, each.high_ns) : null;
  const made = time(`${each.figure} lost`, each.value_ns, below);
  if (!each.infinite) return made;
  made.dataset["value"] = "Infinity";
  made.firstChild?.replaceWith(INFINITE);
  return made;
}

function lostRow(each: LostTail): HTMLElement {
  return row(
    each.cell,
    each.edge,
    figure("trials", each.trials, countText(each.trials)),
    figure("lost", each.lost, countText(each.lost)),
    figure("arrived_share", each.arrived_share, wholeText(each.arrived_share)),
    ...each.quantiles.flatMap((one) => [time(one.figure, one.delivered_ns), withLost(one)]),
    time("cpu_per_message_ns", each.cpu_per_message_ns),
  );
}

/** 0.99931 as `99.931 %`: what counts is how much is missing from the whole. */
export function wholeText(share: number): string {
  const missing = Number((100 * (1 - share)).toPrecision(9));
  const digits = missing === 0 ? 0 : Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(missing))));
  return `${(100 - missing).toFixed(digits)}${THIN_SPACE}%`;
}

function lostHeads(tail: LostTail): Head[] {
  const heads: Head[] = [
    CELL,
    TRIALS,
    { text: "lost", meaning: "messages lost or censored, of all valid trials" },
    {
      text: "arrived",
      meaning: "the mean of the trials' shares that arrived; every quantile above it is infinite",
    },
  ];
  for (const { figure: name } of tail.quantiles) {
    const quantile = percentileText(PROBABILITIES[name] ?? 0);
    heads.push(
      { text: quantile, meaning: `latency ${quantile} of what was delivered` },
      { text: "with lost", meaning: `latency ${quantile} with lost messages as infinite` },
    );
  }
  return [...heads, COST];
}

function lostView(found: LostTail[]): View {
  const said =
    "Latency of the delivered messages and, beside it, with the messages that never arrived as infinite " +
    `(${INFINITE}): a transport that drops its slowest messages has the better tail only in the first. ` +
    "Over all valid trials; with the 95 % interval where they support one, otherwise the median of the " +
    "trials' quantiles.";
  return edgeView(
    "lost-tails",
    "Tails with lost messages as infinite",
    "Nothing was lost on this edge.",
    ({ state }) => {
      const shown = found.filter((each) => each.edge === state.edge);
      const [first] = shown;
      if (first === undefined) return [];
      return [
        element("p", { class: "note" }, said),
        table("lost-table", "Tails with lost messages as infinite", lostHeads(first), shown.map(lostRow)),
      ];
    },
  );
}

/** What load achieved per second: bytes in megabytes, otherwise a count. */
export function achievedText(perSecond: number | null, unit: string): string {
  if (perSecond === null) return ABSENT;
  return unit === "bytes"
    ? `${threeDigits(perSecond / 1e6)}${THIN_SPACE}MB/s`
    : `${countText(Math.round(perSecond))}${THIN_SPACE}/s`;
}

/** Both ends of an interval as text; null if there is no interval. */
function rangeText(
  low: number | null,
  high: number | null,
  text: (low: number, high: number) => string,
): string | null {
  return low === null || high === null ? null : text(low, high);
}

function loadRow(each: Interference, { model }: Context): HTMLElement {
  const summary = model.summaries.get(key(each.cell, END_TO_END));
  const cpuRange = rangeText(each.cpu_low_ns, each.cpu_high_ns, intervalText);
  const achievedRange = rangeText(
    each.achieved_low_per_s,
    each.achieved_high_per_s,
    (low, high) => `${achievedText(low, each.unit)}–${achievedText(high, each.unit)}`,
  );
  const achieved = achievedText(each.achieved_per_s, each.unit);
  const p50 = time("latency_p50_ns", summary?.latency_p50_ns ?? null);
  p50.append(queueNote(model.report.queues, each.cell) ?? "");
  return row(
    each.cell,
    END_TO_END,
    element("td", {}, each.load),
    figure("trials", each.trials, countText(each.trials)),
    time("cpu_ns", each.cpu_ns, cpuRange),
    figure("achieved_per_s", each.achieved_per_s, achieved, achievedRange),
    p50,
    time("latency_p99_ns", summary?.latency_p99_ns ?? null),
    time("cpu_per_message_ns", each.cpu_per_message_ns),
  );
}

function loadView(found: Interference[]): View {
  const said =
    "What ran beside the workers, from the common start of a trial to the end of its last worker: the " +
    "medians over the valid trials, with their 95 % intervals from six trials on. Network and io: " +
    "bytes moved; otherwise stress-ng's own operations, over its whole run. Latency is end to end.";
  const heads: Head[] = [
    CELL,
    { text: "load", meaning: "the factor interference" },
    TRIALS,
    { text: "its CPU time", meaning: "CPU time of the load generators" },
    { text: "its work", meaning: "what the load achieved per second" },
    { text: "p50", meaning: "latency end to end: half of the messages are faster" },
    { text: "p99", meaning: "latency end to end: 99 % are faster" },
    COST,
  ];
  return edgeView("interference", "Load beside the workers", "", (context) => [
    element("p", { class: "note" }, said),
    table(
      "interference-table",
      "Load beside the workers",
      heads,
      found.map((each) => loadRow(each, context)),
    ),
  ]);
}

function daemonsRow(each: Daemons): HTMLElement {
  const { memory_pss_bytes: memory, daemon_pss_bytes: ofDaemons } = each;
  return row(
    each.cell,
    END_TO_END,
    figure("trials", each.trials, countText(each.trials)),
    time("cpu_per_message_ns", each.cpu_per_message_ns),
    time("daemon_cpu_per_message_ns", each.daemon_cpu_per_message_ns),
    figure("memory_pss_bytes", memory, bytesText(memory)),
    figure("daemon_pss_bytes", ofDaemons, bytesText(ofDaemons)),
  );
}

function daemonsView(found: Daemons[]): View {
  const title = "Daemons beside the workers";
  const part = { text: "daemons' part", meaning: "what the daemons alone take of it" };
  const memory = { text: "memory", meaning: "PSS of workers and daemons" };
  const heads = [CELL, TRIALS, COST, part, memory, part];
  return edgeView("daemons", title, "", () => [
    element("p", { class: "note" }, "Medians over the valid trials."),
    table("daemons-table", title, heads, found.map(daemonsRow)),
  ]);
}

/** The tables for which the campaign has data. */
export function cellTableViews(report: Report): View[] {
  return [
    ...(report.deadlines.length > 0 ? [deadlineView(report.deadlines)] : []),
    ...(report.lost_tails.length > 0 ? [lostView(report.lost_tails)] : []),
    ...(report.interference.length > 0 ? [loadView(report.interference)] : []),
    ...(report.daemons.length > 0 ? [daemonsView(report.daemons)] : []),
  ];
}
