# SPDX-License-Identifier: Apache-2.0
"""Which cells of two campaigns may be compared, and what else differs between the campaigns.

Anything that could be mistaken for a difference in the software is refused or named: another machine, another
network, another load. Things a user may want to compare (a release, a kernel, a setting) are named.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from lagometer.stats.cell.campaign_estimates import safe_alpha
from lagometer.stats.compare.compare import (
    ALPHA,
    QUANTITIES,
    CellComparison,
    Limit,
    Pair,
    compare_pairs,
    overall,
)
from lagometer.stats.interval.confidence import Numbers
from lagometer.stats.interval.medians import TrialMedian, median_of_trials
from lagometer.stats.interval.stopping import chain_latencies
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign
from lagometer.units import duration_text

SLOPE = "response_growth_ns_per_s"
COLUMNS = ("edge", "phase", "outcome", "publish_ns", "taken_ns")
ENVIRONMENT_KEYS = (
    "os",
    "kernel",
    "kernel_command_line",
    "memory_bytes",
    "governor",
    "boost",
    "smt",
    "clock_source",
    "preempt",
    "virtualisation",
    "transparent_hugepages",
    "isolation",
    "realtime",
    "compiler",
    "build_type",
    "lagometer_version",
    "commit",
)
CPU_KEYS = ("model", "threads", "allowed", "isolated")
STUDY_KEYS = ("duration_ns", "warmup_ns", "warmup_max_ns", "drain_ns", "discard", "priority", "options")
# What is recorded beside the messages, and costs CPU time.
RECORDING_KEYS = ("capture", "layers", "scheduler", "resources")
TEXTS = ("description", "sources")  # what a link says of itself
AGENT_KEYS = ("host", "machine", "cpus")
LOST_SHARE = 0.001  # differences in the share of lost messages are named from here on
NETWORK_DEFAULT = "private"
# What a campaign may look at in a trial, at a cost that its latencies contain.
LOOKS: Mapping[str, Callable[[Campaign, str, int], bool]] = {
    "layers were measured": lambda campaign, cell, trial: campaign.layers_path(cell, trial).is_file(),
    "the scheduler was recorded": lambda campaign, cell, trial: campaign.scheduler_path(
        cell, trial
    ).is_file(),
    "packets were captured": lambda campaign, cell, trial: bool(campaign.packets_paths(cell, trial)),
    "the processor's counters were read": lambda campaign, _cell, _trial: (
        _part(campaign.manifest, "study").get("resources") == "counters"
    ),
}

Side = tuple[Campaign, str, Sequence[int]]  # a cell and its trials


@dataclass(frozen=True)
class Difference:
    """Something that differs between the campaigns."""

    what: str
    a: object
    b: object


@dataclass
class Comparison:
    """Two campaigns (or two parts of one), cell by cell."""

    a: str
    b: str
    alpha: float
    cells: list[CellComparison]
    verdict: str
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    control: CellComparison | None = None  # the control cells, outside the family of the others


@dataclass(frozen=True)
class Choice:
    """What is compared, and how.

    by: two parts of cell ids. Cells of A that contain the first are compared with cells of B that contain the
    second and are otherwise the same. across_machines: also compare measurements from two machines.
    """

    select: Sequence[str] = ()
    by: tuple[str, str] | None = None
    across_machines: bool = False
    alpha: float = ALPHA
    quantities: Sequence[str] = QUANTITIES
    limits: Sequence[Limit] = ()


def compare_campaigns(a: Campaign, b: Campaign, choice: Choice | None = None) -> Comparison:
    """Compares B with A. A cell whose samples can't be read is marked not comparable, with the reason."""
    choice = choice or Choice()
    matched = _matched(a, b, choice)
    refused = None if choice.across_machines else _other_machine(a, b)
    pairs = [_pair(a, b, cell_a, cell_b, refused) for cell_a, cell_b in matched]
    comparisons = compare_pairs(pairs, choice.alpha, choice.quantities, choice.limits)
    cells = [with_cost(comparison, a, b) for comparison in comparisons]
    chosen = {cell for pair in matched for cell in pair}
    return Comparison(
        a=str(a.directory),
        b=str(b.directory),
        alpha=choice.alpha,
        cells=cells,
        verdict=overall(cells),
        only_a=[] if choice.by else [cell for cell in _selected(a, choice.select) if cell not in chosen],
        only_b=[] if choice.by else [cell for cell in _selected(b, choice.select) if cell not in chosen],
        differences=[] if a.directory == b.directory else list(differences(a, b)),
        control=_control(a, b, choice, refused),
    )


def cell_trials(campaign: Campaign, cell: str) -> tuple[list[int], list[str], list[Numbers]]:
    """A cell's valid trials that delivered something, in time order: number, start, latencies."""
    end_to_end = (pl.col("cell") == cell) & (pl.col("edge") == form.END_TO_END) & pl.col("valid")
    rows = campaign.cells.filter(end_to_end).select("trial", "started").sort("started", "trial").iter_rows()
    entries: list[tuple[int, str, Numbers]] = []
    for trial, started in rows:
        latencies = chain_latencies(campaign.samples(cell, trial, COLUMNS))
        if len(latencies):
            entries.append((trial, started or "", np.asarray(latencies)))
    return [entry[0] for entry in entries], [entry[1] for entry in entries], [entry[2] for entry in entries]


def common_blocks(
    trials_a: Sequence[int], started_a: Sequence[str], trials_b: Sequence[int], started_b: Sequence[str]
) -> list[tuple[int, int]]:
    """The positions of trials with the same number, if they were run block by block; otherwise nothing.

    They were if both trials of each number started before either trial of the next number, as in one campaign
    or in two that alternated.
    """
    place_b = {trial: place for place, trial in enumerate(trials_b)}
    blocks = [(place, place_b[trial]) for place, trial in enumerate(trials_a) if trial in place_b]
    begins = [sorted((started_a[one], started_b[other])) for one, other in blocks]
    in_turn = all(now[1] < following[0] for now, following in itertools.pairwise(begins))
    return blocks if in_turn and all(first for first, _ in begins) else []


def differences(a: Campaign, b: Campaign) -> Iterator[Difference]:
    """What differs in machine, build, versions and study. For imported figures, none of that is known."""
    if a.imported_from is not None or b.imported_from is not None:
        if a.imported_from != b.imported_from:
            yield Difference(
                "origin", *(campaign.imported_from or "measured by lagometer" for campaign in (a, b))
            )
        return
    sources: list[tuple[str, Mapping[str, Any], Mapping[str, Any], Sequence[str] | None]] = [
        ("", a.environment, b.environment, ENVIRONMENT_KEYS),
        ("cpu ", _part(a.environment, "cpu"), _part(b.environment, "cpu"), CPU_KEYS),
        ("", _part(a.environment, "sysctls"), _part(b.environment, "sysctls"), None),
        ("version of ", _part(a.manifest, "versions"), _part(b.manifest, "versions"), None),
        ("study: ", _part(a.manifest, "study"), _part(b.manifest, "study"), STUDY_KEYS),
    ]
    for prefix, values_a, values_b, keys in sources:
        for key in keys if keys is not None else dict.fromkeys((*values_a, *values_b)):
            if values_a.get(key) != values_b.get(key):
                yield Difference(prefix + key, values_a.get(key), values_b.get(key))
    study_a, study_b = _part(a.manifest, "study"), _part(b.manifest, "study")
    yield from _within_studies(study_a, study_b)
    hosts_a, hosts_b = _part(a.manifest, "hosts"), _part(b.manifest, "hosts")
    for name in _part(study_a, "hosts"):  # of this machine, the environment says more
        yield from _in_both(f"host {name}: agent's ", _part(hosts_a, name), _part(hosts_b, name), AGENT_KEYS)
    emulated_a, emulated_b = _back_ends(a), _back_ends(b)
    for link in emulated_a:
        if emulated_a[link] != emulated_b.get(link, emulated_a[link]):
            yield Difference(f"link {link}: emulated by", emulated_a[link], emulated_b[link])


def _within_studies(study_a: Mapping[str, Any], study_b: Mapping[str, Any]) -> Iterator[Difference]:
    """What ids of cells don't show: what both studies call by one name and describe otherwise, and what else
    was recorded. A key that an older lagometer did not write is no difference."""
    yield from _in_both("study: ", study_a, study_b, RECORDING_KEYS)
    for word, key, compared in (
        ("part", "parts", (*STUDY_KEYS, *RECORDING_KEYS)),
        ("host", "hosts", None),
        ("link", "links", None),
    ):
        entries_a, entries_b = _part(study_a, key), _part(study_b, key)
        for name in entries_a:
            yield from _in_both(f"{word} {name}: ", _part(entries_a, name), _part(entries_b, name), compared)


def _in_both(
    prefix: str, values_a: Mapping[str, Any], values_b: Mapping[str, Any], keys: Sequence[str] | None
) -> Iterator[Difference]:
    """The keys (None: all but texts) that both have, with different values."""
    for key in values_a if keys is None else keys:
        both = key in values_a and key in values_b
        if both and values_a[key] != values_b[key] and not (keys is None and key in TEXTS):
            yield Difference(prefix + key, values_a[key], values_b[key])


def _back_ends(campaign: Campaign) -> dict[str, str]:
    """By which means each link was emulated: the same profile costs other CPU time with each."""
    cells = campaign.manifest.get("cells", [])
    links = {cell.get("id"): _part(cell, "factors").get("link") for cell in cells}
    found: dict[str, set[str]] = {}
    for line in campaign.journal:
        link = links.get(line.get("cell"))
        for entry in line.get("links") or () if link is not None else ():
            if entry.get("back_end"):
                found.setdefault(str(link), set()).add(str(entry["back_end"]))
    return {link: " and ".join(sorted(back_ends)) for link, back_ends in found.items()}


def factors_of(campaign: Campaign, cell: str) -> dict[str, object]:
    """The factors that the study names, and always the network."""
    listed = campaign.manifest.get("cells", [])
    matching = (item.get("factors", {}) for item in listed if item.get("id") == cell)
    factors: Mapping[str, object] = next(matching, {})
    named = {name: value for name, value in factors.items() if value is not None}
    return {"network": NETWORK_DEFAULT, **named}


def _part(whole: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = whole.get(key)
    return part if isinstance(part, Mapping) else {}


def _selected(campaign: Campaign, select: Sequence[str]) -> list[str]:
    """The cells with a finished trial, in the study's order."""
    measured = campaign.cells["cell"].unique(maintain_order=True).to_list()
    listed = [str(item.get("id")) for item in campaign.manifest.get("cells", [])]
    order = {cell: place for place, cell in enumerate(listed)}
    chosen = [
        cell for cell in measured if not select or any(fnmatch.fnmatchcase(cell, glob) for glob in select)
    ]
    return sorted(chosen, key=lambda cell: order.get(cell, len(order)))


def _matched(a: Campaign, b: Campaign, choice: Choice) -> list[tuple[str, str]]:
    """Which cell of A is compared with which cell of B."""
    cells_b = set(_selected(b, ()))
    pairs: list[tuple[str, str]] = []
    for cell in _selected(a, choice.select):
        if choice.by is not None:
            parts = cell.split("/")
            others = [
                "/".join([*parts[:place], choice.by[1], *parts[place + 1 :]])
                for place, part in enumerate(parts)
                if part == choice.by[0]
            ]
        else:
            others = [cell] if cell in cells_b else _but_for_network(a, cell, b, cells_b)
        pairs += [(cell, other) for other in others if other in cells_b]
    return pairs


def _but_for_network(a: Campaign, cell: str, b: Campaign, cells_b: set[str]) -> list[str]:
    """Cells of B that match this one except for the network, so that the user learns why they don't match."""
    factors = {**factors_of(a, cell), "network": None}
    return [
        candidate for candidate in sorted(cells_b) if {**factors_of(b, candidate), "network": None} == factors
    ]


def _other_machine(a: Campaign, b: Campaign) -> str | None:
    """Why the campaigns' machines are not the same; None if they are, or if it is unknown."""
    for names in (("machine_id",), ("hostname", "cpu", "memory_bytes")):
        identities = [_identity(campaign, names) for campaign in (a, b)]
        if all(any(values) for values in identities):
            hosts = [campaign.environment.get("hostname") or "unknown" for campaign in (a, b)]
            if identities[0] == identities[1]:
                return None
            return f"measured on different machines (A: {hosts[0]}, B: {hosts[1]}); see --across-machines"
    return None


def _identity(campaign: Campaign, names: Sequence[str]) -> list[object]:
    values = [campaign.environment.get(name) for name in names]
    return [value.get("model") if isinstance(value, Mapping) else value for value in values]


def _pair(a: Campaign, b: Campaign, cell_a: str, cell_b: str, refused: str | None) -> Pair:
    for campaign in (a, b):
        if campaign.imported_from is not None:
            return Pair(cell_a, cell_b, refused=f"{campaign.directory}: {_imported(campaign)}")
    networks = [factors_of(campaign, cell)["network"] for campaign, cell in ((a, cell_a), (b, cell_b))]
    if networks[0] != networks[1]:
        refused = f"network: {networks[0]} against {networks[1]}: these are not the same system"
    if refused is not None:
        return Pair(cell_a, cell_b, refused=refused)
    try:
        trials_a, started_a, latencies_a = cell_trials(a, cell_a)
        trials_b, started_b, latencies_b = cell_trials(b, cell_b)
    except CampaignError as error:
        return Pair(cell_a, cell_b, refused=str(error))
    blocks = common_blocks(trials_a, started_a, trials_b, started_b)
    bounds_ns = clock_bound_ns(a, cell_a), clock_bound_ns(b, cell_b)
    notes = [
        *_notes(a, cell_a, b, cell_b),
        *notes_of_clocks(bounds_ns),
        *notes_of_looks((a, cell_a, trials_a), (b, cell_b, trials_b)),
    ]
    alphas = (safe_alpha(a), safe_alpha(b))
    return Pair(
        cell_a, cell_b, latencies_a, latencies_b, blocks, notes=notes, alphas=alphas, bounds_ns=bounds_ns
    )


def clock_bound_ns(campaign: Campaign, cell: str, edge: str = form.END_TO_END) -> int:
    """How far off the latencies of a cell's valid trials may be; 0 with one clock."""
    if "clock_bound_ns" not in campaign.cells.columns:
        return 0
    chosen = (pl.col("cell") == cell) & (pl.col("edge") == edge) & pl.col("valid")
    bound_ns = campaign.cells.filter(chosen)["clock_bound_ns"].max()
    return bound_ns if isinstance(bound_ns, int) else 0


def notes_of_clocks(bounds_ns: tuple[int, int]) -> Iterator[str]:
    """How well the clocks of both ends are known, if they are two."""
    if any(bounds_ns):
        known = [
            f"{name} to ± {duration_text(bound_ns)}" for name, bound_ns in zip("AB", bounds_ns, strict=True)
        ]
        yield f"both ends' clocks are known of {', '.join(known)}: what lies within that is no difference"


def notes_of_looks(a: Side, b: Side) -> Iterator[str]:
    """What was looked at on one side only."""
    for look, took_place in LOOKS.items():
        looked = [
            any(took_place(campaign, cell, trial) for trial in trials) for campaign, cell, trials in (a, b)
        ]
        if looked[0] != looked[1]:
            yield f"{look} in {'A' if looked[0] else 'B'} only: its latencies contain what that costs"


def _imported(campaign: Campaign) -> str:
    return (
        f"figures imported from {campaign.imported_from} have no samples, so no interval; "
        "`lagometer show` has the figures of both"
    )


def _notes(a: Campaign, cell_a: str, b: Campaign, cell_b: str) -> Iterator[str]:
    """What the latencies of valid trials do not show: failed trials and lost messages."""
    lost, failed = [], []
    for campaign, cell in ((a, cell_a), (b, cell_b)):
        rows = campaign.cells.filter((pl.col("cell") == cell) & (pl.col("edge") == form.END_TO_END))
        failed.append((rows.filter(~pl.col("valid")).height, rows.height))
        valid = rows.filter("valid")
        missing = sum(int(valid[name].sum()) for name in ("lost", "overwritten", "censored", "rejected"))
        sent = missing + int(valid["n"].sum())
        lost.append(missing / sent if sent else 0.0)
    if any(count for count, _ in failed):
        yield "failed trials: " + ", ".join(
            f"{name} {count} of {total}" for name, (count, total) in zip("AB", failed, strict=True)
        )
    yield from _notes_of_queues((a, cell_a), (b, cell_b))
    if abs(lost[0] - lost[1]) > LOST_SHARE:
        yield f"not delivered: A {lost[0]:.2%}, B {lost[1]:.2%}; latencies are of delivered messages"


def _notes_of_queues(*sides: tuple[Campaign, str]) -> Iterator[str]:
    """In how many of the valid trials a queue builds up end to end, and how fast the response time grows."""
    told, grows = [], False
    for name, (campaign, cell) in zip("AB", sides, strict=True):
        chosen = (pl.col("cell") == cell) & (pl.col("edge") == form.END_TO_END) & pl.col("valid")
        rows = campaign.cells.filter(chosen)
        growing = rows.filter([_queue_builds_up(texts) for texts in rows["warnings"].to_list()])
        slope_ns = growing[SLOPE].median() if SLOPE in growing.columns else None
        by = f" (+{duration_text(slope_ns)} a second)" if isinstance(slope_ns, float) else ""
        told.append(f"{name} {growing.height} of {rows.height}{by}")
        grows = grows or not growing.is_empty()
    if grows:
        yield (
            f"a queue builds up in trials: {', '.join(told)}; p50 depends on how long a trial is "
            "(queue-builds-up)"
        )


def _queue_builds_up(warnings: Sequence[str] | None) -> bool:
    return any(text.startswith(f"queue-builds-up: {form.END_TO_END},") for text in warnings or ())


def _control(a: Campaign, b: Campaign, choice: Choice, refused: str | None) -> CellComparison | None:
    """The control cells if both campaigns have one: they show whether the machine itself stayed the same."""
    control_a, control_b = a.control, b.control
    if refused is not None or control_a is None or control_b is None or a.directory == b.directory:
        return None
    cells = [cell for cell in _selected(control_a, ()) if cell in set(_selected(control_b, ()))]
    if not cells:
        return None
    comparison = compare_pairs(
        [_pair(control_a, control_b, cells[0], cells[0], None)], choice.alpha, ("p50",)
    )[0]
    return with_cost(comparison, control_a, control_b)


def with_cost(comparison: CellComparison, a: Campaign, b: Campaign) -> CellComparison:
    """The comparison with the cost of a message on both sides; `a` and `b` are the cells' campaigns."""
    return replace(
        comparison,
        cpu_per_message_a=_cpu_per_message(a, comparison.cell_a),
        cpu_per_message_b=_cpu_per_message(b, comparison.cell_b),
    )


def _cpu_per_message(campaign: Campaign, cell: str) -> TrialMedian:
    """CPU time per message over the valid trials of a cell."""
    chosen = (pl.col("cell") == cell) & (pl.col("edge") == form.END_TO_END) & pl.col("valid")
    return median_of_trials(campaign.cells.filter(chosen)["cpu_per_message_ns"].to_list())
