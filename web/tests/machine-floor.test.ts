// SPDX-License-Identifier: Apache-2.0
import type uPlot from "uplot";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { CoreFloor, MachineFloor } from "../src/steadiness-data";
import type { Report } from "../src/report-data";
import {
  drawFloorCurve,
  drawFloorLevel,
  floorRows,
  nines,
  stolenText,
  tailFloor,
} from "../src/machine-floor";

function core(cpu: number, p50: number | null, p99: number | null, p999: number | null): CoreFloor {
  return { cpu, n: 10_000, p50_ns: p50, p99_ns: p99, p999_ns: p999, max_ns: 99_000 };
}

function floorOf(...cores: CoreFloor[]): MachineFloor {
  return { policy: "fifo", cores, duration_s: 10, steal_share: 0.004 };
}

const floor = floorOf(core(0, 2_000, 6_000, 30_000), core(1, 2_500, 5_000, 20_000));

type Call = [string, ...unknown[]];

/**
 * A chart whose scales are easy to follow, and all that was drawn on it: x is ten times, y a million less.
 */
function recorder(): { chart: uPlot; calls: Call[] } {
  const calls: Call[] = [];
  const set: Record<string, unknown> = {};
  const ctx = new Proxy(set, {
    get: (_, name: string) =>
      name in set ? set[name] : (...given: unknown[]): void => void calls.push([name, ...given]),
  });
  const bbox = { left: 10, top: 0, width: 400, height: 1_000_000 };
  const valToPos = (value: number, scale: string): number => (scale === "x" ? 10 * value : 1_000_000 - value);
  return { chart: { ctx, bbox, valToPos } as unknown as uPlot, calls };
}

function named(calls: Call[], name: string): unknown[][] {
  return calls.filter((each) => each[0] === name).map(([, ...given]) => given);
}

beforeAll(() => {
  vi.stubGlobal("document", { documentElement: { dataset: {} } });
});

describe("the machine's floor", () => {
  it("has the best and the worst CPU at each quantile", () => {
    expect(floorRows(floor)).toEqual([
      { probability: 0.5, best: 2_000, worst: 2_500 },
      { probability: 0.99, best: 5_000, worst: 6_000 },
      { probability: 0.999, best: 20_000, worst: 30_000 },
    ]);
  });
  it("leaves out a quantile that some CPU had too few wake-ups for", () => {
    const some = floorOf(core(0, 2_000, 6_000, null), core(1, 2_500, 5_000, 20_000));
    expect(floorRows(some).map(({ probability }) => probability)).toEqual([0.5, 0.99]);
    expect(floorRows(floorOf(core(0, null, null, null)))).toEqual([]);
    expect(floorRows(floorOf())).toEqual([]);
  });
  it("has a tail where p99 is known", () => {
    expect(tailFloor(floor)).toEqual({ probability: 0.99, best: 5_000, worst: 6_000 });
    expect(tailFloor(floorOf(core(0, 2_000, null, null)))).toBeNull();
    expect(tailFloor(null)).toBeNull();
  });
});

describe("its drawing", () => {
  it("goes along the best CPU and back along the worst, and is filled and named", () => {
    const { chart, calls } = recorder();
    drawFloorCurve(chart, floor);
    const expected = [
      [0.5, 2_000],
      [0.99, 5_000],
      [0.999, 20_000],
      [0.999, 30_000],
      [0.99, 6_000],
      [0.5, 2_500],
    ];
    expect(named(calls, "lineTo")).toEqual(
      expected.map(([probability = 0, value = 0]) => [10 * nines(probability), 1_000_000 - value]),
    );
    expect(named(calls, "fill")).toHaveLength(1);
    expect(named(calls, "fillText").map(([text]) => text)).toEqual(["the machine's wake-up"]);
  });
  it("leaves a chart alone that there is no quantile for", () => {
    const { chart, calls } = recorder();
    drawFloorCurve(chart, floorOf(core(0, null, null, null)));
    expect(calls).toEqual([]);
  });
  it("lies across a chart of whiskers at p99, from edge to edge", () => {
    const { chart, calls } = recorder();
    drawFloorLevel(chart, { probability: 0.99, best: 5_000, worst: 6_000 });
    expect(named(calls, "fillRect")).toEqual([[10, 994_000, 400, 1_000]]);
    expect(named(calls, "moveTo")).toEqual([
      [10, 994_000],
      [10, 995_000],
    ]);
    expect(named(calls, "lineTo")).toEqual([
      [410, 994_000],
      [410, 995_000],
    ]);
    expect(named(calls, "fillText").map(([text]) => text)).toEqual(["the machine's wake-up p99"]);
  });
});

describe("stolen time", () => {
  const load = (stolen: (number | null)[]): unknown => ({
    load: stolen.map((each) => ({ time_s: 0, busy_share: 0.5, stolen_share: each })),
  });
  const said = (machineFloor: MachineFloor | null, control: unknown): string =>
    stolenText({ machine_floor: machineFloor, control } as unknown as Report);
  it.each([
    [
      floor,
      load([0, 0.02, null]),
      "A hypervisor took this share of the CPUs' time: 0.4 % while that was measured, at most 2 % " +
        "during a trial.",
    ],
    [floor, null, "A hypervisor took this share of the CPUs' time: 0.4 % while that was measured."],
    [{ ...floor, steal_share: null }, load([null]), "It is not known whether a hypervisor took time."],
  ])("is told next to the floor", (machineFloor, control, text) => {
    expect(said(machineFloor, control).replaceAll("\u202f", " ")).toBe(text);
  });
});
