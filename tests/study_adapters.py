# SPDX-License-Identifier: Apache-2.0
"""A folder of adapters for tests of studies: sidecars as adapters ship them, libraries empty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lagometer.study.adapter import Adapter
from lagometer.study.adapters import load_adapter

ABILITIES: dict[str, Any] = {
    "dispatch": ["listener", "waitset", "poll"],
    "reliability": ["best_effort", "reliable"],
    "history": ["keep_last", "keep_all"],
    "durability": ["volatile", "transient_local"],
    "types": ["bytes", "fixed"],
    "profiles": ["default", "matched"],
    "domains": True,
}
SPECIAL: dict[str, dict[str, Any]] = {
    "null": {"scope": "process", "abilities": {**ABILITIES, "dispatch": ["waitset", "poll"]}},
    "shm": {
        "abilities": {**ABILITIES, "services": True},
        "limits": {
            "depth_max": 256,
            "depth_max_reason": "its queue",
            "transient_local_depth_max": 16,
            "transient_local_depth_max_reason": "its history",
        },
    },
    "udp": {
        "abilities": {**ABILITIES, "reliability": ["best_effort"], "domains": False},
        "limits": {"payload_bytes_max": 65507, "payload_bytes_max_reason": "the largest UDP datagram"},
    },
    "cyclonedds": {
        "limits": {"topic_names": "[A-Za-z0-9_/]+", "topic_names_reason": "letters and digits"},
        "scope": "network",
        "abilities": {**ABILITIES, "types": ["bytes", "fixed", "string", "Image", "Imu", "PointCloud2"]},
        "interoperates_with": ["fastdds", "ros2"],
        "options": {
            "max_message_size": {
                "type": "integer",
                "default": 14720,
                "description": "bytes",
                "minimum": 1024,
            },
            "transport": {
                "type": "string",
                "choices": ["udp", "shm"],
                "also": {"shared-memory": "shm"},
                "within_host": ["shm"],
                "description": "which",
            },
            "loud": {"type": "boolean", "description": "whether"},
            "ratio": {"type": "number", "maximum": 1, "description": "how much"},
        },
    },
    "fastdds": {"interoperates_with": ["cyclonedds"]},
    "zeromq": {
        "scope": "network",
        "options": {
            "transport": {
                "type": "string",
                "default": "ipc",
                "choices": ["ipc", "tcp"],
                "within_host": ["ipc"],
                "description": "which",
            },
        },
    },
    "ros2": {
        "abilities": {
            **ABILITIES,
            "types": ["bytes", "fixed", "string", "Image", "Imu", "PointCloud2"],
            "executor": True,
        },
        "interoperates_with": ["cyclonedds"],
        "own_types": ["bytes", "fixed"],
    },
}


def write_adapters(folder: Path, missing: dict[str, str] | None = None) -> dict[str, Adapter]:
    """Writes one folder for each adapter of SPECIAL; `missing`: those without a library, and why."""
    for name, special in SPECIAL.items():
        directory = folder / name
        directory.mkdir(parents=True, exist_ok=True)
        sidecar = {
            "name": name,
            "title": name,
            "abi_version": 1,
            "library": f"liblagometer_{name}.so",
            "scope": "host",
            "abilities": ABILITIES,
            **special,
        }
        (directory / "adapter.json").write_text(json.dumps(sidecar))
        if name in (missing or {}):
            (directory / "missing.txt").write_text((missing or {})[name] + "\n")
        else:
            (directory / f"liblagometer_{name}.so").touch()
    return {name: load_adapter(folder / name) for name in SPECIAL}
