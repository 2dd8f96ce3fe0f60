// SPDX-License-Identifier: Apache-2.0
// Creates elements. Text is only inserted as text nodes, so nothing in a campaign is ever parsed as markup.

export type Child = Node | string | null;
type Attributes = Record<string, string | boolean | EventListener>;

/** Creates an element with attributes (`onclick` and the like take a function) and children. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** The parts of a sentence: text between backticks is code. An odd backtick stays as it is. */
export function codeParts(text: string): { code: boolean; text: string }[] {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [{ code: false, text }];
  return parts
    .map((part, place) => ({ code: place % 2 === 1, text: part }))
    .filter((part) => part.text !== "");
}

/** A sentence with its code marked up. */
export function sentence(text: string): Child[] {
  return codeParts(text).map((part) => (part.code ? element("code", {}, part.text) : part.text));
}

/** A titled part of the page. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return element(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title),
    ...children,
  );
}

function slug(label: string): string {
  return label.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}

export interface Option {
  value: string;
  label: string;
}

/** A labelled drop-down list. */
export function choice(
  label: string,
  options: Option[],
  selected: string,
  onChoice: (value: string) => void,
): HTMLLabelElement {
  const select = element("select", { id: `choice-${slug(label)}` });
  for (const option of options) {
    select.append(
      element("option", { value: option.value, selected: option.value === selected }, option.label),
    );
  }
  select.addEventListener("change", () => {
    onChoice(select.value);
  });
  return element("label", { class: "choice" }, element("span", {}, label), select);
}

/**
 * Copies text that is created on demand; if the browser forbids copying, shows the text so that it can be
 * copied by hand.
 */
export function linkButton(label: string, text: () => string): HTMLElement {
  const button = element("button", { type: "button", class: "copy" }, label);
  const frame = element("span", { class: "link" }, button);
  button.addEventListener("click", () => {
    const copied = text();
    navigator.clipboard.writeText(copied).then(
      () => {
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = label), 1500);
      },
      () => {
        const field = element("input", { type: "text", readonly: true, value: copied, "aria-label": label });
        frame.replaceChildren(field);
        field.select();
      },
    );
  });
  return frame;
}

/** Text of a file with a button that copies it. */
export function copyable(file: string, text: string): HTMLElement {
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
  const caption = element("figcaption", {}, element("code", {}, file), button);
  return element("figure", {}, caption, element("pre", { tabindex: "0" }, text));
}

/** A labelled check box. */
export function check(
  label: string,
  checked: boolean,
  onChange: (checked: boolean) => void,
): HTMLLabelElement {
  const input = element("input", { id: `check-${slug(label)}`, type: "checkbox", checked });
  input.addEventListener("change", () => {
    onChange(input.checked);
  });
  return element("label", { class: "check" }, input, label);
}

/** A table below one row of headers; a header that is more than text is passed as an element. */
export function headedTable(
  attributes: Attributes,
  heads: (string | HTMLTableCellElement)[],
  rows: HTMLElement[],
): HTMLTableElement {
  const cells = heads.map((head) =>
    typeof head === "string" ? element("th", { scope: "col" }, head) : head,
  );
  return element(
    "table",
    attributes,
    element("thead", {}, element("tr", {}, ...cells)),
    element("tbody", {}, ...rows),
  );
}

/** The header of a row about a cell of the campaign. */
export function cellHead(cell: string): HTMLTableCellElement {
  return element("th", { scope: "row" }, element("code", {}, cell));
}

export function numberCell(text: string): HTMLTableCellElement {
  return element("td", { class: "number" }, text);
}

/** A frame that scrolls, also by keys, if a table is wider than the page. */
export function scrolled(label: string, table: HTMLTableElement): HTMLElement {
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** The ids of cells, one per line. */
export function cellList(cells: string[]): HTMLElement {
  const items = cells.map((cell) => element("li", {}, element("code", {}, cell)));
  return element("ul", { class: "cells" }, ...items);
}

/** A chart's numbers as text, folded. The first column is the row header. */
export function numbers(title: string, heads: string[], rows: string[][]): HTMLElement {
  const filled = rows.map(([name, ...values]) => {
    const head = element("th", { scope: "row" }, name ?? "");
    return element("tr", {}, head, ...values.map((text) => element("td", {}, text)));
  });
  return element(
    "details",
    { class: "numbers" },
    element("summary", {}, `${title} as a table`),
    scrolled(title, headedTable({}, heads, filled)),
  );
}
