# SPDX-License-Identifier: Apache-2.0
"""What the launcher `ssh` says of a host that it refuses: an `ssh` of our own runs the command here."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.bundle import bundle_of, here
from lagometer.run.hosts.ssh import SshLauncher
from lagometer.study.hosts import Host

SSH = """#!/bin/sh
for command in "$@"; do :; done
exec sh -c "$command"
"""
# A Python that says it runs on another type of machine.
PYTHON = """#!/bin/sh
exec {python} -I -c "import platform; platform.machine = lambda: '{machine}'; $3"
"""


def refusal(folder: Path, machine: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why an installation without an agent is refused on such a machine."""
    there, programs = folder / "there", folder / "bin"
    interpreter = Path(sys.executable)
    inside = interpreter.relative_to(here()) if interpreter.is_relative_to(here()) else Path("python")
    python = PYTHON.format(python=interpreter, machine=machine)
    for path, text in (
        (programs / "ssh", SSH),
        (programs / "python3", python),
        (there / inside, python),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    launcher = SshLauncher("base", Host(launcher="ssh", path=str(there)), bundle_of([]))
    with pytest.raises(HostError) as caught:
        launcher.start()
    return str(caught.value)


@pytest.mark.parametrize("machine", [platform.machine(), "another"])
def test_a_copy_is_advised_where_it_can_run(
    tmp_path: Path, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refusal(tmp_path, machine, monkeypatch)
    assert "is missing: install the version of this lagometer there" in said
    assert ("leave `path` out" in said) is (machine != "another")
    assert ("can't run on another" in said) is (machine == "another")
