# SPDX-License-Identifier: Apache-2.0
"""One adapter, as studies and launchers see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lagometer.study.sidecar import Sidecar


@dataclass(frozen=True)
class Adapter:
    """One adapter.

    missing: why its library is missing, None if it exists; fixed_options: for an adapter that wraps another,
    the options that its plan gets in addition to the study's; base: the wrapped adapter.
    """

    sidecar: Sidecar
    directory: Path
    missing: str | None
    fixed_options: Mapping[str, object] = field(default_factory=dict)
    base: Adapter | None = None

    @property
    def name(self) -> str:
        """The name that studies use for it."""
        return self.sidecar.name

    @property
    def library(self) -> Path:
        """The absolute path of the shared library."""
        return self.directory / self.sidecar.library

    @property
    def built(self) -> bool:
        """Whether the library exists."""
        return self.missing is None
