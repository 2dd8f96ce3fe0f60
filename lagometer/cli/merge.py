# SPDX-License-Identifier: Apache-2.0
"""`lagometer merge`: campaigns of several machines, or several of one, as one campaign."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from lagometer.cli.common import JsonFlag, print_json


def command(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR…", help="The folders of the campaigns.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the merged campaign goes; not there yet.")
    ],
    json: JsonFlag = False,
) -> None:
    """Join campaigns of one study into a new folder; the sources stay as they are.

    Where they come from several machines, `machine` becomes a factor of every cell. Trials of the same
    machine are numbered on, and a trial that two of the folders hold is taken once.

    Example: lagometer merge out/robot-a out/robot-b --out out/both
    """
    from lagometer.errors import BadInput
    from lagometer.run.storing import storing
    from lagometer.store.errors import StoreError
    from lagometer.store.merge import merge
    from lagometer.store.reader import open_campaign
    from lagometer.study.schema import key_defaults

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is there already", where="--out", mend="name a new folder")
    with storing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as beside:
            try:
                campaigns = [open_campaign(each) for each in directories]
                merged = merge(campaigns, Path(beside) / "campaign", key_defaults())
            except StoreError as error:
                raise BadInput(str(error)) from error
            if out.exists():
                out.rmdir()
            shutil.move(Path(beside) / "campaign", out)
    if json:
        print_json(
            {"dir": str(out), "trials": merged.trials, "twice": merged.twice, "machines": merged.machines}
        )
        return
    machines = ", ".join(f"{host} ({key})" for key, host in merged.machines.items())
    typer.echo(f"{out}: {merged.trials} trials of {machines}; {merged.twice} were there twice")
