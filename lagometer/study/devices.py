# SPDX-License-Identifier: Apache-2.0
"""Devices: how many CPUs a host has, and how fast one is. A host on this machine can be limited to one.

A speed is what 7-Zip's benchmark reports with one thread (`7zr b -mmt1`, the last number of the line
`Tot:`), in MIPS: one public table has it for hundreds of boards, and everybody can measure their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lagometer.study.document import Entries, Scalar, Tree
from lagometer.study.values import Problems, nearest, parsed
from lagometer.units import UnitError

CPUS_MAX = 256
SPEED_MIPS_MIN, SPEED_MIPS_MAX = 10.0, 100_000.0
_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?) *MIPS")
_TABLE = (
    "speed: sbc-bench by Thomas Kaiser (repository ThomasKaiser/sbc-bench), results/Sorted-Results.md "
    "of 2023, table '7-zip MIPS single-threaded'"
)


@dataclass(frozen=True)
class Device:
    """cpus: their number; speed_mips: of one; name: of the class, empty for the study's own; source: of its
    numbers."""

    cpus: int
    speed_mips: float
    name: str = ""
    source: str = ""

    def as_json(self) -> dict[str, object]:
        """For manifest.json."""
        return dict(vars(self))


# Class, CPUs, MIPS, the table's row, and what has that many CPUs by its maker's data sheet.
_ROWS = (
    ("pi-3", 4, 977.0, "Raspberry Pi 3 B, 1200 MHz, kernel 5.15, Raspbian Sid", "Broadcom BCM2837"),
    ("pi-4", 4, 1752.0, "Raspberry Pi 4 B, 1800 MHz, kernel 5.15, Armbian Jammy arm64", "Broadcom BCM2711"),
    ("jetson-nano", 4, 1578.0, "Jetson Nano, 1480 MHz, kernel 4.9, Bullseye arm64", "NVIDIA Tegra X1"),
    ("laptop", 8, 4398.0, "i3-N305, 3800 MHz, kernel 5.19, Jammy amd64", "Intel Core i3-N305, of 2023"),
)
DEVICES: Mapping[str, Device] = {
    name: Device(cpus, speed_mips, name, f"{_TABLE}, row '{row}'; CPUs: {processor}, data sheet")
    for name, cpus, speed_mips, row, processor in _ROWS
}


def read_device(value: Tree, where: str, problems: Problems) -> Device | None:
    """The key `device` of a host: a class, or `{cpus: 4, speed: 1600MIPS}`. None after adding a problem."""
    if isinstance(value, Scalar):
        return parsed(value, where, _named, problems)
    if not isinstance(value, Entries):
        problems.add("is a list", value.line, where, f"write one of {', '.join(DEVICES)}")
        return None
    parsers = {"cpus": _cpus, "speed": _speed_mips}
    fields: dict[str, float] = {}
    known = len(problems)
    for key, item in value.entries:
        if key.text not in parsers:
            problems.add(
                f"unknown key '{key.text}'", key.line, f"{where}.{key.text}", nearest(key.text, parsers)
            )
        elif not isinstance(item, Scalar):
            problems.add("takes one value", key.line, f"{where}.{key.text}", "write it behind the colon")
        elif (number := parsed(item, f"{where}.{key.text}", parsers[key.text], problems)) is not None:
            fields[key.text] = number
    if len(problems) == known and (missing := [key for key in parsers if key not in fields]):
        problems.add(
            f"has no '{missing[0]}'", value.line, where, "write `device: {cpus: 4, speed: 1600MIPS}`"
        )
    return None if len(problems) > known else Device(int(fields["cpus"]), fields["speed"])


def _named(text: str) -> Device:
    if text not in DEVICES:
        raise UnitError(f"unknown device '{text}'; {nearest(text, DEVICES)}, or {{cpus: 4, speed: 1600MIPS}}")
    return DEVICES[text]


def _cpus(text: str) -> float:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= CPUS_MAX):
        raise UnitError(f"'{text}' is not a number of CPUs between 1 and {CPUS_MAX}")
    return int(text)


def _speed_mips(text: str) -> float:
    """Without its unit it could be meant as a share of this machine's speed."""
    match = _SPEED.fullmatch(text)
    if match is None:
        raise UnitError(f"'{text}' is not a speed like 1600MIPS, which `7zr b -mmt1` reports as Tot:")
    if not SPEED_MIPS_MIN <= float(match[1]) <= SPEED_MIPS_MAX:
        raise UnitError(f"'{text}' is not between {SPEED_MIPS_MIN:g} and {SPEED_MIPS_MAX:,.0f} MIPS")
    return float(match[1])
