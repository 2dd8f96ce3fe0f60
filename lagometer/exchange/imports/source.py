# SPDX-License-Identifier: Apache-2.0
"""A file to import, read once, and text functions that the formats share."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lagometer.exchange.errors import ExchangeError

LARGEST_BYTES = 1 << 30  # of a file, which is held in memory as a whole
UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
COMMA = "the decimals are written with a comma, which also separates the columns"


@dataclass(frozen=True)
class Source:
    """One file: its path and its content."""

    path: Path
    content: bytes

    @classmethod
    def read(cls, path: Path) -> Source:
        """Reads it. Raises ExchangeError: missing, empty, too large, not text."""
        try:
            if path.stat().st_size > LARGEST_BYTES:
                raise ExchangeError(f"{path}: larger than {LARGEST_BYTES >> 20} MiB; split it")
            content = path.read_bytes()
        except OSError as error:
            raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from error
        if not content.strip():
            raise ExchangeError(
                f"{path}: is empty ({len(content)} bytes): the run ended before it wrote a result; "
                "leave the file out"
            )
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            raise ExchangeError(
                f"{path}:{line}: byte {content[error.start]:#04x} is not UTF-8; "
                "give the text file that the tool wrote"
            ) from error
        return cls(path, content)

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return self.content.decode("utf-8").removeprefix("\ufeff")

    @cached_property
    def lines(self) -> list[str]:
        """Its lines without line ends; `\\f` and similar characters do not end a line."""
        return re.split(r"\r\n|\n|\r", self.text)

    def where(self, line: int) -> str:
        """`file:line`; the first line is 1."""
        return f"{self.path}:{line}"

    def check_end(self, line: int) -> None:
        """Raises ExchangeError if the file ends within this line, of which the last number is used.

        All tools end their lines, so `cnt 19` at the very end may be what is left of `cnt 19873`.
        """
        if line == len(self.lines) and self.lines[-1]:
            raise ExchangeError(
                f"{self.where(line)}: the file ends within this line, so its last number may be cut off; "
                "remove the line, or if it is whole, end it with a line break"
            )


def number(text: str, where: str, quantity: str) -> float:
    """A finite number, or ExchangeError with the place and what was expected."""
    value = maybe_number(text)
    if value is None or not math.isfinite(value):
        raise ExchangeError(f"{where}: {text.strip()[:40]!r} is not a number ({quantity}); {hint(text)}")
    return value


def count(text: str, where: str, quantity: str) -> int:
    """A whole number from 0 on, or ExchangeError."""
    if not re.fullmatch(r"\d{1,18}", text.strip(), re.ASCII):
        raise ExchangeError(f"{where}: {text.strip()[:40]!r} is not a count ({quantity}); {hint(text)}")
    return int(text)


def hint(text: str) -> str:
    """A hint for a number that could not be read."""
    if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text):
        return "run the tool with LC_ALL=C, which writes decimals with a point"
    return "if the file was cut off there, remove the line"


def maybe_number(text: str) -> float | None:
    """A number as C++ and C print it, including `inf` and `-nan`; None for anything else."""
    if not re.fullmatch(
        r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)\s*", text, re.ASCII
    ):
        return None
    return float(text)
