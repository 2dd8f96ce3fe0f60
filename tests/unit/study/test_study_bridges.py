# SPDX-License-Identifier: Apache-2.0
"""Bridges that are programs: their files, topics with two domains, their processes, what is excluded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from needs import need
from study_adapters import SPECIAL, write_adapters

from lagometer.agent.commands import Companion
from lagometer.agent.daemons import Ready, Wanted
from lagometer.errors import BadInput
from lagometer.run.companions.bridges import bridge_processes, wanted_bridge
from lagometer.run.worker.layout import worker_plans
from lagometer.study import Cell, Expansion, Study, expand, study_from_mapping
from lagometer.study import bridges as bridges_of
from lagometer.study.bridges import known_bridges, load_bridge

ACROSS = """
topics:
  out:  {domain: 5+10}
  back: {domain: 10+5}
nodes:
  ping:
    rules:
      - {trigger: timer, publishes: [out]}
      - {trigger: any, subscribes: [back]}
  pong: {trigger: any, subscribes: [out], publishes: [back]}
"""
TOY: dict[str, Any] = {
    "name": "toy",
    "title": "a toy",
    "program": "sh",
    "package": "toy-package",
    "processes": "per-domain",
    "port": 7000,
    "arguments": ["-c", "sleep {domain}", "{runtime}/{process}.conf"],
    "files": {"{process}.conf": "listen [{listen}] connect [{connect}] {first} {second} {topics} {stays}"},
    "environment": {"TOPICS": "{ros_topics}"},
    "ready": {"file": "{runtime}/{process}.conf"},
    "adapters": {
        "cyclonedds": {"types": ["bytes", "Image"], "options": {"transport": ["udp", None]}},
        "fastdds": {},
    },
    "otherwise": "not tried",
    "lacks": [
        {
            "setting": "durability",
            "values": ["transient_local"],
            "reason": "keeps nothing",
            "log": "no cache",
        },
        {"setting": "payload", "above": 1000, "reason": "too large"},
        {"setting": "rate", "above": 500, "reason": "too often"},
        {"setting": "instances", "reason": "no keys"},
    ],
}


@pytest.fixture(autouse=True)
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path)
    monkeypatch.setenv(bridges_of.VARIABLE, str(tmp_path / "bridges"))


def declare(folder: Path, **keys: Any) -> Path:
    """Writes the toy's file, with other keys."""
    path = folder / "bridges" / "toy.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**TOY, **keys}))
    return path


def expansion(
    folder: Path, text: str = ACROSS, options: Any = None, keys: Any = None, **matrix: Any
) -> tuple[Expansion, Study, Any]:
    path = folder / "across.yaml"
    path.write_text(text)
    adapters = write_adapters(folder)
    mapping = {
        "name": "x",
        "options": options or {},
        **(keys or {}),
        "matrix": {"adapter": "cyclonedds", "workload": str(path), "bridge": "toy", **matrix},
    }
    study = study_from_mapping(mapping, "test")
    return expand(study, adapters, cpus=(0, 1)), study, adapters


def cell_of(folder: Path, **more: Any) -> Cell:
    found, _, _ = expansion(folder, **more)
    assert found.cells, found.excluded
    return found.cells[0]


def reason(folder: Path, **more: Any) -> str:
    found, _, _ = expansion(folder, **more)
    assert not found.cells
    return found.excluded[0].reason


def test_publishers_are_in_one_domain_and_subscribers_in_the_other(tmp_path: Path) -> None:
    found, study, adapters = expansion(tmp_path)
    (cell,) = found.cells
    assert cell.id == "cyclonedds/across/bridge-toy"
    assert {topic: traffic.domains for topic, traffic in cell.across.items()} == {
        "out": (5, 10),
        "back": (10, 5),
    }
    ping, pong = worker_plans(study, cell, 0, adapters)
    assert [context.domain for context in ping.contexts] == [5]
    assert [context.domain for context in pong.contexts] == [10]
    assert ping.adapters[0].network["peers"] == 4  # the bridge's own two among them
    assert cell.bridges == {}  # no node of ours forwards
    assert cell.columns()["bridge"] == "toy"


def test_without_a_bridge_both_are_in_the_lower_domain(tmp_path: Path) -> None:
    found, study, adapters = expansion(tmp_path, bridge=["none", "toy"])
    plain, bridged = found.cells
    assert plain.id == "cyclonedds/across/bridge-none"
    assert plain.bridge is None and not plain.across and not bridge_processes(plain)
    for plan in worker_plans(study, plain, 0, adapters):
        assert [context.domain for context in plan.contexts] == [5]
    # In a study without the factor, too.
    assert {traffic.domains for traffic in plain.traffic.values()} == {(5,)}
    assert bridged.bridge is not None


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        ("5+5", "'5+5' crosses to the same domain; write '5'"),
        ("5+10+15", "'5+10+15' is not a domain, or two like 5+10"),
        ("5+233", "'233' is not between 0 and 232"),
    ],
)
def test_two_domains_are_two(tmp_path: Path, domain: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        expansion(tmp_path, ACROSS.replace("domain: 5+10", f"domain: {domain}"))
    assert said in str(error.value)


def test_an_unknown_bridge_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        expansion(tmp_path, bridge="zenoh-dd")
    assert "unknown bridge 'zenoh-dd'" in str(error.value)
    assert "did you mean 'zenoh-dds'?" in str(error.value)


def processes(cell: Cell, host: str = "here") -> tuple[Wanted, ...]:
    return wanted_bridge(cell, {}, host, "/run/x")


def test_each_domain_has_a_process_with_a_configuration_of_its_own(tmp_path: Path) -> None:
    cell = cell_of(tmp_path)
    low, high = processes(cell)
    assert (low.name, high.name) == bridge_processes(cell) == ("toy-5", "toy-10")
    assert low.companion.arguments[1:] == ("-c", "sleep 5", "/run/x/toy-5.conf")
    assert Path(low.companion.arguments[0]).name == "sh"
    assert low.companion.daemon
    topics = "^(.+/)?(rt/)?lagometer/(out|back)$"
    assert low.files == {"toy-5.conf": f'listen ["tcp/127.0.0.1:7000"] connect [] 5 10 {topics} {{stays}}'}
    assert high.files == {"toy-10.conf": f'listen [] connect ["tcp/127.0.0.1:7000"] 5 10 {topics} {{stays}}'}
    assert low.companion.environment == {"TOPICS": "/lagometer/(out|back)"}
    assert high.ready.file == "/run/x/toy-10.conf"


def test_one_process_may_be_in_both_domains_and_is_pinned_like_the_workers(tmp_path: Path) -> None:
    one: dict[str, Any] = {"processes": "one", "port": None, "arguments": ["{first}-{second}"], "files": {}}
    declare(tmp_path, **one, ready={"output": "x"})
    (process,) = processes(cell_of(tmp_path, cpus="0"))
    assert process.name == "toy"
    assert process.companion.arguments[:3] == ("taskset", "-c", "0")
    assert process.companion.arguments[-1] == "5-10"
    assert process.ready.output == "x"


def test_between_hosts_each_process_is_where_its_domain_is(tmp_path: Path) -> None:
    hosts = {
        "robot": {"launcher": "netns", "runs": "ping"},
        "base": {"launcher": "netns", "runs": "pong"},
    }
    found, study, _ = expansion(tmp_path, keys={"hosts": hosts}, hosts="base+robot", network="host")
    cell = next(iter(found.cells), None)
    assert cell is not None, found.excluded
    assert cell.bridge_hosts == ("robot", "base")
    (low,) = wanted_bridge(cell, study.hosts, "robot", "/run/x")
    (high,) = wanted_bridge(cell, study.hosts, "base", "/run/x")
    assert (low.name, high.name) == ("toy-5", "toy-10")
    assert f'connect ["tcp/{study.hosts["robot"].address}:7000"]' in high.files["toy-10.conf"]


def on_hosts(folder: Path, robot: dict[str, Any], base: dict[str, Any], **more: Any) -> tuple[Any, Study]:
    """What a study contains that has `ping` on the host robot and `pong` on base."""
    hosts = {"robot": {**robot, "runs": "ping"}, "base": {**base, "runs": "pong"}}
    return expansion(folder, keys={"hosts": hosts}, hosts="robot+base", network="host", **more)[:2]


ONE: dict[str, Any] = {"processes": "one", "port": None, "arguments": ["{address}"], "files": {}}
NETNS = {"launcher": "netns"}
SSH_HOST = {"launcher": "ssh", "address": "192.168.1.3"}


@pytest.mark.parametrize("base", [NETNS, SSH_HOST], ids=["netns", "ssh"])
def test_between_hosts_one_process_is_on_the_first(tmp_path: Path, base: dict[str, Any]) -> None:
    """It needs no more than that the other one is reached, which may be another machine."""
    declare(tmp_path, **ONE, ready={"output": "x"})
    robot = NETNS if base is NETNS else {"address": "192.168.1.2"}
    found, study = on_hosts(tmp_path, robot, base)
    cell = next(iter(found.cells), None)
    assert cell is not None, found.excluded
    assert cell.bridge_hosts == ("robot",)
    (process,) = wanted_bridge(cell, study.hosts, "robot", "/run/x")
    assert wanted_bridge(cell, study.hosts, "base", "/run/x") == ()
    assert process.companion.arguments[-1] == study.hosts["robot"].address != "127.0.0.1"


@pytest.mark.parametrize(
    ("robot", "base", "said"),
    [
        (SSH_HOST, {"address": "192.168.1.2"}, "on this machine alone, and would run on robot, another one"),
        (
            {},
            {"address": "192.168.1.2"},
            "bridge toy needs the address of each host: give robot its `address`",
        ),
    ],
)
def test_a_bridge_starts_on_this_machine_and_knows_addresses(
    tmp_path: Path, robot: dict[str, Any], base: dict[str, Any], said: str
) -> None:
    declare(tmp_path, **ONE, ready={"output": "x"})
    found, _ = on_hosts(tmp_path, robot, base)
    assert said in "; ".join(each.reason for each in found.excluded)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"text": ACROSS.replace("5+10", "5").replace("10+5", "5")}, "has nothing to carry: give topics two"),
        ({"text": ACROSS.replace("10+5", "10+7")}, "joins two domains, and the topics across need 3"),
        ({"security": "sign"}, "bridge toy has no certificate: set `security: none`"),
        ({"keys": {"layers": "on"}}, "layers can't be followed across bridge toy"),
        ({"adapter": "shm"}, "bridge toy carries no topics of shm: not tried"),
        ({"type": "PointCloud2"}, "bridge toy carries no PointCloud2 of cyclonedds, only bytes, Image"),
        (
            {"options": {"cyclonedds": {"transport": "shm"}}},
            "finds cyclonedds only with transport udp or none, and it is shm",
        ),
        ({"durability": "transient_local"}, "topic 'out': keeps nothing (it logs: no cache)"),
        ({"payload": "1001B"}, "does not carry topic 'out': too large"),
        ({"rate": "501Hz"}, "does not carry topic 'out': too often"),
    ],
)
def test_what_a_bridge_cannot_do_is_excluded_with_its_reason(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    assert said in reason(tmp_path, **more)


SIDES: dict[str, Any] = {
    "processes": "one",
    "port": None,
    "sides": [["cyclonedds"], ["fastdds", "shm"]],
    "adapters": {"cyclonedds": {}, "fastdds": {}, "shm": {}},
    "arguments": ["{first}-{second}"],
    "files": {},
    "ready": {"output": "x"},
    "lacks": [],
}
BETWEEN = ACROSS.replace("domain: 5+10", "adapter: cyclonedds+shm").replace(
    "domain: 10+5", "adapter: shm+cyclonedds"
)


def test_a_bridge_may_join_two_middlewares_that_do_not_understand_each_other(tmp_path: Path) -> None:
    declare(tmp_path, **SIDES)
    cell = cell_of(tmp_path, text=BETWEEN)
    assert set(cell.across) == {"out", "back"}
    assert [cell.sides_of(traffic) for traffic in cell.traffic.values()] == [(0, 1), (1, 0)]
    assert cell.bridges == {}, "pong answers on the side that it reads"
    (process,) = processes(cell)
    assert process.companion.arguments[-1] == "0-0"
    assert "shm does not understand cyclonedds" in reason(tmp_path, text=BETWEEN, bridge="none")


def test_it_reaches_the_daemons_of_the_adapters_as_the_workers_do(tmp_path: Path) -> None:
    declare(tmp_path, **SIDES, environment={"MASTER": "own"})
    around = {"MASTER": "http://master", "LOG": "/run/x/log"}
    daemon = Wanted("master", Companion(("true",), {}, daemon=True), Ready(output="x"), for_workers=around)
    (process,) = wanted_bridge(cell_of(tmp_path, text=BETWEEN), {}, "here", "/run/x", [daemon])
    assert process.companion.environment == {"MASTER": "own", "LOG": "/run/x/log"}


def test_each_side_has_its_domain(tmp_path: Path) -> None:
    """Also if the other one has none."""
    declare(tmp_path, **SIDES)
    text = BETWEEN.replace("+shm", "+shm, domain: 9+0").replace("+cyclonedds", "+cyclonedds, domain: 0+9")
    (process,) = processes(cell_of(tmp_path, text=text))
    assert process.companion.arguments[-1] == "9-0"
    two = text.replace("0+9", "0+8")
    assert "bridge toy is in one domain on each side, not in 8 and 9" in reason(tmp_path, text=two)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ACROSS, "joins cyclonedds and fastdds or shm, and topic 'out' goes from cyclonedds to cyclonedds"),
        (
            ACROSS.replace("5+10", "5").replace("10+5", "5"),
            "has nothing to carry: give topics both, such as `out: {adapter: cyclonedds+fastdds}`",
        ),
    ],
)
def test_what_does_not_go_between_the_sides_is_excluded(tmp_path: Path, text: str, said: str) -> None:
    declare(tmp_path, **SIDES)
    assert said in reason(tmp_path, text=text)


def test_a_program_of_a_sourced_installation_is_found_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sourced" / "lib" / "toy" / "the-toy"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    declare(tmp_path, program="the-toy", below={"TOY_PREFIX_PATH": "lib/toy"})
    assert "needs the-toy, which is not installed" in reason(tmp_path)
    monkeypatch.setenv("TOY_PREFIX_PATH", f"/none:{tmp_path / 'sourced'}")
    assert processes(cell_of(tmp_path))[0].companion.arguments[0] == str(path)


def secured(monkeypatch: pytest.MonkeyPatch, out: str, inside: str) -> str:
    """A workload with a topic across domains and one in the second domain, with these kinds of security."""
    need("openssl")
    abilities = {**SPECIAL["cyclonedds"]["abilities"], "security": ["sign", "encrypt"]}
    monkeypatch.setitem(SPECIAL, "cyclonedds", {**SPECIAL["cyclonedds"], "abilities": abilities})
    return f"""
topics:
  out: {{domain: 5+10, security: {out}}}
  inside: {inside}
nodes:
  source: {{trigger: timer, publishes: [out]}}
  pong:   {{trigger: any, subscribes: [out], publishes: [inside]}}
  sink:   {{trigger: any, subscribes: [inside]}}
"""


def test_a_bridge_carries_no_topic_that_is_secured_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = secured(monkeypatch, "sign", "{domain: 7}")
    said = reason(tmp_path, text=text)
    assert "bridge toy has no certificate: set `security: none` for out" in said


def test_a_topic_across_domains_is_in_the_governance_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = secured(monkeypatch, "none", "{domain: 10, security: sign}")
    said = "cyclonedds has topics with security none and sign in domain 10: a domain has one governance"
    assert said in reason(tmp_path, text=text)


def test_a_bridge_leaves_secured_topics_in_other_domains_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = secured(monkeypatch, "none", "{domain: 7}")
    cell = cell_of(tmp_path, text=text, security="sign")
    assert {topic: traffic.security for topic, traffic in cell.traffic.items()} == {
        "out": "none",
        "inside": "sign",
    }


@pytest.mark.parametrize(("adapter", "carries"), [("cyclonedds", False), ("fastdds", True)])
def test_what_is_lacking_may_be_of_some_adapters_alone(tmp_path: Path, adapter: str, carries: bool) -> None:
    lack = {"setting": "payload", "above": 1000, "adapters": ["cyclonedds"], "reason": "too large"}
    declare(tmp_path, lacks=[lack])
    found, _, _ = expansion(tmp_path, adapter=adapter, payload="1001B")
    assert bool(found.cells) == carries


def test_what_it_can_do_is_not_excluded(tmp_path: Path) -> None:
    more: dict[str, Any] = {"payload": "1000B", "rate": "500Hz", "type": "Image", "adapter": "cyclonedds"}
    assert cell_of(tmp_path, options={"cyclonedds": {"transport": "udp"}}, **more).bridge is not None


def test_a_missing_program_says_what_to_install(tmp_path: Path) -> None:
    declare(tmp_path, program="no-such-bridge")
    said = "bridge toy needs no-such-bridge, which is not installed (package: toy-package)"
    assert said in reason(tmp_path)


def test_a_build_that_failed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, program="no-such-bridge")
    (tmp_path / "missing.txt").write_text("no-such-bridge: cargo build failed\n")
    monkeypatch.setattr(bridges_of, "PROGRAM_FOLDERS", (tmp_path,))
    assert "(package: toy-package): no-such-bridge: cargo build failed" in reason(tmp_path)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"port": None}, "`port` goes with processes per-domain"),
        ({"sides": [["cyclonedds"], ["fastdds"]]}, "`sides` goes with processes one"),
        ({**SIDES, "sides": [["cyclonedds"], ["fastdds"]]}, "`sides` has each of `adapters` once"),
        ({**SIDES, "sides": [[], ["cyclonedds", "fastdds", "shm"]]}, "one at least on either side"),
        ({"processes": "one"}, "`port` goes with processes per-domain"),
        ({"progam": "x"}, "unknown key 'progam' (did you mean 'program'?)"),
        ({"lacks": [{"setting": "payload", "reason": "x"}]}, "`above` goes with payload and rate"),
        ({"lacks": [{"setting": "history", "reason": "x"}]}, "`values` goes with reliability, history"),
        ({"name": "other"}, "the file toy.json declares 'other' (rename the file other.json)"),
    ],
)
def test_a_file_with_a_fault_names_it(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    path = declare(tmp_path, **keys)
    with pytest.raises(BadInput) as error:
        load_bridge(path)
    assert said in " ".join(str(error.value).split())


def test_a_folder_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bridges_of.VARIABLE, "/no/such/folder")
    with pytest.raises(BadInput, match="/no/such/folder"):
        known_bridges()


def test_those_that_ship_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bridges_of.VARIABLE)
    found = {name: load_bridge(path) for name, path in known_bridges().items()}
    assert list(found) == ["ddsrouter", "ros1-bridge", "zenoh-dds", "zenoh-ros2dds"]
    # Its names have no prefix, and its type is not of ROS 2.
    assert "bytes" not in found["zenoh-ros2dds"].adapters["ros2_rust"].types
    assert "cyclonedds" not in found["zenoh-ros2dds"].adapters
