// SPDX-License-Identifier: Apache-2.0
// The parts that do not change with the choice: head line, failures, settings, machine, method.

import type { Fact, AbilityVerdict, MachineFloor, Settings } from "./data";
import type { Report } from "./report-data";
import { element, section, type Child } from "./dom";
import {
  ABSENT,
  countText,
  dateText,
  durationText,
  factorLabel,
  intervalText,
  percentText,
  rateText,
  shareText,
  threeDigits,
} from "./format";
import { END_TO_END } from "./model";

function verdict(value: string, label: string, kind = ""): HTMLElement {
  return element("div", { class: `verdict ${kind}` }, element("dd", {}, value), element("dt", {}, label));
}

export function headLine(report: Report, themeButton: HTMLElement): HTMLElement {
  const { campaign, counts } = report;
  const state =
    campaign.state === "finished"
      ? null
      : element("strong", { class: "state" }, `campaign ${campaign.state}`);
  // The version of a bare transport is the kernel's: it stands under the machine.
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

const KINDS: Record<string, string> = {
  failure: "Why trials failed",
  warning: "What was noted in trials",
  noise: "What disturbed trials",
};

/** Reasons, warnings and noise, each with its meaning and the number of trials. */
function reasonTables(report: Report): HTMLElement[] {
  return Object.entries(KINDS).flatMap(([kind, title]) => {
    const found = report.reasons.filter((each) => each.kind === kind);
    if (found.length === 0) return [];
    const rows = found.map((each) =>
      element(
        "tr",
        { "data-reason": each.word },
        element("th", { scope: "row" }, element("code", {}, each.word)),
        element("td", { class: "number" }, countText(each.trials)),
        element("td", { class: "wrapped" }, each.meaning),
      ),
    );
    const heads = ["reason", "trials", "meaning"].map((head) => element("th", { scope: "col" }, head));
    const table = element(
      "table",
      { class: "reason-table" },
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows),
    );
    return [
      element("h3", {}, title),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, table),
    ];
  });
}

/** How much threads were switched out, how much that moved the figures, and which trials stand out. */
function preemptionPart(report: Report): HTMLElement[] {
  const found = report.preemption;
  if (found === null) return [];
  const change = (share: number | null): string =>
    share === null ? ABSENT : `${share < 0 ? "−" : "+"}${(100 * Math.abs(share)).toPrecision(2)} %`;
  const alike =
    found.trials_outstanding === 0
      ? "None of them stands out of this campaign, so none is flagged."
      : `${String(found.trials_outstanding)} of them stand out and are flagged.`;
  const moved =
    found.cells_compared === 0
      ? ""
      : ` The quieter half of each cell's trials has p50 ${change(found.p50_change)} and p99 ${change(found.p99_change)} against all of them (median over ${String(found.cells_compared)} cells).`;
  const said = `In ${String(found.trials_above)} of ${String(found.trials)} valid trials threads were switched out involuntarily more than once in 10 messages (median ${found.per_message_median.toPrecision(2)} per message). ${alike}${moved}`;
  const rows = found.ranked.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell, "data-trial": String(each.trial) },
      element("th", { scope: "row" }, element("code", {}, each.cell), ` trial ${String(each.trial)}`),
      element("td", { class: "number" }, each.per_message.toPrecision(2)),
      element("td", { class: "number" }, `${each.times.toPrecision(2)} ×`),
      element("td", {}, each.stands_out ? "stands out" : ""),
      element("td", { class: "number" }, durationText(each.latency_p50_ns)),
      element("td", { class: "number" }, durationText(each.cell_p50_ns)),
    ),
  );
  const heads = ["trial", "switches / message", "of the median", "", "p50", "p50 of the cell"].map((head) =>
    element("th", { scope: "col" }, head),
  );
  const title = "Trials that were switched out most";
  const table = element(
    "table",
    { id: "preemption" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  return [
    element("h3", {}, title),
    element("p", { class: "quiet" }, said),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, table),
  ];
}

/** Cells in which a queue builds up: what they say of time depends on how long a trial is. */
function queuePart(report: Report): HTMLElement[] {
  if (report.queues.length === 0) return [];
  const items = report.queues.map((each) =>
    element(
      "li",
      { "data-cell": each.cell },
      element("code", {}, each.cell),
      `: the median response time grows by ${(each.growth_ns_per_s / 1e6).toPrecision(3)} ms a second (${String(each.trials_growing)} of ${String(each.trials)} trials)${each.waiting === null ? "" : `; ${each.waiting}`}`,
    ),
  );
  return [
    element("h3", {}, "Where a queue builds up"),
    element(
      "p",
      { class: "quiet" },
      "The reader can't keep up: p50 and all other times of these cells depend on how long a trial is.",
    ),
    element("ul", { id: "queues" }, ...items),
  ];
}

/** What the disturbed trials make of each cell: its figures with them, as they are everywhere else, and without. */
function noiseTable(report: Report): HTMLElement[] {
  const always = report.rows.filter(
    (row) =>
      row.trial === null && row.edge === END_TO_END && row.trials > 0 && row.trials_noisy === row.trials,
  ).length;
  const left =
    always === 0
      ? ""
      : ` In ${String(always)} ${always === 1 ? "cell" : "cells"} every valid trial was disturbed.`;
  const title = "With and without the disturbed trials";
  if (report.without_noise.length === 0) {
    return always === 0
      ? []
      : [element("h3", {}, title), element("p", { class: "quiet" }, `There is nothing to compare.${left}`)];
  }
  const figureNames: Record<string, string> = {
    latency_p50_ns: "p50",
    cpu_per_message_ns: "CPU / message",
    latency_p99_ns: "p99",
  };
  const value = (nanoseconds: number | null, low: number | null, high: number | null): HTMLElement => {
    const attributes = {
      class: "number",
      ...(nanoseconds === null ? {} : { "data-value": String(nanoseconds) }),
    };
    const range =
      low === null || high === null ? null : element("span", { class: "interval" }, intervalText(low, high));
    return element("td", attributes, durationText(nanoseconds), range);
  };
  const rows = report.without_noise.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell, "data-figure": each.figure },
      element("th", { scope: "row" }, element("code", {}, each.cell)),
      element("td", {}, `${String(each.trials_noisy)} of ${String(each.trials)}`),
      element("td", {}, figureNames[each.figure] ?? each.figure),
      value(each.all_ns, each.all_low_ns, each.all_high_ns),
      value(each.quiet_ns, each.quiet_low_ns, each.quiet_high_ns),
      element(
        "td",
        { class: "number" },
        each.all_ns === null || each.quiet_ns === null || each.all_ns === 0
          ? ABSENT
          : percentText(each.quiet_ns / each.all_ns),
      ),
      element("td", {}, each.of === "messages" ? "all messages" : "median of trials"),
    ),
  );
  const heads = ["cell", "disturbed", "figure", "all valid trials", "without", "change", "what it is"].map(
    (head) => element("th", { scope: "col" }, head),
  );
  const table = element(
    "table",
    { id: "without-noise" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  const said = `End to end. All other figures are of all valid trials. Where both sides have six trials, p50 and p99 are quantiles of all messages with their 95 % intervals. Otherwise, and always for CPU per message, it is the median of the trials' figures, with an interval from six trials on.${left}`;
  return [
    element("h3", {}, title),
    element("p", { class: "quiet" }, said),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, table),
  ];
}

const MEBIBYTE = 1024 ** 2;

function saturatedPart(report: Report): HTMLElement[] {
  if (report.saturated.length === 0) return [];
  const rows = report.saturated.map((each) =>
    element(
      "tr",
      { "data-cell": each.cell },
      element("th", { scope: "row" }, element("code", {}, each.cell)),
      element("td", {}, `${String(each.trials)} of ${String(each.of_trials)}`),
      element("td", { class: "number" }, rateText(each.rate_achieved_hz)),
      element("td", { class: "number" }, rateText(each.rate_intended_hz)),
      element(
        "td",
        { class: "number" },
        each.goodput_bytes_per_s === null
          ? ABSENT
          : `${threeDigits(each.goodput_bytes_per_s / MEBIBYTE)} MiB/s`,
      ),
      element("td", { class: "number" }, shareText(each.lost_share)),
      element("td", { class: "number" }, shareText(each.deadline_miss_share)),
      element("td", { class: "number" }, durationText(each.latency_p50_ns)),
    ),
  );
  const names = ["cell", "trials", "rate", "of", "goodput", "lost", "deadlines missed", "p50 of what came"];
  const heads = names.map((head) => element("th", { scope: "col" }, head));
  const table = element(
    "table",
    { id: "saturated" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  const title = "Saturated cells";
  const said =
    "Their sources fell behind the schedule. They are no measurement at the rate that was asked for, and stand in no ranking. Medians over the saturated trials, end to end.";
  return [
    element("h3", {}, title),
    element("p", { class: "quiet" }, said),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, table),
  ];
}

export function failuresSection(report: Report): HTMLElement {
  const failed = report.failures.map((each) =>
    element(
      "li",
      {},
      element("code", {}, each.cell),
      ` trial ${String(each.trial)}: ${each.reasons.join("; ")}`,
      each.log === null
        ? null
        : element(
            "details",
            {},
            element("summary", {}, "what the workers said"),
            element("pre", { tabindex: "0" }, each.log),
          ),
    ),
  );
  const excluded = new Map<string, string[]>();
  for (const { cell, reason } of report.exclusions)
    excluded.set(reason, [...(excluded.get(reason) ?? []), cell]);
  const reasons = [...excluded].map(([reason, cells]) =>
    element(
      "li",
      {},
      reason,
      element("ul", { class: "cells" }, ...cells.map((cell) => element("li", {}, element("code", {}, cell)))),
    ),
  );
  return section(
    "failures",
    "Failed and excluded",
    ...reasonTables(report),
    ...queuePart(report),
    ...preemptionPart(report),
    ...noiseTable(report),
    ...saturatedPart(report),
    element("h3", {}, "Failed trials"),
    failed.length === 0
      ? element("p", { class: "quiet" }, "None.")
      : element("ul", { class: "reasons" }, ...failed),
    element("h3", {}, "Excluded combinations"),
    reasons.length === 0
      ? element("p", { class: "quiet" }, "None.")
      : element("ul", { class: "reasons" }, ...reasons),
  );
}

const SIGNS: Record<string, string> = {
  pass: "✓",
  fail: "✗",
  absent: "–",
  "absent-against-manual": "!",
  "not-run": "·",
};

function findingCell(finding: AbilityVerdict | undefined): HTMLElement {
  const verdict = finding?.verdict ?? "not-run";
  const reason = finding?.reason ?? "";
  const title = reason === "" ? verdict : `${verdict}: ${reason}`;
  const bad = verdict === "fail" || verdict === "absent-against-manual";
  return element(
    "td",
    { class: bad ? "sign bad" : "sign", title, "aria-label": title, "data-verdict": verdict },
    SIGNS[verdict] ?? verdict,
  );
}

/** The matrix (adapter × ability) of the conformance suite, where the campaign's folder has one. */
export function conformanceSection(report: Report): HTMLElement[] {
  if (report.conformance.length === 0) return [];
  const abilities = [
    ...new Set(report.conformance.flatMap((each) => each.findings.map((one) => one.ability))),
  ];
  const heads = ["ability", ...report.conformance.map((each) => each.adapter)].map((head) =>
    element("th", { scope: "col" }, head),
  );
  const rows = abilities.map((ability) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, ability),
      ...report.conformance.map((each) => findingCell(each.findings.find((one) => one.ability === ability))),
    ),
  );
  const reasons = report.conformance.flatMap((each) =>
    each.findings
      .filter((one) => one.verdict !== "pass" && one.verdict !== "not-run")
      .map((one) =>
        element(
          "li",
          {},
          element("code", {}, `${each.adapter} ${one.ability}`),
          ` ${one.verdict}: ${one.reason}`,
        ),
      ),
  );
  const table = element(
    "table",
    { class: "conformance-table" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  return [
    section(
      "conformance",
      "What the adapters do",
      element(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Conformance matrix" },
        table,
      ),
      element(
        "p",
        { class: "quiet" },
        "✓ shown · ✗ failed · – declared absent · ! declared absent, but the manual has it · · not run",
      ),
      element(
        "details",
        {},
        element("summary", {}, "Reasons"),
        element("ul", { class: "reasons" }, ...reasons),
      ),
    ),
  ];
}

function copyButton(text: string): HTMLElement {
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  const say = (word: string): void => {
    button.textContent = word;
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(text).then(
      () => {
        say("Copied");
      },
      () => {
        say("Select and copy by hand");
      },
    );
  });
  return button;
}

/** Which cells held these settings: the values of the factors by which they differ from the adapter's other cells. */
function where(report: Report, settings: Settings): string {
  const held = new Set(settings.cells);
  const adapters = new Set(
    report.settings.filter((each) => each.adapter === settings.adapter).flatMap((each) => each.cells),
  );
  const all = report.cells.filter((cell) => adapters.has(cell.id));
  const mine = all.filter((cell) => held.has(cell.id));
  const parts = report.factors.flatMap(({ name }) => {
    const values = [...new Set(mine.map((cell) => cell.factors[name] ?? ""))];
    const possible = new Set(all.map((cell) => cell.factors[name] ?? ""));
    return values.length === possible.size ? [] : [`${factorLabel(name)} ${values.join(" or ")}`];
  });
  return parts.length === 0 ? `${String(mine.length)} of ${String(all.length)} cells` : parts.join(", ");
}

function differences(settings: Settings): Child {
  const rows = settings.settings
    .filter((each) => each.changed)
    .map((each) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, each.name),
        element("td", {}, each.value),
        element("td", {}, each.default ?? ABSENT),
      ),
    );
  if (rows.length === 0) return null;
  const heads = ["setting", "here", "vendor's default"].map((head) => element("th", { scope: "col" }, head));
  const table = element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Settings that differ" },
    table,
  );
}

function observations(settings: Settings): Child {
  if (settings.observed.length === 0) return null;
  const rows = settings.observed.map((each) =>
    element("tr", {}, element("th", { scope: "row" }, each.name), element("td", {}, each.values.join(", "))),
  );
  const heads = ["observed", "while it ran"].map((head) => element("th", { scope: "col" }, head));
  const table = element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "What was observed" },
    table,
  );
}

function settingsOf(report: Report, settings: Settings): HTMLElement {
  const changed = settings.settings.filter((each) => each.changed).length;
  const paste = settings.paste.map((file) =>
    element(
      "figure",
      {},
      element("figcaption", {}, element("code", {}, file.file), copyButton(file.text)),
      element("pre", { tabindex: "0" }, file.text),
    ),
  );
  const said = [
    where(report, settings),
    `${String(changed)} ${changed === 1 ? "setting differs" : "settings differ"}`,
  ];
  return element(
    "details",
    { class: "settings" },
    element(
      "summary",
      {},
      element("strong", {}, settings.adapter),
      ` ${settings.object} `,
      element("span", { class: "quiet" }, said.join(" · ")),
    ),
    differences(settings),
    observations(settings),
    ...paste,
    element(
      "details",
      {},
      element(
        "summary",
        {},
        `in ${String(settings.cells.length)} ${settings.cells.length === 1 ? "cell" : "cells"}`,
      ),
      element(
        "ul",
        { class: "cells" },
        ...settings.cells.map((cell) => element("li", {}, element("code", {}, cell))),
      ),
    ),
  );
}

/** An adapter without a difference to show; that it described nothing is not the same as that nothing differs. */
function unchanged(report: Report, adapter: string): HTMLElement {
  const own = report.settings.filter((each) => each.adapter === adapter);
  const objects = [...new Set(own.map((each) => each.object))].join(", ");
  const known = own.reduce((sum, each) => sum + each.settings.length, 0);
  const said =
    known === 0
      ? "reported no settings that differ from the vendor's"
      : `${String(known)} settings, all at the vendor's defaults`;
  return element("p", { class: "quiet" }, element("strong", {}, adapter), `: ${said} (${objects}).`);
}

function speaks(settings: Settings): boolean {
  return (
    settings.paste.length > 0 ||
    settings.observed.length > 0 ||
    settings.settings.some((each) => each.changed)
  );
}

export function settingsSection(report: Report): HTMLElement {
  const loud = new Set(report.settings.filter(speaks).map((each) => each.adapter));
  const quiet = new Set(report.settings.map((each) => each.adapter).filter((adapter) => !loud.has(adapter)));
  const parts = report.settings.filter(speaks).map((each) => settingsOf(report, each));
  parts.push(...[...quiet].map((adapter) => unchanged(report, adapter)));
  const none = element("p", { class: "quiet" }, "No adapter described its settings.");
  return section("settings", "Settings to paste", ...(parts.length > 0 ? parts : [none]));
}

function factList(facts: Fact[]): HTMLElement {
  const items = facts.flatMap((fact) => [
    element("dt", {}, fact.name.includes(".") ? fact.name : fact.name.replaceAll("_", " ")),
    element("dd", {}, fact.value ?? "unknown"),
  ]);
  return element("dl", { class: "facts" }, ...items);
}

/** The wake-up latency of each CPU with nothing else to do. */
function floorTable(floor: MachineFloor | null): HTMLElement[] {
  if (floor === null) return [];
  const rows = floor.cores.map((core) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, String(core.cpu)),
      element("td", { class: "number" }, countText(core.n)),
      ...[core.p50_ns, core.p99_ns, core.p999_ns, core.max_ns].map((value) =>
        element("td", { class: "number" }, durationText(value)),
      ),
    ),
  );
  const heads = ["CPU", "wake-ups", "p50", "p99", "p99.9", "max"].map((head) =>
    element("th", { scope: "col", class: head === "CPU" ? "" : "number" }, head),
  );
  const table = element(
    "table",
    { id: "machine-floor" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  const who = floor.policy === "fifo" ? "real-time thread (SCHED_FIFO)" : "thread";
  const said = `How late a ${who} wakes that waits for a timer, measured for ${String(Number(floor.duration_s.toPrecision(3)))} s on each CPU before the first trial. Time stolen by a hypervisor: ${shareText(floor.steal_share)}.`;
  return [
    element("h3", {}, "Wake-up latency"),
    element("p", { class: "quiet" }, said),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Wake-up latency" },
      table,
    ),
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
    ...floorTable(report.machine_floor),
    element("div", { class: "columns" }, ...(parts.length > 0 ? parts : [none])),
  );
}

const METHOD: [string, string][] = [
  [
    "Latency",
    "runs from publish (the data is ready in the sender's buffer and the call to publish begins) to taken (the receiver has the data). End to end, it runs from the first message of a chain until its last reader takes the message.",
  ],
  [
    "Response time",
    "runs from intended (when the schedule said that the message should be sent) to taken. A sender that is late because the last message still held it up can't hide here; send lag (intended → publish) says how late it was. A closed loop such as ping-pong has no schedule, hence no response time.",
  ],
  ["Blocked", "is how long the call to publish held the sender: publish → published."],
  [
    "Clock",
    "is CLOCK_MONOTONIC only, on one machine. Messages carry no time stamps: both sides keep records, joined afterwards by stream and sequence.",
  ],
  [
    "Quantiles",
    "are values that were measured, never interpolated, and are given only where at least 10 messages lie beyond them. Only delivered messages have a latency: look at the lost messages, too.",
  ],
  [
    "The floor",
    "is the fastest bare transport (null, shm, uds, udp or tcp) that carried the same payload with the same placement, dispatch and touch. What a middleware takes beyond it is its own cost.",
  ],
  [
    "Valid",
    "is judged from causes (rate missed, endpoints missing, a worker that died …), never from the latency. Failed trials are kept, counted and listed, but curves and medians leave them out.",
  ],
  [
    "Disturbed",
    "are valid trials during which something else took the machine: other processes, a hypervisor, a quota, heat. It is judged from causes, too. Their figures are included, and say more about the machine than about the middleware.",
  ],
  [
    "Intervals",
    "are for 95 %, from the spread between trials and, within them, a block bootstrap, so that messages of a trial are not treated as independent. They need at least six valid trials. A quantile of latency or response time that has one is that of all valid trials; send lag, blocked, wake, rate and CPU per message have the interval of the median over trials, the share of lost messages has that of a share over trials, and a multiple of the floor one made from those of both parts (the lowest over the highest, and the reverse). There is none for single trials (the control, series), counts, minimum and maximum, threads and memory. A cell that was stopped for its precision has intervals that allow for the looks.",
  ],
  [
    "Long trials",
    "are a check on the bias of short ones: one for each adapter and workload, of a cell drawn at random. The report says whether their p50 and p99 lie within the short trials' intervals.",
  ],
  [
    "CPU per message",
    "is the CPU time of all workers and daemons in the measure phase over the messages delivered. A receiver that polls is fast, and the cost shows here.",
  ],
];

export function methodSection(report: Report): HTMLElement {
  const items = METHOD.flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]);
  const notes = report.notes.map((note) => element("li", {}, note));
  const study = report.campaign.study_text;
  return section(
    "method",
    "How it was measured",
    element("dl", { class: "method" }, ...items),
    notes.length === 0 ? null : element("h3", {}, "What is missing or thinned here"),
    notes.length === 0 ? null : element("ul", { class: "reasons" }, ...notes),
    study === ""
      ? null
      : element(
          "details",
          {},
          element("summary", {}, "the study, as it was run"),
          element(
            "figure",
            {},
            element("figcaption", {}, element("code", {}, "study.yaml"), copyButton(study)),
            element("pre", { tabindex: "0" }, study),
          ),
        ),
  );
}
