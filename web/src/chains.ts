// SPDX-License-Identifier: Apache-2.0
// Named chains of each cell, and how their time is split up.
import type { ChainRow } from "./cell-data";
import { cellHead, element, headedTable, numberCell, scrolled, section } from "./dom";
import { durationText } from "./format";
import type { Report } from "./report-data";

function chainsPart(report: Report): HTMLElement[] {
  if (report.chains.length === 0) return [];
  const figures: [string, (each: ChainRow) => number | null][] = [
    ["p50", (each) => each.whole_p50_ns],
    ["p99", (each) => each.whole_p99_ns],
    ["communication", (each) => each.communication_p50_ns],
    ["computation", (each) => each.computation_p50_ns],
    ["idle", (each) => each.idle_p50_ns],
    ["half a round trip", (each) => each.half_round_trip_p50_ns],
    ["data age", (each) => each.age_mean_ns],
    ["of it best", (each) => each.age_best_ns],
    ["of it worst", (each) => each.age_worst_ns],
    ["reaction p50", (each) => each.reaction_p50_ns],
    ["reaction, longest", (each) => each.reaction_max_ns],
    ["first answer", (each) => each.join_first_message_ns],
  ];
  const all: [string, (each: ChainRow) => number][] = [
    ["unanswered", (each) => each.unanswered],
    ["unreachable", (each) => each.unreachable],
  ];
  const away = all.filter(([, count]) => report.chains.some((each) => count(each) > 0));
  const shown = figures.filter(([, figure]) => report.chains.some((each) => figure(each) !== null));
  const rows = report.chains.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell },
      cellHead(each.cell),
      element("td", {}, each.chain),
      numberCell(each.n.toLocaleString("en")),
      numberCell(each.lost.toLocaleString("en")),
      ...away.map(([, count]) => numberCell(count(each).toLocaleString("en"))),
      ...shown.map(([, figure]) => numberCell(durationText(figure(each)))),
    ),
  );
  const counts = ["n", "lost", ...away.map(([name]) => name)];
  const heads = ["cell", "chain", ...counts, ...shown.map(([name]) => name)];
  const said =
    "From the first publishing to the end of the last callback. Communication, computation and idle " +
    "time add up to the whole of each message; their medians need not. Data age is the mean over the " +
    "paths of an input, then over the inputs; best and worst are its shortest and its longest path. " +
    "Medians over the valid trials.";
  return [
    element("p", { class: "quiet" }, said),
    scrolled("Chains", headedTable({ id: "chains" }, heads, rows)),
  ];
}

/** Named paths through the graphs; nothing if no workload names one. */
export function chainsSection(report: Report): HTMLElement | null {
  const parts = chainsPart(report);
  return parts.length === 0 ? null : section("chains", "Chains", ...parts);
}
