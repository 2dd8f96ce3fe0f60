# SPDX-License-Identifier: Apache-2.0
"""Writing a page: turns failures into the errors that a command ends with."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from lagometer.errors import BadInput, Internal, LagometerError, SetupMissing


@contextlib.contextmanager
def writing_page(target: Path, retry_command: str) -> Iterator[None]:
    """Wraps the code that writes the page `target`. `retry_command`: the command in the hint, which writes it
    elsewhere.

    Raises SetupMissing without the page's bundle, CannotStore if the file system fails, and BadInput for an
    unreadable campaign.
    """
    from lagometer.report.page import BundleMissing
    from lagometer.store.errors import StoreError
    from lagometer.store.storing import storing

    hint = f"the results are safe; free some space, or write the page elsewhere: {retry_command}"
    try:
        with storing(target, hint):
            yield
    except StoreError as error:
        raise BadInput(str(error)) from error
    except BundleMissing as error:
        raise SetupMissing(str(error)) from error


def check_page(page: Path, option: str) -> None:
    """Raises BadInput if no file can be where an option says, before anything is computed."""
    try:
        if page.is_dir():
            hint = f"give a file, such as {page / 'report.html'}"
            raise BadInput(f"{page} is a folder", where=option, hint=hint)
        if not page.parent.is_dir():
            raise BadInput(f"{page.parent} is not a folder", where=option, hint="create it, or name another")
    except OSError as error:
        raise BadInput(f"{page} can't be written: {error.strerror}", where=option) from error


def report_again(directory: Path) -> str:
    """The command that writes a campaign's report to another place."""
    return f"lagometer report {shlex.quote(str(directory))} --out FILE"


def hindered_report(directory: Path) -> LagometerError | None:
    """Writes a campaign's report.html. Returns errors instead of raising, since the campaign is finished."""
    from lagometer.report.page import REPORT_NAME, write_report

    try:
        with writing_page(directory / REPORT_NAME, report_again(directory)):
            write_report(directory)
    except LagometerError as error:
        return error
    except Exception as error:
        return Internal(
            f"the report can't be made: {type(error).__name__}: {error}",
            where="defect in lagometer",
            hint=f"the results are safe; LAGOMETER_DEBUG=1 lagometer report {directory} shows where",
        )
    return None
