# SPDX-License-Identifier: Apache-2.0
"""Whether the machine stayed the same: the control over the campaign, its load, long trials, its floor."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import polars as pl
from pydantic import ValidationError

from lagometer.stats.cell.long_trials import QUANTILES, Estimate, long_checks
from lagometer.stats.cell.preempted import with_noise_of_campaign
from lagometer.stats.interval.confidence import SUPPORT
from lagometer.store.format import END_TO_END, FLOOR
from lagometer.store.reader import Campaign
from lagometer.summary import limits
from lagometer.summary.data import Row
from lagometer.summary.intervals import ends_of
from lagometer.summary.rows import trial_row
from lagometer.summary.steadiness_data import (
    Control,
    ControlRange,
    ControlTrial,
    CoreFloor,
    Load,
    LongFigure,
    LongTrial,
    MachineFloor,
)

Json = Mapping[str, Any]


def control(campaign: Campaign) -> Control | None:
    """The control's trace, and the load in all trials; None if neither was measured."""
    part = campaign.control
    lines = [*campaign.journal, *(part.journal if part is not None else ())]
    moments = [moment for line in lines if (moment := _moment(line.get("started"))) is not None]
    if not moments:
        return None
    begin = min(moments)
    load = _load(lines, begin)
    cells = [] if part is None else part.cells["cell"].unique(maintain_order=True).to_list()
    # Merged campaigns have one of each machine: together they would tell nothing about any of them.
    trials = _control_trials(part, begin) if part is not None and len(cells) == 1 else []
    if not cells and not load:
        return None
    return Control(cells=[str(cell) for cell in cells], trials=trials, spread=_range(trials), load=load)


def _range(trials: Sequence[ControlTrial]) -> ControlRange | None:
    """trials: in the order of time."""
    valid = [trial for trial in trials if trial.valid]
    p50s_ns = [trial.latency_p50_ns for trial in valid if trial.latency_p50_ns is not None]
    if not p50s_ns:
        return None
    costs_ns = [trial.cpu_per_message_ns for trial in valid if trial.cpu_per_message_ns is not None]
    return ControlRange(
        blocks=len(p50s_ns),
        p50_min_ns=min(p50s_ns),
        p50_max_ns=max(p50s_ns),
        p50_first_ns=p50s_ns[0],
        p50_last_ns=p50s_ns[-1],
        cpu_per_message_min_ns=min(costs_ns, default=None),
        cpu_per_message_max_ns=max(costs_ns, default=None),
    )


def _moment(started: object) -> float | None:
    """Seconds since the epoch; None if it is not a time."""
    try:
        return datetime.fromisoformat(str(started)).timestamp()
    except ValueError:
        return None


def _control_trials(part: Campaign, begin: float) -> list[ControlTrial]:
    trials = []
    cells = with_noise_of_campaign(part.cells)
    for record in cells.filter(pl.col("edge") == END_TO_END).iter_rows(named=True):
        moment = _moment(record.get("started"))
        if moment is None:
            continue
        row = trial_row(record)
        trials.append(
            ControlTrial(
                block=int(record["trial"]),
                time_s=moment - begin,
                valid=row.valid,
                n=row.n,
                latency_p50_ns=row.latency_p50_ns,
                latency_p90_ns=row.latency_p90_ns,
                latency_p99_ns=row.latency_p99_ns,
                cpu_per_message_ns=row.cpu_per_message_ns,
                remarks=[*row.reasons, *row.noise],
            )
        )
    return sorted(trials, key=lambda trial: trial.time_s)


def _load(lines: Iterable[Json], begin: float) -> list[Load]:
    points = []
    for line in lines:
        moment = _moment(line.get("started"))
        load = (line.get("evidence") or {}).get("load") or {}
        capacity = load.get("capacity_ns")
        if moment is None or not capacity:
            continue
        shares = [
            None if load.get(name) is None else min(1.0, load[name] / capacity)
            for name in ("busy_ns", "stolen_ns")
        ]
        points.append(Load(time_s=moment - begin, busy_share=shares[0], stolen_share=shares[1]))
    points.sort(key=lambda point: point.time_s)
    step = -(-len(points) // limits.LOAD_POINTS_MAX) if points else 1
    return [_most(points[place : place + step]) for place in range(0, len(points), step)]


def _most(neighbours: Sequence[Load]) -> Load:
    """Of too many trials to show each: the most in neighbouring ones."""
    return Load(
        time_s=neighbours[0].time_s,
        busy_share=max((each.busy_share for each in neighbours if each.busy_share is not None), default=None),
        stolen_share=max(
            (each.stolen_share for each in neighbours if each.stolen_share is not None), default=None
        ),
    )


def long_trials(campaign: Campaign, summaries: Sequence[Row]) -> list[LongTrial]:
    """The valid long trials next to the rows over the short ones."""
    estimates: dict[tuple[str, str], Estimate] = {}
    for row in summaries:
        for name in QUANTILES if row.trial is None and row.edge == END_TO_END else ():
            value, ends = getattr(row, f"latency_{name}_ns"), ends_of(row, f"latency_{name}_ns")
            if ends is not None:
                estimates[(row.cell, name)] = (value, *ends)
    return [
        LongTrial(
            cell=check.cell,
            n=check.n,
            p50=LongFigure(**asdict(check.figures["p50"])),
            p99=LongFigure(**asdict(check.figures["p99"])),
            cpu_per_message_ns=check.cpu_per_message_ns,
            short_cpu_per_message_ns=check.short_cpu_per_message.value_ns,
            short_cpu_per_message_low_ns=check.short_cpu_per_message.low_ns,
            short_cpu_per_message_high_ns=check.short_cpu_per_message.high_ns,
            remarks=list(check.remarks()),
        )
        for check in long_checks(campaign, estimates)
    ]


def machine_floor(campaign: Campaign) -> tuple[MachineFloor | None, list[str]]:
    """The wake-up latency of each CPU, and a note if floor.json can't be read."""
    path = campaign.directory / FLOOR
    if not path.is_file():
        return None, []
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        cores = [_core(core) for core in stored["cores"]]
        floor = MachineFloor(
            policy=stored.get("policy"),
            cores=cores,
            duration_s=stored["duration_s"],
            steal_share=stored.get("steal_share"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        return None, [f"The machine's wake-up latency is not shown: {path.name} could not be read ({error})."]
    return (floor if cores else None), []


def _core(stored: Json) -> CoreFloor:
    """One CPU, without the quantiles that too few wake-ups do not support."""
    fields = {name: stored[name] for name in CoreFloor.model_fields}
    for name, share in (("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999)):
        if fields["n"] - math.ceil(share * fields["n"] - 1e-9) < SUPPORT:
            fields[name] = None
    return CoreFloor.model_validate(fields)
