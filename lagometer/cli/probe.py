# SPDX-License-Identifier: Apache-2.0
"""`lagometer probe`: runs an unmodified program, and everything it starts, under the probe."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagometer.cli.common import (
    JsonFlag,
    NewFolder,
    message_console,
    new_campaign,
    output_console,
    print_json,
    result_told_by_exit_code,
)
from lagometer.cli.one_cell import option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from lagometer.run.program.campaign import Carried
    from lagometer.run.program.running import Look, ProgramRun
    from lagometer.stats.program.edges import ProgramEdge

DEFAULT_OUT = Path("out/probe")
LOOK_EVERY_S = 1.0
LIVE_CALLS_MAX = 100_000  # beyond this, reading all of them every second would load the machine too much


def command(
    words: Annotated[list[str], typer.Argument(metavar="-- COMMAND…", help="The program and its arguments.")],
    out: NewFolder = DEFAULT_OUT,
    name: Annotated[str | None, option("name", "NAME", "Name of the cells. [the program's]")] = None,
    duration: Annotated[
        str | None, option("duration", "TIME", "End it after this time, as Ctrl-C does.")
    ] = None,
    warmup: Annotated[
        str, option("warmup", "TIME", "Leave out this much after each edge's first message.")
    ] = "0s",
    trials: Annotated[int, option("trials", "N", "Run it this many times, one after the other.")] = 1,
    room: Annotated[str, option("room", "SIZE", "Memory limit for each program's calls.")] = "64MiB",
    json: JsonFlag = False,
) -> int:
    """Run an unmodified program under the probe: topics, rates, loss, latency between processes, layers.

    The probe also follows everything that COMMAND starts, such as a launch file or a script. It runs until
    that ends, or until Ctrl-C. It sees messages of Cyclone DDS and Fast DDS 2, of ROS 2, of ROS 1 in C++, and
    of Zenoh in C and C++. The folder is a campaign: show, report and compare read it. Exit code 3 if no
    message was seen to be taken. With --json what COMMAND prints goes to standard error.

    Example: lagometer probe -- ros2 launch my_robot bringup.launch.py

    Example: lagometer probe --duration 10s -- sh -c 'ddsperf pong & ddsperf ping'
    """
    from lagometer.errors import BadInput, TrialsFailed
    from lagometer.run.program.campaign import told, warnings, write_campaign
    from lagometer.run.program.preloading import check_preloading
    from lagometer.units import parse_duration_ns, parse_payload_bytes

    try:
        longest_s = parse_duration_ns(duration) / 1e9 if duration is not None else None
        warmup_ns, room_bytes = parse_duration_ns(warmup), parse_payload_bytes(room)
    except ValueError as error:
        raise BadInput(str(error), where="--duration, --warmup or --room") from error
    if room_bytes < 1 << 20:
        raise BadInput(f"'{room}' is too little", where="--room", hint="use 1MiB or more")
    check_preloading(words[0])
    if trials < 1:
        raise BadInput(f"'{trials}' is not a number of trials", where="--trials", hint="use 1 or more")
    runs: list[Carried] = []
    with new_campaign(out) as staged:
        while len(runs) < trials and not (runs and runs[-1].interrupted):
            name = name or _plain_name(words[0])
            runs.append(_carry_out(words, name, longest_s, warmup_ns, room_bytes, json))
        write_campaign(runs, staged)
    warning_texts = list(dict.fromkeys(warning for carried in runs for warning in warnings(carried)))
    with result_told_by_exit_code():
        if json:
            trials_json = [{**told(carried), "edges": _edges_as_json(carried)} for carried in runs]
            print_json({"dir": str(out), "warnings": warning_texts, "trials": trials_json})
        else:
            for carried in runs:
                _render(carried)
            _render_end(runs[-1], out, warning_texts)
    return 0 if all(carried.programs.edges for carried in runs) else TrialsFailed.exit_code


def _plain_name(program: str) -> str:
    name = "".join(
        character if character.isalnum() or character in "-_." else "-" for character in Path(program).name
    )
    return name.strip(".") or "program"


def _carry_out(
    words: Sequence[str], name: str, longest_s: float | None, warmup_ns: int, room_bytes: int, quiet: bool
) -> Carried:
    from lagometer.run.interruption import Interruption
    from lagometer.run.program.campaign import Carried
    from lagometer.run.program.running import ProgramRun
    from lagometer.stats.program.edges import programs_of
    from lagometer.study.adapters import discover_adapters

    memory = [name for adapter in discover_adapters().values() for name in adapter.sidecar.shared_memory]
    started, begin_s = datetime.now(timezone.utc), time.monotonic()
    console = message_console()
    live = console.is_terminal and not quiet
    output = 2 if quiet else 1
    with Interruption() as interruption, ProgramRun(words, room_bytes, memory, output) as run:
        exit_code = _follow(run, interruption, longest_s, console if live else None)
        run.end()
        look = run.look()
        interrupted = interruption.signal_number is not None
    seconds = time.monotonic() - begin_s
    programs = programs_of(look.logs, look.clock, warmup_ns)
    return Carried(words, name, started, seconds, exit_code, look, programs, interrupted)


def _follow(
    run: ProgramRun, interruption: Any, longest_s: float | None, console: Console | None
) -> int | None:
    """Waits until the command ends, a signal comes or its time is over; shows a live table in a console."""
    from rich.live import Live

    deadline_s = time.monotonic() + longest_s if longest_s is not None else None
    shown = Live(console=console, auto_refresh=False, transient=True) if console is not None else None
    if shown is not None:
        shown.start()
    try:
        while interruption.signal_number is None:
            left_s = deadline_s - time.monotonic() if deadline_s is not None else LOOK_EVERY_S
            if left_s <= 0:
                return None
            exit_code = run.wait(min(LOOK_EVERY_S, left_s))
            if exit_code is not None:
                return exit_code
            run.stop_if_full()
            if shown is not None:
                shown.update(_live_table(run.look()), refresh=True)
    finally:
        if shown is not None:
            shown.stop()
    # If the signal came from the terminal, the command received it too.
    return run.wait(LOOK_EVERY_S)


def _live_table(look: Look) -> Table | str:
    from lagometer.stats.program.edges import programs_of

    calls = sum(len(log.calls) for log in look.logs)
    if calls > LIVE_CALLS_MAX:
        return f"{len(look.logs)} programs, {calls:,} calls"
    return _table(programs_of(look.logs, look.clock).edges)


def _table(edges: Sequence[ProgramEdge]) -> Table:
    from lagometer.cli.show.figures import new_table
    from lagometer.run.program.campaign import median_size
    from lagometer.units import duration_text, size_text

    table = new_table()
    for heading in ("edge", "messages", "lost", "rate", "size", "p50", "p99", "max"):
        table.add_column(heading, justify="left" if heading == "edge" else "right")
    for edge in edges:
        figures: dict[str, Any] = dict(edge.figures)
        size_bytes, rate_hz = median_size(edge.measured), figures["rate_achieved_hz"]
        table.add_row(
            edge.name,
            f"{figures['n']:,}",
            f"{figures['lost']:,}",
            f"{rate_hz:.1f} Hz" if rate_hz is not None else "-",
            size_text(size_bytes) if size_bytes is not None else "-",
            *(
                duration_text(figures[f"latency_{name}_ns"])
                if figures[f"latency_{name}_ns"] is not None
                else "-"
                for name in ("p50", "p99", "max")
            ),
        )
    return table


def _edges_as_json(carried: Carried) -> list[dict[str, Any]]:
    from lagometer.cli.show.layers import layers_as_json
    from lagometer.run.program.campaign import median_size
    from lagometer.stats.cell.layers import edge_layers

    edges = []
    for edge in carried.programs.edges:
        figures: dict[str, Any] = dict(edge.figures)
        layers = edge_layers([edge.measured_layers])
        count_keys = ("n", "lost", "duplicated", "reordered", "rate_achieved_hz")
        latencies = [f"latency_{name}_ns" for name in ("min", "p50", "p90", "p99", "p999", "max")]
        edges.append(
            {
                "edge": edge.name,
                "topic": edge.writer.topic,
                "type": edge.writer.type,
                "from": edge.begins,
                "to": edge.ends,
                "payload_bytes": median_size(edge.measured),
                **{key: figures[key] for key in (*count_keys, *latencies)},
                **(
                    layers_as_json(layers)
                    if layers is not None
                    else {"layers": [], "unattributed_share": None}
                ),
            }
        )
    return edges


def _render(carried: Carried) -> None:
    from lagometer.cli.show.figures import print_wide
    from lagometer.cli.show.layers import render_layers
    from lagometer.stats.cell.layers import edge_layers
    from lagometer.summary.layers import LayerTable

    console = output_console()
    programs = carried.programs
    if programs.edges:
        print_wide(_table(programs.edges), console)
        for begins, ends in sorted({(edge.begins, edge.ends) for edge in programs.edges}):
            edge_names = [edge.name for edge in programs.edges if (edge.begins, edge.ends) == (begins, ends)]
            which = "" if len(edge_names) == len(programs.edges) else f": {', '.join(edge_names)}"
            console.print(f"latency from {begins} to {ends}{which}", markup=False, soft_wrap=True)
        for qos, edge_names in _by_qos(programs.edges).items():
            which = "" if len(edge_names) == len(programs.edges) else f": {', '.join(edge_names)}"
            console.print(f"QoS: {qos}{which}", markup=False, soft_wrap=True)
    else:
        console.print("no message was seen to be taken", style="yellow")
    tables = [
        LayerTable(carried.name, edge.name, 1, figures)
        for edge in programs.edges
        if (figures := edge_layers([edge.measured_layers])) is not None
    ]
    render_layers(tables, console)
    unused = 0
    for index, endpoint in enumerate(programs.endpoints):
        count = programs.written.get(index, programs.taken.get(index, 0))
        in_edge = any(endpoint in (edge.writer, edge.reader) for edge in programs.edges)
        unused += not count
        if count and not in_edge:
            program, verb = programs.names[endpoint.program], "wrote" if endpoint.writes else "took"
            console.print(
                f"{program} {verb} {count:,} of {endpoint.topic}, without a partner here",
                soft_wrap=True,
                markup=False,
            )
    if unused:
        console.print(f"{unused:,} writers and readers had no message; --json names them", soft_wrap=True)


def _by_qos(edges: Sequence[ProgramEdge]) -> dict[str, list[str]]:
    """The names of the edges, grouped by the QoS of both ends."""
    names_by_qos: dict[str, list[str]] = {}
    for edge in edges:
        writer, reader = (str(end.qos or "not seen") for end in (edge.writer, edge.reader))
        qos_text = writer if writer == reader else f"{writer} to {reader}"
        names_by_qos.setdefault(qos_text, []).append(edge.name)
    return names_by_qos


def _render_end(carried: Carried, out: Path, warning_texts: Sequence[str]) -> None:
    messages = message_console()
    for warning in warning_texts:
        messages.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    if carried.exit_code not in (0, None):
        messages.print(
            f"the command ended with exit code {carried.exit_code}", style="yellow", soft_wrap=True
        )
    output_console().print(
        f"\n{out}: a campaign folder; see it with: lagometer show {out}", markup=False, soft_wrap=True
    )
