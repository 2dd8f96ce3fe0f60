// SPDX-License-Identifier: Apache-2.0
// The forest plot: a row per cell and quantity, the ratio as a marker on its interval. Drawn as SVG, so that
// it prints sharply.

import type { ComparedCell, ComparedQuantity } from "./comparison-data";
import { element } from "./dom";
import { percentText } from "./format";
import { theme } from "./palette";
import { shape } from "./svg";

const ROW = 22;
const GAP = 12;
const REACH_MIN = 0.01; // of the logarithm: at least ±1 %
const REACH_MAX = Math.log(4);

/** How far the axis extends to both sides, as a logarithm: it contains all intervals, as far as sensible. */
export function reachOf(cells: ComparedCell[]): number {
  const found = cells.flatMap(({ quantities }) =>
    quantities.flatMap(({ low, high, ratio }) => [low, high, ratio]),
  );
  const reaches = found
    .filter((each) => each !== null && each > 0)
    .map((each) => Math.abs(Math.log(each ?? 1)));
  return Math.min(Math.max(REACH_MIN, ...reaches) * 1.05, REACH_MAX);
}

/** Round percentages on both sides of no change. */
export function ticksOf(reach: number): number[] {
  const most = Math.expm1(reach);
  const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2].find((each) => most / each <= 5.5) ?? 2;
  const many = (span: number): number[] =>
    Array.from({ length: Math.floor(span / step + 1e-9) }, (_, place) => (place + 1) * step);
  const below = many(-Math.expm1(-reach)).filter((each) => each < 1);
  return [...below.map((each) => 1 - each).reverse(), 1, ...many(most).map((each) => 1 + each)];
}

interface Frame {
  left: number;
  right: number;
  x: (ratio: number) => number;
  /** Whether a ratio lies beyond the end of the axis, on the left (0) or on the right (1). */
  isBeyond: (ratio: number, side: number) => boolean;
}

function row(found: ComparedQuantity, y: number, frame: Frame): SVGElement[] {
  const colours = theme();
  const name = shape(
    "text",
    { x: frame.left - 8, y: y + 4, "text-anchor": "end", fill: colours.muted },
    found.quantity,
  );
  if (found.ratio === null) {
    return [
      name,
      shape("text", { x: frame.left + 4, y: y + 4, fill: colours.muted }, found.why ?? "can't be compared"),
    ];
  }
  const colour = { slower: colours.alarm, faster: colours.accent }[found.verdict] ?? colours.ink;
  const low = found.low === null ? frame.left : frame.x(found.low);
  const high = found.high === null ? frame.right : frame.x(found.high);
  const shown = found.verdict === "slower" || found.verdict === "faster";
  const marker = {
    cx: frame.x(found.ratio),
    cy: y,
    r: 4.5,
    fill: shown ? colour : colours.ground,
    stroke: colour,
    "stroke-width": 1.75,
  };
  const lowText = found.low === null ? "−∞" : percentText(found.low);
  const highText = found.high === null ? "+∞" : percentText(found.high);
  const interval = `${percentText(found.ratio)} (${lowText} … ${highText})`;
  const title = `${found.quantity}: ${interval}, ${found.verdict}`;
  const group = shape("g", { "data-quantity": found.quantity });
  const signs = ["‹", "›"].filter((_, side) =>
    [found.low, found.ratio, found.high].some((each) => each !== null && frame.isBeyond(each, side)),
  );
  group.append(
    ...signs.map((sign) => {
      const [x, anchor] = sign === "‹" ? [frame.left - 1, "start"] : [frame.right + 8, "end"];
      return shape("text", { x, y: y + 5, "text-anchor": anchor, fill: colour, "font-weight": 700 }, sign);
    }),
    shape("title", {}, title),
    shape("line", { x1: low, x2: high, y1: y, y2: y, stroke: colour, "stroke-width": 2 }),
    shape("circle", marker),
  );
  return [name, group];
}

/** Draws the plot into `parent`, replacing its content. */
export function forest(parent: HTMLElement, cells: ComparedCell[]): void {
  const colours = theme();
  const width = Math.max(280, parent.clientWidth);
  const reach = reachOf(cells);
  const [left, right] = [48, width - 16];
  const x = (ratio: number): number => {
    const share = Math.max(-1, Math.min(1, Math.log(ratio) / reach));
    return left + ((share + 1) / 2) * (right - left);
  };
  const isBeyond = (ratio: number, side: number): boolean =>
    side === 0 ? Math.log(ratio) < -reach : Math.log(ratio) > reach;
  const parts: SVGElement[] = [];
  let y = 18;
  for (const cell of cells) {
    const name = cell.cell_a === cell.cell_b ? cell.cell_b : `${cell.cell_a} → ${cell.cell_b}`;
    const most = Math.floor(width / 7.2);
    const short = name.length > most ? `${name.slice(0, most - 1)}…` : name;
    parts.push(shape("text", { x: 0, y, fill: colours.ink, "font-weight": 600 }, short));
    for (const found of cell.quantities) {
      y += ROW;
      parts.push(...row(found, y - 4, { left, right, x, isBeyond }));
    }
    y += ROW + GAP;
  }
  const bottom = y - ROW;
  // On a narrow page every third tick, counted from the one that says "as fast".
  const allTicks = ticksOf(reach);
  const asFast = allTicks.indexOf(1);
  const ticks = width > 760 ? allTicks : allTicks.filter((_, place) => (place - asFast) % 3 === 0);
  const grid = ticks.flatMap((each) => [
    shape("line", {
      x1: x(each),
      x2: x(each),
      y1: 24,
      y2: bottom,
      stroke: each === 1 ? colours.muted : colours.line,
    }),
    shape(
      "text",
      { x: x(each), y: bottom + 18, fill: colours.muted, "text-anchor": "middle" },
      each === 1 ? "as fast" : percentText(each),
    ),
  ]);
  const sides = [
    shape("text", { x: left, y: bottom + 38, fill: colours.muted }, "← B is faster"),
    shape("text", { x: right, y: bottom + 38, fill: colours.muted, "text-anchor": "end" }, "B is slower →"),
  ];
  const counted = `${String(cells.length)} cells`;
  const drawing = shape("svg", {
    width,
    height: bottom + 48,
    viewBox: `0 0 ${String(width)} ${String(bottom + 48)}`,
    class: "forest",
    role: "img",
    "aria-label": `Ratios of ${counted} with their intervals; the table below has the figures.`,
  });
  drawing.append(...grid, ...parts, ...sides);
  parent.replaceChildren(
    cells.length === 0
      ? element("p", { class: "empty" }, "No cell could be compared.")
      : (drawing as unknown as HTMLElement),
  );
}
