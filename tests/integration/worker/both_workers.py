# SPDX-License-Identifier: Apache-2.0
"""The two workers behind one face: a test that takes the fixture `kind` runs against each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from needs import adapter_library, need
from plan_parts import apart, plan
from worker_support import RUNTIME_DIRECTORY, Machine, Mapping, Said, machine, run_worker

CONVERSATION = ["hello", "ready", "matched", "done", "records", "bye"]
SCRIPTED = Path(__file__).with_name("scripted_adapter.py")


@dataclass(frozen=True)
class Kind:
    """One worker. library: of an adapter that it carries out, in which LAGOMETER_BREAK breaks something."""

    name: str
    build: Path
    library: Path
    environment: Mapping

    def plan(self, directory: Path | str, nodes: list[Mapping], **phases: int) -> Mapping:
        """A standalone plan for all these nodes."""
        return plan(self.library, directory, nodes, **phases)

    def apart(self, nodes: list[Mapping], **phases: int) -> list[Mapping]:
        """A plan for each node, for workers in one machine that wait for their conductor."""
        return apart(self.library, RUNTIME_DIRECTORY, nodes, **phases)

    def run(self, given: Mapping | bytes, **environment: str) -> Said:
        """Carries out one standalone plan, with an end of input right behind it."""
        return run_worker(
            self.build, given, library=self.library, environment={**self.environment, **environment}
        )

    @contextlib.contextmanager
    def machine(self, count: int, *, wraps: Sequence[tuple[str, ...]] = (), **more: Any) -> Iterator[Machine]:
        """So many of this worker in a private machine."""
        need("netns")
        environment = {**self.environment, **more.pop("environment", {})}
        libraries = [self.library] * count
        with machine(
            self.build, count, environment=environment, libraries=libraries, wraps=wraps, **more
        ) as private:
            yield private


def in_cpp(build: Path) -> Kind:
    """Over Unix sockets, through a library that can break each call."""
    broken = build / "tests" / "adapters" / "liblagometer_broken.so"
    return Kind("C++", build, broken, {"LAGOMETER_BROKEN_OVER": str(adapter_library("uds", build))})


def in_python(build: Path) -> Kind:
    """Over Unix datagrams."""
    return Kind("Python", build, SCRIPTED, {})


KINDS = {"cpp": in_cpp, "python": in_python}
