# SPDX-License-Identifier: Apache-2.0
"""From what agents saw of processes to a trial's columns, its file and its part of the journal."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
from needs import ROOT

from lagometer.agent.observe.hardware import Count
from lagometer.agent.observe.resources import DAEMON, WORKER, ProcessUse, Resources
from lagometer.agent.observe.usage import Account, Library, Memory, Thread
from lagometer.run.resources import trial_resources
from lagometer.store.format import RESOURCES_SCHEMA
from lagometer.store.observed import RESOURCE_COUNTS
from lagometer.study.adapters import load_adapter

MIB = 1 << 20
ADAPTERS = {"cyclonedds": load_adapter(ROOT / "adapters" / "cyclonedds")}
DDS, LIBC = "/usr/lib/libddsc.so.0.10.2", "/usr/lib/libc.so.6"


def memory(size: int, dds: int) -> Memory:
    libraries = (Library(DDS, dds, dds // 2, dds // 4), Library(LIBC, MIB, MIB, 1))
    return Memory(3 * size, 2 * size, size, libraries)


def use(worker: int | None, began_ns: int, dds: int = 4 * MIB, **given: Any) -> ProcessUse:
    threads = {1: Thread("worker", 0, 0, 5, 10, 1), 2: Thread("recv", 0, 0, None, 20, 2, 7, 1)}
    found = ProcessUse(
        kind=WORKER if worker is not None else DAEMON,
        name="" if worker is not None else "broker",
        worker=worker,
        began_ns=began_ns,
        account=Account(400, 40, 8, 0, threads),
        memory=memory(MIB, dds),
        descriptors=9,
        sockets={"tcp": 1, "udp": 2, "unix": 3, "other": 0},
        counts={"cycles": Count(1000), "tlb_misses": Count(None, "EACCES: no")},
    )
    return replace(found, **given)


def seen(*processes: ProcessUse, **given: Any) -> Resources:
    network_bytes = {"sent_bytes": 600, "received_bytes": 300}
    found = Resources(1000, 2000, 800, processes, network_bytes, 1200, None, {}, user_alone=True)
    return replace(found, **given)


def host(name: str, workers: tuple[int, ...], resources: Resources | None, boot: str = "b") -> Any:
    evidence = SimpleNamespace(resources=resources)
    return SimpleNamespace(name=name, workers=workers, evidence=evidence, hello={"boot": boot})


def trial(*hosts: Any, workers: tuple[str, ...] = ("source", "sink")) -> Any:
    cell = SimpleNamespace(adapters=("cyclonedds",), graph=SimpleNamespace(nodes=("source", "sink")))
    outcome = SimpleNamespace(hosts=hosts, workers=[SimpleNamespace(name=name) for name in workers])
    return trial_resources(cast("Any", cell), cast("Any", outcome), ADAPTERS)


def test_counts_are_those_of_the_measure_phase_alone() -> None:
    """One process was looked at 200 ns before the phase of 1000 ns, the other 600 ns before."""
    found = trial(host("here", (0, 1), seen(use(0, 800), use(1, 400))))
    assert set(found.columns) == set(RESOURCE_COUNTS)
    assert found.columns["user_ns"] == round(400 * 1000 / 1200 + 400 * 1000 / 1600)
    assert found.columns["voluntary_switches"] == round(30 * 1000 / 1200 + 30 * 1000 / 1600)
    assert found.columns["cycles"] == round(1000 * 1000 / 1200 + 1000 * 1000 / 1600)
    assert found.columns["network_sent_bytes"] == 500 and found.columns["energy_nj"] == 1000


def test_what_is_there_at_one_time_is_not_scaled() -> None:
    columns = trial(host("here", (0, 1), seen(use(0, 800), use(1, 400), use(None, 800)))).columns
    assert (columns["processes"], columns["threads"], columns["descriptors"]) == (3, 6, 27)
    assert (columns["rss_bytes"], columns["uss_bytes"]) == (9 * MIB, 3 * MIB)
    assert (columns["tcp_sockets"], columns["udp_sockets"], columns["unix_sockets"]) == (3, 6, 9)


def test_the_threads_of_a_tracer_are_named_and_not_counted() -> None:
    """Where LTTng is loaded; another program may call its threads so, too."""
    threads = {number: Thread(name, 0, 0, 5, 1, 0) for number, name in enumerate(("a", "a-ust", "a-ust"))}
    account = Account(400, 40, 8, 0, threads)
    traced = replace(memory(MIB, MIB), libraries=(Library("/usr/lib/liblttng-ust.so.1.0.0", 9, 8, 7),))
    found = trial(host("here", (0, 1), seen(use(0, 800, account=account, memory=traced), use(1, 400))))
    assert found.columns["threads"] == 1 + 2
    assert found.journal["processes"][0]["threads"] == {"a": 1, "a-ust": 2}
    assert found.journal["libraries"]["tracer"]["files"] == {"liblttng-ust.so.1.0.0": 9}
    plain = trial(host("here", (0, 1), seen(use(0, 800, account=account), use(1, 400))))
    assert plain.columns["threads"] == 3 + 2


def test_a_library_counts_once_with_its_largest_size() -> None:
    columns = trial(host("here", (0, 1), seen(use(0, 800), use(1, 400, dds=6 * MIB)))).columns
    assert columns["middleware_mapped_bytes"] == 6 * MIB
    assert columns["middleware_resident_bytes"] == 3 * MIB
    assert columns["abstraction_mapped_bytes"] == 0


def test_a_figure_that_one_process_lacks_is_not_known() -> None:
    lacking = use(1, 400, memory=None, account=None, descriptors=None, sockets={}, counts={})
    columns = trial(host("here", (0, 1), seen(use(0, 800), lacking))).columns
    unknown = {name for name, value in columns.items() if value is None}
    known = {"processes", "network_sent_bytes", "network_received_bytes", "energy_nj"}
    assert unknown == set(RESOURCE_COUNTS) - known


def test_a_look_that_came_after_the_phase_tells_nothing() -> None:
    columns = trial(host("here", (0, 1), seen(use(0, 800), use(1, 2000)))).columns
    assert columns["user_ns"] is None and columns["threads"] == 4


def test_without_one_of_its_workers_a_trial_has_no_figures() -> None:
    found = trial(host("here", (0, 1), seen(use(0, 800))))
    assert not found.columns and found.frame.height > 0


def test_hosts_add_up_and_a_machine_counts_once() -> None:
    apart = trial(host("a", (0,), seen(use(0, 800))), host("b", (1,), seen(use(0, 800)), "other")).columns
    same = trial(host("a", (0,), seen(use(0, 800))), host("b", (1,), seen(use(0, 800)))).columns
    assert (apart["energy_nj"], same["energy_nj"]) == (2000, 1000)
    assert apart["network_sent_bytes"] == same["network_sent_bytes"] == 1000
    assert apart["middleware_mapped_bytes"] == 8 * MIB  # each host loads its own
    assert trial(host("a", (0,), seen(use(0, 800))), host("b", (1,), None)) is None


def test_the_file_has_every_process_thread_and_library() -> None:
    frame = trial(host("here", (0, 1), seen(use(0, 800), use(1, 400)))).frame
    assert dict(frame.schema) == RESOURCES_SCHEMA
    counts = dict(frame.group_by("what").len().iter_rows())
    assert counts == {"process": 2, "thread": 4, "library": 4}
    (thread,) = frame.filter(what="thread", name="recv", process="sink").to_dicts()
    assert (thread["thread"], thread["voluntary_switches"], thread["run_ns"]) == (2, 20, None)
    assert (thread["minor_faults"], thread["major_faults"]) == (7, 1)
    (library,) = frame.filter(pl.col("name") == DDS, process="source").to_dicts()
    assert (library["group"], library["mapped_bytes"], library["rss_bytes"]) == (
        "middleware",
        4 * MIB,
        2 * MIB,
    )
    (process,) = frame.filter(what="process", process="source").to_dicts()
    assert (process["cycles"], process["tlb_misses"], process["share"]) == (1000, None, 1000 / 1200)


def test_the_journal_names_threads_libraries_and_what_is_not_available() -> None:
    other = {"cache_misses": "ENOENT: none"}
    resources = seen(use(0, 800), use(1, 400), network_bytes=None, energy_nj=None, energy_why="EACCES: x")
    journal = trial(host("here", (0, 1), replace(resources, unavailable=other))).journal
    assert journal["nodes"] == 2 and journal["user_alone"]
    assert journal["processes"][1] == {
        "host": "here",
        "process": "sink",
        "kind": "worker",
        "threads": {"worker": 1, "recv": 1},
    }
    assert journal["libraries"]["middleware"]["files"] == {"libddsc.so.0.10.2": 4 * MIB}
    assert journal["not_available"] == {
        "cache_misses": "ENOENT: none",
        "tlb_misses": "EACCES: no",
        "energy_nj": "EACCES: x",
        "network_sent_bytes": "the network is not the trial's own",
        "network_received_bytes": "the network is not the trial's own",
    }


def test_what_an_agent_saw_comes_over_the_pipe_as_it_was() -> None:
    resources = seen(use(0, 800), use(None, 400, memory=None, account=None), network_bytes=None)
    assert Resources.from_frame(json.loads(json.dumps(resources.as_frame()))) == resources
    assert resources.workers_bytes(1) == 2 * MIB and resources.workers_bytes(2) is None
