// SPDX-License-Identifier: Apache-2.0
// The findings: what happened in which cells, the number that shows it, what to change, and the source.

import type { Finding } from "./data";
import type { Report } from "./report-data";
import { element, section, sentence } from "./dom";

const CELLS_SHOWN_MAX = 8;

/** Findings that say the same, in the order of their first cell. */
export function grouped(findings: Finding[]): Finding[][] {
  const groups = new Map<string, Finding[]>();
  for (const each of findings) {
    const key = `${each.kind}\n${each.what}\n${each.fix}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  return [...groups.values()];
}

function cellLine(finding: Finding): HTMLElement {
  const seen = ` (${String(finding.trials)} of ${String(finding.of_trials)} trials): `;
  return element(
    "li",
    { "data-cell": finding.cell },
    element("code", {}, finding.cell),
    seen,
    finding.number,
  );
}

function item(group: Finding[]): HTMLElement {
  const [first] = group;
  if (first === undefined) throw new Error("a group has at least one finding");
  const more = group.length - CELLS_SHOWN_MAX;
  return element(
    "li",
    { "data-kind": first.kind },
    element("strong", {}, ...sentence(first.what)),
    element("ul", {}, ...group.slice(0, CELLS_SHOWN_MAX).map(cellLine)),
    more > 0 ? element("p", { class: "quiet" }, `and ${String(more)} more cells`) : null,
    element("p", {}, "Fix: ", ...sentence(first.fix), "."),
    element("p", { class: "quiet" }, `Source: ${first.source}`),
  );
}

/** Null if there are no findings. */
export function findingsSection(report: Report): HTMLElement | null {
  if (report.findings.length === 0) return null;
  return section(
    "findings",
    "Findings",
    element("ul", { class: "reasons" }, ...grouped(report.findings).map(item)),
  );
}
