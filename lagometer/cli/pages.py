# SPDX-License-Identifier: Apache-2.0
"""Writing a page: what can hinder it, as the error that a command ends with."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from lagometer.errors import BadInput, Internal, LagometerError, SetupMissing


@contextlib.contextmanager
def writing_page(target: Path, retry_command: str) -> Iterator[None]:
    """Around what writes the page `target`. `retry_command`: what writes it elsewhere, for a hint.

    Raises SetupMissing without the page's bundle, CannotStore where the file system refuses, and BadInput for
    a campaign that can't be read.
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


def report_again(directory: Path) -> str:
    """The command that writes a campaign's report to another place."""
    return f"lagometer report {shlex.quote(str(directory))} --out FILE"


def hindered_report(directory: Path) -> LagometerError | None:
    """Writes a campaign's report.html; what came in between is returned, since the campaign is finished."""
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
