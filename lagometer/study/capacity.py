# SPDX-License-Identifier: Apache-2.0
"""Recorded capacities of links, as traces in Mahimahi's format (Netravali et al., USENIX ATC 2015).
Each line is a millisecond at which one packet of 1500 bytes may leave; the trace repeats."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lagometer.study.document import is_file
from lagometer.units import UnitError

CAPACITY = "capacity"
PACKET_BYTES = 1504  # including the 4 bytes that Mahimahi's own device adds
LINES_MAX = 2_000_000
PERIOD_MS_MAX = 24 * 3600 * 1000
RATE_BPS_MIN, RATE_BPS_MAX = 10_000, 1_000_000_000


@dataclass(frozen=True)
class Capacity:
    """name: the file's name; sha256: its hash; times_ms: when packets may leave; the last is the period."""

    name: str
    sha256: str
    times_ms: tuple[int, ...]

    @property
    def mean_rate_bps(self) -> int:
        """The mean rate over the whole trace."""
        return round(len(self.times_ms) * PACKET_BYTES * 8 * 1000 / self.times_ms[-1])

    def as_json(self) -> dict[str, Any]:
        """For manifest.json: identifies the trace; the trace itself is the user's file."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "packets": len(self.times_ms),
            "period_ms": self.times_ms[-1],
            "mean_rate_bps": self.mean_rate_bps,
        }

    def text(self) -> str:
        """The trace in the form that the program that emulates the link reads."""
        return "".join(f"{time_ms}\n" for time_ms in self.times_ms)


def load_capacity(file_name: str, folder: Path) -> Capacity:
    """Reads a trace. folder: tried first for relative paths, before the working directory. Raises
    UnitError."""
    path = next((path for path in (folder / file_name, Path(file_name)) if file_name and is_file(path)), None)
    if path is None:
        raise UnitError(f"the file '{file_name}' is neither in {folder} nor in the working directory")
    try:
        content = path.read_bytes()
        lines = content.decode("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnitError(f"the file '{file_name}' can't be read as text: {error}") from error
    if not 0 < len(lines) <= LINES_MAX:
        raise UnitError(f"the file '{file_name}' has {len(lines):,} lines, not 1 to {LINES_MAX:,}")
    times_ms = tuple(_time_ms(file_name, number, line.strip()) for number, line in enumerate(lines, 1))
    for number, (earlier_ms, later_ms) in enumerate(itertools.pairwise(times_ms), 2):
        if later_ms < earlier_ms:
            raise UnitError(f"line {number} of '{file_name}' is earlier than the line before it")
    if times_ms[-1] == 0:
        raise UnitError(f"'{file_name}' ends at 0 ms: its last line is the time at which it begins again")
    capacity = Capacity(
        re.sub(r"[^A-Za-z0-9._-]", "-", path.stem), hashlib.sha256(content).hexdigest(), times_ms
    )
    if not RATE_BPS_MIN <= capacity.mean_rate_bps <= RATE_BPS_MAX:
        raise UnitError(
            f"'{file_name}' has a mean of {capacity.mean_rate_bps:,} bit/s, not 10 kbit/s to 1 Gbit/s"
        )
    return capacity


def _time_ms(file_name: str, number: int, line: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", line) or int(line) > PERIOD_MS_MAX:
        raise UnitError(
            f"line {number} of '{file_name}' is not a whole number of ms, at most a day: '{line}'"
        )
    return int(line)
