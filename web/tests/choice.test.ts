// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { ComparedCell } from "../src/comparison-data";
import type { Cell, Row } from "../src/data";
import type { Report } from "../src/report-data";
import { reachOf, ticksOf } from "../src/forest-chart";
import { ends, floorRatio, index, matches } from "../src/model";
import { fromFragment, initialState, settle, toFragment, withCell } from "../src/state";
import { axesOf, linesBy } from "../src/axes";
import { columnsOf, passes, sorted, visibleRows, type Column } from "../src/table";

function cell(adapter: string, payload: number, reliability: string): Cell {
  const factors = { adapter, payload_bytes: `${String(payload)} B`, reliability };
  const id = `${adapter}/${String(payload)}/${reliability}`;
  return {
    id,
    adapter,
    bare: adapter === "udp",
    payload_bytes: payload,
    factors,
    axes: { payload_bytes: payload },
    edges: ["end-to-end"],
    trials: [0],
  };
}

function row(of: Cell, p50: number | null): Row {
  const figures = {
    cell: of.id,
    trial: null,
    trials: 1,
    edge: "end-to-end",
    valid: p50 !== null,
    reasons: [],
    warnings: [],
  };
  return { ...figures, n: 1, latency_p50_ns: p50, floor_latency_p50_ns: 10 } as unknown as Row;
}

const cells = [
  cell("udp", 64, "best_effort"),
  cell("cyclonedds", 64, "best_effort"),
  cell("cyclonedds", 64, "reliable"),
];
const rows = cells.map((each, place) => row(each, place === 0 ? 10 : null));
const report = {
  format: 1,
  cells,
  rows,
  chains: [],
  curves: [],
  series: [],
  failures: [],
  factors: [
    { name: "adapter", values: ["udp", "cyclonedds"] },
    { name: "payload_bytes", values: ["64 B"] },
    { name: "reliability", values: ["best_effort", "reliable"] },
  ],
} as unknown as Report;
const model = index(report);

describe("the columns", () => {
  it("have messages that nobody was there to pass on beside the lost ones, if there are any", () => {
    const names = (cutOff: number | null): string[] => {
      const some = rows.map((each) => ({ ...each, unreachable: cutOff, wake_p50_ns: null }));
      const shown = index({ ...report, rows: some, findings: [] } as unknown as Report);
      return columnsOf(shown, { eachTrial: false, allEdges: false }).map(({ id }) => id);
    };
    const place = names(3).indexOf("unreachable");
    expect(names(3)[place - 1]).toBe("lost_share");
    for (const none of [0, null]) expect(names(none)).not.toContain("unreachable");
  });
});

describe("the choice", () => {
  it("starts where most cells are valid", () => {
    expect(initialState(model).facets).toEqual({ reliability: "best_effort" });
  });
  it("hides bare transports as lines of their own, as the floor stands for them", () => {
    expect(initialState(model).hidden).toEqual(["udp"]);
  });
  it("comes back from the fragment that it was written to", () => {
    const initial = settle(model, initialState(model));
    const state = {
      ...initial,
      facets: { reliability: "reliable" },
      filter: "a&b",
      sort: "n",
      descending: true,
      allEdges: true,
    };
    expect(fromFragment(`#${toFragment(state, initial)}`, initial)).toEqual(state);
    expect(toFragment(initial, initial)).toBe("");
  });
  it("falls back where a fragment names what is not there", () => {
    const initial = settle(model, initialState(model));
    const state = settle(model, fromFragment("#edge=nowhere&payload=17&trial=-3&theme=pink", initial));
    expect([state.edge, state.payload, state.trial, state.theme]).toEqual(["end-to-end", 64, 0, "auto"]);
  });
  it("takes a link to a cell for a choice of that cell's factors and payload", () => {
    const initial = settle(model, initialState(model));
    const fragment = "#cell=cyclonedds%2F64%2Freliable";
    const state = withCell(model, fromFragment(fragment, initial), fragment);
    expect([state.facets, state.payload, state.cell]).toEqual([
      { reliability: "reliable" },
      64,
      "cyclonedds/64/reliable",
    ]);
    const chosen = `${fragment}&f.reliability=best_effort`;
    expect(withCell(model, fromFragment(chosen, initial), chosen).facets).toEqual({
      reliability: "best_effort",
    });
    expect(withCell(model, initial, "#cell=nowhere")).toEqual(initial);
  });
  it("takes a cell without a factor as matching any value of it", () => {
    expect(matches(cell("udp", 64, "reliable"), { rate_hz: "200 Hz" })).toBe(true);
  });
});

describe("the table", () => {
  const column: Column = {
    id: "latency_p50_ns",
    label: "p50",
    meaning: "",
    value: (each) => each.latency_p50_ns,
    show: () => "",
    numeric: true,
  };
  it("puts what has no value last in both directions", () => {
    const some = [row(cells[0] as Cell, null), row(cells[1] as Cell, 5), row(cells[2] as Cell, 3)];
    expect(sorted(some, column, false).map((each) => each.latency_p50_ns)).toEqual([3, 5, null]);
    expect(sorted(some, column, true).map((each) => each.latency_p50_ns)).toEqual([5, 3, null]);
  });
  it("filters by words, and by words that must not occur", () => {
    expect(passes(rows[0] as Row, "64 B", ["udp", "-reliable"])).toBe(true);
    expect(passes(rows[2] as Row, "64 B", ["-reliable"])).toBe(false);
  });
  it("shows the failed alone when asked", () => {
    const state = { ...settle(model, initialState(model)), failedOnly: true };
    expect(visibleRows(model, state).map((each) => each.cell)).toEqual([cells[1]?.id, cells[2]?.id]);
  });
  it("gives an interval's ends only where there are both", () => {
    const known = { low: 1, high: 2, needed_trials: null, needed_messages: null };
    const wanting = { low: null, high: null, needed_trials: 9, needed_messages: 900 };
    const some = {
      intervals: [
        { figure: "a", ...known },
        { figure: "b", ...wanting },
      ],
    } as unknown as Row;
    expect([ends(some, "a"), ends(some, "b"), ends(some, "c")]).toEqual([[1, 2], null, null]);
  });
  it("gives no ratio where a figure is missing", () => {
    expect(floorRatio(rows[1] as Row)).toBeNull();
    expect(floorRatio(rows[0] as Row)).toBe(1);
  });
});

describe("the chart of ratios", () => {
  const compared = (low: number | null, high: number | null): ComparedCell =>
    ({ quantities: [{ ratio: 1.05, low, high }] }) as unknown as ComparedCell;
  it("reaches as far as the widest interval, but not without end", () => {
    expect(Math.exp(reachOf([compared(0.8, 1.1)]))).toBeGreaterThan(1.25);
    expect(reachOf([compared(0.001, null)])).toBe(Math.log(4));
    expect(reachOf([])).toBeGreaterThan(0);
  });
  it("has ticks on both sides of no change, all within reach", () => {
    for (const reach of [0.01, 0.1, 0.5, Math.log(4)]) {
      const ticks = ticksOf(reach);
      expect(ticks).toContain(1);
      expect(Math.min(...ticks)).toBeGreaterThanOrEqual(Math.exp(-reach) - 1e-9);
      expect(Math.max(...ticks)).toBeLessThanOrEqual(Math.exp(reach) + 1e-9);
      expect(ticks.filter((each) => each > 1).length).toBeGreaterThan(0);
    }
  });
});

describe("the chart against a factor", () => {
  const paced = (adapter: string, rate: number, nodes: number): Cell => ({
    ...cell(adapter, 64, "reliable"),
    id: `${adapter}/${String(rate)}/${String(nodes)}`,
    factors: {
      adapter,
      rate_hz: `${String(rate)} Hz`,
      workload: `pipeline-${String(nodes)}`,
      payload_bytes: "64 B",
    },
    axes: { rate_hz: rate, nodes, payload_bytes: 64 },
  });
  const all = [10, 100].flatMap((rate) =>
    [3, 23].flatMap((nodes) => ["udp", "cyclonedds"].map((adapter) => paced(adapter, rate, nodes))),
  );
  const names = {
    adapter: ["udp", "cyclonedds"],
    rate_hz: ["10 Hz", "100 Hz"],
    workload: ["pipeline-3", "pipeline-23"],
  };
  const factors = Object.entries(names).map(([name, values]) => ({ name, values }));
  const wide = index({ ...report, cells: all, rows: all.map((each) => row(each, 10)), factors });

  it("is drawn over what varies, and its lines are something else", () => {
    expect(axesOf(wide)).toEqual(["rate_hz", "nodes"]);
    expect(linesBy(wide, "rate_hz")).toEqual(["adapter", "workload"]);
    expect(linesBy(wide, "nodes")).toEqual(["adapter", "rate_hz"]);
  });

  it("takes what a link says, and what there is where it says nothing or something wrong", () => {
    const first = settle(wide, initialState(wide));
    expect([first.axis, first.by, first.chartAdapter]).toEqual(["rate_hz", "adapter", "cyclonedds"]);
    const linked = settle(wide, fromFragment("axis=nodes&by=rate_hz&chartAdapter=udp", first));
    expect([linked.axis, linked.by, linked.chartAdapter]).toEqual(["nodes", "rate_hz", "udp"]);
    expect(settle(wide, fromFragment("figure=latency_mean_ns", first)).figure).toBe("latency_mean_ns");
    expect(settle(wide, fromFragment("figure=half_round_trip_p50_ns", first)).figure).toBe("latency_p50_ns");
    const wrong = settle(wide, fromFragment("axis=colour&by=workload", linked));
    expect([wrong.axis, wrong.by]).toEqual(["rate_hz", "workload"]);
    expect(settle(model, initialState(model)).axis).toBe("");
  });
});
