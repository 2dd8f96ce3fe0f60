# SPDX-License-Identifier: Apache-2.0
"""Programs into which the probe can't be loaded, each refused with its reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from needs import need

from lagometer.errors import BadInput
from lagometer.run.program.preloading import check_preloading


def refused(program: Path | str) -> str:
    with pytest.raises(BadInput) as caught:
        check_preloading(str(program))
    return str(caught.value)


@pytest.mark.parametrize("program", [sys.executable, "sh", "ldd"])
def test_a_dynamic_program_and_a_script_of_one_are_accepted(program: str) -> None:
    check_preloading(program)


def test_programs_into_which_nothing_can_be_loaded_are_refused(tmp_path: Path) -> None:
    need("cc")
    source, static = tmp_path / "one.c", tmp_path / "static"
    source.write_text("int main(void) { return 0; }")
    subprocess.run(["cc", "-static", "-o", static, source], check=True)
    assert "linked statically" in refused(static)
    script = tmp_path / "script"
    script.write_text(f"#!{static}\n")
    script.chmod(0o755)
    assert "linked statically" in refused(script)
    assert "no executable program 'no-such-program'" in refused("no-such-program")
    data = tmp_path / "data"
    data.write_bytes(b"no program at all")
    data.chmod(0o755)
    assert "neither a program nor a script" in refused(data)
    other = tmp_path / "other"
    content = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    content[18:20] = b"\xf3\x00"  # RISC-V
    other.write_bytes(content)
    other.chmod(0o755)
    assert "another kind of processor" in refused(other)


def test_a_program_that_gains_rights_is_refused(tmp_path: Path) -> None:
    need("root")
    gains = tmp_path / "gains"
    shutil.copy(Path("/bin/true").resolve(), gains)
    os.chown(gains, 65534, 65534)
    gains.chmod(0o4755)
    assert "gains rights" in refused(gains)
