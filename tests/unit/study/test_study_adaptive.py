# SPDX-License-Identifier: Apache-2.0
"""The keys of a study that say how long and how often: precision, bounds, warm-up, control, long trials."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from lagometer.errors import BadInput
from lagometer.study import Study, study_from_mapping
from lagometer.study.schema import FLOOR
from lagometer.study.schema_json import study_schema


def study(**keys: Any) -> Study:
    mapping = {"name": "x", "matrix": {"adapter": "shm", "workload": "pipeline-2"}, **keys}
    jsonschema.validate(mapping, study_schema())
    return study_from_mapping(mapping, "test")


def refused(text: str, **keys: Any) -> None:
    mapping = {"name": "x", "matrix": {"adapter": "shm", "workload": "pipeline-2"}, **keys}
    with pytest.raises(BadInput, match=text):
        study_from_mapping(mapping, "test")


def test_without_precision_each_cell_has_exactly_its_trials() -> None:
    plain = study(trials=3)
    assert (plain.precision, plain.fewest_trials(), plain.most_trials()) == (None, 3, 3)
    assert (plain.control, plain.long_trial_ns, plain.warmup_max_ns, plain.discard) == (None, None, None, 0)
    assert study(long_trial="off").long_trial_ns == 0
    refused("long_trial", long_trial="always")


def test_with_precision_there_are_at_least_six_and_a_control() -> None:
    adaptive = study(precision="5%", cell_time="4s")
    assert (adaptive.precision, adaptive.fewest_trials(), adaptive.most_trials()) == (0.05, 6, 60)
    assert adaptive.cell_time_ns == 4 * 10**9
    assert adaptive.control == FLOOR
    assert study(precision="5%", trials=8).fewest_trials() == 8
    assert study(precision="0.5%", control="none").control is None


def test_bounds_that_contradict_are_refused() -> None:
    refused("trials_min: '5' is fewer than 6", precision="5%", trials_min=5)
    refused("trials_max: '7' is fewer than the 8 trials", precision="5%", trials_min=8, trials_max=7)
    refused("trials_max: '60' is fewer than the 80 trials", precision="5%", trials=80)
    refused("'cell_time' is for studies with `precision`", cell_time="4s")
    for wrong in ("5", "0%", "80%", "-5%", "5 percent"):
        refused("precision", precision=wrong)


def test_the_scheduler_takes_layers_apart() -> None:
    assert study(layers="on", scheduler="on").scheduler
    assert not study(layers="on").scheduler
    refused("'scheduler: on' takes layers apart", scheduler="on")


def test_the_warm_up_has_bounds() -> None:
    fixed = study(warmup="250ms")
    assert (fixed.warmup_ns, fixed.warmup_max_ns) == (250_000_000, None)
    automatic = study(warmup="auto", duration="2s")
    assert (automatic.warmup_ns, automatic.warmup_max_ns) == (100_000_000, 1_100_000_000)
    bounded = study(warmup={"min": "50ms", "max": "1s"}, duration="2s", discard=20)
    assert (bounded.warmup_ns, bounded.warmup_max_ns, bounded.discard) == (50_000_000, 1_000_000_000, 20)
    refused("both of them", warmup={"min": "50ms"})
    refused("both of them", warmup={"min": "50ms", "most": "1s"})
    refused("'2s' is not between warmup.min and warmup.min", warmup={"min": "0", "max": "2s"}, duration="2s")
    refused("warmup", warmup=["1s", "2s"])


def test_the_control_is_one_cell_of_any_factors() -> None:
    chosen = study(control={"rate": "500Hz", "adapter": "udp", "workload": "pipeline-3"})
    assert chosen.control == {"adapter": "udp", "workload": "pipeline-3", "rate": 500.0}
    assert "pipeline-3" in chosen.graphs
    refused("control.adapter: has a list", control={"adapter": ["udp", "shm"], "workload": "pingpong"})
    refused("the factor 'workload' is missing", control={"adapter": "udp"})
    refused("control: unknown factor 'pace'", control={"adapter": "udp", "workload": "pingpong", "pace": 1})
    refused("unknown value 'flor'; did you mean 'floor'", control="flor")


def test_the_manifest_gets_the_keys_as_resolved() -> None:
    resolved = study(precision="5%", warmup="auto", long_trial="60s").as_json()
    assert resolved["precision"] == 0.05
    assert resolved["control"] == dict(FLOOR)
    assert resolved["long_trial_ns"] == 60 * 10**9
