# SPDX-License-Identifier: Apache-2.0
"""What of the conformance suite needs no adapter: sizes, fairness, manuals, the matrix and its page."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from needs import ROOT, adapter_library
from pydantic import ValidationError
from study_adapters import write_adapters

from lagometer.cli.conformance import FURTHER_MAX, further_broken
from lagometer.conformance.abilities import ABILITIES, NAMES
from lagometer.conformance.bench import Subject
from lagometer.conformance.elf import exported_symbols
from lagometer.conformance.exchange_checks import judge_delivery, sizes_of
from lagometer.conformance.findings import AdapterReport, Findings, Line, Result
from lagometer.conformance.intermittent import INTERMITTENT, Intermittent, intermittent_of
from lagometer.conformance.manual import MANUAL, Manual, manual_of
from lagometer.conformance.matrix import (
    BEGIN,
    COLUMNS,
    END,
    NEVER_RUN,
    conforms,
    document,
    merged,
    merged_reasons,
    read_reasons,
    read_table,
    reasons_of,
    rows_of,
    stale_in_form,
    stale_in_intermittent,
    stale_in_verdicts,
    worse,
    write_table,
)
from lagometer.conformance.pubsub import Account, Sent
from lagometer.conformance.scale_checks import fairness
from lagometer.conformance.settings_checks import differing, other_values
from lagometer.conformance.suite import examine
from lagometer.errors import BadInput
from lagometer.installation import conformance_command
from lagometer.study.adapter import Adapter
from lagometer.study.sidecar import Limits, Option

PAGE = f"before\n{BEGIN}\n| adapter |\n| --- |\n{END}\nafter\n"


def adapter_in(folder: Path, name: str = "shm", **limits: Any) -> Adapter:
    """An adapter of a folder, with other limits."""
    adapter = write_adapters(folder / "adapters")[name]
    if not limits:
        return adapter
    return replace(adapter, sidecar=adapter.sidecar.model_copy(update={"limits": Limits(**limits)}))


def test_sizes_are_powers_of_two_and_their_neighbours_and_the_known_borders(tmp_path: Path) -> None:
    sizes = sizes_of(Subject(adapter_in(tmp_path)), 16, 1 << 24)
    for power in range(5, 24):
        assert {(1 << power) - 1, 1 << power, (1 << power) + 1} <= set(sizes)
    assert {16, 17, 65_506, 65_507, 65_508, (1 << 24) - 1, 1 << 24} <= set(sizes)
    assert (min(sizes), max(sizes)) == (16, 1 << 24)
    fragments = sizes_of(Subject(adapter_in(tmp_path, fragment_bytes=(1344,))), 16, 65_507)
    assert {1335, 1336, 1337, 1343, 1344, 1345} <= set(fragments)


def test_settings_that_differ_are_named_with_their_object() -> None:
    usual = {"context": {"port": 1, "depth": 2}, "reader": {"depth": 3}}
    other = {"context": {"port": 4, "depth": 2}, "reader": {"depth": 3, "added": None, "set": 1}}
    assert differing(usual, usual) == set()
    assert differing(usual, other) == {("context", "port"), ("reader", "set")}


def test_fairness_is_that_of_jain() -> None:
    assert fairness([5, 5, 5, 5]) == 1
    assert fairness([8, 0, 0, 0]) == 0.25
    assert fairness([0, 0]) == 0


@pytest.mark.parametrize(
    ("came", "accepted", "broken"),
    [
        ([0, 1, 2], [0, 1, 2], ""),
        ([0, 2], [0, 1, 2], "all came"),
        ([0, 1, 1, 2], [0, 1, 2], "none came twice"),
        ([0, 2, 1], [0, 1, 2], "in order"),
        ([0, 1, 2], [0, 1], "none that was rejected"),
    ],
)
def test_a_delivery_is_judged_message_by_message(came: list[int], accepted: list[int], broken: str) -> None:
    findings = Findings()
    judge_delivery(findings, "x", Sent(accepted, 0, 0), Account(count=len(came), sequences=came), True)
    assert [line.name for line in findings.broken] == ([f"x: {broken}"] if broken else [])


def test_another_value_of_an_option_is_possible_and_not_the_default() -> None:
    text = {"description": ""}
    assert other_values("a", Option(type="boolean", default=True, **text)) == [False]
    assert other_values("a", Option(type="string", default="x", choices=("x", "y"), **text)) == ["y"]
    assert other_values("a", Option(type="integer", default=4, maximum=6, **text)) == [2]
    assert other_values("buffer_bytes", Option(type="integer", **text)) == [1 << 20]
    assert other_values("a", Option(type="string", default="x", **text)) == []


def test_exported_symbols_are_those_of_nm() -> None:
    library = adapter_library("null")
    assert exported_symbols(library) == {"lagometer_adapter"}
    with pytest.raises(ValueError, match="not a shared library"):
        exported_symbols(Path(__file__))


def test_a_manual_is_read_and_its_words_are_checked(tmp_path: Path) -> None:
    adapter = replace(adapter_in(tmp_path), directory=tmp_path)
    assert manual_of(adapter, NAMES) is None
    entry = {"has": True, "section": "3.2"}
    manual = {"middleware": "m", "manual": "its manual", "abilities": {"reliable": entry}}
    (tmp_path / MANUAL).write_text(json.dumps(manual))
    found = manual_of(adapter, NAMES)
    assert found is not None
    assert found.abilities["reliable"].section == "3.2"
    for wrong, where in (
        ({**manual, "abilities": {"reliabel": entry}}, "is not an ability"),
        ({**manual, "abilities": {"reliable": {"has": True}}}, "Field required"),
    ):
        (tmp_path / MANUAL).write_text(json.dumps(wrong))
        with pytest.raises(BadInput, match=where):
            manual_of(adapter, NAMES)


@pytest.mark.parametrize("path", sorted((ROOT / "adapters").glob(f"*/{MANUAL}")), ids=lambda p: p.parent.name)
def test_the_manuals_that_ship_are_valid(path: Path, tmp_path: Path) -> None:
    manual = manual_of(replace(adapter_in(tmp_path), directory=path.parent), NAMES)
    assert manual is not None
    assert all(entry.section for entry in manual.abilities.values())


def test_what_is_absent_is_red_only_if_the_manual_has_it(tmp_path: Path) -> None:
    adapter = replace(adapter_in(tmp_path, "udp"), directory=tmp_path)
    lacking = [ability for ability in ABILITIES if ability.lacks(adapter.sidecar) is not None]
    report = examine(Subject(adapter), lacking)
    assert {result.verdict for result in report.results} == {"absent"}
    entry = {"has": True, "section": "3.2"}
    manual = {"middleware": "m", "manual": "its manual", "abilities": {lacking[0].name: entry}}
    (tmp_path / MANUAL).write_text(json.dumps(manual))
    report = examine(Subject(adapter), lacking)
    assert [each.ability for each in report.having("absent-against-manual")] == [lacking[0].name]
    assert conforms([report], strict=False)
    assert not conforms([report], strict=True)


def test_what_does_not_apply_to_an_adapter_in_python_is_not_run_and_says_why(tmp_path: Path) -> None:
    adapter = adapter_in(tmp_path)
    in_python = adapter.sidecar.model_copy(update={"worker": "python", "library": "shm.py"})
    apart = [ability for ability in ABILITIES if ability.not_from_python]
    assert [ability.name for ability in apart] == ["teardown", "contract"]
    report = examine(Subject(replace(adapter, sidecar=in_python)), apart)
    assert {result.verdict for result in report.results} == {"not-run"}
    for ability, result in zip(apart, report.results, strict=True):
        assert result.reason == f"not applicable: {ability.not_from_python}"


def test_processes_of_a_check_speak_the_adapters_language(tmp_path: Path) -> None:
    adapter = adapter_in(tmp_path)
    (program,) = conformance_command(adapter.sidecar.worker)
    assert program.endswith("lagometer-conformance")
    in_python = adapter.sidecar.model_copy(update={"worker": "python", "library": "shm.py"})
    assert conformance_command(in_python.worker) == (
        sys.executable,
        "-I",
        "-m",
        "lagometer.conformance.in_python",
    )


def reports(*verdicts: Any) -> list[AdapterReport]:
    results = tuple(Result(name, verdict) for name, verdict in zip(COLUMNS, verdicts, strict=False))
    return [AdapterReport("one", "One", "Product 1.2", results)]


def test_the_matrix_keeps_what_is_not_run_again() -> None:
    first = rows_of(document(reports("pass", "fail", "absent", "absent-against-manual"), False))
    rows = merged({}, first, ["one", "two"])
    assert rows["one"][:6] == ["1.2", "✓", "✗", "–", "!", "·"]
    assert rows["two"] == [NEVER_RUN, *("·" for _ in COLUMNS)]
    page = write_table(PAGE, rows)
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert read_table(page) == rows
    assert merged(read_table(page), {}, ["one", "two"]) == rows
    assert stale_in_form(page, ["one", "two"]) == []


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Eclipse Cyclone DDS 0.10.2", "0.10.2"),
        ("1.10.2 (opt-level 1: not for measuring)", "1.10.2"),
        (None, "?"),
    ],
)
def test_the_matrix_has_the_version_alone(said: str | None, shown: str) -> None:
    results = document([replace(reports("pass")[0], version=said)], False)
    assert rows_of(results)["one"][0] == shown


def test_a_new_ability_takes_no_verdict_from_the_matrix() -> None:
    rows = merged({}, rows_of(document(reports("pass", "fail", "absent"), False)), ["one"])
    without = list(write_table(PAGE, rows).splitlines())
    for number, line in enumerate(without):
        if line.startswith("|"):  # as written before the third ability was there
            cells = line.split("|")
            without[number] = "|".join([*cells[:5], *cells[6:]])
    found = merged(read_table("\n".join(without)), {}, ["one"])["one"]
    assert found[:4] == ["1.2", "✓", "✗", "·"]
    assert found[4:] == rows["one"][4:]


def test_the_page_keeps_the_reasons_of_what_is_red() -> None:
    results = document(
        [replace(reports("pass", "fail")[0], results=(Result(COLUMNS[1], "fail", "it hung"),))], False
    )
    page = write_table(PAGE, merged({}, rows_of(results), ["one"]), reasons_of(results))
    assert f"- `one` {COLUMNS[1]}: it hung\n" in page
    assert read_reasons(page) == {"one": [f"{COLUMNS[1]}: it hung"]}
    assert write_table(page, read_table(page), read_reasons(page)) == page
    other = document([replace(reports("pass")[0], results=(Result(COLUMNS[0], "pass"),))], False)
    assert merged_reasons(read_reasons(page), other) == read_reasons(page)
    assert merged(read_table(page), rows_of(other), ["one"])["one"][:4] == ["1.2", "✓", "✗", "·"]
    fixed = document([replace(reports("pass")[0], results=(Result(COLUMNS[1], "pass"),))], False)
    assert merged_reasons(read_reasons(page), fixed) == {"one": []}


def test_what_fails_and_did_not_fail_before_is_named() -> None:
    before = merged({}, rows_of(document(reports("pass", "fail", "absent"), False)), ["one", "two"])
    same = merged(before, rows_of(document(reports("pass", "pass", "absent"), False)), ["one", "two"])
    assert worse(before, same) == [] and worse({}, before) == []
    now = merged(before, rows_of(document(reports("fail", "fail", "fail", "fail"), False)), ["one", "two"])
    assert worse(before, now) == [f"one: {COLUMNS[0]} was ✓ and is ✗", f"one: {COLUMNS[2]} was – and is ✗"]


@pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("fail", 1)])
def test_the_tool_writes_the_page_and_fails_if_an_ability_got_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    """Otherwise a night's conformance could not fail."""
    specification = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "conformance_matrix.py")
    assert specification is not None and specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    for name in ("PAGE", "ASKS_PAGE"):
        copy = tmp_path / getattr(tool, name).name
        copy.write_text(getattr(tool, name).read_text(encoding="utf-8"), encoding="utf-8")
        monkeypatch.setattr(tool, name, copy)
    given: Any = (Result("poll", verdict, "it hung" if verdict == "fail" else ""),)
    result = document([replace(reports()[0], adapter="shm", results=given)], False)
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert tool.main([str(tmp_path / "result.json")]) == code
    page = (tmp_path / "matrix.md").read_text(encoding="utf-8")
    assert ("- `shm` poll: it hung" in page) == bool(code)


def one_line(verdict: Any, **lines: bool) -> dict[str, Any]:
    """What a run saw of the ability `poll` of the adapter one, with these lines passed or broken."""
    told = tuple(Line(name, passed, "" if passed else "it hung") for name, passed in lines.items())
    reason = next((f"{line.name}: {line.detail}" for line in told if not line.passed), "")
    return document([replace(reports()[0], results=(Result("poll", verdict, reason, told),))], False)


def test_what_fails_in_some_runs_has_one_sign_whatever_the_last_run_saw() -> None:
    known = {"one": {"poll": Intermittent(lines=("late",), reason="it races (README, Limits)")}}
    pages = []
    for result in (one_line("pass", late=True, early=True), one_line("fail", late=False, early=True)):
        rows = merged({}, rows_of(result, known), ["one"])
        assert rows["one"][1 + COLUMNS.index("poll")] == "~"
        pages.append(write_table(PAGE, rows, merged_reasons({}, result, known)))
        assert worse(read_table(pages[0]), rows) == []
    assert pages[0] == pages[1]
    assert "- `one` poll: fails in some runs: it races (README, Limits)\n" in pages[0]
    assert stale_in_form(pages[0], ["one"]) == stale_in_intermittent(pages[0], known) == []


@pytest.mark.parametrize("lines", [{"late": True, "early": False}, {"late": False, "early": False}])
def test_a_line_that_is_not_known_to_fail_in_some_runs_fails(lines: dict[str, bool]) -> None:
    known = {"one": {"poll": Intermittent(lines=("late",), reason="it races")}}
    before = rows_of(one_line("pass", late=True), known)
    result = one_line("fail", **lines)
    assert worse(before, rows_of(result, known)) == ["one: poll was ~ and is ✗"]
    assert reasons_of(result, known)["one"][0].endswith("it hung")


def test_a_known_line_that_breaks_in_another_way_fails() -> None:
    """A lost message is not excused by a slow one, nor is a check that ended before any line of it broke."""
    known = {"one": {"poll": Intermittent(lines=("late: it was slow",), reason="it races")}}
    before = rows_of(one_line("pass", late=True), known)
    for result in (one_line("fail", late=False), one_line("fail", late=True), one_line("fail")):
        assert worse(before, rows_of(result, known)) == ["one: poll was ~ and is ✗"]
    hung = {"one": {"poll": Intermittent(lines=("late: it hung",), reason="it races")}}
    assert worse(before, rows_of(one_line("fail", late=False), hung)) == []


def test_dust_dds_is_excused_for_what_it_is_known_for_alone() -> None:
    contract = intermittent_of(ROOT / "adapters" / "dust_dds")["contract"]
    slow, uncounted = "commit: keeps blocking_ns_max: ", "commit: what is rejected is counted: "
    hung = "its process made no progress for 60 s at 'contract': at 31 of 57; last call: commit"
    assert contract.explains([f"{slow}one message took 5803 ms to send where 50 ms were allowed"])
    assert contract.explains([slow + hung, uncounted + hung])
    assert not contract.explains([f"{uncounted}3 messages were rejected, and counters() reports 0"])


def test_a_matrix_that_contradicts_what_fails_in_some_runs_is_named_stale() -> None:
    known = {"one": {"poll": Intermittent(lines=("late",), reason="it races")}}
    result = one_line("pass", late=True)
    page = write_table(PAGE, merged({}, rows_of(result, known), ["one"]), reasons_of(result, known))
    assert stale_in_intermittent(page, {}) == [f"'one' has ~ for poll, and no {INTERMITTENT} says so"]
    passed = page.replace("| ~ |", "| ✓ |")
    assert stale_in_intermittent(passed, known) == [f"'one' has ✓ for poll, and its {INTERMITTENT} has it"]
    assert stale_in_intermittent(page.replace("it races", "it sleeps"), known) == [
        f"'one' does not give the reason in {INTERMITTENT} for poll"
    ]


@pytest.mark.parametrize("adapter", ["dust_dds", "hiroz"])
def test_what_fails_in_some_runs_is_an_ability_and_is_in_the_readme(adapter: str) -> None:
    known = intermittent_of(ROOT / "adapters" / adapter)
    readme = (ROOT / "adapters" / adapter / "README.md").read_text(encoding="utf-8")
    assert known
    for ability, failure in known.items():
        assert ability in NAMES
        assert f"`{ability}`" in readme, "the README must say why, and how often if that was counted"
        assert failure.reason


def test_a_file_of_what_fails_in_some_runs_is_checked(tmp_path: Path) -> None:
    assert intermittent_of(tmp_path) == {}
    for wrong in ({"poll": {"lines": [], "reason": "x"}}, {"poll": {"lines": ["late"]}}, {"poll": "late"}):
        (tmp_path / INTERMITTENT).write_text(json.dumps(wrong))
        with pytest.raises(ValidationError):
            intermittent_of(tmp_path)


def test_an_adapter_set_up_with_options_has_a_row_of_its_own() -> None:
    (plain,) = reports("pass", "absent-against-manual")
    optioned = replace(plain, options={"shared_memory": True})
    rows = merged({}, rows_of(document([plain, optioned], False)), ["one"])
    assert list(rows) == ["one", "one shared_memory=true"]
    page = write_table(PAGE, rows)
    assert stale_in_form(page, ["one"]) == []
    assert merged(read_table(page), {}, ["one"]) == rows
    assert merged(read_table(page), {}, ["two"]) == {"two": [NEVER_RUN, *("·" for _ in COLUMNS)]}


def test_a_matrix_that_does_not_fit_is_named_stale() -> None:
    page = write_table(PAGE, merged({}, {}, ["one", "two"]))
    assert stale_in_form(page, ["one", "two", "three"]) == ["'three' has no row"]
    assert stale_in_form(page, ["one"]) == ["'two' has a row and is not an adapter"]
    assert "its columns are not the abilities" in stale_in_form(
        page.replace("discovery", "finding"), ["one", "two"]
    )
    assert "other cells" in stale_in_form(page.replace("| · |", "| ? |", 1), ["one", "two"])[0]
    assert "are not there" in stale_in_form("no marks", [])[0]


def test_a_matrix_that_contradicts_the_manuals_is_named_stale() -> None:
    entry = {"has": True, "section": "3.2", "note": "with a daemon"}
    manual = Manual.model_validate({"middleware": "m", "manual": "its manual", "abilities": {"poll": entry}})
    named = [Result("poll", "absent-against-manual", f"refused, but {manual.objection('poll')}")]
    results = document([replace(reports()[0], results=tuple(named))], False)
    page = write_table(PAGE, merged({}, rows_of(results), ["one"]), reasons_of(results))
    assert "poll: refused, but its manual has it: 3.2 (with a daemon)" in page
    assert stale_in_verdicts(page, {"one": manual}) == []
    assert stale_in_verdicts(page.replace("| ! |", "| · |"), {"one": manual}) == []
    says_otherwise = "and the manual says otherwise"
    assert stale_in_verdicts(page, {}) == [f"'one' has ! for poll, {says_otherwise}"]
    assert stale_in_verdicts(page.replace("| ! |", "| – |"), {"one": manual}) == [
        f"'one' has – for poll, {says_otherwise}"
    ]
    moved = manual.model_copy(update={"manual": "its new manual"})
    assert stale_in_verdicts(page, {"one": moved}) == ["'one' does not give the manual's section for poll"]


def test_the_page_has_a_row_for_each_adapter_and_a_column_for_each_ability() -> None:
    command = [sys.executable, str(ROOT / "tools" / "conformance_matrix.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_page_says_what_each_ability_means() -> None:
    page = (ROOT / "docs" / "adapters" / "conformance.md").read_text(encoding="utf-8")
    for ability in ABILITIES:
        assert f"| `{ability.name}` | {ability.title}" in page, ability.name


def test_lines_that_are_broken_beside_the_first_are_told_too() -> None:
    lines = (Line("take", True), Line("wait", False, "too early"), Line("matched", False, "still counts"))
    assert further_broken(Result("contract", "fail", "wait: too early (and 1 more)", lines)) == [
        "matched: still counts"
    ]
    many = tuple(Line(f"{size} B", False, "damaged") for size in range(FURTHER_MAX + 3))
    told = further_broken(Result("sizes", "fail", "0 B: damaged", many))
    assert told[-2:] == [f"{FURTHER_MAX} B: damaged", "2 more: --json has them"]
    assert further_broken(Result("poll", "pass")) == []
