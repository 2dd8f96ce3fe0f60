# SPDX-License-Identifier: Apache-2.0
"""`lagometer baseline`: campaigns kept under a name, to compare later ones with."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli import compare
from lagometer.cli.common import JsonFlag, SelectGlobs, opened, output_console, print_json
from lagometer.cli.conditions import FailIf, Strict, parse
from lagometer.errors import BadInput

DEFAULT_BASELINES = Path(".lagometer/baselines")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LEFT_OUT = ("report.html", "export", ".*")  # can be regenerated

Folder = Annotated[Path, typer.Option("--baselines", metavar="DIR", help="The folder of the baselines.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '.', '_', '-'.")]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a campaign.")]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Keep campaigns under a name, and compare later ones with them.",
    epilog="Example: lagometer baseline save main out/quick",
)


@app.command("save")
def save(
    name: Name,
    directory: Directory,
    baselines: Folder = DEFAULT_BASELINES,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an older baseline with this name.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Copy a finished campaign to the baselines.

    Example: lagometer baseline save main out/quick --replace
    """
    from lagometer.store.storing import ROOM_OR_ELSEWHERE, storing

    campaign = opened(directory)
    target = _path(baselines, name)
    if campaign.manifest.get("state") != "finished":
        raise BadInput("this campaign is not finished", where=str(directory), hint="run --resume first")
    if target.exists() and not replace:
        raise BadInput(f"the baseline '{name}' already exists", where=str(target), hint="use --replace")
    with storing(target, ROOM_OR_ELSEWHERE):
        baselines.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=baselines, prefix=f".{name}.") as staging:
            copy = Path(staging) / "new"
            shutil.copytree(directory, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
            if target.exists():
                target.rename(Path(staging) / "old")
            copy.rename(target)
    if json:
        print_json({"name": name, "dir": str(target)})
    else:
        typer.echo(str(target))


@app.command("list")
def list_(baselines: Folder = DEFAULT_BASELINES, json: JsonFlag = False) -> None:
    """Print the baselines: name, when it was measured, machine, cells.

    Example: lagometer baseline list
    """
    rows = [_row(path) for path in sorted(baselines.glob("*/manifest.json"))]
    if json:
        print_json({"baselines": rows})
        return
    if not rows:
        typer.echo(f"no baselines in {baselines}; `lagometer baseline save NAME DIR` makes one")
    for row in rows:
        where = f"{row['study']} on {row['hostname'] or 'an unknown machine'}"
        output_console().print(
            f"{row['name']}  {row['created']}  {where}, {row['cells']} cells", markup=False
        )


@app.command("compare")
def compare_(
    name: Name,
    directory: Directory,
    baselines: Folder = DEFAULT_BASELINES,
    select: SelectGlobs = None,
    fail_if: FailIf = None,
    strict: Strict = False,
    alpha: compare.Alpha = 0.02,
    across_machines: compare.AcrossMachines = False,
    report: compare.Page = None,
    json: JsonFlag = False,
) -> int:
    """Compare a campaign with a baseline, as `lagometer compare` does.

    Example: lagometer baseline compare main out/quick --fail-if 'p50 > +5%'
    """
    path = _path(baselines, name)
    if not path.is_dir():
        known = ", ".join(sorted(manifest.parent.name for manifest in baselines.glob("*/manifest.json")))
        raise BadInput(
            f"there is no baseline '{name}'", where=str(baselines), hint=f"known baselines: {known or 'none'}"
        )
    wanted = parse(fail_if or [])
    choice = compare.choice_of(select, None, wanted, alpha, across_machines)
    absolute_limits = wanted.absolute
    return compare.carry_out(
        path, directory, choice, absolute_limits, strict=strict, page=report, as_json=json
    )


def _path(baselines: Path, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise BadInput(
            f"'{name}' is not a valid name", where="NAME", hint="use letters, digits, '.', '_', '-'"
        )
    return baselines / name


def _row(manifest: Path) -> dict[str, object]:
    campaign = opened(manifest.parent)
    return {
        "name": manifest.parent.name,
        "study": campaign.name,
        "created": campaign.manifest.get("created"),
        "hostname": campaign.environment.get("hostname"),
        "lagometer_version": campaign.manifest.get("lagometer_version"),
        "commit": campaign.environment.get("commit"),
        "cells": len(campaign.manifest.get("cells", [])),
    }
