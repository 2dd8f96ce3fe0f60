# SPDX-License-Identifier: Apache-2.0
"""What the tests of the conformance suite share: a run of it, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from lagometer.conformance.abilities import ABILITIES

Mapping = dict[str, Any]
# What takes long is left to `lagometer conformance --all`, as is what other tests do with real workers.
LEFT_OUT = ("large", "500-topics", "teardown", "output")
# `make nightly` sets it.
EVERYTHING = "LAGOMETER_LONG" in os.environ
# Without it every adapter shows these, and half of the others: what one leaves out, others show.
ALWAYS = ("discovery", "options", "settings", "contract", "services", "security")


def abilities_to_show(adapter: str) -> list[str]:
    """The options of `lagometer conformance` for a run of the tests."""
    short = [each.name for each in ABILITIES if each.name not in LEFT_OUT]
    first = zlib.crc32(adapter.encode()) % 2
    mine = [name for place, name in enumerate(short) if EVERYTHING or name in ALWAYS or place % 2 == first]
    return [word for name in mine for word in ("--only", name)]


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
