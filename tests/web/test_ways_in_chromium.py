# SPDX-License-Identifier: Apache-2.0
"""The time lines of single messages in a real browser, with a keyboard, wide and narrow."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, node
from needs import require
from way_campaign import CALLS, CELL, STATES, Made, whole_ns, write_ways

from lagometer.report import page

TRIALS = [[20_000 + 1000 * place for place in range(21)]]
PLAIN = "udp/pipeline-3/64B"


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    runtime = node()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    need = partial(require, "chromium")
    need(browser is not None, "the browser chromium")
    need(runtime is not None, "the program node")
    need((ROOT / "web" / "node_modules" / "playwright-core").is_dir(), "web/node_modules (npm ci in web/)")
    need(page.BUNDLE.is_file(), "the page's bundle (npm run build in web/)")
    place = tmp_path_factory.mktemp("ways")
    made = Made(TRIALS, timelines=True), Made(TRIALS, layers=False, cell=PLAIN)
    report = page.write_report(write_ways(place, *made))
    script = Path(__file__).with_name("observe_ways.mjs")
    given = (runtime, script, ROOT / "web", report, browser, place / "browser")
    done = subprocess.run(
        [str(each) for each in given], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    observed: dict[str, Any] = json.loads(done.stdout)
    return observed


def test_the_page_fits_and_fails_nowhere(ways: dict[str, Any]) -> None:
    assert ways["errors"] == []
    assert ways["overflow"] == {"1280": 0, "400": 0}
    assert ways["cells"] == [CELL, PLAIN]


def test_each_message_has_its_bars_rows_and_table(ways: dict[str, Any]) -> None:
    messages = ways["messages"]
    assert [each["latency"] for each in messages] == [
        whole_ns(each) for each in (40_000, 39_000, 38_000, 30_000)
    ]
    assert [each["chosen"] for each in messages] == ["slowest"] * 3 + ["median"]
    for each in messages:
        assert each["bars"] == 11 == len(each["table"])
        assert each["widths"] == pytest.approx(100, abs=0.1)  # per cent: the stays are the whole
        assert each["rows"] == [
            "source · node:source 5",
            "relay · recvUC 6",
            "relay · node:relay 7",
            "sink · recvUC 8",
            "sink · node:sink 9",
        ]
        assert "5 threads" in each["label"] and "unattributed" in each["label"]
    first = messages[0]["table"][1]
    assert (first[0], first[4], first[5]) == ("transport", "source · node:source 5", "relay · recvUC 6")


def test_calls_and_states_are_below_the_bars_and_in_tables(ways: dict[str, Any]) -> None:
    for each in ways["messages"]:
        assert each["calls"] == len(CALLS)
        assert each["tables"] == [11, len(CALLS), len(STATES)]
    slowest = ways["messages"][0]
    expected = [(end - begin) * 40 / slowest["latency"] for *_, begin, end, _, _ in STATES]
    assert slowest["states"] == pytest.approx([100 * share for share in expected], abs=0.1)
    assert ways["pointed"].startswith("waiting for CPU 0: ")
    assert "meanwhile hog for" in ways["pointed"]


def test_layers_are_stacked_to_the_mean_and_the_unattributed_is_shown(ways: dict[str, Any]) -> None:
    (stacked,) = ways["stacked"]
    assert stacked["cell"] == CELL
    assert sum(stacked["layers"].values()) == pytest.approx(100, abs=0.1)
    assert stacked["layers"]["transport"] == pytest.approx(100 * 22_500 / whole_ns(30_000), abs=0.1)
    assert stacked["layers"]["unattributed"] > 0
    assert "unattributed. To halve the mean of" in stacked["said"]


@pytest.mark.parametrize("papers", ["categories", "breakdown"])
def test_the_categories_of_papers_are_stacked_to_the_same_mean(ways: dict[str, Any], papers: str) -> None:
    (stacked,) = ways[papers]
    assert sum(stacked["layers"].values()) == pytest.approx(100, abs=0.1)
    layers = ways["stacked"][0]["layers"]
    of_dds = sum(layers[name] for name in ("send_path", "transport", "take"))
    assert stacked["layers"]["dds"] == pytest.approx(of_dds, abs=0.1)
    assert stacked["layers"]["unattributed"] == pytest.approx(layers["unattributed"])
    said = {"categories": "no stamps of ROS 2", "breakdown": "they are in DDS"}
    assert said[papers] in stacked["said"]


def test_arrow_keys_go_from_stay_to_stay(ways: dict[str, Any]) -> None:
    assert ways["said"].startswith("transport: ") and "to relay · recvUC 6" in ways["said"]
    assert ways["saidBefore"].startswith("send path: ")


def test_another_cell_is_shown_when_it_is_chosen(ways: dict[str, Any]) -> None:
    assert ways["plain"] == ["communication", "computation", "communication"]
