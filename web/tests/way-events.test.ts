// SPDX-License-Identifier: Apache-2.0
// What is said of calls and scheduler states, and where they are drawn.
import { expect, test } from "vitest";
import type { MessageWay, WayCall, WayState } from "../src/way-data";
import { callText, eventsHeight, ranText, reasonText, stateText, within } from "../src/way-events";

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
  rows: [{ worker: "source", thread: "node:source", number: 5 }],
  stays: [],
  calls: [],
  states: [],
  events_left_out: 0,
};
const send: WayCall = { row: 0, name: "send", begin_ns: 2_000, end_ns: 7_000, bytes: 128 };
const waiting: WayState = {
  row: 0,
  state: "waiting",
  begin_ns: 20_000,
  end_ns: 60_000,
  cpu: 1,
  instead: [
    { name: "hog", thread: 9, cpu: 1, begin_ns: 20_000, end_ns: 30_000 },
    { name: "idle", thread: 0, cpu: 1, begin_ns: 30_000, end_ns: 35_000 },
    { name: "hog", thread: 9, cpu: 1, begin_ns: 35_000, end_ns: 60_000 },
  ],
  woken_by: null,
};
const row = (): string => "source · node:source 5";
const plain = (text: string): string => text.replaceAll("\u202f", " ");

test("a call says how long it took, where, when, and how much it moved", () => {
  expect(plain(callText(send, row))).toBe(
    "send: 5.00 µs on source · node:source 5, 2.00 µs after publish, 128 B",
  );
  const poll = { ...send, name: "middleware_wait", begin_ns: -9_000, bytes: null };
  expect(plain(callText(poll, row))).toBe(
    "middleware wait: 16.0 µs on source · node:source 5, 9.00 µs before publish",
  );
});

test("a wait for a CPU says who ran, the longest first", () => {
  expect(plain(stateText(waiting, row))).toBe(
    "waiting for CPU 1: 40.0 µs on source · node:source 5, 20.0 µs after publish; " +
      "meanwhile hog for 35.0 µs, idling for 5.00 µs",
  );
  const four = ["a", "b", "c", "d"].map((name, place) => ({
    ...{ name, thread: place, cpu: 0 },
    ...{ begin_ns: 0, end_ns: 4_000 - 1_000 * place },
  }));
  expect(plain(ranText(four))).toBe("a for 4.00 µs, b for 3.00 µs, c for 2.00 µs, …");
});

test("a sleep says who ended it", () => {
  const asleep: WayState = { ...waiting, state: "asleep", cpu: null, instead: [] };
  expect(reasonText(asleep)).toBe("");
  const woken = { name: "recvUC", thread: 6, interrupt: false };
  expect(reasonText({ ...asleep, woken_by: woken })).toBe("woken by recvUC");
  expect(reasonText({ ...asleep, woken_by: { ...woken, name: "idle", interrupt: true } })).toBe(
    "woken by an interrupt during an idle CPU",
  );
});

test("what began before the message or ends after it is cut", () => {
  expect(within(way, -50_000, 25_000)).toEqual([0, 0.25]);
  expect(within(way, 75_000, 500_000)).toEqual([0.75, 1]);
  expect(within(way, 30_000, 30_000)).toEqual([0.3, 0.3]);
  expect(within(way, 100_001, 200_000)).toBeNull();
});

test("rows are as high as what they show", () => {
  const calls = eventsHeight({ ...way, calls: [send] });
  const states = eventsHeight({ ...way, states: [waiting] });
  expect(eventsHeight(way)).toBe(0);
  expect(calls).toBeGreaterThan(0);
  expect(eventsHeight({ ...way, calls: [send], states: [waiting] })).toBe(calls + states);
});
