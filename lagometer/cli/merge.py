# SPDX-License-Identifier: Apache-2.0
"""`lagometer merge`: joins campaigns of several machines, or several of one machine, into one campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli.common import JsonFlag, NewFolder, new_campaign, print_json


def command(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR…", help="The campaign folders.")],
    out: NewFolder,
    json: JsonFlag = False,
) -> None:
    """Join campaigns of one study into a new folder; the sources stay as they are.

    If they come from several machines, `machine` becomes a factor of every cell. Trials of the
    same machine are renumbered, and a trial that two of the folders contain is taken once.

    Example: lagometer merge out/robot-a out/robot-b --out out/both
    """
    from lagometer.store.merge import merge
    from lagometer.store.reader import open_campaign
    from lagometer.study.schema import key_defaults

    with new_campaign(out) as staged:
        merged = merge([open_campaign(directory) for directory in directories], staged, key_defaults())
    if json:
        print_json(
            {"dir": str(out), "trials": merged.trials, "twice": merged.twice, "machines": merged.machines}
        )
        return
    machines = ", ".join(f"{host} ({key})" for key, host in merged.machines.items())
    typer.echo(f"{out}: {merged.trials} trials of {machines}; {merged.twice} were duplicates")
