// SPDX-License-Identifier: Apache-2.0
// How long the messages of each edge wait for a CPU, and which threads ran meanwhile.

import { element, numbers } from "./dom";
import { durationText, shareText } from "./format";
import { layerName } from "./layer-look";
import { matches } from "./model";
import type { Report } from "./report-data";
import type { CellScheduling, RanInstead, WaitingShare } from "./scheduling-data";

const NAMED = 3;

function ran(each: RanInstead): string {
  const cpus = `CPU ${each.cpus.join(", ")}`;
  const who = each.name === "idle" ? `${cpus} woke from idling` : `${each.name} ran on ${cpus}`;
  return `${who} (${shareText(each.share)}, up to ${durationText(each.longest_ns)})`;
}

/** The layer with most of the waiting. */
function most(share: WaitingShare): string {
  const [first] = [...share.layers].sort((a, b) => b.waiting_ns * b.known - a.waiting_ns * a.known);
  return first === undefined || first.waiting_ns === 0
    ? ""
    : `${layerName(first.name)} (${durationText(first.waiting_ns)})`;
}

/** A row of the table: for all messages of an edge, or for the slowest of them. */
export function rowOf(found: CellScheduling, of: string, share: WaitingShare): string[] {
  const known = share.known_share;
  const parts = [share.asleep_share, share.waiting_share, share.running_share];
  const shares = [known, ...parts.map((part) => (known === 0 ? null : part))].map(shareText);
  return [
    found.cell,
    found.edge,
    of,
    durationText(share.latency_ns),
    ...shares,
    most(share),
    share.instead.slice(0, NAMED).map(ran).join("; "),
  ];
}

/** What the node that took the messages of an edge does until it publishes: a row for each part. */
export function inNodeRows(found: CellScheduling): string[][] {
  return found.in_node.map((part) => [
    found.cell,
    found.edge,
    layerName(part.name),
    String(part.stays),
    ...[part.asleep_ns, part.waiting_ns, part.running_ns].map(durationText),
  ]);
}

/** Sentences and tables; nothing if no cell of the page's choice has scheduler records. */
export function schedulingParts(report: Report, facets: Record<string, string>): HTMLElement[] {
  const chosen = new Set(report.cells.filter((cell) => matches(cell, facets)).map((cell) => cell.id));
  const found = report.scheduling.filter((each) => chosen.has(each.cell));
  if (found.length === 0) return [];
  const rows = found.flatMap((each) => [
    rowOf(each, "all", each.whole),
    ...(each.slowest === null ? [] : [rowOf(each, "slowest 1 %", each.slowest)]),
  ]);
  const said = found.map((each) =>
    element("li", { "data-scheduling": each.cell }, `${each.cell}, ${each.edge}: ${each.because}`),
  );
  const head = [
    "cell",
    "edge",
    "of",
    "mean",
    "known",
    "asleep",
    "waiting for a CPU",
    "running",
    "most of the waiting",
    "who ran instead",
  ];
  const inNode = found.flatMap(inNodeRows);
  const parts = ["cell", "edge", "in the node", "stays", "asleep (mean)", "waiting for a CPU", "running"];
  return [
    element("h3", {}, "Who ran instead"),
    element("ul", { class: "quiet" }, ...said),
    numbers("The scheduler's share", head, rows),
    ...(inNode.length === 0 ? [] : [numbers("The scheduler's share of the nodes", parts, inNode)]),
  ];
}
