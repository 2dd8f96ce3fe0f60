# SPDX-License-Identifier: Apache-2.0
"""Distributions of relays' busy times, and the content of payloads.

The texts are canonical, as in factors and cells' ids: `none`, `normal-200us`, `lognormal-0.5`; `any`,
`zeros`, `random`, `recorded-NAME`.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lagometer import units
from lagometer.study.document import is_file
from lagometer.study.schedule import RECORDED
from lagometer.units import UnitError

SPREAD_NS_MAX = 60 * 10**9
SIGMA_MAX = 10.0
CONTENT_BYTES_MAX = 64 << 20


@dataclass(frozen=True)
class WorkSpread:
    """A distribution of busy times. spread_ns: standard deviation of a normal one; sigma: standard deviation
    of the logarithm of a lognormal one; times_ns: those of a recorded one, used in a cycle."""

    kind: Literal["normal", "lognormal", "recorded"]
    spread_ns: int = 0
    sigma: float = 0.0
    times_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class ContentFile:
    """A file that payloads are filled from."""

    name: str
    path: Path
    sha256: str
    crc32: int
    size_bytes: int

    def as_json(self) -> dict[str, object]:
        """The file's entry in the manifest."""
        return {"sha256": self.sha256, "size_bytes": self.size_bytes}


def canonical_spread(text: str) -> str:
    """The one spelling of a distribution of busy times. Raises UnitError."""
    if text == "none":
        return text
    if text.startswith("normal-"):
        spread_ns = units.parse_duration_ns(text.removeprefix("normal-"))
        if not 0 < spread_ns <= SPREAD_NS_MAX:
            raise UnitError(f"'{text}' is not between normal-1ns and normal-60s")
        return f"normal-{units.format_duration(spread_ns)}"
    if text.startswith("lognormal-"):
        number = text.removeprefix("lognormal-")
        if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,6})?", number) or not 0.0 < float(number) <= SIGMA_MAX:
            raise UnitError(f"the sigma in '{text}' is not a number between 0 and {SIGMA_MAX:g}")
        return f"lognormal-{float(number):g}"
    raise UnitError(f"'{text}' is not a spread; write 'none', 'normal-200us' or 'lognormal-0.5'")


def spread_of(text: str) -> WorkSpread | None:
    """The distribution of a canonical text; None for a constant."""
    if text.startswith("normal-"):
        return WorkSpread("normal", spread_ns=units.parse_duration_ns(text.removeprefix("normal-")))
    if text.startswith("lognormal-"):
        return WorkSpread("lognormal", sigma=float(text.removeprefix("lognormal-")))
    return None


def canonical_content(text: str) -> str:
    """The one spelling of the content of payloads. Raises UnitError."""
    if text in ("any", "zeros", "random") or re.fullmatch(
        RECORDED + r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text
    ):
        return text
    raise UnitError(f"'{text}' is not a content; write any, zeros, random or recorded-FILE")


def load_content(text: str, folder: Path) -> ContentFile:
    """Finds the file of `recorded-FILE`, in `folder`, then in the working directory. Raises UnitError."""
    file_name = text.removeprefix(RECORDED)
    path = next((path for path in (folder / file_name, Path(file_name)) if file_name and is_file(path)), None)
    if path is None:
        raise UnitError(f"the file '{file_name}' is neither in {folder} nor in the working directory")
    size_bytes = path.stat().st_size
    if not 0 < size_bytes <= CONTENT_BYTES_MAX:
        raise UnitError(f"the file '{file_name}' has {size_bytes} B, not 1 B to 64 MB")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnitError(f"the file '{file_name}' can't be read: {error}") from error
    name = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem)
    canonical_content(RECORDED + name)
    digest = hashlib.sha256(content).hexdigest()
    return ContentFile(name, path.resolve(), digest, zlib.crc32(content), size_bytes)
