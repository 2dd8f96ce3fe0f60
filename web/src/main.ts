// SPDX-License-Identifier: Apache-2.0
// Reads the data in the page, and redraws it whenever the reader chooses something else.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { answerSection } from "./answer";
import { cellTableViews } from "./cell-tables";
import { comparisonPage } from "./comparison";
import { controlView } from "./control-chart";
import { costView } from "./cost-chart";
import type { ComparisonReport } from "./comparison-data";
import type { Report } from "./report-data";
import { bridgesSection } from "./bridges";
import { chainsSection } from "./chains";
import { subscribersSection } from "./subscribers";
import { nodeCostsSection } from "./node-costs";
import { layersView } from "./layers";
import { wireViews } from "./wire";
import { conformanceSection, settingsSection } from "./adapter-details";
import { environmentSection, headLine, methodSection } from "./campaign-details";
import { failuresSection } from "./failures";
import { choice, element } from "./dom";
import { feasibilitySection } from "./feasibility";
import { findingsSection } from "./findings";
import { factorView } from "./factor-chart";
import { factorLabel } from "./format";
import { glanceSection } from "./glance";
import { edgesOf, index, selectedCells, type Model } from "./model";
import { payloadView } from "./payload-chart";
import { percentileView } from "./percentile-chart";
import { seriesView } from "./series-chart";
import { fromFragment, initialState, settle, toFragment, withCell, type State } from "./state";
import { tableView } from "./table";
import { TABLE_ONLY, type Context, type View } from "./view";
import { waysView } from "./ways";

const DATA_FORMAT = 5;

type Page = (Report & { kind: "campaign" }) | (ComparisonReport & { kind: "comparison" });

function readPage(): Page {
  const report = JSON.parse(document.getElementById("lagometer-data")?.textContent ?? "") as Page;
  if (report.format !== DATA_FORMAT) {
    throw new Error(`the data has format ${String(report.format)}, this page reads ${String(DATA_FORMAT)}`);
  }
  return report;
}

/** The choice for the whole page: the edge, and one value of each factor that varies. */
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

/** Whether the two differ only in what the table alone reads. */
function onlyTableChanges(one: State, other: State): boolean {
  const keys = (Object.keys(one) as (keyof State)[]).filter((name) => one[name] !== other[name]);
  return keys.length > 0 && keys.every((name) => (TABLE_ONLY as readonly string[]).includes(name));
}

/** Draws the views and restores the focus. */
function refresh(views: View[], context: Context): void {
  const focused = document.activeElement?.id ?? "";
  const { scrollX, scrollY } = window;
  for (const view of views) view.update(context);
  if (focused !== "" && document.activeElement?.id !== focused) {
    document.getElementById(focused)?.focus({ preventScroll: true });
  }
  window.scrollTo(scrollX, scrollY);
}

/** Paper is white, narrow, and can't be unfolded. */
function preparePrint(redraw: () => void, theme: () => State["theme"]): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    document.documentElement.dataset["paper"] = "yes";
    applyTheme("light");
    redraw();
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
    for (const each of opened) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
    delete document.documentElement.dataset["paper"];
    applyTheme(theme());
    redraw();
  });
}

/** The parts that follow the reader's choices, in the order of the page. */
function chartViews(report: Report): View[] {
  return [
    payloadView(),
    factorView(),
    costView(),
    percentileView(),
    seriesView(),
    tableView(),
    ...cellTableViews(report),
    controlView(report),
    layersView(report),
    waysView(report),
    ...wireViews(report),
  ];
}

/** The parts that are the same whatever the reader chooses. */
function plainSections(report: Report): (HTMLElement | string)[] {
  return [
    nodeCostsSection(report.node_costs) ?? "",
    bridgesSection(report) ?? "",
    chainsSection(report) ?? "",
    subscribersSection(report) ?? "",
    feasibilitySection(report) ?? "",
    failuresSection(report),
    settingsSection(report),
    ...conformanceSection(report),
    environmentSection(report),
    methodSection(report),
  ];
}

function start(main: HTMLElement, model: Model): void {
  const initial = settle(model, initialState(model));
  const fromAddress = (): State =>
    settle(model, withCell(model, fromFragment(location.hash, initial), location.hash));
  let state = fromAddress();
  const bar = barView();
  const charts = chartViews(model.report);
  const views = [bar, ...charts];
  const themeButton = newThemeButton();
  const tables = views.filter((view) => view.readsTable === true);
  const redraw = (shown: View[] = views): void => {
    themeButton.textContent = `Theme: ${state.theme}`;
    refresh(shown, { model, state, change });
  };
  const change = (part: Partial<State>): void => {
    const themed = part.theme !== undefined && part.theme !== state.theme;
    const before = state;
    state = settle(model, { ...state, ...part });
    if (themed) applyTheme(state.theme);
    history.replaceState(null, "", `#${toFragment(state, initial)}`);
    redraw(onlyTableChanges(before, state) ? tables : views);
  };
  themeButton.addEventListener("click", () => {
    change({ theme: THEMES[(THEMES.indexOf(state.theme) + 1) % THEMES.length] ?? "auto" });
  });
  main.append(
    headLine(model.report, themeButton),
    answerSection(model.report) ?? "",
    glanceSection(model.report) ?? "",
    findingsSection(model.report.findings) ?? "",
    bar.root,
    ...charts.map((view) => view.root),
    ...plainSections(model.report),
  );
  applyTheme(state.theme);
  redraw();
  systemDark.addEventListener("change", () => {
    applyTheme(state.theme);
    redraw();
  });
  window.addEventListener("hashchange", () => {
    state = fromAddress();
    applyTheme(state.theme);
    redraw();
    showLinked();
  });
  preparePrint(redraw, () => state.theme);
  showLinked();
}

function newThemeButton(): HTMLButtonElement {
  return element("button", { type: "button", id: "theme", class: "theme" });
}

/** A link to a cell opens where that cell is shown. */
function showLinked(): void {
  const parameters = new URLSearchParams(location.hash.replace(/^#/, ""));
  if (parameters.has("cell")) document.getElementById("series")?.scrollIntoView();
}

/** The page of a comparison has no choice but the background colour. */
function startComparison(main: HTMLElement, report: ComparisonReport): void {
  const named = new URLSearchParams(location.hash.replace(/^#/, "")).get("theme");
  let wanted: State["theme"] = named === "light" || named === "dark" ? named : "auto";
  const themeButton = newThemeButton();
  const draw = comparisonPage(main, report, themeButton);
  const redraw = (): void => {
    themeButton.textContent = `Theme: ${wanted}`;
    draw();
  };
  const apply = (): void => {
    applyTheme(wanted);
    redraw();
  };
  themeButton.addEventListener("click", () => {
    wanted = THEMES[(THEMES.indexOf(wanted) + 1) % THEMES.length] ?? "auto";
    history.replaceState(
      null,
      "",
      wanted === "auto" ? location.href.replace(/#.*$/, "") : `#theme=${wanted}`,
    );
    apply();
  });
  systemDark.addEventListener("change", apply);
  window.addEventListener("resize", redraw);
  preparePrint(redraw, () => wanted);
  apply();
}

const main = document.getElementById("report");
if (main !== null) {
  try {
    const report = readPage();
    if (report.kind === "comparison") {
      document.title = `${report.directory_b} against ${report.directory_a} · lagometer comparison`;
      startComparison(main, report);
    } else {
      document.title = `${report.campaign.name} · lagometer report`;
      start(main, index(report));
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    main.append(
      element(
        "p",
        { role: "alert" },
        `This report can't be shown: ${reason}. Write it again: lagometer report DIR`,
      ),
    );
  }
}
