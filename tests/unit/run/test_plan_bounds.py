# SPDX-License-Identifier: Apache-2.0
"""What both workers keep to is generated from the models of the plan, and current."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
from needs import ROOT
from pydantic import BaseModel, Field

from lagometer.run.worker.plan_bounds import COMMAND, HEADER, MODULE, bounds, header_text, models, module_text
from lagometer.worker_python import plan_bounds


@pytest.mark.parametrize(("path", "text"), [(HEADER, header_text), (MODULE, module_text)])
def test_what_is_in_the_repository_is_that_of_the_models(path: Path, text: Callable[[], str]) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == text(), f"run: {COMMAND}"


def test_the_worker_in_python_has_each_bound() -> None:
    found = 0
    for model in models():
        for bound in bounds(model):
            known = getattr(getattr(plan_bounds, model.__name__), bound.name.upper())
            assert known == (bound.low, bound.high, bound.step), (model, bound)
            found += 1
    assert found > 50


@pytest.mark.parametrize("kind", [int, str, list[int], Annotated[int, Field(ge=0)]])
def test_a_value_without_bounds_is_refused(kind: object) -> None:
    """Nothing that a worker would have to bound by hand."""
    unbounded = type("Unbounded", (BaseModel,), {"__annotations__": {"key": kind}})
    with pytest.raises(ValueError, match="has no bound"):
        list(bounds(unbounded))
