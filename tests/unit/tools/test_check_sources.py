# SPDX-License-Identifier: Apache-2.0
"""The rules of `make lint` that are ours: each finds what it is for, and lets pass what is allowed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from needs import need

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import check_sources  # noqa: E402
import words  # noqa: E402


def braced(body_lines: int, head: str = "int answer(int question) {") -> str:
    """A C++ function with so many lines between its braces."""
    return "\n".join([head, *["  work();"] * body_lines, "}"])


@pytest.mark.parametrize(
    "head",
    [
        "int answer(int question) {",
        "auto Session::run(const Plan& plan) const noexcept -> int {",
        "Session::Session(int a) : a_(a), b_{2} {",
        "export function draw(rows: Row[]): Chart {",
        "export const draw = (rows: Row[]): Chart => {",
        "TEST(Recorder, KeepsAll) {",
    ],
)
def test_a_long_function_is_found_in_any_braced_language(head: str) -> None:
    (function,) = check_sources.braced_functions(braced(80, head))
    assert function == (1, 82)


@pytest.mark.parametrize("head", ["namespace lagometer {", "struct Plan {", "enum class Kind : int {"])
def test_what_only_holds_functions_is_not_one(head: str) -> None:
    inner = braced(3)
    assert list(check_sources.braced_functions(f"{head}\n{inner}\n}};\n")) == [(2, 6)]


def test_braces_in_text_and_comments_do_not_count() -> None:
    text = 'void say() {\n  print("}}{{");  // }\n  /* } */ char c = \'}\';\n  auto r = R"(})";\n}\n'
    assert list(check_sources.braced_functions(text)) == [(1, 5)]


def test_sizes_need_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_sources, "ROOT", tmp_path)
    path = tmp_path / "a.cpp"
    (finding,) = check_sources.check_sizes(path, braced(80))
    assert finding.startswith("a.cpp:1: a function of 82 lines, at most 70")
    assert not list(
        check_sources.check_sizes(path, "// long function: one table, read top down\n" + braced(80))
    )
    long_file = "int a;\n" * 501
    assert "501 lines, at most 500" in next(check_sources.check_sizes(path, long_file))
    assert not list(
        check_sources.check_sizes(path, "// long file: generated from the registry\n" + long_file)
    )


def test_includes_do_not_cross_the_walls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_sources, "ROOT", tmp_path)
    for name in (
        "engine/include/lagometer/adapter.h",
        "engine/src/plan.hpp",
        "adapters/common/binding.hpp",
        "adapters/one/own.hpp",
        "adapters/one/adapter.json",
        "adapters/two/other.hpp",
        "adapters/two/adapter.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    path = tmp_path / "adapters/one/one.cpp"
    allowed = (
        '#include <lagometer/adapter.h>\n#include "binding.hpp"\n#include "own.hpp"\n#include <dds/dds.h>\n'
    )
    assert not list(check_sources.check_includes(path, allowed))
    for crossing in ('"plan.hpp"', '"../../engine/src/plan.hpp"', '"../two/other.hpp"', "<lagometer/plan.h>"):
        assert list(check_sources.check_includes(path, f"#include {crossing}\n")), crossing
    engine = tmp_path / "engine/src/plan.cpp"
    assert list(check_sources.check_includes(engine, '#include "../../adapters/common/binding.hpp"\n'))
    host = tmp_path / "engine" / "abi_host" / "host.cpp"
    assert not list(check_sources.check_includes(host, '#include "lagometer/adapter.h"\n#include <atomic>\n'))
    assert list(check_sources.check_includes(host, '#include "session.hpp"\n'))


def test_a_function_pointer_without_a_contract_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_sources, "ROOT", tmp_path)
    tag = (
        "/* Required. Takes. Status: OK. [thread: any; state: enabled; in-callback: no;\n"
        " * blocks: never; allocates: no] */\n"
    )
    pointer = "  lagometer_status (*take)(void *reader,\n      void *samples);\n"
    other = "  void (*give)(void *reader);"
    path = tmp_path / "adapter.h"
    assert not list(check_sources.check_contracts(path, tag + pointer + pointer + other))
    assert not list(check_sources.check_contracts(path, f"{tag}{pointer}\n{other} /* [as take] */\n"))
    assert list(check_sources.check_contracts(path, f"{tag}{pointer}\n{other} /* [as nobody] */\n"))
    assert list(check_sources.check_contracts(path, tag + "\n" + pointer))
    assert list(check_sources.check_contracts(path, "/* Takes. */\n" + pointer))
    for word in ("Required.", "Status:", "[thread:", "state:", "in-callback:", "blocks:", "allocates:"):
        (found,) = check_sources.check_contracts(path, tag.replace(word, "") + pointer)
        assert word.strip("[.") in found
    kind = "typedef void (*function)(void *user);\n"
    assert not list(check_sources.check_contracts(path, tag.replace("Required.", "") + kind))
    assert list(check_sources.check_contracts(path, "/* Called. */\n" + kind))


def test_a_lock_file_names_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_sources, "ROOT", tmp_path)
    path = tmp_path / "run.txt"
    host = "https" + "://registry.example/a.whl"
    assert not list(check_sources.check_lock(path, "a==1 \\\n    --hash=sha256:00\n"))
    assert list(check_sources.check_lock(path, f"a @ {host}\n"))
    assert list(check_sources.check_lock(path, "--find-links /opt/wheels\n"))
    assert list(check_sources.check_lock(path, f'      "resolved": "{host}",\n'))


def test_what_shellcheck_finds_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_sources, "ROOT", tmp_path)
    need("shellcheck")
    script = tmp_path / "tools" / "go"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\ncd "$1"\nls\n')
    (found,) = check_sources.check_shell(script)
    assert found.startswith("tools/go:2:1: warning: ") and "SC2164" in found
    script.write_text('#!/bin/sh\ncd "$1" || exit 1\nls\n')
    assert not list(check_sources.check_shell(script))


def test_without_shellcheck_a_script_must_parse_and_ci_must_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_sources, "ROOT", tmp_path)
    monkeypatch.setattr(check_sources.shutil, "which", lambda _: None)
    monkeypatch.delenv("LAGOMETER_REQUIRE", raising=False)
    script = tmp_path / "go"
    script.write_text('#!/bin/sh\ncd "$1"\n')
    assert not list(check_sources.check_shell(script))
    monkeypatch.setenv("LAGOMETER_REQUIRE", "rust")
    (found,) = check_sources.check_shell(script)
    assert "the package shellcheck is not installed" in found
    monkeypatch.delenv("LAGOMETER_REQUIRE")
    script.write_text("#!/bin/sh\nif true\n")
    assert any("syntax error" in line for line in check_sources.check_shell(script))


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("docs/BIAS.md", "It is made anew\n", "again"),
        ("docs/BIAS.md", "Beneath the table\n", "below"),
        ("lagometer/a.py", 'print("mend: reboot")\n', "fix"),
        ("engine/a.cpp", "// whoever is told of it\n", "reported"),
        ("web/src/a.ts", "// amid the drain\n", "during"),
        ("tools/setup", "# without a word\n", "silently"),
        ("docs/BIAS.md", "a folder that is none\n", "is not a"),
        ("docs/BIAS.md", f"{'word ' * 30}\n", "wrap it"),
    ],
)
def test_what_stops_a_reader_is_refused_with_a_better_word(name: str, text: str, found: str) -> None:
    ((line, wrong),) = words.findings(name, f"first\n{text}".encode())
    assert line == 2 and found in wrong


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/BIAS.md", "Recommend it, amend it. If there is none, `mend` stays.\n"),
        ("docs/BIAS.md", f"| {'word ' * 30} |\n"),
        ("docs/BIAS.md", f"```\n{'word ' * 30}\n```\n"),
        ("docs/BIAS.md", f"- <https://example.org/{'x' * 120}>\n"),
        ("CHANGELOG.md", f"{'word ' * 30}\n"),
        ("LICENSE", "derivative works thereof\n"),
        ("lagometer/a.py", "if value is None and names_none:\n"),
    ],
)
def test_ordinary_words_and_what_can_not_be_wrapped_pass(name: str, text: str) -> None:
    assert not list(words.findings(name, text.encode()))


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("lagometer/run/late.py", 'late = f"{late_ns} ns late"', True),
        ("lagometer/run/late.py", 'late = f"{late_ns / 1e6:.1f} ms late"', True),
        ("lagometer/run/late.py", 'late = f"{duration_text(late_ns)} late, {late_ns} in all"', False),
        ("lagometer/units.py", 'return f"{duration_ns:.0f} ns"', False),
        ("lagometer/agent/link/words.py", 'return f"{delay_ns} ns"', False),
        ("tests/unit/test_late.py", 'late = f"{late_ns} ns"', False),
        ("web/src/chart.ts", "const late = `${(late / 1e9).toFixed(2)} s`;", True),
        ("web/src/chart.ts", "const late = durationText(lateNs);", False),
        ("web/src/format.ts", "return `${String(seconds)} s`;", False),
    ],
)
def test_a_duration_that_is_formatted_by_hand_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str, found: bool
) -> None:
    monkeypatch.setattr(check_sources, "ROOT", tmp_path)
    assert bool(list(check_sources.check_durations(tmp_path / name, f"{line}\n"))) == found
