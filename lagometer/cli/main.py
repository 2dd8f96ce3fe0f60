# SPDX-License-Identifier: Apache-2.0
"""`lagometer`: the table of commands, and the handling of their errors."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lagometer import __version__
from lagometer.cli import (
    adapters,
    baseline,
    compare,
    conformance,
    doctor,
    explain,
    export,
    import_files,
    listen,
    measure,
    merge,
    plan,
    probe,
    profile,
    qos,
    report,
    run,
    search,
    tune_host,
)
from lagometer.cli.common import print_json
from lagometer.cli.show import command as show
from lagometer.errors import BadInput, CannotStore, Internal, Interrupted, LagometerError
from lagometer.standard_streams import abandon, ensure_standard_streams, flush_or_abandon

PROGRAM = "lagometer"
EXIT_CODES = (
    "Exit codes: 0 all valid · 2 bad input · 3 some trials failed · 4 nothing runnable · 5 cannot store · "
    "6 set-up missing · 7 a defect of lagometer · 8 a --fail-if condition is met · 9 nothing comparable · "
    "11 qualities of service don't match · 130 interrupted"
)


app = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Measure the end-to-end latency of modular robot software over publish/subscribe middleware.",
    epilog="Example: lagometer run studies/tiny.yaml --out out/tiny\n\n" + EXIT_CODES,
)
for name, module in (
    ("adapters", adapters),
    ("conformance", conformance),
    ("doctor", doctor),
    ("plan", plan),
    ("run", run),
    ("measure", measure),
    ("profile", profile),
    ("probe", probe),
    ("listen", listen),
    ("search", search),
    ("show", show),
    ("report", report),
    ("compare", compare),
    ("explain", explain),
    ("merge", merge),
    ("export", export),
    ("import", import_files),
):
    app.command(name)(module.command)
app.add_typer(baseline.app, name="baseline")
app.add_typer(tune_host.app, name="tune-host")
app.add_typer(qos.app, name="qos")


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
    """The entry point: runs one command and exits with the code of its outcome (lagometer/errors.py)."""
    ensure_standard_streams()
    argv = list(sys.argv[1:] if arguments is None else arguments)
    try:
        outcome: Any = app(args=argv, prog_name=PROGRAM, standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
        sys.stdout.flush()
    except typer.TyperException as usage:
        code = _usage_error(usage, argv)
    except (BrokenPipeError, SystemExit):
        # The reader closed the pipe (`| head`), which is fine; the argument parser turns it into SystemExit.
        abandon(sys.stdout)
        code = 0
    except (KeyboardInterrupt, typer.Abort):
        code = _report(Interrupted("interrupted"), argv)
    except LagometerError as error:
        code = _report(error, argv)
    except OSError as error:
        code = _report(_from_system(error), argv)
        abandon(sys.stdout)
    except Exception as error:
        if os.environ.get("LAGOMETER_DEBUG"):
            raise
        code = _report(_internal(error), argv)
    # Output still buffered for a closed pipe would make the exit code 120.
    for stream in (sys.stdout, sys.stderr):
        flush_or_abandon(stream)
    sys.exit(code)


def _usage_error(usage: typer.TyperException, argv: list[str]) -> int:
    """A wrong command line. An empty message means no argument was given, and the help is already printed."""
    message = usage.format_message()
    if not message:
        return BadInput.exit_code
    command = getattr(getattr(usage, "ctx", None), "command_path", PROGRAM)
    return _report(BadInput(message, "command line", f"see `{command} --help`"), argv)


def _from_system(error: OSError) -> LagometerError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return CannotStore(
            str(error.strerror), where=str(error.filename or "standard output"), hint="free some space"
        )
    return _internal(error)


def _internal(error: Exception) -> Internal:
    message = f"{type(error).__name__}: {error}"
    return Internal(
        message, where="defect in lagometer", hint="LAGOMETER_DEBUG=1 shows where; please report it"
    )


def _report(error: LagometerError, argv: list[str]) -> int:
    """Prints the problem if anybody can still read it, and returns the exit code in any case."""
    with contextlib.suppress(OSError):
        for problem in error.problems:
            sys.stderr.write(f"{PROGRAM}: {problem}\n")
        sys.stderr.flush()
    if "--json" in argv:
        try:
            print_json(error.as_json())
        except OSError:
            abandon(sys.stdout)
    return error.exit_code


if __name__ == "__main__":
    main()
