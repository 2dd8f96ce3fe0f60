// SPDX-License-Identifier: Apache-2.0
// Who ran instead: the row of an edge, and what the scheduler tells of a stay.
import { expect, test } from "vitest";
import { ABSENT } from "../src/format";
import { inNodeRows, rowOf } from "../src/scheduling";
import type { CellScheduling, WaitingShare } from "../src/scheduling-data";
import type { Stay } from "../src/way-data";
import { shareOf } from "../src/ways";

const SHARE: WaitingShare = {
  messages: 20,
  latency_ns: 4_000_000,
  known_share: 1,
  asleep_share: 0.1,
  waiting_share: 0.8,
  running_share: 0.1,
  layers: [
    { name: "transport", stays: 20, known: 20, asleep_ns: 1, waiting_ns: 3_000_000, running_ns: 1 },
    { name: "wake", stays: 20, known: 20, asleep_ns: 1, waiting_ns: 200_000, running_ns: 1 },
  ],
  instead: [
    { name: "hog", share: 0.9, threads: 1, cpus: [1], longest_ns: 2_900_000 },
    { name: "idle", share: 0.1, threads: 1, cpus: [0, 1], longest_ns: 50_000 },
  ],
};

const plain = (text: string | undefined): string | undefined => text?.replaceAll(/\s/g, " ");

test("a row names the layer with most of the waiting, and who ran", () => {
  const found: CellScheduling = {
    cell: "udp",
    edge: "a→b",
    trials: 1,
    p99_ns: 1,
    whole: SHARE,
    slowest: SHARE,
    in_node: [],
    because: "",
  };
  const row = rowOf(found, "all", SHARE);
  expect(row.slice(0, 3)).toEqual(["udp", "a→b", "all"]);
  expect(plain(row[8])).toBe("transport (3.00 ms)");
  expect(plain(row[9])).toBe(
    "hog ran on CPU 1 (90 %, up to 2.90 ms); CPU 0, 1 woke from idling (10 %, up to 50.0 µs)",
  );
});

test("a stay says who ran meanwhile, or nothing where nothing is known", () => {
  const stay: Stay = {
    layer: "transport",
    edge: "a→b",
    sequence: 1,
    begin_ns: 0,
    end_ns: 4000,
    row: 0,
    end_row: 1,
    scheduler: null,
  };
  expect(shareOf(stay)).toBe("");
  const instead = [
    { name: "hog", thread: 7, cpu: 1, ran_ns: 2000 },
    { name: "hog", thread: 8, cpu: 1, ran_ns: 1000 },
  ];
  const told = shareOf({
    ...stay,
    scheduler: { asleep_ns: 500, waiting_ns: 3000, running_ns: 500, instead },
  });
  expect(plain(told)).toBe(
    "; asleep 500 ns, waiting for a CPU 3.00 µs (meanwhile hog on CPU 1 for 3.00 µs), running 500 ns",
  );
});

test("shares of nothing that is known are no shares of 0", () => {
  const unknown = { ...SHARE, known_share: 0, asleep_share: 0, waiting_share: 0, running_share: 0 };
  const row = rowOf({ cell: "udp", edge: "a→b" } as unknown as CellScheduling, "all", unknown).map(plain);
  expect(row.slice(4, 8)).toEqual(["0 %", ABSENT, ABSENT, ABSENT]);
});

test("a part of what a node does has a row", () => {
  const part = { name: "computation", stays: 9, known: 9, asleep_ns: 100, waiting_ns: 2_000, running_ns: 30 };
  const found = { cell: "udp", edge: "a→b", in_node: [part] } as unknown as CellScheduling;
  expect(inNodeRows(found).map((row) => row.map(plain))).toEqual([
    ["udp", "a→b", "computation", "9", "100 ns", "2.00 µs", "30 ns"],
  ]);
});
