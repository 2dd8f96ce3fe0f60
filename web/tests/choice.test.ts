// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Cell, Report, Row } from "../src/data";
import { floorRatio, index, matches } from "../src/model";
import { fromFragment, initialState, settle, toFragment } from "../src/state";
import { passes, sorted, visibleRows, type Column } from "../src/table";

function cell(adapter: string, payload: number, reliability: string): Cell {
  const factors = { adapter, payload_bytes: `${String(payload)} B`, reliability };
  const id = `${adapter}/${String(payload)}/${reliability}`;
  return { id, adapter, bare: adapter === "udp", payload_bytes: payload, factors, edges: ["end-to-end"], trials: [0] };
}

function row(of: Cell, p50: number | null): Row {
  const figures = { cell: of.id, trial: null, trials: 1, edge: "end-to-end", valid: p50 !== null, reasons: [], warnings: [] };
  return { ...figures, n: 1, latency_p50_ns: p50, floor_latency_p50_ns: 10 } as unknown as Row;
}

const cells = [cell("udp", 64, "best_effort"), cell("cyclonedds", 64, "best_effort"), cell("cyclonedds", 64, "reliable")];
const rows = cells.map((each, place) => row(each, place === 0 ? 10 : null));
const report = {
  format: 1,
  cells,
  rows,
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

describe("the choice", () => {
  it("starts where most cells are valid", () => {
    expect(initialState(model).facets).toEqual({ reliability: "best_effort" });
  });
  it("hides bare transports as lines of their own, as the floor stands for them", () => {
    expect(initialState(model).hidden).toEqual(["udp"]);
  });
  it("comes back from the fragment that it was written to", () => {
    const initial = settle(model, initialState(model));
    const state = { ...initial, facets: { reliability: "reliable" }, filter: "a&b", sort: "n", descending: true, allEdges: true };
    expect(fromFragment(`#${toFragment(state, initial)}`, initial)).toEqual(state);
    expect(toFragment(initial, initial)).toBe("");
  });
  it("falls back where a fragment names what is not there", () => {
    const initial = settle(model, initialState(model));
    const state = settle(model, fromFragment("#edge=nowhere&payload=17&trial=-3&theme=pink", initial));
    expect([state.edge, state.payload, state.trial, state.theme]).toEqual(["end-to-end", 64, 0, "auto"]);
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
  it("gives no ratio where a figure is missing", () => {
    expect(floorRatio(rows[1] as Row)).toBeNull();
    expect(floorRatio(rows[0] as Row)).toBe(1);
  });
});
