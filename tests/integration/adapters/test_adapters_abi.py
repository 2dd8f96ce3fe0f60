# SPDX-License-Identifier: Apache-2.0
"""What is refused as an adapter library, and that adapter.h is enough to write one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from needs import ROOT, need

HEADER = ROOT / "engine" / "include" / "lagometer" / "adapter.h"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def test_a_library_that_is_no_adapter_is_refused(build: Path) -> None:
    worker = build / "engine" / "lagometer-worker"
    for library in ("libz.so.1", "/nowhere/liblagometer_absent.so"):
        result = subprocess.run([str(worker), "--probe", library], capture_output=True, timeout=30)
        assert result.returncode == 1
        assert library in json.loads(result.stdout)["error"]


@pytest.mark.parametrize(
    ("compiler", "language", "standard"), [("cc", "c", "c11"), ("cc", "c", "c17"), ("c++", "c++", "c++20")]
)
def test_the_header_stands_alone(tmp_path: Path, compiler: str, language: str, standard: str) -> None:
    need(compiler)
    source = tmp_path / "source"
    source.write_text(
        '#include "lagometer/adapter.h"\n'
        "const lagometer_adapter_table* lagometer_adapter(const lagometer_host* host) LAGOMETER_NOEXCEPT\n"
        "{ static lagometer_adapter_table table; return host ? &table : 0; }\n"
    )
    command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, f"-I{HEADER.parents[1]}", "-c"]
    result = subprocess.run(
        [*command, str(source), "-o", str(tmp_path / "object")], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    program = shutil.which("nm")
    if program:
        symbols = subprocess.run([program, str(tmp_path / "object")], capture_output=True, text=True).stdout
        assert " T lagometer_adapter\n" in symbols, "it is not a C symbol"


def test_what_is_installed_compiles(build: Path, tmp_path: Path) -> None:
    """Each header by itself: those of the ABI in C11 and C++20, the helpers in their language."""
    need("cc")
    need("c++")
    command = ["cmake", "--install", str(build), "--prefix", str(tmp_path), "--component", "headers"]
    subprocess.run(command, check=True, capture_output=True)
    (include,) = tmp_path.rglob("include")
    installed = {path.name for path in (include / "lagometer").iterdir()}
    abi = {path.name for path in HEADER.parent.glob("*.h")}
    assert abi <= installed, f"not installed: {abi - installed}"
    c, cpp = ["cc", "-xc", "-std=c11"], ["c++", "-xc++", "-std=c++20"]
    for name in sorted(installed):
        helpers = {"plain.h": [c], "binding.hpp": [cpp], "refusing.hpp": [cpp]}
        languages = helpers.get(name, [c, cpp] if name.endswith(".h") else [])
        for language in languages:
            line = [*language, *WARNINGS, "-Wno-unused-function", f"-I{include}", "-fsyntax-only", "-"]
            result = subprocess.run(
                line, input=f"#include <lagometer/{name}>\n", capture_output=True, text=True
            )
            assert result.returncode == 0, f"{name}: {result.stderr}"


def test_the_header_is_short() -> None:
    assert len(HEADER.read_text(encoding="utf-8").splitlines()) <= 500
