# SPDX-License-Identifier: Apache-2.0
"""What Fast DDS is told to do by options, it does: the transport is seen from outside, loans and threads from
inside, settings by the vendor's own parser; what it can't do is refused."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import run_cells
from needs import ROOT, adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, pipeline, plan, reader, timer, writer
from worker_support import TIMEOUT_S, Said, daemons_beside, machine, run_private

pytestmark = pytest.mark.by_turn

HERE = Path(__file__).parent
DIRECTORY = "/dev/shm/lagometer"
PAYLOAD_BYTES = 65_536
OVER_LOOPBACK = ("udp", "tcp")
ANNOUNCEMENTS = {"initial_announcements", "initial_announcement_period_ns"}  # differ in every profile


@pytest.fixture(autouse=True)
def _fastdds() -> None:
    need("netns")
    need("fastdds")


def carried_out(
    build: Path, options: Mapping, *, profile: str = "default", domain: int = 0, **more: Any
) -> Said:
    """One worker with a source, a relay and a sink of its own, and these options."""
    phases = {"measure_ns": more.pop("measure_ns", MILLISECOND_NS)}
    nodes = pipeline("waitset", **{"period_ns": 5 * MILLISECOND_NS, **more})
    given = plan(adapter_library("fastdds", build), DIRECTORY, nodes, **phases)
    given["adapters"][0] |= {"options": options, "profile": profile}
    given["contexts"][0]["domain"] = domain
    return run_private(build, [given])[0]


def effective(said: Said, thing: str) -> Mapping:
    """What the worker said of the first object whose name begins so."""
    settings = said.event("ready")["settings"]
    found: Mapping = next(each["effective"] for each in settings if each["object"].startswith(thing))
    return found


def refusal(said: Said) -> str:
    failed = said.event("failed")
    assert failed["reason"] == "adapter-failed"
    return str(failed["message"])


# Which way messages go, as the kernel sees it.


def transports_seen(build: Path, folder: Path, options: Mapping, matrix: dict[str, Any]) -> set[str]:
    """Runs cells of 64 KB with these options; what carried the messages, checked against the loopback."""
    matrix = {"adapter": ["fastdds"], "payload": ["64KB"], "rate": ["50Hz"], **matrix}
    rows = run_cells(build, folder, matrix, options={"fastdds": options})
    edges = rows.filter(pl.col("edge") != "end-to-end")
    for cell in edges.partition_by("cell"):
        payload_bytes = PAYLOAD_BYTES * cell["n"].sum()
        carried_bytes = cell["kernel_loopback_bytes"][0]
        assert payload_bytes > 0
        if cell["transport"][0] in OVER_LOOPBACK:
            assert carried_bytes >= payload_bytes
        else:
            assert carried_bytes < payload_bytes / 2
    return set(edges["transport"].to_list())


@pytest.mark.parametrize("publish_mode", ["sync", "async"])
@pytest.mark.parametrize(
    ("transport", "kind", "seen"),
    [
        ("udp", "bytes", "udp"),
        ("udp", "fixed", "udp"),
        ("shm", "bytes", "shared-memory"),
        ("shm", "fixed", "shared-memory"),
        ("tcp", "bytes", "tcp"),
        ("tcp", "fixed", "tcp"),
        ("data_sharing", "fixed", "shared-memory"),
    ],
)
def test_the_transport_asked_for_carries_the_messages(
    build: Path, tmp_path: Path, transport: str, kind: str, seen: str, publish_mode: str
) -> None:
    options = {"transport": transport, "publish_mode": publish_mode}
    matrix = {
        "workload": ["pipeline-3"],
        "type": [kind],
        "reliability": ["best_effort", "reliable"],
        "placement": ["process-per-node"],
    }
    assert transports_seen(build, tmp_path, options, matrix) == {seen}


@pytest.mark.parametrize(
    ("options", "kind", "seen"),
    [
        ({"transport": "udp"}, "bytes", "process"),
        ({"transport": "udp", "intra_process": "user_data_only"}, "bytes", "process"),
        ({"transport": "udp", "intra_process": "off"}, "bytes", "udp"),
        ({"transport": "shm", "intra_process": "off"}, "bytes", "shared-memory"),
        ({"transport": "data_sharing", "intra_process": "off"}, "fixed", "shared-memory"),
        ({"transport": "tcp"}, "fixed", "process"),
    ],
)
def test_within_one_process(build: Path, tmp_path: Path, options: Mapping, kind: str, seen: str) -> None:
    matrix = {
        "workload": ["pipeline-3"],
        "type": [kind],
        "reliability": ["reliable"],
        "placement": ["single-process"],
    }
    assert transports_seen(build, tmp_path, options, matrix) == {seen}


@pytest.mark.parametrize(("reliability", "seen"), [("reliable", "shared-memory"), ("best_effort", "udp")])
def test_the_standard_transports_within_one_process(
    build: Path, tmp_path: Path, reliability: str, seen: str
) -> None:
    matrix = {"workload": ["pipeline-3"], "reliability": [reliability], "placement": ["single-process"]}
    assert transports_seen(build, tmp_path, {"intra_process": "off"}, matrix) == {seen}


@pytest.mark.parametrize(
    ("transport", "kind", "seen"),
    [
        ("default", "bytes", "shared-memory"),
        ("udp", "bytes", "udp"),
        ("data_sharing", "fixed", "shared-memory"),
    ],
)
def test_clients_of_a_discovery_server_talk_directly(
    build: Path, tmp_path: Path, transport: str, kind: str, seen: str
) -> None:
    need("fast-discovery-server")
    matrix = {
        "workload": ["pipeline-3"],
        "type": [kind],
        "reliability": ["reliable"],
        "placement": ["process-per-node"],
    }
    options = {"transport": transport, "discovery": "server"}
    assert transports_seen(build, tmp_path, options, matrix) == {seen}


def source_and_sink(
    build: Path, options: Mapping, *, discovery_timeout_ns: int = 20_000 * MILLISECOND_NS, **more: Any
) -> list[Said]:
    """Two workers that start together once both are matched; ends, too, if the second finds nobody."""
    library = adapter_library("fastdds", build)
    source = node("source", 0, [], [writer("t", 0)], [timer(5 * MILLISECOND_NS)], "waitset")
    sink = node("sink", 1, [reader("t", [0])], [], [any_message()], "waitset")
    send = plan(library, DIRECTORY, [source])
    listen = plan(library, DIRECTORY, [sink], discovery_timeout_ns=discovery_timeout_ns)
    listen["worker"]["index"] = 1
    with machine(build, 2, **more) as private:
        for worker, each in zip(private.workers, (send, listen), strict=True):
            each["standalone"] = False
            each["adapters"][0]["options"] = options
            worker.send(each)
        waiting = private.workers[1]
        with waiting.heard:
            waiting.heard.wait_for(lambda: {"matched", "failed"} & set(waiting.said.names), TIMEOUT_S)
        found = "matched" in waiting.said.names
        at_ns = time.monotonic_ns() + 10 * MILLISECOND_NS
        for worker in private.workers if found else private.workers[:1]:
            worker.send({"command": "go", "at_ns": at_ns} if found else {"command": "stop"})
        return private.finish()


def test_with_the_server_clients_find_each_other(build: Path) -> None:
    need("fast-discovery-server")
    options = {"discovery": "server"}
    beside = daemons_beside(adapter_library("fastdds", build), options=options)
    _, said = source_and_sink(build, options, beside=beside)
    assert said.event("done")["readers"][0]["received"] > 0


def test_without_the_server_nobody_is_found(build: Path) -> None:
    _, said = source_and_sink(build, {"discovery": "server"}, discovery_timeout_ns=2_000 * MILLISECOND_NS)
    assert said.event("failed")["reason"] == "endpoints-missing"


@pytest.mark.parametrize("nodelay", [False, True])
def test_tcp_nodelay_is_set_as_told(build: Path, tmp_path: Path, nodelay: bool) -> None:
    need("strace")
    script = 'exec strace -f -e trace=setsockopt -o "$0.$$" "$@"'
    wrap = ("sh", "-c", script, str(tmp_path / "calls"))
    said = source_and_sink(build, {"transport": "tcp", "tcp_nodelay": nodelay}, wrap=wrap)
    assert [each.code for each in said] == [0, 0], [each.events[-1] for each in said]
    calls = [file.read_text() for file in tmp_path.glob("calls.*")]
    assert len(calls) == 2
    for text in calls:
        assert f"TCP_NODELAY, [{int(nodelay)}]" in text
        assert f"TCP_NODELAY, [{int(not nodelay)}]" not in text


# Whose memory a message lies in, and which thread tells of it.


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that looks at one message from inside, built against the public header alone."""
    need("c++")
    program = tmp_path_factory.mktemp("delivery") / "delivery"
    include = ROOT / "engine" / "include"
    command = ["c++", "-std=c++20", f"-I{include}", str(HERE / "delivery.cpp"), "-o", str(program), "-ldl"]
    subprocess.run([*command, "-pthread"], check=True)
    return program


def delivered(build: Path, delivery: Path, options: Mapping, kind: str, processes: str) -> Mapping:
    library = adapter_library("fastdds", build)
    wrap = (str(delivery), str(library), json.dumps(options), kind, processes)
    with machine(build, 1, wrap=wrap) as private:
        (said,) = private.finish()
    assert said.code == 0, said.errors[-2000:]
    found = said.event("delivery")
    assert found["intact"]
    return found


@pytest.mark.parametrize("options", [{}, {"transport": "data_sharing"}], ids=json.dumps)
@pytest.mark.parametrize("publish_mode", ["sync", "async"])
def test_a_loan_is_read_where_it_was_written(
    build: Path, delivery: Path, options: Mapping, publish_mode: str
) -> None:
    """Two processes: the same bytes of the same file."""
    found = delivered(build, delivery, {**options, "publish_mode": publish_mode}, "fixed", "two")
    assert found["origin"] == "loaned"
    assert found["loaned"]
    assert found["same_shared_memory"]
    assert found["file"].startswith("/dev/shm/fast_datasharing_")


@pytest.mark.parametrize("transport", ["udp", "shm", "tcp"])
def test_what_a_transport_copies_is_not_called_loaned(build: Path, delivery: Path, transport: str) -> None:
    found = delivered(build, delivery, {"transport": transport}, "fixed", "two")
    assert found["origin"] == "native"
    assert not found["same_shared_memory"]


def test_bytes_are_copied_into_the_middleware(build: Path, delivery: Path) -> None:
    found = delivered(build, delivery, {}, "bytes", "two")
    assert found["origin"] == "copied"
    assert not found["loaned"]
    assert not found["same_shared_memory"]


@pytest.mark.parametrize(
    ("options", "origin", "publishers_thread"),
    [
        ({"transport": "udp"}, "loaned", True),
        ({"transport": "tcp"}, "loaned", True),
        ({"transport": "udp", "publish_mode": "async"}, "loaned", False),
        ({"transport": "udp", "intra_process": "user_data_only"}, "loaned", True),
        ({"transport": "udp", "intra_process": "off"}, "native", False),
        ({"transport": "shm", "intra_process": "off"}, "native", False),
        ({}, "native", True),
        ({"transport": "data_sharing"}, "native", True),
        ({"transport": "data_sharing", "intra_process": "off"}, "loaned", False),
    ],
    ids=json.dumps,
)
def test_delivery_within_one_process(
    build: Path, delivery: Path, options: Mapping, origin: str, publishers_thread: bool
) -> None:
    """By function call the listener runs on the publisher's thread, except with asynchronous publishing; and
    the payload is handed over, unless it is one for other processes."""
    found = delivered(build, delivery, options, "fixed", "one")
    assert found["origin"] == origin, found
    assert (found["same_address"] or found["same_shared_memory"]) == (origin == "loaned"), found
    assert found["publishers_thread"] == publishers_thread, found


# Deadlines.


@pytest.mark.parametrize(("deadline_ms", "missed"), [(5, True), (600_000, False)])
@pytest.mark.parametrize("intra_process", ["full", "off"])
def test_missed_deadlines_are_counted(
    build: Path, deadline_ms: int, missed: bool, intra_process: str
) -> None:
    options = {"deadline_ms": deadline_ms, "intra_process": intra_process}
    said = carried_out(build, options, period_ns=50 * MILLISECOND_NS, measure_ns=200 * MILLISECOND_NS)
    done = said.event("done")
    for side in ("writers", "readers"):
        counts = [each["counters"]["deadline_missed"] for each in done[side]]
        assert len(counts) == 2
        assert all((count > 0) == missed for count in counts), counts
    for thing in ("writer", "reader"):
        shown = effective(said, thing)["settings"]["deadline_ns"]
        assert shown == {"value": deadline_ms * MILLISECOND_NS, "default": "infinite"}


# What is refused.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"transport": "carrier_pigeon"}, "must be default, udp, shm, tcp or data_sharing"),
        ({"transport": "data_sharing"}, "data sharing needs a type of fixed size"),
        ({"tcp_nodelay": True}, "tcp_nodelay has no meaning without TCP"),
        ({"transport": "tcp", "tcp_nodelay": 1}, "must be true or false"),
        ({"transport": "tcp", "shm_segment_bytes": 1_048_576}, "no meaning with UDP or TCP alone"),
        ({"transport": "tcp", "max_message_size": 65_501}, "at most 65500 with UDP and TCP"),
        ({"transport": "tcp", "socket_buffer_bytes": 65_499}, "must be at least max_message_size"),
        ({"transport": "shm", "socket_buffer_bytes": 1_048_576}, "no meaning with transport shm"),
        ({"discovery": "server", "transport": "shm"}, "needs a transport with UDP"),
        ({"discovery": "server", "transport": "tcp"}, "needs a transport with UDP"),
        ({"discovery": "oracle"}, "must be simple or server"),
        ({"publish_mode": "later"}, "must be sync or async"),
        ({"intra_process": "some"}, "must be full, user_data_only or off"),
        ({"deadline_ms": 0}, "must be a whole number from 1"),
    ],
    ids=json.dumps,
)
def test_what_can_not_be_is_refused(build: Path, options: Mapping, words: str) -> None:
    if options.get("discovery") == "server":
        need("fast-discovery-server")
    assert words in refusal(carried_out(build, options))


def test_a_discovery_server_does_not_keep_domains_apart(build: Path) -> None:
    need("fast-discovery-server")
    said = carried_out(build, {"discovery": "server"}, domain=5)
    assert "works in domain 0 only, not in 5" in refusal(said)


def test_one_process_has_one_way_of_delivering_within_it(build: Path) -> None:
    given = plan(adapter_library("fastdds", build), DIRECTORY, pipeline("waitset"))
    given["adapters"].append({**given["adapters"][0], "options": {"intra_process": "off"}})
    given["contexts"].append({"adapter": 1, "domain": 1, "name": "other"})
    (said,) = run_private(build, [given])
    assert "a participant of this one has it at FULL" in refusal(said)


def test_a_discovery_server_from_the_environment_is_refused(build: Path) -> None:
    given = plan(adapter_library("fastdds", build), DIRECTORY, pipeline("waitset"))
    for name in ("ROS_DISCOVERY_SERVER", "FASTDDS_ENVIRONMENT_FILE"):
        (said,) = run_private(build, [given], environment={name: "127.0.0.1:11811"})
        assert name in refusal(said)


# Effective settings.


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that reads XML profiles as an application of Fast DDS does."""
    need("c++")
    program = tmp_path_factory.mktemp("profiles") / "profiles"
    source = HERE / "fastdds_profiles.cpp"
    subprocess.run(
        ["c++", "-std=c++17", str(source), "-o", str(program), "-lfastrtps", "-lfastcdr"], check=True
    )
    return program


def pasted(profiles: Path, folder: Path, said: Said) -> Mapping:
    """What Fast DDS makes of the text that is there to be pasted, of the context, one writer, one reader."""
    files = []
    for thing in ("context", "writer", "reader"):
        for part in effective(said, thing)["paste"]:
            files.append(folder / part["file"])
            files[-1].write_text(part["text"])
    result = subprocess.run([str(profiles), *map(str, files)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Error" not in result.stdout + result.stderr, result.stdout + result.stderr
    found: Mapping = json.loads(result.stdout)
    return found


def test_the_profiles_are_what_they_were(build: Path) -> None:
    default = carried_out(build, {})
    assert set(effective(default, "context")["settings"]) == ANNOUNCEMENTS
    assert set(effective(default, "writer")["settings"]) == {"history", "blocking_ns_max"}
    matched = effective(carried_out(build, {}, profile="matched"), "context")["settings"]
    buffers = {"udp_send_buffer_bytes", "udp_receive_buffer_bytes"}
    in_force = {"SO_RCVBUF", "SO_SNDBUF"}  # as the kernel gave them
    assert set(matched) == ANNOUNCEMENTS | {"transports"} | buffers | in_force
    assert matched["transports"]["value"] == "UDPv4"


def test_tcp_is_shown_ready_to_paste(build: Path, profiles: Path, tmp_path: Path) -> None:
    options = {"transport": "tcp", "tcp_nodelay": True, "publish_mode": "async", "deadline_ms": 2_500}
    said = carried_out(build, options, profile="matched")
    settings = effective(said, "context")["settings"]
    assert settings["transports"] == {"value": "TCPv4", "default": "UDPv4+SHM"}
    assert settings["tcp_nodelay"] == {"value": True, "default": False}
    found = pasted(profiles, tmp_path, said)
    assert found["participant"]["tcp"] == {
        "port": settings["tcp_listening_port"]["value"],
        "nodelay": True,
        "interface": "127.0.0.1",
        "send_buffer": settings["tcp_send_buffer_bytes"]["value"],
    }
    assert found["participant"]["number"] == settings["participant_id"]["value"]
    assert found["participant"]["later_announcements_s"] == settings["announcement_period_s"]["value"]
    own = f"127.0.0.1:{found['participant']['tcp']['port']}/7410"
    assert found["participant"]["listens"] == found["participant"]["listens_for_discovery"] == [own]
    assert not found["participant"]["builtin_transports"]
    assert not found["synchronous"]
    assert found["writer"]["deadline_ns"] == found["reader"]["deadline_ns"] == 2_500 * MILLISECOND_NS


def test_the_second_over_tcp_names_the_first_as_its_peer(build: Path, profiles: Path, tmp_path: Path) -> None:
    given = plan(adapter_library("fastdds", build), DIRECTORY, pipeline("waitset"))
    given["adapters"][0]["options"] = {"transport": "tcp"}
    second = json.loads(json.dumps(given))
    second["worker"]["index"] = 1
    with machine(build, 2) as private:
        first, other = private.workers
        first.send(given)
        first.wait_for("ready")
        other.send(second)
        other.wait_for("ready")
        said = private.finish()
    assert "initial_peers" not in effective(said[0], "context")["settings"]
    assert effective(said[1], "context")["settings"]["initial_peers"]["value"] == "127.0.0.1:5100"
    assert pasted(profiles, tmp_path, said[1])["participant"]["peers"] == ["127.0.0.1:5100/7410"]


def test_a_discovery_server_is_shown_ready_to_paste(build: Path, profiles: Path, tmp_path: Path) -> None:
    need("fast-discovery-server")
    said = carried_out(build, {"discovery": "server"})
    settings = effective(said, "context")["settings"]
    assert settings["discovery_protocol"] == {"value": "CLIENT", "default": "SIMPLE"}
    assert settings["discovery_server"]["value"] == "127.0.0.1:11811"
    found = pasted(profiles, tmp_path, said)["participant"]
    assert found["client"]
    assert found["server"].startswith("44.53.00.5f.45.50.52.4f.53.49.4d.41 UDPv4:[127.0.0.1]:11811"), found


@pytest.mark.parametrize(("intra_process", "number"), [("off", 0), ("user_data_only", 1), ("full", 2)])
def test_delivery_within_the_process_is_shown_ready_to_paste(
    build: Path, profiles: Path, tmp_path: Path, intra_process: str, number: int
) -> None:
    options = {"intra_process": intra_process, "transport": "data_sharing"}
    said = carried_out(build, options, type="fixed")
    shown = effective(said, "context")["settings"].get("intraprocess_delivery")
    assert shown == (None if intra_process == "full" else {"value": intra_process.upper(), "default": "FULL"})
    found = pasted(profiles, tmp_path, said)
    assert found["intra_process"] == number
    data_sharing_on = 2
    assert found["writer"]["data_sharing"] == found["reader"]["data_sharing"] == data_sharing_on
