# SPDX-License-Identifier: Apache-2.0
"""A real campaign with a known difference: `compare` finds it, `explain` says where it lies."""

from __future__ import annotations

import json
from pathlib import Path

from campaign_support import lagometer, write_study
from needs import need

WORK_NS = 20_000_000


def test_work_of_a_relay_is_found_and_placed_in_the_node(tmp_path: Path) -> None:
    need("netns")
    matrix = {"adapter": "shm", "workload": "pipeline-3", "rate": "10Hz", "work": ["none", "busy-20ms"]}
    study, out = write_study(tmp_path, matrix=matrix, trials=8), tmp_path / "out"
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report", "--json")
    assert code in (0, 3), errors  # a busy machine may fail a trial; six of each would do

    by = ("compare", str(out), "--by", "none:busy-20ms", "--json")
    code, output, errors = lagometer(tmp_path, *by, "--fail-if", "p50 > +10%")
    assert code == 8, errors
    found = json.loads(output)
    cell = found["cells"][0]
    assert (cell["verdict"], cell["paired"]) == ("slower", cell["trials_a"] == 8)
    median = cell["quantities"]["p50"]
    assert median["b_ns"] - median["a_ns"] > WORK_NS / 2
    assert 1.1 < median["low"] < median["ratio"] < median["high"]

    cells = (f"{out}:*/none/*", ":*/busy-20ms/*")
    code, output, errors = lagometer(tmp_path, "explain", *cells, "--json")
    assert code == 0, errors
    explanation = json.loads(output)
    first = explanation["parts"][0]
    assert (first["edge"], first["what"].split(",")[0]) == ("end-to-end", "nodes between the edges")
    assert first["difference_ns"] > WORK_NS / 2
    assert {"what": "work_ns", "a": 0, "b": WORK_NS} in explanation["factors"]
