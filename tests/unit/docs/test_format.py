# SPDX-License-Identifier: Apache-2.0
"""docs/FORMAT.md names every key of a campaign's manifest and journal, and of `lagometer show --json`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from small_campaign import carry_on, take_up
from synthetic_campaign import Shape, write_campaign

from lagometer.cli.show import command as show
from lagometer.run import campaign
from lagometer.run.results import trial_store

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "FORMAT.md").read_text(encoding="utf-8")


def names_in(heading: str) -> set[str]:
    """The words in backticks between a heading and the next one of its rank."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {word for code in re.findall("`([^`]+)`", section) for word in re.findall(r"\w+", code)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign as `lagometer run` stores it."""
    out = tmp_path_factory.mktemp("format") / "campaign"
    carry_on(take_up(out))
    return out


def test_every_key_of_the_journal_is_there(stored: Path) -> None:
    [line, *_] = (stored / "journal.jsonl").read_text().splitlines()
    # Of what only some trials have.
    more = re.findall(r'entry\["(\w+)"\]', Path(trial_store.__file__).read_text(encoding="utf-8"))
    keys = {*json.loads(line), *more}
    assert {"rows", "spent_s", "layer_stamps", "outages"} <= keys
    assert sorted(keys - names_in("journal.jsonl")) == []


def test_every_key_of_the_manifest_is_there(stored: Path) -> None:
    source = Path(campaign.__file__).read_text(encoding="utf-8")
    made = source.partition("def _manifest(")[2].partition("def _options(")[0]
    keys = {*json.loads((stored / "manifest.json").read_text()), *re.findall(r'"(\w+)": ', made)}
    assert {"traps", "options", "hosts", "settings", "state", "study_text"} <= keys
    assert sorted(keys - names_in("manifest.json")) == []


def test_every_key_of_show_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = Shape(adapters=("shm",), payloads_bytes=(64,), trials=1, messages=100)
    show.command(write_campaign(tmp_path, shape), json=True)
    keys = set(json.loads(capsys.readouterr().out))
    assert {"rows", "findings", "glance", "limits"} <= keys
    assert sorted(keys - names_in("lagometer show --json")) == []
