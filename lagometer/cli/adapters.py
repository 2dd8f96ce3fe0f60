# SPDX-License-Identifier: Apache-2.0
"""`lagometer adapters`: which middleware can be measured here, and why the others can't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lagometer.cli.common import JsonFlag, output_console, print_json

if TYPE_CHECKING:
    from lagometer.study.adapters import Adapter
    from lagometer.study.own_installation import Installation


def command(
    include: Annotated[
        bool, typer.Option("--include", help="Print the folder of the headers that an adapter is built with.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """List the adapters: name, built or not, the middleware's version, and why not.

    Example: lagometer adapters --json
    """
    from lagometer.study.adapters import discover_adapters, include_path
    from lagometer.study.own_installation import without_adapter

    if include:
        path = str(include_path())
        return print_json({"include": path}) if json else output_console().print(path, soft_wrap=True)
    adapters = discover_adapters()
    rows = [_row(adapter) for adapter in adapters.values()]
    rows += [_row_without_adapter(each) for each in without_adapter(adapters)] if rows else []
    if json:
        print_json({"adapters": rows})
    else:
        _print_table(rows)


def _row(adapter: Adapter) -> dict[str, object]:
    from lagometer.study.adapters import Probe, probe
    from lagometer.study.daemons import missing_daemons

    answer = probe(adapter) if adapter.built else Probe(None, adapter.missing)
    absent = "; ".join(missing_daemons(adapter, {}, "default"))
    return {
        "name": adapter.name,
        "title": adapter.sidecar.title,
        "built": adapter.built,
        "version": answer.version,
        "reason": answer.error or absent or None,
        "library": str(adapter.library) if adapter.built else None,
    }


def _row_without_adapter(found: Installation) -> dict[str, object]:
    product = found.product
    row = {"name": product.name, "title": product.title, "built": False, "version": None}
    return {**row, "reason": found.says, "library": None}


def _print_table(rows: list[dict[str, object]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    if not rows:
        output_console().print(
            "no adapter is there; run `make setup`, or name a folder in LAGOMETER_ADAPTER_PATH"
        )
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("adapter", "built", "version", "middleware", "why not"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        cells = (
            row["name"],
            "yes" if row["built"] else "no",
            row["version"] or "–",
            row["title"],
            row["reason"] or "",
        )
        table.add_row(*(escape(str(cell)) for cell in cells))
    output_console().print(table)
