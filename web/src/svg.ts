// SPDX-License-Identifier: Apache-2.0
// Creates parts of an SVG drawing.

/** SVG's namespace as the browser knows it: written out here, every report would contain a URL. */
function svgSpace(): string {
  const template = document.createElement("template");
  // eslint-disable-next-line no-restricted-properties -- a constant
  template.innerHTML = "<svg></svg>";
  return template.content.firstElementChild?.namespaceURI ?? "";
}

export function shape(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS(svgSpace(), tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  return made;
}
