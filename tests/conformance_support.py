# SPDX-License-Identifier: Apache-2.0
"""What the tests of the conformance suite share: a run of it, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lagometer.conformance.abilities import ABILITIES

Mapping = dict[str, Any]
# What takes long is left to `lagometer conformance --all`, as is what other tests do with real workers.
LEFT_OUT = ("large", "500-topics", "teardown", "output")
WITHOUT_LONG = [word for each in ABILITIES if each.name not in LEFT_OUT for word in ("--only", each.name)]
# `make nightly` sets it.
EVERYTHING = "LAGOMETER_LONG" in os.environ


def conformance(
    build: Path, *arguments: str, path: Path | None = None, seconds: float = 900
) -> tuple[int, Mapping, str]:
    """Runs `lagometer conformance … --json`; returns its exit code, what it printed, and its messages."""
    folders = [str(path)] if path else []
    environment = {
        **os.environ,
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_CONFORMANCE": str(build / "engine" / "lagometer-conformance"),
        "LAGOMETER_ADAPTER_PATH": os.pathsep.join([*folders, str(build / "adapters")]),
    }
    command = [sys.executable, "-m", "lagometer.cli.main", "conformance", *arguments, "--json"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
    return result.returncode, json.loads(result.stdout), result.stderr


def abilities(results: Mapping) -> dict[str, Mapping]:
    """What came of each ability of the one adapter."""
    (adapter,) = results["adapters"]
    return {each["ability"]: each for each in adapter["abilities"]}


def broken_lines(ability: Mapping) -> list[str]:
    """What is not kept, with what was seen."""
    return [f"{line['name']}: {line['detail']}" for line in ability["lines"] if line["passed"] is False]
