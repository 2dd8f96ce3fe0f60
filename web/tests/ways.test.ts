// SPDX-License-Identifier: Apache-2.0
// What is said of a message's stays, and the order of layers.
import { expect, test } from "vitest";
import { inOrder, layerName } from "../src/layer-look";
import type { MessageWay } from "../src/way-data";
import { rowName, stayText, wayTitle } from "../src/ways";

const way: MessageWay = {
  cell: "udp/pipeline-2",
  trial: 0,
  edge: "end-to-end",
  chosen: "slowest",
  place: 1,
  sequence: 7,
  publish_ns: 5_000,
  latency_ns: 100_000,
  followed: true,
  rows: [
    { worker: "source", thread: "node:source", number: 5 },
    { worker: null, thread: "thread 9", number: 9 },
    { worker: null, thread: "not known", number: null },
  ],
  stays: [
    {
      layer: "send_path",
      edge: "source→sink",
      sequence: 7,
      begin_ns: 0,
      end_ns: 25_000,
      row: 0,
      end_row: 0,
      scheduler: null,
    },
    {
      layer: "transport",
      edge: "source→sink",
      sequence: 7,
      begin_ns: 25_000,
      end_ns: 100_000,
      row: 0,
      end_row: 1,
      scheduler: null,
    },
  ],
  calls: [],
  states: [],
  events_left_out: 0,
};

test("a row is named by its process and thread, as far as they are known", () => {
  expect(way.rows.map(rowName)).toEqual(["source · node:source 5", "thread 9", "not known"]);
});

test("a stay says how long it took, and where", () => {
  const [first, second] = way.stays;
  if (first === undefined || second === undefined) throw new Error("two stays");
  expect(stayText(way, first).replaceAll("\u202f", " ")).toBe(
    "send path: 25.0 µs (25 %) on source · node:source 5, 0 ns after publish",
  );
  expect(stayText(way, second).replaceAll("\u202f", " ")).toBe(
    "transport: 75.0 µs (75 %) from source · node:source 5 to thread 9, 25.0 µs after publish",
  );
});

test("messages are named by why they were chosen", () => {
  expect([1, 2, 3].map((place) => wayTitle({ ...way, place }))).toEqual([
    "the slowest message",
    "the 2nd slowest message",
    "the 3rd slowest message",
  ]);
  expect(wayTitle({ ...way, chosen: "median", place: null })).toBe("the median message");
});

test("layers come in the order of the way, and what is unattributed last", () => {
  expect(inOrder(["unattributed", "take", "transport", "send_path", "take"])).toEqual([
    "send_path",
    "transport",
    "take",
    "unattributed",
  ]);
  expect(layerName("receiving_thread")).toBe("receiving thread");
});
