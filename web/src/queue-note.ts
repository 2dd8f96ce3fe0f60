// SPDX-License-Identifier: Apache-2.0
// The mark of a p50 that depends on how long a trial is.

import type { Queue } from "./cell-data";
import type { Row } from "./data";
import { element } from "./dom";
import { durationText } from "./format";
import { END_TO_END } from "./model";

const NAMED_MAX = 3;

/** How much the times of a cell in which a queue builds up grow in a second: `330 ms a second`. */
export function growthText(queue: Queue): string {
  return `${durationText(queue.growth_ns_per_s)} a second`;
}

/** Below a p50: that a queue builds up in its cell; null if none does. */
export function queueNote(queues: Queue[], cell: string): HTMLElement | null {
  const known = queues.find((each) => each.cell === cell);
  if (known === undefined) return null;
  const title = "a queue builds up: this figure depends on how long the trial is";
  return element(
    "span",
    { class: "interval wanting", title, "data-queue": cell },
    `a queue: +${growthText(known)}`,
  );
}

/** Which of the cells that a chart shows have such a p50; null if none does. */
export function queuesText(queues: Queue[], rows: (Row | null)[]): string | null {
  const shown = new Set(rows.flatMap((row) => (row?.edge === END_TO_END ? [row.cell] : [])));
  const growing = queues.filter(({ cell }) => shown.has(cell));
  if (growing.length === 0) return null;
  const named = growing.slice(0, NAMED_MAX).map((each) => `${each.cell} (+${growthText(each)})`);
  const more = growing.length - named.length;
  const rest = more === 0 ? "" : ` and ${String(more)} more`;
  return `A queue builds up in ${named.join(", ")}${rest}: this p50 depends on how long the trial is.`;
}

/** The same below a chart. */
export function queuesNote(queues: Queue[], rows: (Row | null)[]): HTMLElement | null {
  const text = queuesText(queues, rows);
  return text === null ? null : element("p", { class: "note", "data-queues": "" }, text);
}
