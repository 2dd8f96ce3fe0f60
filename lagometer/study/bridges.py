# SPDX-License-Identifier: Apache-2.0
"""Bridges that are programs of their own: which there are, what each carries, and how it is started.

A topic with two domains (`domain: 5+10`) has its publishers in the first and its subscribers in the second;
one with two adapters (`adapter: ros1+ros2`) may need a bridge, too. The factor `bridge` names the program
that carries the messages across. Each is declared in one file: those that ship are in `bridges/`, the user's
own in the folders that LAGOMETER_BRIDGE_PATH names.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lagometer.errors import BadInput
from lagometer.installation import BUILD, PACKAGE, sourced_folders
from lagometer.study.payload import PayloadType
from lagometer.study.sidecar import OptionValue, Ready
from lagometer.study.sidecar_problems import problems_of
from lagometer.study.values import nearest
from lagometer.units import UnitError

NONE = "none"
VARIABLE = "LAGOMETER_BRIDGE_PATH"
MISSING = "missing.txt"
# In a checkout the folder is next to the package; `pip install` puts it inside.
SHIPPED_FOLDERS = (PACKAGE.parent / "bridges", PACKAGE / "bridges")
# Where our own are built, and installed.
PROGRAM_FOLDERS = (PACKAGE / "libexec" / "bridges", BUILD / "bridges")
PAGE = "docs/WORKLOADS.md, Bridges"
PLACEHOLDERS = (
    *("runtime", "process", "domain", "first", "second", "address", "listen", "connect"),
    *("topics", "ros_topics"),
)
_PLACEHOLDER = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")


class _Part(BaseModel):
    # strict: "no" is not false, and "8" is not a number
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Carried(_Part):
    """Which topics of an adapter pass. types: payload types that do, none: every one; options: the only
    values of its options with which its participants and the bridge's find each other."""

    types: tuple[PayloadType, ...] = ()
    options: dict[str, tuple[OptionValue, ...]] = Field(default_factory=dict)


class Lack(_Part):
    """What does not pass, as it was seen.

    setting: of a topic, by the name of its factor; values: of `reliability`, `history` and `durability`;
    above: of `payload` (bytes) and `rate` (Hz); other policies don't pass at all; adapters: whose topics
    alone, none: everyone's; log: the line that the bridge writes then, empty if it writes nothing.
    """

    setting: Literal[
        "reliability",
        "history",
        "durability",
        "payload",
        "rate",
        "deadline",
        "lifespan",
        "liveliness",
        "partition",
        "instances",
    ]
    values: tuple[str, ...] = ()
    above: float | None = None
    adapters: tuple[str, ...] = ()
    reason: str
    log: str = ""

    @model_validator(mode="after")
    def _says_which(self) -> Lack:
        if (self.setting in ("payload", "rate")) != (self.above is not None):
            raise ValueError("`above` goes with payload and rate, and with nothing else")
        if (self.setting in ("reliability", "history", "durability")) != bool(self.values):
            raise ValueError("`values` goes with reliability, history and durability, and with nothing else")
        return self

    @property
    def sentence(self) -> str:
        """The reason, with what the bridge says of it."""
        return f"{self.reason} (it logs: {self.log})" if self.log else self.reason


class BridgeProgram(_Part):
    """One file of `bridges/`.

    program: searched in our own folders, in a sourced installation (`below`, as for a daemon), then on PATH;
    package: what to install if it is missing; processes: one for both domains, or one for each, which then
    reach each other at `port`; sides: if it joins two middlewares instead of two domains, the adapters on
    either side; arguments, files (content by name, in `{runtime}`), environment: with the placeholders of
    `PLACEHOLDERS`; ready: how to tell that it serves; adapters: whose topics it carries; otherwise: why it
    carries no others; lacks: what does not pass.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str
    program: str
    package: str
    below: dict[str, str] = Field(default_factory=dict)
    processes: Literal["one", "per-domain"]
    sides: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    arguments: tuple[str, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    ready: Ready
    adapters: dict[str, Carried] = Field(min_length=1)
    otherwise: str
    lacks: tuple[Lack, ...] = ()

    @model_validator(mode="after")
    def _processes_meet(self) -> BridgeProgram:
        if (self.processes == "per-domain") != (self.port is not None):
            raise ValueError("`port` goes with processes per-domain, which meet there")
        if self.name == NONE:
            raise ValueError(f"'{NONE}' is the name of no bridge")
        return self

    @model_validator(mode="after")
    def _sides_are_carried(self) -> BridgeProgram:
        if self.sides is None:
            return self
        if self.processes != "one":
            raise ValueError("`sides` goes with processes one, which speaks both middlewares")
        if not all(self.sides) or sorted(self.sides[0] + self.sides[1]) != sorted(self.adapters):
            raise ValueError("`sides` has each of `adapters` once, and one at least on either side")
        return self

    def place_on_sides(self, publisher: str, subscriber: str) -> tuple[int, int] | None:
        """On which side the adapters of a topic's publishers and subscribers are; None unless the bridge
        joins them."""
        for place, (here, there) in enumerate((self.sides, self.sides[::-1]) if self.sides else ()):
            if publisher in here and subscriber in there:
                return place, 1 - place
        return None

    def process_names(self, domains: tuple[int, int]) -> tuple[str, ...]:
        """The names of its processes in a trial, in the order of the domains."""
        if self.processes == "one":
            return (self.name,)
        return tuple(f"{self.name}-{domain}" for domain in domains)


def known_bridges() -> dict[str, Path]:
    """The files of all bridges, by name. The user's own come first. Raises BadInput for a folder that does
    not exist."""
    files: dict[str, Path] = {}
    for entry in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        if not Path(entry).is_dir():
            raise BadInput(f"'{entry}' is not a folder", where=VARIABLE, hint="name folders of bridges")
        _add(files, Path(entry))
    for folder in SHIPPED_FOLDERS:
        _add(files, folder)
    return files


def _add(files: dict[str, Path], folder: Path) -> None:
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        files.setdefault(path.stem, path)


def load_bridge(path: Path) -> BridgeProgram:
    """Reads the file of one bridge, which has its name. Raises BadInput."""
    try:
        bridge = BridgeProgram.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=str(path)) from error
    except ValidationError as error:
        raise BadInput.of(problems_of(error, path, BridgeProgram, PAGE)) from error
    if bridge.name != path.stem:
        hint = f"rename the file {bridge.name}.json"
        raise BadInput(f"the file {path.name} declares '{bridge.name}'", where=str(path), hint=hint)
    return bridge


def parse_bridge(text: str) -> str:
    """A value of the factor `bridge`. Raises UnitError for an unknown one, BadInput for a folder that does
    not exist."""
    known = (NONE, *known_bridges())
    if text not in known:
        raise UnitError(f"unknown bridge '{text}'; {nearest(text, known)}")
    return text


def find_bridge(name: str) -> BridgeProgram | None:
    """The bridge that a cell names; None for `none`. Raises BadInput, KeyError."""
    return None if name == NONE else load_bridge(known_bridges()[name])


def find_bridge_program(bridge: BridgeProgram) -> str | None:
    """The path of its program; None if it is not installed."""
    folders = (*map(str, PROGRAM_FOLDERS), *sourced_folders(bridge.below), os.environ.get("PATH", os.defpath))
    return shutil.which(bridge.program, path=os.pathsep.join(folders))


def why_missing(bridge: BridgeProgram) -> str | None:
    """Why the program can't be started here; None if it can."""
    if find_bridge_program(bridge) is not None:
        return None
    notes = (folder / MISSING for folder in PROGRAM_FOLDERS)
    note = next((path.read_text(encoding="utf-8").strip() for path in notes if path.is_file()), "")
    # The note is about the program that we build.
    cause = f": {note}" if note and bridge.program in note else ""
    return (
        f"bridge {bridge.name} needs {bridge.program}, which is not installed "
        f"(package: {bridge.package}){cause}"
    )


def filled_in(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced; other braces stay."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)
