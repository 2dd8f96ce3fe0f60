// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { figuresOf, HALF, MEAN, P50 as P50_NS } from "../src/axes";
import type { Cell, Row } from "../src/data";
import { chosen, linesOf, tableRows } from "../src/factor-chart";
import { index } from "../src/model";
import type { Report } from "../src/report-data";
import type { State } from "../src/state";
import type { Context } from "../src/view";

const plain = (text: string): string => text.replaceAll("\u202f", " ");
const NODES = [3, 5, 7];

// p50 in ns by reliability over nodes; best effort has no valid trial with 7.
const P50: Record<string, (number | null)[]> = {
  reliable: [120_000, 90_000, 400_000],
  best_effort: [100_000, 100_000, null],
};

function context(against: string, adapters = ["fastdds"], figure = P50_NS): Context {
  const cells = adapters.flatMap((adapter) =>
    Object.keys(P50).flatMap((reliability) =>
      NODES.map((nodes) => ({
        id: `${adapter}/${String(nodes)}/${reliability}`,
        adapter,
        payload_bytes: null,
        factors: { adapter, workload: `pipeline-${String(nodes)}`, reliability },
        axes: { nodes },
      })),
    ),
  );
  const rows = cells.map((cell) => {
    const p50 = P50[cell.factors.reliability]?.[NODES.indexOf(cell.axes.nodes)] ?? null;
    return {
      cell: cell.id,
      edge: "end-to-end",
      trial: null,
      valid: p50 !== null,
      n: 100,
      latency_p50_ns: p50,
      latency_mean_ns: p50 === null ? null : 2 * p50,
      latency_p99_ns: null,
      intervals: [],
    };
  });
  const report = {
    cells: cells as unknown as Cell[],
    rows: rows as unknown as Row[],
    factors: [
      { name: "adapter", values: adapters },
      { name: "reliability", values: ["reliable", "best_effort"] },
    ],
    // Each cell has a chain that does not come back, and one that does.
    chains: cells.flatMap((cell, place) => [
      { cell: cell.id, half_round_trip_p50_ns: null },
      { cell: cell.id, half_round_trip_p50_ns: 1_000 * (place + 1) },
    ]),
    curves: [],
    series: [],
  } as unknown as Report;
  const state = {
    axis: "nodes",
    by: "reliability",
    against,
    figure,
    facets: {},
    payload: null,
    chartAdapter: adapters.length > 1 ? "fastdds" : "",
  } as unknown as State;
  return { model: index(report), state, change: () => undefined };
}

function lines(against: string, adapters?: string[]): ReturnType<typeof linesOf> {
  const given = context(against, adapters);
  return linesOf(given, chosen(given.model, given.state), NODES);
}

describe("latency against a factor", () => {
  it("draws the times of each line in the order of the study", () => {
    expect(lines("").map(({ name, values }) => [name, values])).toEqual(Object.entries(P50));
  });
  it("draws by how much each line differs from the one that it is held against, place by place", () => {
    const [reliable, bestEffort] = lines("best_effort");
    expect(reliable?.values.map((value) => (value === null ? null : Math.round(100 * value)))).toEqual([
      20,
      -10,
      null,
    ]);
    expect(bestEffort?.values).toEqual([0, 0, null]);
  });
  it("says nothing where either of the two has no valid trial", () => {
    const [reliable, bestEffort] = lines("reliable");
    expect(reliable?.values).toEqual([0, 0, 0]);
    expect(bestEffort?.values[2]).toBeNull();
  });
  it("says nothing against a line that is not there", () => {
    expect(lines("keep_all").flatMap(({ values }) => values)).toEqual([null, null, null, null, null, null]);
  });
  it("holds cells of one adapter against each other alone", () => {
    const both = lines("best_effort", ["cyclonedds", "fastdds"]);
    expect(both[0]?.rows.map((row) => row?.cell)).toEqual([
      "fastdds/3/reliable",
      "fastdds/5/reliable",
      "fastdds/7/reliable",
    ]);
  });
});

describe("the chart that a paper has", () => {
  it("takes a line that the chosen part does not have from another part", () => {
    const cells = [
      ["same", "images", "roundtrip"],
      ["other", "texts", "roundtrip"],
      ["across", "two-domains", "two-domains"],
    ].map(([id, part, workload]) => ({ id, factors: { part, workload, rate_hz: "10 Hz" }, axes: {} }));
    const model = index({ cells, rows: [], factors: [], curves: [], series: [] } as unknown as Report);
    const ids = (by: string): string[] => {
      const facets = { part: "images", workload: "roundtrip" };
      const state = { axis: "payload_bytes", by, facets, payload: null, chartAdapter: "" };
      return chosen(model, state as unknown as State).map(({ id }) => id);
    };
    expect(ids("workload")).toEqual(["same", "across"]);
    expect(ids("rate_hz")).toEqual(["same"]);
    expect(ids("part")).toEqual(["same", "other"]);
  });
  it("has the same in numbers, the difference as a percentage", () => {
    const table = tableRows(context("best_effort"), lines("best_effort"), NODES);
    expect(table.map((row) => [row[0], row[1], plain(row.at(-1) ?? "")])).toEqual([
      ["reliable", "3", "+20.0 %"],
      ["reliable", "5", "−10.0 %"],
      ["reliable", "7", "–"],
      ["best_effort", "3", "0.0 %"],
      ["best_effort", "5", "0.0 %"],
      ["best_effort", "7", "–"],
    ]);
    expect(tableRows(context(""), lines(""), NODES)[0]).toHaveLength(6);
  });
  it("draws the mean or half a round trip where a paper has that, with the same in numbers", () => {
    const drawn = (figure: string): (number | null)[][] => {
      const given = context("", ["fastdds"], figure);
      return linesOf(given, chosen(given.model, given.state), NODES).map(({ values }) => values);
    };
    expect(drawn(MEAN)).toEqual([
      [240_000, 180_000, 800_000],
      [200_000, 200_000, null],
    ]);
    expect(drawn(HALF)).toEqual([
      [1_000, 2_000, 3_000],
      [4_000, 5_000, 6_000],
    ]);
    const given = context("best_effort", ["fastdds"], MEAN);
    const rows = tableRows(given, linesOf(given, chosen(given.model, given.state), NODES), NODES);
    expect(rows[0]?.slice(6).map(plain)).toEqual(["240 µs", "+20.0 %"]);
  });
  it("offers the figures that the campaign has", () => {
    const { model } = context("");
    expect(figuresOf(model)).toEqual([P50_NS, MEAN, HALF]);
    expect(figuresOf({ ...model, report: { ...model.report, chains: [] } })).toEqual([P50_NS, MEAN]);
  });
});
