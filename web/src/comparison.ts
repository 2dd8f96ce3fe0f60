// SPDX-License-Identifier: Apache-2.0
// The page that compares two campaigns: a verdict, a ratio with its interval for each cell, and what else
// differs.

import type { ComparedCell, ComparedQuantity, ComparisonReport } from "./comparison-data";
import { cellList, element, headedTable, scrolled, section, type Child } from "./dom";
import { findingsSection, marks, type Place } from "./findings";
import { forest } from "./forest-chart";
import { ABSENT, dateText, durationText, intervalText, percentText } from "./format";
import { layerName } from "./layer-look";

const WORDS: Record<string, string> = {
  faster: "faster",
  slower: "slower",
  mixed: "mixed",
  "no-difference": "no difference shown",
  "not-comparable": "can't be compared",
};

const FINDINGS_A: Place = { id: "findings-a", title: "Findings in A" };
const FINDINGS_B: Place = { id: "findings-b", title: "Findings in B" };

function word(verdict: string): string {
  return WORDS[verdict] ?? verdict;
}

export function nameOf(cell: ComparedCell): string {
  return cell.cell_a === cell.cell_b ? cell.cell_b : `${cell.cell_a} → ${cell.cell_b}`;
}

/** `+5.1 % (+3.2 … +7.0 %)`; an open end is ∞. */
export function ratioOf(found: ComparedQuantity): string {
  if (found.ratio === null) return ABSENT;
  const low = found.low === null ? "−∞" : percentText(found.low);
  const high = found.high === null ? "+∞" : percentText(found.high);
  return `${percentText(found.ratio)} (${low} … ${high})`;
}

function headline(report: ComparisonReport, themeButton: HTMLElement): HTMLElement {
  const counted = new Map<string, number>();
  for (const each of report.cells) counted.set(each.verdict, (counted.get(each.verdict) ?? 0) + 1);
  const verdicts = Object.keys(WORDS)
    .filter((each) => counted.has(each))
    .map((each) =>
      element(
        "div",
        { class: `verdict ${each === "slower" ? "bad" : ""}`, "data-verdict": each },
        element("dd", {}, String(counted.get(each) ?? 0)),
        element("dt", {}, word(each)),
      ),
    );
  const made = (name: string, directory: string, campaign: ComparisonReport["a"]): HTMLElement => {
    const version = `lagometer ${campaign.lagometer_version}`;
    const facts = [directory, campaign.name, dateText(campaign.created), campaign.machine, version];
    return element("p", { class: "made" }, element("strong", {}, name), ` ${facts.join(" · ")}`);
  };
  return element(
    "header",
    {},
    element(
      "div",
      { class: "top" },
      element("p", { class: "overline" }, "lagometer comparison"),
      themeButton,
    ),
    element("h1", {}, `B against A: ${word(report.verdict)}`),
    made("A", report.directory_a, report.a),
    made("B", report.directory_b, report.b),
    element("dl", { class: "verdicts" }, ...verdicts),
  );
}

/** One campaign's own figure and, below it, its 95 % interval if the samples support one. */
function side(value: number | null, low: number | null, high: number | null): HTMLElement {
  if (low === null || high === null) return element("td", { class: "number" }, durationText(value));
  const attributes = { class: "number", "data-own-low": String(low), "data-own-high": String(high) };
  return element(
    "td",
    attributes,
    durationText(value),
    element("span", { class: "interval" }, intervalText(low, high)),
  );
}

function quantityCells(found: ComparedQuantity | undefined): HTMLElement[] {
  if (found === undefined) return [1, 2, 3, 4].map(() => element("td", {}, ABSENT));
  const seen =
    found.verdict === "no-difference" && found.detectable !== null
      ? `, could have seen ≥ ${(100 * found.detectable).toFixed(1)} %`
      : "";
  const interval = {
    "data-ratio": String(found.ratio ?? ""),
    "data-low": String(found.low ?? ""),
    "data-high": String(found.high ?? ""),
  };
  const tested = found.p === null ? "" : `p = ${found.p.toPrecision(2)}, corrected for all cells`;
  return [
    side(found.a_ns, found.a_low_ns, found.a_high_ns),
    side(found.b_ns, found.b_low_ns, found.b_high_ns),
    element("td", { class: "number", ...interval }, ratioOf(found)),
    element("td", { class: found.verdict, title: tested }, found.why ?? `${word(found.verdict)}${seen}`),
  ];
}

/** The findings of both sides of a cell, by their footnotes. */
function notes(report: ComparisonReport, cell: ComparedCell): Child[] {
  const sides = [
    { name: "A", own: marks(report.findings_a, cell.cell_a, FINDINGS_A) },
    { name: "B", own: marks(report.findings_b, cell.cell_b, FINDINGS_B) },
  ];
  return sides.flatMap(({ name, own }) => (own === null ? [] : [` ${name} `, own]));
}

function figures(report: ComparisonReport, cells: ComparedCell[]): HTMLElement {
  const names = [...new Set(cells.flatMap((each) => each.quantities.map(({ quantity }) => quantity)))];
  const anyFindings = report.findings_a.length + report.findings_b.length > 0;
  const heads = [
    "cell",
    ...(anyFindings ? ["findings"] : []),
    "trials A, B",
    "CPU / message A",
    "CPU / message B",
    ...names.flatMap((name) => [`${name} A`, `${name} B`, `${name} change`, "verdict"]),
    "notes",
  ];
  const rows = cells.map((cell) =>
    element(
      "tr",
      { "data-cell": cell.cell_b, class: cell.verdict === "not-comparable" ? "invalid" : "" },
      element("th", { scope: "row" }, nameOf(cell)),
      ...(anyFindings ? [element("td", { "data-column": "findings" }, ...notes(report, cell))] : []),
      element(
        "td",
        {},
        `${String(cell.trials_a)}, ${String(cell.trials_b)}${cell.paired ? " in pairs" : ""}`,
      ),
      side(cell.cpu_per_message_a_ns, cell.cpu_per_message_a_low_ns, cell.cpu_per_message_a_high_ns),
      side(cell.cpu_per_message_b_ns, cell.cpu_per_message_b_low_ns, cell.cpu_per_message_b_high_ns),
      ...names.flatMap((name) => quantityCells(cell.quantities.find(({ quantity }) => quantity === name))),
      element("td", {}, [...(cell.why === null ? [] : [cell.why]), ...cell.notes].join("; ")),
    ),
  );
  const table = headedTable({ id: "comparison" }, heads, rows);
  const counted = `Comparison of ${String(report.cells.length)} cells`;
  table.prepend(element("caption", { class: "unseen" }, counted));
  return scrolled("Table of the comparison", table);
}

function list(title: string, names: string[]): Child[] {
  if (names.length === 0) return [];
  return [element("h3", {}, title), cellList(names)];
}

function twoColumns(heads: string[], rows: (string | null)[][]): HTMLElement {
  const body = rows.map((row) =>
    element("tr", {}, ...row.map((text, place) => element(place === 0 ? "th" : "td", {}, text ?? ABSENT))),
  );
  return scrolled(heads[0] ?? "", headedTable({ class: "differences" }, heads, body));
}

function differences(report: ComparisonReport): HTMLElement {
  const settings = report.settings.map((each) => [
    `${each.adapter} ${each.object}: ${each.name}`,
    each.a,
    each.b,
    String(each.cells),
  ]);
  const others = report.differences.map((each) => [each.what, each.a, each.b]);
  return section(
    "differences",
    "What else differs",
    element("h3", {}, "Machine, versions and study"),
    others.length === 0
      ? element("p", { class: "quiet" }, "No recorded value.")
      : twoColumns(["what", "A", "B"], others),
    element("h3", {}, "Effective settings"),
    settings.length === 0
      ? element("p", { class: "quiet" }, "All the same, or none described.")
      : twoColumns(["setting", "A", "B", "cells"], settings),
    ...list("Only in A", report.only_a),
    ...list("Only in B", report.only_b),
  );
}

/** A row for each layer of the cells that have layers on both sides: its mean time in A and in B. */
export function layerRows(cells: ComparedCell[]): string[][] {
  return cells.flatMap((cell) =>
    cell.layers.map(({ name, a_ns: before, b_ns: after }) => {
      const change = `${after < before ? "−" : "+"}${durationText(Math.abs(after - before))}`;
      const scope = cell.layers_of === "chain" ? "end to end" : "each edge";
      return [nameOf(cell), scope, layerName(name), durationText(before), durationText(after), change];
    }),
  );
}

function layers(report: ComparisonReport): HTMLElement | null {
  const rows = layerRows(report.cells);
  if (rows.length === 0) return null;
  const note =
    "Means over all messages of the valid trials; they add up to the mean latency of each side. Nothing is " +
    "tested here.";
  const heads = ["cell", "of", "layer", "A", "B", "B − A"];
  return section("layers", "Layers", element("p", { class: "quiet" }, note), twoColumns(heads, rows));
}

function control(report: ComparisonReport): HTMLElement | null {
  const compared = report.control;
  if (compared === null) return null;
  const said = compared.quantities.map(
    (each) => `${each.quantity}: ${each.why ?? `${word(each.verdict)} ${ratioOf(each)}`}`,
  );
  const { cpu_per_message_a_ns: before, cpu_per_message_b_ns: after } = compared;
  said.push(`CPU per message: ${durationText(before)} → ${durationText(after)}`);
  return element("p", { class: "lead" }, `The control (the machine itself): ${said.join("; ")}.`);
}

/** The cells that are not in the chart, by reason. */
function refused(report: ComparisonReport): HTMLElement[] {
  const reasons = new Map<string, string[]>();
  for (const cell of report.cells) {
    if (cell.verdict !== "not-comparable") continue;
    const ofQuantity = cell.quantities.find((each) => each.why !== null)?.why;
    const why = cell.why ?? ofQuantity ?? "no reason was recorded";
    reasons.set(why, [...(reasons.get(why) ?? []), nameOf(cell)]);
  }
  if (reasons.size === 0) return [];
  const items = [...reasons].map(([why, cells]) => element("li", {}, why, cellList(cells)));
  return [element("h3", {}, "Not comparable"), element("ul", { class: "reasons" }, ...items)];
}

/** Builds the page; returns a function that redraws the chart when the background colour changes. */
export function comparisonPage(
  main: HTMLElement,
  report: ComparisonReport,
  themeButton: HTMLElement,
): () => void {
  const place = element("div");
  const note =
    "Ratio B ÷ A of each quantile with its 95 % interval; to the right of the line B is slower. A " +
    "filled marker: a difference is shown, by a permutation test over trials, corrected for all cells.";
  const alpha = (100 * report.alpha).toPrecision(2);
  const alarm =
    `The probability of even one false alarm among all cells is at most ${alpha} %; each interval is ` +
    "only for its own ratio.";
  const inPairs = report.cells.some(({ paired }) => paired)
    ? " Trials in pairs are neighbours in time: the change of p50 is that within a pair."
    : "";
  const figuresNote =
    "Below a figure of A or B is its own 95 % interval, where the trials support one. CPU time of " +
    "workers and daemons per delivered message is the median of the valid trials; it is not tested.";
  main.append(
    headline(report, themeButton),
    section(
      "ratios",
      "B against A, cell by cell",
      control(report),
      place,
      element("p", { class: "note" }, `${note} ${alarm}`),
      ...refused(report),
    ),
    section(
      "cells",
      "Figures",
      element("p", { class: "quiet" }, figuresNote + inPairs),
      figures(report, report.cells),
    ),
    layers(report) ?? "",
    findingsSection(report.findings_a, FINDINGS_A) ?? "",
    findingsSection(report.findings_b, FINDINGS_B) ?? "",
    differences(report),
  );
  const compared = report.cells.filter((each) => each.verdict !== "not-comparable");
  return () => {
    forest(place, compared);
  };
}
