// SPDX-License-Identifier: Apache-2.0
// Single calls and the scheduler's states, below the stays of a message's time line.

import { numbers, element } from "./dom";
import { bytesText, countOf, durationText } from "./format";
import { layerName } from "./layer-look";
import { theme } from "./palette";
import { shape } from "./svg";
import type { MessageWay, RanInstead, WayCall, WayState } from "./way-data";

const CALLS = 8; // pixels, the height of a row's calls
const STATES = 7;
const GAP = 2;
const NAMED = 3; // threads that ran while another waited

type Naming = (place: number) => string;

/** How much room calls and states need on each row. */
export function eventsHeight(way: MessageWay): number {
  const calls = way.calls.length === 0 ? 0 : CALLS + GAP;
  return calls + (way.states.length === 0 ? 0 : STATES + GAP);
}

/** The part of a time within the message, as shares of its latency; null if there is none. */
export function within(way: MessageWay, beginNs: number, endNs: number): [number, number] | null {
  const [begin, end] = [Math.max(0, beginNs), Math.min(way.latency_ns, endNs)];
  return begin > end ? null : [begin / way.latency_ns, end / way.latency_ns];
}

/** When something began: `2.00 µs after publish`, or before it. */
function beginText(beginNs: number): string {
  return beginNs < 0 ? `${durationText(-beginNs)} before publish` : `${durationText(beginNs)} after publish`;
}

/** One call in a sentence. row: the name of a row. */
export function callText(call: WayCall, row: Naming): string {
  const moved = call.bytes === null ? "" : `, ${bytesText(call.bytes)}`;
  const took = durationText(call.end_ns - call.begin_ns);
  return `${layerName(call.name)}: ${took} on ${row(call.row)}, ${beginText(call.begin_ns)}${moved}`;
}

/** Who ran while a thread waited, the longest first. */
export function ranText(instead: RanInstead[]): string {
  const together = new Map<string, number>();
  for (const each of instead) {
    const who = each.name === "idle" ? "idling" : each.name;
    together.set(who, (together.get(who) ?? 0) + each.end_ns - each.begin_ns);
  }
  const longest = [...together].sort(([, a], [, b]) => b - a);
  const ran = longest.slice(0, NAMED).map(([who, ranNs]) => `${who} for ${durationText(ranNs)}`);
  return [...ran, ...(longest.length > NAMED ? ["…"] : [])].join(", ");
}

/** Why a state ended or lasted: who woke the thread, or who ran instead; empty if that is not known. */
export function reasonText(state: WayState): string {
  const woken = state.woken_by;
  if (woken !== null) {
    const who = woken.name === "idle" ? "an idle CPU" : woken.name;
    return woken.interrupt ? `woken by an interrupt during ${who}` : `woken by ${who}`;
  }
  return state.instead.length === 0 ? "" : `meanwhile ${ranText(state.instead)}`;
}

/** `running on CPU 1`, `waiting for CPU 1`, `asleep`. */
function stateName(state: WayState): string {
  const cpu = state.cpu === null ? "a CPU" : `CPU ${String(state.cpu)}`;
  if (state.state === "running") return `running on ${cpu}`;
  return state.state === "waiting" ? `waiting for ${cpu}` : state.state;
}

/** One state in a sentence. */
export function stateText(state: WayState, row: Naming): string {
  const took = durationText(state.end_ns - state.begin_ns);
  const reason = reasonText(state);
  const where = `${took} on ${row(state.row)}, ${beginText(state.begin_ns)}`;
  return `${stateName(state)}: ${where}${reason === "" ? "" : `; ${reason}`}`;
}

function percent(part: number): string {
  return `${String(Number((100 * part).toFixed(3)))}%`;
}

function box(span: [number, number], y: number, height: number, says: string, look: object): SVGElement {
  const [x, width] = [percent(span[0]), percent(span[1] - span[0])];
  const drawn = shape("rect", { x, y, width, height, "data-says": says, ...look });
  drawn.append(shape("title", {}, says));
  return drawn;
}

/** Calls and states of all rows. top: where a row's stays end, in pixels. */
export function drawnEvents(way: MessageWay, row: Naming, top: (place: number) => number): SVGElement[] {
  const { ink, muted, accent, alarm } = theme();
  const drawn: SVGElement[] = [];
  for (const call of way.calls) {
    const span = within(way, call.begin_ns, call.end_ns);
    if (span === null) continue;
    // Inner calls lie on outer ones, which shine through; the edge shows a call without a length.
    const look = { fill: ink, "fill-opacity": 0.22, stroke: ink, "stroke-width": 0.6, class: "way-call" };
    drawn.push(box(span, top(call.row) + GAP, CALLS, callText(call, row), look));
  }
  const below = GAP + (way.calls.length === 0 ? 0 : CALLS + GAP);
  for (const state of way.states) {
    const span = within(way, state.begin_ns, state.end_ns);
    if (span === null) continue;
    const asleep = state.state === "asleep";
    const busy = state.state === "waiting" ? alarm : accent;
    const fill = asleep ? muted : busy;
    const height = asleep ? 1.5 : STATES; // a thin line, so that states differ by more than their colour
    const y = top(state.row) + below + (STATES - height) / 2;
    drawn.push(box(span, y, height, stateText(state, row), { fill, class: `way-state ${state.state}` }));
  }
  return drawn;
}

/** What the strips below the stays mean; null if no message has any. */
export function eventsLegend(ways: MessageWay[]): HTMLElement | null {
  const { ink, muted, accent, alarm } = theme();
  const keys: [string, string, number][] = [];
  if (ways.some((way) => way.calls.length > 0)) keys.push(["calls of the thread", ink, 0.35]);
  if (ways.some((way) => way.states.length > 0)) {
    keys.push(["running", accent, 1], ["waiting for a CPU", alarm, 1], ["asleep", muted, 1]);
  }
  if (keys.length === 0) return null;
  const drawn = keys.map(([name, colour, opacity]) => {
    const swatch = element("i", { class: name === "asleep" ? "thin" : "" });
    swatch.style.background = colour;
    swatch.style.opacity = String(opacity);
    return element("span", {}, swatch, name);
  });
  return element("p", { class: "layer-legend" }, "below a bar:", ...drawn);
}

/** The same as tables, and how many are missing. */
export function eventsTables(way: MessageWay, title: string, row: Naming): HTMLElement[] {
  const tables: HTMLElement[] = [];
  if (way.calls.length > 0) {
    const rows = way.calls.map((call) => [
      layerName(call.name),
      durationText(call.begin_ns),
      durationText(call.end_ns - call.begin_ns),
      row(call.row),
      call.bytes === null ? "" : bytesText(call.bytes),
    ]);
    tables.push(numbers(`calls of ${title}`, ["call", "begins", "takes", "on", "bytes"], rows));
  }
  if (way.states.length > 0) {
    const rows = way.states.map((state) => [
      stateName(state),
      durationText(state.begin_ns),
      durationText(state.end_ns - state.begin_ns),
      row(state.row),
      reasonText(state),
    ]);
    tables.push(numbers(`scheduler of ${title}`, ["state", "begins", "takes", "on", "because"], rows));
  }
  if (way.events_left_out > 0) {
    const missing = countOf(way.events_left_out, "call or state was", "calls and states were");
    tables.push(element("p", { class: "quiet" }, `${missing} too many to keep; the longest are here.`));
  }
  return tables;
}
