// SPDX-License-Identifier: Apache-2.0
// The layers of two compared cells: a row for each, with what changed.
import { expect, test } from "vitest";
import { layerRows } from "../src/comparison";
import type { ComparedCell } from "../src/comparison-data";

const plain = (rows: string[][]): string[][] =>
  rows.map((row) => row.map((text) => text.replaceAll(/\s/g, " ")));

function compared(cell: string, more: Partial<ComparedCell>): ComparedCell {
  return { cell_a: cell, cell_b: cell, layers_of: null, layers: [], ...more } as unknown as ComparedCell;
}

test("a layer has its mean on both sides, and the change with its sign", () => {
  const layers = [
    { name: "send_path", a_ns: 3_000, b_ns: 6_000 },
    { name: "unattributed", a_ns: 900, b_ns: 800 },
  ];
  const cells = [compared("plain", {}), compared("udp", { layers_of: "chain", layers })];
  expect(plain(layerRows(cells))).toEqual([
    ["udp", "end to end", "send path", "3.00 µs", "6.00 µs", "+3.00 µs"],
    ["udp", "end to end", "unattributed", "900 ns", "800 ns", "−100 ns"],
  ]);
});

test("layers of single edges say so", () => {
  const layers = [{ name: "take", a_ns: 100, b_ns: 100 }];
  expect(plain(layerRows([compared("udp", { layers_of: "edge", layers })]))).toEqual([
    ["udp", "each edge", "take", "100 ns", "100 ns", "+0 ns"],
  ]);
});
