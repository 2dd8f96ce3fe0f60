# SPDX-License-Identifier: Apache-2.0
"""The energy that the machine's processors have used, if their counters can be read (RAPL, powercap)."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path("/sys/class/powercap")
NJ_PER_UJ = 1000


@dataclass(frozen=True)
class Energy:
    """Microjoules by package, and the value at which each counter wraps. why: the reason if energy is not
    available."""

    packages_uj: Mapping[str, int] = field(default_factory=dict)
    ranges_uj: Mapping[str, int] = field(default_factory=dict)
    why: str | None = None


def read_energy(folder: Path = FOLDER) -> Energy:
    """Reads the counters of all packages. They include the parts of a package, such as its cores."""
    packages: dict[str, int] = {}
    ranges: dict[str, int] = {}
    try:
        for zone in sorted(folder.glob("intel-rapl:*")):
            if (zone / "name").read_text().startswith("package"):
                packages[zone.name] = int((zone / "energy_uj").read_text())
                ranges[zone.name] = int((zone / "max_energy_range_uj").read_text())
    except (OSError, ValueError) as error:
        code = errno.errorcode.get(getattr(error, "errno", None) or 0, "")
        return Energy(why=f"{code or 'EINVAL'}: {folder} can't be read")
    if not packages:
        return Energy(why=f"ENOENT: no package in {folder}")
    return Energy(packages, ranges)


def energy_between(before: Energy, after: Energy) -> tuple[int | None, str | None]:
    """Returns the nanojoules of all packages between two readings, or why they are not known."""
    if before.why or after.why:
        return None, before.why or after.why
    if before.packages_uj.keys() != after.packages_uj.keys():
        return None, "the packages changed"
    total = 0
    for name, then in before.packages_uj.items():
        used_uj = after.packages_uj[name] - then
        total += used_uj if used_uj >= 0 else used_uj + after.ranges_uj[name] + 1
    return total * NJ_PER_UJ, None
