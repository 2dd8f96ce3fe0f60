# SPDX-License-Identifier: Apache-2.0
"""How many messages the readers of each trial took, for figures per message."""

from __future__ import annotations

import polars as pl

from lagometer.store import format as form

Key = tuple[str, int]


def taken_messages(cells: pl.DataFrame) -> dict[Key, int]:
    """By cell and trial: what was taken on all edges in the whole measure phase.

    That contains the messages which count as warm-up (`discard`, automatic warm-up), because CPU time,
    switches and bytes are those of the whole phase. A file from an older lagometer has only the counted
    messages. cells: the rows of cells.parquet.
    """
    if not {"cell", "trial", "edge", "n"} <= set(cells.columns):
        return {}
    whole = pl.col("taken") if "taken" in cells.columns else pl.lit(None, dtype=pl.Int64)
    counted = pl.col("n").filter(form.of_single_edges()).sum()
    trials = cells.group_by("cell", "trial").agg(taken=pl.coalesce(whole.first(), counted))
    return {(cell, trial): taken for cell, trial, taken in trials.iter_rows()}
