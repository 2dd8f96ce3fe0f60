// SPDX-License-Identifier: Apache-2.0
// Figures that describe something else than they seem to: what did not arrive, clocks, sizes of workloads.
import { describe, expect, it } from "vitest";
import { axesOf, factorOf } from "../src/axes";
import type { Row } from "../src/data";
import { floorRatio, index, isSaturated, type Model } from "../src/model";
import { lossText } from "../src/payload-chart";
import type { Report } from "../src/report-data";

function row(more: Partial<Row>): Row {
  const plain = { cell: "c", edge: "end-to-end", trial: null, valid: true, n: 100, sent: 1000 };
  const counts = { lost: 0, overwritten: 900, censored: 0, rejected: 0, missing: 900, lost_share: 0.9 };
  return { ...plain, ...counts, reasons: [], intervals: [], clock_bound_ns: null, ...more } as unknown as Row;
}

describe("what did not arrive", () => {
  it("counts however it was missed", () => {
    expect(lossText(row({})).replaceAll("\u202f", " ")).toBe(", 900 of 1 000 lost");
    expect(lossText(row({ missing: 0 }))).toBe("");
    expect(lossText(row({ missing: 50, rejected: 50 })).replaceAll("\u202f", " ")).toBe(", 50 of 1 050 lost");
  });
});

describe("the floor as a factor", () => {
  const between = row({ latency_p50_ns: 150_000, floor_latency_p50_ns: 20_000, clock_bound_ns: 140_000 });
  it("needs an interval between two clocks", () => {
    expect(floorRatio(between)).toBeNull();
    expect(floorRatio({ ...between, clock_bound_ns: null })).toBe(7.5);
    const known = [{ figure: "times_floor_p50", low: 1, high: 20 }] as Row["intervals"];
    expect(floorRatio({ ...between, intervals: known })).toBe(7.5);
  });
});

describe("a saturated trial", () => {
  it("is told from a failed one", () => {
    expect(isSaturated(row({ valid: false, reasons: ["saturated: source published 5 of 10"] }))).toBe(true);
    expect(isSaturated(row({ valid: false, reasons: ["corrupted: 1"] }))).toBe(false);
    expect(isSaturated(row({}))).toBe(false);
  });
});

describe("sizes of workloads", () => {
  const cells = [
    { id: "a", axes: { nodes: 2 }, factors: {} },
    { id: "b", axes: { nodes: 10 }, factors: {} },
    { id: "c", axes: { subscribers: 5 }, factors: {} },
  ];
  const report = { cells, rows: [], chains: [], factors: [], curves: [], series: [] } as unknown as Report;
  it("are axes of their own, which stand for the workload", () => {
    expect(axesOf(index(report) as Model)).toEqual(["nodes"]);
    expect(["nodes", "subscribers", "publishers", "depth"].map(factorOf)).toEqual([
      "workload",
      "workload",
      "workload",
      "depth",
    ]);
  });
});
