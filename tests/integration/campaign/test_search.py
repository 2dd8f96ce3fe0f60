# SPDX-License-Identifier: Apache-2.0
"""The search for the highest sustained rate, against an adapter that drops what is above a set rate."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from campaign_support import lagometer, write_study
from needs import need

from lagometer.units import parse_rate_hz

pytestmark = pytest.mark.usefixtures("namespaces")
CELL = "faulty/pipeline-2"
# So low that a machine at work keeps the rate, and so many messages at once that a sender that is late by up
# to 200 ms, and then sends all that are due, loses none of them.
LIMIT_HZ = 40.0
BURST = 8
DURATION_S, WARMUP_S = 0.7, 0.3
# The highest rate at which a trial loses none: the burst, too, is let pass.
BORDER_HZ = LIMIT_HZ + BURST / (DURATION_S + WARMUP_S)
PRECISION = 0.1
SEARCH_S = 600.0  # some twenty trials, on a machine at work
ROUNDED = 0.999  # rates have four digits
# A search is repeated where, of rates below the limit, trials were not sustained for these reasons alone: the
# machine stood still. What is lost below the limit, or sustained above it, is never forgiven.
ATTEMPTS = 3
OF_THE_MACHINE = ("rate-missed", "response times grow")


@dataclass(frozen=True)
class Search:
    """One search. cell: what search.json says of its only cell; output: what it printed; progress: lines of
    standard error."""

    cell: dict[str, Any]
    output: str
    progress: list[str]

    def brackets_the_limit(self) -> bool:
        """Whether the bracket is found, and where the limit is."""
        cell = self.cell
        return (
            cell["status"] == "found"
            and LIMIT_HZ / (1.0 + PRECISION) * ROUNDED <= cell["sustained_hz"] <= BORDER_HZ
            and LIMIT_HZ < cell["failed_hz"] <= (1.0 + PRECISION) * BORDER_HZ / ROUNDED
        )

    def was_disturbed(self) -> bool:
        """Whether the machine, and nothing else, spoke against rates that the adapter lets pass."""
        below = [trial for trial in self.cell["trials"] if trial["rate_hz"] <= LIMIT_HZ]
        against = [trial["why"] for trial in below if trial["sustained"] is False]
        return bool(against) and all(why.startswith(OF_THE_MACHINE) for why in against)


@pytest.fixture(scope="module")
def namespaces() -> None:
    need("netns")


def search(folder: Path, *options: str) -> Search:
    """A search of the only cell, in steps of a tenth; another one if the machine stood still."""
    folder.mkdir()
    for attempt in range(ATTEMPTS):
        found = search_once(folder / str(attempt), *options)
        if found.brackets_the_limit() or not found.was_disturbed():
            break
    return found


def search_once(folder: Path, *options: str) -> Search:
    folder.mkdir()
    study = write_study(
        folder,
        duration=f"{1000 * DURATION_S:g}ms",
        warmup=f"{1000 * WARMUP_S:g}ms",
        drain="200ms",
        options={"faulty": {"over": "shm", "limit_rate_hz": LIMIT_HZ, "limit_burst": BURST}},
        matrix={"adapter": "faulty", "workload": "pipeline-2", "rate": "1Hz"},
    )
    out = folder / "out"
    code, output, errors = lagometer(
        folder,
        *("search", str(study), "--out", str(out)),
        *("--precision", f"{100 * PRECISION:g}%", "--high", "4kHz", *options),
        seconds=SEARCH_S,
    )
    assert code == 0, errors
    said = json.loads((out / "search.json").read_text())
    if "--json" in options:
        assert json.loads(output) == {"dir": str(out), **said}
    (cell,) = said["cells"]
    assert cell["cell"] == CELL
    return Search(cell, output, errors.splitlines())


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """A search that begins at 30 Hz."""
    return search(tmp_path_factory.mktemp("search") / "first", "--low", "30Hz", "--json")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """One that begins elsewhere, so it comes by other rates; it prints for people."""
    return search(tmp_path_factory.mktemp("search") / "other", "--low", "33Hz")


@pytest.mark.parametrize("which", ["first", "other"])
def test_the_limit_of_an_adapter_is_found(which: str, request: pytest.FixtureRequest) -> None:
    found: Search = request.getfixturevalue(which)
    cell = found.cell
    assert found.brackets_the_limit(), cell
    assert cell["sustained_hz"] < cell["failed_hz"] <= (1.0 + PRECISION) * cell["sustained_hz"] / ROUNDED
    assert len(found.progress) == len(cell["trials"])
    above = [trial for trial in cell["trials"] if trial["rate_hz"] > BORDER_HZ]
    assert above
    assert not any(trial["sustained"] for trial in above)
    assert any("messages did not arrive" in trial["why"] for trial in above)


@pytest.mark.parametrize("which", ["first", "other"])
def test_the_interval_reaches_beyond_the_bracket(which: str, request: pytest.FixtureRequest) -> None:
    """At its ends all trials agree."""
    cell = request.getfixturevalue(which).cell
    said: dict[float, list[bool]] = {}
    for trial in cell["trials"]:
        if trial["sustained"] is not None:
            said.setdefault(trial["rate_hz"], []).append(trial["sustained"])
    assert cell["high_hz"] > cell["failed_hz"]
    assert said[cell["high_hz"]] == [False] * 3
    if cell["low_hz"] is None:  # only where the machine stood still is there no such rate
        below = [trial["why"] for trial in cell["trials"] if trial["rate_hz"] <= LIMIT_HZ]
        assert any(why.startswith(OF_THE_MACHINE) for why in below), cell
        return
    assert cell["low_hz"] < cell["sustained_hz"]
    assert said[cell["low_hz"]] == [True] * 3


def test_two_searches_agree_within_what_they_print(first: Search, other: Search) -> None:
    """The bracket of each lies in the other's interval."""
    tried = [{trial["rate_hz"] for trial in each.cell["trials"]} for each in (first, other)]
    assert tried[0] != tried[1]
    for cell, beside in ((first.cell, other.cell), (other.cell, first.cell)):
        assert cell["status"] == beside["status"] == "found"
        low_hz, high_hz = beside["low_hz"] or 0.0, beside["high_hz"] or math.inf
        assert low_hz * ROUNDED <= cell["sustained_hz"] < cell["failed_hz"] <= high_hz / ROUNDED, (
            first.cell,
            other.cell,
        )


def test_the_terminal_shows_bracket_and_interval(other: Search) -> None:
    line, place = other.output.splitlines()
    assert place.endswith("/out/search.json")
    words = r"sustained (.+?), not (.+?); interval (.+?) to (.+?); (\d+) trials"
    match = re.fullmatch(rf"{re.escape(CELL)}: found: {words}", line)
    assert match is not None, line
    shown = [None if text == "(none)" else parse_rate_hz(text) for text in match.groups()[:4]]
    assert shown == [other.cell[key] for key in ("sustained_hz", "failed_hz", "low_hz", "high_hz")]
    assert int(match[5]) == len(other.cell["trials"])


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
