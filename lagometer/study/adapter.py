# SPDX-License-Identifier: Apache-2.0
"""One adapter, as studies and launchers see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lagometer.study.sidecar import Sidecar


@dataclass(frozen=True)
class Adapter:
    """One adapter. missing: why its library is not there, None if it is.

    fixed_options: what its plan's options say beside the study's, of an adapter that wraps another;
    base: that other one.
    """

    sidecar: Sidecar
    directory: Path
    missing: str | None
    fixed_options: Mapping[str, object] = field(default_factory=dict)
    base: Adapter | None = None

    @property
    def name(self) -> str:
        """The name by which studies ask for it."""
        return self.sidecar.name

    @property
    def library(self) -> Path:
        """The shared library, absolute."""
        return self.directory / self.sidecar.library

    @property
    def built(self) -> bool:
        """Whether the library is there."""
        return self.missing is None
