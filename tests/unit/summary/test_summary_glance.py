# SPDX-License-Identifier: Apache-2.0
"""The table at a glance: multiples of the floor, what it costs, and why anything is missing."""

from __future__ import annotations

from typing import Any

import pytest

from lagometer.store.format import END_TO_END
from lagometer.summary.data import Exclusion, Failure, Glance, Interval, Row
from lagometer.summary.floor_ratio import with_floor
from lagometer.summary.glance import ROWS_MAX, glance
from lagometer.summary.intervals import between, ends_of
from lagometer.summary.rows import trial_row

KB, MB = 1024, 1024 * 1024
Factors = dict[str, dict[str, object]]


def cell(adapter: str, payload_bytes: int, **more: object) -> tuple[str, dict[str, object]]:
    values = {"adapter": adapter, "payload_bytes": payload_bytes, **more}
    return "/".join(str(each) for each in values.values()), values


def summary(name: str, p50_ns: float | None, p99_ns: float | None = None, **more: Any) -> Row:
    """A row over trials, end to end."""
    figures = {"latency_p50_ns": p50_ns, "latency_p99_ns": p99_ns, "cpu_per_message_ns": 5.0, **more}
    row = trial_row({"cell": name, "trial": 0, "edge": END_TO_END, "valid": p50_ns is not None, **figures})
    return row.model_copy(update={"trial": None})


def table(
    factors: Factors,
    rows: list[Row],
    journal: list[dict[str, Any]] | None = None,
    exclusions: tuple[Exclusion, ...] = (),
    failures: tuple[Failure, ...] = (),
) -> Glance | None:
    return glance(with_floor(rows, factors), factors, journal or [], exclusions, failures)


def test_each_quantile_is_held_against_the_same_of_the_floor() -> None:
    factors = dict([cell("shm", 64), cell("udp", 64), cell("zenoh", 64)])
    shm, udp, zenoh = factors
    found = table(factors, [summary(shm, 10.0, 40.0), summary(udp, 20.0, 30.0), summary(zenoh, 50.0, 100.0)])
    assert found is not None
    by_adapter = {row.adapter: row for row in found.rows}
    assert [row.bare for row in found.rows] == [True, True, False]
    (figure,) = by_adapter["zenoh"].figures
    assert figure is not None
    assert figure.times_floor_p50 == 5.0
    assert figure.times_floor_p99 == 2.5, "of the floor by p50, not of the smallest p99"
    assert figure.cpu_per_message_ns == 5.0


def test_between_two_clocks_a_multiple_needs_an_interval() -> None:
    """Each part may be off by its bound, and even be below 0; intervals contain the bounds."""
    factors = dict([cell("tcp", 64), cell("zenoh", 64)])
    floor = [between("latency_p50_ns", 8.0, 12.5)]
    own = [between("latency_p50_ns", 40.0, 60.0)]
    cases: list[tuple[list[Interval], list[Interval], float | None]] = [([], [], None), (floor, own, 5.0)]
    for of_floor, of_cell, times in cases:
        tcp = summary("tcp/64", 10.0).model_copy(update={"intervals": of_floor})
        zenoh = summary("zenoh/64", 50.0, clock_bound_ns=2.0).model_copy(update={"intervals": of_cell})
        found = table(factors, [tcp, zenoh])
        assert found is not None
        (figure,) = next(row for row in found.rows if row.adapter == "zenoh").figures
        assert figure is not None and figure.times_floor_p50 == times
        assert figure.latency_p50_ns == 50.0


def test_without_the_offset_of_the_clocks_the_reason_is_not_that_messages_are_missing() -> None:
    factors = dict([cell("tcp", 64), cell("zenoh", 64), cell("zenoh", 1024)])
    warnings = ["clock-unknown: robot and base exchanged no time stamps, so there is no latency between them"]
    rows = [summary("tcp/64", 10.0), summary("zenoh/64", 20.0)]
    found = table(factors, [*rows, summary("zenoh/1024", None, n=1000, sent=1000, warnings=warnings)])
    assert found is not None
    assert [(each.cells, each.reasons) for each in found.missing] == [(["1024"], warnings)]


def test_multiples_of_the_floor_have_the_interval_of_both_parts() -> None:
    factors = dict([cell("shm", 64), cell("zenoh", 64)])
    floor = [between("latency_p50_ns", 8.0, 12.5), between("latency_p99_ns", 30.0, 50.0)]
    own = [between("latency_p50_ns", 40.0, 60.0), between("cpu_per_message_ns", 4.0, 7.0)]
    rows = [summary("shm/64", 10.0, 40.0), summary("zenoh/64", 50.0, 100.0)]
    rows = [row.model_copy(update={"intervals": each}) for row, each in zip(rows, (floor, own), strict=True)]
    found = table(factors, rows)
    assert found is not None
    shm, zenoh = (row.figures[0] for row in found.rows)
    assert shm is not None and zenoh is not None
    ends = {each.figure: (each.low, each.high) for each in zenoh.intervals}
    assert ends == {
        "latency_p50_ns": (40.0, 60.0),
        "cpu_per_message_ns": (4.0, 7.0),
        "times_floor_p50": (40.0 / 12.5, 60.0 / 8.0),
    }, "p99 has none of its own, so its multiple has none"
    assert shm.times_floor_p50 == 1.0
    assert {each.figure for each in shm.intervals} == {"latency_p50_ns", "latency_p99_ns"}
    held = {row.cell: row for row in with_floor(rows, factors)}
    assert ends_of(held["zenoh/64"], "times_floor_p50") == (40.0 / 12.5, 60.0 / 8.0)


def test_settings_name_what_varies_and_a_missing_payload_stays_empty() -> None:
    factors = dict(
        cell(adapter, size, rate_hz=400.0, profile=profile)
        for adapter in ("shm", "cyclonedds")
        for size in (64, MB)
        for profile in ("default", "matched")
    )
    rows = [summary(name, 10.0) for name in factors if name != f"cyclonedds/{MB}/400.0/matched"]
    found = table(factors, rows)
    assert found is not None
    assert found.payloads_bytes == [64, MB]
    assert [(row.adapter, row.settings) for row in found.rows] == [
        (adapter, profile) for adapter in ("shm", "cyclonedds") for profile in ("default", "matched")
    ]
    assert [each is None for each in found.rows[-1].figures] == [False, True]
    assert found.rows[-1].figures[0] is not None and found.rows[-1].figures[0].latency_p99_ns is None


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ((64, 1 * KB, 16 * KB, 64 * KB, 256 * KB, MB), [64, 64 * KB, MB]),
        ((64, MB), [64, MB]),
        ((128, 256, 512, 1 * KB, 2 * KB), [128, 512, 2 * KB]),
        ((64, 1 * KB, 2 * KB, 4 * KB), [64, 2 * KB, 4 * KB]),
    ],
)
def test_three_payloads_at_most(asked: tuple[int, ...], shown: list[int]) -> None:
    factors = dict(cell(adapter, size) for adapter in ("shm", "mqtt") for size in asked)
    found = table(factors, [summary(name, 10.0) for name in factors])
    assert found is not None
    assert found.payloads_bytes == shown


def test_threads_and_memory_are_of_the_smallest_payload_that_was_measured() -> None:
    factors = dict(cell(adapter, size) for adapter in ("shm", "mqtt") for size in (64, MB))
    journal = [
        {
            "cell": name,
            "valid": name != "mqtt/64",
            "threads": {"source": [{}] * size, "sink": [{}]},
            "rows": [{"memory_pss_bytes": 1000.0 * size}],
        }
        for size, name in enumerate(factors, start=1)
    ]
    rows = [summary(name, None if name == "mqtt/64" else 10.0) for name in factors]
    found = table(factors, rows, journal)
    assert found is not None
    assert [(row.adapter, row.threads, row.memory_pss_bytes) for row in found.rows] == [
        ("shm", 2, 1000.0),
        ("mqtt", 5, 4000.0),
    ]


def test_an_adapter_without_figures_says_why() -> None:
    factors = dict(cell(adapter, 64) for adapter in ("shm", "mqtt", "fastdds"))
    rows = [summary("shm/64", 10.0), summary("mqtt/64", 30.0), summary("fastdds/64", None)]
    exclusions = tuple(Exclusion(cell=name, reason="no library") for name in ("zenoh/64", "zenoh/1"))
    exclusions += (Exclusion(cell="mqtt/1", reason="too large"),)
    failures = (Failure(cell="fastdds/64", trial=0, reasons=["worker-died: sink"], log=None),)
    found = table(factors, rows, exclusions=exclusions, failures=failures)
    assert found is not None
    assert [(each.adapter, each.cells, each.reasons) for each in found.missing] == [
        ("zenoh", [], ["no library"]),
        ("mqtt", ["1"], ["too large"]),
        ("fastdds", [], ["worker-died: sink"]),
    ]


def test_cells_without_figures_of_an_adapter_that_has_some_say_why() -> None:
    factors = dict(
        cell(adapter, size, profile=profile)
        for adapter in ("shm", "lcm")
        for size in (64, MB)
        for profile in ("default", "matched")
    )
    lossy = f"lcm/{MB}/default"
    rows = [summary(name, None if name == lossy else 10.0, n=12, sent=1040) for name in factors]
    exclusions = tuple(
        Exclusion(cell=f"lcm/{2 * MB}/{each}", reason="too large") for each in ("default", "matched")
    )
    failures = tuple(
        Failure(cell=f"lcm/{MB}/{each}", trial=1, reasons=["rate-not-reached"], log=None)
        for each in ("matched",)
    )
    found = table(factors, rows, exclusions=exclusions, failures=failures)
    assert found is not None
    assert [(each.adapter, each.cells, each.reasons) for each in found.missing] == [
        ("lcm", [f"{2 * MB}/default", f"{2 * MB}/matched"], ["too large"]),
        ("lcm", [f"{MB}/default"], ["too few for a median: 12 of 1,040 messages arrived"]),
    ], "a cell that has figures of other trials is not among them"


def test_nothing_where_it_would_say_nothing() -> None:
    alone = dict([cell("mqtt", 64)])
    assert table(alone, [summary("mqtt/64", 1.0)]) is None
    bare = dict([cell("shm", 64), cell("udp", 64)])
    assert table(bare, [summary(name, 1.0) for name in bare]) is None
    no_floor = dict([cell("mqtt", 64), cell("zenoh", 64)])
    assert table(no_floor, [summary(name, 1.0) for name in no_floor]) is None
    many = dict(cell(adapter, 64, depth=depth) for adapter in ("shm", "mqtt") for depth in range(ROWS_MAX))
    assert table(many, [summary(name, 1.0) for name in many]) is None


def test_cells_of_a_part_are_grouped_by_their_adapter() -> None:
    """The id of a part's cell begins with the part."""
    factors: Factors = {
        f"{part}/{adapter}/64B": {"adapter": adapter, "payload_bytes": 64, "part": part}
        for part in ("sizes", "rates")
        for adapter in ("shm", "zenoh")
    }
    found = glance(
        with_floor([summary(name, 10.0) for name in factors], factors),
        factors,
        [],
        [Exclusion(cell=f"{part}/connext/64B", reason="not built") for part in ("sizes", "rates")],
        [],
        {"sizes", "rates"},
    )
    assert found is not None
    assert [(entry.adapter, entry.cells) for entry in found.missing] == [("connext", [])]


def test_a_cell_without_figures_is_named_with_its_part() -> None:
    factors: Factors = {
        f"{part}/{adapter}/64B": {"adapter": adapter, "payload_bytes": 64, "part": part}
        for part in ("sizes", "rates")
        for adapter in ("shm", "zenoh")
    }
    failed = Failure(cell="rates/zenoh/64B", trial=0, reasons=["nothing received"], log=None)
    rows = [summary(name, 10.0) for name in factors if name != failed.cell]
    found = glance(with_floor(rows, factors), factors, [], [], [failed], {"sizes", "rates"})
    assert found is not None
    assert [(entry.adapter, entry.cells) for entry in found.missing] == [("zenoh", ["rates"])]


def test_an_adapter_that_cannot_run_has_one_reason_whatever_else_its_cells_lack() -> None:
    factors = dict([cell("shm", 64), cell("zenoh", 64)])
    why = "not built: no ROS 2 is sourced; source one"
    reasons = (f"{why}; bridge a is not installed", f"{why}; no type Image", "needs a camera")
    excluded = tuple(Exclusion(cell=f"ros2/{place}", reason=reason) for place, reason in enumerate(reasons))
    found = table(factors, [summary(name, 10.0) for name in factors], exclusions=excluded)
    assert found is not None
    assert [(entry.adapter, entry.reasons) for entry in found.missing] == [("ros2", [why, "needs a camera"])]
