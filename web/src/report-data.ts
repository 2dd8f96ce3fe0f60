// SPDX-License-Identifier: Apache-2.0
// Generated from lagometer/report/data.py by `python -m lagometer.report.typescript web/src`; do not edit.

import type { Curve, Series } from "./sample-data";
import type { Summary } from "./data";
import type { MessageWay } from "./way-data";

/**
 * Everything that the page shows: the campaign's summary, and its messages as curves and series,
 * a few of them thread by thread.
 *
 * `notes` also say what was thinned or left out so that the page stays small.
 */
export interface Report extends Summary {
  format: number;
  kind: string;
  curves: Curve[];
  series: Series[];
  ways: MessageWay[];
}
