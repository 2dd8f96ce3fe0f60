# SPDX-License-Identifier: Apache-2.0
"""`lagometer measure`: one cell from one line, without a study's file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from lagometer.cli.common import JsonFlag, print_json, result_told_by_exit_code

FACTORS = (
    "workload",
    "work",
    "work_spread",
    "payload",
    "content",
    "type",
    "rate",
    "schedule",
    "late",
    "reliability",
    "history",
    "depth",
    "durability",
    "dispatch",
    "touch",
    "profile",
    "placement",
    "scheduling",
    "cpus",
    "network",
    "domain",
    "security",
    "interference",
    "tuning",
    "link",
)


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=text)


def command(
    adapter: Annotated[
        str, typer.Argument(metavar="ADAPTER", help="E.g. cyclonedds, or cyclonedds+fastdds.")
    ],
    workload: Annotated[
        str, _option("workload", "GRAPH", "pingpong, pipeline-N, fanout-N, …")
    ] = "pipeline-2",
    payload: Annotated[str, _option("payload", "SIZE", "All bytes of a message's data.")] = "64B",
    rate: Annotated[str | None, _option("rate", "RATE", "Rate; not for pingpong. [100Hz]")] = None,
    schedule: Annotated[
        str | None,
        _option("schedule", "WHEN", "periodic, poisson, burst-N, ramp-RATE, recorded-FILE."),
    ] = None,
    late: Annotated[str | None, _option("late", "POLICY", "Late messages: burst, skip, shift.")] = None,
    work: Annotated[str | None, _option("work", "WORK", "Busy time of each relay: none, busy-1ms.")] = None,
    work_spread: Annotated[
        str | None,
        _option("work-spread", "HOW", "Spread of the busy time: none, normal-200us, lognormal-0.5."),
    ] = None,
    content: Annotated[str | None, _option("content", "BYTES", "any, zeros, random, recorded-FILE.")] = None,
    type_: Annotated[
        str | None, _option("type", "TYPE", "bytes, fixed, string, Image, Imu, PointCloud2.")
    ] = None,
    reliability: Annotated[str | None, _option("reliability", "QOS", "best_effort, reliable.")] = None,
    history: Annotated[str | None, _option("history", "QOS", "keep_last, keep_all.")] = None,
    depth: Annotated[str | None, _option("depth", "N", "Queue length with keep_last.")] = None,
    durability: Annotated[str | None, _option("durability", "QOS", "volatile, transient_local.")] = None,
    dispatch: Annotated[str | None, _option("dispatch", "MODE", "listener, waitset, poll.")] = None,
    touch: Annotated[str | None, _option("touch", "MODE", "header, write, read, write+read.")] = None,
    profile: Annotated[str | None, _option("profile", "NAME", "default, matched.")] = None,
    placement: Annotated[
        str | None, _option("placement", "WHERE", "process-per-node, single-process.")
    ] = None,
    scheduling: Annotated[str | None, _option("scheduling", "POLICY", "other, fifo.")] = None,
    cpus: Annotated[str | None, _option("cpus", "CPUS", "CPUs: any, spread, or numbers like 0,1.")] = None,
    network: Annotated[str | None, _option("network", "WHERE", "private, host.")] = None,
    domain: Annotated[str | None, _option("domain", "N", "Domain number.")] = None,
    security: Annotated[str | None, _option("security", "KIND", "DDS Security: none, sign, encrypt.")] = None,
    interference: Annotated[
        str | None, _option("interference", "LOAD", "none, cpu-2, memory, cache, io, network.")
    ] = None,
    tuning: Annotated[
        str | None, _option("tuning", "HOW", "Of the machine: none, latency (needs root).")
    ] = None,
    link: Annotated[str | None, _option("link", "NAME", "An emulated one: wifi, lte, lossy-5, …")] = None,
    duration: Annotated[str, _option("duration", "TIME", "Length of the measure phase.")] = "2s",
    warmup: Annotated[str, _option("warmup", "TIME", "Length of the warm-up.")] = "300ms",
    trials: Annotated[int, _option("trials", "N", "Number of trials, each with fresh processes.")] = 1,
    out: Annotated[Path | None, _option("out", "DIR", "Keep the campaign in this folder.")] = None,
    json: JsonFlag = False,
) -> int:
    """Measure one cell.

    Example: lagometer measure cyclonedds --payload 64KB --rate 100Hz --reliability reliable

    Example: lagometer measure shm --workload pingpong --dispatch poll
    """
    given = dict(locals()) | {"type": type_}
    matrix = {"adapter": adapter, **{name: given[name] for name in FACTORS if given[name] is not None}}
    mapping = {
        "name": "measure-" + adapter.replace("+", "-"),  # a study's name has no plus
        "duration": duration,
        "warmup": warmup,
        "trials": str(trials),
        "matrix": matrix,
    }
    if out is not None:
        return _measure(mapping, out, json)
    with tempfile.TemporaryDirectory(prefix="lagometer-") as folder:
        return _measure(mapping, Path(folder) / "campaign", json, kept=False)


def _measure(mapping: dict[str, Any], directory: Path, as_json: bool, kept: bool = True) -> int:
    """Runs the one cell and prints its rows."""
    from lagometer.cli.run import carry_out, exit_code
    from lagometer.errors import Interrupted, NothingRunnable
    from lagometer.run.campaign import Assignment, CampaignRun
    from lagometer.study import discover_adapters, expand, study_from_mapping

    study = study_from_mapping(mapping, "command line")
    adapters = discover_adapters(study.options)
    expansion = expand(study, adapters)
    if not expansion.cells:
        each = expansion.excluded[0]
        raise NothingRunnable(each.reason, where=each.cell, hint=" ".join(each.instead))
    assignment = Assignment(study, expansion.cells, expansion.excluded, adapters, directory)
    if not as_json:
        return carry_out(assignment, report=False, as_json=False, kept=kept)
    campaign = CampaignRun(assignment)
    try:
        campaign.carry_out()
    except Interrupted:
        return Interrupted.exit_code
    from dataclasses import asdict

    from lagometer.store.reader import open_campaign

    tally = {**asdict(campaign.tally), "dir": str(directory) if kept else None}
    with result_told_by_exit_code():
        print_json({**tally, "rows": open_campaign(directory).cells.to_dicts()})
    return exit_code(campaign.tally)
