// SPDX-License-Identifier: Apache-2.0
// What is feasible at all, over payload, in a study with a deadline.
import type { Feasible } from "./cell-data";
import { cellHead, element, headedTable, scrolled, section } from "./dom";
import { ABSENT, sizeText } from "./format";
import type { Report } from "./report-data";

function verdictCell(found: Feasible | undefined): HTMLElement {
  if (found === undefined) return element("td", {}, ABSENT);
  const attributes = { "data-cell": found.cell, "data-verdict": found.verdict, title: found.why };
  return element("td", attributes, found.verdict + (found.initial_loss === true ? "*" : ""));
}

/** Null if the study has no deadline, or only one payload. */
export function feasibilitySection(report: Report): HTMLElement | null {
  const lines = report.feasibility;
  if (lines.length === 0) return null;
  const measured = lines.flatMap((line) => line.payloads.map((each) => each.payload_bytes));
  const sizes = [...new Set(measured)].sort((a, b) => a - b);
  const rows = lines.map((line) =>
    element(
      "tr",
      {},
      cellHead(line.series),
      ...sizes.map((size) => verdictCell(line.payloads.find((each) => each.payload_bytes === size))),
    ),
  );
  const heads = ["cells", ...sizes.map(sizeText)];
  const said =
    "late: more than 1 % of the deadlines were missed. lossy: more than 0.1 % of the messages did not " +
    "come. halt: nothing came, or less than half. failed: no trial is valid. configuration, size: such a cell can't exist; the " +
    "reason is under the pointer and among the excluded combinations. *: a subscriber missed messages " +
    "before its first one (initial loss).";
  return section(
    "possible",
    "What is possible",
    element("p", { class: "quiet" }, said),
    scrolled("What is possible", headedTable({ id: "possible-table" }, heads, rows)),
  );
}
