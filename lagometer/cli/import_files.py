# SPDX-License-Identifier: Apache-2.0
"""`lagometer import`: another tool's figures as a campaign folder, marked as imported."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli.common import JsonFlag, NewFolder, new_campaign, print_json

DEFAULT_OUT = Path("out/imported")


class Unit(str, Enum):
    """The unit of values in files that name none."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Results of another tool.")],
    out: NewFolder = DEFAULT_OUT,
    named: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="The format of the files; detected from their content if not given. An unknown name lists "
            "the known ones.",
        ),
    ] = None,
    unit: Annotated[
        Unit | None, typer.Option("--unit", help="The unit of the values, if the files don't name it.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make a campaign folder from another tool's results, to show and report beside measured ones.

    Its figures are those of the other tool: cells begin with `imported/`, every row has the warning
    `imported`, and what the files don't contain stays empty. docs/FORMAT.md lists it for each format.

    Example: lagometer import log_Array1k_10-03-2024.csv --out out/imported

    Example: lagometer import --format hlog --unit us latency.hlog --out out/imported
    """
    from lagometer.exchange.imports.formats import import_files
    from lagometer.exchange.imports.trial import Options

    with new_campaign(out) as staged:
        imported = import_files(files, staged, named, Options(unit.value if unit is not None else None))
    if json:
        print_json(
            {
                "dir": str(out),
                "imported": imported.tool,
                "format": imported.format,
                "cells": list(imported.cells),
                "trials": imported.trials,
                "joined": [list(joined_files) for joined_files in imported.joined],
            }
        )
        return
    typer.echo(f"{out}: imported, not measured here, from {imported.tool} (format {imported.format}):")
    for cell in imported.cells:
        typer.echo(f"  {cell}")
    for joined_files in imported.joined:
        typer.echo(f"one trial of {' and '.join(joined_files)}")
