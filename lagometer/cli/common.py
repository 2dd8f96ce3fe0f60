# SPDX-License-Identifier: Apache-2.0
"""What the commands share. Data goes to stdout, everything for people's eyes on the way goes to stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout; progress goes to stderr.")
]
SelectGlobs = Annotated[
    list[str] | None,
    typer.Option(
        "--select", metavar="GLOB", help="Only cells whose id matches; `*` crosses `/`. May be repeated."
    ),
]
SkipGlobs = Annotated[
    list[str] | None,
    typer.Option("--skip", metavar="GLOB", help="Leave out cells whose id matches. May be repeated."),
]


def print_json(value: object) -> None:
    """One JSON object on one line of stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def output_console() -> Console:
    """The console for data. Not wrapped to 80 columns when it is piped into a file or another program."""
    from rich.console import Console

    class DataConsole(Console):
        def on_broken_pipe(self) -> None:
            """Leaves it to `main`, which knows that a reader may go; rich itself would end the program."""
            raise BrokenPipeError

    return DataConsole(soft_wrap=not sys.stdout.isatty(), highlight=False)


def message_console() -> Console:
    """The console for progress and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
