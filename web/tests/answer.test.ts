// SPDX-License-Identifier: Apache-2.0
// The first lines of the page: what the fastest middleware takes, with the interval only if there is one.
import { expect, test } from "vitest";
import { figuresText } from "../src/answer";
import type { Fastest } from "../src/data";

const FASTEST: Fastest = {
  payload_bytes: 64,
  adapter: "cyclonedds",
  settings: "",
  cell: "cyclonedds/64B",
  latency_p50_ns: 38_100,
  low_ns: 37_900,
  high_ns: 38_600,
  cpu_per_message_ns: 12_100,
  times_floor_p50: 3.2,
  lost_share: 0,
  queue_builds_up: false,
  among: 4,
  not_told_apart: [],
  remarks: [],
};
const plain = (text: string): string => text.replaceAll("\u202f", " ");

test("the answer has its interval and its cost", () => {
  expect(plain(figuresText(FASTEST))).toBe(
    "p50 38.1 µs (37.9–38.6 µs), CPU per message 12.1 µs, 3.20 × the floor",
  );
});

test("what is not known is left out", () => {
  const few = { ...FASTEST, low_ns: null, high_ns: null, times_floor_p50: null };
  expect(plain(figuresText(few))).toBe("p50 38.1 µs, CPU per message 12.1 µs");
});
