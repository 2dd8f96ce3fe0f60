// SPDX-License-Identifier: Apache-2.0
// Subscribers as they come and go: how evenly they are served, what they miss at first, what joining costs.
import type { Joined, Served } from "./cell-data";
import { cellHead, element, headedTable, numberCell, scrolled, section } from "./dom";
import { durationText, numberText } from "./format";
import type { Report } from "./report-data";

const SERVED: [string, (each: Served) => number | null][] = [
  ["slowest / fastest p50", (each) => each.p50_ratio],
  ["correlation with start order", (each) => each.order_correlation],
  ["initial loss", (each) => each.initial_lost],
];
const JOINED: [string, (each: Joined) => number | null][] = [
  ["process up", (each) => each.process_ns],
  ["endpoints created", (each) => each.participant_ns],
  ["first message", (each) => each.first_message_ns],
  ["longest gap, joining", (each) => each.joining_gap_max_ns],
  ["longest latency, joining", (each) => each.joining_latency_max_ns],
  ["longest gap, leaving", (each) => each.leaving_gap_max_ns],
  ["longest latency, leaving", (each) => each.leaving_latency_max_ns],
];

function servedPart(rows: Served[]): HTMLElement[] {
  if (rows.length === 0) return [];
  const cells = rows.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell },
      cellHead(each.cell),
      ...SERVED.map(([, figure]) => numberCell(numberText(figure(each)))),
    ),
  );
  const said =
    "The p50 of a topic's slowest subscriber over that of its fastest, for the least fair topic; how these " +
    "p50 correlate with the order in which the subscribers started (1: each is slower than the one before " +
    "it); and how many messages were sent before the first one that arrived, of the subscriber that missed " +
    "most. Medians over the valid trials.";
  const heads = ["cell", ...SERVED.map(([name]) => name)];
  return [
    element("p", { class: "quiet" }, said),
    scrolled("Subscribers", headedTable({ id: "served-table" }, heads, cells)),
  ];
}

function joinedPart(rows: Joined[]): HTMLElement[] {
  if (rows.length === 0) return [];
  const shown = JOINED.filter(([, figure]) => rows.some((each) => figure(each) !== null));
  const edges = rows.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell },
      cellHead(each.cell),
      element("td", {}, each.edge),
      ...shown.map(([, figure]) => numberCell(durationText(figure(each)))),
    ),
  );
  const said =
    "Nodes that join late or leave early: until the newcomer's process was up, its endpoints were created, " +
    "and then its first message came (medians over the valid trials); and the longest gap between two " +
    "messages, and the longest latency, that nodes which stay saw meanwhile (of any trial).";
  const heads = ["cell", "edge", ...shown.map(([name]) => name)];
  return [
    element("p", { class: "quiet" }, said),
    scrolled("Nodes that join or leave", headedTable({ id: "joined-table" }, heads, edges)),
  ];
}

/** Null if no topic has several subscribers, none missed anything, and no node joins late or leaves early. */
export function subscribersSection({ served, joined }: Report): HTMLElement | null {
  const parts = [...servedPart(served), ...joinedPart(joined)];
  return parts.length === 0 ? null : section("subscribers", "Subscribers", ...parts);
}
