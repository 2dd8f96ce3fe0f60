# SPDX-License-Identifier: Apache-2.0
"""`lagometer report`: a campaign as one HTML file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli.common import JsonFlag, message_console, print_json
from lagometer.report.samples.process import prepare

COMPARISON_NAME = "comparison.html"


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a campaign.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write it; DIR/report.html if not given."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="A",
            help="Compare with this campaign instead; DIR/comparison.html if --out is not given.",
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write a campaign's report: one HTML file with charts, table, settings and machine. It opens offline.

    With --against A, write a page that compares DIR with A: ratios with intervals, verdicts, what differs.

    Example: lagometer report out/tiny

    Example: lagometer report out/after --against out/before

    Example: lagometer report out/tiny --out ~/tiny.html
    """
    written = _write(directory, against, out)
    size_bytes = written.stat().st_size
    if json:
        print_json({"dir": str(directory), "report": str(written), "bytes": size_bytes})
    else:
        message_console().print(
            f"{size_bytes / 1e6:.1f} MB, one file: mail it, open it anywhere", style="dim"
        )
        typer.echo(str(written))


def _write(directory: Path, against: Path | None, out: Path | None) -> Path:
    prepare()
    from lagometer.cli.pages import check_page, report_again, writing_page
    from lagometer.report.page import REPORT_NAME, write_report

    if out is not None:
        check_page(out, "--out")
    target = out if out is not None else directory / (COMPARISON_NAME if against else REPORT_NAME)
    retry_command = report_again(directory) + (f" --against {shlex.quote(str(against))}" if against else "")
    with writing_page(target, retry_command):
        if against is not None:
            return _write_comparison(against, directory, target)
        return write_report(directory, target)


def _write_comparison(a: Path, b: Path, target: Path) -> Path:
    from lagometer.report.comparison import write_comparison
    from lagometer.stats.compare.comparable import compare_campaigns
    from lagometer.store.reader import open_campaign

    before, after = open_campaign(a), open_campaign(b)
    return write_comparison(compare_campaigns(before, after), before, after, target)
