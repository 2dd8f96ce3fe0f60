# SPDX-License-Identifier: Apache-2.0
"""`lagometer doctor`: what on this machine distorts a measurement, and how to fix it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lagometer.cli.common import JsonFlag, output_console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.padding import Padding

    from lagometer.stats.verdict.health import Finding
    from lagometer.study.own_installation import Installation

MARKS = {
    "ok": "[green]ok[/]",
    "warn": "[yellow]warn[/]",
    "fail": "[red]fail[/]",
    "unknown": "[dim]unknown[/]",
}
WORST_FIRST = ("fail", "warn", "unknown", "ok")
INDENT = 6  # of what a check spoils, and its fix


def command(
    hosts: Annotated[
        Path | None,
        typer.Option(
            "--hosts",
            metavar="FILE",
            help="Look at the hosts of a study, or of a file with `hosts:`, and the path between each pair.",
            show_default=False,
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Check what on this machine spoils a measurement, and say how to fix it.

    It changes nothing. Exit code 0 whatever it finds: a poor machine can be measured, too.
    docs/methodology/machine.md explains each check.

    Example: lagometer doctor

    Example: lagometer doctor --hosts hosts.yaml
    """
    if hosts is not None:
        _look_at_hosts(hosts, json)
        return
    from lagometer.stats.verdict.health import examine
    from lagometer.store.environment import collect
    from lagometer.study.own_installation import PRODUCTS, look_for

    findings = (*examine(collect()), _scheduler())
    installations = [look_for(product) for product in PRODUCTS.values()]
    if json:
        counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in WORST_FIRST}
        checks = [asdict(finding) for finding in findings]
        print_json(
            {
                "checks": checks,
                **counts,
                "installations": [_as_json(installation) for installation in installations],
            }
        )
        return
    render(findings, output_console())
    render_installations(installations, output_console())


def _scheduler() -> Finding:
    """Tries whether the kernel's scheduler can be recorded here."""
    from lagometer.agent.observe.scheduler import unavailable
    from lagometer.errors import SetupMissing
    from lagometer.installation import scheduler_path
    from lagometer.stats.verdict.health import Finding

    try:
        reason = unavailable(str(scheduler_path()))
    except SetupMissing as error:
        reason = str(error)
    if reason is None:
        return Finding("scheduler", "ok", "`scheduler: on` and `profile` say who ran instead")
    return Finding("scheduler", "unknown", f"`scheduler: on` is not available: {reason}")


def render(findings: Sequence[Finding], console: Console) -> None:
    """Prints the findings, the worst first, and a single line for everything that is fine."""
    _print(findings, console)
    bad = sum(finding.verdict in ("warn", "fail") for finding in findings)
    console.print(f"\n{len(findings)} checks, {bad} of them not in order")


def _print(findings: Sequence[Finding], console: Console) -> None:
    from rich.markup import escape

    for finding in sorted(findings, key=lambda finding: WORST_FIRST.index(finding.verdict)):
        head = f"{MARKS[finding.verdict]}  [bold]{finding.check}[/]: {escape(finding.found)}"
        console.print(head)
        if finding.verdict in ("warn", "fail"):
            for text in (f"spoils: {escape(finding.spoils)}", f"fix:   {escape(finding.fix)}"):
                console.print(_indented(text) if console.is_terminal else f"{INDENT * ' '}{text}")


def _look_at_hosts(path: Path, as_json: bool) -> None:
    """Inspects each host and the link between each two, and prints the findings."""
    from lagometer.run.hosts.looks import look_at
    from lagometer.run.hosts.verdicts import host_findings, way_findings
    from lagometer.study.hosts_file import load_hosts

    looks, ways = look_at(*load_hosts(path))
    hosts = {look.name: host_findings(look) for look in looks}
    pairs = [(way, way_findings(way)) for way in ways]
    all_findings = [
        finding
        for findings in (*hosts.values(), *(findings for _, findings in pairs))
        for finding in findings
    ]
    counts = {verdict: sum(finding.verdict == verdict for finding in all_findings) for verdict in WORST_FIRST}
    if as_json:
        print_json(
            {
                "hosts": {
                    name: [asdict(finding) for finding in findings] for name, findings in hosts.items()
                },
                "ways": [
                    {**asdict(way), "checks": [asdict(finding) for finding in findings]}
                    for way, findings in pairs
                ],
                **counts,
            }
        )
        return
    console = output_console()
    for name, findings in hosts.items():
        console.print(f"[bold]host {name}[/]")
        _print(findings, console)
    for way, findings in pairs:
        console.print(f"[bold]{way.sender} → {way.receiver}[/]")
        _print(findings, console)
    console.print(f"\n{len(all_findings)} checks, {counts['warn'] + counts['fail']} of them not in order")


def render_installations(installations: Sequence[Installation], console: Console) -> None:
    """Prints what was found of middleware that the user must install."""
    from rich.markup import escape

    console.print("\nmiddleware of your own installation (docs/ADAPTERS.md):")
    for installation in installations:
        location = installation.lacking if installation.home is None else f"found at {installation.home}"
        summary = f"{installation.product.title}: {location}; {installation.licence}"
        console.print(f"  [bold]{installation.product.name}[/]  {escape(summary)}", soft_wrap=True)


def _as_json(installation: Installation) -> dict[str, object]:
    product = installation.product
    return {
        "name": product.name,
        "title": product.title,
        "variable": product.variable,
        "home": None if installation.home is None else str(installation.home),
        "lacking": installation.lacking or None,
        "licence": installation.licence,
    }


def _indented(text: str) -> Padding:
    from rich.padding import Padding

    return Padding(text, (0, 0, 0, INDENT), expand=False)
