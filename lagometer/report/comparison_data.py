# SPDX-License-Identifier: Apache-2.0
"""The typed data of a comparison's page, similar to `lagometer.summary.data`."""

from __future__ import annotations

from lagometer.summary.data import Campaign, Finding
from lagometer.summary.model import Model


class ComparedQuantity(Model):
    """B over A in one quantity of latency. An end of the interval that lies at infinity is null; without a
    ratio, `why` says what is in the way. `a_low_ns` to `b_high_ns`: the 95 % intervals of each side's own
    figure, null where the samples support none.

    `p` is corrected for the number of tests. `detectable`: the difference that would have been found with
    95 % probability, 0.05 for 5 %.
    """

    quantity: str
    a_ns: float | None
    a_low_ns: float | None
    a_high_ns: float | None
    b_ns: float | None
    b_low_ns: float | None
    b_high_ns: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    detectable: float | None
    verdict: str
    why: str | None


class ComparedLayer(Model):
    """The mean time of a message in one layer, in A and in B."""

    name: str
    a_ns: float
    b_ns: float


class ComparedCell(Model):
    """Two cells: one verdict over the quantities. CPU per message is the median of the valid trials', with
    its 95 % interval; null where they are too few for one. `layers`: empty unless both cells have them, of a
    `chain` or of any `edge`, as `layers_of` says; `unattributed` is the last one.
    """

    cell_a: str
    cell_b: str
    adapter: str
    payload_bytes: int | None
    trials_a: int
    trials_b: int
    paired: bool
    verdict: str
    why: str | None
    notes: list[str]
    quantities: list[ComparedQuantity]
    cpu_per_message_a_ns: float | None
    cpu_per_message_a_low_ns: float | None
    cpu_per_message_a_high_ns: float | None
    cpu_per_message_b_ns: float | None
    cpu_per_message_b_low_ns: float | None
    cpu_per_message_b_high_ns: float | None
    layers_of: str | None
    layers: list[ComparedLayer]


class Difference(Model):
    """Something in which the campaigns differ; null where one does not have it."""

    what: str
    a: str | None
    b: str | None


class SettingDifference(Model):
    """An effective setting of an adapter's object that is not the same in A and B, and in how many cells."""

    adapter: str
    object: str
    name: str
    a: str | None
    b: str | None
    cells: int


class ComparisonReport(Model):
    """Everything that the page of a comparison shows. `verdict` is over all cells, `alpha` the probability
    of any false alarm among them. `findings_a`, `findings_b`: those in the compared cells, each side with
    footnotes of its own.
    """

    format: int
    kind: str
    a: Campaign
    b: Campaign
    directory_a: str
    directory_b: str
    alpha: float
    verdict: str
    cells: list[ComparedCell]
    control: ComparedCell | None
    only_a: list[str]
    only_b: list[str]
    differences: list[Difference]
    settings: list[SettingDifference]
    findings_a: list[Finding]
    findings_b: list[Finding]
