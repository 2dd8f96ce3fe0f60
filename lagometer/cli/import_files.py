# SPDX-License-Identifier: Apache-2.0
"""`lagometer import`: figures of another tool as a campaign folder, marked as what they are."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli.common import JsonFlag, print_json


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Logs of Apex.AI performance_test.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the campaign goes; not there yet.")
    ],
    json: JsonFlag = False,
) -> None:
    """Make a campaign folder of another tool's logs, to show and report beside measured ones.

    Its figures are aggregates that the other tool made: cells begin with `imported/`, every row carries the
    warning `imported`, and what the logs don't tell (quantiles above all) stays empty.

    Example: lagometer import log_Array1k_10-03-2024.csv --out out/imported
    """
    from lagometer.errors import BadInput
    from lagometer.exchange.performance_test_import import import_logs
    from lagometer.run.storing import storing
    from lagometer.store.errors import StoreError

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is there already", where="--out", mend="name a new folder")
    with storing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as beside:
            try:
                cells = import_logs(files, Path(beside) / "campaign")
            except StoreError as error:
                raise BadInput(str(error)) from error
            if out.exists():
                out.rmdir()
            shutil.move(Path(beside) / "campaign", out)
    if json:
        print_json({"dir": str(out), "imported": "performance_test", "cells": cells})
    else:
        typer.echo(f"{out}: imported, not measured here: {', '.join(cells)}")
