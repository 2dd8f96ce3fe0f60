# SPDX-License-Identifier: Apache-2.0
"""What `null` shows a reader outlives the writer that sent it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from needs import ROOT, adapter_library, need


def test_a_message_that_is_shown_outlives_its_writer(build: Path, tmp_path: Path) -> None:
    need("c++")
    program = tmp_path / "shown"
    source = Path(__file__).with_name("shown_after_writer.cpp")
    include = ROOT / "engine" / "include"
    subprocess.run(["c++", "-std=c++20", f"-I{include}", str(source), "-o", str(program), "-ldl"], check=True)
    result = subprocess.run([program, adapter_library("null", build)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
