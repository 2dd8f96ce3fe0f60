// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { countText, dateText, durationText, percentileText, ratioText, roundDurationText, sizeText } from "../src/format";

const plain = (text: string): string => text.replaceAll("\u202f", " ");

describe("durations", () => {
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
  it("writes ratios", () => {
    expect(plain(ratioText(6.393))).toBe("6.39 ×");
  });
});
