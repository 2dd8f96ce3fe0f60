# SPDX-License-Identifier: Apache-2.0
"""One trial of a cell from its plans to its figures: runs, decodes, summarises and stores it."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from lagometer.agent.commands import Command, Leaves
from lagometer.agent.cpu_limit import remove_groups
from lagometer.agent.isolation import directory_of
from lagometer.agent.orders import Orders
from lagometer.installation import probe_path, scheduler_path, worker_command, worker_path
from lagometer.machine.tuning import Tuner
from lagometer.run.asked import asked_noted
from lagometer.run.companions.bridges import wanted_bridge
from lagometer.run.companions.daemons import wanted_daemons
from lagometer.run.companions.interference import wanted_load
from lagometer.run.companions.links import link_files, wanted_link
from lagometer.run.devices import MachineSpeed, limit_of, speed_for
from lagometer.run.facts import outage_recoveries, trial_facts
from lagometer.run.hosts.launchers import Launchers
from lagometer.run.hosts.link import AgentLink
from lagometer.run.hosts.opening import open_all
from lagometer.run.hosts.part import HostPart
from lagometer.run.lacking import hosts_asked, without_lacking
from lagometer.run.resources import trial_resources
from lagometer.run.results.probed import calls_of, probe_environment, probe_logs, probe_name
from lagometer.run.results.scheduled import scheduled_of
from lagometer.run.results.trial_store import BesideSamples, TrialStore
from lagometer.run.secured import secured_for
from lagometer.run.tuned import tuned_for
from lagometer.run.worker.conductor import Conductor
from lagometer.run.worker.layout import Place, worker_plans
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.run.worker.plan import Plan
from lagometer.stats.trial.clocks import clock_offsets
from lagometer.stats.trial.edges import misdelivered
from lagometer.stats.trial.edges import samples as samples_of
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.trial.events import endpoint_events
from lagometer.stats.trial.layer_times import layer_times
from lagometer.stats.trial.layers import layer_stamps
from lagometer.stats.trial.scheduling import scheduler_times
from lagometer.stats.trial.timelines import Recorded, timelines_of
from lagometer.stats.trial.warmup import WarmUp, noted, without_warm_up
from lagometer.store.clocks import on_our_clock
from lagometer.store.errors import RecordsError
from lagometer.store.exchanges import exchanges_frame
from lagometer.store.records import Lane, decode
from lagometer.store.storing import make_folders, storing
from lagometer.study import Adapter, Cell, Excluded, Study
from lagometer.study.daemons import service_address
from lagometer.study.hosts import HERE, Host

WORKER = "lagometer-worker"


@dataclass(frozen=True)
class Trial:
    """The result of a trial: what the conductor observed, every message, and the rows of cells.parquet."""

    outcome: TrialOutcome
    samples: pl.DataFrame
    rows: pl.DataFrame

    @property
    def valid(self) -> bool:
        """Whether its figures can be trusted."""
        return bool(self.rows["valid"].all())

    @property
    def reasons(self) -> list[str]:
        """Why it is not valid. Each reason begins with a code word of docs/methodology/validity.md."""
        return list(self.rows["reasons"][0].to_list())

    @property
    def warnings(self) -> list[str]:
        """What was unusual without making the figures wrong."""
        return list(self.rows["warnings"][0].to_list())


class TrialRunner:
    """Runs trials, one at a time."""

    def __init__(self, adapters: Mapping[str, Adapter], cells: Sequence[Cell] = ()) -> None:
        """cells: of the campaign; hosts without lagometer get what these cells need."""
        self._adapters = adapters
        # How the worker of each adapter is started. A missing setup is reported before the first trial.
        self._workers = {name: worker_command(adapter.sidecar.worker) for name, adapter in adapters.items()}
        self._numbers = itertools.count()
        self._tuner = Tuner()
        self._links: dict[str, AgentLink] = {}
        self._launchers = Launchers(_libraries(adapters, cells))
        self._cells = tuple(cells)
        self.speed: MachineSpeed | None = None  # measured for the first cell that needs it

    def close(self) -> None:
        """Ends the agents. Removes what a killed one left."""
        for link in self._links.values():
            link.close()
        self._launchers.close()
        if self.speed is not None:
            remove_groups(os.getpid())

    def without_lacking(self, study: Study) -> tuple[tuple[Cell, ...], tuple[Excluded, ...]]:
        """Asks the hosts of the campaign's cells what they have. Returns the cells that can run, and those
        that a host lacks something for. A host that can't be reached excludes none: its trials tell."""
        links = {name: self._link(name, study) for name in hosts_asked(study, self._cells)}
        if not links:
            return self._cells, ()
        open_all(list(links.values()))
        return without_lacking(study, self._cells, self._adapters, links)

    def prepare(self, study: Study) -> None:
        """Starts the agent of this machine, which stays for all trials: otherwise its start counts as the
        first trial's, and takes time from that cell."""
        if any(HERE in cell.hosts for cell in self._cells) and HERE not in study.hosts:
            open_all([self._link(HERE, study)])

    def run(self, conductor: Conductor, study: Study, cell: Cell, trial: int, store: TrialStore) -> Trial:
        """Runs one trial with the study's phases and stores it. Raises `CannotStore`, `Interrupted`, and
        BadInput if this machine is slower than a device."""
        if self.speed is None:
            self.speed = speed_for([*self._cells, cell], study.hosts)
        began_s = time.monotonic()
        number, network = next(self._numbers), cell.factors.network
        links = [self._link(name, study) for name in cell.hosts]
        open_all(links)
        places = {
            link.name: Place(
                *(directory_of(network, link.process_id, number), link.cpus, link.there, link.shares_clock)
            )
            for link in links
        }
        plans = worker_plans(study, cell, trial, self._adapters, places=places)
        secured = secured_for(plans)
        parts = []
        for link in links:
            packets = store.packets_path((cell.id, trial), link.name)
            files = secured.files.get(link.name, {})
            parts.append(self._part(study, cell, link, number, plans, trial, packets, files))
        with tuned_for(cell, self._tuner) as tuned:
            outcome = tuned.noted(secured.noted(conductor.carry_out(parts, plans)))
        outcome = asked_noted(cell, self._adapters, outcome)
        if cell.link is not None:
            self._forget(cell.hosts)
        samples, rows, beside_samples = _estimates(study, cell, trial, outcome, self._adapters)
        store.store((cell.id, trial), outcome, samples, rows, began_s, beside_samples)
        return Trial(outcome, samples, rows)

    def _link(self, name: str, study: Study) -> AgentLink:
        """Returns the link to the agent of a host, open or not."""
        link = self._links.get(name)
        if link is None:
            host = study.hosts.get(name, Host())
            link = self._links[name] = AgentLink(name, self._launchers.of(name, host))
        return link

    def _forget(self, hosts: Sequence[str]) -> None:
        """Makes these hosts start fresh for the next trial, so neither their link nor incomplete fragments
        carry over."""
        for name in hosts if len(hosts) > 1 else ():
            self._links.pop(name).close()

    def _part(
        self,
        study: Study,
        cell: Cell,
        link: AgentLink,
        number: int,
        plans: Sequence[Plan],
        trial: int,
        packets: Path,
        files: Mapping[str, str],
    ) -> HostPart:
        """Returns what one host does in a trial. Daemons run next to the first host's workers. files: text by
        name, for the trial's folder."""
        network, owner = cell.factors.network, link.process_id
        directory = directory_of(network, owner, number)
        local_plans = [plan for plan in plans if plan.worker.host == link.name]
        first = link.name == cell.hosts[0]
        serving = service_address(cell, study.hosts)
        daemons = wanted_daemons(cell, self._adapters, directory, serving)
        orders = Orders(
            network=network,
            directory=directory,
            workers=tuple(self._command(plan, study, link, directory) for plan in local_plans),
            daemons=(
                *wanted_link(cell, study.hosts, link.name, study.seed + trial, study.duration_ns, directory),
                *(daemons if first else ()),
                *wanted_bridge(cell, study.hosts, link.name, directory, daemons),
            ),
            load=wanted_load(study, cell, link.name, owner, number),
            leaves=self._leaves(local_plans, network, directory),
            address=study.hosts[link.name].address if len(cell.hosts) > 1 else "",
            captures=study.capture,
            probed=tuple(probe_name(plan) for plan in local_plans) if study.layers else (),
            files={**files, **link_files(cell)},
            resources=study.resources,
            scheduler=link.there(str(scheduler_path())) if study.layers and study.scheduler else "",
            cpu_limit=limit_of(link.name, study.hosts.get(link.name, Host()), self.speed),
        )
        if study.capture:
            with storing(packets):
                make_folders(packets.parent)
        workers = [plan.worker.index for plan in local_plans]
        return HostPart(
            link, orders, workers, self._files(local_plans, link), packets if study.capture else None
        )

    def _files(self, plans: Sequence[Plan], link: AgentLink) -> dict[str, str]:
        """Returns the paths, by name, of the worker and what it loads: if builds differ between two hosts,
        their figures are not about the same middleware."""
        files = {adapter.name: adapter.library for plan in plans for adapter in plan.adapters}
        programs = {self._workers[plan.adapters[0].name][0] for plan in plans}
        worker_program = str(worker_path())
        return {**files, **({WORKER: link.there(worker_program)} if worker_program in programs else {})}

    def _command(self, plan: Plan, study: Study, link: AgentLink, directory: str) -> Command:
        """Returns how to start a worker. Preloads must be in its environment before its first instruction."""
        preloads = [
            link.there(library)
            for adapter in plan.adapters
            for library in self._adapters[adapter.name].sidecar.preload
        ]
        environment = probe_environment(plan, directory) if study.layers else {}
        if study.layers:  # before all others
            preloads = [
                link.there(str(probe_path())),
                *preloads,
                *os.environ.get("LD_PRELOAD", "").split(":"),
            ]
        if preloads:
            environment["LD_PRELOAD"] = ":".join(dict.fromkeys(filter(None, preloads)))
        # All adapters of a process run in the same worker: other cells are excluded.
        words = self._workers[plan.adapters[0].name]
        return Command(tuple(map(link.there, words)), environment)

    def _leaves(self, plans: Sequence[Plan], network: str, directory: str) -> Leaves:
        """Returns what the trial must remove from the host. A private machine disappears with its
        namespaces."""
        if network == "private":
            return Leaves()
        names = dict.fromkeys(adapter.name for plan in plans for adapter in plan.adapters)
        sidecars = [self._adapters[name].sidecar for name in names]
        memory = dict.fromkeys(pattern for sidecar in sidecars for pattern in sidecar.shared_memory)
        queues = dict.fromkeys(pattern for sidecar in sidecars for pattern in sidecar.message_queues)
        return Leaves(directory, tuple(memory), tuple(queues))


def _libraries(adapters: Mapping[str, Adapter], cells: Sequence[Cell]) -> list[Path]:
    """Returns what the workers of these cells load from this installation."""
    loaded_adapters = [
        adapters[name] for name in dict.fromkeys(name for cell in cells for name in cell.adapters)
    ]
    loaded_adapters += [adapter.base for adapter in loaded_adapters if adapter.base is not None]
    preloads = (Path(library) for adapter in loaded_adapters for library in adapter.sidecar.preload)
    return [
        *(adapter.library for adapter in loaded_adapters),
        *(path for path in preloads if path.is_absolute()),
    ]


def _estimates(
    study: Study, cell: Cell, trial: int, outcome: TrialOutcome, adapters: Mapping[str, Adapter]
) -> tuple[pl.DataFrame, pl.DataFrame, BesideSamples]:
    """Returns the samples of a trial, its rows of cells.parquet, its layer stamps and events.

    Contradictory records fail the trial. What a failed trial left in memory is kept.
    """
    lanes, problems = _lanes(outcome)
    known = trial_facts(cell, trial, outcome, problems, study.hosts)
    stamps = layer_stamps(lanes, known)
    layer_warnings = [*stamps.counts.warnings()] if stamps is not None else []
    logs, probe_warnings = probe_logs(outcome)
    layer_warnings += probe_warnings
    warnings = (*known.warnings, *layer_warnings, *clock_offsets(known).warnings)
    facts = replace(
        known,
        deadline_ns=study.deadline_ns,
        deadline_k=study.deadline_k,
        keeps_saturated=study.saturation == "keep",
        warnings=warnings,
    )
    facts = replace(facts, reasons=(*facts.reasons, *misdelivered(lanes, facts)))
    resources = trial_resources(cell, outcome, adapters)
    if resources is not None and facts.observed is not None:
        facts = replace(facts, observed=replace(facts.observed, resources=resources.columns))
    try:
        samples = samples_of(lanes, facts)
    except RecordsError as error:
        facts = replace(facts, reasons=(*facts.reasons, f"protocol-error: {error}"))
        samples = samples_of([], facts)
    samples, steadiness = without_warm_up(samples, facts, WarmUp(study.discard, study.warmup_max_ns))
    layers = (
        layer_times(lanes, facts, samples, logs, stamps.frame if stamps is not None else None)
        if study.layers
        else None
    )
    scheduler = timelines = None
    if layers is not None:
        facts = replace(facts, warnings=(*facts.warnings, *layers.counts.warnings()))
        scheduled, unavailable = scheduled_of(outcome) if study.scheduler else ([], {})
        names = [worker.name for worker in outcome.workers]
        timelines = timelines_of(layers.frame, samples, lanes, facts, Recorded(names, logs, scheduled))
        if study.scheduler:
            scheduler = scheduler_times(layers.frame, samples, lanes, facts, scheduled, unavailable)
            facts = replace(facts, warnings=(*facts.warnings, *scheduler.counts.warnings()))
    events = endpoint_events(lanes, known)
    recovered = outage_recoveries(cell, outcome, samples)
    exchanges = exchanges_frame(known.exchanges)
    calls = calls_of(outcome, logs) if study.layers and study.scheduler else None
    beside_samples = BesideSamples(
        *(stamps, layers, events, exchanges, resources, scheduler, calls, recovered, timelines),
        log=cell.bridge is not None,  # it says there what it did not carry
    )
    return samples, noted(summarise(samples, facts), steadiness), beside_samples


def _lanes(outcome: TrialOutcome) -> tuple[list[Lane], tuple[str, ...]]:
    offsets_ns = {worker: host.clock.offset_ns for host in outcome.hosts for worker in host.workers}
    places = {worker: place for place, host in enumerate(outcome.hosts) for worker in host.workers}
    lanes: list[Lane] = []
    problems: list[str] = []
    for worker in outcome.workers:
        if worker.records is None:
            continue
        try:
            worker_lanes = decode(worker.records)
            _refuse_others(worker_lanes, worker.index, places.get(worker.index, 0))
            lanes += on_our_clock(worker_lanes, offsets_ns.get(worker.index, 0))
        except RecordsError as error:
            if not outcome.reasons:  # a killed worker's memory may be incomplete: its trial failed anyway
                problems.append(f"protocol-error: records of {worker.name}: {error}")
    return lanes, tuple(problems)


def _refuse_others(lanes: Sequence[Lane], worker: int, host: int) -> None:
    """Raises RecordsError if the records are from another worker or host, whose clock has another offset."""
    for lane in lanes[:1]:
        if (lane.worker, lane.host) != (worker, host):
            raise RecordsError(
                f"they say that they are of worker {lane.worker} on host {lane.host}, "
                f"and were asked of worker {worker} on host {host}"
            )
