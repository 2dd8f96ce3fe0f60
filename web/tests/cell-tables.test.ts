// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  achievedText,
  cellTableViews,
  missedText,
  openIntervalText,
  shareIntervalText,
  wholeText,
} from "../src/cell-tables";
import type { Report } from "../src/report-data";

const plain = (text: string): string => text.replaceAll("\u202f", " ");

describe("figures of whole cells", () => {
  it("shows as many digits of a share as what is missing needs", () => {
    expect([1, 0.92, 0.9, 0.99931, 0.9999999].map(wholeText).map(plain)).toEqual([
      "100 %",
      "92.0 %",
      "90 %",
      "99.931 %",
      "99.999990 %",
    ]);
  });
  it("tells nearly all from all", () => {
    expect([0.25, 0.00061, 6599 / 6600, 1, null].map(missedText).map(plain)).toEqual([
      "25 %",
      "0.061 %",
      "99.985 %",
      "100 %",
      "–",
    ]);
  });
  it("lets an interval end nowhere", () => {
    expect(plain(openIntervalText(2_000, 3_000))).toBe("2.00–3.00 µs");
    expect(plain(openIntervalText(2_000, null))).toBe("2.00 µs–∞");
    expect(openIntervalText(null, null)).toBe("∞");
  });
  it("gives both ends of a share", () => {
    expect(plain(shareIntervalText(0, 0.0123))).toBe("0 %–1.2 %");
    expect(plain(shareIntervalText(0.9994, 1))).toBe("99.940 %–100 %");
  });
  it("names what load achieved by its unit", () => {
    expect(plain(achievedText(124_600_000, "bytes"))).toBe("125 MB/s");
    expect(plain(achievedText(12_345.6, "operations"))).toBe("12 346 /s");
    expect(achievedText(null, "bytes")).toBe("–");
  });
  it("has no section without something to say", () => {
    const none = { deadlines: [], lost_tails: [], interference: [], daemons: [] };
    expect(cellTableViews(none as unknown as Report)).toEqual([]);
  });
});
