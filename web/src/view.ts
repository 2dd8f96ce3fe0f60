// SPDX-License-Identifier: Apache-2.0
// What every part of the page gets, and the legend that two charts share.

import { element } from "./dom";
import type { Model } from "./model";
import { selectedCells } from "./model";
import { looks, type Look } from "./palette";
import type { State } from "./state";

export interface Context {
  model: Model;
  state: State;
  change: (part: Partial<State>) => void;
}

/** What only the table of figures reads: a word in its filter does not redraw any chart. */
export const TABLE_ONLY = [
  "filter",
  "sort",
  "descending",
  "allCells",
  "allEdges",
  "eachTrial",
  "failedOnly",
] as const;

/** A part of the page that is redrawn when the choice changes. */
export interface View {
  root: HTMLElement;
  /** Whether it reads what is in TABLE_ONLY. */
  readsTable?: boolean;
  update: (context: Context) => void;
}

export function adapterLooks(model: Model): Map<string, Look> {
  const bare = new Set(model.report.cells.filter((cell) => cell.bare).map((cell) => cell.adapter));
  return looks(model.adapters, bare);
}

const GLYPHS = {
  circle: "●",
  square: "■",
  triangle: "▲",
  diamond: "◆",
  down: "▼",
  plus: "✚",
  cross: "✖",
  star: "✦",
};

/** Buttons that show and hide adapters. */
export function legend(context: Context): HTMLElement {
  const { model, state, change } = context;
  const present = new Set(selectedCells(model, state.facets).map((cell) => cell.adapter));
  const styles = adapterLooks(model);
  const buttons = model.adapters
    .filter((adapter) => present.has(adapter))
    .map((adapter) => {
      const shown = !state.hidden.includes(adapter);
      const look = styles.get(adapter);
      const glyph = element(
        "span",
        { class: "glyph", "aria-hidden": "true" },
        GLYPHS[look?.marker ?? "circle"],
      );
      glyph.style.color = look?.colour ?? "";
      const toggle = (): void => {
        const hidden = shown ? [...state.hidden, adapter] : state.hidden.filter((each) => each !== adapter);
        change({ hidden });
      };
      return element(
        "button",
        { type: "button", "aria-pressed": String(shown), onclick: toggle },
        glyph,
        adapter,
      );
    });
  return element("div", { class: "legend", role: "group", "aria-label": "Adapters shown" }, ...buttons);
}
