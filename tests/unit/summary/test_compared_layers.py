# SPDX-License-Identifier: Apache-2.0
"""In which layers two cells differ: in `compare` and `explain`, in the terminal and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from way_campaign import CELL, FIRST, IN_NODE_NS, SECOND, Made, write_ways

from lagometer.cli import compare, explain
from lagometer.report.comparison import build_comparison
from lagometer.stats.compare.comparable import Choice, compare_campaigns
from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary.compared_layers import compared_layers

Folders = tuple[Path, Path]
MEAN_NS = {"a": 20_000, "b": 40_000}  # on the first edge; on the second one it is half of that


def made(mean_ns: int) -> Made:
    """Six trials, each a little slower than the one before."""
    return Made([[mean_ns + 40 * place + 200 * trial for place in range(-20, 21)] for trial in range(-3, 4)])


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    a, b = (write_ways(tmp_path / side, made(mean_ns)) for side, mean_ns in MEAN_NS.items())
    return a, b


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_layers_of_both_cells_add_up_to_their_latencies(folders: Folders) -> None:
    a, b = map(open_campaign, folders)
    both = compared_layers(compare_campaigns(a, b), a, b)[CELL, CELL]
    assert both.of == "chain"
    assert [change.name for change in both.layers[-2:]] == ["computation", "unattributed"]
    transport = next(change for change in both.layers if change.name == "transport")
    assert (transport.a_ns, transport.b_ns) == pytest.approx((15_000, 30_000), rel=1e-3)
    assert sum(change.a_ns for change in both.layers) == pytest.approx(30_000 + IN_NODE_NS)
    assert sum(change.b_ns for change in both.layers) == pytest.approx(60_000 + IN_NODE_NS)
    assert [change.name for change in both.largest[:2]] == ["transport", "wake"]
    assert both.unattributed_shares() == pytest.approx((1_800 / 33_000, 3_600 / 63_000), rel=1e-2)


def test_compare_has_them_in_every_form(folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    compare.carry_out(*folders, Choice(), strict=False, as_json=True)
    (cell,) = told(capsys)["cells"]
    layers = {layer["name"]: layer for layer in cell["layers"]["layers"]}
    assert layers["transport"]["difference_ns"] == pytest.approx(15_000, rel=1e-3)
    assert cell["layers"]["unattributed_share_b"] == pytest.approx(3_600 / 63_000, rel=1e-2)
    compare.carry_out(*folders, Choice(), strict=False, as_json=False)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "layers (means)" in line]
    assert line.strip() == (
        "layers (means) transport 15.0 µs → 30.0 µs, wake 9.00 µs → 18.0 µs, send path 3.00 µs → 6.00 µs, "
        "unattributed 5.5% → 5.7%"
    )


def test_the_page_of_a_comparison_has_them(folders: Folders) -> None:
    a, b = map(open_campaign, folders)
    (cell,) = build_comparison(compare_campaigns(a, b), a, b).cells
    both = compared_layers(compare_campaigns(a, b), a, b)[CELL, CELL]
    shown = [(layer.name, layer.a_ns, layer.b_ns) for layer in cell.layers]
    assert shown == [(change.name, change.a_ns, change.b_ns) for change in both.layers]
    assert cell.layers_of == "chain"
    (other,) = build_comparison(compare_campaigns(a, a), a, a).cells
    assert [layer.a_ns for layer in other.layers] == [layer.b_ns for layer in other.layers]


def test_explain_cuts_the_way_into_layers(folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = folders
    explain.command(f"{a}:{CELL}", f"{b}:{CELL}", json=True)
    found = told(capsys)
    parts = {(part["edge"], part["what"]): part for part in found["parts"]}
    assert parts[FIRST, "transport"]["difference_ns"] == pytest.approx(10_000, rel=1e-3)
    assert parts[SECOND, "transport"]["difference_ns"] == pytest.approx(5_000, rel=1e-3)
    assert parts[FIRST, "unattributed"]["a_ns"] == pytest.approx(1_200, rel=1e-2)
    assert found["parts"][0]["what"] == "transport"  # the largest first
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(1)
    assert sum(part["a_ns"] for part in found["parts"]) == pytest.approx(30_000 + IN_NODE_NS, rel=1e-3)
    assert (found["scheduling_a"], found["scheduling_b"]) == ([], [])
    explain.command(f"{a}:{CELL}", f"{b}:{CELL}")
    assert f"{FIRST}: transport" in capsys.readouterr().out


def test_layers_on_one_side_only_are_named_and_not_compared(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its latencies contain what the probes cost."""
    shutil.rmtree(folders[1] / form.LAYER_FILES)
    a, b = map(open_campaign, folders)
    comparison = compare_campaigns(a, b)
    note = "layers were measured in A only: its latencies contain what that costs"
    assert note in comparison.cells[0].notes
    assert note.replace("A only", "B only") in compare_campaigns(b, a).cells[0].notes
    assert compared_layers(comparison, a, b) == {}
    explain.command(f"{folders[0]}:{CELL}", f"{folders[1]}:{CELL}")
    said = capsys.readouterr().out
    assert note in said and f"{FIRST}: all of it" in said
    compare.carry_out(*folders, Choice(), strict=False, as_json=True)
    assert told(capsys)["cells"][0]["layers"] is None
    assert not [text for text in compare_campaigns(a, a).cells[0].notes if "only" in text]
