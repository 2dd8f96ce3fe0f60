// SPDX-License-Identifier: Apache-2.0
// What failed, was disturbed, saturated or excluded, with its reason.

import type { Queue, Saturated } from "./cell-data";
import type { Failure, Preemption, WithoutNoise } from "./data";
import type { Report } from "./report-data";
import { cellHead, cellList, element, headedTable, numberCell, scrolled, section } from "./dom";
import {
  ABSENT,
  countOf,
  countText,
  durationText,
  intervalText,
  percentText,
  rateText,
  shareText,
  threeDigits,
} from "./format";
import { END_TO_END } from "./model";
import { growthText, queueNote } from "./queue-note";

const KINDS: Record<string, string> = {
  failure: "Why trials failed",
  warning: "What was noted in trials",
  noise: "What disturbed trials",
};

/** Reasons, warnings and noise, each with its meaning and the number of trials. */
function reasonTables(report: Report): HTMLElement[] {
  return Object.entries(KINDS).flatMap(([kind, title]) => {
    const found = report.reasons.filter((each) => each.kind === kind);
    if (found.length === 0) return [];
    const rows = found.map((each) => {
      const named = each.word !== "";
      const head = named ? element("code", {}, each.word) : each.meaning;
      return element(
        "tr",
        { "data-reason": each.word },
        element("th", { scope: "row", class: "wrapped" }, head),
        numberCell(countText(each.trials)),
        element("td", { class: "wrapped" }, named ? each.meaning : ""),
      );
    });
    const table = headedTable({ class: "reason-table" }, ["reason", "trials", "meaning"], rows);
    return [element("h3", {}, title), scrolled(title, table)];
  });
}

/** A relative change in two digits: -0.0312 is `−3.1 %`. */
function changeText(share: number | null): string {
  if (share === null) return ABSENT;
  return `${share < 0 ? "−" : "+"}${(100 * Math.abs(share)).toPrecision(2)} %`;
}

/** What was observed about context switches over all trials, in sentences. */
function preemptionText(found: Preemption): string {
  const sentences = [
    `In ${String(found.trials_above)} of ${String(found.trials)} valid trials threads were switched out ` +
      "involuntarily more than once in 10 messages " +
      `(median ${found.per_message_median.toPrecision(2)} per message).`,
    found.trials_outstanding === 0
      ? "None of them stands out of this campaign, so none is flagged."
      : `${String(found.trials_outstanding)} of them stand out and are flagged.`,
  ];
  if (found.cells_compared > 0) {
    sentences.push(
      `The quieter half of each cell's trials has p50 ${changeText(found.p50_change)} and ` +
        `p99 ${changeText(found.p99_change)} against all of them ` +
        `(median over ${String(found.cells_compared)} cells).`,
    );
  }
  return sentences.join(" ");
}

/** How often threads were switched out, how much that changed the figures, and which trials stand out. */
function preemptionPart(report: Report): HTMLElement[] {
  const found = report.preemption;
  if (found === null) return [];
  const rows = found.ranked.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell, "data-trial": String(each.trial) },
      element("th", { scope: "row" }, element("code", {}, each.cell), ` trial ${String(each.trial)}`),
      numberCell(each.per_message.toPrecision(2)),
      numberCell(`${each.times.toPrecision(2)} ×`),
      element("td", {}, each.stands_out ? "stands out" : ""),
      numberCell(durationText(each.latency_p50_ns)),
      numberCell(durationText(each.cell_p50_ns)),
    ),
  );
  const heads = ["trial", "switches / message", "of the median", "", "p50", "p50 of the cell"];
  const title = "Trials that were switched out most";
  return [
    element("h3", {}, title),
    element("p", { class: "quiet" }, preemptionText(found)),
    scrolled(title, headedTable({ id: "preemption" }, heads, rows)),
  ];
}

function queueItem(queue: Queue): HTMLElement {
  const trials = `${String(queue.trials_growing)} of ${String(queue.trials)} trials`;
  const waiting = queue.waiting === null ? "" : `; ${queue.waiting}`;
  const said = `: the median response time grows by ${growthText(queue)} (${trials})${waiting}`;
  return element("li", { "data-cell": queue.cell }, element("code", {}, queue.cell), said);
}

/** Cells in which a queue builds up: their times depend on how long a trial is. */
function queuePart(report: Report): HTMLElement[] {
  if (report.queues.length === 0) return [];
  const said =
    "The reader can't keep up: p50 and all other times of these cells depend on how long a trial is.";
  return [
    element("h3", {}, "Where a queue builds up"),
    element("p", { class: "quiet" }, said),
    element("ul", { id: "queues" }, ...report.queues.map(queueItem)),
  ];
}

const COMPARED: Record<string, string> = {
  latency_p50_ns: "p50",
  cpu_per_message_ns: "CPU / message",
  latency_p99_ns: "p99",
};

const OVER: Record<string, string> = {
  messages: "all messages",
  trials: "median of trials",
  half: "median of trials; without: of the least disturbed half",
};

/** A time, its exact value for programs that read the page, and the interval below it. */
function timeCell(valueNs: number | null, lowNs: number | null, highNs: number | null): HTMLElement {
  const exact = valueNs === null ? {} : { "data-value": String(valueNs) };
  const interval =
    lowNs === null || highNs === null
      ? null
      : element("span", { class: "interval" }, intervalText(lowNs, highNs));
  return element("td", { class: "number", ...exact }, durationText(valueNs), interval);
}

function noiseRow(each: WithoutNoise, queues: Queue[]): HTMLElement {
  const { all_ns: all, quiet_ns: quiet } = each;
  const allCell = timeCell(all, each.all_low_ns, each.all_high_ns);
  if (each.figure === "latency_p50_ns") allCell.append(queueNote(queues, each.cell) ?? "");
  const change = all === null || quiet === null || all === 0 ? ABSENT : percentText(quiet / all);
  return element(
    "tr",
    { "data-cell": each.cell, "data-figure": each.figure },
    cellHead(each.cell),
    element("td", {}, `${String(each.trials_noisy)} of ${String(each.trials)}`),
    element("td", {}, COMPARED[each.figure] ?? each.figure),
    allCell,
    timeCell(quiet, each.quiet_low_ns, each.quiet_high_ns),
    numberCell(change),
    element("td", {}, OVER[each.of] ?? each.of),
  );
}

/** The cells without any quiet trial; empty if there are none such. */
function alwaysDisturbedText(report: Report): string {
  const summaries = report.rows.filter((row) => row.trial === null && row.edge === END_TO_END);
  const disturbed = summaries.filter((row) => row.trials > 0 && row.trials_noisy === row.trials).length;
  return disturbed === 0 ? "" : ` In ${countOf(disturbed, "cell", "cells")} every valid trial was disturbed.`;
}

/** How the disturbed trials affect each cell: its figures with them, as shown elsewhere, and without them. */
function noisePart(report: Report): HTMLElement[] {
  const always = alwaysDisturbedText(report);
  const title = "With and without the disturbed trials";
  if (report.without_noise.length === 0) {
    if (always === "") return [];
    const nothing = `There is nothing to compare.${always}`;
    return [element("h3", {}, title), element("p", { class: "quiet" }, nothing)];
  }
  const rows = report.without_noise.map((each) => noiseRow(each, report.queues));
  const heads = ["cell", "disturbed", "figure", "all valid trials", "without", "change", "what it is"];
  const said =
    "End to end. All other figures are of all valid trials. Where both sides have six trials, p50 and p99 " +
    "are quantiles of all messages with their 95 % intervals. Otherwise, and always for CPU per message, " +
    "it is the median of the trials' figures, with an interval from six trials on. Of a cell in which no " +
    `trial was quiet, the half that was disturbed least stands for the quiet ones.${always}`;
  return [
    element("h3", {}, title),
    element("p", { class: "quiet" }, said),
    scrolled(title, headedTable({ id: "without-noise" }, heads, rows)),
  ];
}

const MEBIBYTE = 1024 ** 2;

function saturatedRow(each: Saturated): HTMLElement {
  const goodput = each.goodput_bytes_per_s;
  return element(
    "tr",
    { "data-cell": each.cell },
    cellHead(each.cell),
    element("td", {}, `${String(each.trials)} of ${String(each.of_trials)}`),
    numberCell(rateText(each.rate_achieved_hz)),
    numberCell(rateText(each.rate_intended_hz)),
    numberCell(goodput === null ? ABSENT : `${threeDigits(goodput / MEBIBYTE)} MiB/s`),
    numberCell(shareText(each.lost_share)),
    numberCell(shareText(each.deadline_miss_share)),
    numberCell(durationText(each.latency_p50_ns)),
  );
}

function saturatedPart(report: Report): HTMLElement[] {
  if (report.saturated.length === 0) return [];
  const heads = ["cell", "trials", "rate", "of", "goodput", "lost", "deadlines missed", "p50 of what came"];
  const title = "Saturated cells";
  const said =
    "Their sources fell behind the schedule. They are no measurement at the rate that was asked for, " +
    "and stand in no ranking. Medians over the saturated trials, end to end.";
  return [
    element("h3", {}, title),
    element("p", { class: "quiet" }, said),
    scrolled(title, headedTable({ id: "saturated" }, heads, report.saturated.map(saturatedRow))),
  ];
}

function failureItem({ cell, trial, reasons, log }: Failure): HTMLElement {
  const folded =
    log === null
      ? null
      : element(
          "details",
          {},
          element("summary", {}, "what the workers said"),
          element("pre", { tabindex: "0" }, log),
        );
  const said = ` trial ${String(trial)}: ${reasons.join("; ")}`;
  return element("li", {}, element("code", {}, cell), said, folded);
}

/** Each reason, and the cells that it excludes. */
function exclusionItems(report: Report): HTMLElement[] {
  const cellsOf = new Map<string, string[]>();
  for (const { cell, reason } of report.exclusions) {
    cellsOf.set(reason, [...(cellsOf.get(reason) ?? []), cell]);
  }
  return [...cellsOf].map(([reason, cells]) => element("li", {}, reason, cellList(cells)));
}

function listOrNone(items: HTMLElement[]): HTMLElement {
  if (items.length === 0) return element("p", { class: "quiet" }, "None.");
  return element("ul", { class: "reasons" }, ...items);
}

export function failuresSection(report: Report): HTMLElement {
  return section(
    "failures",
    "Failed and excluded",
    ...reasonTables(report),
    ...queuePart(report),
    ...preemptionPart(report),
    ...noisePart(report),
    ...saturatedPart(report),
    element("h3", {}, "Failed trials"),
    listOrNone(report.failures.map(failureItem)),
    element("h3", {}, "Excluded combinations"),
    listOrNone(exclusionItems(report)),
  );
}
