# SPDX-License-Identifier: Apache-2.0
"""Which versions of a campaign's files this lagometer reads, and how it completes older ones.

Version 1 was the first, so there is nothing to convert. Later additions (columns and keys, see
docs/FORMAT.md) are null or missing in older files, which means: not observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from lagometer import __version__
from lagometer.store import format as form
from lagometer.store.errors import CampaignError

OLDEST = 1


def check_version(manifest: Mapping[str, Any], path: Path) -> None:
    """Raises CampaignError for an unreadable version, with its number and the lagometer that can read it."""
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < OLDEST:
        raise CampaignError(
            f"{path}: key format_version is {version!r}, expected a whole number from {OLDEST} on; "
            "not a campaign's manifest"
        )
    if version > form.FORMAT_VERSION:
        writer_version = manifest.get("lagometer_version")
        raise CampaignError(
            f"{path}: format version {version}, but this lagometer ({__version__}) reads up to "
            f"{form.FORMAT_VERSION}; use lagometer {writer_version or 'of a later version'}"
            + (" or later, which wrote it" if writer_version else "")
        )


def completed_cells(cells: pl.DataFrame) -> pl.DataFrame:
    """cells.parquet with every column that this lagometer knows, in its order; missing ones are null.

    Unknown columns stay, at the end. Renamed columns get their current name.
    """
    schema = form.cells_schema()
    if form.FORMER_MET_MIN in cells.columns and "deadline_k" not in cells.columns:
        asked = pl.col("deadline_ns").is_not_null()
        cells = cells.rename({form.FORMER_MET_MIN: "deadline_met_of_k_min"}).with_columns(
            deadline_k=pl.when(asked).then(pl.lit(form.FORMER_K, dtype=pl.Int64()))
        )
    absent = [
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in cells.columns
    ]
    further = [name for name in cells.columns if name not in schema]
    return cells.with_columns(absent).select(*schema, *further)
