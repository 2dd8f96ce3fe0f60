# SPDX-License-Identifier: Apache-2.0
"""The promises of layers: what the file may contain, and the page and adapters that it must agree with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from needs import ROOT

from lagometer.conformance.least_layers import (
    BEGIN,
    END,
    EXPECTED,
    LeastLayers,
    Promise,
    contradictions,
    least_layers,
    missing,
    unattributed_max,
    write_page,
)
from lagometer.errors import BadInput
from lagometer.stats.trial.way import LAYERS
from lagometer.study.sidecar import Sidecar

PROMISE: dict[str, Any] = {
    "dispatch": ["waitset"],
    "factors": {"profile": "matched"},
    "shows": ["benchmark", "send_path", "transport", "wake", "notify", "take"],
    "within": {"serialise": "send_path", "deserialise": "take"},
    "absent": {"receiving_thread": "itself"},
}
REASONS = {"itself": "the node's own thread reads the socket"}


def of(adapter: str = "one", **changes: Any) -> dict[str, Any]:
    """A file with one promise, with changes in it."""
    return {"reasons": REASONS, "adapters": {adapter: {"promises": [{**PROMISE, **changes}]}}}


def written(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "least_layers.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def sidecar(name: str, *dispatch: str) -> Sidecar:
    document = json.loads((ROOT / "adapters" / "shm" / "adapter.json").read_text(encoding="utf-8"))
    abilities = {**document["abilities"], "dispatch": list(dispatch), "stamps": {}}
    return Sidecar.model_validate_json(json.dumps({**document, "name": name, "abilities": abilities}))


def test_the_expected_layers_stand_in_the_order_of_a_message() -> None:
    assert list(EXPECTED) == [layer for layer in LAYERS if layer in EXPECTED]
    assert len(EXPECTED) == 8


@pytest.mark.parametrize("reason", ["unseen", "process", "python", "two_copies"])
def test_only_what_can_not_be_seen_may_be_unattributed(reason: str) -> None:
    followed = Promise.model_validate_json(json.dumps(PROMISE))
    assert unattributed_max(followed) == 0.1
    unseen = Promise.model_validate_json(json.dumps({**PROMISE, "absent": {"receiving_thread": reason}}))
    assert unattributed_max(unseen) == 1
    texts = least_layers(ROOT / "adapters" / "least_layers.json").reasons
    assert "unattributed" in texts[reason] or reason == "two_copies"
    assert sum("unattributed" in text for text in texts.values()) == 3


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"absent": {}}, "receiving_thread stands 0 times"),
        ({"absent": {"receiving_thread": "itself", "take": "itself"}}, "take stands 2 times"),
        ({"absent": {"receiving_thread": "itself", "benchmark": "itself"}}, "benchmark is not one of"),
        ({"within": {"serialise": "send", "deserialise": "take"}}, "which is not in shows"),
        ({"shows": ["take", "benchmark", "send_path", "transport", "wake", "notify"]}, "in their order"),
        ({"shows": [*PROMISE["shows"], "unattributed"]}, "in their order"),
        ({"dispatch": ["interrupt"]}, "'listener', 'waitset' or 'poll'"),
        ({"dispatch": ["waitset", "waitset"]}, "the same dispatch"),
        ({"factors": {"payload": "1MB"}}, "'placement' or 'profile'"),
        ({"absent": {"receiving_thread": "weather"}}, "'itself' is unknown, or nothing uses it"),
        ({"show": []}, "not permitted"),
    ],
)
def test_what_the_file_may_not_say(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint) as raised:
        least_layers(written(tmp_path, of(**changes)))
    assert "least_layers.json: " in str(raised.value)


def test_a_dispatch_is_promised_or_not(tmp_path: Path) -> None:
    document = of()
    document["adapters"]["one"]["not_promised"] = {"waitset": "nobody looked"}
    with pytest.raises(BadInput, match="has a promise, and a reason why it has not"):
        least_layers(written(tmp_path, document))
    with pytest.raises(BadInput, match="cannot be read"):
        least_layers(tmp_path / "gone.json")


def test_a_promise_is_kept_if_half_of_the_messages_have_each_layer(tmp_path: Path) -> None:
    promise = least_layers(written(tmp_path, of())).adapters["one"].promises[0]
    medians_ns: dict[str, int | None] = dict.fromkeys(promise.shows, 100)
    assert missing(promise, medians_ns) == []
    assert missing(promise, {**medians_ns, "send": 7, "wake": 0, "take": None}) == ["wake", "take"]
    del medians_ns["transport"]
    assert missing(promise, medians_ns) == ["transport"]


def test_promises_and_adapters_cover_each_other() -> None:
    least = LeastLayers.model_validate_json(json.dumps(of()))
    assert list(contradictions(least, {"one": sidecar("one", "waitset")})) == []
    both = {"one": sidecar("one", "waitset", "poll"), "two": sidecar("two", "poll")}
    assert list(contradictions(least, both)) == [
        "one: poll is in its sidecar or in its promises, but not in both",
        "two has no promises: add it to adapters/least_layers.json",
    ]
    assert list(contradictions(least, {})) == ["one has promises, but is no adapter"]


def test_the_page_says_where_each_layer_is() -> None:
    document = of(environment={"RMW": "x"})
    document["adapters"]["one"]["not_promised"] = {"poll": "nobody looked " * 12}
    least = LeastLayers.model_validate_json(json.dumps(document))
    page = write_page(f"before\n{BEGIN}\nold\n{END}\nafter\n", least)
    lines = page.splitlines()
    assert lines[:2] == ["before", BEGIN] and lines[-2:] == [END, "after"]
    assert lines[4] == (
        "| `one`, `--profile matched`, `RMW=x` | waitset | in `send_path` | ✓ | ✓ | *itself* | ✓ | ✓ | ✓ "
        "| in `take` | `benchmark` |"
    )
    assert "- *itself*: the node's own thread reads the socket" in lines
    assert "old" not in lines and all(len(line) <= 120 for line in lines[5:])
    with pytest.raises(BadInput, match="below it"):
        write_page("no marks", least)


def test_the_table_is_what_the_file_says_and_every_adapter_is_in_it() -> None:
    command = [sys.executable, str(ROOT / "tools" / "least_layers.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
