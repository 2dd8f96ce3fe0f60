# SPDX-License-Identifier: Apache-2.0
"""`lagometer qos`: whether a publisher and a subscriber match, by the rules and as observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli.common import JsonFlag, output_console, print_json, result_told_by_exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lagometer.conformance.bench import Subject
    from lagometer.conformance.qos_observed import Observed
    from lagometer.conformance.qos_rules import Policy, Qos

NO_MATCH = 11
SIGNS = {True: "✓", False: "✗", None: "·"}
AdapterNames = Annotated[
    list[str] | None,
    typer.Option("--adapter", metavar="NAME", help="Also try it with this adapter. May be repeated."),
]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Say whether qualities of service match.",
    epilog="Example: lagometer qos check sensor_data reliable",
)


@app.command("check")
def check(
    offered: Annotated[str, typer.Argument(help="What the publisher offers.")],
    requested: Annotated[str, typer.Argument(help="What the subscriber requests.")],
    adapter: AdapterNames = None,
    json: JsonFlag = False,
) -> int:
    """Say whether a publisher with one quality of service is heard by a subscriber with another.

    Write policies with commas between them: reliable,transient_local,deadline=100ms. The first may be a
    profile of ROS 2 (default, sensor_data, services, parameters, clock, rosout, action_status). What is left
    out is the default of DDS. Exit code 11 if they don't match.

    Example: lagometer qos check sensor_data reliable --adapter cyclonedds --adapter fastdds
    """
    from lagometer.conformance.qos_observed import observed
    from lagometer.conformance.qos_rules import described, judged

    pair = (_parsed(offered, "OFFERED"), _parsed(requested, "REQUESTED"))
    policies = judged(*pair)
    observations = [observed(subject, [pair])[0] for subject in _subjects(adapter or [])]
    match = all(policy.compatible for policy in policies)
    with result_told_by_exit_code():
        if json:
            print_json(
                {
                    "match": match,
                    "offered": described(pair[0]),
                    "requested": described(pair[1]),
                    "policies": [vars(policy) for policy in policies],
                    "observed": [vars(observation) for observation in observations],
                }
            )
        else:
            _print(match, policies, observations)
    return 0 if match and all(observation.matched is not False for observation in observations) else NO_MATCH


@app.command("matrix")
def matrix(adapter: AdapterNames = None, json: JsonFlag = False) -> None:
    """Show which pairs match: reliability, durability and deadline, by the rules and as observed.

    Example: lagometer qos matrix --adapter cyclonedds
    """
    from itertools import product

    from lagometer.conformance.qos_observed import observed
    from lagometer.conformance.qos_rules import Qos, judged

    sides = [
        Qos(reliability, durability, deadline_ns)
        for reliability, durability, deadline_ns in product(
            ("best_effort", "reliable"), ("volatile", "transient_local"), (None, 100_000_000)
        )
    ]
    pairs = list(product(sides, sides))
    rules = [all(policy.compatible for policy in judged(*pair)) for pair in pairs]
    results = {subject.name: observed(subject, pairs) for subject in _subjects(adapter or [])}
    with result_told_by_exit_code():
        if json:
            rows = [
                {
                    "offered": short(offered),
                    "requested": short(requested),
                    "rules": by_rule,
                    "observed": {
                        name: vars(adapter_observations[index])
                        for name, adapter_observations in results.items()
                    },
                }
                for index, ((offered, requested), by_rule) in enumerate(zip(pairs, rules, strict=True))
            ]
            print_json({"pairs": rows})
        else:
            _print_matrix(sides, rules, results)


def short(qos: Qos) -> str:
    """The QoS as a user writes it."""
    from lagometer.units import format_duration

    deadline = f",deadline={format_duration(qos.deadline_ns)}" if qos.deadline_ns is not None else ""
    return f"{qos.reliability},{qos.durability}{deadline}"


def _parsed(text: str, where: str) -> Qos:
    from lagometer.conformance.qos_rules import parse_qos
    from lagometer.errors import BadInput
    from lagometer.units import UnitError

    try:
        return parse_qos(text)
    except UnitError as error:
        raise BadInput(str(error), where, "such as reliable,transient_local,deadline=100ms") from error


def _subjects(names: Sequence[str]) -> list[Subject]:
    """The adapters by these names. Raises `BadInput`."""
    from lagometer.conformance.bench import Subject
    from lagometer.errors import BadInput
    from lagometer.study.adapters import discover_adapters
    from lagometer.study.values import nearest

    adapters = discover_adapters() if names else {}
    for name in names:
        if name not in adapters:
            raise BadInput(f"there is no adapter '{name}'", "--adapter", nearest(name, list(adapters)))
    return [Subject(adapters[name], {}, "private") for name in names]


def _print(match: bool, policies: Sequence[Policy], observations: Sequence[Observed]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("", "policy", "offered", "requested"):
        table.add_column(name)
    for policy in policies:
        style = "" if policy.compatible else "red"
        table.add_row(SIGNS[policy.compatible], policy.name, policy.offered, policy.requested, style=style)
    console = output_console()
    console.print(table)
    console.print("by the rules of DDS: " + ("they match" if match else "[red]they don't match[/]"))
    for policy in policies:
        if not policy.compatible:
            console.print(f"  {policy.name}: {policy.rule}", soft_wrap=True)
    for observation in observations:
        console.print(f"as observed, {escape(_said(observation, match))}", soft_wrap=True)


def _said(observation: Observed, match: bool) -> str:
    if observation.matched is None:
        return f"{observation.adapter}: not tried: {observation.reason}"
    differs = "" if observation.matched == match else ", against the rules"
    return (
        f"{observation.adapter}: "
        + ("messages arrive" if observation.matched else "no message arrives")
        + differs
    )


def _print_matrix(
    sides: Sequence[Qos], rules: Sequence[bool], observations: dict[str, list[Observed]]
) -> None:
    """Prints one table for the rules, and one for each adapter; a sign in brackets differs from the rules."""
    from rich.markup import escape
    from rich.table import Table

    console = output_console()
    results: dict[str, list[Any]] = {"by the rules": list(rules)}
    results |= {
        name: [observation.matched for observation in adapter_observations]
        for name, adapter_observations in observations.items()
    }
    for title, matches in results.items():
        table = Table(box=None, pad_edge=False, title=title, title_justify="left")
        table.add_column("offered ↓  requested →")
        for number in range(len(sides)):
            table.add_column(str(number + 1), justify="center")
        for row, side in enumerate(sides):
            cells = []
            for index in range(row * len(sides), (row + 1) * len(sides)):
                sign = SIGNS[matches[index]]
                cells.append(sign if matches[index] in (rules[index], None) else f"({sign})")
            table.add_row(f"{row + 1} {short(side)}", *cells)
        console.print(table)
    console.print("✓ they match · ✗ they don't · · not tried · in brackets: against the rules")
    for name, adapter_observations in observations.items():
        for reason in dict.fromkeys(
            observation.reason for observation in adapter_observations if observation.matched is None
        ):
            console.print(f"{name}: {escape(reason)}", soft_wrap=True)
