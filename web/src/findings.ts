// SPDX-License-Identifier: Apache-2.0
// The findings: what happened in which cells, the number that shows it, what to change, and the source; and
// their footnotes beside figures, which lead here.

import type { Finding } from "./data";
import { element, section, sentence } from "./dom";

const CELLS_SHOWN_MAX = 2; // the others open on demand: the figures below must not be pages away

/** Where the findings of one campaign are listed; a page that compares two has two lists. */
export interface Place {
  id: string;
  title: string;
}

export const FINDINGS: Place = { id: "findings", title: "Findings" };

/** Findings that say the same have the same footnote; in the order of their first cell. */
export function grouped(findings: Finding[]): Finding[][] {
  const groups = new Map<number, Finding[]>();
  for (const each of findings) {
    const group = groups.get(each.footnote);
    if (group === undefined) groups.set(each.footnote, [each]);
    else group.push(each);
  }
  return [...groups.values()];
}

/** By cell, made once for each list: a table asks for every row, and while sorting several times. */
const byCell = new WeakMap<Finding[], Map<string, Finding[]>>();

function sortedByCell(findings: Finding[]): Map<string, Finding[]> {
  const cells = new Map<string, Finding[]>();
  for (const each of [...findings].sort((one, other) => one.footnote - other.footnote)) {
    const own = cells.get(each.cell);
    if (own === undefined) cells.set(each.cell, [each]);
    else if (own.at(-1)?.footnote !== each.footnote) own.push(each);
  }
  return cells;
}

/** The findings of a cell: of each footnote one, in ascending order. */
export function ofCell(findings: Finding[], cell: string): Finding[] {
  const known = byCell.get(findings) ?? sortedByCell(findings);
  byCell.set(findings, known);
  return known.get(cell) ?? [];
}

function anchor(place: Place, footnote: number): string {
  return `${place.id}-${String(footnote)}`;
}

/** The footnotes of a cell, each a link to its finding; null without any. */
export function marks(findings: Finding[], cell: string, place: Place = FINDINGS): HTMLElement | null {
  const own = ofCell(findings, cell);
  if (own.length === 0) return null;
  const links = own.map(({ footnote, what }) => {
    const target = anchor(place, footnote);
    // The page's address holds the reader's choices, so that the link must not change it.
    const go = (event: Event): void => {
      event.preventDefault();
      const item = document.getElementById(target);
      item?.scrollIntoView();
      item?.focus({ preventScroll: true });
    };
    return element("a", { href: `#${target}`, title: what, onclick: go }, `[${String(footnote)}]`);
  });
  return element("span", { class: "marks" }, ...links);
}

function cellLine(finding: Finding): HTMLElement {
  const seen = ` (${String(finding.trials)} of ${String(finding.of_trials)} trials): `;
  return element(
    "li",
    { "data-cell": finding.cell },
    element("code", {}, finding.cell),
    seen,
    ...sentence(finding.number),
  );
}

function item(group: Finding[], place: Place): HTMLElement {
  const [first] = group;
  if (first === undefined) throw new Error("a group has at least one finding");
  const more = group.slice(CELLS_SHOWN_MAX);
  return element(
    "li",
    { id: anchor(place, first.footnote), "data-kind": first.kind, tabindex: "-1" },
    element("strong", {}, `[${String(first.footnote)}] `, ...sentence(first.what)),
    element("ul", {}, ...group.slice(0, CELLS_SHOWN_MAX).map(cellLine)),
    more.length > 0
      ? element(
          "details",
          {},
          element("summary", {}, `${String(more.length)} more ${more.length > 1 ? "cells" : "cell"}`),
          element("ul", {}, ...more.map(cellLine)),
        )
      : null,
    element("p", {}, "Fix: ", ...sentence(first.fix), "."),
    element("p", { class: "quiet" }, `Source: ${first.source}`),
  );
}

/** Null if there are no findings. */
export function findingsSection(findings: Finding[], place: Place = FINDINGS): HTMLElement | null {
  if (findings.length === 0) return null;
  const items = grouped(findings).map((group) => item(group, place));
  return section(place.id, place.title, element("ul", { class: "reasons" }, ...items));
}
