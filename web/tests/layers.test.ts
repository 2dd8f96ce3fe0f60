// SPDX-License-Identifier: Apache-2.0
// Layers side by side: cells that differ in one factor alone, in the order of its values.
import { expect, test } from "vitest";
import type { Cell } from "../src/data";
import { againstOf, groupsOf, longestOf } from "../src/layers";
import type { Report } from "../src/report-data";

const ADAPTERS = ["cyclonedds", "udp"];
const PAYLOADS = ["64 B", "1 KB"];

function report(): Report {
  const ids = ADAPTERS.flatMap((adapter) => [...PAYLOADS].reverse().map((payload) => ({ adapter, payload })));
  const cells = ids.map(
    ({ adapter, payload }) =>
      ({
        id: `${adapter}/${payload}`,
        factors: { adapter, payload_bytes: payload, rate_hz: "10 Hz" },
      }) as unknown as Cell,
  );
  const layers = cells.slice(0, 3).map((cell) => ({
    cell: cell.id,
    trials: 1,
    messages: 1,
    of: "chain",
    latency_mean_ns: 1,
    layers: [],
    half: [],
    to_halve: "",
    categories: [],
    breakdown: [],
    overhead_least: null,
    overhead_most: null,
    overhead_absent: "",
  }));
  const factors = [
    { name: "adapter", values: ADAPTERS },
    { name: "payload_bytes", values: PAYLOADS },
    { name: "rate_hz", values: ["10 Hz"] },
  ];
  return { cells, layers, factors } as unknown as Report;
}

test("only factors with several values are offered", () => {
  expect(againstOf(report())).toEqual(["payload_bytes", "adapter"]);
});

test("bars have the order of the factor's values, groups that of the study; cells need layers", () => {
  const shown = (against: string, facets: Record<string, string> = {}): [string, string[]][] =>
    groupsOf(report(), against, facets).map((group) => [group.title, group.bars.map((bar) => bar.label)]);
  expect(shown("payload_bytes")).toEqual([
    ["cyclonedds", ["64 B", "1 KB"]],
    ["udp", ["1 KB"]],
  ]);
  expect(shown("adapter")).toEqual([
    ["1 KB", ["cyclonedds", "udp"]],
    ["64 B", ["cyclonedds"]],
  ]);
  expect(shown("rate_hz", { rate_hz: "20 Hz" })[0]?.[0]).toBe("cyclonedds, 1 KB");
  expect(shown("adapter", { rate_hz: "20 Hz" })).toEqual([]);
});

test("bars of one payload have one scale, and all bars where they are held against the payload", () => {
  const made = report();
  made.layers.forEach((each, at) => (each.latency_mean_ns = at + 1));
  const scales = (against: string): [string, number][] => [...longestOf(groupsOf(made, against, {}))];
  expect(scales("payload_bytes")).toEqual([["", 3]]);
  expect(scales("adapter")).toEqual([
    ["1 KB", 3],
    ["64 B", 2],
  ]);
});
