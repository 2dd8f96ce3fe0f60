# SPDX-License-Identifier: Apache-2.0
"""`lagometer conformance`: whether an adapter does what it and its middleware's manual declare."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli.common import (
    JsonFlag,
    message_console,
    output_console,
    print_json,
    result_told_by_exit_code,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lagometer.conformance.abilities import Ability
    from lagometer.conformance.bench import Subject
    from lagometer.conformance.findings import AdapterReport, Result

FURTHER_MAX = 10
STYLES = {
    "pass": "green",
    "fail": "red",
    "absent": "dim",
    "absent-against-manual": "red",
    "not-run": "yellow",
}


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of adapters, including your own.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All adapters.")] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also fail if an ability is declared absent but the manual has it."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ABILITY", help="Only this ability. May be repeated."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="Set this option for the adapters. May be repeated."
        ),
    ] = None,
    network: Annotated[
        str, typer.Option("--network", metavar="WHERE", help="private (their own namespaces) or host.")
    ] = "private",
    hang_after: Annotated[
        float,
        typer.Option(
            "--hang-after",
            metavar="SECONDS",
            help="Time without progress after which a step counts as hung. A step that makes progress may "
            "take 5 times as long in all, reopening 10 times.",
        ),
    ] = 60.0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the JSON here.")
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Run the conformance suite on adapters (docs/adapters/conformance.md says what each ability asks for).

    Example: lagometer conformance cyclonedds

    Example: lagometer conformance --all --strict --out out/conformance.json
    """
    from lagometer.conformance.matrix import conforms, document
    from lagometer.conformance.suite import examine
    from lagometer.errors import TrialsFailed

    subjects = [
        replace(candidate, hang_s=hang_after)
        for candidate in _subjects(names or [], all_, option or [], network)
    ]
    abilities = _abilities(only or [])
    reports = []
    for subject in subjects:
        reports.append(examine(subject, abilities, partial(_tell, subject.name)))
    results = document(reports, strict)
    if out is not None:
        _store(out, results)
    with result_told_by_exit_code():
        if json:
            print_json(results)
        else:
            _print(reports)
    return 0 if conforms(reports, strict) else TrialsFailed.exit_code


def _subjects(names: list[str], select_all: bool, options: list[str], network: str) -> list[Subject]:
    """The selected adapters. Raises `BadInput`, `NothingRunnable`."""
    from lagometer.conformance.bench import Subject
    from lagometer.errors import BadInput, NothingRunnable
    from lagometer.study.adapters import discover_adapters
    from lagometer.study.own_installation import PRODUCTS, look_for
    from lagometer.study.values import nearest

    where = "command line"
    if select_all == bool(names):
        raise BadInput("name adapters, or give --all", where, "`lagometer adapters` lists them")
    if network not in ("private", "host"):
        raise BadInput(f"--network '{network}' is not known", where, "private or host")
    registered = discover_adapters()
    for name in names:
        if name not in registered and name in PRODUCTS:
            raise NothingRunnable(look_for(PRODUCTS[name]).says, name, "see `lagometer doctor`")
        if name not in registered:
            raise BadInput(f"there is no adapter '{name}'", where, nearest(name, list(registered)))
    chosen_options = {
        name: _options(registered[name], options) for name in (registered if select_all else names)
    }
    registered = discover_adapters(chosen_options)
    subjects = [Subject(registered[name], chosen_options[name], network) for name in chosen_options]
    if all(subject.missing is not None for subject in subjects):
        reasons = "; ".join(f"{subject.name}: {subject.missing}" for subject in subjects)
        raise NothingRunnable(reasons or "no adapter found", where, "see `lagometer adapters`")
    return subjects


def _options(adapter: Any, texts: list[str]) -> dict[str, Any]:
    """The texts of `--option` as values of the adapter's options. Raises `BadInput`."""
    from lagometer.errors import BadInput

    values = {}
    for text in texts:
        key, sign, value = text.partition("=")
        option = adapter.sidecar.options.get(key)
        if not sign or option is None:
            known = ", ".join(adapter.sidecar.options) or "it has none"
            raise BadInput(f"{adapter.name} has no option '{key}'", f"--option {text}", known)
        values[key] = option.meant(_value(option.type, value))
        if not option.accepts(values[key]):
            raise BadInput(f"'{value}' can't be {key}", f"--option {text}", option.wanted())
    return values


def _value(kind: str, text: str) -> Any:
    """The text as an option of this kind; unchanged, and therefore rejected, if it does not fit."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    try:
        return int(text) if kind == "integer" else float(text) if kind == "number" else text
    except ValueError:
        return text


def _abilities(only: list[str]) -> Sequence[Ability]:
    """The selected abilities; all if none is selected. Raises `BadInput`."""
    from lagometer.conformance.abilities import ABILITIES
    from lagometer.errors import BadInput
    from lagometer.study.values import nearest

    known = {ability.name: ability for ability in ABILITIES}
    for name in only:
        if name not in known:
            raise BadInput(f"there is no ability '{name}'", "--only", nearest(name, list(known)))
    return [known[name] for name in known if not only or name in only]


def _tell(adapter: str, result: Result) -> None:
    """Prints one line to stderr for each result as it arrives."""
    from rich.markup import escape

    style = STYLES[result.verdict]
    reason = f": {result.reason}" if result.reason else ""
    message_console().print(
        f"{adapter} {result.ability} [{style}]{result.verdict}[/]{escape(reason)} ({result.seconds:.1f} s)",
        soft_wrap=True,
    )


def _print(reports: list[AdapterReport]) -> None:
    """Prints the matrix, one row per ability, and the reasons for everything but a plain pass."""
    from rich.markup import escape
    from rich.table import Table

    from lagometer.conformance.abilities import ABILITIES
    from lagometer.conformance.matrix import SIGNS

    table = Table(box=None, pad_edge=False)
    table.add_column("ability")
    for report in reports:
        table.add_column(report.adapter, justify="center")
    by_adapter = [{outcome.ability: outcome for outcome in report.results} for report in reports]
    for ability in ABILITIES:
        cells = [results.get(ability.name) for results in by_adapter]
        if any(cells):
            signs = [
                f"[{STYLES[outcome.verdict]}]{SIGNS[outcome.verdict]}[/]" if outcome else ""
                for outcome in cells
            ]
            table.add_row(ability.name, *signs)
    console = output_console()
    console.print(table)
    console.print(
        "✓ shown · ✗ failed · – declared absent · ! declared absent, but the manual has it · · not run or "
        "not judged"
    )
    for report in reports:
        if all(result.verdict == "not-run" for result in report.results):
            console.print(f"[yellow]{report.adapter}[/]: {escape(report.results[0].reason)}")
            continue
        for result in report.having("fail", "absent-against-manual", "absent", "not-run"):
            style = STYLES[result.verdict]
            console.print(f"[{style}]{report.adapter} {result.ability}[/]: {escape(result.reason)}")
            for line in further_broken(result):
                console.print(f"  {escape(line)}", soft_wrap=True)
        for result in report.results:
            for line in not_judged(result):
                console.print(f"[yellow]{report.adapter} {result.ability}[/]: {escape(line)}", soft_wrap=True)


def not_judged(result: Result) -> list[str]:
    """The lines that apply and that nobody could judge, with the reason: they are not shown by a pass."""
    from lagometer.conformance.findings import NOT_JUDGED

    return [
        f"{line.name}: {line.detail}"
        for line in result.lines
        if line.passed is None and line.detail.startswith(NOT_JUDGED)
    ]


def further_broken(result: Result) -> list[str]:
    """Everything else that is broken, beyond the line in the reason, so that one run shows all."""
    others = [f"{line.name}: {line.detail}" for line in result.lines if line.passed is False][1:]
    left_out = len(others) - FURTHER_MAX
    return others if left_out <= 0 else [*others[:FURTHER_MAX], f"{left_out} more: --json has them"]


def _store(path: Path, results: dict[str, Any]) -> None:
    """Writes the document. Raises `CannotStore`."""
    from lagometer.errors import CannotStore
    from lagometer.store.format import write_json_atomic

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json_atomic(results, path)
    except OSError as error:
        raise CannotStore(str(error.strerror), where=str(path), hint="name another file for --out") from error
