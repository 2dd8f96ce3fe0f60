# SPDX-License-Identifier: Apache-2.0
"""What messages cost on the wire, over the valid trials whose packets were counted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from lagometer.store.format import FIGURES_SCHEMA
from lagometer.store.observed import WIRE_COUNTS
from lagometer.store.reader import Campaign
from lagometer.summary.wire import on_the_wire


def rows(
    cell: str,
    trial: int,
    *,
    valid: bool = True,
    ratio: float = 1.5,
    reasons: tuple[str, ...] = (),
    hosts: tuple[str | None, str | None] = (None, None),
    **counts: int,
) -> list[dict[str, Any]]:
    wire = {f"wire_{name}": counts.get(name, 0) for name in WIRE_COUNTS}
    sent = {"sender_host": hosts[0], "receiver_host": hosts[1], "reasons": list(reasons)}
    common = {
        **sent,
        "cell": cell,
        "trial": trial,
        "valid": valid,
        "wire_bytes_per_payload_byte": ratio,
        **wire,
    }
    return [{**common, "edge": "source→sink", "n": 10}, {**common, "edge": "end-to-end", "n": 10}]


def found(*of_trials: list[dict[str, Any]], links: Any = None, discard: int = 0, **factors: str) -> Any:
    wanted = {name: FIGURES_SCHEMA[name] for name in (*of_trials[0][0],)}
    frame = pl.DataFrame([row for each in of_trials for row in each], schema=wanted)
    campaign = Campaign(
        Path("out"),
        {"study": {"duration_ns": 500_000_000, "links": links or {}, "discard": discard}},
        {},
        frame,
        (),
    )
    names = dict.fromkeys(frame["cell"])
    return on_the_wire(
        campaign,
        cast("Any", [SimpleNamespace(id=name, payload_bytes=100, factors=factors) for name in names]),
    )


def test_figures_are_medians_over_valid_trials() -> None:
    few: dict[str, Any] = {"bytes": 1500, "packets": 20, "data": 10, "heartbeats": 5, "control_bytes": 300}
    (cell,) = found(
        rows("a", 0, **few), rows("a", 1, **{**few, "bytes": 2500}, ratio=2.5), rows("a", 2, valid=False)
    )
    assert (cell.cell, cell.trials, cell.bytes_per_payload_byte) == ("a", 2, 2.0)
    assert cell.bytes_per_s == 4000 and cell.goodput_bytes_per_s == 2000
    assert (cell.packets_per_message, cell.heartbeats_per_message) == (2.0, 0.5)
    assert round(cell.control_share, 3) == 0.16


def test_messages_that_are_left_out_at_first_went_over_the_wire_nevertheless() -> None:
    """Packets are those of the whole measure phase: 40 messages of 100 B, of which 10 count."""
    given = rows("a", 0, bytes=6000, packets=80, data=40)
    (cell,) = found(given, links={"slow": LINK}, link="slow", discard=30)
    assert (cell.packets_per_message, cell.link_goodput_bytes_per_s) == (2.0, 8000)


def test_what_readers_took_in_all_the_phase_is_known_whatever_the_sizes() -> None:
    """With payloads of their own, bytes do not tell how many messages they were."""
    given = [{**row, "wire_bytes_per_payload_byte": None, "taken": 40} for row in rows("a", 0, packets=80)]
    (cell,) = found(given, discard=30)
    assert cell.packets_per_message == 2.0
    del given[0]["taken"], given[1]["taken"]
    (cell,) = found(given, discard=30)
    assert cell.packets_per_message is None, "a file of an older lagometer can't tell"


def test_what_belongs_to_rtps_is_unknown_without_it() -> None:
    (cell,) = found(rows("a", 0, bytes=1500, packets=20, other_bytes=1500))
    assert cell.packets_per_message == 2.0
    assert (cell.heartbeats_per_message, cell.resent_per_message, cell.discovery_share) == (None, None, None)


def test_what_encryption_hides_is_unknown() -> None:
    hidden = ("data", "heartbeats", "control_bytes", "discovery_bytes", "resent", "startup_discovery_bytes")
    counts: dict[str, Any] = {"bytes": 1500, "packets": 20, **dict.fromkeys(hidden)}
    (cell,) = found(rows("a", 0, **counts))
    assert (cell.packets_per_message, cell.bytes_per_payload_byte) == (2.0, 1.5)
    figures = (cell.heartbeats_per_message, cell.control_share, cell.discovery_share)
    assert (*figures, cell.startup_discovery_bytes) == (None,) * 4
    counts["startup_discovery_bytes"] = 900  # keys were exchanged in the clear, messages were not
    (cell,) = found(rows("a", 0, **counts))
    assert cell.startup_discovery_bytes == 900
    assert (cell.heartbeats_per_message, cell.control_share) == (None, None)


LINK = {"rate_bps": 1_000_000, "mtu_bytes": 1500, "frame_overhead_bytes": 24, "changes": []}
LEAST = 142 / 100  # 14 B of Ethernet, 20 of IP and 8 of UDP beside 100 of payload


def test_what_came_through_is_held_against_what_the_link_carries_at_most() -> None:
    """10 messages of 100 B in half a second, each with the headers of one frame and the gaps around it."""
    links, counts = {"slow": LINK}, {"bytes": 1500, "packets": 10}
    (cell,) = found(
        rows("a", 0, hosts=("robot", "base"), **counts), links=links, link="slow", hosts="robot+base"
    )
    assert (cell.payload_bytes, cell.link, cell.least_bytes_per_payload_byte) == (100, "slow", LEAST)
    assert cell.ideal_bytes_per_s == 125_000
    assert cell.theoretical_bytes_per_s == pytest.approx(125_000 * 100 / 166)
    assert cell.link_goodput_bytes_per_s == 2000
    assert cell.theoretical_share == pytest.approx(2000 / (125_000 * 100 / 166))
    # What stays on a host does not cross the link.
    (cell,) = found(
        rows("a", 0, hosts=("robot", "robot"), **counts), links=links, link="slow", hosts="robot+base"
    )
    assert cell.link_goodput_bytes_per_s == 0
    # The link of a single host is its loopback, which carries everything.
    for hosts in ("here", "robot"):
        (cell,) = found(rows("a", 0, hosts=(hosts, hosts), **counts), links=links, link="slow", hosts=hosts)
        assert cell.link_goodput_bytes_per_s == 2000
    # A link that changes has no one rate; without a link there is none at all.
    changing = {"slow": {**LINK, "changes": [{"at_ns": 1}]}}
    for given in ({"links": changing, "link": "slow"}, {}):
        (cell,) = found(rows("a", 0, **counts), **given)  # type: ignore[arg-type]
        assert (cell.theoretical_bytes_per_s, cell.theoretical_share) == (None, None)
        assert cell.least_bytes_per_payload_byte == LEAST


def test_topics_with_payloads_of_their_own_have_no_theory() -> None:
    (cell,) = found(rows("a", 0, bytes=1600, packets=10), links={"slow": LINK}, link="slow")
    assert (cell.payload_bytes, cell.least_bytes_per_payload_byte, cell.theoretical_share) == (
        None,
        None,
        None,
    )


def test_a_saturated_cell_has_its_goodput_and_a_failed_one_nothing() -> None:
    counts = {"bytes": 1500, "packets": 10}
    (cell,) = found(rows("a", 0, valid=False, reasons=("saturated: 5 Hz",), **counts))
    assert (cell.saturated, cell.goodput_bytes_per_s) == (True, 2000)
    both = (rows("a", 0, valid=False, reasons=("saturated: 5 Hz",), **counts), rows("a", 1, **counts))
    (cell,) = found(*both)
    assert (cell.saturated, cell.trials) == (False, 1)
    assert found(rows("a", 0, valid=False, reasons=("worker-died: x",), **counts)) == []
