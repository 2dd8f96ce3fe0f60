# SPDX-License-Identifier: Apache-2.0
"""`lagometer listen`: adds a subscriber to one topic of a running system."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli.common import (
    JsonFlag,
    message_console,
    output_console,
    print_json,
    result_told_by_exit_code,
)
from lagometer.cli.one_cell import option

if TYPE_CHECKING:
    from rich.table import Table

    from lagometer.run.program.listening import Listener
    from lagometer.stats.program.heard import Figures, Spread

SHOW_EVERY_S = 1.0
DOMAINS_MAX = 232
ANOTHER_CLOCK_NS = 3_600_000_000_000  # wall clocks differ by less; then `header.stamp` is on another clock
OF_ROS = "rt"  # the prefix that ROS 2 adds to a topic's name


def command(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="/chatter of ROS 2; any other name is DDS's own.")
    ],
    domain: Annotated[int | None, option("domain", "N", "Domain. [ROS_DOMAIN_ID or 0]")] = None,
    duration: Annotated[str | None, option("duration", "TIME", "How long; until Ctrl-C without it.")] = None,
    header: Annotated[
        bool, typer.Option("--header", help="Messages begin with a std_msgs/Header, whatever their type.")
    ] = False,
    json: JsonFlag = False,
) -> int:
    """Say how old a topic's messages are when they arrive, how regularly they come, and how many are lost.

    It subscribes to a running ROS 2 or DDS system over any RTPS middleware, with what the first writer
    offers, and decodes nothing. Age is counted from the source time stamp of the middleware, and from
    `header.stamp` where the type has one. Exit code 3 if nothing was heard.

    Example: lagometer listen /camera/image_raw --duration 10s

    Example: lagometer listen DDSPerfRDataKS --domain 5 --json
    """
    from lagometer.errors import BadInput, TrialsFailed
    from lagometer.run.interruption import Interruption
    from lagometer.run.program.listening import Listener
    from lagometer.stats.program.heard import figures_of, is_stamped
    from lagometer.units import parse_duration_ns

    try:
        longest_s = parse_duration_ns(duration) / 1e9 if duration is not None else None
        number = int(os.environ.get("ROS_DOMAIN_ID", "0")) if domain is None else domain
    except ValueError as error:
        raise BadInput(str(error), where="--duration or ROS_DOMAIN_ID") from error
    if not 0 <= number <= DOMAINS_MAX:
        raise BadInput(f"{number} is not a domain", where="--domain", hint=f"use 0 to {DOMAINS_MAX}")
    name = OF_ROS + topic if topic.startswith("/") else topic
    with Interruption() as interruption, Listener(number, name) as listener:
        _follow(listener, interruption, longest_s, not json)
    stamped = header or (listener.found is not None and is_stamped(listener.found.type))
    figures = figures_of(listener.heard, stamped)
    warnings = list(warnings_of(listener, figures, name))
    with result_told_by_exit_code():
        if json:
            print_json(_as_json(topic, number, listener, figures, warnings))
        elif figures.messages:
            _print(topic, listener, figures)
        for warning in warnings if not json else ():
            message_console().print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    return 0 if figures.messages else TrialsFailed.exit_code


def _follow(listener: Listener, interruption: Any, longest_s: float | None, shows: bool) -> None:
    from rich.live import Live

    console = message_console()
    deadline_s = time.monotonic() + longest_s if longest_s is not None else None
    live = (
        Live(console=console, auto_refresh=False, transient=True) if shows and console.is_terminal else None
    )
    if live is not None:
        live.start()
    try:
        while interruption.signal_number is None:
            left_s = SHOW_EVERY_S if deadline_s is None else min(SHOW_EVERY_S, deadline_s - time.monotonic())
            if left_s <= 0:
                return
            select.select([listener.descriptor(), interruption.descriptor()], [], [], left_s)
            if not listener.take():
                return
            if live is not None:
                live.update(f"{len(listener.heard):,} messages of {listener.writers} writers", refresh=True)
    finally:
        if live is not None:
            live.stop()


def warnings_of(listener: Listener, figures: Figures, name: str) -> list[str]:
    """What a reader of the figures needs to know. name: of the topic in DDS."""
    from lagometer.units import duration_text

    if listener.found is None:
        return [f"nobody in this domain writes '{name}'; names of ROS 2's topics begin with '/'"]
    if not figures.messages:
        return ["a writer was found, but nothing was heard of it"]
    warnings = [
        "this is one more subscriber, so the writer has more to do, and others may hear it earlier or later",
        "ages need synchronised clocks: they are wrong by what the writer's clock differs from this one's",
    ]
    if figures.age.min_ns is not None and figures.age.min_ns < 0:
        ahead = duration_text(-figures.age.min_ns)
        warnings.append(f"ages are negative: the writer's clock is ahead by {ahead} or more")
    if figures.untimed:
        warnings.append(f"{figures.untimed:,} messages don't say when they were sent, so they have no age")
    if _is_on_another_clock(figures.header_age):
        warnings.append(
            "header.stamp is more than an hour away from the wall clock: its times are simulated or recorded,"
            " so the age by it has no meaning"
        )
    return warnings


def _is_on_another_clock(ages: Spread | None) -> bool:
    if ages is None or ages.min_ns is None or ages.max_ns is None:
        return False
    return min(abs(ages.min_ns), abs(ages.max_ns)) > ANOTHER_CLOCK_NS


def _as_json(
    topic: str, domain: int, listener: Listener, figures: Figures, warnings: list[str]
) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "topic": topic,
        "domain": domain,
        "writer": asdict(listener.found) if listener.found is not None else None,
        "partitions": listener.partitions,
        **asdict(figures),
        "warnings": warnings,
    }


def _print(topic: str, listener: Listener, figures: Figures) -> None:
    from lagometer.units import size_text

    console = output_console()
    assert listener.found is not None
    sizes = {figures.payload_bytes_min, figures.payload_bytes_max}
    size_range = " to ".join(
        size_text(size_bytes)
        for size_bytes in sorted(size_bytes for size_bytes in sizes if size_bytes is not None)
    )
    rate = f"{figures.rate_hz:.2f} Hz" if figures.rate_hz is not None else "no rate yet"
    console.print(
        f"{topic} ({listener.found.type}): {figures.messages:,} messages, {figures.lost:,} lost, {rate}, "
        f"{size_range}, {figures.writers} writer{'s' if figures.writers != 1 else ''}, "
        f"{'reliable' if listener.found.reliable else 'best effort'}{_in_partitions(listener.partitions)}",
        markup=False,
        soft_wrap=True,
    )
    console.print(_table(figures))


def _in_partitions(partitions: list[str]) -> str:
    named = [partition or "the default one" for partition in partitions]
    if named in ([], ["the default one"]):
        return ""
    return f", in partition{'s' if len(named) > 1 else ''} {', '.join(named)}"


def _table(figures: Figures) -> Table:
    from lagometer.cli.show.figures import new_table
    from lagometer.units import duration_text

    table = new_table()
    for heading in ("", "p50", "p95", "p99", "min", "max", "jitter (sd)"):
        table.add_column(heading, justify="right" if heading else "left")
    rows = {"age": figures.age, "age by header.stamp": figures.header_age, "period": figures.period}
    for name, times in rows.items():
        if times is not None:
            numbers = (times.p50_ns, times.p95_ns, times.p99_ns, times.min_ns, times.max_ns, times.sd_ns)
            table.add_row(name, *(duration_text(number) for number in numbers))
    return table
