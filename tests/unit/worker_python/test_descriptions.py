# SPDX-License-Identifier: Apache-2.0
"""What `describe` of an adapter in Python returns is checked, and a mistake is told with what is allowed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import OrderedDict
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from needs import ROOT
from plan_parts import pipeline, plan

from lagometer.worker_python.adapter import AdapterError
from lagometer.worker_python.description import checked

TOY = ROOT / "tests" / "toy_adapter.py"
FORM = '{"value": …, "default": …}'


class Word(Enum):
    """A client library's own type."""

    RELIABLE = 1


RIGHT: list[dict[str, Any]] = [
    {},
    {"settings": {}, "paste": []},
    {"settings": {"depth": {"value": 4, "default": None}}, "paste": [{"file": "x.xml", "text": "<x/>"}]},
    {"settings": OrderedDict(a={"value": [1, 2.5, True], "default": {"b": ("c",)}}), "observed": {"d": None}},
    {"transport": {"within_process": ["process"]}},
]


@pytest.mark.parametrize("described", RIGHT)
def test_what_the_pages_describe_is_returned_as_it_is(described: dict[str, Any]) -> None:
    assert checked("mine", "a context", described) == described


WRONG: list[tuple[object, str]] = [
    (None, "returned None; it must return a dict with settings, paste, observed, transport"),
    ({"setings": {"a": 1}}, " has the unknown key 'setings' (its value is {'a': 1}); known are settings,"),
    ({"setings": {}}, "did you mean 'settings'?"),
    ({"settings": [("depth", 7)]}, "settings is [('depth', 7)]; it must be a dict of settings by name"),
    ({"settings": {"depth": 7}}, f"settings['depth'] is 7; it must be {FORM}"),
    ({"settings": {3: {}}}, "settings has the key 3; a setting's name must be a text"),
    ({"settings": {"depth": {"value": 7}}}, f"is {{'value': 7}}, without 'default'; it must be {FORM}"),
    (
        {"settings": {"depth": {"value": 7, "default": 1, "unit": "messages"}}},
        "settings['depth'] has the unknown key 'unit' (its value is 'messages'); known are value, default",
    ),
    (
        {"settings": {"word": {"value": Word.RELIABLE, "default": None}}},
        "settings['word']['value'] is <Word.RELIABLE: 1>, a Word; it must be true, false, a number, a text,",
    ),
    ({"settings": {"a": {"value": float("nan"), "default": 1}}}, "['value'] is nan; a number must be finite"),
    ({"settings": {"a": {"value": 1, "default": [b"x"]}}}, "['default'][0] is b'x', a bytes; it must be"),
    ({"settings": {"a": {"value": {1: 2}, "default": 0}}}, "['value'] has the key 1; a key must be a text"),
    ({"paste": "x"}, 'paste is \'x\'; it must be a list of {"file": …, "text": …}'),
    ({"paste": [{"file": "x"}]}, "paste[0] is {'file': 'x'}; it must be {"),
    ({"observed": ["x"]}, "observed is ['x']; it must be a dict"),
    ({"transport": "udp"}, "transport is 'udp'; it must be a dict"),
]


@pytest.mark.parametrize(("described", "said"), WRONG)
def test_a_mistake_is_told_with_the_adapter_the_object_and_what_is_allowed(
    described: object, said: str
) -> None:
    with pytest.raises(AdapterError, match=re.escape(said)) as refused:
        checked("mine", "writer t", described)
    assert str(refused.value).startswith("mine: describe of writer t")


def test_the_worker_ends_the_trial_with_it(tmp_path: Path) -> None:
    given = json.dumps(plan(TOY, tmp_path, pipeline("listener"))).encode() + b"\n"
    command = [sys.executable, "-I", "-m", "lagometer.worker_python"]
    environment = {**os.environ, "TOY_BREAK": "settings"}
    answer = subprocess.run(command, input=given, env=environment, capture_output=True, timeout=60)
    *_, last = map(json.loads, answer.stdout.splitlines())
    assert (answer.returncode, last["event"], last["reason"]) == (1, "failed", "adapter-failed")
    said = f"describe of reader t0: settings['depth'] is 64; it must be {FORM}"
    assert last["message"] == f"toy_adapter: {said}"
