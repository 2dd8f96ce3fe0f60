# SPDX-License-Identifier: Apache-2.0
"""What a study may set of Cyclone DDS, each seen to work from outside: the kernel's counters and sockets, the
library's threads, the memory that processes share; and what carries the messages then."""

from __future__ import annotations

import ctypes
import os
import re
import socket
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, run_campaign
from conformance_support import conformance
from needs import adapter_library, need, require
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, plan, reader, timer, writer
from worker_support import Machine, machine, run_private

from lagometer.agent.observe.sockets import find_workers
from lagometer.store.records import KIND_RECEIVED, KIND_SENT

DIRECTORY = "/dev/shm/lagometer"
SHARED_MEMORY = {"shared_memory": True}
PIDFD_GETFD = 438
# The release of the distribution, and that of a crate: two adapters of the same sources.
SERIES = pytest.mark.parametrize("series", ["cyclonedds", "cyclonedds11"])
BEST_EFFORT: Mapping = {"reliability": "best_effort", "history": "keep_last", "depth": 16}


def need_shared_memory(series: str) -> None:
    """The adapter, a machine of its own, and RouDi."""
    for name in ("netns", series, "iox-roudi"):
        need(name)


def campaign(build: Path, folder: Path, options: Mapping, series: str = "cyclonedds", **factors: Any) -> Path:
    """One way between two processes with these options of Cyclone DDS."""
    need("netns")
    need(series)
    if options.get("shared_memory"):
        need("iox-roudi")
    matrix = {"adapter": [series], "workload": ["pipeline-2"], "rate": ["50Hz"], **factors}
    return run_campaign(build, folder, matrix, options={series: options})


def one_way(build: Path, options: Mapping, series: str = "cyclonedds", **endpoint: Any) -> list[Mapping]:
    """A plan that sends every 5 ms, and one that listens; they wait for the common start."""
    library = adapter_library(series, build)
    source = node("source", 0, [], [writer("t", 0, **endpoint)], [timer(5 * MILLISECOND_NS)], "listener")
    sink = node("sink", 1, [reader("t", [0], **endpoint)], [], [any_message()], "listener")
    plans = [plan(library, DIRECTORY, [each], measure_ns=1_000 * MILLISECOND_NS) for each in (source, sink)]
    for index, each in enumerate(plans):
        each["worker"]["index"] = index
        each["adapters"][0]["options"] = options
    return plans


def process_of(private: Machine, worker: int) -> int:
    """A worker's process number out here."""
    number = private.notice("started", worker)["pid"]
    (pid,) = find_workers(private.process.pid, [number])
    assert pid is not None
    return pid


# --- UDP ---


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        ({"max_message_size": 65_500}, 1, 3),
        ({"max_message_size": 1_400}, 40, 60),  # as many as there are fragments of 1,344 B
        ({"max_message_size": 600, "fragment_size": 500}, 110, 140),
        ({"max_message_size": 600, "fragment_size": 30_000}, 2, 6),
    ],
)
def test_a_sample_is_cut_as_asked_for(
    build: Path, tmp_path: Path, options: Mapping, least: float, most: float
) -> None:
    out = campaign(build, tmp_path, options, payload=["60KB"], reliability=["best_effort"])
    (trial,) = journal(out)
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") != "end-to-end")
    (worker,) = [each for each in trial["counters"].values() if each["writers"]]
    sent = worker["writers"][0]["sent"]
    assert rows["corrupted"].sum() == 0
    assert least <= trial["evidence"]["network"]["udp_sent"] / sent <= most, (sent, trial["evidence"])


def buffers_of(pid: int) -> tuple[set[int], set[int]]:
    """The receive and send buffers of a process's UDP sockets, as asked for: half of what is told."""
    library = ctypes.CDLL(None, use_errno=True)
    receive, send = set(), set()
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if not str(entry.readlink()).startswith("socket:"):
                continue
            descriptor = library.syscall(PIDFD_GETFD, process, int(entry.name), 0)
            require("ptrace", descriptor >= 0, "the right to look at another process's sockets")
            with socket.socket(fileno=descriptor) as copy:
                if (copy.family, copy.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                    receive.add(copy.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2)
                    send.add(copy.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2)
    finally:
        os.close(process)
    return receive, send


def test_the_buffers_are_what_the_settings_say(build: Path) -> None:
    """Less than the kernel's limit is given as asked for; more is cut, and the settings tell by how much."""
    need("netns")
    need("cyclonedds")
    asked = {"socket_receive_buffer": 150_000, "socket_send_buffer": 1 << 30}
    send, _ = one_way(build, asked)
    with machine(build, 1) as private:
        private.workers[0].send({**send, "standalone": False})
        ready = private.workers[0].wait_for("ready")
        receive, sent = buffers_of(process_of(private, 0))
    (context,) = [each for each in ready["settings"] if each["object"] == "context"]
    settings = context["effective"]["settings"]
    assert settings["Internal/SocketReceiveBufferSize[@max]"]["value"] == 150_000
    assert settings["Internal/SocketSendBufferSize[@max]"]["value"] == 1 << 30
    assert {settings["SO_RCVBUF"]["value"]} == receive == {150_000}
    assert {settings["SO_SNDBUF"]["value"]} == sent
    assert sent < {1 << 30} or max(sent) < 1 << 30


def waits_of_thread(pid: int, name: str) -> int:
    """How often the threads of this name have gone to sleep."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            status = (task / "status").read_text()
            total += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return total


@pytest.mark.parametrize("delivery", ["synchronous", "asynchronous"])
def test_the_thread_that_delivers_is_the_one_asked_for(build: Path, delivery: str) -> None:
    """Through the delivery queue's thread, which sleeps before each message, or past it."""
    need("netns")
    need("cyclonedds")
    plans = one_way(build, {"delivery": delivery}, qos=BEST_EFFORT)
    with machine(build, 2) as private:
        for worker, each in zip(private.workers, plans, strict=True):
            worker.send(each)
        private.workers[1].wait_for_records(KIND_RECEIVED, 10)
        pid = process_of(private, 1)
        before = waits_of_thread(pid, "dq.user")
        private.workers[1].wait_for_records(KIND_RECEIVED, 110)
        waits = waits_of_thread(pid, "dq.user") - before
    assert waits >= 30 if delivery == "asynchronous" else waits < 30, waits


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_message_size": 65_501}, "max_message_size"),
        ({"fragment_size": 0}, "fragment_size"),
        ({"delivery": "eventually"}, "synchronous | asynchronous"),
        ({"shared_memory": "yes"}, "true | false"),
    ],
)
def test_what_cannot_be_is_refused(build: Path, options: Mapping, said: str) -> None:
    need("netns")
    need("cyclonedds")
    (answer,) = run_private(build, [one_way(build, options)[0]])
    assert said in answer.event("failed")["message"]


# --- shared memory ---


TURNED_ON = {
    "cyclonedds": "SharedMemory/Enable",
    "cyclonedds11": "General/Interfaces/PubSubMessageExchange[@type]",
}


@pytest.mark.by_turn
@SERIES
@pytest.mark.parametrize(("kind", "origin"), [("fixed", "loaned"), ("bytes", "copied")])
def test_shared_memory_carries_it_and_fixed_types_are_loaned(
    build: Path, tmp_path: Path, series: str, kind: str, origin: str
) -> None:
    out = campaign(
        build,
        tmp_path,
        SHARED_MEMORY,
        series,
        payload=["64B", "64KB"],
        type=[kind],
        reliability=["best_effort", "reliable"],
        dispatch=["listener", "waitset"],
    )
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") != "end-to-end")
    assert len(rows) == 8
    assert (rows["n"] == rows["sent"]).all()
    assert rows["corrupted"].sum() == 0
    large = rows.filter(pl.col("payload_bytes") == 65_536)
    assert all("shared-memory" in seen and "udp" not in seen for seen in large["transport"])
    for trial in journal(out):
        writers = [each for worker in trial["counters"].values() for each in worker["writers"]]
        assert [each["origin"] for each in writers] == [origin]
        assert trial["daemons"][0]["cpu_ns"] is not None
    assert f'"{TURNED_ON[series]}"' in (out / "manifest.json").read_text()


@SERIES
def test_processes_leave_no_socket_and_no_lock(build: Path, series: str) -> None:
    """iceoryx makes one of each for a process, named after its runtime; the suite's processes are killed."""
    need_shared_memory(series)
    before = set(Path("/tmp").iterdir())
    code, *_ = conformance(build, series, "--option", "shared_memory=true", "--only", "discovery")
    new = set(Path("/tmp").iterdir()) - before
    assert code == 0
    assert not [path for path in new if re.search("iox_psmx|iceoryx_rt|roudi", path.name)]


@SERIES
def test_within_a_process_it_goes_through_shared_memory_too(build: Path, tmp_path: Path, series: str) -> None:
    factors = {"payload": ["64KB"], "type": ["fixed"], "placement": ["single-process"]}
    out = campaign(build, tmp_path, SHARED_MEMORY, series, **factors)
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") != "end-to-end")
    assert (rows["n"] == rows["sent"]).all()
    assert all("shared-memory" in seen for seen in rows["transport"])


def test_what_shared_memory_cannot_keep_goes_over_udp_and_says_so(build: Path, tmp_path: Path) -> None:
    out = campaign(build, tmp_path, SHARED_MEMORY, payload=["64KB"], history=["keep_all"], type=["fixed"])
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") != "end-to-end")
    assert rows["transport"].to_list() == ["udp"]
    assert (rows["n"] == rows["sent"]).all()
    (trial,) = journal(out)
    writers = [each for worker in trial["counters"].values() for each in worker["writers"]]
    assert [each["origin"] for each in writers] == ["copied"]


def test_the_11_keeps_all_in_shared_memory(build: Path, tmp_path: Path) -> None:
    factors = {"payload": ["64KB"], "history": ["keep_all"], "type": ["fixed"]}
    out = campaign(build, tmp_path, SHARED_MEMORY, "cyclonedds11", **factors)
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") != "end-to-end")
    assert rows["transport"].to_list() == ["shared-memory"]
    assert (rows["n"] == rows["sent"]).all()


OVER_UDP = ["cyclonedds+fastdds", "fastdds+cyclonedds", "cyclonedds11+cyclonedds", "cyclonedds+cyclonedds11"]


@pytest.mark.by_turn
@pytest.mark.parametrize("pair", OVER_UDP)
def test_another_middleware_is_reached_over_udp(build: Path, tmp_path: Path, pair: str) -> None:
    """Each of the two has shared memory with itself, and a claim of it here would be false."""
    first, second = pair.split("+")
    need(first)
    need(second)
    series = first if first.startswith("cyclonedds") else second
    out = campaign(build, tmp_path, SHARED_MEMORY, series, adapter=[pair], payload=["64KB"], type=["fixed"])
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("edge") != "end-to-end")
    assert rows["transport"].to_list() == ["udp"]
    assert (rows["n"] > 0).all()


@SERIES
def test_two_domains_with_shared_memory_do_not_hear_each_other(build: Path, series: str) -> None:
    need_shared_memory(series)
    nodes = [
        node("source", 0, [], [writer("t", 0)], [timer(5 * MILLISECOND_NS)], "waitset"),
        node("same", 1, [reader("t", [0])], [], [any_message()], "waitset"),
        node("other", 2, [reader("t", [], context=1)], [], [any_message()], "waitset"),
    ]
    both = plan(adapter_library(series, build), DIRECTORY, nodes)
    both["adapters"][0]["options"] = SHARED_MEMORY
    both["contexts"].append({"adapter": 0, "domain": 1, "name": "other"})
    (said,) = run_private(build, [both])
    assert said.code == 0, said.events[-1:]
    assert len(said.lane(KIND_RECEIVED, 1, 0)) == len(said.lane(KIND_SENT, 0, 0)) > 20
    assert len(said.lane(KIND_RECEIVED, 2, 0)) == 0
    prefixes = [
        each["effective"]["settings"].get("SharedMemory/Prefix", {}).get("value")
        for each in said.event("ready")["settings"]
        if each["object"] == "context"
    ]
    assert prefixes == [None, "DDS_CYCLONE_1" if series == "cyclonedds" else None]


@SERIES
def test_durability_that_would_be_lost_is_refused(build: Path, series: str) -> None:
    need_shared_memory(series)
    qos = {"reliability": "reliable", "history": "keep_last", "durability": "transient_local"}
    (said,) = run_private(build, [one_way(build, SHARED_MEMORY, series, qos=qos)[0]])
    assert "a late joiner gets nothing" in said.event("failed")["message"]


@SERIES
def test_without_roudi_the_worker_says_what_to_start(build: Path, series: str) -> None:
    need("netns")
    need(series)
    send, _ = one_way(build, SHARED_MEMORY, series)
    with machine(build, 1) as private:
        private.workers[0].send(send)
        (said,) = private.finish()
    assert "iox-roudi" in said.event("failed")["message"]
