// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
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

function context(against: string, adapters = ["fastdds"]): Context {
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
    curves: [],
    series: [],
  } as unknown as Report;
  const state = {
    axis: "nodes",
    by: "reliability",
    against,
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
  it("has the same in numbers, the difference as a percentage", () => {
    const table = tableRows(lines("best_effort"), "nodes", NODES, true);
    expect(table.map((row) => [row[0], row[1], plain(row.at(-1) ?? "")])).toEqual([
      ["reliable", "3", "+20.0 %"],
      ["reliable", "5", "−10.0 %"],
      ["reliable", "7", "–"],
      ["best_effort", "3", "0.0 %"],
      ["best_effort", "5", "0.0 %"],
      ["best_effort", "7", "–"],
    ]);
    expect(tableRows(lines(""), "nodes", NODES, false)[0]).toHaveLength(6);
  });
});
