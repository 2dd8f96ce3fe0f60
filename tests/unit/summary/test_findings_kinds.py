# SPDX-License-Identifier: Apache-2.0
"""Each kind of finding is on the page about them, and forced by a test; the code can say no other."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from forced_findings import FORCED

from lagometer.summary.findings import devices, failures, links, machine, queues, sending

ROOT = Path(__file__).parents[3]
# Kinds that a test of their own forces, by its file.
FORCED_ELSEWHERE = {
    "test_findings.py": (
        *("hosts-differ", "payload-exceeds-segment", "best-effort-over-udp"),
        *("depth-bounds-the-sender", "nagle-waits"),
    ),
    "test_findings_scaling.py": (
        *("too-many-nodes", "discovery-grows", "a-copy-for-each-subscriber", "one-copy-for-all"),
    ),
    "test_findings_settings.py": ("setting-not-in-force", "setting-not-confirmed"),
    "test_scheduling_finding.py": ("waited-for-a-cpu",),
}


def kinds_in_code() -> set[str]:
    """What a finding can be called: the first argument of each `Said`, and the tables it is taken from."""
    kinds = {word for table in (failures, machine, links, devices) for word, _, _ in table.REASONS}
    kinds |= {kind for kind, _, _ in failures.SIGNALS.values()} | {each.kind for each in queues.COUNTED}
    kinds |= {kind for kind, _ in sending.LATE.values()}
    for path in (ROOT / "lagometer" / "summary" / "findings").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                named = [each.value for each in call.keywords if each.arg == "kind"]
                first = call.args[:1] if isinstance(call.func, ast.Name) and call.func.id == "Said" else []
                kinds |= {text for each in (*first, *named) for text in texts_of(each)}
    for sidecar in (ROOT / "adapters").glob("*/adapter.json"):
        kinds |= {trap["kind"] for trap in json.loads(sidecar.read_text(encoding="utf-8")).get("traps", ())}
    return kinds


def texts_of(expression: ast.expr) -> Iterator[str]:
    """The texts that a literal, or a choice between literals, may be."""
    if isinstance(expression, ast.IfExp):
        yield from texts_of(expression.body)
        yield from texts_of(expression.orelse)
    elif isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield expression.value
    else:  # a name stands for what one of the tables has
        assert isinstance(expression, (ast.Name, ast.Attribute, ast.Call)), ast.dump(expression)


def test_the_page_on_findings_names_each_kind_and_each_is_forced() -> None:
    """Kinds on the page, kinds that a test forces, and kinds that the code can say: the same."""
    page = (ROOT / "docs" / "methodology" / "findings.md").read_text(encoding="utf-8")
    first_columns = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    on_page = [kind for column in first_columns for kind in re.findall("`([^`]+)`", column)]
    forced = {kind for kind, _, _ in FORCED} | {kind for kinds in FORCED_ELSEWHERE.values() for kind in kinds}
    assert sorted(on_page) == sorted(forced) == sorted(kinds_in_code())
    for name, kinds in FORCED_ELSEWHERE.items():
        text = (Path(__file__).parent / name).read_text(encoding="utf-8")
        assert [kind for kind in kinds if f'"{kind}"' not in text] == []
