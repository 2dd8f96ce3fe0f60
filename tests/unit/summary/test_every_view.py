# SPDX-License-Identifier: Apache-2.0
"""Every view shows the same: the page's data, `show`, `show --json` and the summary."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import polars as pl
import pytest
from pydantic import BaseModel
from rich.console import Console
from synthetic_campaign import Shape, with_estimates, write_campaign

import lagometer.report.build
import lagometer.summary.summarise
from lagometer.cli.show.command import as_json, render
from lagometer.cli.show.findings import mark
from lagometer.report.build import build_report
from lagometer.store.format import END_TO_END
from lagometer.store.reader import open_campaign
from lagometer.summary.data import Row, Summary
from lagometer.summary.findings.footnotes import footnotes
from lagometer.summary.intervals import ends_of
from lagometer.summary.summarise import summarise
from lagometer.units import duration_text, span_text

FIGURES = {"latency_p50_ns": "latency_p50", "latency_p99_ns": "latency_p99"}
LISTED = (
    *("fastest", "without_noise", "long_trials", "daemons", "queues", "saturated", "chains", "served"),
    *("joined", "bridges", "wire", "scheduling", "feasibility"),
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough trials and messages for intervals of p50 and p99; one trial of cyclonedds is disturbed."""
    shape = Shape(
        adapters=("shm", "cyclonedds"),
        payloads_bytes=(64,),
        reliabilities=("best_effort",),
        trials=12,
        messages=2400,
        control_blocks=3,
    )
    made: Path = with_estimates(write_campaign(tmp_path_factory.mktemp("views") / "campaign", shape))
    return made


def text_of(directory: Path) -> str:
    console = Console(width=300, record=True, no_color=True, highlight=False)
    with console.capture() as captured:
        render(directory, console)
    return captured.get()


def end_to_end(summary: Summary) -> list[Row]:
    return [row for row in summary.rows if row.trial is None and row.edge == END_TO_END]


def test_every_view_has_the_same_quantiles_and_intervals(directory: Path) -> None:
    campaign = open_campaign(directory)
    summary, report, told = summarise(campaign), build_report(campaign), as_json(campaign)
    rows = end_to_end(summary)
    assert rows and end_to_end(report) == rows
    assert told["over_trials"] == [row.model_dump() for row in rows]
    estimates = {(each["cell"], each["quantity"]): each for each in told["estimates"]}
    table = text_of(directory).partition("of all valid trials")[2].splitlines()
    for row in rows:
        line = next(line for line in table if line.split()[:1] == [row.cell])
        for figure, quantity in FIGURES.items():
            value, ends = getattr(row, figure), ends_of(row, figure)
            estimate = estimates[row.cell, quantity]
            assert ends is not None, "enough trials, so there is an interval to compare"
            assert (value, *ends) == (estimate["estimate_ns"], estimate["low_ns"], estimate["high_ns"])
            assert f" {duration_text(value)} " in line and f" {span_text(*ends)} " in f"{line} "
        cost = ends_of(row, "cpu_per_message_ns")
        assert cost is not None
        assert f" {duration_text(row.cpu_per_message_ns)} ({span_text(*cost)}) " in line


def test_every_view_has_the_same_lists(directory: Path) -> None:
    """Above all what noise did; how `show` prints that is in test_show_noise.py."""
    campaign = open_campaign(directory)
    summary, report, told = summarise(campaign), build_report(campaign), as_json(campaign)
    assert summary.without_noise and summary.control is not None and summary.control.spread is not None
    assert report.control == summary.control and told["control"] == summary.control.model_dump()
    for name in LISTED:
        listed = getattr(summary, name)
        assert getattr(report, name) == listed, name
        told_as = {"saturated": "saturation"}.get(name, name)
        assert told[told_as] == [each.model_dump() for each in listed], name
    spread = summary.control.spread
    first, last = duration_text(spread.p50_first_ns), duration_text(spread.p50_last_ns)
    assert f"{spread.blocks} blocks, {first} in the first and {last} in the last" in text_of(directory)


def made_up(kind: Any, cell: str) -> Any:
    """A value of a field's type: models with each field filled, everything of one cell."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return kind(**{name: cell if name == "cell" else made_up(f.annotation, cell) for name, f in fields})
    if get_origin(kind) in (Union, UnionType):
        return made_up(get_args(kind)[0], cell)
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) is list:
        return [made_up(get_args(kind)[0], cell)]
    if get_origin(kind) is tuple:
        return tuple(made_up(each, cell) for each in get_args(kind) if each is not ...)
    if get_origin(kind) is dict:
        return {made_up(get_args(kind)[0], cell): made_up(get_args(kind)[1], cell)}
    return {bool: True, int: 3, float: 0.25, str: "made up"}.get(kind)


@pytest.mark.parametrize("name", LISTED)
def test_no_view_leaves_out_a_list_that_has_something(
    directory: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also those that this campaign has nothing for."""
    (of,) = get_args(Summary.model_fields[name].annotation)
    campaign = open_campaign(directory)
    entry = made_up(of, summarise(campaign).cells[0].id)

    def with_entry(*arguments: Any, **more: Any) -> Summary:
        return summarise(*arguments, **more).model_copy(update={name: [entry]})

    monkeypatch.setattr(lagometer.summary.summarise, "summarise", with_entry)
    monkeypatch.setattr(lagometer.report.build, "summarise", with_entry)
    assert getattr(build_report(campaign), name) == [entry]
    told_as = {"saturated": "saturation"}.get(name, name)
    assert as_json(campaign)[told_as] == [entry.model_dump()]


def test_every_view_has_the_same_findings_cells_and_tables(tmp_path: Path) -> None:
    """The page's data, `show`, `show --json` and the summary: the same findings, cells and figures, in the
    same order.
    """
    shape = Shape(adapters=("udp", "shm"), payloads_bytes=(64, 1024), trials=2, messages=200)
    directory = write_campaign(tmp_path, shape)
    manifest = json.loads((directory / "manifest.json").read_text())
    trap = {
        "kind": "a-trap",
        "when": ["factor.adapter = udp"],
        "what": "w",
        "number": "{factor.payload_bytes}",
    }
    manifest["traps"] = {"udp": [trap | {"fix": "f", "source": "s"}]}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    campaign = open_campaign(directory)
    summary, report, told = summarise(campaign), build_report(campaign), as_json(campaign)
    assert [each.model_dump() for each in summary.findings] == told["findings"]
    assert report.findings == summary.findings and len(summary.findings) >= 4
    assert [cell.id for cell in report.cells] == [cell.id for cell in summary.cells]
    assert list(dict.fromkeys(row["cell"] for row in told["rows"])) == [
        cell.id for cell in summary.cells if any(row.cell == cell.id for row in summary.rows)
    ]
    assert told["glance"] == (summary.glance.model_dump() if summary.glance else None)
    assert report.glance == summary.glance
    for name in ("deadlines", "interference"):
        assert told[name] == [each.model_dump() for each in getattr(report, name) if _end_to_end(each)]
    console = Console(width=200, record=True, no_color=True, highlight=False)
    with console.capture() as captured:
        render(directory, console)
    text = captured.get()
    places = [text.index(f"      {each.cell} (") for each in summary.findings if each.kind == "a-trap"][:3]
    assert places == sorted(places)
    assert "a-trap: w" in text and "fix: f" in text and "source: s" in text
    notes = footnotes(summary.findings)
    said = list(dict.fromkeys((each.kind, each.what, each.fix) for each in summary.findings))
    footnote = {key: number for number, key in enumerate(said, 1)}
    assert all(each.footnote == footnote[each.kind, each.what, each.fix] for each in summary.findings)
    assert _listed(text) == len(said) > 1
    assert [row["findings"] for row in told["rows"]] == [notes.get(row["cell"], []) for row in told["rows"]]
    for row in told["rows"]:
        assert not row["valid"] or f" {row['cell']}{mark(row['findings'])} " in text


def noted(directory: Path) -> Path:
    """Gives the trials warnings, ours and others, and noise; the last one failed already."""
    cells = pl.read_parquet(directory / "cells.parquet")
    warnings = {0: ["lost: a→b, 3 messages", "halved: there and back"], 4: ["lost: a→b, 1 messages"]}
    warnings |= {2: ["link-late: 3 %", "no code word: of ours"], 3: ["link-late: 7 %"]}
    noise = {3: ["others: 12 %"], 4: ["others: 30 %"]}
    rows = [
        row | {"warnings": warnings.get(row["trial"], []), "noise": noise.get(row["trial"], [])}
        for row in cells.to_dicts()
    ]
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(directory / "cells.parquet")
    return directory


def test_every_view_has_the_same_warnings_noise_and_failures(tmp_path: Path) -> None:
    """A warning of a failed trial counts; its noise does not, since no figure includes that trial."""
    shape = Shape(
        adapters=("shm",), payloads_bytes=(64,), reliabilities=("reliable",), trials=5, messages=200
    )
    directory = noted(write_campaign(tmp_path, shape))
    campaign = open_campaign(directory)
    summary, report, told = summarise(campaign), build_report(campaign), as_json(campaign)
    assert report.reasons == summary.reasons
    counted = {(each.kind, each.word): (each.meaning, each.trials) for each in report.reasons}
    assert counted["warning", "lost"][1] == 2
    assert counted["warning", "halved"] == ("there and back", 1)
    assert counted["warning", "link-late"] == ("3 % (and another text)", 2)
    assert counted["warning", ""] == ("no code word: of ours", 1)
    assert counted["noise", "others"][1] == report.counts.trials_noisy == 1
    text = text_of(directory)
    assert text.partition("\nwarnings\n")[2].partition("\n\n")[0].splitlines() == [
        "  link-late: 3 % (and another text) (2 trials)",
        "  lost (2 trials)",
        "  no code word: of ours (1 trial)",
        "  halved: there and back (1 trial)",
    ]
    assert "noisy 1 of 4 trials (others 1)" in text
    failed = {(row["cell"], row["trial"]): row["reasons"] for row in told["rows"] if not row["valid"]}
    assert failed == {(each.cell, each.trial): each.reasons for each in report.failures}
    assert told["failed"] == report.counts.trials_failed == len(failed) == 1
    assert told["excluded"] == [each.model_dump() for each in report.exclusions] != []


def _listed(text: str) -> int:
    """How many findings are listed in the terminal."""
    return len(re.findall(r"^  \[\d+\] \S+: ", text, re.MULTILINE))


def _end_to_end(each: object) -> bool:
    return getattr(each, "edge", "end-to-end") == "end-to-end"
