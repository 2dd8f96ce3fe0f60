# SPDX-License-Identifier: Apache-2.0
"""`lagometer tune-host`: sets this machine up for low latency, and puts it back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from lagometer.cli.common import JsonFlag, output_console, print_json
from lagometer.errors import SetupMissing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lagometer.machine.tuning import Change, Tuning

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Set this machine up for low latency, and restore it.",
    epilog="Example: sudo lagometer tune-host apply",
)


@app.command("apply")
def apply(json: JsonFlag = False) -> None:
    """Set governor, idle states, buffers and interrupts for low latency, until `revert` or a restart.

    It first writes the old values to /run/lagometer, and names what this machine doesn't allow. Needs root.

    Example: sudo lagometer tune-host apply
    """
    from lagometer.machine.tuning import Tuner, TuningError

    try:
        tuning = Tuner().apply(lasting=True)
    except TuningError as error:
        raise SetupMissing(str(error), where="tune-host apply") from error
    _tell(tuning, json)


@app.command("revert")
def revert(json: JsonFlag = False) -> None:
    """Restore what `apply` changed, except what something else has set since.

    Example: sudo lagometer tune-host revert
    """
    from lagometer.machine.tuning import Tuner, TuningError

    try:
        changes = Tuner().revert()
    except TuningError as error:
        raise SetupMissing(str(error), where="tune-host revert") from error
    if json:
        print_json({"changes": [asdict(change) for change in changes]})
        return
    _list(changes)
    output_console().print(f"{len(changes)} settings restored" if changes else "there is nothing to restore")


@app.command("status")
def status(json: JsonFlag = False) -> None:
    """Say whether this machine is tuned, and how. It changes nothing.

    Example: lagometer tune-host status
    """
    from lagometer.machine.tuning import Tuner, TuningError

    try:
        tuning = Tuner().status()
    except TuningError as error:
        raise SetupMissing(str(error), where="tune-host status") from error
    if tuning is None:
        if json:
            print_json({"in_force": False, "changes": []})
        else:
            output_console().print("not tuned")
        return
    _tell(tuning, json)


def _tell(tuning: Tuning, as_json: bool) -> None:
    if as_json:
        print_json({"in_force": tuning.in_force, "effective": tuning.effective, **tuning.as_json()})
        return
    _list(tuning.changes)
    console = output_console()
    if tuning.holder is not None:
        idle = f"not held shallow: {tuning.holder.said}" if tuning.holder.said else "held shallow"
        console.print(f"idle states: {idle}", markup=False)
    if not tuning.in_force:
        console.print(
            "its holder has died: the next `lagometer run`, `search` or `tune-host revert` restores it"
        )


def _list(changes: Sequence[Change]) -> None:
    console = output_console()
    for change in changes:
        values = " → ".join(dict.fromkeys(filter(None, (change.before, change.after))))
        if change.verdict == "restored":
            values = f"{change.before}"
        reason = f" ({change.why})" if change.why else ""
        text = change.why if change.verdict == "absent" else f"{values}{reason}"
        console.print(f"{change.verdict:8}  {change.name}: {text}", markup=False, soft_wrap=True)
