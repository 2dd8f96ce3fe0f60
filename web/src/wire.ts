// SPDX-License-Identifier: Apache-2.0
// What the messages of each cell cost on its networks, where packets were captured.
import type { OnTheWire } from "./cell-data";
import type { Chart } from "./chart";
import { cellHead, element, headedTable, numberCell, scrolled, section } from "./dom";
import { bytesText, numberText, shareText } from "./format";
import type { Report } from "./report-data";
import { legend, type View } from "./view";
import { drawWireCharts, WIRE_CHART_NOTE } from "./wire-chart";

const COLUMNS: [string, (each: OnTheWire) => string][] = [
  ["bytes / payload byte", (each) => numberText(each.bytes_per_payload_byte)],
  ["at least", (each) => numberText(each.least_bytes_per_payload_byte)],
  ["sent", (each) => bytesText(each.bytes_per_s, "/s")],
  ["goodput", (each) => bytesText(each.goodput_bytes_per_s, "/s")],
  ["link carries at most", (each) => bytesText(each.theoretical_bytes_per_s, "/s")],
  ["of that", (each) => `${shareText(each.theoretical_share)}${each.saturated ? " (saturated)" : ""}`],
  ["packets / message", (each) => numberText(each.packets_per_message)],
  ["fragments / message", (each) => numberText(each.fragments_per_message)],
  ["heartbeats / message", (each) => numberText(each.heartbeats_per_message)],
  ["acknacks / message", (each) => numberText(each.acknacks_per_message)],
  ["resent / message", (each) => numberText(each.resent_per_message)],
  ["control", (each) => shareText(each.control_share)],
  ["discovery", (each) => shareText(each.discovery_share)],
  ["discovery before", (each) => bytesText(each.startup_discovery_bytes)],
];

/** Figures of captured packets; nothing if no study requested them. */
export function wireViews(report: Report): View[] {
  if (report.wire.length === 0) return [];
  let charts: Chart[] = [];
  const drawn = element("div");
  return [
    {
      root: section("wire", "On the wire", drawn, ...tableOf(report)),
      update: (context) => {
        for (const each of charts) each.destroy();
        drawn.replaceChildren(legend(context));
        charts = drawWireCharts(context, drawn);
        if (charts.length === 0) drawn.replaceChildren();
        else drawn.append(element("p", { class: "note" }, WIRE_CHART_NOTE));
      },
    },
  ];
}

function tableOf(report: Report): HTMLElement[] {
  const rows = report.wire.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell },
      cellHead(each.cell),
      ...COLUMNS.map(([, text]) => numberCell(text(each))),
    ),
  );
  const heads = ["cell", ...COLUMNS.map(([name]) => name)];
  const said =
    "From the captured packets: whole frames, each counted once, where it was sent. A message counts " +
    "for each reader that took it. At least: Ethernet, IP and UDP alone. Control (heartbeats and " +
    "acknowledgements) and discovery are shares of all bytes; the last column is what discovery sent " +
    "before the measure phase. Medians over the valid trials; of a cell without any, over the " +
    "saturated ones that the study keeps.";
  return [
    element("p", { class: "quiet" }, said),
    scrolled("On the wire", headedTable({ id: "wire-table" }, heads, rows)),
  ];
}
