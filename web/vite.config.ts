// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const bundle = resolve(import.meta.dirname, "../lagometer/report/bundle");

/** Puts the one script and the one style sheet into the page, so that the report is a single file. */
function singleFile(): Plugin {
  return {
    name: "single-file",
    enforce: "post",
    generateBundle(_options, output) {
      const page = output["index.html"];
      if (page?.type !== "asset") throw new Error("index.html is missing from the build");
      let text = String(page.source);
      for (const [name, part] of Object.entries(output)) {
        if (part.type === "chunk") {
          const code = part.code.replaceAll("</script", "<\\/script");
          const tag = new RegExp(`<script[^>]*src="[^"]*${part.fileName}"[^>]*></script>`);
          text = text.replace(tag, "");
          // At the end of the body: the data and the place to draw in come first.
          text = text.replace("</body>", () => `<script type="module">${code}</script>\n  </body>`);
        } else if (name.endsWith(".css")) {
          const tag = new RegExp(`<link[^>]*href="[^"]*${part.fileName}"[^>]*>`);
          text = text.replace(tag, () => `<style>${String(part.source)}</style>`);
        } else continue;
        Reflect.deleteProperty(output, name);
      }
      if (/<(script|link)[^>]+(src|href)="(?!data:)/.test(text))
        throw new Error("a part was not put into the page");
      page.source = text;
    },
    closeBundle() {
      mkdirSync(bundle, { recursive: true });
      renameSync(resolve(bundle, "index.html"), resolve(bundle, "page.html"));
      rmSync(resolve(bundle, "assets"), { recursive: true, force: true });
    },
  };
}

export default defineConfig({
  plugins: [singleFile()],
  build: {
    outDir: bundle,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1_000_000,
  },
});
