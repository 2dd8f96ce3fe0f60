// SPDX-License-Identifier: Apache-2.0
// Colours of layers: one hue for each part of the way, paler for what belongs to it, so that sending, the kernel, receiving,
// waking and taking are told apart at a glance. What is unattributed is an empty box.

import { isDark } from "./palette";

interface Hue {
  light: string;
  dark: string;
}

const SENDING: Hue = { light: "#0067a8", dark: "#5cb3f0" };
const KERNEL: Hue = { light: "#c44f00", dark: "#ff9455" };
const RECEIVING: Hue = { light: "#007a5a", dark: "#3ccb9c" };
const WAKING: Hue = { light: "#9a3f7d", dark: "#e59ac8" };
const TAKING: Hue = { light: "#8a6100", dark: "#e8b93e" };
const NODE: Hue = { light: "#5b5bd0", dark: "#a9a9ff" };
const OURS: Hue = { light: "#767d87", dark: "#8b93a0" };

/** In the order in which a message goes through them. */
const LAYERS: Record<string, [Hue, number]> = {
  benchmark: [OURS, 0.8],
  serialise: [SENDING, 0.45],
  send_path: [SENDING, 1],
  send_hand_over: [SENDING, 0.25],
  send: [SENDING, 0.7],
  communication: [SENDING, 1],
  transport: [KERNEL, 1],
  receive: [RECEIVING, 0.55],
  receiving_thread: [RECEIVING, 1],
  wake: [WAKING, 1],
  notify: [WAKING, 0.5],
  take: [TAKING, 1],
  deserialise: [TAKING, 0.5],
  computation: [NODE, 1],
  idle: [NODE, 0.25],
};

export const UNATTRIBUTED = "unattributed";

export interface LayerLook {
  colour: string;
  opacity: number;
}

/** Null for what is unattributed, or unknown to this page. */
export function layerLook(layer: string): LayerLook | null {
  const known = LAYERS[layer];
  if (known === undefined) return null;
  return { colour: isDark() ? known[0].dark : known[0].light, opacity: known[1] };
}

/** Layers in the order of the way; what is unattributed comes last. */
export function inOrder(layers: Iterable<string>): string[] {
  const order = Object.keys(LAYERS);
  const place = (layer: string): number => (order.includes(layer) ? order.indexOf(layer) : order.length);
  return [...new Set(layers)].sort((a, b) => place(a) - place(b));
}

/** `send_path` as `send path`. */
export function layerName(layer: string): string {
  return layer.replaceAll("_", " ");
}
