// SPDX-License-Identifier: Apache-2.0
// Opens a report in Chromium, goes through the time lines of single messages as a reader with a keyboard would, and prints
// what it saw as one JSON object. Arguments: the web folder, the report, the browser, a folder for the browser's profiles.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [web, report, executablePath, scratch] = process.argv.slice(2);
const { chromium } = createRequire(join(web, "package.json"))("playwright-core");
const seen = { errors: [], overflow: {} };

for (const width of [1280, 400]) {
  const context = await chromium.launchPersistentContext(join(scratch, `profile-${String(width)}`), {
    executablePath,
    headless: true,
    chromiumSandbox: false,
    viewport: { width, height: 900 },
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => seen.errors.push(error.message));
  await page.goto(pathToFileURL(report).href);
  await page.waitForSelector("#ways .way-line");
  seen.overflow[width] = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  seen.cells = await page.$$eval("#choice-cell-seen option", (all) => all.map((each) => each.value));
  seen.messages = await page.$$eval(".way-message", (all) =>
    all.map((each) => ({
      chosen: each.dataset.chosen,
      latency: Number(each.dataset.latency),
      label: each.querySelector(".way-line").getAttribute("aria-label"),
      bars: each.querySelectorAll("[data-stay]").length,
      widths: [...each.querySelectorAll("[data-stay]")].reduce(
        (sum, bar) => sum + Number.parseFloat(bar.getAttribute("width")),
        0,
      ),
      rows: [...each.querySelectorAll(".way-row")].map((row) => row.textContent),
      table: [...each.querySelector("details tbody").children].map((row) =>
        [...row.children].map((cell) => cell.textContent),
      ),
      tables: [...each.querySelectorAll("details")].map((table) => table.querySelectorAll("tbody tr").length),
      calls: each.querySelectorAll(".way-call").length,
      states: [...each.querySelectorAll(".way-state")].map((box) =>
        Number.parseFloat(box.getAttribute("width")),
      ),
    })),
  );
  const bars = (of) =>
    page.$$eval(of, (all) =>
      all.map((each) => ({
        cell: each.dataset.cell,
        said: each.querySelector("p").textContent,
        layers: Object.fromEntries(
          [...each.querySelectorAll("[data-layer]")].map((box) => [
            box.dataset.layer,
            Number.parseFloat(box.getAttribute("width")),
          ]),
        ),
      })),
    );
  seen.stacked = await bars("#layers dd");
  await page.selectOption("#choice-stacked", "categories");
  seen.categories = await bars("#layers dd");
  await page.selectOption("#choice-stacked", "breakdown");
  seen.breakdown = await bars("#layers dd");
  await page.focus(".way-line");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  seen.said = await page.textContent(".way-said");
  await page.keyboard.press("ArrowLeft");
  seen.saidBefore = await page.textContent(".way-said");
  await page.hover(".way-state.waiting");
  seen.pointed = await page.textContent(".way-said");
  await page.selectOption("#choice-cell-seen", seen.cells.at(-1));
  seen.plain = await page.$$eval(".way-message:first-of-type tbody th", (all) =>
    all.map((each) => each.textContent),
  );
  await context.close();
}
process.stdout.write(JSON.stringify(seen));
