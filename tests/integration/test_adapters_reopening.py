# SPDX-License-Identifier: Apache-2.0
"""Every adapter opened and closed a hundred times amid traffic: nothing is left, no callback comes late."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from needs import FLOORS, MIDDLEWARE, ROOT, adapter_library, need
from worker_support import daemons_beside, machine

SOURCE = Path(__file__).with_name("reopening.cpp")
ROUNDS = 100

# roscpp keeps idle connections to the master for some seconds and uses them again (XMLRPCManager): a few more
# or less, however often a context is opened.
KEPT_DESCRIPTORS = {"ros1": 8}


@pytest.fixture(scope="module")
def reopening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that does it, built against the public header alone."""
    need("c++")
    program = tmp_path_factory.mktemp("reopening") / "reopening"
    include = ROOT / "engine" / "include"
    subprocess.run(["c++", "-std=c++20", f"-I{include}", str(SOURCE), "-o", str(program), "-ldl"], check=True)
    return program


@pytest.mark.parametrize("dispatch", ["listener", "poll"])
@pytest.mark.parametrize("adapter", (*FLOORS, *MIDDLEWARE))
def test_nothing_is_left_of_a_hundred_openings(
    build: Path, reopening: Path, adapter: str, dispatch: str
) -> None:
    need("netns")
    need(adapter)
    library = adapter_library(adapter, build)
    sidecar = json.loads((library.parent / "adapter.json").read_text())
    if dispatch not in sidecar["abilities"]["dispatch"]:
        return
    beside = daemons_beside(library)
    command = (str(reopening), str(library), str(ROUNDS), dispatch)
    with machine(build, 1, wrap=command, beside=beside) as private:
        (said,) = private.finish()
    assert said.code == 0, said.errors
    before, after = said.event("before"), said.event("after")
    for held in ("threads", "files"):
        assert after[held] == before[held], (held, before, after)
    kept = KEPT_DESCRIPTORS.get(adapter, 0)
    assert abs(after["descriptors"] - before["descriptors"]) <= kept, (before, after)
    assert said.event("callbacks")["late"] == 0
