// SPDX-License-Identifier: Apache-2.0
// What messages cost on the wire over payload, and how much of the link's maximum rate got through.

import { clipped, drawChart, logRange, type Chart, type TipLine } from "./chart";
import type { OnTheWire } from "./cell-data";
import { element } from "./dom";
import { numberText, shareText, sizeText } from "./format";
import { selectedCells } from "./model";
import { drawMarker, theme, type Look } from "./palette";
import { adapterLooks, type Context } from "./view";

interface Line {
  adapter: string;
  look: Look;
  /** At each payload. */
  cells: (OnTheWire | null)[];
}

/** One of the charts: its markers, and the two lines of theory. */
interface Kind {
  title: string;
  label: string;
  value: (each: OnTheWire) => number | null;
  ideal: (each: OnTheWire) => number | null;
  least: (each: OnTheWire) => number | null;
  format: (value: number) => string;
}

/** A link's rate is in powers of ten, and so are the steps of the axis. */
export function decimalText(bytesPerS: number): string {
  const units: [number, string][] = [
    [1e9, "GB/s"],
    [1e6, "MB/s"],
    [1e3, "kB/s"],
  ];
  const [size, unit] = units.find(([each]) => bytesPerS >= each) ?? [1, "B/s"];
  return `${String(Number((bytesPerS / size).toPrecision(3)))} ${unit}`;
}

const KINDS: Kind[] = [
  {
    title: "Bytes on the wire for each byte of payload",
    label: "bytes / payload byte",
    value: (each) => each.bytes_per_payload_byte,
    ideal: () => 1,
    least: (each) => each.least_bytes_per_payload_byte,
    format: numberText,
  },
  {
    title: "Goodput",
    label: "goodput",
    value: (each) => each.link_goodput_bytes_per_s ?? each.goodput_bytes_per_s,
    ideal: (each) => each.ideal_bytes_per_s,
    least: (each) => each.theoretical_bytes_per_s,
    format: decimalText,
  },
  {
    title: "Share of what the link carries at most",
    label: "share",
    value: (each) => each.theoretical_share,
    ideal: () => null,
    least: (each) => (each.theoretical_bytes_per_s === null ? null : 1),
    format: (value) => shareText(value),
  },
];

/** Cells with one payload, by adapter. If facets leave several cells for one point, the first one is used. */
export function linesOf({ model, state }: Context): { payloads: number[]; lines: Line[] } {
  const wire = new Map(model.report.wire.map((each) => [each.cell, each]));
  const cells = selectedCells(model, state.facets).filter((cell) => wire.get(cell.id)?.payload_bytes != null);
  const payloads = [...new Set(cells.map((cell) => cell.payload_bytes ?? 0))].sort((a, b) => a - b);
  const styles = adapterLooks(model);
  const lines = model.adapters.flatMap((adapter) => {
    const look = styles.get(adapter);
    const own = cells.filter((cell) => cell.adapter === adapter);
    if (look === undefined || own.length === 0) return [];
    const at = (payload: number): OnTheWire | null =>
      wire.get(own.find((cell) => cell.payload_bytes === payload)?.id ?? "") ?? null;
    return [{ adapter, look, cells: payloads.map(at) }];
  });
  return { payloads, lines };
}

/** What any cell of the lines has for a payload: theory is the same for all. */
export function theoryOf(
  lines: Line[],
  payloads: number[],
  figure: (each: OnTheWire) => number | null,
): (number | null)[] {
  return payloads.map((_, place) => {
    const known = lines
      .map((line) => line.cells[place])
      .find((each) => each != null && figure(each) !== null);
    return known == null ? null : figure(known);
  });
}

function tipLines(kind: Kind, lines: Line[], payloads: number[], place: number): TipLine[] {
  const shown = lines.flatMap(({ adapter, look, cells }) => {
    const each = cells[place] ?? null;
    const value = each === null ? null : kind.value(each);
    if (each === null || value === null) return [];
    const saturated = each.saturated ? ", saturated" : "";
    return [{ text: `${adapter}  ${kind.format(value)}${saturated}`, colour: look.colour }];
  });
  const [ideal, least] = [kind.ideal, kind.least].map(
    (figure) => theoryOf(lines, payloads, figure)[place] ?? null,
  );
  return [
    { text: sizeText(payloads[place] ?? 0) },
    ...shown,
    ...(least == null ? [] : [{ text: `link, with its headers  ${kind.format(least)}` }]),
    ...(ideal == null ? [] : [{ text: `ideal, payload alone  ${kind.format(ideal)}` }]),
  ];
}

function drawOne(
  kind: Kind,
  payloads: number[],
  all: Line[],
  hidden: string[],
  parent: HTMLElement,
): Chart | null {
  const lines = all.filter((line) => !hidden.includes(line.adapter));
  const values = lines.map((line) => line.cells.map((each) => (each === null ? null : kind.value(each))));
  const [ideal, least] = [theoryOf(all, payloads, kind.ideal), theoryOf(all, payloads, kind.least)];
  const known = [...values.flat(), ...ideal, ...least].filter((value) => value !== null);
  if (values.flat().every((value) => value === null)) return null;
  const place = element("div", { class: "wire-chart" }, element("h3", {}, kind.title));
  parent.append(place);
  const { muted } = theme();
  const described = lines.map((line, number) => {
    const figures = payloads.flatMap((payload, at) => {
      const value = values[number]?.[at] ?? null;
      return value === null ? [] : [`${sizeText(payload)} ${kind.format(value)}`];
    });
    return `${line.adapter} ${figures.join(", ")}`;
  });
  return drawChart(place, {
    description: `${kind.title} over payload: ${described.join("; ")}.`,
    data: [payloads, ...values, ideal, least],
    series: [
      {},
      ...lines.map(({ look }) => ({
        stroke: look.colour,
        width: 1.75,
        dash: look.dash,
        points: { show: false },
        spanGaps: false,
      })),
      { stroke: muted, width: 1, dash: [1, 3], points: { show: false }, spanGaps: true },
      { stroke: muted, width: 1.25, dash: [6, 3], points: { show: false }, spanGaps: true },
    ],
    x: {
      scale: { time: false, distr: 3, log: 2, range: logRange(payloads, 1.6) },
      splits: (chart) =>
        payloads.length > 5 && chart.width < 500 ? payloads.filter((_, i) => i % 3 === 0) : payloads,
      format: sizeText,
      label: "payload",
    },
    y: { scale: { distr: 3, log: 10, range: logRange(known, 1.25) }, label: kind.label, format: kind.format },
    tip: (at) => tipLines(kind, lines, payloads, at),
    overlay: (chart) => {
      clipped(chart, (context, pixel) => {
        lines.forEach(({ look }, number) => {
          context.strokeStyle = context.fillStyle = look.colour;
          values[number]?.forEach((value, at) => {
            if (value === null) return;
            const x = chart.valToPos(payloads[at] ?? 0, "x", true);
            drawMarker(context, look.marker, x, chart.valToPos(value, "y", true), 4.2 * pixel);
          });
        });
      });
    },
    height: 300,
  });
}

export const WIRE_CHART_NOTE =
  "Dotted: the ideal, as if a message were its payload alone. Dashed: Ethernet, IP and UDP headers in " +
  "frames that fill the MTU, and nothing of the middleware; of a link with a rate, the goodput that " +
  "leaves. Goodput between hosts is that of the busier way.";

/** The charts, one below the other; leaves out those whose figure no shown cell has. */
export function drawWireCharts(context: Context, parent: HTMLElement): Chart[] {
  const { payloads, lines } = linesOf(context);
  if (payloads.length === 0) return [];
  return KINDS.flatMap((kind) => drawOne(kind, payloads, lines, context.state.hidden, parent) ?? []);
}
