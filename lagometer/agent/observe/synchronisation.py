# SPDX-License-Identifier: Apache-2.0
"""What synchronises the host's clock, and how well: the reports of the kernel and the services."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SERVICES = ("chronyd", "ntpd", "ptp4l", "phc2sys", "systemd-timesyn")  # truncated as in /proc
NOT_SYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
PPM_OF_FREQUENCY = 65536.0  # adjtimex(2): 16 fractional bits
NOMINAL_TICK_US = 10_000
PPM_OF_TICK = 100.0  # one microsecond more per hundredth of a second
ANSWER_S = 1.0
_PMC = ("pmc", "-u", "-b", "0")


class _Timex(ctypes.Structure):
    """The kernel's struct timex with longs of 64 bits."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time", ctypes.c_long * 2),
        ("tick", ctypes.c_long),
        ("rest", ctypes.c_long * 32),
    )


def synchronisation() -> dict[str, Any]:
    """Returns what is known: `synchronised`, by how much the kernel speeds up the clock (`pulled_ppm`), the
    kernel's own bound on the error (`error_max_ns`), running `services`; `chrony` and `ptp` with their own
    reports. None: not known."""
    facts: dict[str, Any] = {"synchronised": None, "pulled_ppm": None, "error_max_ns": None}
    with contextlib.suppress(OSError, AttributeError):
        facts |= _of_kernel()
    services = _running()
    facts["services"] = services
    if "chronyd" in services:
        facts["chrony"] = _chrony()
    if "ptp4l" in services:
        facts["ptp"] = _ptp()
    return facts


def _of_kernel() -> dict[str, Any]:
    timex = _Timex(modes=0)
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")
    tick_ppm = (timex.tick - NOMINAL_TICK_US) * PPM_OF_TICK
    return {
        "synchronised": not timex.status & NOT_SYNCHRONISED,
        "pulled_ppm": round(timex.freq / PPM_OF_FREQUENCY + tick_ppm, 3),
        "error_max_ns": timex.maxerror * 1000,
    }


def _running() -> list[str]:
    """Returns which of the known services run, as far as this process can see."""
    names = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                names.add((entry / "comm").read_text().strip())
    return sorted(names & set(SERVICES))


def _chrony() -> dict[str, Any] | None:
    """Returns chronyd's report on its source; its bound is dispersion + delay / 2 (RFC 5905, 11.2)."""
    fields = said_by(("chronyc", "-n", "-c", "tracking")).strip().split(",")
    try:
        delay_s, dispersion_s = float(fields[10]), float(fields[11])
        return {
            "source": fields[1],
            "stratum": int(fields[2]),
            "offset_ns": round(float(fields[4]) * 1e9),
            "bound_ns": round((abs(float(fields[4])) + dispersion_s + delay_s / 2) * 1e9),
            "leap": fields[13],
        }
    except (IndexError, ValueError):
        return None


def _ptp() -> dict[str, Any] | None:
    """Returns ptp4l's report on its master, and what stamps its packets: HARDWARE, SOFTWARE, or None if it
    does not say or ports differ. clock: its own identity, which is the master's on the master."""
    answer = said_by((*_PMC, "GET TIME_STATUS_NP"))
    words = [line.split() for line in answer.splitlines()]
    fields = {pair[0]: pair[1] for pair in words if len(pair) == 2}
    own = next((pair[0] for pair in words if pair[-2:] == ["MANAGEMENT", "TIME_STATUS_NP"]), "")
    ports = [line.split() for line in said_by((*_PMC, "GET PORT_PROPERTIES_NP")).splitlines()]
    stamped_by = {pair[1] for pair in ports if pair[:1] == ["timestamping"] and len(pair) == 2}
    try:
        return {
            "master": fields["gmIdentity"],
            "present": fields["gmPresent"] == "true",
            "offset_ns": int(fields["master_offset"]),
            "clock": own.rpartition("-")[0],
            "timestamping": stamped_by.pop() if len(stamped_by) == 1 else None,
        }
    except (KeyError, ValueError):
        return None


def said_by(command: Sequence[str]) -> str:
    """Returns what a program prints; nothing if it can't."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        completed = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=ANSWER_S,
        )
        if completed.returncode == 0:
            return completed.stdout
    return ""
