// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  countOf,
  countText,
  dateText,
  durationText,
  endsText,
  intervalText,
  percentileText,
  percentText,
  ratioText,
  roundDurationText,
  shareText,
  sizeText,
  timeText,
} from "../src/format";

const plain = (text: string): string => text.replaceAll("\u202f", " ");

describe("durations", () => {
  it("names one thing in the singular", () => {
    expect([0, 1, 2].map((count) => countOf(count, "cell", "cells"))).toEqual([
      "0 cells",
      "1 cell",
      "2 cells",
    ]);
  });
  it.each([
    [0, "0 ns"],
    [7, "7 ns"],
    [999, "999 ns"],
    [999.6, "1.00 µs"],
    [1_000, "1.00 µs"],
    [38_112, "38.1 µs"],
    [99_960, "100 µs"],
    [999_600, "1.00 ms"],
    [2_345_678, "2.35 ms"],
    [4_000_000_000, "4.00 s"],
    [-1_500, "-1.50 µs"],
  ])("%d ns is %s", (value, text) => {
    expect(plain(durationText(value))).toBe(text);
  });
  it("says that a figure does not exist instead of showing zero", () => {
    expect(durationText(null)).toBe("–");
  });
  it("is short on an axis", () => {
    expect(plain(roundDurationText(50_000))).toBe("50 µs");
  });
});

describe("intervals", () => {
  it.each([
    [37_900, 38_640, "37.9–38.6 µs"],
    [940, 1_250, "0.940–1.25 µs"],
    [5, 12, "5–12 ns"],
    [12_000, 3_200_000, "12.0 µs–3.20 ms"],
    [200_000, 2_345_678, "0.200–2.35 ms"],
  ])("%d to %d ns is %s", (low, high, text) => {
    expect(plain(intervalText(low, high))).toBe(text);
  });
  it.each([
    ["latency_p50_ns", 37_900, 38_640, "37.9–38.6 µs"],
    ["times_floor_p50", 6.213, 6.6, "6.21–6.60 ×"],
    ["lost_share", 0.0061, 0.0114, "0.61–1.1 %"],
    ["rate_achieved_hz", 399.2, 400, "399.2–400 Hz"],
  ])("of %s from %d to %d is written in its unit", (figure, low, high, text) => {
    expect(plain(endsText(figure, low, high))).toBe(text);
  });
  it("writes ratios as changes, and no change without a sign", () => {
    expect([1.051, 0.9, 1, 0.99999, 3].map((each) => plain(percentText(each)))).toEqual([
      "+5.1 %",
      "−10.0 %",
      "0.0 %",
      "0.0 %",
      "+200 %",
    ]);
  });
});

describe("other quantities", () => {
  it("keeps thousands apart", () => {
    expect(plain(countText(1_234_567))).toBe("1 234 567");
  });
  it("counts sizes in powers of 1024", () => {
    expect([64, 1024, 65_536, 1_048_576, 65_507].map((each) => plain(sizeText(each)))).toEqual([
      "64 B",
      "1 KB",
      "64 KB",
      "1 MB",
      "63.97 KB",
    ]);
  });
  it("names percentiles without binary fractions", () => {
    expect([0.5, 0.99, 0.999, 0.9999].map(percentileText)).toEqual(["p50", "p99", "p99.9", "p99.99"]);
  });
  it("writes dates in their own zone and leaves foreign text alone", () => {
    expect(dateText("2025-01-02T03:04:05+00:00")).toBe("2 January 2025, 03:04 UTC");
    expect(dateText("2025-01-02T03:04:05+02:00")).toBe("2 January 2025, 03:04 (UTC+02:00)");
    expect(dateText("yesterday")).toBe("yesterday");
  });
  it("writes shares and times", () => {
    expect([0.034, 0, null].map((each) => plain(shareText(each)))).toEqual(["3.4 %", "0 %", "–"]);
    expect([12.5, 90, 600].map(timeText)).toEqual(["12.5 s", "90 s", "10 min"]);
  });
  it("writes ratios", () => {
    expect(plain(ratioText(6.393))).toBe("6.39 ×");
  });
});
