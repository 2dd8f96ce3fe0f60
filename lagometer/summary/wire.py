# SPDX-License-Identifier: Apache-2.0
"""What the messages of each cell cost on its networks, from captured packets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import polars as pl

from lagometer.stats.verdict.validity import is_saturated
from lagometer.store.format import ARROW, END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.cell_data import OnTheWire
from lagometer.summary.data import Cell
from lagometer.summary.wire_theory import ETHERNET_MTU_BYTES, LOOPBACK_MTU_BYTES, Network

NS_PER_S = 1_000_000_000
# The figures per message, and the column that counts each.
PER_MESSAGE = {
    "packets_per_message": "wire_packets",
    "fragments_per_message": "wire_fragments",
    "heartbeats_per_message": "wire_heartbeats",
    "acknacks_per_message": "wire_acknacks",
    "resent_per_message": "wire_resent",
}
NO_LINK = "none"
UNIFORM_TOLERANCE = 0.001  # allows for rounding
THEORY = (
    "least_bytes_per_payload_byte",
    "ideal_bytes_per_s",
    "theoretical_bytes_per_s",
    "link_goodput_bytes_per_s",
    "theoretical_share",
)
OF_RTPS = ("fragments_per_message", "heartbeats_per_message", "acknacks_per_message", "resent_per_message")


def on_the_wire(campaign: Campaign, cells: Sequence[Cell]) -> list[OnTheWire]:
    """A row for each cell with packets counted in a valid or else a saturated trial, in the study's order."""
    rows = campaign.cells
    if "wire_bytes" not in rows.columns:
        return []
    captured = rows.filter(pl.col("wire_bytes").is_not_null())
    edges: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in captured.filter(pl.col("edge").str.contains(ARROW, literal=True)).iter_rows(named=True):
        edges.setdefault((row["cell"], row["trial"]), []).append(row)
    by_id = {cell.id: cell for cell in cells}
    valid: dict[str, list[dict[str, float | None]]] = {}
    saturated: dict[str, list[dict[str, float | None]]] = {}
    for row in captured.filter(pl.col("edge") == END_TO_END).sort("trial").iter_rows(named=True):
        cell, is_valid = by_id.get(row["cell"]), row["valid"]
        if cell is None or not (is_valid or is_saturated(row["reasons"] or ())):
            continue
        edge_rows, measure_ns = edges.get((row["cell"], row["trial"]), []), _measure_ns(campaign, row)
        carried = _carried(campaign, cell, row, edge_rows)
        trial = _of_trial(row, carried, measure_ns)
        trial |= _against_theory(campaign, cell, row, edge_rows, measure_ns)
        (valid if is_valid else saturated).setdefault(cell.id, []).append(trial)
    return [
        _of_cell(cell, valid.get(cell.id) or saturated[cell.id], cell.id not in valid)
        for cell in cells
        if cell.id in valid or cell.id in saturated
    ]


def _study_of(campaign: Campaign, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The study that a trial belongs to, or its part."""
    study: Mapping[str, Any] = campaign.manifest.get("study") or {}
    own: Mapping[str, Any] = (study.get("parts") or {}).get(row.get("part"), study)
    return own


def _measure_ns(campaign: Campaign, row: Mapping[str, Any]) -> int | None:
    duration_ns = _study_of(campaign, row).get("duration_ns")
    return duration_ns if isinstance(duration_ns, int) else None


def _counts_all(campaign: Campaign, row: Mapping[str, Any]) -> bool:
    """Whether figures are of all messages of the measure phase, as packets are: none is left out at first."""
    study = _study_of(campaign, row)
    return not study.get("discard") and study.get("warmup_max_ns") is None


def _carried(
    campaign: Campaign, cell: Cell, row: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]
) -> float | None:
    """How many messages readers took in the whole measure phase; None if a file of an older lagometer can't
    tell: messages were left out, and topics have payloads of their own."""
    if (taken := row.get("taken")) is not None:
        return float(taken)
    if _counts_all(campaign, row):
        return float(sum(edge["n"] for edge in edges))
    ratio, payload_bytes = row["wire_bytes_per_payload_byte"], cell.payload_bytes
    if not ratio or not payload_bytes or _has_topics(campaign, cell):
        return None
    return float(row["wire_bytes"]) / float(ratio) / payload_bytes


def _has_topics(campaign: Campaign, cell: Cell) -> bool:
    listed = campaign.manifest.get("cells", [])
    return any(each.get("topics") for each in listed if each["id"] == cell.id)


def _of_trial(row: Mapping[str, Any], taken: float | None, measure_ns: int | None) -> dict[str, float | None]:
    sent_bytes, ratio = row["wire_bytes"], row["wire_bytes_per_payload_byte"]
    per_s = sent_bytes * NS_PER_S / measure_ns if measure_ns else None
    figures: dict[str, float | None] = {
        "bytes_per_payload_byte": ratio,
        "bytes_per_s": per_s,
        "goodput_bytes_per_s": per_s / ratio if per_s is not None and ratio else None,
        "startup_discovery_bytes": row["wire_startup_discovery_bytes"],
        "control_share": _share(row["wire_control_bytes"], sent_bytes),
        "discovery_share": _share(row["wire_discovery_bytes"], sent_bytes),
    }
    has_rtps = row["wire_data"] or row["wire_startup_discovery_bytes"]
    for name, column in PER_MESSAGE.items():
        known = row[column] is not None and taken and (has_rtps or name not in OF_RTPS)
        figures[name] = row[column] / taken if known else None
    if not has_rtps:
        figures |= dict.fromkeys(("startup_discovery_bytes", "control_share", "discovery_share"))
    return figures


def _share(part_bytes: int | None, sent_bytes: int) -> float | None:
    """None if nothing was sent, or if the purpose of encrypted packets is not known."""
    return part_bytes / sent_bytes if sent_bytes and part_bytes is not None else None


def _of_cell(cell: Cell, trials: Sequence[Mapping[str, float | None]], saturated: bool) -> OnTheWire:
    middles = {name: _middle(trial[name] for trial in trials) for name in trials[0]}
    payload = None if middles["least_bytes_per_payload_byte"] is None else cell.payload_bytes
    name = cell.factors.get("link")
    link = None if name in (None, NO_LINK) else name
    return OnTheWire(
        cell=cell.id, trials=len(trials), saturated=saturated, payload_bytes=payload, link=link, **middles
    )


def _against_theory(
    campaign: Campaign,
    cell: Cell,
    row: Mapping[str, Any],
    edges: Sequence[Mapping[str, Any]],
    measure_ns: int | None,
) -> dict[str, float | None]:
    """The most the cell's network could carry, and how much of that came through."""
    figures: dict[str, float | None] = dict.fromkeys(THEORY)
    taken, payload_bytes = _carried(campaign, cell, row, edges), cell.payload_bytes
    ratio = row["wire_bytes_per_payload_byte"]
    if not taken or not payload_bytes or not ratio:
        return figures
    # Topics may have their own payloads; the factor then says nothing about what was carried.
    if abs(row["wire_bytes"] / ratio / (taken * payload_bytes) - 1) > UNIFORM_TOLERANCE:
        return figures
    network = _network(campaign, cell)
    theoretical = network.theoretical_bytes_per_s(payload_bytes)
    figures["least_bytes_per_payload_byte"] = network.least_bytes_per_payload_byte(payload_bytes)
    if theoretical is None or not measure_ns:
        return figures
    figures["ideal_bytes_per_s"], figures["theoretical_bytes_per_s"] = network.ideal_bytes_per_s, theoretical
    counted = sum(edge["n"] for edge in edges)
    busier_share = _busier_way(edges, _is_between_hosts(cell)) / counted if counted else 0.0
    across = taken * busier_share * payload_bytes * NS_PER_S / measure_ns
    figures["link_goodput_bytes_per_s"], figures["theoretical_share"] = across, across / theoretical
    return figures


def _network(campaign: Campaign, cell: Cell) -> Network:
    study = campaign.manifest.get("study") or {}
    profile = (study.get("links") or {}).get(cell.factors.get("link") or NO_LINK)
    if isinstance(profile, dict):
        rate_bps = (
            0 if profile.get("changes") else int(profile.get("rate_bps") or 0)
        )  # otherwise there is no single rate
        overhead_bytes = int(profile.get("frame_overhead_bytes") or 0)
        return Network(int(profile["mtu_bytes"]), rate_bps, overhead_bytes)
    return Network(ETHERNET_MTU_BYTES if _is_between_hosts(cell) else LOOPBACK_MTU_BYTES)


def _is_between_hosts(cell: Cell) -> bool:
    return "+" in (cell.factors.get("hosts") or "")


def _busier_way(edges: Sequence[Mapping[str, Any]], between_hosts: bool) -> int:
    """How many taken messages crossed the link in the busier direction. Between hosts, what stays on one does
    not cross it; the link of a single host is its loopback, which has one direction and carries everything.
    """
    if not between_hosts:
        return sum(int(edge["n"]) for edge in edges)
    ways: dict[str, int] = {}
    for edge in edges:
        if edge["sender_host"] != edge["receiver_host"]:
            ways[edge["sender_host"]] = ways.get(edge["sender_host"], 0) + edge["n"]
    return max(ways.values(), default=0)


def _middle(values: Iterable[float | None]) -> float | None:
    """The median; None unless every trial has the figure."""
    known = list(values)
    return None if None in known else median(value for value in known if value is not None)
