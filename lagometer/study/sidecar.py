# SPDX-License-Identifier: Apache-2.0
"""The sidecar `adapter.json`: what an adapter declares before its library is opened (docs/ADAPTERS.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

OptionValue = bool | int | float | str | None


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Abilities(_Part):
    """What the adapter can do; a study's cell that asks for more is excluded.

    stamps: per dispatch, the receiver's stamps beyond `taken` and `handled`; origin: whose memory a message
    lies in.
    """

    dispatch: tuple[Literal["listener", "waitset", "poll"], ...]
    reliability: tuple[Literal["best_effort", "reliable"], ...]
    history: tuple[Literal["keep_last", "keep_all"], ...]
    durability: tuple[Literal["volatile", "transient_local"], ...]
    types: tuple[Literal["bytes", "fixed"], ...]
    profiles: tuple[Literal["default", "matched"], ...]
    domains: bool
    stamps: dict[Literal["listener", "waitset", "poll"], tuple[str, ...]] = Field(default_factory=dict)
    origin: Literal["loaned", "native", "copied"] = "copied"


class Limits(_Part):
    """Hard limits; null: none known. The reason is printed when a cell is excluded for it."""

    payload_bytes_max: int | None = None
    payload_bytes_max_reason: str = ""


class Option(_Part):
    """One setting of the adapter that a study's `options` may give."""

    type: Literal["integer", "number", "string", "boolean"]
    default: OptionValue = None
    description: str
    choices: tuple[OptionValue, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def accepts(self, value: OptionValue) -> bool:
        """Whether a study may give this value."""
        if self.choices and value not in self.choices:
            return False
        if self.type in ("boolean", "string"):
            return isinstance(value, bool if self.type == "boolean" else str)
        if isinstance(value, bool) or not isinstance(value, int if self.type == "integer" else (int, float)):
            return False
        above = self.minimum is None or value >= self.minimum
        return above and (self.maximum is None or value <= self.maximum)

    def wanted(self) -> str:
        """What `accepts` asks for, in words."""
        if self.choices:
            return f"one of {', '.join(str(choice) for choice in self.choices)}"
        words = {
            "integer": "a whole number",
            "number": "a number",
            "boolean": "true or false",
            "string": "text",
        }
        bounds = [f"at least {self.minimum:g}"] if self.minimum is not None else []
        bounds += [f"at most {self.maximum:g}"] if self.maximum is not None else []
        return " ".join([words[self.type], *bounds])


class Sidecar(_Part):
    """The whole file.

    scope: `process` (only within one process), `host` (between the processes of a host), `network`;
    dlopen_flags, environment, preload, daemons: what must hold before the library is opened;
    shared_memory: patterns of the names in /dev/shm that a process of it leaves behind when it is killed;
    interoperates_with: adapters whose subscribers understand this one's publishers;
    stacks_on: the option that names the adapter beneath this one, whose abilities it has.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    title: str
    abi_version: Literal[1]
    library: str
    scope: Literal["process", "host", "network"]
    dlopen_flags: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    preload: tuple[str, ...] = ()
    daemons: tuple[str, ...] = ()
    shared_memory: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{3,}[^/]*$")], ...] = ()
    abilities: Abilities
    limits: Limits = Limits()
    interoperates_with: tuple[str, ...] = ()
    stacks_on: str | None = None
    options: dict[str, Option] = Field(default_factory=dict)
    packages: dict[str, tuple[str, ...]] = Field(default_factory=dict)
