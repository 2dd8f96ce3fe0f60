# SPDX-License-Identifier: Apache-2.0
"""`lagometer export`: a campaign in the formats of other tools."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lagometer.cli.common import JsonFlag, print_json

if TYPE_CHECKING:
    from lagometer.store.reader import Campaign


class Format(str, Enum):
    """The export formats."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    HLOG = "hlog"
    PERFORMANCE_TEST = "performance-test"
    OPENMETRICS = "openmetrics"
    PERFETTO = "perfetto"


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a campaign.")],
    to: Annotated[Format, typer.Option("--format", help="What to write; docs/FORMAT.md says what is in it.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="A folder (csv, jsonl, performance-test, perfetto) or a file (hlog, openmetrics); "
            "openmetrics goes to stdout without it, the others below DIR/export.",
        ),
    ] = None,
    all_messages: Annotated[
        bool,
        typer.Option(
            "--all-messages",
            help="With perfetto: every message of each valid trial's measure phase, a file for each trial. "
            "Without: one file, with the three slowest messages of each cell and a median one.",
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Write a campaign in a format that other tools read.

    `perfetto` writes the path of messages, thread by thread and layer by layer, for ui.perfetto.dev.

    Example: lagometer export out/tiny --format csv --out tables

    Example: lagometer export out/tiny --format openmetrics > tiny.prom

    Example: lagometer export out/tiny --format perfetto --all-messages
    """
    from lagometer.errors import BadInput
    from lagometer.store.errors import StoreError
    from lagometer.store.reader import open_campaign
    from lagometer.store.storing import ROOM_OR_ELSEWHERE, storing

    if all_messages and to is not Format.PERFETTO:
        raise BadInput(
            f"--format {to.value} has all messages anyway, or none",
            where="--all-messages",
            hint="use it with --format perfetto",
        )
    try:
        campaign = open_campaign(directory)
        if to is Format.OPENMETRICS and out is None and not json:
            from lagometer.exchange.openmetrics import openmetrics

            sys.stdout.write(openmetrics(campaign))
            return
        target = out if out is not None else directory / "export" / to.value
        if to in (Format.HLOG, Format.OPENMETRICS) and out is None:
            target = target / ("latency.hlog" if to is Format.HLOG else "metrics.txt")
        with storing(target, ROOM_OR_ELSEWHERE):
            written = _write(campaign, to, target, all_messages)
    except StoreError as error:
        raise BadInput(str(error)) from error
    if json:
        print_json({"dir": str(directory), "format": to.value, "written": [str(path) for path in written]})
    else:
        typer.echo("\n".join(str(path) for path in written))


def _write(campaign: Campaign, to: Format, target: Path, all_messages: bool) -> list[Path]:
    from lagometer.exchange import hlog, openmetrics, performance_test, tables
    from lagometer.store.format import write_bytes_atomic

    if to is Format.CSV:
        return tables.write_csv(campaign, target)
    if to is Format.JSON_LINES:
        return tables.write_json_lines(campaign, target)
    if to is Format.HLOG:
        return hlog.write_hlog(campaign, target)
    if to is Format.PERFETTO:
        from lagometer.exchange import perfetto

        return (perfetto.write_all if all_messages else perfetto.write_chosen)(campaign, target)
    if to is Format.PERFORMANCE_TEST:
        return performance_test.write_logs(campaign, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomic(openmetrics.openmetrics(campaign).encode(), target)
    return [target]
