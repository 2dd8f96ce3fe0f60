# SPDX-License-Identifier: Apache-2.0
"""`lagometer adapters`: which middleware can be measured here, and why the others can't."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli.common import JsonFlag, output_console, print_json

if TYPE_CHECKING:
    from lagometer.study.adapter import Adapter
    from lagometer.study.own_installation import Installation

WIDTH_MAX = 80  # without --wide
VERSION_WIDTH = 16
SETUP_OF_ALL = "make bench ADAPTERS=all"
READY, NOT_BUILT, NOT_FOUND, NO_DAEMON, FAILS = "ready", "not built", "not found", "no daemon", "fails"
FOR_TESTS = "for tests"
NOT_MEASURED = "built for tests, not for measuring; tools/setup --rust builds what measures"
LEGEND = (
    "reach: of messages · wakes: by listener, waitset, poll · reliable: yes, no, only · "
    "late: joiners get earlier messages · types: ROS 2's messages, too, or bytes"
)
Row = dict[str, Any]


def command(
    include: Annotated[
        bool, typer.Option("--include", help="Print the folder with the headers to build an adapter.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="Every column, and the full reason in each adapter's line.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """List the adapters: name, state, the middleware's version, what it can do, and why some are missing.

    Example: lagometer adapters

    Example: lagometer adapters --json
    """
    from lagometer.installation import include_path
    from lagometer.study.adapters import discover_adapters
    from lagometer.study.own_installation import without_adapter

    if include:
        path = str(include_path())
        return print_json({"include": path}) if json else output_console().print(path, soft_wrap=True)
    adapters = discover_adapters()
    rows = [_row(adapter) for adapter in adapters.values()]
    rows += [_row_without_adapter(installation) for installation in without_adapter(adapters)] if rows else []
    if json:
        print_json({"adapters": rows})
    elif not rows:
        output_console().print(
            "no adapter found; run `make setup`, or name a folder in LAGOMETER_ADAPTER_PATH"
        )
    elif wide:
        _print_wide(rows)
    else:
        _print_short(rows)


def _row(adapter: Adapter) -> Row:
    from lagometer.study.adapters import NOT_FOR_MEASURING, Probe, misnamed, probe
    from lagometer.study.daemons import missing_daemons

    answer = probe(adapter) if adapter.built else Probe(None, adapter.missing)
    wrong = answer.error or (misnamed(adapter) if adapter.built else None)
    absent = "; ".join(missing_daemons(adapter, {}, "default"))
    for_tests = (answer.version or "").endswith(NOT_FOR_MEASURING)
    if not adapter.built:
        state = NOT_BUILT if adapter.sidecar.python_package is None else NOT_FOUND
    else:
        state = FAILS if wrong else NO_DAEMON if absent else FOR_TESTS if for_tests else READY
    return {
        "name": adapter.name,
        "title": adapter.sidecar.title,
        "built": adapter.built,
        "version": answer.version,
        "reason": wrong or absent or (NOT_MEASURED if for_tests else None),
        "library": str(adapter.library) if adapter.built else None,
        "state": state,
        "scope": adapter.sidecar.scope,
        "abilities": adapter.sidecar.abilities.model_dump(mode="json"),
    }


def _row_without_adapter(installation: Installation) -> Row:
    product = installation.product
    row = {"name": product.name, "title": product.title, "built": False, "version": None}
    return {
        **row,
        "reason": installation.says,
        "library": None,
        "state": NOT_FOUND if installation.home is None else NOT_BUILT,
        "scope": None,
        "abilities": None,
    }


def _print_short(rows: list[Row]) -> None:
    """One line for each adapter, then each reason once, with all adapters that it makes unavailable."""
    from rich.markup import escape
    from rich.table import Table

    console = output_console()
    width = min(console.width, WIDTH_MAX)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("adapter", no_wrap=True, overflow="ellipsis", max_width=20)
    for heading in ("state", "version", "reach", "wakes", "reliable", "late", "types"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for row in rows:
        version = row["version"].partition(" (")[0] if row["state"] == FOR_TESTS else row["version"]
        cells = (row["name"], row["state"], _version(version), *_in_short(row))
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table, width=width, crop=True, no_wrap=True)
    console.print()
    for line in textwrap.wrap(LEGEND, width):
        console.print(line, style="dim", markup=False)
    for line in _reasons(rows, width):
        console.print(line, markup=False, soft_wrap=True)


def _version(version: str | None) -> str:
    """The part of a version that fits: only the number if a name precedes it."""
    if version is None or len(version) <= VERSION_WIDTH:
        return version or "–"
    last = version.split()[-1]
    return last if len(last) <= VERSION_WIDTH else f"{last[: VERSION_WIDTH - 1]}…"


def _in_short(row: Row) -> tuple[str, str, str, str, str]:
    """Scope, ways to wake up, reliability, late joiners and types, one word each."""
    abilities = row["abilities"]
    if abilities is None:
        return ("–",) * 5
    wakes = "".join(
        way[0] if way in abilities["dispatch"] else "-" for way in ("listener", "waitset", "poll")
    )
    only = {("best_effort",): "no", ("reliable",): "only"}
    reliable = only.get(tuple(abilities["reliability"]), "yes")
    late = "yes" if "transient_local" in abilities["durability"] else "no"
    return row["scope"], wakes, reliable, late, "ROS 2" if "Image" in abilities["types"] else "bytes"


def _reasons(rows: list[Row], width: int) -> list[str]:
    """Why adapters can't be used; each reason once, wrapped."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row["reason"]:
            reason = row["reason"]
            groups.setdefault(SETUP_OF_ALL if SETUP_OF_ALL in reason else reason, []).append(row["name"])
    lines: list[str] = []
    for reason, names in groups.items():
        names_text = ", ".join(names)
        if reason == SETUP_OF_ALL:
            count = f"{len(names)} adapters come" if len(names) > 1 else "1 adapter comes"
            text = f"{count} with `{SETUP_OF_ALL}` (what that needs: --wide): {names_text}"
        else:
            text = f"{names_text}: {reason.removeprefix(f'{NOT_BUILT}: ').removeprefix(f'{NOT_FOUND}: ')}"
        lines += textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
    return ["", *lines] if lines else []


def _print_wide(rows: list[Row]) -> None:
    """Everything, one line for each adapter, whatever its length; the terminal wraps it."""
    headings = ("dispatch", "reliability", "history", "durability", "types", "profiles", "origin")
    first = ("adapter", "state", "version", "middleware", "reach", *headings, "library", "reason")
    table: list[tuple[str, ...]] = [first]
    for row in rows:
        abilities = row["abilities"] or {}
        values = [abilities.get(name, "–") for name in headings]
        words = [",".join(value) if isinstance(value, list) else value for value in values]
        cells = (row["name"], row["state"], row["version"], row["title"], row["scope"], *words)
        table.append(tuple(cell or "–" for cell in (*cells, row["library"], row["reason"])))
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    for line in table:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        output_console().print(text.rstrip(), markup=False, soft_wrap=True)
