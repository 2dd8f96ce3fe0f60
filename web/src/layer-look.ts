// SPDX-License-Identifier: Apache-2.0
// Colours of layers: one hue for each part of a message's path, with paler shades for its sublayers, so that
// sending, the kernel, receiving, waking and taking can be told apart at a glance. Unattributed time is an
// empty box.

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
const ROS2: Hue = { light: "#7a4a22", dark: "#c79a6b" };
const OURS: Hue = { light: "#767d87", dark: "#8b93a0" };

/** In the order in which a message passes through them. */
const LAYERS: Record<string, [Hue, number]> = {
  benchmark: [OURS, 0.8],
  rclcpp_publish: [ROS2, 1],
  rcl_publish: [ROS2, 0.7],
  rmw_publish: [ROS2, 0.45],
  serialise: [SENDING, 0.45],
  send_path: [SENDING, 1],
  send_hand_over: [SENDING, 0.25],
  send: [SENDING, 0.7],
  communication: [SENDING, 1],
  transport: [KERNEL, 1],
  unseen_transport: [KERNEL, 0.6],
  receive: [RECEIVING, 0.55],
  receiving_thread: [RECEIVING, 1],
  receive_hand_over: [RECEIVING, 0.3],
  wake: [WAKING, 1],
  notify: [WAKING, 0.5],
  until_polled: [WAKING, 0.75],
  executor: [WAKING, 0.3],
  begin_take: [ROS2, 0.85],
  executor_begin_take: [WAKING, 0.4],
  wait_begin_take: [WAKING, 0.4],
  take: [TAKING, 1],
  whole_take: [TAKING, 0.75],
  deserialise: [TAKING, 0.5],
  rmw_take: [ROS2, 0.45],
  rcl_take: [ROS2, 0.7],
  rclcpp_take: [ROS2, 1],
  callback: [ROS2, 0.3],
  bridge: [NODE, 0.55],
  callback_queue: [NODE, 0.75],
  computation: [NODE, 1],
  idle: [NODE, 0.25],
  // Categories of Kronauer et al., and the parts in Maruyama et al.
  common: [ROS2, 1],
  conversion_out: [SENDING, 0.45],
  rmw: [ROS2, 0.5],
  dds: [KERNEL, 1],
  conversion_in: [TAKING, 0.5],
  notification: [WAKING, 1],
  benchmarking: [OURS, 0.8],
  others: [OURS, 0.4],
};

export const UNATTRIBUTED = "unattributed";

export interface LayerLook {
  colour: string;
  opacity: number;
}

/** Null for unattributed time and for layers unknown to this page. */
export function layerLook(layer: string): LayerLook | null {
  const known = LAYERS[layer];
  if (known === undefined) return null;
  return { colour: isDark() ? known[0].dark : known[0].light, opacity: known[1] };
}

/** Layers in the order of the path; unattributed time comes last. */
export function inOrder(layers: Iterable<string>): string[] {
  const order = Object.keys(LAYERS);
  const place = (layer: string): number => (order.includes(layer) ? order.indexOf(layer) : order.length);
  return [...new Set(layers)].sort((a, b) => place(a) - place(b));
}

const NAMES: Record<string, string> = {
  dds: "DDS",
  common: "common (rclcpp, rcl)",
  rmw: "rmw and conversions",
  conversion_out: "conversion, publishing",
  conversion_in: "conversion, taking",
};

/** `send_path` as `send path`. */
export function layerName(layer: string): string {
  return NAMES[layer] ?? layer.replaceAll("_", " ");
}
