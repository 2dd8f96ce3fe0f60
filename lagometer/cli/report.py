# SPDX-License-Identifier: Apache-2.0
"""`lagometer report`: a campaign as one HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli.common import JsonFlag, message_console, print_json


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a campaign.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write it; DIR/report.html if not given."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write a campaign's report: one HTML file with charts, table, settings and machine, that opens offline.

    Example: lagometer report out/tiny

    Example: lagometer report out/tiny --out ~/tiny.html
    """
    written = _write(directory, out)
    size_bytes = written.stat().st_size
    if json:
        print_json({"dir": str(directory), "report": str(written), "bytes": size_bytes})
    else:
        message_console().print(
            f"{size_bytes / 1e6:.1f} MB, one file: mail it, open it anywhere", style="dim"
        )
        typer.echo(str(written))


def _write(directory: Path, out: Path | None) -> Path:
    # Before Polars is loaded: else its allocator gives memory back after each file, to be cleared anew.
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:30000,muzzy_decay_ms:30000")
    from lagometer.errors import BadInput, SetupMissing
    from lagometer.report.page import BundleMissing, write_report
    from lagometer.store.errors import StoreError

    if out is not None and out.is_dir():
        raise BadInput(
            f"{out} is a folder", where="--out", mend=f"give a file, such as {out / 'report.html'}"
        )
    try:
        return write_report(directory, out)
    except StoreError as error:
        raise BadInput(str(error)) from error
    except BundleMissing as error:
        raise SetupMissing(str(error)) from error
