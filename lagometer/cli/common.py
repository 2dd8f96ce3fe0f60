# SPDX-License-Identifier: Apache-2.0
"""Code that the commands share. Data goes to stdout; progress and messages for people go to stderr."""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.standard_streams import abandon

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.store.reader import Campaign

DEFAULT_FOLDER = Path("out")  # a campaign goes to a subfolder with its study's name

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout; progress goes to stderr.")
]
WideFlag = Annotated[
    bool, typer.Option("--wide", help="All columns, whatever the terminal's width; else it fits 80 columns.")
]
ScaleOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The study at this scale, one of its `scales`.")
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

NewFolder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The new campaign folder; it must not exist yet.")
]


@contextlib.contextmanager
def new_campaign(out: Path) -> Iterator[Path]:
    """Yields a temporary folder next to `out`, which becomes `out` if the block succeeds.

    Raises BadInput if `out` already exists or a source is not a campaign; CannotStore.
    """
    from lagometer.errors import BadInput
    from lagometer.store.errors import StoreError
    from lagometer.store.storing import ROOM_OR_ELSEWHERE, storing

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} already exists", where="--out", hint="name a new folder")
    with storing(out, ROOM_OR_ELSEWHERE):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as staging:
            staged = Path(staging) / "campaign"
            try:
                yield staged
            except StoreError as error:
                raise BadInput(str(error)) from error
            if out.exists():
                out.rmdir()
            shutil.move(staged, out)


def opened(directory: Path) -> Campaign:
    """The campaign in a folder. Raises BadInput if the folder has no readable campaign."""
    from lagometer.errors import BadInput
    from lagometer.store.errors import StoreError
    from lagometer.store.reader import open_campaign

    try:
        return open_campaign(directory)
    except StoreError as error:
        raise BadInput(str(error)) from error


def print_json(value: object) -> None:
    """One JSON object on one line of stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def result_told_by_exit_code() -> Iterator[None]:
    """For output after the work is done: the exit code stays the same if nobody reads the output."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):  # a pipe or terminal whose other end is closed
            raise
        abandon(sys.stdout)


def output_console(wide: bool = False) -> Console:
    """The console for data. It does not wrap at 80 columns when piped into a file or another program.

    wide: nor in a terminal that is too narrow for whole tables.
    """
    from rich.console import Console

    class DataConsole(Console):
        wide = False

        def print(self, *objects: Any, **options: Any) -> None:
            """Keeps words whole in a terminal; a file gets each text on one line."""
            if self.is_terminal and not self.wide:
                options["soft_wrap"] = False
            super().print(*objects, **options)

        def on_broken_pipe(self) -> None:
            """Leaves it to `main`, which accepts a closed pipe; rich itself would end the program."""
            raise BrokenPipeError

    console = DataConsole(soft_wrap=wide or not sys.stdout.isatty(), highlight=False)
    console.wide = wide
    return console


def message_console() -> Console:
    """The console for progress and errors."""
    from rich.console import Console

    class MessageConsole(Console):
        def on_broken_pipe(self) -> None:
            """Continues without a reader; rich itself would end the program before it prints its result."""
            abandon(sys.stderr)

    return MessageConsole(stderr=True, highlight=False)
