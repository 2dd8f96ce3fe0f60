// SPDX-License-Identifier: Apache-2.0
import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "dist"] },
  js.configs.recommended,
  ...tseslint.configs.strict,
  ...tseslint.configs.stylistic,
  {
    files: ["src/**/*.ts"],
    rules: {
      "max-lines": ["error", 500],
      "max-lines-per-function": ["error", 70],
      "no-nested-ternary": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
      // Banned: what turns text of a campaign into code or markup, and what a page opened from a file can't have.
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Text may contain markup: use textContent or append." },
        { property: "outerHTML", message: "Text may contain markup: use replaceWith." },
        { property: "insertAdjacentHTML", message: "Text may contain markup: use append." },
        { object: "document", property: "write", message: "Text may contain markup: use append." },
      ],
      "no-restricted-globals": [
        "error",
        { name: "fetch", message: "The page is one file that works without a network." },
        { name: "XMLHttpRequest", message: "The page is one file that works without a network." },
        { name: "localStorage", message: "All pages opened from files share it." },
      ],
    },
  },
);
