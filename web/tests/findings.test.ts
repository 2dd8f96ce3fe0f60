// SPDX-License-Identifier: Apache-2.0
// Findings that say the same are one entry, with all their cells.
import { expect, test } from "vitest";
import type { Finding } from "../src/data";
import { codeParts } from "../src/dom";
import { grouped, ofCell } from "../src/findings";

function finding(footnote: number, cell: string): Finding {
  const kind = "abcdef".charAt(footnote - 1);
  return {
    footnote,
    kind,
    cell,
    trials: 1,
    of_trials: 2,
    what: `what ${kind}`,
    number: cell,
    fix: "fix",
    source: "source",
  };
}

test("findings are grouped by what they say, in the order of their first cell", () => {
  const groups = grouped([finding(1, "x"), finding(2, "x"), finding(1, "y")]);
  expect(groups.map((group) => group.map((each) => each.kind + each.cell))).toEqual([["ax", "ay"], ["bx"]]);
});

test("a cell has each of its footnotes once, in ascending order", () => {
  const all = [finding(3, "x"), finding(1, "y"), finding(2, "x"), finding(3, "x")];
  expect(ofCell(all, "x").map(({ footnote }) => footnote)).toEqual([2, 3]);
  expect(ofCell(all, "z")).toEqual([]);
});

test("what stands between backticks is code, and an odd backtick stays", () => {
  expect(codeParts("set `rmem_max` higher")).toEqual([
    { code: false, text: "set " },
    { code: true, text: "rmem_max" },
    { code: false, text: " higher" },
  ]);
  expect(codeParts("a ` alone")).toEqual([{ code: false, text: "a ` alone" }]);
});
