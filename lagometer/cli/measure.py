# SPDX-License-Identifier: Apache-2.0
"""`lagometer measure`: one cell from one command line, without a study file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

from lagometer.cli import one_cell
from lagometer.cli.common import JsonFlag, print_json, result_told_by_exit_code
from lagometer.cli.one_cell import option, study_of_one_cell


def command(
    adapter: one_cell.Adapter,
    workload: one_cell.Workload = "pipeline-2",
    payload: one_cell.Payload = "64B",
    rate: one_cell.Rate = None,
    schedule: one_cell.Schedule = None,
    late: one_cell.Late = None,
    work: one_cell.Work = None,
    work_spread: one_cell.WorkSpread = None,
    content: one_cell.Content = None,
    type_: one_cell.Type = None,
    reliability: one_cell.Reliability = None,
    history: one_cell.History = None,
    depth: one_cell.Depth = None,
    durability: one_cell.Durability = None,
    deadline_period: one_cell.DeadlinePeriod = None,
    lifespan: one_cell.Lifespan = None,
    liveliness: one_cell.Liveliness = None,
    partition: one_cell.Partition = None,
    instances: one_cell.Instances = None,
    dispatch: one_cell.Dispatch = None,
    touch: one_cell.Touch = None,
    profile: one_cell.Profile = None,
    placement: one_cell.Placement = None,
    scheduling: one_cell.Scheduling = None,
    cpus: one_cell.Cpus = None,
    network: one_cell.Network = None,
    domain: one_cell.Domain = None,
    bridge: one_cell.Bridge = None,
    security: one_cell.Security = None,
    interference: one_cell.Interference = None,
    tuning: one_cell.Tuning = None,
    link: one_cell.Link = None,
    duration: one_cell.Duration = "2s",
    warmup: one_cell.Warmup = "300ms",
    trials: Annotated[int, option("trials", "N", "Number of trials, each with fresh processes.")] = 1,
    out: Annotated[Path | None, option("out", "DIR", "Keep the campaign in this folder.")] = None,
    json: JsonFlag = False,
) -> int:
    """Measure one cell.

    Example: lagometer measure cyclonedds --payload 64KB --rate 100Hz --reliability reliable

    Example: lagometer measure shm --workload pingpong --dispatch poll
    """
    mapping = study_of_one_cell("measure", dict(locals()), trials=str(trials))
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
    from lagometer.study.adapters import refuse_misnamed

    study = study_from_mapping(mapping, "command line")
    adapters = discover_adapters(study.options)
    expansion = expand(study, adapters)
    if not expansion.cells:
        excluded = expansion.excluded[0]
        raise NothingRunnable(excluded.reason, where=excluded.cell, hint=" ".join(excluded.instead))
    refuse_misnamed(expansion.cells, adapters)
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
