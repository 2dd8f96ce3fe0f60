# SPDX-License-Identifier: Apache-2.0
"""The ABI grows at its end alone: adapters of an older and of a newer header work with this host, and the
layouts of the first header never change."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from needs import ROOT, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, plan, reader, timer, writer
from test_templates import FIRST_HEADER, SOURCES, TEMPLATES, build_outside, not_kept
from worker_support import run_worker

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

HEADER = ROOT / "engine" / "include" / "lagometer" / "adapter.h"
FIRST = FIRST_HEADER
SHARED = (ROOT / "adapters" / "common", ("plain.h", "binding.hpp", "refusing.hpp"))
STRUCT = re.compile(r"^typedef struct (lagometer_\w+) \{\n(.*?)^\} \1;", re.M | re.S)
BEST_EFFORT: Mapping = {"reliability": "best_effort", "history": "keep_last", "depth": 64}
QUICK = ("--only", "contract", "--only", "discovery", "--only", "sizes", "--only", "output")
GROWN_BYTES = 32


def structs(header: Path) -> dict[str, list[str]]:
    """The fields of each struct of a header, by its name."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
    found = {}
    for name, body in STRUCT.findall(text):
        fields = []
        for declaration in re.sub(r"\([^()]*\)\s*LAGOMETER_NOEXCEPT", "", body).split(";"):
            fields += re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|\)|$)", declaration.strip())
        found[name] = fields
    return found


def layout(folder: Path, include: Path, fields: dict[str, list[str]]) -> list[str]:
    """What the C compiler makes of these fields, with the header below this folder."""
    source, program = folder / "layout.c", folder / "layout"
    lines = [
        f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));'
        for name, each in fields.items()
        for field in each
        if field not in fields  # another struct has sizes of its own
    ]
    head = "#include <stddef.h>\n#include <stdio.h>\n#include <lagometer/adapter.h>\nint main(void) {\n"
    source.write_text(head + "\n".join(lines) + "\nreturn 0;\n}\n")
    command = ["cc", "-std=c11", f"-I{include}", str(source), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def test_the_layouts_of_the_first_header_are_frozen(tmp_path: Path) -> None:
    need("cc")
    fields = structs(FIRST / "lagometer" / "adapter.h")
    assert len(fields) == 12
    assert len(fields["lagometer_adapter_table"]) == 33
    then = layout(tmp_path, FIRST, fields)
    assert then == layout(tmp_path, HEADER.parents[1], fields)
    checks = [
        f'_Static_assert({name.upper()}_SIZE_1_0 == {last.rsplit(" ", 1)[-1]}, "{name}");'
        for name, last in sizes_of_the_first(tmp_path, fields).items()
    ]
    source = tmp_path / "sizes.c"
    source.write_text(
        "\n".join(["#include <lagometer/adapter.h>", *checks, ""]).replace("_TABLE_TABLE", "_TABLE")
    )
    command = ["cc", "-std=c11", f"-I{HEADER.parents[1]}", "-fsyntax-only", str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def sizes_of_the_first(folder: Path, fields: dict[str, list[str]]) -> dict[str, str]:
    """sizeof each struct that may grow, in the first header."""
    source, program = folder / "sizes_of.c", folder / "sizes_of"
    grows = [name for name, each in fields.items() if each[0] == "size" and each[1] == "abi_version"]
    lines = [f'printf("{name} %zu\\n", sizeof({name}));' for name in grows]
    head = "#include <stdio.h>\n#include <lagometer/adapter.h>\nint main(void) {\n"
    source.write_text(head + "\n".join(lines) + "\nreturn 0;\n}\n")
    command = ["cc", "-std=c11", f"-I{FIRST}", str(source), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    told = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(zip(grows, told, strict=True))


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers as a later version may have them: each struct and each table with more at its end."""
    include = tmp_path_factory.mktemp("grown")
    folder = include / "lagometer"
    folder.mkdir()
    text = HEADER.read_text(encoding="utf-8")
    tail = {
        "lagometer_host": "  void (*grown)(void* self) LAGOMETER_NOEXCEPT;\n",
        "lagometer_adapter_table": "  lagometer_status (*grown)(uint32_t number) LAGOMETER_NOEXCEPT;\n",
    }
    count = 0
    for name, body in STRUCT.findall(text):
        if "uint32_t size, abi_version;" not in body:
            continue
        count += 1
        added = tail.get(name, f"  uint8_t grown[{GROWN_BYTES}];\n")
        text = text.replace(f"{body}}} {name};", f"{body}{added}}} {name};")
    assert count == 10
    (folder / "adapter.h").write_text(text)
    for name in SHARED[1]:
        shutil.copy(SHARED[0] / name, folder / name)
    return include


def templates_grown(folder: Path) -> Path:
    """The adapters in C and C++, with code for what the later version added: they fill all that is new."""
    own = folder / "templates"
    for name in ("in_c", "in_cpp"):
        shutil.copytree(TEMPLATES / name, own / name)
    in_c = own / "in_c" / SOURCES["in_c"]
    text = in_c.read_text()
    function = "static lagometer_status grown(uint32_t number) { return (lagometer_status)number; }\n"
    text = text.replace("/* clang-format off */\n", f"/* clang-format off */\n{function}")
    text = text.replace("lagometer_plain_extension};", "lagometer_plain_extension, NULL, grown};")
    in_c.write_text(text)
    in_cpp = own / "in_cpp" / SOURCES["in_cpp"]
    text = in_cpp.read_text()
    for what, after in (("sample", "sample.adapter_data = &slot;"), ("message", "message.region_count = 1;")):
        assert after in text
        text = text.replace(
            after, f"{after}\n    std::fill_n({what}.grown, sizeof {what}.grown, uint8_t{{7}});"
        )
    in_cpp.write_text(text)
    return own


def messages_pass(build: Path, library: Path, folder: Path, dispatch: str) -> None:
    """A real trial, in one worker: what was sent was received."""
    source = node("source", 0, [], [writer("t", 0, qos=BEST_EFFORT)], [timer(2 * MILLISECOND_NS)], dispatch)
    sink = node("sink", 1, [reader("t", [0], qos=BEST_EFFORT)], [], [any_message()], dispatch)
    said = run_worker(build, plan(library, folder / "runtime", [source, sink]))
    sent, received = said.lane(KIND_SENT, 0, 0), said.lane(KIND_RECEIVED, 1, 0)
    assert len(sent) > 10
    assert set(received["sequence"].tolist()) == set(sent["sequence"].tolist())


@pytest.mark.parametrize(("name", "dispatch"), [("in_c", "poll"), ("in_cpp", "listener")])
def test_an_adapter_that_is_newer_than_the_host_works(
    build: Path, grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, dispatch: str
) -> None:
    """Its table is longer, the host and every struct that it is given are shorter than it knows them."""
    need("netns")
    monkeypatch.setattr("test_templates.TEMPLATES", templates_grown(tmp_path))
    build_outside(name, tmp_path, grown)
    (library,) = (tmp_path / name).glob("*.so")
    messages_pass(build, library, tmp_path, dispatch)
    assert not not_kept(build, tmp_path, name, *QUICK)


def test_an_adapter_that_is_older_than_the_host_works(build: Path, tmp_path: Path) -> None:
    """Of the first header: its table lacks what came later. test_templates.py has the whole suite on it."""
    build_outside("in_c", tmp_path, FIRST)
    (library,) = (tmp_path / "in_c").glob("*.so")
    messages_pass(build, library, tmp_path, "poll")
