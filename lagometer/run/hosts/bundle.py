# SPDX-License-Identifier: Apache-2.0
"""What another host needs from this installation: agent, supervisor, worker, adapters, identified by their
hashes."""

from __future__ import annotations

import hashlib
import io
import platform
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lagometer.agent.serving import hash_of
from lagometer.installation import (
    BUILD,
    PACKAGE,
    probe_path,
    scheduler_path,
    supervisor_path,
    worker_path,
)
from lagometer.run.hosts.base import HostError

# Of the package: only what an agent imports.
AGENT_SOURCES = (
    "__init__.py",
    "standard_streams.py",
    "agent/**/*.py",
    "store/__init__.py",
    "store/observed.py",
)
HASH_LENGTH = 16


@dataclass(frozen=True)
class Bundle:
    """The files of this installation that a host needs, as absolute paths. agent: the sources of the agent;
    `programs`: supervisor, worker, probe, scheduler, adapters and what these preload."""

    agent: tuple[Path, ...]
    programs: tuple[Path, ...]

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """SHA-256 of each file, by its name: the path without the first slash. Raises `HostError`."""
        by_name = {}
        for path in (*self.agent, *self.programs):
            value = hash_of(str(path))
            if value is None:
                raise HostError(f"{path} can't be read here: run `make setup`")
            by_name[name_of(path)] = value
        return by_name

    @property
    def hash(self) -> str:
        """Identifies a copy by the names and hashes of all files."""
        text = "".join(f"{name} {value}\n" for name, value in sorted(self.hashes.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]

    def packed(self) -> bytes:
        """Returns the files as a compressed tar."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
            for path in (*self.agent, *self.programs):
                archive.add(path.resolve(), arcname=name_of(path), recursive=False)
        return stream.getvalue()

    def wanted(self, path: str, before: Iterable[str]) -> dict[str, object]:
        """Returns the request to an arriving agent. path: of an installation there, empty for any."""
        agent = {self.below(file): self.hashes[name_of(file)] for file in self.agent}
        root = here()
        inside = self.below if path else name_of
        return {
            "root": "/",
            "path": path,
            "hash": self.hash,
            "files": self.hashes,
            "agent": agent,
            "machine": platform.machine(),
            "package": str(PACKAGE.parent.relative_to(root)) if path else name_of(PACKAGE.parent),
            "supervisor": inside(supervisor_path()),
            "before": list(before),
        }

    def below(self, path: Path) -> str:
        """Returns a file's name below the root of this installation. Raises `HostError`."""
        try:
            return str(path.absolute().relative_to(here()))
        except ValueError:
            raise HostError(
                f"{path} is not in the installation {here()}, so it has no counterpart below `path`: leave "
                "`path` out to have it copied"
            ) from None


def bundle_of(libraries: Iterable[Path]) -> Bundle:
    """Returns what a host needs to run workers with these libraries. Raises SetupMissing."""
    agent = sorted({path for pattern in AGENT_SOURCES for path in PACKAGE.glob(pattern)})
    programs = dict.fromkeys((supervisor_path(), worker_path(), probe_path(), scheduler_path(), *libraries))
    return Bundle(tuple(agent), tuple(path.absolute() for path in programs))


def here() -> Path:
    """Returns the root of this installation: a checkout, otherwise a virtual environment."""
    return PACKAGE.parent if BUILD.is_dir() else Path(sys.prefix)


def name_of(path: Path) -> str:
    """Returns the name of a file in a copy: below its root, a copy has the same paths as this host."""
    return str(path.absolute()).lstrip("/")
