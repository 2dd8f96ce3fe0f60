# SPDX-License-Identifier: Apache-2.0
"""Writes the report: the page's bundle with a campaign's data inserted."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from lagometer.report.samples.reader_pool import readers_of
from lagometer.store.format import write_bytes_atomic

if TYPE_CHECKING:
    from lagometer.report.comparison_data import ComparisonReport
    from lagometer.report.data import Report

BUNDLE = Path(__file__).with_name("bundle") / "page.html"
PLACEHOLDER = "@LAGOMETER_DATA@"
REPORT_NAME = "report.html"


class BundleMissing(Exception):
    """The page's bundle was not built, or is not one of ours."""


def write_report(directory: Path, output: Path | None = None) -> Path:
    """Writes the report of the campaign in `directory`, completely or not at all, and returns its path.

    `output`: a different path than `report.html` in the campaign. Raises CampaignError if the folder is not a
    campaign, BundleMissing without a bundle, and OSError (naming the file and the bytes) if it can't be
    stored.
    """
    target = output if output is not None else directory / REPORT_NAME
    readers = readers_of(directory)
    with readers or nullcontext():
        # Loading takes as long as the processes take to begin.
        from lagometer.report.build import build_report
        from lagometer.store.reader import open_campaign

        report = build_report(open_campaign(directory), readers)
    return write_page(report, target)


def write_page(report: Report | ComparisonReport, target: Path) -> Path:
    """Writes a page with this data, completely or not at all, and returns its path."""
    page = render(report, read_bundle())
    write_bytes_atomic(page.encode("utf-8"), target)
    return target


def read_bundle() -> str:
    """The page without data."""
    try:
        text = BUNDLE.read_text(encoding="utf-8")
    except OSError as error:
        raise BundleMissing(
            f"{BUNDLE}: the report's page is not built ({error.strerror}); "
            "run `make setup`, or `npm ci && npm run build` in web/"
        ) from error
    if text.count(PLACEHOLDER) != 1:
        raise BundleMissing(
            f"{BUNDLE}: no place for the data in it; build it again with `npm run build` in web/"
        )
    return text


def render(report: Report | ComparisonReport, bundle: str) -> str:
    """The whole page as text."""
    return bundle.replace(PLACEHOLDER, script_json(report))


def script_json(report: Report | ComparisonReport) -> str:
    """The data as JSON that is safe inside a script element.

    It contains no `<`, so no `</script>` or `<!--` in a log or a setting ends the element. Addresses in a
    middleware's settings (an XML namespace, say) are escaped so that the file's text contains no address at
    all.
    """
    text = report.model_dump_json()
    return (
        text.replace("<", "\\u003c")
        .replace("//", "\\/\\/")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
