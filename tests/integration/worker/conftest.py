# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the suite that both workers pass."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from both_workers import KINDS, Kind


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest, build: Path) -> Kind:
    """Each worker in turn."""
    return KINDS[request.param](build)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A runtime directory whose name leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="lagometer-") as name:
        yield Path(name)
