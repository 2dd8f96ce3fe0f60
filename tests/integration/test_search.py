# SPDX-License-Identifier: Apache-2.0
"""The search for the highest sustained rate, against an adapter that drops what is above a set rate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from campaign_support import lagometer, write_study
from needs import need

pytestmark = pytest.mark.usefixtures("namespaces")
LIMIT_HZ = 200.0


@pytest.fixture(scope="module")
def namespaces() -> None:
    need("netns")


def test_the_limit_of_an_adapter_is_found(tmp_path: Path) -> None:
    study = write_study(
        tmp_path,
        options={"faulty": {"over": "shm", "limit_rate_hz": LIMIT_HZ}},
        matrix={"adapter": "faulty", "workload": "pipeline-2", "rate": "1Hz"},
    )
    out = tmp_path / "out"
    code, output, errors = lagometer(
        tmp_path, "search", str(study), "--out", str(out), "--precision", "20%", "--high", "4kHz", "--json"
    )
    assert code == 0, errors
    said = json.loads(output)
    stored = json.loads((out / "search.json").read_text())
    assert {**stored, "dir": str(out)} == said
    (cell,) = said["cells"]
    assert cell["cell"] == "faulty/pipeline-2"
    assert cell["status"] in ("found", "below")  # a machine at work may sustain nothing
    assert len(errors.splitlines()) == len(cell["trials"])
    # What a bucket of two messages and 300 ms let pass above the limit.
    above = [trial for trial in cell["trials"] if trial["rate_hz"] > 1.2 * LIMIT_HZ]
    assert above
    assert not any(trial["sustained"] for trial in above)
    if cell["status"] == "found":
        assert cell["sustained_hz"] < cell["failed_hz"] <= 1.21 * cell["sustained_hz"]
        assert cell["sustained_hz"] <= 1.2 * LIMIT_HZ
        assert cell["low_hz"] is None or cell["low_hz"] <= cell["sustained_hz"]
        assert cell["high_hz"] is None or cell["high_hz"] >= cell["failed_hz"]


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
