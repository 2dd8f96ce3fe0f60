// SPDX-License-Identifier: Apache-2.0
// In which layers the time of each cell is spent: stacked bars on one scale, against payload, rate, chain
// length, adapter or policy; or in the categories of two papers.

import type { Cell } from "./data";
import { choice, element, numbers, section } from "./dom";
import { ABSENT, durationText, factorLabel, shareText } from "./format";
import { inOrder, layerLook, layerName } from "./layer-look";
import { matches, type Model } from "./model";
import { theme } from "./palette";
import type { Report } from "./report-data";
import { schedulingParts } from "./scheduling";
import { shape } from "./svg";
import type { View } from "./view";
import type { CellLayers, LayerMean } from "./way-data";
import { layerLegend } from "./ways";

const BAR = 22;
const AGAINST = ["payload_bytes", "rate_hz", "workload", "adapter", "reliability", "depth"];

/** What the bars are stacked from: their parts, and the text of each bar. */
interface Shown {
  label: string;
  parts: (layers: CellLayers) => LayerMean[];
  said: (layers: CellLayers) => string;
}

const LAYERS: Shown = { label: "layers", parts: (each) => each.layers, said: (each) => each.to_halve };
const SHOWN: Record<string, Shown> = {
  layers: LAYERS,
  categories: {
    label: "categories (Kronauer et al., figure 6)",
    parts: (each) => each.categories,
    said: overhead,
  },
  breakdown: {
    label: "conversions and DDS (Maruyama et al., figures 11 and 12)",
    parts: (each) => each.breakdown,
    said: conversions,
  },
};

function overhead(each: CellLayers): string {
  const { overhead_least: least, overhead_most: most } = each;
  if (least === null || most === null) return `Overhead of ROS 2: ${each.overhead_absent ?? "not known"}.`;
  const range = `${shareText(least)} to ${shareText(most)}`;
  return `Overhead of ROS 2 over DDS: ${range}, as what is unattributed is DDS's or not.`;
}

function conversions(each: CellLayers): string {
  const seen = each.breakdown.some(({ name }) => name.startsWith("conversion"));
  return seen ? "" : "The conversions were not stamped: they are in DDS.";
}

export interface LayerGroup {
  title: string;
  /** Groups on one scale can be compared: those of one payload, as in a paper's panels. */
  scale: string;
  bars: { label: string; layers: CellLayers }[];
}

/** What the bars can be compared over: factors of which the cells with layers have several values. */
export function againstOf(report: Report): string[] {
  const measured = new Set(report.layers.map((each) => each.cell));
  const cells = report.cells.filter((cell) => measured.has(cell.id));
  return AGAINST.filter((name) => new Set(cells.map((cell) => cell.factors[name] ?? "")).size > 1);
}

/**
 * Cells that differ only in one factor, in the order of its values; only those that match the page's choice.
 */
export function groupsOf(report: Report, against: string, facets: Record<string, string>): LayerGroup[] {
  const found = new Map(report.layers.map((each) => [each.cell, each]));
  const wanted = Object.fromEntries(Object.entries(facets).filter(([name]) => name !== against));
  const values = report.factors.find(({ name }) => name === against)?.values ?? [];
  const named = report.factors
    .filter(({ name, values: all }) => name !== against && all.length > 1)
    .map(({ name }) => name);
  const groups = new Map<string, LayerGroup>();
  const place = (cell: Cell): number => values.indexOf(cell.factors[against] ?? "");
  const cells = report.cells.filter((cell) => matches(cell, wanted)).sort((a, b) => place(a) - place(b));
  for (const cell of cells) {
    const layers = found.get(cell.id);
    if (layers === undefined) continue;
    const title = named
      .map((name) => cell.factors[name] ?? "")
      .filter((text) => text !== "")
      .join(", ");
    const scale = against === "payload_bytes" ? "" : (cell.factors["payload_bytes"] ?? "");
    const group = groups.get(title) ?? { title, scale, bars: [] };
    group.bars.push({ label: cell.factors[against] ?? cell.id, layers });
    groups.set(title, group);
  }
  return [...groups.values()].sort((a, b) => order(report, a) - order(report, b));
}

/** The longest bar of all groups that share a scale. */
export function longestOf(groups: LayerGroup[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const { scale, bars } of groups) {
    found.set(scale, Math.max(found.get(scale) ?? 0, ...bars.map(({ layers }) => layers.latency_mean_ns)));
  }
  return found;
}

/** Groups are in the order in which the study names their first cells. */
function order(report: Report, group: LayerGroup): number {
  return Math.min(
    ...group.bars.map(({ layers }) => report.cells.findIndex((cell) => cell.id === layers.cell)),
  );
}

function percent(part: number): string {
  return `${String(Number((100 * part).toFixed(3)))}%`;
}

function stacked(parts: LayerMean[], longest: number): SVGElement {
  const { muted } = theme();
  const svg = shape("svg", { width: "100%", height: BAR, "aria-hidden": "true" });
  let at = 0;
  for (const layer of parts) {
    const width = layer.mean_ns / longest;
    const look = layerLook(layer.name);
    const paint =
      look === null
        ? { fill: "none", stroke: muted, "stroke-dasharray": "3 2" }
        : { fill: look.colour, "fill-opacity": look.opacity };
    const box = shape("rect", {
      x: percent(at),
      y: 1,
      width: percent(width),
      height: BAR - 2,
      "data-layer": layer.name,
      ...paint,
    });
    const figures = `${durationText(layer.mean_ns)} (${shareText(layer.share)})`;
    box.append(shape("title", {}, `${layerName(layer.name)}: ${figures}`));
    svg.append(box);
    at += width;
  }
  return svg;
}

function barOf({ label, layers }: LayerGroup["bars"][number], longest: number, shown: Shown): HTMLElement[] {
  const unattributed = layers.layers.find((layer) => layer.name === "unattributed")?.share ?? 0;
  const what = layers.of === "chain" ? "" : "On each edge: ";
  const said = `${what}${shareText(unattributed)} unattributed. ${shown.said(layers)}`;
  return [
    element("dt", {}, label),
    element(
      "dd",
      { "data-cell": layers.cell },
      element("div", {}, stacked(shown.parts(layers), longest)),
      element("p", { class: "quiet" }, said),
    ),
  ];
}

function tableOf(groups: LayerGroup[], shown: Shown): HTMLElement {
  const bars = groups.flatMap((group) => group.bars);
  const names = inOrder(bars.flatMap(({ layers }) => shown.parts(layers).map((layer) => layer.name)));
  const rows = bars.map(({ layers }) => [
    layers.cell,
    layers.of === "chain" ? "end to end" : "each edge",
    durationText(layers.latency_mean_ns),
    ...names.map((name) => {
      const layer = shown.parts(layers).find((each) => each.name === name);
      return layer === undefined ? ABSENT : `${durationText(layer.mean_ns)} (${shareText(layer.share)})`;
    }),
  ]);
  return numbers("Layers", ["cell", "of", "mean", ...names.map(layerName)], rows);
}

function draw(model: Model, against: string, facets: Record<string, string>, shown: Shown): HTMLElement[] {
  const groups = groupsOf(model.report, against, facets);
  if (groups.length === 0) return [element("p", { class: "quiet" }, "No cell of this choice has layers.")];
  const longest = longestOf(groups);
  const names = groups.flatMap((group) =>
    group.bars.flatMap(({ layers }) => shown.parts(layers).map((layer) => layer.name)),
  );
  const parts = groups.flatMap((group) => [
    ...(group.title === "" ? [] : [element("h3", {}, group.title)]),
    element(
      "dl",
      { class: "stack" },
      ...group.bars.flatMap((bar) => barOf(bar, longest.get(group.scale) ?? 1, shown)),
    ),
  ]);
  return [layerLegend(names), ...parts, tableOf(groups, shown), ...schedulingParts(model.report, facets)];
}

/** A placeholder if no cell has layers. */
export function layersView(report: Report): View {
  const root = element("div", {});
  if (report.layers.length === 0) return { root, update: () => undefined };
  const choices = againstOf(report);
  let against = choices[0] ?? "adapter";
  let shown = "layers";
  const body = element("div", {});
  let redraw = (): void => undefined;
  const label = (name: string): string =>
    name === "workload" ? "workload (chain length)" : factorLabel(name);
  const chosen = choice(
    "layers against",
    choices.map((name) => ({ value: name, label: label(name) })),
    against,
    (value) => {
      against = value;
      redraw();
    },
  );
  const stackedOf = choice(
    "stacked",
    Object.entries(SHOWN).map(([value, { label: text }]) => ({ value, label: text })),
    shown,
    (value) => {
      shown = value;
      redraw();
    },
  );
  const said =
    "Means over all messages of the valid trials, stacked in the order of the way; bars of one payload " +
    "have one scale, and all bars where they are held against the payload. End to end where the graph " +
    "is a single line: then the layers of all its edges are added, computation is the time in its nodes, " +
    "callback queue the wait there for callbacks of messages that the same call took (and bridge the time " +
    "in bridges between domains or adapters). Elsewhere of a message on any edge. " +
    "What is unattributed is an empty box.";
  root.append(
    section(
      "layers",
      "Layers",
      element("p", { class: "quiet" }, said),
      element("div", { class: "controls" }, ...(choices.length < 2 ? [] : [chosen]), stackedOf),
      body,
    ),
  );
  return {
    root,
    update: ({ model, state }) => {
      redraw = () => {
        body.replaceChildren(...draw(model, against, state.facets, SHOWN[shown] ?? LAYERS));
      };
      redraw();
    },
  };
}
