// SPDX-License-Identifier: Apache-2.0
// Opens a report in Chromium, uses it as a reader would, and prints what it saw as one JSON object. The judging is done by
// test_report_in_chromium.py. Arguments: the web folder, the report, a comparison, a cell to link to, the browser, a folder
// for the browser's profiles.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [web, report, comparison, linkedCell, executablePath, scratch] = process.argv.slice(2);
const fromWeb = createRequire(join(web, "package.json"));
const { chromium } = fromWeb("playwright-core");
const AXE = fromWeb.resolve("axe-core/axe.min.js");
const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const seen = { requests: [], errors: [], layouts: [], comparisonLayouts: [] };
let profiles = 0;

async function open(width, colorScheme, fragment = "", file = report) {
  const context = await chromium.launchPersistentContext(join(scratch, `profile-${String(profiles++)}`), {
    executablePath,
    headless: true,
    chromiumSandbox: false,
    colorScheme,
    viewport: { width, height: 900 },
    args: FLAGS,
  });
  const page = await context.newPage();
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") seen.errors.push(message.text());
  });
  await page.goto(pathToFileURL(file).href + fragment);
  await page.waitForSelector("#figures tbody tr, #comparison tbody tr, [role=alert]");
  return { context, page };
}

/** What breaks a rule of WCAG, with everything unfolded: the rule, and where. */
async function violationsOf(page) {
  await page.evaluate(() => {
    for (const each of document.querySelectorAll("details")) each.open = true;
  });
  await page.addScriptTag({ path: AXE });
  const { violations } = await page.evaluate((tags) => globalThis.axe.run(document, { runOnly: tags }), WCAG);
  return violations.map((each) => [each.id, ...each.nodes.slice(0, 3).map((node) => node.target.join(" "))]);
}

/** Every row of the table with its shown texts and exact values, by column. */
function rowsOf(page) {
  return page.$$eval("#figures tbody tr", (rows) =>
    rows.map((row) => ({
      cell: row.dataset.cell,
      edge: row.dataset.edge,
      trial: row.dataset.trial === undefined ? null : Number(row.dataset.trial),
      texts: Object.fromEntries(
        [...row.querySelectorAll("td")].map((cell) => [
          cell.dataset.column,
          cell.textContent.replace(cell.querySelector("[data-queue]")?.textContent ?? "", ""),
        ]),
      ),
      values: Object.fromEntries(
        [...row.querySelectorAll("td[data-value]")].map((cell) => [
          cell.dataset.column,
          Number(cell.dataset.value),
        ]),
      ),
      intervals: Object.fromEntries(
        [...row.querySelectorAll("td[data-low]")].map((cell) => [
          cell.dataset.column,
          {
            low: Number(cell.dataset.low),
            high: Number(cell.dataset.high),
            text: cell.querySelector(".interval").textContent,
          },
        ]),
      ),
      wanting: Object.fromEntries(
        [...row.querySelectorAll(".wanting")].map((each) => [
          each.closest("td").dataset.column,
          each.textContent,
        ]),
      ),
    })),
  );
}

/** The footnotes beside figures: of which cell, what stands there, and where each leads. */
function marksOf(page, rows) {
  return page.$$eval(`${rows} .marks`, (all) =>
    all.map((marks) => ({
      cell: marks.closest("tr").dataset.cell ?? null,
      adapter: marks.closest("tr").dataset.adapter ?? null,
      notes: [...marks.querySelectorAll("a")].map((link) => link.textContent),
      targets: [...marks.querySelectorAll("a")].map(
        (link) => document.getElementById(link.hash.slice(1))?.textContent ?? null,
      ),
    })),
  );
}

function linksOf(page) {
  return page.$$eval("*", (all) =>
    all.flatMap((node) =>
      ["src", "href", "action", "data", "srcset", "poster"]
        .map((name) => node.getAttribute(name))
        .filter((each) => each !== null),
    ),
  );
}

async function useIt() {
  const { context, page } = await open(1400, "light");
  seen.title = await page.title();
  seen.head = await page.textContent("header");
  seen.sections = await page.$$eval("section", (all) => all.map((each) => each.id));
  seen.links = await linksOf(page);
  seen.glance = await page.$$eval("#glance tbody tr", (rows) =>
    rows.map((row) => ({
      adapter: row.dataset.adapter,
      settings: row.dataset.settings,
      values: [...row.querySelectorAll("td.number")].map((cell) =>
        cell.dataset.value === undefined ? null : Number(cell.dataset.value),
      ),
      intervals: [...row.querySelectorAll(".interval[data-figure]")].map((each) => [
        each.dataset.figure,
        each.textContent,
      ]),
    })),
  );
  seen.marks = { table: await marksOf(page, "#figures"), glance: await marksOf(page, "#glance") };
  await page.click("#figures .marks a");
  seen.markLeads = await page.evaluate(() => ({ focused: document.activeElement?.id, hash: location.hash }));
  seen.charts = await page.$$eval(".chart", (all) => all.map((each) => each.getAttribute("aria-label")));
  seen.summary = await rowsOf(page);

  await page.click("#sort-latency_p50_ns");
  seen.ascending = await rowsOf(page);
  seen.ariaSort = await page.getAttribute("th[data-column=latency_p50_ns]", "aria-sort");
  await page.click("#sort-latency_p50_ns");
  seen.descending = await rowsOf(page);
  await page.evaluate(() => (window.chartBefore = document.querySelector("#payload canvas")));
  await page.fill("#table-filter", "cyclonedds 64KB -fastdds");
  seen.chartStays = await page.evaluate(
    () => window.chartBefore === document.querySelector("#payload canvas"),
  );
  seen.filtered = await rowsOf(page);
  seen.fragment = await page.evaluate(() => location.hash);
  await page.reload();
  await page.waitForSelector("#figures tbody tr");
  seen.reloaded = await rowsOf(page);

  await page.fill("#table-filter", "");
  await page.click("#sort-latency_p50_ns");
  await page.check("#check-all-edges");
  await page.check("#check-each-trial");
  seen.trials = await rowsOf(page);
  await page.check("#check-failed-only");
  seen.failed = await rowsOf(page);
  seen.failures = await page.textContent("#failures");
  seen.settings = await page.textContent("#settings");
  seen.environment = await page.textContent("#environment");

  seen.payloadTable = await page.$$eval("#payload .numbers tbody tr", (rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent)),
  );
  seen.slowestTable = await page.$$eval("#series .numbers:first-of-type tbody tr", (rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent)),
  );
  await page.focus("#payload .chart");
  await page.keyboard.press("ArrowRight");
  seen.tip = await page.textContent("#payload .tip");
  seen.lead = await page.textContent("#payload .lead");
  seen.payloadNote = await page.textContent("#payload .note:not([data-queues])");
  seen.percentilesNote = await page.textContent("#percentiles .note");
  seen.longSaid = await page.textContent("#control [data-long=said]");
  seen.longRemarks = await page.$$eval("#control [data-long=remarks] li", (all) =>
    all.map((each) => each.textContent),
  );
  seen.longTrials = await tableOf(page, "#control .numbers:last-of-type tbody tr");
  seen.control = await tableOf(page, "#control .numbers:first-of-type tbody tr");
  seen.percentiles = await tableOf(page, "#percentiles .numbers tbody tr");
  seen.cost = await tableOf(page, "#cost .numbers tbody tr");
  seen.conformance = await tableOf(page, ".conformance-table tbody tr");
  seen.nodeCosts = await page.$$eval("#node-costs-table tbody tr", (rows) =>
    rows.map((row) => ({ cell: row.dataset.cell, texts: [...row.children].map((each) => each.textContent) })),
  );
  seen.nodeCostHeads = await page.$$eval("#node-costs-table thead tr:last-child th", (heads) =>
    heads.map((each) => each.textContent),
  );
  seen.nodeCostsText = await page.$eval("#node-costs", (section) => section.textContent);
  seen.machineFloor = await tableOf(page, "#machine-floor tbody tr");
  seen.withoutNoise = await page.$$eval("#without-noise tbody tr", (rows) =>
    rows.map((row) => ({
      cell: row.dataset.cell,
      figure: row.dataset.figure,
      values: [...row.querySelectorAll("td[data-value]")].map((cell) => Number(cell.dataset.value)),
      texts: [...row.children].map((cell) => cell.textContent),
    })),
  );
  seen.reasons = await page.$$eval("[data-reason]", (rows) =>
    rows.map((row) => [
      row.dataset.reason,
      ...[...row.querySelectorAll("td")].map((cell) => cell.textContent),
    ]),
  );
  seen.loads = await cellTableOf(page, "#interference-table");
  seen.queueMarks = await page.$$eval("[data-queue]", (all) =>
    all.map((each) => [each.closest("section").id, each.dataset.queue, each.textContent]),
  );
  seen.queueNotes = await page.$$eval("[data-queues]", (all) =>
    all.map((each) => [each.closest("section").id, each.textContent]),
  );
  seen.deadlines = await cellTableOf(page, "#deadline-table");
  seen.lostTails = await cellTableOf(page, "#lost-table");
  await page.selectOption("#choice-edge", "relay-1→sink");
  seen.deadlines.push(...(await cellTableOf(page, "#deadline-table")));
  seen.lostTails.push(...(await cellTableOf(page, "#lost-table")));
  await context.close();
}

/** Every row of a table of whole cells: exact values as they stand in the page, and texts, by column. */
function cellTableOf(page, table) {
  return page.$$eval(`${table} tbody tr`, (rows) =>
    rows.map((row) => {
      const cells = [...row.querySelectorAll("td[data-column]")];
      const of = (take) => Object.fromEntries(cells.map((cell) => [cell.dataset.column, take(cell)]));
      return {
        cell: row.dataset.cell,
        edge: row.dataset.edge,
        values: of((cell) => cell.dataset.value ?? null),
        texts: of((cell) => cell.firstChild.textContent),
        below: of((cell) => cell.querySelector(".interval")?.textContent ?? null),
        low: of((cell) => cell.dataset.low ?? null),
        high: of((cell) => cell.dataset.high ?? null),
      };
    }),
  );
}

function tableOf(page, rows) {
  return page.$$eval(rows, (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
}

function chosen(page) {
  return page.evaluate(() => ({
    cell: document.getElementById("choice-cell").value,
    reliability: document.getElementById("choice-reliability").value,
    marked: [...document.querySelectorAll("#figures tr[aria-current]")].map((row) => row.dataset.cell),
    scrolled: window.scrollY > 200,
  }));
}

/** A link that names a cell, and the one that the button gives. */
async function followLinks() {
  const { context, page } = await open(1400, "light", `#cell=${encodeURIComponent(linkedCell)}`);
  seen.linked = await chosen(page);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.click("#series .copy");
  await page.waitForFunction(
    () =>
      document.querySelector("#series .link").textContent === "Copied" ||
      document.querySelector("#series .link input"),
  );
  seen.copied = await page.evaluate(
    () => document.querySelector("#series .link input")?.value ?? navigator.clipboard.readText(),
  );
  await context.close();
  const again = await open(1400, "light", new URL(seen.copied).hash);
  seen.linkedAgain = await chosen(again.page);
  await again.context.close();
}

/** What paper gets: everything unfolded, nothing wider than it. */
async function printIt() {
  const { context, page } = await open(1400, "dark");
  seen.print = await page.evaluate(() => {
    const folded = () => document.querySelectorAll("details:not([open])").length;
    const before = folded();
    window.dispatchEvent(new Event("beforeprint"));
    const on = {
      folded: folded(),
      widest: Math.max(...[...document.querySelectorAll("canvas")].map((canvas) => canvas.clientWidth)),
      theme: document.documentElement.dataset.theme,
    };
    window.dispatchEvent(new Event("afterprint"));
    return {
      ...on,
      foldedBefore: before,
      foldedAfter: folded(),
      themeAfter: document.documentElement.dataset.theme,
    };
  });
  await context.close();
}

async function compareIt(width, theme) {
  const { context, page } = await open(width, theme, "", comparison);
  seen.comparisonTitle = await page.textContent("h1");
  seen.comparisonText = await page.textContent("main");
  seen.comparisonLinks = await linksOf(page);
  seen.comparison = await page.$$eval("#comparison tbody tr", (rows) =>
    rows.map((row) => ({
      cell: row.dataset.cell,
      own: [...row.querySelectorAll("td[data-own-low]")].map((cell) =>
        [cell.dataset.ownLow, cell.dataset.ownHigh].map(Number),
      ),
      ratios: [...row.querySelectorAll("td[data-ratio]")].map((cell) =>
        [cell.dataset.ratio, cell.dataset.low, cell.dataset.high].map(Number),
      ),
      texts: [...row.children].map((cell) => cell.textContent),
    })),
  );
  seen.comparisonMarks = await marksOf(page, "#comparison");
  seen.forest = await page.$$eval(".forest g title", (titles) => titles.map((each) => each.textContent));
  seen.comparisonLayouts.push({
    overflow: await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth),
    theme: await page.evaluate(() => document.documentElement.dataset.theme),
    wanted: theme,
    width,
    violations: theme === "dark" ? await violationsOf(page) : [],
  });
  await context.close();
}

async function lookAtIt(width, theme) {
  const { context, page } = await open(width, theme);
  const layout = await page.evaluate(() => ({
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    theme: document.documentElement.dataset.theme,
    ground: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    blank: [...document.querySelectorAll("canvas")].filter((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.every((value) => value === 0);
    }).length,
    canvases: document.querySelectorAll("canvas").length,
  }));
  // Each width and each colour once: looking at a whole page takes seconds.
  const judged = (width === 1400) === (theme === "light");
  seen.layouts.push({ width, wanted: theme, ...layout, violations: judged ? await violationsOf(page) : [] });
  await context.close();
}

await useIt();
await followLinks();
await printIt();
for (const width of [1400, 390]) {
  for (const theme of ["light", "dark"]) await lookAtIt(width, theme);
}
await compareIt(1400, "light");
await compareIt(390, "dark");
process.stdout.write(JSON.stringify(seen));
