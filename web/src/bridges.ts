// SPDX-License-Identifier: Apache-2.0
// The cost of nodes and programs that pass messages on to another domain or another adapter.
import type { Bridge } from "./cell-data";
import { element, headedTable, numberCell, scrolled, section } from "./dom";
import { bytesText, durationText, numberText, shareText } from "./format";
import type { Report } from "./report-data";

const COLUMNS: [string, (each: Bridge) => string][] = [
  ["passed on", (each) => String(each.passed_on)],
  ["stay p50", (each) => durationText(each.stay_p50_ns)],
  ["stay p99", (each) => durationText(each.stay_p99_ns)],
  ["of the whole", (each) => shareText(each.stay_share)],
  ["added p50", (each) => durationText(each.added_p50_ns)],
  ["CPU / message", (each) => durationText(each.cpu_per_message_ns)],
  ["threads", (each) => numberText(each.threads)],
  ["RSS", (each) => bytesText(each.rss_bytes)],
  ["PSS", (each) => bytesText(each.pss_bytes)],
  ["USS", (each) => bytesText(each.uss_bytes)],
];

function nameOf({ node, process }: Bridge): string {
  return node === process ? node : `${node} in ${process}`;
}

/** Null if no cell has a bridge. */
export function bridgesSection(report: Report): HTMLElement | null {
  if (report.bridges.length === 0) return null;
  const rows = report.bridges.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell },
      element("th", { scope: "row" }, element("code", {}, each.cell), ` ${nameOf(each)}`),
      ...COLUMNS.map(([, text]) => numberCell(text(each))),
    ),
  );
  const heads = ["cell and bridge", ...COLUMNS.map(([name]) => name)];
  const said =
    "Stay is the time from the begin of the callback that takes a message to its publishing on the " +
    "other side, without what the middleware does before and after, such as decrypting and " +
    "encrypting; of the whole: the mean part of the end-to-end latency that messages spend in the " +
    "bridge, without it, too. A bridge that is a program of its own has one row for each process; nothing in it can " +
    "be stamped, so its stay is not available, and added p50 is how much longer the median message " +
    "takes end to end than in the same cell without the bridge, all processes together. CPU, threads " +
    "and memory are those of the process that the bridge runs in, CPU for each message passed on; " +
    "medians over the valid trials.";
  return section(
    "bridges",
    "Bridges",
    element("p", { class: "quiet" }, said),
    scrolled("Bridges", headedTable({ id: "bridges-table" }, heads, rows)),
  );
}
