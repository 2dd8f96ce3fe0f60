# SPDX-License-Identifier: Apache-2.0
"""What a test may find absent on a machine: it is skipped, or fails if LAGOMETER_REQUIRE names the thing.

LAGOMETER_REQUIRE is a comma list of: netns, mount, chromium, and adapters of MIDDLEWARE and IN_PYTHON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from lagometer.study.adapters import load_adapter
from lagometer.study.daemons import missing_daemons

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("null", "shm", "uds", "tcp", "udp")
STACKED = ("faulty",)  # stands on another adapter, shm unless told
DDS = ("cyclonedds", "fastdds")  # which understand each other
_SIDECARS = {
    path.parent.name: json.loads(path.read_text())
    for path in sorted((ROOT / "adapters").glob("*/adapter.json"))
}
# Adapters that the worker in Python carries out.
IN_PYTHON = tuple(name for name, sidecar in _SIDECARS.items() if sidecar.get("worker") == "python")
# Whatever else has a folder; most may be absent from a machine.
MIDDLEWARE = tuple(name for name in _SIDECARS if name not in (*FLOORS, *STACKED, *IN_PYTHON))


def require(name: str, available: bool, needs: str) -> None:
    """Skips a test whose need is not met, or fails it where LAGOMETER_REQUIRE names the need."""
    if available:
        return
    if name in os.environ.get("LAGOMETER_REQUIRE", "").split(","):
        pytest.fail(f"LAGOMETER_REQUIRE names {name}, but: {needs}")
    pytest.skip(f"skipped: {needs}")


def need(name: str) -> None:
    """Skips the test, or fails it, unless this machine has `name`: netns, an adapter, or a program."""
    if name == "netns":
        require(name, _namespaces_can_be_made(), "the right to make network namespaces")
    elif name in (*MIDDLEWARE, *IN_PYTHON):
        require(name, adapter_library(name).exists(), f"the adapter {name}: {why_missing(name)}")
        missing = load_adapter(adapter_library(name).parent).missing
        require(name, missing is None, f"the adapter {name}: {missing}")
        absent = list(missing_daemons(load_adapter(adapter_library(name).parent), {}, "default"))
        require(name, not absent, "; ".join(absent))
    elif name in (*FLOORS, *STACKED):
        assert adapter_library(name).exists(), f"{adapter_library(name)} is missing: run make setup"
    else:
        require(name, shutil.which(name) is not None, f"the program {name}")


def build_folder() -> Path:
    """Where the programs that measure were built; LAGOMETER_BUILD overrides."""
    return Path(os.environ.get("LAGOMETER_BUILD", ROOT / "build" / "release"))


def guard_build_folder() -> Path:
    """Where the worker was built that aborts when measuring allocates; LAGOMETER_GUARD_BUILD overrides."""
    return Path(os.environ.get("LAGOMETER_GUARD_BUILD", ROOT / "build" / "guard"))


def adapter_library(name: str, build: Path | None = None) -> Path:
    return (build or build_folder()) / "adapters" / name / _SIDECARS[name]["library"]


def why_missing(name: str) -> str:
    path = build_folder() / "adapters" / name / "missing.txt"
    return path.read_text().strip() if path.exists() else f"{adapter_library(name)} was not built"


@cache
def _namespaces_can_be_made() -> bool:
    commands = (["unshare", "-n", "-m", "-i", "-p", "-f", "true"], ["unshare", "-Ur", "-n", "true"])
    return any(subprocess.run(command, capture_output=True).returncode == 0 for command in commands)


def most_reliable(name: str, build: Path) -> str:
    """The reliability to ask an adapter for where a message should come: best_effort if it knows no other."""
    offered = load_adapter(adapter_library(name, build).parent).sidecar.abilities.reliability
    return "reliable" if "reliable" in offered else "best_effort"
