# SPDX-License-Identifier: Apache-2.0
"""When sources send: the open-loop schedules that a study can name, and recorded ones from a file.

The text of a schedule, in the factor `schedule` and in a cell's id, is canonical: `periodic`, `poisson`,
`burst-10`, `ramp-1kHz`, `recorded-NAME`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lagometer import units
from lagometer.study.document import is_file
from lagometer.units import UnitError

Kind = Literal["periodic", "poisson", "burst", "ramp", "recorded"]
FORMS = "periodic, poisson, burst-N, ramp-RATE, recorded-FILE"
BURST_MAX = 10_000
RATE_HZ_MIN, RATE_HZ_MAX = 0.001, 1e6
INTERVALS_MAX = 1 << 20
INTERVAL_NS_MAX = 3_600_000_000_000
MEAN_INTERVAL_NS_MIN = 1_000
RECORDED = "recorded-"


@dataclass(frozen=True)
class Recording:
    """Inter-arrival times from a file, in nanoseconds; sha256: of the file."""

    name: str
    sha256: str
    intervals_ns: tuple[int, ...]

    @property
    def mean_ns(self) -> float:
        """The mean interval."""
        return sum(self.intervals_ns) / len(self.intervals_ns)

    def as_json(self) -> dict[str, object]:
        """The recording's entry in the manifest."""
        return {"sha256": self.sha256, "intervals": len(self.intervals_ns), "mean_ns": self.mean_ns}


@dataclass(frozen=True)
class Schedule:
    """When a source sends. messages: how many at once in a burst; end_period_ns: of a ramp; recording: of a
    recorded one."""

    kind: Kind = "periodic"
    messages: int = 1
    end_period_ns: int | None = None
    recording: Recording | None = None


PERIODIC = Schedule()


def canonical_schedule(text: str) -> str:
    """The one spelling of a schedule. Raises UnitError."""
    if text in ("periodic", "poisson"):
        return text
    if text.startswith("burst-"):
        messages = units.parse_count(text.removeprefix("burst-"))
        if not 2 <= messages <= BURST_MAX:
            raise UnitError(f"'{text}' is not between burst-2 and burst-{BURST_MAX}")
        return f"burst-{messages}"
    if text.startswith("ramp-"):
        rate_hz = units.parse_rate_hz(text.removeprefix("ramp-"))
        if not RATE_HZ_MIN <= rate_hz <= RATE_HZ_MAX:
            raise UnitError(f"'{text}' does not end between {RATE_HZ_MIN} Hz and 1 MHz")
        return f"ramp-{units.format_rate(rate_hz)}"
    if re.fullmatch(RECORDED + r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        return text
    raise UnitError(f"'{text}' is not a schedule; write one of {FORMS}")


def schedule_of(text: str, recording: Recording | None) -> Schedule:
    """The schedule of a canonical text; `recording`: the recording of this name, for a recorded schedule."""
    if text.startswith("burst-"):
        return Schedule("burst", messages=int(text.removeprefix("burst-")))
    if text.startswith("ramp-"):
        rate_hz = units.parse_rate_hz(text.removeprefix("ramp-"))
        return Schedule("ramp", end_period_ns=round(1e9 / rate_hz))
    if text.startswith(RECORDED):
        return Schedule("recorded", recording=recording)
    return Schedule("poisson" if text == "poisson" else "periodic")


def load_recording(text: str, folder: Path) -> Recording:
    """Reads the file of `recorded-FILE`: a whole number of nanoseconds on each line; `#` starts a comment.

    folder: tried first for relative paths, before the working directory. Raises UnitError.
    """
    file_name = text.removeprefix(RECORDED)
    path = next((path for path in (folder / file_name, Path(file_name)) if file_name and is_file(path)), None)
    if path is None:
        raise UnitError(f"the file '{file_name}' is neither in {folder} nor in the working directory")
    try:
        content = path.read_bytes()
        lines = content.decode("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnitError(f"the file '{file_name}' can't be read as text: {error}") from error
    numbered = [(number, line.split("#")[0].strip()) for number, line in enumerate(lines, 1)]
    intervals_ns = tuple(_interval_ns(file_name, number, line) for number, line in numbered if line)
    if not 0 < len(intervals_ns) <= INTERVALS_MAX:
        raise UnitError(f"the file '{file_name}' has {len(intervals_ns)} intervals, not 1 to {INTERVALS_MAX}")
    recording = Recording(re.sub(r"[^A-Za-z0-9._-]", "-", path.stem), _sha256(content), intervals_ns)
    if recording.mean_ns < MEAN_INTERVAL_NS_MIN:
        raise UnitError(f"the intervals in '{file_name}' have a mean below {MEAN_INTERVAL_NS_MIN} ns")
    canonical_schedule(RECORDED + recording.name)
    return recording


def _interval_ns(file_name: str, number: int, line: str) -> int:
    if not re.fullmatch(r"[0-9]{1,16}", line) or int(line) > INTERVAL_NS_MAX:
        raise UnitError(
            f"line {number} of '{file_name}' is not a whole number of ns, at most an hour: '{line}'"
        )
    return int(line)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
