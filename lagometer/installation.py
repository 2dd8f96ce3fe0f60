# SPDX-License-Identifier: Apache-2.0
"""Where this installation has its programs and headers: in the package, or in a checkout's build."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from lagometer.errors import SetupMissing

PYTHON_WORKER = "lagometer.worker_python"
PYTHON_CONFORMANCE = "lagometer.conformance.in_python"
PROBE = "liblagometer_probe.so"
PACKAGE = Path(__file__).resolve().parent
BUILD = PACKAGE.parent / "build" / "release"


def worker_command(worker: str) -> tuple[str, ...]:
    """The command that starts the worker for this adapter. Raises SetupMissing.

    A Python worker uses this interpreter, isolated from PYTHONPATH and the current folder.
    """
    if worker == "python":
        return (sys.executable, "-I", "-m", PYTHON_WORKER)
    return (str(worker_path()),)


def worker_path() -> Path:
    """The program `lagometer-worker`; LAGOMETER_WORKER overrides. Raises SetupMissing."""
    return _program("lagometer-worker", "LAGOMETER_WORKER")


def supervisor_path() -> Path:
    """The program `lagometer-supervisor`; LAGOMETER_SUPERVISOR overrides. Raises SetupMissing."""
    return _program("lagometer-supervisor", "LAGOMETER_SUPERVISOR")


def leftovers_path() -> Path:
    """The program `lagometer-leftovers`; LAGOMETER_LEFTOVERS overrides. Raises SetupMissing."""
    return _program("lagometer-leftovers", "LAGOMETER_LEFTOVERS")


def link_path() -> Path:
    """The program `lagometer-link`; LAGOMETER_LINK overrides. Raises SetupMissing."""
    return _program("lagometer-link", "LAGOMETER_LINK")


def scheduler_path() -> Path:
    """The program `lagometer-scheduler`; LAGOMETER_SCHEDULER overrides. Raises SetupMissing."""
    return _program("lagometer-scheduler", "LAGOMETER_SCHEDULER")


def listen_path() -> Path:
    """The program `lagometer-listen`; LAGOMETER_LISTEN overrides. Raises SetupMissing: needs Fast DDS."""
    return _program("lagometer-listen", "LAGOMETER_LISTEN")


def probe_path() -> Path:
    """The library that `layers: on` and `probe` preload; LAGOMETER_PROBE overrides. Raises SetupMissing."""
    override = os.environ.get("LAGOMETER_PROBE")
    candidates = (PACKAGE / "libexec" / "probes" / PROBE, BUILD / "probes" / PROBE)
    for candidate in (Path(override),) if override else candidates:
        if candidate.is_file():
            return candidate
    if override:
        raise SetupMissing(
            f"'{override}' is not a file", where="LAGOMETER_PROBE", hint=f"name {PROBE} or unset it"
        )
    raise SetupMissing(f"the library {PROBE} is missing", hint="run `make setup`")


def conformance_command(worker: str) -> tuple[str, ...]:
    """The command that starts a process of a conformance check of this adapter. Raises SetupMissing."""
    if worker == "python":
        return (sys.executable, "-I", "-m", PYTHON_CONFORMANCE)
    return (str(conformance_path()),)


def conformance_path() -> Path:
    """The program `lagometer-conformance`; LAGOMETER_CONFORMANCE overrides. Raises SetupMissing."""
    return _program("lagometer-conformance", "LAGOMETER_CONFORMANCE")


def include_path() -> Path:
    """The folder with `lagometer/adapter.h`, for authors of adapters. Raises SetupMissing."""
    for candidate in (PACKAGE / "libexec" / "include", BUILD / "include"):
        if (candidate / "lagometer" / "adapter.h").is_file():
            return candidate
    raise SetupMissing("lagometer/adapter.h is missing", hint="run `make setup`")


def _program(name: str, variable: str) -> Path:
    override = os.environ.get(variable)
    if override:
        if not os.access(override, os.X_OK):
            raise SetupMissing(
                f"'{override}' is not a program", where=variable, hint=f"name {name} or unset it"
            )
        return Path(override)
    candidates = (
        Path(sys.executable).parent / name,
        PACKAGE / "libexec" / name,
        BUILD / "engine" / name,
    )
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    raise SetupMissing(f"the program {name} is missing", hint="run `make setup`")


def sourced_folders(below: Mapping[str, str]) -> tuple[str, ...]:
    """Folders of programs in sourced installations. below: where they are in each prefix that a variable
    names, such as `lib/rmw_zenoh_cpp` by `AMENT_PREFIX_PATH`."""
    return tuple(
        str(Path(prefix) / place)
        for name, place in below.items()
        for prefix in os.environ.get(name, "").split(os.pathsep)
        if prefix
    )
