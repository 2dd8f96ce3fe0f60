# SPDX-License-Identifier: Apache-2.0
"""Schedules, distributions of work and contents, from a study through real workers into the samples."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, write_study
from needs import need

from lagometer.store.reader import open_campaign

pytestmark = pytest.mark.usefixtures("namespaces")
MILLISECOND_NS = 1_000_000


@pytest.fixture(scope="module")
def namespaces() -> None:
    need("netns")


def measured(folder: Path, **factors: Any) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The samples of one trial at 10 Hz for 600 ms, and what the source said of its writer."""
    matrix = {"adapter": "shm", "workload": "pipeline-3", "rate": "10Hz", **factors}
    study = write_study(folder, duration="600ms", warmup="100ms", matrix=matrix)
    code, output, errors = lagometer(
        folder, "run", str(study), "--out", str(folder / "out"), "--json", "--no-report"
    )
    failures = [reason for each in json.loads(output)["failures"] for reason in each["reasons"]]
    # On a machine at work sources may be late; nothing else may go wrong.
    assert all(reason.startswith(("rate-missed", "nothing-received")) for reason in failures), errors
    assert code in (0, 3)
    campaign = open_campaign(folder / "out")
    (cell,) = campaign.cells["cell"].unique()
    samples = pl.read_parquet(folder / "out" / "samples" / cell / "0.parquet")
    (entry,) = journal(folder / "out")
    (writer,) = entry["counters"]["source"]["writers"]
    return samples.filter(pl.col("edge") == "source→relay-1").sort("sequence"), writer


def intended_ns(samples: pl.DataFrame) -> list[int]:
    times = samples["intended_ns"].to_list()
    return [time_ns - times[0] for time_ns in times]


def test_bursts_are_due_at_once(tmp_path: Path) -> None:
    samples, writer = measured(tmp_path, schedule="burst-3", late="skip")
    numbers = samples["sequence"].to_list()
    assert intended_ns(samples) == [number // 3 * 300 * MILLISECOND_NS for number in numbers]
    assert writer["due"] == 6


def test_a_ramp_gets_denser(tmp_path: Path) -> None:
    samples, writer = measured(tmp_path, schedule="ramp-40Hz")
    times_ns = intended_ns(samples)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times_ns)]
    assert writer["due"] == 15
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] <= 100 * MILLISECOND_NS
    assert gaps[-1] < 30 * MILLISECOND_NS


def test_recorded_intervals_are_kept_to_the_nanosecond(tmp_path: Path) -> None:
    (tmp_path / "times.ns").write_text("50000001\n70000002\n")
    matrix = {"adapter": "shm", "workload": "pipeline-3", "schedule": "recorded-times.ns", "rate": None}
    matrix.pop("rate")
    study = write_study(tmp_path, duration="600ms", warmup="100ms", matrix=matrix)
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(tmp_path / "out"), "--no-report")
    assert code in (0, 3), errors
    samples = pl.read_parquet(tmp_path / "out" / "samples" / "shm/pipeline-3/recorded-times" / "0.parquet")
    first = samples.filter(pl.col("edge") == "source→relay-1").sort("sequence")
    assert intended_ns(first)[:4] == [0, 50_000_001, 120_000_003, 170_000_004]
    manifest = open_campaign(tmp_path / "out").manifest
    assert manifest["study"]["recordings"]["times"]["mean_ns"] == 60_000_001.5


def test_poisson_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    runs = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        samples, writer = measured(tmp_path / name, schedule="poisson", content="random")
        runs.append((intended_ns(samples)[:3], writer["due"]))
        assert not samples["corrupted"].any()
    assert runs[0] == runs[1]


def test_work_is_drawn(tmp_path: Path) -> None:
    samples, _ = measured(tmp_path, work="busy-2ms", work_spread="lognormal-1", rate="20Hz", payload="1KB")
    busy = samples.filter(pl.col("handled_ns").is_not_null())
    times_ns = (busy["handled_ns"] - busy["taken_ns"]).to_list()
    assert len(set(times_ns)) == len(times_ns) > 0
    assert min(times_ns) > 0
