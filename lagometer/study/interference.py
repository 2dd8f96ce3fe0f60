# SPDX-License-Identifier: Apache-2.0
"""The factor `interference`: which load runs next to the workers, and which program makes it."""

from __future__ import annotations

import re
import shutil

from lagometer.units import UnitError

NONE = "none"
NETWORK = "network"
# The kinds of load, and the program that makes each.
PROGRAMS = {
    "cpu": "stress-ng",
    "memory": "stress-ng",
    "cache": "stress-ng",
    "io": "stress-ng",
    NETWORK: "iperf3",
}
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LEVEL_MAX = 16  # io writes 64 MB per level


def parse_interference(text: str) -> str:
    """The canonical spelling of `none`, or of a kind of load, with `-N` for N times as much and `@HOST` for
    where it runs. Raises UnitError."""
    if text == NONE:
        return text
    load, at, host = text.partition("@")
    if at and HOST_NAME.fullmatch(host) is None:
        raise UnitError(f"'{text}' names no host behind the @, such as cpu-2@base")
    return f"{_load(load)}{at}{host}"


def _load(text: str) -> str:
    kind, dash, number = text.partition("-")
    if kind not in PROGRAMS:
        raise UnitError(
            f"'{text}' is not a kind of interference; write one of none, {', '.join(PROGRAMS)}, or cpu-2"
        )
    if not dash:
        return kind
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= LEVEL_MAX):
        raise UnitError(f"'{text}' has no level between 1 and {LEVEL_MAX}")
    return kind if int(number) == 1 else f"{kind}-{int(number)}"


def kind_and_level(text: str) -> tuple[str, int]:
    """The parts of a canonical spelling other than `none`, without the host."""
    kind, _, number = text.partition("@")[0].partition("-")
    return kind, int(number or 1)


def host_named(text: str) -> str:
    """The host after the `@`; empty if there is no `@`."""
    return text.partition("@")[2]


def missing_program(text: str) -> str | None:
    """Why this interference cannot be made here; None if it can."""
    if text == NONE:
        return None
    program = PROGRAMS[kind_and_level(text)[0]]
    if shutil.which(program) is None:
        return f"interference '{text}' needs {program}, which is not installed (Debian package: {program})"
    return None
