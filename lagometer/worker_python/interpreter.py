# SPDX-License-Identifier: Apache-2.0
"""The options that every adapter in Python has, because they belong to the interpreter."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from lagometer.worker_python.adapter import AdapterError

COLLECTION, SWITCH_INTERVAL = "garbage_collection", "switch_interval_us"
SWITCH_INTERVAL_US_DEFAULT = 5_000


def set_up_interpreter(asked: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Applies the adapters' options for the interpreter. Returns what differs from Python's default. Raises
    AdapterError."""
    settings: dict[str, Any] = {}
    if any(not isinstance(options.get(COLLECTION, True), bool) for options in asked):
        raise AdapterError(f"option {COLLECTION} must be true or false")
    if any(options.get(COLLECTION) is False for options in asked):
        gc.disable()
        settings["python.gc"] = {"value": False, "default": True}
    intervals_us = [options[SWITCH_INTERVAL] for options in asked if SWITCH_INTERVAL in options]
    if intervals_us:
        if not isinstance(intervals_us[0], int) or not 1 <= intervals_us[0] <= 1_000_000:
            raise AdapterError(f"option {SWITCH_INTERVAL} must be a whole number from 1 to 1000000")
        sys.setswitchinterval(intervals_us[0] / 1e6)
        settings["python.switch_interval_us"] = {
            "value": intervals_us[0],
            "default": SWITCH_INTERVAL_US_DEFAULT,
        }
    return settings


def own_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the adapter's own options, without the interpreter's."""
    return {key: value for key, value in options.items() if key not in (COLLECTION, SWITCH_INTERVAL)}
