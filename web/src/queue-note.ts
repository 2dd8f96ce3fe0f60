// SPDX-License-Identifier: Apache-2.0
// The mark of a p50 that depends on how long a trial is.

import type { Queue } from "./cell-data";
import { element } from "./dom";
import { durationText } from "./format";

/** How much the times of a cell in which a queue builds up grow in a second: `330 ms a second`. */
export function growthText(queue: Queue): string {
  return `${durationText(queue.growth_ns_per_s)} a second`;
}

/** Below a p50: that a queue builds up in its cell; null if none does. */
export function queueNote(queues: Queue[], cell: string): HTMLElement | null {
  const known = queues.find((each) => each.cell === cell);
  if (known === undefined) return null;
  const title = "a queue builds up: this figure depends on how long the trial is";
  return element("span", { class: "interval wanting", title }, `a queue: +${growthText(known)}`);
}
