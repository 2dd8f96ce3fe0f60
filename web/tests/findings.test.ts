// SPDX-License-Identifier: Apache-2.0
// Findings that say the same are one entry, with all their cells.
import { expect, test } from "vitest";
import type { Finding } from "../src/data";
import { codeParts } from "../src/dom";
import { grouped } from "../src/findings";

function finding(kind: string, cell: string): Finding {
  return {
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
  const groups = grouped([finding("a", "x"), finding("b", "x"), finding("a", "y")]);
  expect(groups.map((group) => group.map((each) => each.kind + each.cell))).toEqual([["ax", "ay"], ["bx"]]);
});

test("what stands between backticks is code, and an odd backtick stays", () => {
  expect(codeParts("set `rmem_max` higher")).toEqual([
    { code: false, text: "set " },
    { code: true, text: "rmem_max" },
    { code: false, text: " higher" },
  ]);
  expect(codeParts("a ` alone")).toEqual([{ code: false, text: "a ` alone" }]);
});
