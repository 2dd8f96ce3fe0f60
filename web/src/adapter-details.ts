// SPDX-License-Identifier: Apache-2.0
// What the adapters support and their settings: the conformance matrix, and settings to paste.

import type { AbilityVerdict, Settings } from "./data";
import type { Report } from "./report-data";
import { cellList, copyable, element, headedTable, scrolled, section, type Child } from "./dom";
import { ABSENT, countOf, factorLabel } from "./format";

const SIGNS: Record<string, string> = {
  pass: "✓",
  fail: "✗",
  absent: "–",
  "absent-against-manual": "!",
  "not-run": "·",
};

function findingCell(finding: AbilityVerdict | undefined): HTMLElement {
  const verdict = finding?.verdict ?? "not-run";
  const reason = finding?.reason ?? "";
  const title = reason === "" ? verdict : `${verdict}: ${reason}`;
  const bad = verdict === "fail" || verdict === "absent-against-manual";
  return element(
    "td",
    { class: bad ? "sign bad" : "sign", title, "aria-label": title, "data-verdict": verdict },
    SIGNS[verdict] ?? verdict,
  );
}

/** Why an ability was not shown, for every adapter and ability that was checked. */
function reasonItems(report: Report): HTMLElement[] {
  return report.conformance.flatMap(({ adapter, findings }) =>
    findings
      .filter(({ verdict }) => verdict !== "pass" && verdict !== "not-run")
      .map(({ ability, verdict, reason }) =>
        element("li", {}, element("code", {}, `${adapter} ${ability}`), ` ${verdict}: ${reason}`),
      ),
  );
}

/** The conformance suite's matrix (adapter × ability), if the campaign's folder has one. */
export function conformanceSection(report: Report): HTMLElement[] {
  if (report.conformance.length === 0) return [];
  const abilities = new Set(
    report.conformance.flatMap(({ findings }) => findings.map(({ ability }) => ability)),
  );
  const rows = [...abilities].map((ability) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, ability),
      ...report.conformance.map(({ findings }) =>
        findingCell(findings.find((finding) => finding.ability === ability)),
      ),
    ),
  );
  const heads = ["ability", ...report.conformance.map(({ adapter }) => adapter)];
  const signs =
    "✓ shown · ✗ failed · – declared absent · ! declared absent, but the manual has it · · not run";
  const reasons = element("ul", { class: "reasons" }, ...reasonItems(report));
  return [
    section(
      "conformance",
      "What the adapters do",
      scrolled("Conformance matrix", headedTable({ class: "conformance-table" }, heads, rows)),
      element("p", { class: "quiet" }, signs),
      element("details", {}, element("summary", {}, "Reasons"), reasons),
    ),
  ];
}

/**
 * Which cells had these settings: the factors' values in which they differ from the adapter's other cells.
 */
function where(report: Report, settings: Settings): string {
  const holding = new Set(settings.cells);
  const ofAdapter = new Set(
    report.settings.filter((each) => each.adapter === settings.adapter).flatMap((each) => each.cells),
  );
  const all = report.cells.filter((cell) => ofAdapter.has(cell.id));
  const mine = all.filter((cell) => holding.has(cell.id));
  const parts = report.factors.flatMap(({ name }) => {
    const values = new Set(mine.map((cell) => cell.factors[name] ?? ""));
    const possible = new Set(all.map((cell) => cell.factors[name] ?? ""));
    return values.size === possible.size ? [] : [`${factorLabel(name)} ${[...values].join(" or ")}`];
  });
  return parts.length === 0 ? `${String(mine.length)} of ${String(all.length)} cells` : parts.join(", ");
}

function differences(changed: Settings["settings"]): Child {
  if (changed.length === 0) return null;
  const rows = changed.map((each) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, each.name),
      element("td", {}, each.value),
      element("td", {}, each.default ?? ABSENT),
    ),
  );
  return scrolled("Settings that differ", headedTable({}, ["setting", "here", "vendor's default"], rows));
}

function observations(settings: Settings): Child {
  if (settings.observed.length === 0) return null;
  const rows = settings.observed.map(({ name, values }) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, values.join(", "))),
  );
  return scrolled("What was observed", headedTable({}, ["observed", "while it ran"], rows));
}

function settingsOf(report: Report, settings: Settings): HTMLElement {
  const changed = settings.settings.filter((each) => each.changed);
  const differing = countOf(changed.length, "setting differs", "settings differ");
  const inCells = `in ${countOf(settings.cells.length, "cell", "cells")}`;
  return element(
    "details",
    { class: "settings" },
    element(
      "summary",
      {},
      element("strong", {}, settings.adapter),
      ` ${settings.object} `,
      element("span", { class: "quiet" }, `${where(report, settings)} · ${differing}`),
    ),
    differences(changed),
    observations(settings),
    ...settings.paste.map(({ file, text }) => copyable(file, text)),
    element("details", {}, element("summary", {}, inCells), cellList(settings.cells)),
  );
}

/** An adapter without a difference to show; "nothing described" is not the same as "nothing differs". */
function unchanged(report: Report, adapter: string): HTMLElement {
  const own = report.settings.filter((each) => each.adapter === adapter);
  const objects = [...new Set(own.map((each) => each.object))].join(", ");
  const known = own.reduce((sum, each) => sum + each.settings.length, 0);
  const said =
    known === 0
      ? "reported no settings that differ from the vendor's"
      : `${String(known)} settings, all at the vendor's defaults`;
  return element("p", { class: "quiet" }, element("strong", {}, adapter), `: ${said} (${objects}).`);
}

/** Whether there is more to show about these settings than that all are the default. */
function speaks(settings: Settings): boolean {
  return (
    settings.paste.length > 0 ||
    settings.observed.length > 0 ||
    settings.settings.some((each) => each.changed)
  );
}

export function settingsSection(report: Report): HTMLElement {
  const loud = new Set(report.settings.filter(speaks).map((each) => each.adapter));
  const quiet = new Set(report.settings.map((each) => each.adapter).filter((adapter) => !loud.has(adapter)));
  const parts = report.settings.filter(speaks).map((each) => settingsOf(report, each));
  parts.push(...[...quiet].map((adapter) => unchanged(report, adapter)));
  const none = element("p", { class: "quiet" }, "No adapter described its settings.");
  return section("settings", "Settings to paste", ...(parts.length > 0 ? parts : [none]));
}
