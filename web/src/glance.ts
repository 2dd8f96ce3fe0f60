// SPDX-License-Identifier: Apache-2.0
// The campaign at a glance: every adapter next to the machine's own floor, at up to three payloads.

import type { Finding, GlanceFigure, GlanceRow } from "./data";
import type { Queue } from "./cell-data";
import type { Report } from "./report-data";
import { element, scrolled, section } from "./dom";
import { marks } from "./findings";
import { ABSENT, countText, durationText, endsText, sizeText, threeDigits } from "./format";
import { queueNote } from "./queue-note";

const HEADS = ["p50", "× floor", "p99", "× floor", "CPU per message"];

type Named =
  "latency_p50_ns" | "times_floor_p50" | "latency_p99_ns" | "times_floor_p99" | "cpu_per_message_ns";

function number(
  value: number | null,
  text: string,
  place = "",
  below: HTMLElement | null = null,
  beside: (HTMLElement | null)[] = [],
): HTMLElement {
  return element(
    "td",
    { class: `number ${place}`, ...(value === null ? {} : { "data-value": String(value) }) },
    text,
    ...beside,
    below,
  );
}

/** A figure and, below it, its 95 % interval if it has one; beside it, what is given. */
function withInterval(
  figure: GlanceFigure,
  name: Named,
  place = "",
  beside: (HTMLElement | null)[] = [],
): HTMLElement {
  const value = figure[name];
  const show = name.startsWith("times") ? threeDigits : durationText;
  const known = figure.intervals.find((each) => each.figure === name);
  const [low, high] = [known?.low ?? null, known?.high ?? null];
  const below =
    low === null || high === null
      ? null
      : element("span", { class: "interval", "data-figure": name }, endsText(name, low, high));
  return number(value, value === null ? ABSENT : show(value), place, below, beside);
}

function cellsOf(figure: GlanceFigure | null, findings: Finding[], queues: Queue[]): HTMLElement[] {
  if (figure === null) return HEADS.map((_, place) => number(null, ABSENT, place === 0 ? "first" : ""));
  const beside = [queueNote(queues, figure.cell), marks(findings, figure.cell)];
  return [
    withInterval(figure, "latency_p50_ns", "first", beside),
    withInterval(figure, "times_floor_p50"),
    withInterval(figure, "latency_p99_ns"),
    withInterval(figure, "times_floor_p99"),
    withInterval(figure, "cpu_per_message_ns"),
  ];
}

function rowOf(row: GlanceRow, settings: boolean, findings: Finding[], queues: Queue[]): HTMLElement {
  const memory = row.memory_pss_bytes;
  return element(
    "tr",
    { "data-adapter": row.adapter, "data-settings": row.settings },
    element(
      "th",
      { scope: "row" },
      row.bare ? element("span", { class: "quiet" }, row.adapter) : row.adapter,
    ),
    ...(settings ? [element("td", {}, row.settings)] : []),
    ...row.figures.flatMap((figure) => cellsOf(figure, findings, queues)),
    number(row.threads, countText(row.threads)),
    number(memory, memory === null ? ABSENT : `${threeDigits(memory / 1048576)} MiB`),
  );
}

/** Null if the campaign has nothing to compare. */
export function glanceSection({ findings, glance, queues }: Report): HTMLElement | null {
  if (glance === null) return null;
  const settings = glance.rows.some((row) => row.settings !== "");
  const fixed = (text: string): HTMLElement => element("th", { scope: "col", rowspan: "2" }, text);
  const sizes = glance.payloads_bytes.map((size) =>
    element("th", { scope: "colgroup", class: "first", colspan: String(HEADS.length) }, sizeText(size)),
  );
  const heads = glance.payloads_bytes.flatMap(() =>
    HEADS.map((head, place) => element("th", { scope: "col", class: place === 0 ? "first" : "" }, head)),
  );
  const head = element(
    "thead",
    {},
    element(
      "tr",
      {},
      fixed("adapter"),
      ...(settings ? [fixed("settings")] : []),
      ...sizes,
      fixed("threads"),
      fixed("memory"),
    ),
    element("tr", {}, ...heads),
  );
  const body = element("tbody", {}, ...glance.rows.map((row) => rowOf(row, settings, findings, queues)));
  const missing = glance.missing.map(({ adapter, cells, reasons }) => {
    const where = cells.length === 0 ? "" : ` ${cells.join(", ")}`;
    return element("li", {}, element("strong", {}, adapter), `${where}: ${reasons.join("; ")}`);
  });
  const said =
    "End to end, over all valid trials. × floor: as a multiple of the same quantile of the fastest " +
    "bare transport that did the same work. –: too few messages arrived for the quantile, or the " +
    "reason given below. Below a figure is its 95 % interval, where the trials support one; that of a " +
    "multiple is made from the intervals of both parts. [1] leads to a finding. Threads of all processes and memory (PSS, " +
    "including daemons) are those of one trial at the smallest payload.";
  return section(
    "glance",
    "At a glance",
    element("p", { class: "quiet" }, said),
    scrolled("At a glance", element("table", { class: "glance-table" }, head, body)),
    ...(missing.length === 0
      ? []
      : [element("h3", {}, "Without figures"), element("ul", { class: "reasons" }, ...missing)]),
  );
}
