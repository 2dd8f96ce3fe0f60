// SPDX-License-Identifier: Apache-2.0
// Colours and markers of adapters. The hues are Okabe and Ito's, which can be distinguished with every common
// colour vision, made darker or lighter for contrast on each background. Each line also has its own marker,
// so that colour is not needed.

export type Marker = "circle" | "square" | "triangle" | "diamond" | "down" | "plus" | "cross" | "star";

export interface Look {
  colour: string;
  marker: Marker;
  dash: number[];
}

export interface Theme {
  ink: string;
  muted: string;
  line: string;
  ground: string;
  floor: string;
  alarm: string;
  accent: string;
}

const LIGHT_HUES = ["#0067a8", "#c44f00", "#007a5a", "#9a3f7d", "#8a6100", "#1f86b8", "#5b5bd0", "#7a4b2a"];
const DARK_HUES = ["#5cb3f0", "#ff9455", "#3ccb9c", "#e59ac8", "#e8b93e", "#8fd3f7", "#a9a9ff", "#d0a184"];
const LIGHT_GREYS = ["#5f6670", "#767d87", "#4a5059", "#868d97", "#6b727c"];
const DARK_GREYS = ["#a4acb8", "#8b93a0", "#bcc3cd", "#7f8793", "#98a0ac"];
const MARKERS: Marker[] = ["circle", "square", "triangle", "diamond", "down", "plus", "cross", "star"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3]];

export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

export function theme(): Theme {
  return isDark()
    ? {
        ink: "#e6e8eb",
        muted: "#9aa3ae",
        line: "#2c323a",
        ground: "#14171b",
        floor: "#262c34",
        alarm: "#ff7b6b",
        accent: "#5cb3f0",
      }
    : {
        ink: "#1b1f24",
        muted: "#59616b",
        line: "#e3e6ea",
        ground: "#ffffff",
        floor: "#eceff2",
        alarm: "#b3261e",
        accent: "#0067a8",
      };
}

/** Middleware in hues, bare transports in dashed greys; in the order in which the study names them. */
export function looks(adapters: string[], bare: Set<string>): Map<string, Look> {
  const made = new Map<string, Look>();
  let coloured = 0;
  let grey = 0;
  for (const adapter of adapters) {
    made.set(adapter, bare.has(adapter) ? bareLook(grey++) : lineLook(coloured++));
  }
  return made;
}

function bareLook(place: number): Look {
  const greys = isDark() ? DARK_GREYS : LIGHT_GREYS;
  return {
    colour: greys[place % greys.length] ?? "#888888",
    marker: MARKERS[place % MARKERS.length] ?? "circle",
    dash: DASHES[place % DASHES.length] ?? [],
  };
}

/** How many lines a chart of one adapter can distinguish. */
export const LINES = LIGHT_HUES.length * 2;

/** The look of a line that is not an adapter, by its index. */
export function lineLook(place: number): Look {
  const hues = isDark() ? DARK_HUES : LIGHT_HUES;
  return {
    colour: hues[place % hues.length] ?? "#888888",
    marker: MARKERS[place % MARKERS.length] ?? "circle",
    dash: place >= hues.length ? [6, 3] : [],
  };
}

/** In radii around the centre. */
const CORNERS: Partial<Record<Marker, [number, number][]>> = {
  square: [
    [-0.88, -0.88],
    [0.88, -0.88],
    [0.88, 0.88],
    [-0.88, 0.88],
  ],
  triangle: [
    [0, -1.15],
    [1.05, 0.75],
    [-1.05, 0.75],
  ],
  down: [
    [0, 1.15],
    [1.05, -0.75],
    [-1.05, -0.75],
  ],
  diamond: [
    [0, -1.25],
    [1.1, 0],
    [0, 1.25],
    [-1.1, 0],
  ],
  star: [
    [0, -1.3],
    [0.4, -0.4],
    [1.3, 0],
    [0.4, 0.4],
    [0, 1.3],
    [-0.4, 0.4],
    [-1.3, 0],
    [-0.4, -0.4],
  ],
};

/** Where a marker's two strokes end, from the centre, and mirrored on the other side. */
const PLUS: [number, number][] = [
  [1.1, 0],
  [0, 1.1],
];
const CROSS: [number, number][] = [
  [0.9, 0.9],
  [0.9, -0.9],
];

/** Draws a marker of radius `r` around (x, y), in the context's current colours. */
export function drawMarker(
  context: CanvasRenderingContext2D,
  marker: Marker,
  x: number,
  y: number,
  r: number,
): void {
  const corners = CORNERS[marker];
  context.beginPath();
  if (corners !== undefined) {
    for (const [dx, dy] of corners) context.lineTo(x + dx * r, y + dy * r);
    context.closePath();
    context.fill();
  } else if (marker === "circle") {
    context.arc(x, y, r, 0, 2 * Math.PI);
    context.fill();
  } else {
    for (const [dx, dy] of marker === "plus" ? PLUS : CROSS) {
      context.moveTo(x - dx * r, y - dy * r);
      context.lineTo(x + dx * r, y + dy * r);
    }
    context.lineWidth = Math.max(1.5, r * 0.55);
    context.stroke();
  }
}
