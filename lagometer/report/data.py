# SPDX-License-Identifier: Apache-2.0
"""The typed data of the report's page. `web/src/report-data.ts` is generated from this model (see
`typescript`).
"""

from __future__ import annotations

from lagometer.report.samples.data import Curve, Series
from lagometer.summary.data import Summary
from lagometer.summary.way_data import MessageWay


class Report(Summary):
    """Everything that the page shows: the campaign's summary, and its messages as curves and series,
    a few of them thread by thread.

    `notes` also say what was thinned or left out so that the page stays small.
    """

    format: int
    kind: str
    curves: list[Curve]
    series: list[Series]
    ways: list[MessageWay]
