# SPDX-License-Identifier: Apache-2.0
"""The options that describe one cell, shared by `measure` and `profile`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

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
    "deadline_period",
    "lifespan",
    "liveliness",
    "partition",
    "instances",
    "dispatch",
    "touch",
    "profile",
    "placement",
    "scheduling",
    "cpus",
    "network",
    "domain",
    "bridge",
    "security",
    "interference",
    "tuning",
    "link",
)


def option(name: str, metavar: str, text: str) -> Any:
    """An option with a value."""
    return typer.Option(f"--{name}", metavar=metavar, help=text)


Adapter = Annotated[str, typer.Argument(metavar="ADAPTER", help="E.g. cyclonedds, or cyclonedds+fastdds.")]
Workload = Annotated[str, option("workload", "GRAPH", "pingpong, pipeline-N, fanout-N, …")]
Payload = Annotated[str, option("payload", "SIZE", "All bytes of a message's data.")]
Rate = Annotated[str | None, option("rate", "RATE", "Rate; not for pingpong. [100Hz]")]
Schedule = Annotated[
    str | None,
    option("schedule", "WHEN", "periodic, poisson, burst-N, ramp-RATE, recorded-FILE."),
]
Late = Annotated[str | None, option("late", "POLICY", "Late messages: burst, skip, shift.")]
Work = Annotated[str | None, option("work", "WORK", "Busy time of each relay: none, busy-1ms.")]
WorkSpread = Annotated[
    str | None,
    option("work-spread", "HOW", "Spread of the busy time: none, normal-200us, lognormal-0.5."),
]
Content = Annotated[str | None, option("content", "BYTES", "any, zeros, random, recorded-FILE.")]
Type = Annotated[str | None, option("type", "TYPE", "bytes, fixed, string, Image, Imu, PointCloud2.")]
Reliability = Annotated[str | None, option("reliability", "QOS", "best_effort, reliable.")]
History = Annotated[str | None, option("history", "QOS", "keep_last, keep_all.")]
Depth = Annotated[str | None, option("depth", "N", "Queue length with keep_last.")]
Durability = Annotated[str | None, option("durability", "QOS", "volatile, transient_local.")]
DeadlinePeriod = Annotated[
    str | None, option("deadline-period", "TIME", "QoS deadline: none, or the longest between two messages.")
]
Lifespan = Annotated[str | None, option("lifespan", "TIME", "none, or the age that drops a message.")]
Liveliness = Annotated[str | None, option("liveliness", "QOS", "none, automatic-1s, manual-1s.")]
Partition = Annotated[str | None, option("partition", "NAME", "none, or the partition of all endpoints.")]
Instances = Annotated[str | None, option("instances", "N", "none, or how many instances a key makes.")]
Dispatch = Annotated[str | None, option("dispatch", "MODE", "listener, waitset, poll.")]
Touch = Annotated[str | None, option("touch", "MODE", "header, write, read, write+read.")]
Profile = Annotated[str | None, option("profile", "NAME", "default, matched.")]
Placement = Annotated[
    str | None, option("placement", "WHERE", "process-per-node, single-process, processes-N.")
]
Scheduling = Annotated[str | None, option("scheduling", "POLICY", "other, fifo.")]
Cpus = Annotated[str | None, option("cpus", "CPUS", "CPUs: any, spread, or numbers like 0,1.")]
Network = Annotated[str | None, option("network", "WHERE", "private, host.")]
Domain = Annotated[str | None, option("domain", "N", "Domain number.")]
Bridge = Annotated[str | None, option("bridge", "NAME", "Between domains: none, zenoh-dds, …")]
Interference = Annotated[
    str | None, option("interference", "LOAD", "none, cpu-2, memory, cache, io, network.")
]
Tuning = Annotated[str | None, option("tuning", "HOW", "Of the machine: none, latency (needs root).")]
Security = Annotated[str | None, option("security", "KIND", "DDS Security: none, sign, encrypt.")]
Link = Annotated[str | None, option("link", "NAME", "An emulated one: wifi, lte, lossy-5, …")]
Duration = Annotated[str, option("duration", "TIME", "Length of the measure phase.")]
Warmup = Annotated[str, option("warmup", "TIME", "Length of the warm-up.")]


def study_of_one_cell(name: str, options: Mapping[str, Any], **more: str) -> dict[str, Any]:
    """The document of a study with one cell. options: the command's options by parameter name, None if not
    used."""
    adapter = options["adapter"]
    factors = {**options, "type": options["type_"]}
    return {
        "name": f"{name}-" + adapter.replace("+", "-"),  # a study's name must not contain a plus
        "duration": options["duration"],
        "warmup": options["warmup"],
        "transfer": "off",
        "matrix": {
            "adapter": adapter,
            **{factor: value for factor in FACTORS if (value := factors.get(factor)) is not None},
        },
        **more,
    }
