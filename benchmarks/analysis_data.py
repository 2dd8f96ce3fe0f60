# SPDX-License-Identifier: Apache-2.0
"""Makes a campaign of a given size for `make bench-analysis`: the files that `lagometer run` would write.

Times are random, not measured: a lognormal body with a spike at a fixed spacing and rare stalls, few lost
messages, CPUs that change now and then. Everything else uses the same code as a real campaign.
"""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import lagometer
from lagometer.stats.cell.campaign_estimates import make_estimates
from lagometer.stats.trial.estimate import summarise
from lagometer.store import format as form
from lagometer.store.environment import collect
from lagometer.store.facts import EdgeSpec, TrialFacts, WriterFacts
from lagometer.store.reader import open_campaign

EDGES = ("source→sink", form.END_TO_END)
RATE_HZ = 10_000
PERIOD_NS = 1_000_000_000 // RATE_HZ
BEGIN_NS = 5_000_000_000_000
WARM_UP_MESSAGES = 100
PAYLOAD_BYTES_MIN = 64
STARTED = "2025-01-02T03:04:05+00:00"

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """How `rows` samples are distributed: cells, and trials per cell (one file per trial)."""

    name: str
    rows: int
    cells: int
    trials: int

    @property
    def messages(self) -> int:
        """The messages of one trial; each is a row on both edges."""
        return -(-self.rows // (self.cells * self.trials * len(EDGES)))

    def ids(self) -> list[str]:
        """The cells' ids."""
        return [f"udp/pipeline-2/{PAYLOAD_BYTES_MIN + number}B/{RATE_HZ}Hz" for number in range(self.cells)]


def write_campaign(directory: Path, layout: Layout, seed: int = 1) -> Path:
    """Writes the campaign into `directory` and returns it.

    Other processes make the samples, so that this one stays small: a child's peak resident size starts at its
    parent's.
    """
    directory.mkdir(parents=True)
    keys = [(cell, trial) for cell in layout.ids() for trial in range(layout.trials)]
    rows: list[pl.DataFrame] = []
    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool,
        (directory / form.JOURNAL).open("w", encoding="utf-8") as journal,
    ):
        made = pool.map(
            partial(_write_trial, directory, layout, seed), range(len(keys)), chunksize=-(-len(keys) // 200)
        )
        for (cell, trial), written in zip(keys, made, strict=True):
            rows.append(written)
            journal.write(json.dumps(_entry(cell, trial, written), ensure_ascii=False) + "\n")
    form.write_cells(pl.concat(rows), directory / form.CELLS)
    form.write_json_atomic(collect(), directory / form.ENVIRONMENT)
    form.write_json_atomic(_manifest(layout), directory / form.MANIFEST)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_write_estimates, directory).result()
    return directory


def _write_estimates(directory: Path) -> None:
    """The estimates, which `lagometer run` writes last; without them each report would compute them again."""
    form.write_estimates(make_estimates(open_campaign(directory)), directory / form.ESTIMATES)


def _write_trial(directory: Path, layout: Layout, seed: int, number: int) -> pl.DataFrame:
    """Writes one trial's samples; returns its rows of cells.parquet."""
    place, trial = divmod(number, layout.trials)
    cell, payload_bytes = layout.ids()[place], PAYLOAD_BYTES_MIN + place
    samples = _samples(np.random.default_rng([seed, number]), layout.messages, payload_bytes)
    path = directory / form.SAMPLES / cell / f"{trial}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    form.write_samples(samples, path)
    return summarise(samples, _facts(cell, trial, layout.messages, payload_bytes))


def _samples(generator: np.random.Generator, messages: int, payload_bytes: int) -> pl.DataFrame:
    """Both edges of one trial; in a pipeline of two nodes, end-to-end equals the edge."""
    intended = BEGIN_NS + np.arange(messages, dtype=np.int64) * PERIOD_NS
    publish = intended + generator.integers(1_000, 9_000, messages)
    latency = (20_000 * generator.lognormal(0.0, 0.25, messages)).astype(np.int64)
    latency[:: RATE_HZ // 4] *= 3
    stalls = generator.random(messages) < 0.0005
    latency[stalls] += generator.integers(500_000, 4_000_000, int(stalls.sum()))
    taken = publish + latency
    lost = generator.random(messages) < 0.0002
    lost[-1] = False  # a later message was taken, so the others are lost, not censored
    phase = np.where(np.arange(messages) < min(WARM_UP_MESSAGES, messages // 10), "warm-up", "measure")
    edge = pl.DataFrame(
        {
            "sequence": np.arange(messages, dtype=np.uint64),
            "intended_ns": intended,
            "publish_ns": publish,
            "published_ns": publish + generator.integers(2_000, 9_000, messages),
            "woken_ns": _unless(lost, taken - generator.integers(500, 2_000, messages)),
            "taken_ns": _unless(lost, taken),
            "handled_ns": _unless(lost, taken + generator.integers(100, 2_000, messages)),
            "cpu_publish": _cpus(generator, messages),
            "cpu_published": _cpus(generator, messages),
            "cpu_taken": _cpus(generator, messages),
            "payload_bytes": np.full(messages, payload_bytes, dtype=np.uint32),
            "phase": pl.Series(phase, dtype=pl.Categorical()),
            "outcome": pl.Series(np.where(lost, "lost", "delivered"), dtype=pl.Categorical()),
            "corrupted": np.zeros(messages, dtype=np.bool_),
            "reordered": np.zeros(messages, dtype=np.bool_),
            "resent": np.zeros(messages, dtype=np.bool_),
        }
    )
    both = pl.concat(edge.with_columns(pl.lit(name, dtype=pl.Categorical()).alias("edge")) for name in EDGES)
    absent = {name: dtype for name, dtype in form.SAMPLES_SCHEMA.items() if name not in both.columns}
    both = both.with_columns(pl.lit(None, dtype=dtype).alias(name) for name, dtype in absent.items())
    return both.select(*form.SAMPLES_SCHEMA).cast(pl.Schema(form.SAMPLES_SCHEMA))


def _unless(lost: npt.NDArray[np.bool_], values: Numbers) -> pl.Series:
    return pl.select(pl.when(pl.Series(~lost)).then(pl.Series(values))).to_series()


def _cpus(generator: np.random.Generator, messages: int) -> npt.NDArray[np.uint16]:
    return (np.cumsum(generator.random(messages) < 0.0001) % 2).astype(np.uint16)


def _facts(cell: str, trial: int, messages: int, payload_bytes: int) -> TrialFacts:
    warm_up = min(WARM_UP_MESSAGES, messages // 10)
    edge = EdgeSpec(EDGES[0], 0, "source", "sink", 1, 0, "best_effort", "keep_last", payload_bytes)
    end_ns = BEGIN_NS + messages * PERIOD_NS
    return TrialFacts(
        cell=cell,
        trial=trial,
        factors=_factors(payload_bytes),
        edges=(edge,),
        source_streams=frozenset({0}),
        sink_edges=frozenset({edge.name}),
        closed_loop=False,
        begin_ns=BEGIN_NS,
        measure_begin_ns=BEGIN_NS + warm_up * PERIOD_NS,
        measure_end_ns=end_ns,
        drain_end_ns=end_ns + 10 * PERIOD_NS,
        cpu_ns=messages * 30_000,
        overhead_s=0.03,
        started=STARTED,
        writers=(WriterFacts(0, 0, messages, 0, 0, False, "copied", {}, PERIOD_NS),),
    )


def _factors(payload_bytes: int) -> dict[str, Any]:
    known = {"adapter": "udp", "workload": "pipeline-2", "payload_bytes": payload_bytes}
    return {**dict.fromkeys(form.FACTOR_TYPES), **known, "rate_hz": float(RATE_HZ)}


def _entry(cell: str, trial: int, rows: pl.DataFrame) -> dict[str, Any]:
    return {
        "cell": cell,
        "trial": trial,
        "valid": bool(rows["valid"].all()),
        "reasons": rows["reasons"][0].to_list(),
        "warnings": rows["warnings"][0].to_list(),
        "started": STARTED,
        "overhead_s": 0.03,
        "phases_s": {},
        "seconds": 1.0,
        "path": f"{form.SAMPLES}/{cell}/{trial}.parquet",
        "adapters": [],
        "rows": rows.to_dicts(),
    }


def _manifest(layout: Layout) -> dict[str, Any]:
    return {
        "format_version": form.FORMAT_VERSION,
        "name": layout.name,
        "created": STARTED,
        "finished": STARTED,
        "state": "finished",
        "study": {"name": layout.name, "trials": layout.trials},
        "study_text": "",
        "study_path": None,
        "seed": 1,
        "lagometer_version": lagometer.__version__,
        "versions": {},
        "settings": {},
        "cells": [
            {"id": cell, "factors": _factors(PAYLOAD_BYTES_MIN + number), "trials": layout.trials}
            for number, cell in enumerate(layout.ids())
        ],
        "excluded": [],
    }
