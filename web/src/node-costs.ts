// SPDX-License-Identifier: Apache-2.0
// What a node costs, a row for each adapter; threads and libraries by name on demand.
import type { NodeCost, NodeCosts } from "./cell-data";
import { element, scrolled, section } from "./dom";
import { ABSENT, bytesText, durationText, numberText, shareText } from "./format";

interface Column {
  group: string;
  head: string;
  value: (row: NodeCost) => number | null;
  text: (value: number | null) => string;
}

const LIBRARIES = ["middleware", "abstraction", "other"];

function librariesOf(row: NodeCost, group: string): number | null {
  return row.libraries.find((each) => each.group === group)?.mapped_bytes ?? null;
}

function socketsOf(row: NodeCost): number | null {
  const kinds = [
    row.tcp_sockets_per_node,
    row.udp_sockets_per_node,
    row.unix_sockets_per_node,
    row.other_sockets_per_node,
  ];
  return kinds.reduce((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}

function energyText(nanojoules: number | null): string {
  return nanojoules === null ? ABSENT : `${numberText(nanojoules / 1000)} µJ`;
}

const ofNode = (head: string, value: Column["value"], text = numberText): Column => ({
  group: "per node",
  head,
  value,
  text,
});
const ofMessage = (head: string, value: Column["value"], text = numberText): Column => ({
  group: "per message",
  head,
  value,
  text,
});
const ofStartUp = (head: string, value: Column["value"]): Column => ({
  group: "start-up",
  head,
  value,
  text: durationText,
});

const COLUMNS: Column[] = [
  ofNode("threads", (row) => row.threads_per_node),
  ofNode("RSS", (row) => row.rss_per_node_bytes, bytesText),
  ofNode("PSS", (row) => row.pss_per_node_bytes, bytesText),
  ofNode("USS", (row) => row.uss_per_node_bytes, bytesText),
  ofNode("descriptors", (row) => row.descriptors_per_node),
  ofNode("sockets", socketsOf),
  ...LIBRARIES.map((group): Column => ({
    group: "libraries, each once",
    head: group,
    value: (row) => librariesOf(row, group),
    text: bytesText,
  })),
  ofMessage("switches", (row) => row.switches_per_message),
  ofMessage("page faults", (row) => row.faults_per_message),
  ofMessage("CPU", (row) => row.cpu_per_message_ns, durationText),
  ofMessage("of it system", (row) => row.system_share, shareText),
  ofMessage("network", (row) => row.network_bytes_per_message, bytesText),
  ofMessage("cycles", (row) => row.cycles_per_message),
  ofMessage("instructions", (row) => row.instructions_per_message),
  ofMessage("cache misses", (row) => row.cache_misses_per_message),
  ofMessage("TLB misses", (row) => row.tlb_misses_per_message),
  ofMessage("energy", (row) => row.energy_per_message_nj, energyText),
  ofStartUp("up", (row) => row.startup_process_ns),
  ofStartUp("first created", (row) => row.startup_participant_first_ns),
  ofStartUp("all created", (row) => row.startup_participant_ns),
  ofStartUp("first matched", (row) => row.startup_matched_first_ns),
  ofStartUp("all matched", (row) => row.startup_matched_ns),
  ofStartUp("first message", (row) => row.startup_first_message_ns),
];

function named(row: NodeCost): string {
  return row.settings === "" ? row.adapter : `${row.adapter}, ${row.settings}`;
}

function tableOf(found: NodeCosts): HTMLTableElement {
  const shown = COLUMNS.filter((column) => found.rows.some((row) => column.value(row) !== null));
  const isFirst = (place: number): boolean => shown[place]?.group !== shown[place - 1]?.group;
  const groups = [...new Set(shown.map((column) => column.group))].map((group) => {
    const columns = shown.filter((column) => column.group === group).length;
    return element("th", { scope: "colgroup", class: "first", colspan: String(columns) }, group);
  });
  const heads = shown.map((column, place) =>
    element("th", { scope: "col", class: isFirst(place) ? "first" : "" }, column.head),
  );
  const rows = found.rows.map((row) =>
    element(
      "tr",
      { "data-cell": row.cell },
      element("th", { scope: "row", title: row.cell }, named(row)),
      ...shown.map((column, place) => {
        const value = column.value(row);
        const exact = value === null ? {} : { "data-value": String(value) };
        const kind = isFirst(place) ? "number first" : "number";
        return element("td", { class: kind, ...exact }, column.text(value));
      }),
    ),
  );
  const head = element(
    "thead",
    {},
    element("tr", {}, element("th", { scope: "col", rowspan: "2" }, "adapter"), ...groups),
    element("tr", {}, ...heads),
  );
  return element("table", { id: "node-costs-table" }, head, element("tbody", {}, ...rows));
}

function namesOf(row: NodeCost): HTMLElement {
  const threads = Object.entries(row.thread_names).map(([name, count]) =>
    count === 1 ? name : `${name} × ${String(count)}`,
  );
  const libraries = row.libraries.map((each) => {
    const sizes = `${bytesText(each.mapped_bytes)}, ${bytesText(each.resident_bytes)} in memory`;
    return element("p", { class: "quiet" }, `${each.group} (${sizes}): ${each.files.join(", ")}`);
  });
  return element(
    "details",
    { "data-cell": row.cell },
    element("summary", {}, `${named(row)}: threads and libraries by name`),
    element("p", { class: "quiet" }, `threads of ${String(row.processes)} processes: ${threads.join(", ")}`),
    ...libraries,
  );
}

function reasonsOf(found: NodeCosts): HTMLElement[] {
  const figures = new Map<string, string[]>();
  for (const each of found.not_available)
    figures.set(each.why, [...(figures.get(each.why) ?? []), each.figure]);
  return [...figures].map(([why, names]) =>
    element("p", { class: "quiet" }, `Not available: ${names.join(", ")}: ${why}`),
  );
}

/** Null if no trial was examined. */
export function nodeCostsSection(found: NodeCosts | null): HTMLElement | null {
  if (found === null) return null;
  const which = found.all_cells
    ? ""
    : " Of each adapter the cell of the smallest payload and lowest rate is shown.";
  const said =
    "Medians over the valid trials. What is counted per node is that of all workers and daemons, over " +
    "the number of nodes. A message counts for each reader that took it. Libraries are sizes in the " +
    `address space. Start-up counts from the start of the workers.${which}`;
  return section(
    "node-costs",
    "What a node costs",
    element("p", { class: "quiet" }, said),
    scrolled("What a node costs", tableOf(found)),
    ...reasonsOf(found),
    ...found.rows.map(namesOf),
  );
}
