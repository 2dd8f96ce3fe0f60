// SPDX-License-Identifier: Apache-2.0
// What is possible at all, over payload, in a study with a deadline.
import { element, section } from "./dom";
import { ABSENT, sizeText } from "./format";
import type { Report } from "./report-data";

/** Null where the study has no deadline, or one payload alone. */
export function feasibilitySection(report: Report): HTMLElement | null {
  const lines = report.feasibility;
  if (lines.length === 0) return null;
  const sizes = [...new Set(lines.flatMap((line) => line.payloads.map((each) => each.payload_bytes)))].sort(
    (a, b) => a - b,
  );
  const rows = lines.map((line) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("code", {}, line.series)),
      ...sizes.map((size) => {
        const found = line.payloads.find((each) => each.payload_bytes === size);
        return found === undefined
          ? element("td", {}, ABSENT)
          : element(
              "td",
              { "data-cell": found.cell, "data-verdict": found.verdict, title: found.why },
              found.verdict + (found.initial_loss === true ? "*" : ""),
            );
      }),
    ),
  );
  const heads = ["cells", ...sizes.map(sizeText)].map((head) => element("th", { scope: "col" }, head));
  const table = element(
    "table",
    { id: "possible-table" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  const said =
    "late: more than 1 % of the deadlines were missed. lossy: more than 0.1 % of the messages did not come. halt: nothing came, or less than half. configuration, size: such a cell can't exist; the reason is under the pointer and among the excluded combinations. *: a subscriber missed messages before its first one (initial loss).";
  return section(
    "possible",
    "What is possible",
    element("p", { class: "quiet" }, said),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "What is possible" },
      table,
    ),
  );
}
