# SPDX-License-Identifier: Apache-2.0
"""`lagometer`: the table of commands, and what happens when one ends in an error."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lagometer import __version__
from lagometer.cli import adapters, plan
from lagometer.cli.common import print_json
from lagometer.errors import BadInput, CannotStore, Internal, Interrupted, LagometerError

PROGRAM = "lagometer"


app = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Measure the end-to-end latency of modular robot software over publish/subscribe middleware.",
    epilog="Example: lagometer run studies/tiny.yaml --out out/tiny",
)
for name, module in (
    ("adapters", adapters),
    ("plan", plan),
):
    app.command(name)(module.command)
for name in ("doctor", "run", "measure", "show", "report"):
    try:
        app.command(name)(importlib.import_module(f"lagometer.cli.{name}").command)
    except ImportError:
        pass


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Measure the end-to-end latency of modular robot software over publish/subscribe middleware."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: runs one command and exits with the code of what ended it (lagometer/errors.py)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        outcome: Any = app(args=given, prog_name=PROGRAM, standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
        sys.stdout.flush()
    except typer.TyperException as usage:
        code = _usage_error(usage, given)
    except BrokenPipeError:
        code = _closed_pipe()
    except (KeyboardInterrupt, typer.Abort):
        code = _report(Interrupted("interrupted"), given)
    except LagometerError as error:
        code = _report(error, given)
    except OSError as error:
        code = _report(_from_system(error), given)
    except Exception as error:
        if os.environ.get("LAGOMETER_DEBUG"):
            raise
        code = _report(_internal(error), given)
    sys.exit(code)


def _usage_error(usage: typer.TyperException, given: list[str]) -> int:
    """A wrong command line. Without a message, its help was asked for by giving no arguments, and is printed."""
    message = usage.format_message()
    if not message:
        return BadInput.exit_code
    command = getattr(getattr(usage, "ctx", None), "command_path", PROGRAM)
    return _report(BadInput(message, "command line", f"see `{command} --help`"), given)


def _from_system(error: OSError) -> LagometerError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return CannotStore(
            str(error.strerror), where=str(error.filename or "standard output"), mend="make room"
        )
    return _internal(error)


def _internal(error: Exception) -> Internal:
    what = f"{type(error).__name__}: {error}"
    return Internal(what, where="defect in lagometer", mend="LAGOMETER_DEBUG=1 shows where; please report it")


def _closed_pipe() -> int:
    """The reader of stdout has gone (`| head`): nothing more to say, and nothing to say at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _report(error: LagometerError, given: list[str]) -> int:
    try:
        if "--json" in given:
            print_json(error.as_json())
        for problem in error.problems:
            sys.stderr.write(f"{PROGRAM}: {problem}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        _closed_pipe()
    except OSError:
        pass  # nowhere left to say it; the exit code still does
    return error.exit_code


if __name__ == "__main__":
    main()
