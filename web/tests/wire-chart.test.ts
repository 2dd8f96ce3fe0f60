// SPDX-License-Identifier: Apache-2.0
// Which cells the charts of the wire draw, and the lines of theory.
import { expect, test, vi } from "vitest";
import { index } from "../src/model";
import type { Report } from "../src/report-data";
import type { State } from "../src/state";
import type { Context } from "../src/view";
import { decimalText, linesOf, theoryOf } from "../src/wire-chart";

vi.stubGlobal("document", { documentElement: { dataset: {} } }); // whose theme looks are chosen by

const CELLS: [string, number, number | null][] = [
  ["udp", 64, 64],
  ["udp", 1024, 1024],
  ["fastdds", 1024, 1024],
  ["fastdds", 64, null], // topics with payloads of their own
];

function context(): Context {
  const cells = CELLS.map(([adapter, payload]) => ({
    id: `${adapter}/${String(payload)}`,
    adapter,
    bare: adapter === "udp",
    payload_bytes: payload,
    factors: { adapter, payload_bytes: String(payload) },
  }));
  const wire = CELLS.map(([adapter, payload, known]) => ({
    cell: `${adapter}/${String(payload)}`,
    payload_bytes: known,
    least_bytes_per_payload_byte: known === null ? null : 1 + 42 / known,
  }));
  const report = { cells, rows: [], curves: [], series: [], factors: [], wire } as unknown as Report;
  return {
    model: index(report),
    state: { facets: {}, hidden: [] } as unknown as State,
    change: () => undefined,
  };
}

test("cells stand at their payload, and those without one are left out", () => {
  const { payloads, lines } = linesOf(context());
  expect(payloads).toEqual([64, 1024]);
  expect(lines.map(({ adapter, cells }) => [adapter, cells.map((each) => each?.cell ?? null)])).toEqual([
    ["udp", ["udp/64", "udp/1024"]],
    ["fastdds", [null, "fastdds/1024"]],
  ]);
});

test("theory is that of any cell with this payload", () => {
  const { payloads, lines } = linesOf(context());
  const least = theoryOf(lines.slice(1), payloads, (each) => each.least_bytes_per_payload_byte);
  expect(least).toEqual([null, 1 + 42 / 1024]);
});

test("steps of a rate are in powers of ten", () => {
  expect([1.25e7, 3e5, 64, 2e9].map(decimalText)).toEqual(["12.5 MB/s", "300 kB/s", "64 B/s", "2 GB/s"]);
});
