// SPDX-License-Identifier: Apache-2.0
// The frame of every chart: uPlot with our axes, a box that follows the cursor, and arrow keys that move it.

import uPlot from "uplot";
import { roundDurationText } from "./format";
import { element } from "./dom";
import { theme } from "./palette";

export interface TipLine {
  text: string;
  colour?: string;
}

export interface ChartParts {
  /** What the chart shows, for screen readers; its numbers are in the table below. */
  description: string;
  data: uPlot.AlignedData;
  series: uPlot.Series[];
  x: {
    scale: uPlot.Scale;
    splits: (chart: uPlot) => number[];
    format: (value: number) => string;
    label: string;
  };
  y: { scale: uPlot.Scale; label: string; format?: (value: number) => string };
  tip: (place: number) => TipLine[];
  underlay?: (chart: uPlot) => void;
  overlay?: (chart: uPlot) => void;
  height: number;
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

/** The marks within a decade, if the scale spans fewer decades than this. */
const STEPS: [number, number[]][] = [
  [0.7, [1, 1.5, 2, 3, 4, 5, 6, 8]],
  [1.2, [1, 2, 3, 5, 7]],
  [2.5, [1, 2, 5]],
  [4, [1, 3]],
];

/** Powers of ten of a logarithmic scale, with 2 and 5 in between if there are few. */
export function logSplits(min: number, max: number): number[] {
  const decades = Math.log10(max / min);
  const [, steps] = STEPS.find(([fewer]) => decades < fewer) ?? [Infinity, [1]];
  const splits: number[] = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= min * 0.999 && value <= max * 1.001) splits.push(value);
    }
  }
  return splits;
}

/** The ends of a logarithmic scale with some room around the values. */
export function logRange(values: number[], room: number): [number, number] {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (positive.length === 0) return [1, 10];
  const [min, max] = positive.reduce<[number, number]>(
    ([a, b], v) => [Math.min(a, v), Math.max(b, v)],
    [Infinity, 0],
  );
  return [min / room, max * room];
}

function axes(parts: ChartParts): uPlot.Axis[] {
  const { muted, line } = theme();
  const common = { stroke: muted, font: FONT, labelFont: FONT, labelSize: 22 };
  const grid = { stroke: line, width: 1 };
  // uPlot would drop labels of logarithmic scales that are not powers; ours are few and chosen.
  const filter = (_chart: uPlot, splits: number[]): number[] => splits;
  const ticks = { stroke: line, width: 1, size: 4 };
  return [
    {
      ...common,
      filter,
      label: parts.x.label,
      size: 34,
      grid: { show: false },
      ticks,
      splits: (chart) => parts.x.splits(chart),
      values: (_chart, splits) => splits.map((split) => parts.x.format(split)),
    },
    {
      ...common,
      filter,
      size: 58,
      grid,
      ticks: { show: false },
      splits: (_chart, _axis, min, max) =>
        parts.y.scale.distr === 3 ? logSplits(min, max) : linearSplits(min, max),
      values: (_chart, splits) => splits.map((split) => (parts.y.format ?? roundDurationText)(split)),
    },
  ];
}

export function linearSplits(min: number, max: number): number[] {
  const raw = (max - min) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((each) => each * power >= raw) ?? 10) * power;
  const splits: number[] = [];
  for (let value = Math.ceil(min / step) * step; value <= max; value += step) splits.push(value);
  return splits;
}

/** The box next to the cursor. */
function tipPlugin(parts: ChartParts): uPlot.Plugin {
  const box = element("div", { class: "tip", hidden: true });
  return {
    hooks: {
      init: (chart) => {
        chart.over.append(box);
        chart.over.addEventListener("mouseleave", () => {
          box.hidden = true;
        });
      },
      setCursor: (chart) => {
        const { idx, left = -1, top = 0 } = chart.cursor;
        const lines = idx == null || left < 0 ? [] : parts.tip(idx);
        box.hidden = lines.length === 0;
        if (box.hidden) return;
        box.replaceChildren(
          ...lines.map(({ text, colour }) => {
            const swatch = colour === undefined ? null : element("i", {});
            if (swatch !== null && colour !== undefined) swatch.style.background = colour;
            return element("div", {}, swatch, text);
          }),
        );
        const onLeft = left > chart.over.clientWidth / 2;
        const x = onLeft ? left - box.offsetWidth - 14 : left + 14;
        const [xMax, yMax] = [
          chart.over.clientWidth - box.offsetWidth,
          chart.over.clientHeight - box.offsetHeight,
        ];
        box.style.left = `${String(Math.max(0, Math.min(x, xMax)))}px`;
        box.style.top = `${String(Math.max(0, Math.min(top, yMax)))}px`;
      },
    },
  };
}

/** The direction of a key: 1 to the right, -1 to the left, 0 for any other key. */
export function arrowStep({ key }: KeyboardEvent): number {
  if (key === "ArrowRight") return 1;
  return key === "ArrowLeft" ? -1 : 0;
}

function moveByKeys(chart: uPlot, event: KeyboardEvent): void {
  const direction = arrowStep(event);
  if (event.key === "Escape") chart.setCursor({ left: -10, top: -10 });
  if (direction === 0) return;
  event.preventDefault();
  const xs = chart.data[0];
  const at = chart.cursor.idx ?? (direction > 0 ? -1 : xs.length);
  const next = Math.max(0, Math.min(xs.length - 1, at + direction));
  chart.setCursor({ left: chart.valToPos(xs[next] ?? 0, "x"), top: chart.over.clientHeight / 3 });
}

/** A 95 % interval: a broad, pale bar between its ends. The context already has the line's colour. */
export function drawInterval(
  chart: uPlot,
  context: CanvasRenderingContext2D,
  x: number,
  ends: [number, number] | null,
): void {
  if (ends === null) return;
  context.save();
  context.globalAlpha = 0.35;
  context.lineWidth = 7 * uPlot.pxRatio;
  context.beginPath();
  context.moveTo(x, chart.valToPos(ends[0], "y", true));
  context.lineTo(x, chart.valToPos(ends[1], "y", true));
  context.stroke();
  context.restore();
}

export interface Chart {
  node: HTMLElement;
  destroy: () => void;
}

/**
 * Draws a chart into a new element inside `parent` (which must be in the page, because its width is needed).
 */
export function drawChart(parent: HTMLElement, parts: ChartParts): Chart {
  const node = element("div", {
    class: "chart",
    role: "img",
    tabindex: "0",
    "aria-label": parts.description,
  });
  parent.append(node);
  const chart = new uPlot(
    {
      width: Math.max(240, node.clientWidth),
      height: parts.height,
      padding: [12, 14, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
      scales: { x: parts.x.scale, y: parts.y.scale },
      series: parts.series,
      axes: axes(parts),
      plugins: [tipPlugin(parts)],
      hooks: {
        drawAxes: [(each: uPlot) => parts.underlay?.(each)],
        draw: [(each: uPlot) => parts.overlay?.(each)],
      },
    },
    parts.data,
    node,
  );
  node.addEventListener("keydown", (event) => {
    moveByKeys(chart, event);
  });
  const observer = new ResizeObserver(() => {
    const width = Math.max(240, node.clientWidth);
    if (width !== chart.width) chart.setSize({ width, height: parts.height });
  });
  observer.observe(node);
  return {
    node,
    destroy: () => {
      observer.disconnect();
      chart.destroy();
    },
  };
}

/**
 * Runs drawing code within the plot area, in CSS pixels times the device's pixel ratio, as the canvas
 * expects.
 */
export function clipped(
  chart: uPlot,
  draw: (context: CanvasRenderingContext2D, pixel: number) => void,
): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, uPlot.pxRatio);
  ctx.restore();
}
