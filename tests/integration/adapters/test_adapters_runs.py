# SPDX-License-Identifier: Apache-2.0
"""A short real run of every adapter, each way that it says it can: dispatch, types, reliability, messages
below and above the middleware's fragment size; all of it through `lagometer run` in private machines."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import polars as pl
import pytest
from campaign_support import half_of, run_cells
from needs import FLOORS, IN_PYTHON, MIDDLEWARE, STACKED, adapter_library, need

pytestmark = pytest.mark.by_turn

# One size that fits into any datagram, and one that neither Cyclone DDS (1,344 B) nor Fast DDS (65,500 B)
# sends in one piece; of fixed types, which have four sizes, 64 KB is it. A UDP datagram ends at 65,507 B.
PAYLOADS = ["64B", "60KB", "64KB", "100KB"]
UNWANTED = ["*/64KB/bytes/*", "*/60KB/*"]
# `make nightly` makes a round trip on every adapter.
ROUND_TRIPS = (*FLOORS, *MIDDLEWARE, *STACKED, *IN_PYTHON) if "LAGOMETER_LONG" in os.environ else ("shm",)
LAGOMETERS_OWN = ("bytes", "fixed")  # messages of ROS 2 have a test of their own


def reliable_rows_are_whole(rows: pl.DataFrame) -> None:
    """Of what was sent reliably, all came, once and intact."""
    reliable = rows.filter(pl.col("reliability") == "reliable")
    kept = (pl.col("n") == pl.col("sent")) & (pl.col("n") > 0)
    clean = pl.sum_horizontal("lost", "overwritten", "censored", "corrupted", "duplicated") == 0
    wrong = reliable.filter(~(kept & clean))
    assert wrong.is_empty(), wrong.select("cell", "edge", "n", "sent", "lost", "censored").rows()


@pytest.mark.parametrize("adapter", (*FLOORS, *MIDDLEWARE, *STACKED, *IN_PYTHON))
def test_every_way_that_the_adapter_declares(build: Path, tmp_path: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    sidecar = json.loads((adapter_library(adapter, build).parent / "adapter.json").read_text())
    abilities = sidecar["abilities"]
    matrix = {
        "adapter": [adapter],
        "payload": PAYLOADS,
        "type": [kind for kind in abilities["types"] if kind in LAGOMETERS_OWN],
        "reliability": abilities["reliability"],
        "placement": ["single-process" if sidecar["scope"] == "process" else "process-per-node"],
    }
    # A polled pipeline on two cores waits for its time slices and keeps no rate; a closed loop has none.
    # Where both processes poll, the middleware's own threads may get no slice of so short a trial.
    waiting = [dispatch for dispatch in abilities["dispatch"] if dispatch != "poll"]
    # Python takes milliseconds for a large message: on a busy machine it keeps a lower rate only, and a
    # relay may publish its first message after the window. Nothing received in four attempts still fails.
    in_python = adapter in IN_PYTHON
    pipeline = {"workload": ["pipeline-3"], "rate": ["20Hz" if in_python else "100Hz"], "dispatch": waiting}
    polled = {"workload": ["pingpong"], "dispatch": ["poll"]}
    nothing = ("nothing-received",)
    longer = {"duration": "300ms", "drain": "500ms"} if in_python else {}
    largest = sidecar["limits"]["payload_bytes_max"]
    large = largest is None or largest >= 102_400
    covered = set()
    for name, more, forgive, times in (
        ("waiting", pipeline, nothing if in_python else (), longer),
        ("polled", polled, nothing, {"drain": "300ms", **longer}),
    ):
        (tmp_path / name).mkdir()
        skip = UNWANTED if large else UNWANTED[:1]
        skip = [*skip, *half_of({**matrix, **more}, skip)]
        rows = run_cells(build, tmp_path / name, {**matrix, **more}, skip=skip, forgive=forgive, **times)
        reliable_rows_are_whole(rows)
        covered |= set(rows.select("type", "payload_bytes", "reliability", "dispatch").iter_rows())
    sizes = [("bytes", 64), ("bytes", 102_400 if large else 61_440), ("fixed", 64)]
    sizes += [("fixed", 65_536)] if large else []
    sizes = [size for size in sizes if size[0] in matrix["type"]]
    rest = list(itertools.product(abilities["reliability"], abilities["dispatch"]))
    whole = {(*size, *each) for size, each in itertools.product(sizes, rest)}
    assert covered <= whole
    if "LAGOMETER_LONG" in os.environ:
        assert covered == whole
    else:  # a half in which each size meets a reliability, and each of these a dispatch
        assert {(kind, size) for kind, size, *_ in covered} == set(sizes)
        assert {row[2:] for row in covered} == set(rest)


@pytest.mark.parametrize("adapter", (*FLOORS, *MIDDLEWARE, *STACKED, *IN_PYTHON))
def test_nodes_in_one_process(build: Path, tmp_path: Path, adapter: str) -> None:
    """Where a middleware delivers on the sender's own thread, a loop of callbacks must not lock up."""
    need(adapter)
    sidecar = json.loads((adapter_library(adapter, build).parent / "adapter.json").read_text())
    abilities = sidecar["abilities"]
    matrix = {
        "adapter": [adapter],
        "workload": ["pingpong", "pipeline-3"],
        "payload": ["64B"],
        "reliability": abilities["reliability"][-1:],
        "dispatch": [dispatch for dispatch in abilities["dispatch"] if dispatch != "poll"],
        "placement": ["single-process"],
    }
    rows = run_cells(build, tmp_path, matrix)
    reliable_rows_are_whole(rows)
    assert rows["cell"].n_unique() == 2 * len(matrix["dispatch"])


@pytest.mark.parametrize("adapter", ROUND_TRIPS)
def test_a_round_trip_at_a_rate_is_halved_without_the_echo(build: Path, tmp_path: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    sidecar = json.loads((adapter_library(adapter, build).parent / "adapter.json").read_text())
    abilities = sidecar["abilities"]
    of_any_size = "bytes" in abilities["types"]
    matrix = {
        "adapter": [adapter],
        "workload": ["roundtrip"],
        "payload": ["4B", "64B"] if of_any_size else ["64B"],
        "type": ["bytes" if of_any_size else "fixed"],
        "rate": ["20Hz"],
        "dispatch": [next(each for each in abilities["dispatch"] if each != "poll")],
        "placement": ["single-process" if sidecar["scope"] == "process" else "process-per-node"],
    }
    rows = run_cells(build, tmp_path, matrix, duration="600ms", drain="300ms")
    chains = rows.filter(pl.col("edge") == "round-trip")
    assert sorted(chains["payload_bytes"]) == ([4, 64] if of_any_size else [64])
    for row in chains.iter_rows(named=True):
        assert row["n"] >= 6
        assert 0 < 2 * row["half_round_trip_mean_ns"] < row["whole_mean_ns"]
