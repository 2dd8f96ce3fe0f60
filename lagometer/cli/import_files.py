# SPDX-License-Identifier: Apache-2.0
"""`lagometer import`: figures of another tool as a campaign folder, marked as what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli.common import JsonFlag, NewFolder, new_campaign, print_json


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Logs of Apex.AI performance_test.")],
    out: NewFolder,
    json: JsonFlag = False,
) -> None:
    """Make a campaign folder of another tool's logs, to show and report beside measured ones.

    Its figures are aggregates that the other tool made: cells begin with `imported/`, every row carries the
    warning `imported`, and what the logs don't tell (quantiles above all) stays empty.

    Example: lagometer import log_Array1k_10-03-2024.csv --out out/imported
    """
    from lagometer.exchange.performance_test_import import import_logs

    with new_campaign(out) as made:
        cells = import_logs(files, made)
    if json:
        print_json({"dir": str(out), "imported": "performance_test", "cells": cells})
    else:
        typer.echo(f"{out}: imported, not measured here: {', '.join(cells)}")
