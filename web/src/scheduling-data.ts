// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/summary/scheduling_data.py by `python -m lagometer.report.typescript web/src`; do not edit.

/**
 * One layer: its stays, how many of them the scheduler data cover completely, and for those the mean time
 * that the thread the message waits for was asleep, waiting in a run queue, and running.
 */
export interface LayerWaiting {
  name: string;
  stays: number;
  known: number;
  asleep_ns: number;
  waiting_ns: number;
  running_ns: number;
}

/**
 * What ran on a CPU while threads waited for it, by thread name: its share of all that waiting, how many
 * threads have the name, on which CPUs, and its longest time during one stay in a layer.
 */
export interface RanInstead {
  name: string;
  share: number;
  threads: number;
  cpus: number[];
  longest_ns: number;
}

/**
 * Shares for some messages. `known_share`: the part of their time that the scheduler data cover
 * completely. The other shares are of that part, and add up to 1.
 */
export interface WaitingShare {
  messages: number;
  latency_ns: number;
  known_share: number;
  asleep_share: number;
  waiting_share: number;
  running_share: number;
  layers: LayerWaiting[];
  instead: RanInstead[];
}

/**
 * The scheduler's share of the layers of one edge, over all messages of the valid trials, and over the
 * slowest 1 % of them (null, like `p99_ns`, with fewer than ten above p99). `in_node`: what the receiving
 * node does until it publishes, `callback_queue`, `computation` and `idle`, or `bridge`, if it is one
 * between domains or adapters; only known stays count. `because` says it in a sentence.
 */
export interface CellScheduling {
  cell: string;
  edge: string;
  trials: number;
  p99_ns: number | null;
  whole: WaitingShare;
  slowest: WaitingShare | null;
  in_node: LayerWaiting[];
  because: string;
}
