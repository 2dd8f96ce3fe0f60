# SPDX-License-Identifier: Apache-2.0
"""Campaigns with an adapter of a test's own: the toy in Python, which hands over within the process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from needs import ROOT

TOY = ROOT / "tests" / "toy_adapter.py"
ABILITIES: dict[str, Any] = {
    "dispatch": ["listener"],
    "reliability": ["best_effort"],
    "history": ["keep_last"],
    "durability": ["volatile"],
    "types": ["bytes"],
    "profiles": ["default"],
    "domains": False,
}
CELL = {"adapter": "toy", "dispatch": "listener", "placement": "single-process"}


def write_toy(folder: Path, more: str = "", library: Path | None = None) -> dict[str, str]:
    """Writes the adapter `toy` below a folder; the environment in which lagometer finds it.

    more: code that follows the toy's; library: of an adapter for the worker in C++, instead.
    """
    place = folder / "adapters" / "toy"
    place.mkdir(parents=True)
    sidecar = {"name": "toy", "title": "of a test", "abi_version": 1, "scope": "process"}
    if library is None:
        sidecar |= {"worker": "python", "library": "toy.py"}
        (place / "toy.py").write_text(TOY.read_text() + more)
    else:
        sidecar |= {"library": library.name}
        (place / library.name).symlink_to(library)
    (place / "adapter.json").write_text(json.dumps(sidecar | {"abilities": ABILITIES}))
    return {"LAGOMETER_ADAPTER_PATH": str(folder / "adapters")}
