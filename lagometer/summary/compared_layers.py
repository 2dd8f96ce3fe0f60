# SPDX-License-Identifier: Apache-2.0
"""In which layers two compared cells differ, if both have layers (`layers: on`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lagometer.stats.compare.comparable import Comparison
from lagometer.stats.trial.scheduling import BRIDGE, COMPUTATION, IDLE, QUEUE
from lagometer.stats.trial.way import LAYERS, UNATTRIBUTED
from lagometer.store.reader import Campaign
from lagometer.summary.cell_layers import campaign_layers
from lagometer.summary.way_data import CellLayers

ORDER = (*LAYERS[:-1], BRIDGE, QUEUE, COMPUTATION, IDLE, UNATTRIBUTED)


@dataclass(frozen=True)
class LayerChange:
    """The mean time of a message in one layer, in A and in B."""

    name: str
    a_ns: float
    b_ns: float

    @property
    def difference_ns(self) -> float:
        """How much longer a message is there in B."""
        return self.b_ns - self.a_ns


@dataclass(frozen=True)
class LayersOfBoth:
    """The layers of two cells, in the order in which messages pass them; `unattributed` is the last one. They
    add up to the mean latency of each side. of: `chain` or `edge`, as in `CellLayers`."""

    of: str
    layers: Sequence[LayerChange]

    @property
    def largest(self) -> Sequence[LayerChange]:
        """The layers without `unattributed`, the largest change first."""
        known = [change for change in self.layers if change.name != UNATTRIBUTED]
        return sorted(known, key=lambda change: -abs(change.difference_ns))

    def unattributed_shares(self) -> tuple[float, float]:
        """The share of the mean latency that is in no layer, in A and in B."""
        last = self.layers[-1]
        totals = (sum(change.a_ns for change in self.layers), sum(change.b_ns for change in self.layers))
        return last.a_ns / totals[0], last.b_ns / totals[1]


def compared_layers(
    comparison: Comparison, a: Campaign, b: Campaign
) -> Mapping[tuple[str, str], LayersOfBoth]:
    """By a cell of A and one of B. Pairs are left out if one side has no layers, or if those of one side are
    of whole chains and those of the other of single edges."""
    pairs = [(cell.cell_a, cell.cell_b) for cell in comparison.cells]
    rows_a, rows_b = (
        {row.cell: row for row in campaign_layers(campaign, {pair[place] for pair in pairs}).cells}
        for place, campaign in enumerate((a, b))
    )
    return {
        (cell_a, cell_b): _both(rows_a[cell_a], rows_b[cell_b])
        for cell_a, cell_b in pairs
        if cell_a in rows_a and cell_b in rows_b and rows_a[cell_a].of == rows_b[cell_b].of
    }


def _both(a: CellLayers, b: CellLayers) -> LayersOfBoth:
    means_a, means_b = ({layer.name: layer.mean_ns for layer in side.layers} for side in (a, b))
    return LayersOfBoth(
        a.of,
        [
            LayerChange(name, means_a.get(name, 0.0), means_b.get(name, 0.0))
            for name in ORDER
            if name in means_a or name in means_b
        ],
    )
