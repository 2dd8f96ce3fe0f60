# SPDX-License-Identifier: Apache-2.0
"""The second table: abilities that a middleware has according to its manual, whatever its adapter declares.

It is next to the sidecar as `manual.json`. If the adapter declares an ability absent that the manual lists,
neither the adapter nor the middleware is at fault: the matrix shows it red.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from lagometer.errors import BadInput
from lagometer.study.adapter import Adapter

MANUAL = "manual.json"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Entry(_Part):
    """The manual's statement on one ability. section: where; note: more information, or empty."""

    has: bool
    section: str
    note: str = ""


class Manual(_Part):
    """The whole file. manual: its title and the version that was read; abilities: by their names."""

    middleware: str
    manual: str
    abilities: dict[str, Entry]

    def objection(self, ability: str) -> str | None:
        """The manual's evidence that this ability is not absent; None if the manual does not list it."""
        entry = self.abilities.get(ability)
        if entry is None or not entry.has:
            return None
        return f"{self.manual} has it: {entry.section}" + (f" ({entry.note})" if entry.note else "")


def manual_of(adapter: Adapter, known: frozenset[str]) -> Manual | None:
    """Reads the manual's table of an adapter; None if there is none. Raises `BadInput`."""
    path = adapter.directory / MANUAL
    try:
        manual = Manual.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=str(path)) from error
    except ValidationError as error:
        raise _bad(path, error) from error
    unknown = sorted(set(manual.abilities) - known)
    if unknown:
        raise BadInput(
            f"'{unknown[0]}' is not an ability",
            where=f"{path}: abilities",
            hint=f"one of {', '.join(sorted(known))}",
        )
    return manual


def _bad(path: Path, error: ValidationError) -> BadInput:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    return BadInput(
        first["msg"], where=f"{path}: {key}" if key else str(path), hint="see docs/adapters/matrix.md"
    )
