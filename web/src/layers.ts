// SPDX-License-Identifier: Apache-2.0
// In which layers the time of each cell goes: bars of one scale, stacked, against payload, rate, chain length or adapter.

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
import type { CellLayers } from "./way-data";
import { layerLegend } from "./ways";

const BAR = 22;
const AGAINST = ["payload_bytes", "rate_hz", "workload", "adapter"];

export interface LayerGroup {
  title: string;
  bars: { label: string; layers: CellLayers }[];
}

/** What the bars may be held against: factors of which the cells with layers have several values. */
export function againstOf(report: Report): string[] {
  const measured = new Set(report.layers.map((each) => each.cell));
  const cells = report.cells.filter((cell) => measured.has(cell.id));
  return AGAINST.filter((name) => new Set(cells.map((cell) => cell.factors[name] ?? "")).size > 1);
}

/** Cells that differ in nothing but one factor, in the order of its values; those that fit the page's choice. */
export function groupsOf(report: Report, against: string, facets: Record<string, string>): LayerGroup[] {
  const found = new Map(report.layers.map((each) => [each.cell, each]));
  const wanted = Object.fromEntries(Object.entries(facets).filter(([name]) => name !== against));
  const values = report.factors.find(({ name }) => name === against)?.values ?? [];
  const named = report.factors.filter(({ name, values: all }) => name !== against && all.length > 1).map(({ name }) => name);
  const groups = new Map<string, LayerGroup>();
  const place = (cell: Cell): number => values.indexOf(cell.factors[against] ?? "");
  const cells = report.cells.filter((cell) => matches(cell, wanted)).sort((a, b) => place(a) - place(b));
  for (const cell of cells) {
    const layers = found.get(cell.id);
    if (layers === undefined) continue;
    const title = named.map((name) => cell.factors[name] ?? "").filter((text) => text !== "").join(", ");
    const group = groups.get(title) ?? { title, bars: [] };
    group.bars.push({ label: cell.factors[against] ?? cell.id, layers });
    groups.set(title, group);
  }
  return [...groups.values()].sort((a, b) => order(report, a) - order(report, b));
}

/** Groups come in the order in which the study names their first cells. */
function order(report: Report, group: LayerGroup): number {
  return Math.min(...group.bars.map(({ layers }) => report.cells.findIndex((cell) => cell.id === layers.cell)));
}

function percent(part: number): string {
  return `${String(Number((100 * part).toFixed(3)))}%`;
}

function stacked(layers: CellLayers, longest: number): SVGElement {
  const { muted } = theme();
  const svg = shape("svg", { width: "100%", height: BAR, "aria-hidden": "true" });
  let at = 0;
  for (const layer of layers.layers) {
    const width = layer.mean_ns / longest;
    const look = layerLook(layer.name);
    const paint = look === null ? { fill: "none", stroke: muted, "stroke-dasharray": "3 2" } : { fill: look.colour, "fill-opacity": look.opacity };
    const box = shape("rect", { x: percent(at), y: 1, width: percent(width), height: BAR - 2, "data-layer": layer.name, ...paint });
    box.append(shape("title", {}, `${layerName(layer.name)}: ${durationText(layer.mean_ns)} (${shareText(layer.share)})`));
    svg.append(box);
    at += width;
  }
  return svg;
}

function barOf({ label, layers }: LayerGroup["bars"][number], longest: number): HTMLElement[] {
  const unattributed = layers.layers.find((layer) => layer.name === "unattributed")?.share ?? 0;
  const what = layers.of === "chain" ? "" : "On each edge: ";
  const said = `${what}${shareText(unattributed)} unattributed. ${layers.to_halve}`;
  return [
    element("dt", {}, label),
    element("dd", { "data-cell": layers.cell }, element("div", {}, stacked(layers, longest)), element("p", { class: "quiet" }, said)),
  ];
}

function tableOf(groups: LayerGroup[]): HTMLElement {
  const bars = groups.flatMap((group) => group.bars);
  const names = inOrder(bars.flatMap(({ layers }) => layers.layers.map((layer) => layer.name)));
  const rows = bars.map(({ layers }) => [
    layers.cell,
    layers.of === "chain" ? "end to end" : "each edge",
    durationText(layers.latency_mean_ns),
    ...names.map((name) => {
      const layer = layers.layers.find((each) => each.name === name);
      return layer === undefined ? ABSENT : `${durationText(layer.mean_ns)} (${shareText(layer.share)})`;
    }),
  ]);
  return numbers("Layers", ["cell", "of", "mean", ...names.map(layerName)], rows);
}

function draw(model: Model, against: string, facets: Record<string, string>): HTMLElement[] {
  const groups = groupsOf(model.report, against, facets);
  if (groups.length === 0) return [element("p", { class: "quiet" }, "No cell of this choice has layers.")];
  const longest = Math.max(...groups.flatMap((group) => group.bars.map(({ layers }) => layers.latency_mean_ns)));
  const names = groups.flatMap((group) => group.bars.flatMap(({ layers }) => layers.layers.map((layer) => layer.name)));
  const parts = groups.flatMap((group) => [
    ...(group.title === "" ? [] : [element("h3", {}, group.title)]),
    element("dl", { class: "stack" }, ...group.bars.flatMap((bar) => barOf(bar, longest))),
  ]);
  return [layerLegend(names), ...parts, tableOf(groups), ...schedulingParts(model.report, facets)];
}

/** An empty place where no cell has layers. */
export function layersView(report: Report): View {
  const root = element("div", {});
  if (report.layers.length === 0) return { root, update: () => undefined };
  const choices = againstOf(report);
  let against = choices[0] ?? "adapter";
  const body = element("div", {});
  let redraw = (): void => undefined;
  const label = (name: string): string => (name === "workload" ? "workload (chain length)" : factorLabel(name));
  const chosen = choice("layers against", choices.map((name) => ({ value: name, label: label(name) })), against, (value) => {
    against = value;
    redraw();
  });
  const said =
    "Means over all messages of the valid trials, stacked in the order of the way; all bars have one scale. End to end where the graph is a single line: then the layers of all its edges are added, and computation is the time in its nodes. Elsewhere of a message on any edge. What is unattributed is an empty box.";
  root.append(section("layers", "Layers", element("p", { class: "quiet" }, said), ...(choices.length < 2 ? [] : [element("div", { class: "controls" }, chosen)]), body));
  return {
    root,
    update: ({ model, state }) => {
      redraw = () => {
        body.replaceChildren(...draw(model, against, state.facets));
      };
      redraw();
    },
  };
}
