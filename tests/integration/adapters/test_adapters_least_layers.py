# SPDX-License-Identifier: Apache-2.0
"""A profile of each adapter shows the layers that adapters/least_layers.json promises, for each dispatch, and
leaves at most 10 % of the median message's latency unattributed, unless the file has a reason."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from campaign_support import lagometer, programs
from needs import ROOT, need, require

from lagometer.conformance.least_layers import Promise, least_layers, missing, unattributed_max

pytestmark = pytest.mark.by_turn

LEAST = least_layers(ROOT / "adapters" / "least_layers.json")
# A busy machine misses a rate.
ATTEMPTS = 4
CELL = ("--pairs", "1", "--rate", "50Hz", "--duration", "600ms", "--warmup", "200ms")


def promises() -> Iterator[Any]:
    for adapter, promised in LEAST.adapters.items():
        first = promised.promises[:1]
        for promise in promised.promises:
            for dispatch in promise.dispatch:
                named = "-".join([adapter, dispatch, *promise.factors.values()])
                is_first = promise in first and dispatch == promise.dispatch[0]
                yield pytest.param(adapter, promise, dispatch, is_first, id=named)


def need_environment(promise: Promise) -> None:
    """Skips a promise that is about another environment than this one."""
    for name, value in promise.environment.items():
        require(name, os.environ.get(name) == value, f"{name}={value}")


def lacking(build: Path, folder: Path, promise: Promise, *words: str) -> list[str]:
    """What `lagometer profile` lacks of what is promised, by edge; a reason if no trial was valid."""
    code, printed, told = lagometer(folder, "profile", *words, "--json", environment=programs(build))
    assert code in (0, 3), told
    edges = json.loads(printed)["edges"]
    lacks = [
        f"{edge['edge']}: {layer}"
        for edge in edges
        for layer in missing(promise, {each["name"]: each["p50_ns"] for each in edge["layers"]})
    ]
    lacks += [
        f"{edge['edge']}: {edge['unattributed_p50_share']:.0%} are unattributed"
        for edge in edges
        if edge["unattributed_p50_share"] > unattributed_max(promise)
    ]
    return lacks or ([] if edges else [f"no valid trial: {told}"])


@pytest.mark.parametrize(("adapter", "promise", "dispatch", "is_first"), list(promises()))
def test_a_profile_shows_the_layers_that_are_promised(
    build: Path, tmp_path: Path, adapter: str, promise: Promise, dispatch: str, is_first: bool
) -> None:
    if not is_first:  # one of each adapter is enough for every change
        need("long")
    need("netns")
    need(adapter)
    need_environment(promise)
    factors = [word for name, value in promise.factors.items() for word in (f"--{name}", value)]
    words = (adapter, "--dispatch", dispatch, *factors, *CELL)
    attempts = (lacking(build, tmp_path, promise, *words) for _ in range(ATTEMPTS))
    lacks = list(itertools.takewhile(bool, attempts))
    assert len(lacks) < ATTEMPTS, lacks
