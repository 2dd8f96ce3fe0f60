// SPDX-License-Identifier: Apache-2.0
// A p50 of a cell in which a queue builds up is marked where charts show it.
import { expect, test } from "vitest";
import type { Queue } from "../src/cell-data";
import type { Row } from "../src/data";
import { queuesText } from "../src/queue-note";

const plain = (text: string | null): string | undefined => text?.replaceAll("\u202f", " ");

function queue(cell: string): Queue {
  return { cell, trials: 6, trials_growing: 2, growth_ns_per_s: 330e6, waiting: null };
}

function row(cell: string, edge = "end-to-end"): Row {
  return { cell, edge } as Row;
}

test("the cells that a chart shows are named with their slope", () => {
  const said = queuesText([queue("a"), queue("b")], [row("b"), row("c"), null]);
  expect(plain(said)).toBe(
    "A queue builds up in b (+330 ms a second): this p50 depends on how long the trial is.",
  );
});

test("a few are named, the others counted", () => {
  const all = ["a", "b", "c", "d", "e"];
  expect(
    queuesText(
      all.map(queue),
      all.map((cell) => row(cell)),
    ),
  ).toContain(" and 2 more: this p50");
});

test("nothing is said of a chart without such a cell, or of a single edge", () => {
  expect(queuesText([queue("a")], [row("b")])).toBeNull();
  expect(queuesText([queue("a")], [row("a", "source→relay-1")])).toBeNull();
  expect(queuesText([], [row("a")])).toBeNull();
});
