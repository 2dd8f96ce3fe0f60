// SPDX-License-Identifier: Apache-2.0
// The answer first: the fastest middleware of each payload, with its cost and what to keep in mind.

import type { Fastest } from "./data";
import type { Report } from "./report-data";
import { element, section } from "./dom";
import { durationText, intervalText, sizeText, threeDigits } from "./format";

/** `p50 38.1 µs (37.9–38.6 µs), CPU per message 12.1 µs, 3.20 × the floor`. */
export function figuresText(fastest: Fastest): string {
  const { low_ns: low, high_ns: high, times_floor_p50: times } = fastest;
  const interval = low === null || high === null ? "" : ` (${intervalText(low, high)})`;
  return [
    `p50 ${durationText(fastest.latency_p50_ns)}${interval}`,
    `CPU per message ${durationText(fastest.cpu_per_message_ns)}`,
    ...(times === null ? [] : [`${threeDigits(times)} × the floor`]),
  ].join(", ");
}

function item(fastest: Fastest): HTMLElement {
  const name = [fastest.adapter, fastest.settings].filter((each) => each !== "").join(" ");
  return element(
    "li",
    { "data-payload": String(fastest.payload_bytes), "data-cell": fastest.cell },
    `${sizeText(fastest.payload_bytes)}: `,
    element("strong", {}, name),
    `, of ${String(fastest.among)}: ${figuresText(fastest)}`,
    ...fastest.remarks.map((remark) => element("p", { class: "quiet" }, remark)),
  );
}

/** Null if the campaign has nothing to compare. */
export function answerSection({ fastest }: Report): HTMLElement | null {
  if (fastest.length === 0) return null;
  const intervals = fastest.some((each) => each.low_ns !== null);
  const statistic = intervals ? "with its 95 % interval" : "(too few trials for an interval)";
  return section(
    "fastest",
    "Fastest middleware",
    element("p", { class: "quiet" }, `End to end, by p50 ${statistic}. Bare transports do not count.`),
    element("ul", { class: "reasons" }, ...fastest.map(item)),
  );
}
