# SPDX-License-Identifier: Apache-2.0
"""What all records of the page's data share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen record; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
