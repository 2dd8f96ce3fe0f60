// SPDX-License-Identifier: Apache-2.0
// The campaign itself: its parameters and how it went, the machine that it ran on, and the method.

import type { Fact } from "./data";
import type { Report } from "./report-data";
import type { MachineFloor } from "./steadiness-data";
import { copyable, element, headedTable, numberCell, scrolled, section } from "./dom";
import { countText, dateText, durationText, shareText, timeText } from "./format";

function verdict(value: string, label: string, kind = ""): HTMLElement {
  return element("div", { class: `verdict ${kind}` }, element("dd", {}, value), element("dt", {}, label));
}

export function headLine(report: Report, themeButton: HTMLElement): HTMLElement {
  const { campaign, counts } = report;
  const state =
    campaign.state === "finished"
      ? null
      : element("strong", { class: "state" }, `campaign ${campaign.state}`);
  // The version of a bare transport is the kernel's, which is listed under the machine.
  const bare = new Set(report.cells.filter((cell) => cell.bare).map((cell) => cell.adapter));
  const named = Object.entries(campaign.versions).filter(([name]) => !bare.has(name));
  const versions = named.map(([name, version]) => `${name} ${version}`);
  const made = [dateText(campaign.created), `lagometer ${campaign.lagometer_version}`, ...versions];
  if (campaign.seed !== null) made.push(`seed ${String(campaign.seed)}`);
  return element(
    "header",
    {},
    element("div", { class: "top" }, element("p", { class: "overline" }, "lagometer report"), themeButton),
    element("h1", {}, campaign.name),
    campaign.description === null ? null : element("p", { class: "description" }, campaign.description),
    element("p", { class: "made" }, campaign.machine),
    element("p", { class: "made" }, made.join(" · ")),
    state,
    element(
      "dl",
      { class: "verdicts" },
      verdict(countText(counts.trials_valid), counts.trials_valid === 1 ? "trial valid" : "trials valid"),
      verdict(countText(counts.trials_failed), "failed", counts.trials_failed > 0 ? "bad" : ""),
      ...(counts.trials_noisy > 0 ? [verdict(countText(counts.trials_noisy), "disturbed", "bad")] : []),
      verdict(countText(counts.excluded), "excluded"),
      verdict(countText(counts.cells), counts.cells === 1 ? "cell" : "cells"),
      verdict(countText(counts.messages), "messages"),
    ),
  );
}

function factList(facts: Fact[]): HTMLElement {
  const items = facts.flatMap((fact) => [
    element("dt", {}, fact.name.includes(".") ? fact.name : fact.name.replaceAll("_", " ")),
    element("dd", {}, fact.value ?? "unknown"),
  ]);
  return element("dl", { class: "facts" }, ...items);
}

/** The wake-up latency of each CPU with nothing else to do. */
function floorPart(floor: MachineFloor | null): HTMLElement[] {
  if (floor === null) return [];
  const rows = floor.cores.map((core) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, String(core.cpu)),
      numberCell(countText(core.n)),
      ...[core.p50_ns, core.p99_ns, core.p999_ns, core.max_ns].map((value) =>
        numberCell(durationText(value)),
      ),
    ),
  );
  const heads = ["CPU", "wake-ups", "p50", "p99", "p99.9", "max"].map((head) =>
    element("th", { scope: "col", class: head === "CPU" ? "" : "number" }, head),
  );
  const who = floor.policy === "fifo" ? "real-time thread (SCHED_FIFO)" : "thread";
  const said =
    `How late a ${who} wakes that waits for a timer, measured for ${timeText(floor.duration_s)} on each CPU before the ` +
    `first trial. Time stolen by a hypervisor: ${shareText(floor.steal_share)}.`;
  return [
    element("h3", {}, "Wake-up latency"),
    element("p", { class: "quiet" }, said),
    scrolled("Wake-up latency", headedTable({ id: "machine-floor" }, heads, rows)),
  ];
}

export function environmentSection(report: Report): HTMLElement {
  const sections = [...new Set(report.environment.map((fact) => fact.section))];
  const parts = sections.map((name) => {
    const facts = factList(report.environment.filter((fact) => fact.section === name));
    return element("div", { class: "facts-group" }, element("h3", {}, name.replaceAll("_", " ")), facts);
  });
  const none = element("p", { class: "quiet" }, "environment.json is missing from this campaign.");
  return section(
    "environment",
    "The machine",
    ...floorPart(report.machine_floor),
    element("div", { class: "columns" }, ...(parts.length > 0 ? parts : [none])),
  );
}

const METHOD: [string, string][] = [
  [
    "Latency",
    "runs from publish (the data is ready in the sender's buffer and the call to publish begins) to " +
      "taken (the receiver has the data). End to end, it runs from the first message of a chain until " +
      "its last reader takes the message.",
  ],
  [
    "Response time",
    "runs from intended (when the schedule said that the message should be sent) to taken. A sender " +
      "that is late because the last message still held it up can't hide here; send lag (intended → " +
      "publish) says how late it was. A closed loop such as ping-pong has no schedule, hence no response " +
      "time.",
  ],
  ["Blocked", "is how long the call to publish held the sender: publish → published."],
  [
    "Clock",
    "is CLOCK_MONOTONIC only, on one machine. Messages carry no time stamps: both sides keep records, " +
      "joined afterwards by stream and sequence.",
  ],
  [
    "Quantiles",
    "are values that were measured, never interpolated, and are given only where at least 10 messages " +
      "lie beyond them. Only delivered messages have a latency: look at the lost messages, too.",
  ],
  [
    "The floor",
    "is the fastest bare transport (null, shm, uds, udp or tcp) that carried the same payload with the " +
      "same placement, dispatch and touch. What a middleware takes beyond it is its own cost.",
  ],
  [
    "Valid",
    "is judged from causes (rate missed, endpoints missing, a worker that died …), never from the " +
      "latency. Failed trials are kept, counted and listed, but curves and medians leave them out.",
  ],
  [
    "Disturbed",
    "are valid trials during which something else took the machine: other processes, a hypervisor, a " +
      "quota, heat. It is judged from causes, too. Their figures are included, and say more about the " +
      "machine than about the middleware.",
  ],
  [
    "Intervals",
    "are for 95 %, from the spread between trials and, within them, a block bootstrap, so that " +
      "messages of a trial are not treated as independent. They need at least six valid trials. A " +
      "quantile of latency or response time that has one is that of all valid trials; send lag, blocked, " +
      "wake, rate and CPU per message have the interval of the median over trials, the share of lost " +
      "messages has that of a share over trials, and a multiple of the floor one made from those of both " +
      "parts (the lowest over the highest, and the reverse). There is none for single trials (the " +
      "control, series), counts, minimum and maximum, threads and memory. A cell that was stopped for " +
      "its precision has intervals that allow for the looks.",
  ],
  [
    "Long trials",
    "are a check on the bias of short ones: one for each adapter and workload, of a cell drawn at " +
      "random. The report says whether their p50 and p99 lie within the short trials' intervals.",
  ],
  [
    "CPU per message",
    "is the CPU time of all workers and daemons in the measure phase over the messages delivered. A " +
      "receiver that polls is fast, and the cost shows here.",
  ],
];

/** The study's own text, folded; null if the campaign did not keep it. */
function studyPart(text: string): HTMLElement | null {
  if (text === "") return null;
  const summary = element("summary", {}, "the study, as it was run");
  return element("details", {}, summary, copyable("study.yaml", text));
}

export function methodSection(report: Report): HTMLElement {
  const items = METHOD.flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]);
  const notes = report.notes.map((note) => element("li", {}, note));
  return section(
    "method",
    "How it was measured",
    element("dl", { class: "method" }, ...items),
    notes.length === 0 ? null : element("h3", {}, "What is missing or thinned here"),
    notes.length === 0 ? null : element("ul", { class: "reasons" }, ...notes),
    studyPart(report.campaign.study_text),
  );
}
