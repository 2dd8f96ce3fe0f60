# SPDX-License-Identifier: Apache-2.0
"""What adapters say of themselves, from the workers' events to the manifest and to what compares cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lagometer.run.results.campaign_files import Results
from lagometer.run.results.effective import add_observed, described
from lagometer.run.worker.messages import Ready
from lagometer.run.worker.outcome import TrialOutcome, WorkerOutcome
from lagometer.store.effective import effective_of_both

LIBRARY = "/opt/ros/lib/librmw_cyclonedds_cpp.so"
CELL = "ros2/pipeline-2/64B"


def said(name: str = "context", **effective: Any) -> dict[str, Any]:
    """What one object says, as in the event `ready`."""
    return {"adapter": "ros2", "object": name, "effective": {"settings": {}, "paste": [], **effective}}


def trial(*workers: list[dict[str, Any]]) -> TrialOutcome:
    """A trial of workers that say this of their objects."""
    outcomes = tuple(
        WorkerOutcome(index, str(index), Ready(event="ready", settings=settings), None, None, "")
        for index, settings in enumerate(workers)
    )
    return TrialOutcome(outcomes, 0, 0, 0, 0, "", 0.0, 0.0, {})


def test_what_was_observed_is_kept_beside_the_settings() -> None:
    (entry,) = described(trial([said(observed={"rmw_library": LIBRARY, "not_known": None})]))
    assert entry == {
        "adapter": "ros2",
        "object": "context",
        "settings": {},
        "observed": {"rmw_library": [LIBRARY]},
        "paste": [],
    }


def test_workers_that_differ_in_what_was_observed_alone_share_an_entry() -> None:
    of_workers = [[said(observed={"rmw_library": LIBRARY, "participant": n})] for n in (10, 2, 10)]
    (entry,) = described(trial(*of_workers))
    assert entry["observed"] == {"rmw_library": [LIBRARY], "participant": [2, 10]}


def test_workers_that_differ_in_a_setting_do_not() -> None:
    of_workers = [[said(settings={"depth": {"value": n, "default": 1}})] for n in (1, 2)]
    assert len(described(trial(*of_workers))) == 2


@pytest.mark.parametrize("values", [(True, "text", 3, [1, 2]), ([1, 2], 3, "text", True)])
def test_values_of_any_kind_have_one_order(values: tuple[Any, ...]) -> None:
    (entry,) = described(trial(*([said(observed={"seen": value})] for value in values)))
    assert entry["observed"]["seen"] == [[1, 2], True, 3, "text"]


def test_an_object_that_observed_nothing_adds_nothing() -> None:
    kept = described(trial([said(observed={"rmw_library": LIBRARY}), said("writer t0")]))
    add_observed(kept, described(trial([said(), said("reader t0", observed={"new": 1})])))
    assert [each["observed"] for each in kept] == [{"rmw_library": [LIBRARY]}, {}]


def test_each_trial_of_a_cell_adds_what_it_observed(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.create({"cells": [{"id": CELL}], "study": {}})
    results.learn(CELL, trial([said(observed={"rmw_library": "/a.so"}, settings={"depth": 1})]))
    results.learn(CELL, trial([said(observed={"rmw_library": "/b.so"}, settings={"depth": 2})]))
    (entry,) = results.manifest["settings"][CELL]
    assert entry["settings"] == {"depth": 1}
    assert entry["observed"] == {"rmw_library": ["/a.so", "/b.so"]}


def test_a_trial_of_which_no_worker_became_ready_tells_nothing(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.create({"cells": [{"id": CELL}], "study": {}})
    results.learn(CELL, trial())
    assert results.manifest["settings"] == {}


def test_two_cells_are_compared_in_what_was_observed() -> None:
    entry = {"adapter": "ros2", "object": "context", "settings": {"depth": {"value": 1, "default": 10}}}
    a = {"settings": {CELL: [{**entry, "observed": {"rmw_library": ["/a.so"]}}]}}
    b = {"settings": {CELL: [{**entry, "observed": {"rmw_library": ["/a.so", "/b.so"]}}]}}
    place = ("ros2", "context", "observed: rmw_library")
    of_a, of_b = effective_of_both((a, CELL), (b, CELL))
    assert (of_a[place], of_b[place]) == ("/a.so", ["/a.so", "/b.so"])
    assert of_a["ros2", "context", "depth"] == of_b["ros2", "context", "depth"] == 1
    older = {"settings": {CELL: [entry]}}
    for both in (effective_of_both((a, CELL), (older, CELL)), effective_of_both((older, CELL), (a, CELL))):
        assert [set(told) for told in both] == [{("ros2", "context", "depth")}] * 2, "it was not kept then"
