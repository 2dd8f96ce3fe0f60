# SPDX-License-Identifier: Apache-2.0
"""What a middleware fails in some runs of the suite and not in others, for a reason that is known.

It is next to the sidecar as `intermittent.json`: the abilities, each with the lines that may break, and why.
One run can't tell such an ability from one that always passes, or always fails. So the matrix shows it as
`~`, whatever the last run saw. If another line breaks, or one of these in another way, the ability counts as
failed.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

INTERMITTENT = "intermittent.json"


class Intermittent(BaseModel):
    """An ability that fails in some runs. lines: how its lines that may break begin, each as `name: detail`;
    reason: why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lines: Annotated[tuple[str, ...], Field(min_length=1)]
    reason: str

    def explains(self, broken: Collection[str]) -> bool:
        """Whether these broken lines (`name: detail`) are all known; false if none is broken."""
        return bool(broken) and all(line.startswith(self.lines) for line in broken)


_FILE = TypeAdapter(dict[str, Intermittent])


def intermittent_of(folder: Path) -> dict[str, Intermittent]:
    """What an adapter's folder says, by ability; empty without such a file. Raises `ValidationError`."""
    path = folder / INTERMITTENT
    return _FILE.validate_json(path.read_bytes()) if path.exists() else {}
