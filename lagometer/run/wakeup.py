# SPDX-License-Identifier: Apache-2.0
"""The wake-up latency of this machine: how late each CPU wakes a sleeping thread, without any middleware.

A campaign keeps it in floor.json.

The worker's `--wake-up` measures it once, before the first trial of a campaign.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from lagometer.run.interruption import Interruption
from lagometer.run.order import least_ns
from lagometer.store import format as form
from lagometer.store.environment import load_now, ticks_now
from lagometer.store.storing import storing
from lagometer.study import Cell, Study

NS_PER_S = 1_000_000_000
GRACE_S = 10.0
TEXT_BYTES_MAX = 1 << 22
# If the study sets no length: 10 s, which with one wake-up per millisecond gives ten values beyond p99.9; but
# at most this share of the campaign's time.
SHARE = 0.1
LEAST_NS, MOST_NS = NS_PER_S // 10, 10 * NS_PER_S


class WakeupError(Exception):
    """The wake-up latency could not be measured. Says what the worker reported."""


class _Core(BaseModel):
    model_config = ConfigDict(extra="forbid")
    cpu: int
    n: int
    p50_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int


class _WakeUp(BaseModel):
    """The output of `lagometer-worker --wake-up`."""

    model_config = ConfigDict(extra="forbid")
    policy: str
    period_ns: int
    duration_ns: int
    cores: list[_Core]
    warnings: list[str]


def wakeup_duration_ns(study: Study, cells: Sequence[Cell], max_s: float | None = None) -> int:
    """How long to measure the wake-up latency for this campaign; 0 to skip it.

    max_s: the time limit of the campaign.
    """
    if study.machine_floor_ns is not None:
        return study.machine_floor_ns
    campaign_ns = float(least_ns(study, cells))
    if max_s is not None:
        campaign_ns = min(campaign_ns, max_s * NS_PER_S)
    return min(max(LEAST_NS, round(campaign_ns * SHARE)), MOST_NS)


def write_wakeup(
    directory: Path, worker: Path, duration_ns: int, priority: int, interruption: Interruption
) -> None:
    """Measures the wake-up latency and writes floor.json, unless it is there already.

    Raises `WakeupError`, `CannotStore`, `Interrupted`.
    """
    path = directory / form.FLOOR
    if duration_ns == 0 or path.exists():
        return
    measured = measure_wakeup(worker, duration_ns, priority, interruption)
    with storing(path):
        form.write_json_atomic(measured, path)


def measure_wakeup(
    worker: Path, duration_ns: int, priority: int, interruption: Interruption
) -> dict[str, Any]:
    """Returns floor.json in the form of docs/FORMAT.md. Raises `WakeupError`, `Interrupted`."""
    measured = datetime.now(timezone.utc).isoformat(timespec="seconds")
    load, before = load_now(), ticks_now()
    duration_ms = max(1, duration_ns // 1_000_000)
    text = _said(
        [str(worker), "--wake-up", str(duration_ms), str(priority)], duration_ms / 1000, interruption
    )
    after = ticks_now()
    try:
        wake_up = _WakeUp.model_validate_json(text)
    except ValidationError as error:
        raise WakeupError(f"{worker} --wake-up printed {text[:200]!r}, which is not a valid floor") from error
    return {
        "measured": measured,
        "policy": wake_up.policy,
        "priority": priority if wake_up.policy == "fifo" else None,
        "period_ns": wake_up.period_ns,
        "duration_s": wake_up.duration_ns / NS_PER_S,
        "steal_share": _steal_share(before, after),
        "load": load,
        "cores": [core.model_dump() for core in wake_up.cores],
        "warnings": wake_up.warnings,
    }


def _said(command: Sequence[str], seconds: float, interruption: Interruption) -> bytes:
    """Runs the worker and returns its output. Nothing of it runs afterwards."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # we handle Ctrl-C on the terminal
        )
    except OSError as error:
        raise WakeupError(f"{command[0]} can't be started: {error.strerror}") from error
    assert process.stdout is not None
    deadline_s = time.monotonic() + seconds + GRACE_S
    text, ended = b"", False
    try:
        while len(text) < TEXT_BYTES_MAX:
            remaining_s = deadline_s - time.monotonic()
            watched = [process.stdout.fileno(), interruption.descriptor()]
            ready, _, _ = select.select(watched, [], [], max(0.0, remaining_s))
            interruption.check()
            if not ready:
                raise WakeupError(f"{command[0]} --wake-up did not end within {seconds + GRACE_S:.1f} s")
            piece = os.read(watched[0], 65536) if watched[0] in ready else None
            if piece == b"":
                ended = True
                break
            text += piece or b""
    finally:
        if not ended:
            process.kill()
        process.wait()
        process.stdout.close()
    if process.returncode != 0:
        end = json.dumps(text.decode(errors="replace")[-300:])
        raise WakeupError(f"{command[0]} --wake-up failed: {end}")
    return text


def _steal_share(before: dict[str, int] | None, after: dict[str, int] | None) -> float | None:
    """The share of all CPUs' time that a hypervisor gave to others meanwhile; None if unknown."""
    if before is None or after is None or after["total"] <= before["total"]:
        return None
    return (after["steal"] - before["steal"]) / (after["total"] - before["total"])
