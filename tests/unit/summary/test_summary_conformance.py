# SPDX-License-Identifier: Apache-2.0
"""The conformance matrix in a report: that of the campaign's folder, if it has one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lagometer.conformance.findings import AdapterReport, Result
from lagometer.conformance.matrix import document
from lagometer.report.build import build_report
from lagometer.report.data import Report
from lagometer.store.format import CONFORMANCE
from lagometer.store.reader import open_campaign

ROOT = Path(__file__).parents[3]
from synthetic_campaign import Shape, write_campaign  # noqa: E402


def report_with(folder: Path, text: str | None) -> Report:
    shape = Shape(adapters=("shm",), payloads_bytes=(64,), trials=1, messages=50)
    directory = write_campaign(folder, shape)
    if text is not None:
        (directory / CONFORMANCE).write_text(text)
    return build_report(open_campaign(directory))


def test_what_the_suite_wrote_is_what_the_page_is_given(tmp_path: Path) -> None:
    results = (Result("discovery", "pass"), Result("loans", "absent-against-manual", "chapter 4 has it"))
    ran = AdapterReport("shm", "Shared memory", "1.2", results)
    never = AdapterReport("udp", "UDP", None, (Result("discovery", "not-run", "not built"),))
    report = report_with(tmp_path, json.dumps(document([ran, never], strict=False)))
    (shown,) = report.conformance
    assert (shown.adapter, shown.version) == ("shm", "1.2")
    assert [(one.ability, one.verdict, one.reason) for one in shown.findings] == [
        ("discovery", "pass", ""),
        ("loans", "absent-against-manual", "chapter 4 has it"),
    ]


def test_without_the_file_there_is_no_matrix(tmp_path: Path) -> None:
    report = report_with(tmp_path, None)
    assert report.conformance == []
    assert not any(CONFORMANCE in note for note in report.notes)


@pytest.mark.parametrize("text", ["no json", "[1]", '{"adapters": [{"adapter": "shm"}]}', '{"adapters": 3}'])
def test_a_damaged_matrix_is_said_and_stops_nothing(tmp_path: Path, text: str) -> None:
    report = report_with(tmp_path, text)
    assert report.conformance == []
    assert any(f"{CONFORMANCE} could not be read" in note for note in report.notes)
