// SPDX-License-Identifier: Apache-2.0
// Reads the data that lies in the page, and draws it again whenever the reader chooses something else.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import type { Report } from "./data";
import { environmentSection, failuresSection, headLine, methodSection, settingsSection } from "./details";
import { choice, element } from "./dom";
import { factorLabel } from "./format";
import { edgesOf, index, selectedCells, type Model } from "./model";
import { payloadView } from "./payload-chart";
import { percentileView } from "./percentile-chart";
import { seriesView } from "./series-chart";
import { fromFragment, initialState, settle, toFragment, type State } from "./state";
import { tableView } from "./table";
import type { Context, View } from "./view";

const DATA_FORMAT = 1;

function readReport(): Report {
  const report = JSON.parse(document.getElementById("lagometer-data")?.textContent ?? "") as Report;
  if (report.format !== DATA_FORMAT) {
    throw new Error(`the data has format ${String(report.format)}, this page reads ${String(DATA_FORMAT)}`);
  }
  return report;
}

/** The choice that holds for the whole page: the edge, and one value of each factor that varies. */
function barView(): View {
  const root = element("div", { class: "bar controls", role: "group", "aria-label": "What is shown" });
  return {
    root,
    update: ({ model, state, change }) => {
      const option = (value: string): { value: string; label: string } => ({ value, label: value });
      const facets = model.facets.map(({ name, values }) =>
        choice(factorLabel(name), values.map(option), state.facets[name] ?? "", (value) => {
          change({ facets: { ...state.facets, [name]: value } });
        }),
      );
      const edges = edgesOf(selectedCells(model, state.facets)).map(option);
      const edge = choice("edge", edges, state.edge, (value) => {
        change({ edge: value });
      });
      root.replaceChildren(...facets, ...(edges.length > 1 ? [edge] : []));
      root.hidden = facets.length === 0 && edges.length < 2;
    },
  };
}

const THEMES: State["theme"][] = ["auto", "light", "dark"];
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

function applyTheme(wanted: State["theme"]): void {
  const dark = wanted === "dark" || (wanted === "auto" && systemDark.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

/** Draws everything, and puts the focus back to where it was. */
function refresh(views: View[], context: Context): void {
  const focused = document.activeElement?.id ?? "";
  const { scrollX, scrollY } = window;
  for (const view of views) view.update(context);
  if (focused !== "" && document.activeElement?.id !== focused) {
    document.getElementById(focused)?.focus({ preventScroll: true });
  }
  window.scrollTo(scrollX, scrollY);
}

/** Paper is white and can't be unfolded. */
function preparePrint(redraw: () => void, theme: () => State["theme"]): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
    for (const each of opened) each.open = true;
    applyTheme("light");
    redraw();
  });
  window.addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
    applyTheme(theme());
    redraw();
  });
}

function start(main: HTMLElement, model: Model): void {
  const initial = settle(model, initialState(model));
  let state = settle(model, fromFragment(location.hash, initial));
  const views = [barView(), payloadView(), percentileView(), seriesView(), tableView()];
  const [bar, ...charts] = views;
  const themeButton = element("button", { type: "button", id: "theme", class: "theme" });
  const redraw = (): void => {
    themeButton.textContent = `Theme: ${state.theme}`;
    refresh(views, { model, state, change });
  };
  const change = (part: Partial<State>): void => {
    const themed = part.theme !== undefined && part.theme !== state.theme;
    state = settle(model, { ...state, ...part });
    if (themed) applyTheme(state.theme);
    history.replaceState(null, "", `#${toFragment(state, initial)}`);
    redraw();
  };
  themeButton.addEventListener("click", () => {
    change({ theme: THEMES[(THEMES.indexOf(state.theme) + 1) % THEMES.length] ?? "auto" });
  });
  const { report } = model;
  main.append(headLine(report, themeButton), bar?.root ?? "", ...charts.map((view) => view.root));
  main.append(failuresSection(report), settingsSection(report), environmentSection(report), methodSection(report));
  applyTheme(state.theme);
  redraw();
  systemDark.addEventListener("change", () => {
    applyTheme(state.theme);
    redraw();
  });
  window.addEventListener("hashchange", () => {
    state = settle(model, fromFragment(location.hash, initial));
    applyTheme(state.theme);
    redraw();
  });
  preparePrint(redraw, () => state.theme);
}

const main = document.getElementById("report");
if (main !== null) {
  try {
    const report = readReport();
    document.title = `${report.campaign.name} · lagometer report`;
    start(main, index(report));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    main.append(element("p", { role: "alert" }, `This report can't be shown: ${reason}. Write it again: lagometer report DIR`));
  }
}
