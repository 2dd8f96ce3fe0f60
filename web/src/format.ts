// SPDX-License-Identifier: Apache-2.0
// Numbers for humans. Three significant digits: one trial never gives a latency more precisely than that.

const THIN_SPACE = "\u202f";
export const ABSENT = "–";

export interface Quantity {
  digits: string;
  unit: string;
}

/** Three significant digits, without an exponent. */
export function threeDigits(value: number): string {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(3)))));
  return value.toFixed(Math.max(0, Math.min(3, 2 - magnitude)));
}

/** A duration in the unit that gives one to three digits before the point: ns, µs, ms, s. */
export function duration(valueNs: number): Quantity {
  const units: [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
  ];
  const size = Math.abs(Number(valueNs.toPrecision(3)));
  for (const [factor, unit] of units) {
    if (size >= factor) return { digits: threeDigits(valueNs / factor), unit };
  }
  return { digits: valueNs.toFixed(size < 100 && !Number.isInteger(valueNs) ? 1 : 0), unit: "ns" };
}

export function durationText(valueNs: number | null): string {
  if (valueNs === null) return ABSENT;
  const { digits, unit } = duration(valueNs);
  return `${digits}${THIN_SPACE}${unit}`;
}

/** Both ends of an interval, in one unit unless they are far apart: `37.9–38.6 µs`. */
export function intervalText(lowNs: number, highNs: number): string {
  const { unit } = duration(Math.max(Math.abs(lowNs), Math.abs(highNs)));
  if (
    unit !== "ns" &&
    lowNs !== 0 &&
    Math.abs(lowNs) < Math.abs(highNs) / 20 &&
    duration(lowNs).unit !== unit
  ) {
    return `${durationText(lowNs)}–${durationText(highNs)}`;
  }
  const factor = { s: 1e9, ms: 1e6, µs: 1e3 }[unit] ?? 1;
  const end = (value: number): string => (unit === "ns" ? value.toFixed(0) : threeDigits(value / factor));
  return `${end(lowNs)}–${end(highNs)}${THIN_SPACE}${unit}`;
}

/** How a figure is shown that is not a duration; null for a duration. */
function plainText(figure: string): ((value: number | null) => string) | null {
  if (figure.startsWith("times_")) return ratioText;
  if (figure.endsWith("_share")) return shareText;
  return figure.endsWith("_hz") ? rateText : null;
}

/** Both ends of a figure's interval, in the unit that the figure's name implies. */
export function endsText(figure: string, low: number, high: number): string {
  const show = plainText(figure);
  if (show === null) return intervalText(low, high);
  const [lowDigits] = show(low).split(THIN_SPACE);
  return `${lowDigits ?? ""}–${show(high)}`;
}

/** 0.034 as `3.4 %`. */
export function shareText(share: number | null): string {
  return share === null ? ABSENT : `${String(Number((share * 100).toPrecision(2)))}${THIN_SPACE}%`;
}

/** A ratio as a change: 1.051 is `+5.1 %`. */
export function percentText(ratio: number): string {
  const change = 100 * (ratio - 1);
  const digits = Math.abs(change).toFixed(Math.abs(change) < 99.95 ? 1 : 0);
  const sign = change < 0 ? "−" : "+";
  return `${Number(digits) === 0 ? "" : sign}${digits}${THIN_SPACE}%`;
}

/** Seconds on an axis that may span minutes: `90 s`, `12 min`. */
export function timeText(seconds: number): string {
  return seconds < 180 ? axisMomentText(seconds) : `${String(Number((seconds / 60).toPrecision(3)))} min`;
}

/** A moment of a trial in seconds, with fixed digits, so that those in a column can be compared: `2.0500 s`. */
export function momentText(seconds: number, digits: number): string {
  return `${seconds.toFixed(digits)} s`;
}

/** The same on an axis: `2.5 s`. */
export function axisMomentText(seconds: number): string {
  return `${String(Number(seconds.toPrecision(4)))} s`;
}

/** A duration with all its digits: `1 234 567 ns`. */
export function exactDurationText(valueNs: number): string {
  return `${countText(Math.round(valueNs))} ns`;
}

/** A round duration, as an axis wants it: `50 µs`, not `50.0 µs`. */
export function roundDurationText(valueNs: number): string {
  const { digits, unit } = duration(valueNs);
  return `${String(Number(digits))}${THIN_SPACE}${unit}`;
}

/** A count with a thousands separator. */
export function countText(value: number | null): string {
  return value === null ? ABSENT : String(value).replace(/\B(?=(\d{3})+(?!\d))/g, THIN_SPACE);
}

export function sizeText(sizeBytes: number): string {
  for (const [factor, unit] of [[1048576, "MB"] as const, [1024, "KB"] as const]) {
    if (sizeBytes >= factor) return `${String(Number((sizeBytes / factor).toFixed(2)))}${THIN_SPACE}${unit}`;
  }
  return `${String(sizeBytes)}${THIN_SPACE}B`;
}

/** `1 cell`, `2 cells`. */
export function countOf(count: number, one: string, many: string): string {
  return `${String(count)} ${count === 1 ? one : many}`;
}

/** A plain number with three digits. */
export function numberText(value: number | null): string {
  return value === null ? ABSENT : threeDigits(value);
}

/** A size of any magnitude, such as `1.5 MiB/s` with `per`. */
export function bytesText(bytes: number | null, per = ""): string {
  if (bytes === null) return ABSENT;
  let size = bytes;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (size < 1024) return `${threeDigits(size)} ${unit}${per}`;
    size /= 1024;
  }
  return `${threeDigits(size)} GiB${per}`;
}

export function rateText(rateHz: number | null): string {
  return rateHz === null ? ABSENT : `${String(Number(rateHz.toPrecision(4)))}${THIN_SPACE}Hz`;
}

export function ratioText(ratio: number | null): string {
  return ratio === null ? ABSENT : `${threeDigits(ratio)}${THIN_SPACE}×`;
}

/** 0.999 as `p99.9`. */
export function percentileText(probability: number): string {
  return `p${String(Number((probability * 100).toFixed(5)))}`;
}

function zoneText(offset: string | undefined): string {
  if (offset === undefined) return "";
  return offset === "Z" || offset === "+00:00" ? " UTC" : ` (UTC${offset})`;
}

/**
 * `2025-01-02T03:04:05+01:00` as `2 January 2025, 03:04 (UTC+01:00)`, in the zone in which it was written.
 */
export function dateText(iso: string): string {
  const match = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/.exec(iso);
  if (match === null) return iso;
  const [, year = "", month, day, time = "", offset] = match;
  const months =
    "January February March April May June July August September October November December".split(" ");
  const monthName = months[Number(month) - 1] ?? "";
  return `${String(Number(day))} ${monthName} ${year}, ${time}${zoneText(offset)}`;
}

/** `payload_bytes` as `payload`: the unit is in the value. */
export function factorLabel(name: string): string {
  return name.replace(/_(bytes|hz|ns)$/, "").replaceAll("_", " ");
}
