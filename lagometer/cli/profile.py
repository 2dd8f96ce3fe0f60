# SPDX-License-Identifier: Apache-2.0
"""`lagometer profile`: where the time of one cell goes, and what the probes cost."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lagometer.cli import one_cell
from lagometer.cli.common import (
    JsonFlag,
    message_console,
    output_console,
    print_json,
    result_told_by_exit_code,
)
from lagometer.cli.one_cell import option, study_of_one_cell

if TYPE_CHECKING:
    from lagometer.stats.trial.seen_calls import SeenCalls
    from lagometer.store.reader import Campaign
    from lagometer.summary.layers import LayerTable, ProbeCost
    from lagometer.summary.scheduling_data import CellScheduling

# The campaigns of a pair: with the probes, without, and with the scheduler's record in addition.
PROBED, PLAIN, RECORDED = "layers", "plain", "scheduler"


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
    security: one_cell.Security = None,
    interference: one_cell.Interference = None,
    tuning: one_cell.Tuning = None,
    link: one_cell.Link = None,
    duration: one_cell.Duration = "2s",
    warmup: one_cell.Warmup = "300ms",
    pairs: Annotated[
        int, option("pairs", "N", "Number of trial pairs, with the probes and without (see above).")
    ] = 6,
    out: Annotated[Path | None, option("out", "DIR", "Keep the campaigns in this folder.")] = None,
    json: JsonFlag = False,
) -> int:
    """Say in which layer of the middleware the time of one cell goes, and what the probes themselves cost.

    Each pair has a trial with the probes and one without, in random order, and, where the kernel allows it, a
    third one that also records the scheduler. What lies between two layers is shown as unattributed.

    Example: lagometer profile cyclonedds --payload 64KB --rate 100Hz

    Example: lagometer profile udp --pairs 3 --json
    """
    options = dict(locals())
    if out is not None:
        return _profile(options, out, pairs, json)
    with tempfile.TemporaryDirectory(prefix="lagometer-") as folder:
        return _profile(options, Path(folder), pairs, json)


def _profile(options: dict[str, Any], directory: Path, pairs: int, as_json: bool) -> int:
    from lagometer.errors import BadInput, Interrupted, TrialsFailed
    from lagometer.summary.layers import layer_tables, probe_cost, probed_calls
    from lagometer.summary.scheduling import scheduling

    if pairs < 1:
        raise BadInput(f"'{pairs}' is not a number of pairs", where="--pairs", hint="use 1 or more, e.g. 6")
    if directory.is_dir() and any(directory.iterdir()):
        raise BadInput("is not empty", where=str(directory), hint="name a new folder with --out")
    order = random.Random(0)
    not_recorded = _why_not_recorded()
    by_side: dict[str, list[Campaign]] = {PROBED: [], PLAIN: []}
    if not_recorded is None:
        by_side[RECORDED] = []
    for pair in range(pairs):
        sides = list(by_side)
        order.shuffle(sides)
        try:
            for side in sides:
                by_side[side].append(_carried_out(options, directory / f"pair-{pair + 1}", side, pair))
        except Interrupted:
            return Interrupted.exit_code
    tables = layer_tables(by_side[PROBED])
    cost = probe_cost([*zip(by_side[PROBED], by_side[PLAIN], strict=True)])
    recorded = by_side.get(RECORDED, [])
    recorder = probe_cost([*zip(recorded, by_side[PROBED], strict=False)])
    shares, calls = scheduling(recorded), probed_calls(recorded)
    if not_recorded is not None:
        calls = replace(calls, absent=f"{calls.absent}: {not_recorded}")
    with result_told_by_exit_code():
        if as_json:
            document = {**_as_json(tables, cost), **_recorder_as_json(recorder), **_calls_as_json(calls)}
            print_json({**document, "scheduling": [share.model_dump() for share in shares]})
        else:
            _render(tables, shares, cost)
            _render_recorder(recorder, not_recorded)
            _render_calls(calls)
    campaigns = [campaign for side_campaigns in by_side.values() for campaign in side_campaigns]
    all_valid = all(bool(campaign.cells["valid"].all()) for campaign in campaigns)
    return 0 if all_valid and tables else TrialsFailed.exit_code


def _why_not_recorded() -> str | None:
    """Why the kernel's scheduler can't be recorded here; None if it can."""
    from lagometer.agent.observe.scheduler import unavailable
    from lagometer.errors import SetupMissing
    from lagometer.installation import scheduler_path

    try:
        return unavailable(str(scheduler_path()))
    except SetupMissing as error:
        return str(error)


def _carried_out(options: dict[str, Any], directory: Path, side: str, pair: int) -> Campaign:
    """Runs one trial. Raises Interrupted, NothingRunnable."""
    from lagometer.errors import NothingRunnable
    from lagometer.run.campaign import Assignment, CampaignRun
    from lagometer.store.reader import open_campaign
    from lagometer.study import discover_adapters, expand, study_from_mapping
    from lagometer.study.adapters import refuse_misnamed

    layers = "off" if side == PLAIN else "on"
    scheduler = "on" if side == RECORDED else "off"
    # A different seed for each pair: all trials of a pair send the same messages from the same addresses.
    mapping = study_of_one_cell(
        "profile", options, layers=layers, scheduler=scheduler, machine_floor="off", seed=str(pair + 1)
    )
    study = study_from_mapping(mapping, "command line")
    adapters = discover_adapters(study.options)
    expansion = expand(study, adapters)
    if not expansion.cells:
        excluded = expansion.excluded[0]
        raise NothingRunnable(excluded.reason, where=excluded.cell, hint=" ".join(excluded.instead))
    refuse_misnamed(expansion.cells, adapters)
    campaign_directory = directory / side
    campaign_directory.parent.mkdir(parents=True, exist_ok=True)
    CampaignRun(
        Assignment(study, expansion.cells, expansion.excluded, adapters, campaign_directory)
    ).carry_out()
    return open_campaign(campaign_directory)


def _as_json(tables: list[LayerTable], cost: ProbeCost) -> dict[str, Any]:
    """The layers of the first edge, which is the only one in most workloads, and those of each edge."""
    from dataclasses import asdict

    from lagometer.cli.show.layers import layers_as_json

    edges = [{"edge": table.edge, **layers_as_json(table.figures)} for table in tables]
    first = edges[0] if edges else {"layers": [], "unattributed_share": None}
    of_latency_ns, of_stamps_ns = cost.bounds_ns
    low_ns, high_ns = cost.interval_ns or (None, None)
    bounds = {
        "probe_cost_bound_of_latency_ns": of_latency_ns,
        "probe_cost_bound_of_stamps_ns": of_stamps_ns,
        "probe_cost_within_bounds": cost.within_bounds,
        "probe_cost_low_ns": low_ns,
        "probe_cost_high_ns": high_ns,
    }
    return {**first, **asdict(cost), **bounds, "edges": edges}


def _recorder_as_json(recorder: ProbeCost) -> dict[str, Any]:
    """What recording the scheduler costs in addition to the probes; null if it was not recorded."""
    return {
        "scheduler_cost_ns": recorder.probe_cost_ns,
        "scheduler_cost_pairs_ns": recorder.probe_cost_pairs_ns,
        "scheduler_cost_share": recorder.probe_cost_share,
    }


def _render_recorder(recorder: ProbeCost, not_recorded: str | None) -> None:
    """Prints the same."""
    if not_recorded is not None:
        text = f"the scheduler's record is not available: {not_recorded}"
    elif recorder.probe_cost_ns is None:
        text = "the scheduler's record: its cost is not known, since a trial of each pair is not valid"
    else:
        share = f" ({recorder.probe_cost_share:+.1%})" if recorder.probe_cost_share else ""
        text = (
            f"recording the scheduler costs {_signed(recorder.probe_cost_ns)}{share} in addition"
            f"{_between(recorder)}; its share and the kernel's calls are those of trials of their own"
        )
    output_console().print(text, markup=False, soft_wrap=True)


def _calls_as_json(calls: SeenCalls) -> dict[str, Any]:
    """How much of what the kernel did the probes saw."""
    groups = [
        {"name": name, "kernel": seen.kernel, "probe": seen.probe, "share": seen.share}
        for name, seen in calls.groups.items()
    ]
    return {"system_calls": groups, "system_calls_absent": calls.absent}


def _render_calls(calls: SeenCalls) -> None:
    """Prints the same as a sentence."""
    console = output_console()
    if calls.absent is not None:
        absent = f"not available: {calls.absent}"
        console.print(f"what the probes saw of the kernel's calls: {absent}", markup=False, soft_wrap=True)
        return
    parts = [
        f"{seen.share:.1%} of {seen.kernel:,} ({name})"
        for name, seen in calls.groups.items()
        if seen.share is not None
    ]
    told = ", ".join(parts) or "there were none"
    console.print(f"of the kernel's calls the probes saw at least {told}", markup=False, soft_wrap=True)


def _render(tables: list[LayerTable], shares: list[CellScheduling], cost: ProbeCost) -> None:
    from lagometer.cli.show.layers import render_layers
    from lagometer.cli.show.scheduling import render_scheduling
    from lagometer.units import duration_text

    console = output_console()
    render_layers(tables, console)
    render_scheduling(shares, console)
    if not tables:
        message_console().print("no valid trial has layers: see the warnings above", style="yellow")
    if cost.probe_cost_ns is not None:
        differences = ", ".join(_signed(difference_ns) for difference_ns in cost.probe_cost_pairs_ns)
        share = f" ({cost.probe_cost_share:+.1%} of the median latency)" if cost.probe_cost_share else ""
        console.print(
            f"\nthe probes cost {_signed(cost.probe_cost_ns)}{share}: median of {cost.pairs} pairs: "
            f"{differences}{_between(cost)}",
            soft_wrap=True,
        )
        console.print(
            f"without them the median latency is {duration_text(cost.latency_p50_without_ns)}", soft_wrap=True
        )
        console.print(bounds_line(cost), markup=False, soft_wrap=True)


def bounds_line(cost: ProbeCost) -> str:
    """Says what the probes may cost, and whether they cost more, as far as the pairs can tell."""
    from lagometer.units import duration_text

    of_latency_ns, of_stamps_ns = cost.bounds_ns
    text = f"they may cost 3 % of that, {duration_text(of_latency_ns)}"
    if of_stamps_ns is None or cost.stamps_per_message is None:
        return text
    text += (
        f", or two clock readings ({duration_text(cost.clock_read_ns)} each) for each of "
        f"{cost.stamps_per_message:.1f} stamps, {duration_text(of_stamps_ns)}"
    )
    untold = "these pairs can't tell whether they cost more; use more --pairs, on a quieter machine"
    verdict = {True: "they do not cost more", False: "they cost more", None: untold}
    return f"{text}: {verdict[cost.within_bounds]}"


def _between(cost: ProbeCost) -> str:
    """The interval of a cost, if there are enough pairs for one."""
    if cost.interval_ns is None:
        return ""
    low_ns, high_ns = cost.interval_ns
    return f" (95 % interval of the median: {_signed(low_ns)} to {_signed(high_ns)})"


def _signed(difference_ns: float) -> str:
    from lagometer.units import duration_text

    return ("-" if difference_ns < 0 else "+") + duration_text(abs(difference_ns))
