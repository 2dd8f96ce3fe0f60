// SPDX-License-Identifier: Apache-2.0
// The paths of single messages: a time line for each, with a row for each thread that it was on.

import { arrowStep, linearSplits } from "./chart";
import { choice, element, numbers, section } from "./dom";
import { durationText, roundDurationText, shareText } from "./format";
import { inOrder, layerLook, layerName } from "./layer-look";
import { theme } from "./palette";
import type { Report } from "./report-data";
import { shape } from "./svg";
import type { View } from "./view";
import { drawnEvents, eventsHeight, eventsLegend, eventsTables } from "./way-events";
import type { MessageWay, Stay, WayRow } from "./way-data";

const LABEL = 17; // pixels, for a row's name above it
const BAR = 18;
const SPACE = 5;
const AXIS = 26;
const NARROWEST = 330; // the smallest width of a time line
const LETTER = 7.2;

/** The height of each row. */
function rowHeight(way: MessageWay): number {
  return LABEL + BAR + eventsHeight(way) + SPACE;
}

export function rowName(row: WayRow | undefined): string {
  if (row === undefined) return "";
  const thread =
    row.number === null || row.thread.endsWith(` ${String(row.number)}`)
      ? row.thread
      : `${row.thread} ${String(row.number)}`;
  return row.worker === null ? thread : `${row.worker} · ${thread}`;
}

/** `the slowest`, `the 2nd slowest`, `the median`. */
export function wayTitle(way: MessageWay): string {
  if (way.chosen === "median") return "the median message";
  if (way.place === 1) return "the slowest message";
  return `the ${way.place === 2 ? "2nd" : "3rd"} slowest message`;
}

const NAMED = 3; // threads that ran while another waited

/** What the scheduler's records say about a stay; empty if that is nothing. */
export function shareOf(stay: Stay): string {
  const share = stay.scheduler;
  if (share === null) return "";
  const together = new Map<string, number>();
  for (const each of share.instead) {
    const who = `${each.name === "idle" ? "idling" : each.name} on CPU ${String(each.cpu)}`;
    together.set(who, (together.get(who) ?? 0) + each.ran_ns);
  }
  const longest = [...together].sort(([, a], [, b]) => b - a);
  const ran = longest.slice(0, NAMED).map(([who, ran_ns]) => `${who} for ${durationText(ran_ns)}`);
  if (longest.length > NAMED) ran.push("…");
  const meanwhile = ran.length === 0 ? "" : ` (meanwhile ${ran.join(", ")})`;
  const waiting = `waiting for a CPU ${durationText(share.waiting_ns)}${meanwhile}`;
  return `; asleep ${durationText(share.asleep_ns)}, ${waiting}, running ${durationText(share.running_ns)}`;
}

/** One stay in a sentence. */
export function stayText(way: MessageWay, stay: Stay): string {
  const took = stay.end_ns - stay.begin_ns;
  const [from, to] = [rowName(way.rows[stay.row]), rowName(way.rows[stay.end_row])];
  const where = stay.row === stay.end_row ? `on ${from}` : `from ${from} to ${to}`;
  const length = `${durationText(took)} (${shareText(took / way.latency_ns)})`;
  const begin = `${durationText(stay.begin_ns)} after publish`;
  return `${layerName(stay.layer)}: ${length} ${where}, ${begin}${shareOf(stay)}`;
}

function percent(part: number): string {
  return `${String(Number((100 * part).toFixed(3)))}%`;
}

function bar(way: MessageWay, stay: Stay, place: number, width: number): SVGElement[] {
  const { ink, muted } = theme();
  const look = layerLook(stay.layer);
  const [begin, end] = [stay.begin_ns / way.latency_ns, stay.end_ns / way.latency_ns];
  const row = rowHeight(way);
  const y = stay.row * row + LABEL;
  const paint =
    look === null
      ? { fill: "none", stroke: muted, "stroke-dasharray": "3 2" }
      : { fill: look.colour, "fill-opacity": look.opacity };
  const box = shape("rect", {
    x: percent(begin),
    y,
    width: percent(end - begin),
    height: BAR,
    "data-stay": place,
    ...paint,
  });
  box.append(shape("title", {}, stayText(way, stay)));
  const drawn = [box];
  const name = layerName(stay.layer);
  if ((end - begin) * width > name.length * LETTER + 6) {
    const light = look === null || look.opacity < 0.6;
    const fill = light ? ink : theme().ground;
    drawn.push(
      shape(
        "text",
        {
          x: percent((begin + end) / 2),
          y: y + 13,
          fill,
          "text-anchor": "middle",
          "pointer-events": "none",
          class: "way-name",
        },
        name,
      ),
    );
  }
  if (stay.row !== stay.end_row) {
    const down = stay.end_row > stay.row;
    const other = stay.end_row * row + LABEL;
    const [from, to] = down ? [y + BAR, other] : [y, other + BAR];
    drawn.push(
      shape("line", {
        x1: percent(end),
        x2: percent(end),
        y1: from,
        y2: to,
        stroke: ink,
        "stroke-width": 1,
        "stroke-dasharray": "2 2",
      }),
    );
  }
  return drawn;
}

/** How a tick's text is aligned, so that it stays inside the drawing. */
function anchorAt(share: number): string {
  if (share < 0.04) return "start";
  return share > 0.9 ? "end" : "middle";
}

function axis(way: MessageWay, height: number): SVGElement[] {
  const { muted, line } = theme();
  return linearSplits(0, way.latency_ns).flatMap((value) => {
    const share = value / way.latency_ns;
    return [
      shape("line", { x1: percent(share), x2: percent(share), y1: 0, y2: height, stroke: line }),
      shape(
        "text",
        { x: percent(share), y: height + 17, fill: muted, "text-anchor": anchorAt(share) },
        roundDurationText(value),
      ),
    ];
  });
}

/** The drawing; arrow keys go from stay to stay, and the text below describes each. */
function timeLine(way: MessageWay, width: number): HTMLElement {
  const { ink, muted, accent } = theme();
  const row = rowHeight(way);
  const height = way.rows.length * row;
  const svg = shape("svg", { class: "way", width: "100%", height: height + AXIS, "aria-hidden": "true" });
  svg.append(...axis(way, height));
  way.rows.forEach((each, place) =>
    svg.append(shape("text", { x: 0, y: place * row + 12, fill: muted, class: "way-row" }, rowName(each))),
  );
  svg.append(
    ...drawnEvents(
      way,
      (place) => rowName(way.rows[place]),
      (place) => place * row + LABEL + BAR,
    ),
  );
  way.stays.forEach((stay, place) => svg.append(...bar(way, stay, place, width)));
  const mark = shape("rect", { fill: "none", stroke: accent, "stroke-width": 2, visibility: "hidden" });
  svg.append(mark);
  const said = element("p", { class: "way-said quiet", "aria-live": "polite" });
  const names = inOrder(way.stays.map((stay) => stay.layer))
    .map(layerName)
    .join(", ");
  const whole = `${durationText(way.latency_ns)} on ${String(way.rows.length)} threads`;
  const description =
    `${wayTitle(way)} of ${way.cell}: ${whole}, in the layers ${names}. ` + "The table below has each stay.";
  const node = element(
    "div",
    { class: "way-line", role: "img", tabindex: "0", "aria-label": description },
    svg,
  );
  let at = -1;
  const show = (place: number): void => {
    const stay = way.stays[place];
    if (stay === undefined) return;
    at = place;
    const frame = {
      x: percent(stay.begin_ns / way.latency_ns),
      y: stay.row * row + LABEL,
      width: percent((stay.end_ns - stay.begin_ns) / way.latency_ns),
      height: BAR,
      visibility: "visible",
      stroke: ink,
    };
    for (const [name, value] of Object.entries(frame)) mark.setAttribute(name, String(value));
    said.textContent = stayText(way, stay);
  };
  node.addEventListener("keydown", (event) => {
    const step = arrowStep(event);
    if (step === 0) return;
    event.preventDefault();
    show(Math.max(0, Math.min(way.stays.length - 1, at + step)));
  });
  const pointed = (event: Event): void => {
    const target = event.target as Element;
    const place = target.getAttribute("data-stay");
    if (place !== null) show(Number(place));
    const says = target.getAttribute("data-says");
    if (says !== null) {
      mark.setAttribute("visibility", "hidden");
      said.textContent = says;
    }
  };
  node.addEventListener("pointerover", pointed);
  node.addEventListener("pointerdown", pointed);
  return element("div", {}, node, said);
}

/** Which colour stands for which layer. */
export function layerLegend(layers: Iterable<string>): HTMLElement {
  const keys = inOrder(layers).map((layer) => {
    const swatch = element("i", {});
    const look = layerLook(layer);
    if (look === null) swatch.className = "none";
    else {
      swatch.style.background = look.colour;
      swatch.style.opacity = String(look.opacity);
    }
    return element("span", {}, swatch, layerName(layer));
  });
  return element("p", { class: "layer-legend" }, ...keys);
}

function article(way: MessageWay, width: number): HTMLElement {
  const lost = way.followed ? "" : " Its way through the graph was not found, so all of it is unattributed.";
  const facts = `${way.edge}, trial ${String(way.trial)}, number ${String(way.sequence)}.${lost}`;
  const rows = way.stays.map((stay) => [
    layerName(stay.layer),
    durationText(stay.begin_ns),
    durationText(stay.end_ns - stay.begin_ns),
    shareText((stay.end_ns - stay.begin_ns) / way.latency_ns),
    rowName(way.rows[stay.row]),
    stay.row === stay.end_row ? "" : rowName(way.rows[stay.end_row]),
    stay.edge,
  ]);
  const title = `${wayTitle(way)}: ${durationText(way.latency_ns)}`;
  return element(
    "article",
    { class: "way-message", "data-chosen": way.chosen, "data-latency": String(way.latency_ns) },
    element(
      "h3",
      {},
      title.charAt(0).toUpperCase() + title.slice(1),
      " ",
      element("span", { class: "quiet" }, facts),
    ),
    timeLine(way, width),
    numbers(title, ["layer", "begins", "takes", "share", "on", "hands over to", "edge"], rows),
    ...eventsTables(way, wayTitle(way), (place) => rowName(way.rows[place])),
  );
}

/** Each cell's slowest messages and a median one; a placeholder if the campaign has none. */
export function waysView(report: Report): View {
  const root = element("div", {});
  if (report.ways.length === 0) return { root, update: () => undefined };
  const cells = [...new Set(report.ways.map((way) => way.cell))];
  let cell = cells[0] ?? "";
  const body = element("div", {});
  const draw = (): void => {
    const shown = report.ways.filter((way) => way.cell === cell);
    const legend = eventsLegend(shown);
    body.replaceChildren(
      layerLegend(shown.flatMap((way) => way.stays.map((stay) => stay.layer))),
      ...(legend === null ? [] : [legend]),
      ...shown.map((way) => article(way, Math.max(NARROWEST, body.clientWidth))),
    );
  };
  const chosen = choice(
    "cell seen",
    cells.map((each) => ({ value: each, label: each })),
    cell,
    (value) => {
      cell = value;
      draw();
    },
  );
  chosen.classList.add("wide");
  const said =
    "The three slowest messages of a cell, and the median one of the trial in the middle, from publish " +
    "to taken. A row is a thread of a process; a dashed line leads to the thread that takes over. " +
    "Point at a bar, or go with the arrow keys, to read what it is. The stays of a message add up to " +
    "its latency. Where layers were not measured, communication is from publish to taken, computation " +
    "from there to the next publish, or bridge, if the node is one between domains or adapters; callback " +
    "queue is the wait for callbacks of messages that the same call took. Below a bar " +
    "are the calls of its thread, if layers were measured, and when the thread ran, waited for a CPU or " +
    "slept, if the scheduler was recorded; they begin and end with the message.";
  root.append(
    section(
      "ways",
      "One message, seen",
      element("p", { class: "quiet" }, said),
      element("div", { class: "controls" }, chosen),
      body,
    ),
  );
  return { root, update: draw };
}
