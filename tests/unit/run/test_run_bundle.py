# SPDX-License-Identifier: Apache-2.0
"""What goes to another host: it is enough for an agent, and it is named by what is in it."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from lagometer.agent.arrival import START
from lagometer.installation import PACKAGE
from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.bundle import AGENT_SOURCES, Bundle, name_of


def bundle(*programs: Path) -> Bundle:
    sources = sorted({path for pattern in AGENT_SOURCES for path in PACKAGE.glob(pattern)})
    return Bundle(tuple(sources), programs)


def test_an_agent_starts_from_nothing_but_its_copy(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(bundle().packed())) as archive:
        archive.extractall(tmp_path, filter="data")
    root = str(tmp_path / name_of(PACKAGE.parent))
    words = [sys.executable, "-I", "-S", "-c", START, root, "/no/supervisor"]
    done = subprocess.run(words, input="", capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and '"event": "agent"' in done.stdout, done.stderr


def test_a_copy_is_named_by_what_is_in_it(tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(b"one")
    first = bundle(library).hash
    assert bundle(library).hash == first
    library.write_bytes(b"other")
    assert bundle(library).hash != first
    library.unlink()
    with pytest.raises(HostError, match=r"library\.so can't be read here"):
        _ = bundle(library).hash
