# SPDX-License-Identifier: Apache-2.0
"""The search for the highest sustained rate, against an adapter that drops what is above a set rate."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from campaign_support import lagometer, write_study
from needs import need

pytestmark = pytest.mark.usefixtures("namespaces")
LIMIT_HZ = 200.0
PRECISION = 0.2
SEARCH_S = 600.0  # some thirty trials, on a machine at work
ROUNDED = 0.999  # rates have four digits


@pytest.fixture(scope="module")
def namespaces() -> None:
    need("netns")


def search(folder: Path, *options: str) -> tuple[dict[str, Any], list[str]]:
    """One search of the only cell, in steps of a fifth: what it said of it, and its lines of progress."""
    folder.mkdir()
    study = write_study(
        folder,
        options={"faulty": {"over": "shm", "limit_rate_hz": LIMIT_HZ}},
        matrix={"adapter": "faulty", "workload": "pipeline-2", "rate": "1Hz"},
    )
    out = folder / "out"
    code, output, errors = lagometer(
        folder,
        *("search", str(study), "--out", str(out), "--json"),
        *("--precision", f"{100 * PRECISION:g}%", "--high", "4kHz", *options),
        seconds=SEARCH_S,
    )
    assert code == 0, errors
    said = json.loads(output)
    assert {**json.loads((out / "search.json").read_text()), "dir": str(out)} == said
    (cell,) = said["cells"]
    assert cell["cell"] == "faulty/pipeline-2"
    return cell, errors.splitlines()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str]]:
    """A search that begins at 100 Hz."""
    return search(tmp_path_factory.mktemp("search") / "first")


def test_the_limit_of_an_adapter_is_found(first: tuple[dict[str, Any], list[str]]) -> None:
    cell, progress = first
    assert cell["status"] in ("found", "below")  # a machine at work may sustain nothing
    assert len(progress) == len(cell["trials"])
    # What a bucket of two messages and 300 ms let pass above the limit.
    above = [trial for trial in cell["trials"] if trial["rate_hz"] > 1.2 * LIMIT_HZ]
    assert above
    assert not any(trial["sustained"] for trial in above)
    if cell["status"] == "found":
        assert cell["sustained_hz"] < cell["failed_hz"] <= (1.01 + PRECISION) * cell["sustained_hz"]
        assert cell["sustained_hz"] <= 1.2 * LIMIT_HZ
        assert cell["low_hz"] is None or cell["low_hz"] <= cell["sustained_hz"]
        assert cell["high_hz"] is None or cell["high_hz"] >= cell["failed_hz"]


def test_two_searches_agree_within_what_they_print(
    first: tuple[dict[str, Any], list[str]], tmp_path: Path
) -> None:
    """The second begins elsewhere, so it comes by other rates; each bracket lies in the other's interval."""
    one, other = first[0], search(tmp_path / "other", "--low", "78Hz")[0]
    tried = [{trial["rate_hz"] for trial in cell["trials"]} for cell in (one, other)]
    assert tried[0] != tried[1]
    for cell, beside in ((one, other), (other, one)):
        if cell["status"] != "found":
            continue  # a machine at work: its interval is open below, as it says
        low_hz, high_hz = beside["low_hz"] or 0.0, beside["high_hz"] or math.inf
        told = {name: (each["status"], each["trials"]) for name, each in (("one", one), ("other", other))}
        assert low_hz * ROUNDED <= cell["sustained_hz"] < cell["failed_hz"] <= high_hz / ROUNDED, told


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--low", "1Hz"], "messages"),
        (["--low", "200Hz", "--high", "100Hz"], "order"),
        (["--repeats", "2"], "even"),
        (["--loss", "much"], "--loss"),
        (["--precision", "0.01%"], "between"),
    ],
)
def test_what_cannot_be_searched_is_refused(options: list[str], word: str, tmp_path: Path) -> None:
    code, _, errors = lagometer(tmp_path, "search", str(write_study(tmp_path)), *options)
    assert code == 2
    assert word in errors
