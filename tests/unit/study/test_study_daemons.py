# SPDX-License-Identifier: Apache-2.0
"""Daemons in sidecars: which a study's options ask for, their texts, and what is said where one lacks."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from study_adapters import ABILITIES, write_adapters

from lagometer.agent.daemons import STALE_S, started_with
from lagometer.errors import BadInput
from lagometer.run.companions.daemons import filled_daemons, wanted_daemons
from lagometer.run.worker.layout import worker_plans
from lagometer.study import Adapter, discover_adapters, expand, study_from_mapping
from lagometer.study.adapters import load_adapter
from lagometer.study.daemons import daemons_in_use, filled_in, missing_daemons, service_address
from lagometer.study.sidecar import Daemon, Ready

BROKER: dict[str, Any] = {
    "name": "broker",
    "command": ["sh", "{runtime}/conf", "--loud={option:loud}"],
    "package": "broker-package",
    "files": {"conf": "port {option:port}\nbraces {stay}\n{profile}"},
    "ready": {"tcp_port": 1883},
    "environment": {"BROKER_CONF": "{runtime}/conf"},
}
OPTIONS: dict[str, Any] = {
    "port": {"type": "integer", "default": 1883, "description": "where"},
    "loud": {"type": "boolean", "default": True, "description": "whether"},
    "with_broker": {"type": "boolean", "default": None, "description": "whether"},
}


def adapter(folder: Path, *daemons: dict[str, Any], name: str = "brokered", **keys: Any) -> Adapter:
    """An adapter without a library that needs these daemons."""
    directory = folder / name
    directory.mkdir(parents=True)
    sidecar = {
        "name": name,
        "title": name,
        "abi_version": 1,
        "library": f"liblagometer_{name}.so",
        "scope": "host",
        "abilities": ABILITIES,
        "options": OPTIONS,
        "daemons": list(daemons),
        **keys,
    }
    (directory / "adapter.json").write_text(json.dumps(sidecar))
    (directory / f"liblagometer_{name}.so").touch()
    return load_adapter(directory)


def test_a_program_in_the_adapters_folder_comes_first(tmp_path: Path) -> None:
    brokered = adapter(tmp_path, {**BROKER, "command": ["lagometer-broker"]})
    (missing,) = missing_daemons(brokered, {}, "default")
    assert "lagometer-broker, which is not installed" in missing
    program = brokered.directory / "lagometer-broker"
    program.touch(mode=0o755)
    assert not list(missing_daemons(brokered, {}, "default"))
    (daemon,) = filled_daemons(brokered, {}, "default", "/run/x")
    assert daemon.companion.arguments == (str(program),)


def test_a_program_of_an_installation_is_there_when_that_is_sourced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = {"LAGOMETER_TEST_PREFIXES": "lib/broker"}
    brokered = adapter(tmp_path, {**BROKER, "command": ["lagometer-broker"], "below": below})
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.delenv("LAGOMETER_TEST_PREFIXES", raising=False)
    (missing,) = missing_daemons(brokered, {}, "default")
    assert "is not in lib/broker of LAGOMETER_TEST_PREFIXES (package: broker-package)" in missing
    monkeypatch.setenv("LAGOMETER_TEST_PREFIXES", f"{first}{os.pathsep}{second}")
    assert list(missing_daemons(brokered, {}, "default")) == [missing]
    program = second / "lib" / "broker" / "lagometer-broker"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert not list(missing_daemons(brokered, {}, "default"))
    (daemon,) = filled_daemons(brokered, {}, "default", "/run/x")
    assert daemon.companion.arguments[0] == str(program)


def test_what_is_a_daemons_own_is_kept_from_workers(tmp_path: Path) -> None:
    own = {"BROKER_CONF": "{runtime}/own", "BROKER_PORT": "{option:port}"}
    (daemon,) = filled_daemons(adapter(tmp_path, {**BROKER, "own_environment": own}), {}, "default", "/run/x")
    assert daemon.companion.environment == {"BROKER_CONF": "/run/x/own", "BROKER_PORT": "1883"}
    assert daemon.for_workers == {"BROKER_CONF": "/run/x/conf"}


def test_a_daemon_that_serves_several_hosts_is_on_the_first_at_its_address(tmp_path: Path) -> None:
    words = {"files": {"conf": "listen {address}"}, "environment": {"BROKER": "{address}:1"}}
    broker, network = {**BROKER, **words, "serves_hosts": True}, {"scope": "network"}
    adapters = {"brokered": adapter(tmp_path, broker, **network)}
    hosts: dict[str, Any] = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": "sink"}}

    def found(adapters: dict[str, Adapter], hosts: dict[str, Any], cell_hosts: list[str]) -> Any:
        matrix = {"adapter": "brokered", "workload": "pipeline-2", "network": "host", "hosts": cell_hosts}
        given = study_from_mapping({"name": "test", "matrix": matrix, "hosts": hosts}, source="test")
        return given, expand(given, adapters, (0, 1))

    given, expansion = found(adapters, hosts, ["robot", "robot+base"])
    one, both = expansion.cells
    assert [service_address(cell, given.hosts) for cell in (one, both)] == ["127.0.0.1", "10.77.0.1"]
    (daemon,) = wanted_daemons(both, adapters, "/run/x", service_address(both, given.hosts))
    assert daemon.files == {"conf": "listen 10.77.0.1"}
    environments = [plan.adapters[0].environment for plan in worker_plans(given, both, 0, adapters)]
    assert [each["BROKER"] for each in environments] == ["10.77.0.1:1"] * 2
    nowhere = {name: {**host, "launcher": "local"} for name, host in hosts.items()}
    (excluded,) = found(adapters, nowhere, ["robot+base"])[1].excluded
    assert excluded.reason == "brokered: its broker is reached by an address: give each host its `address`"
    alone = {"brokered": adapter(tmp_path / "alone", {**broker, "serves_hosts": False}, **network)}
    (excluded,) = found(alone, hosts, ["robot+base"])[1].excluded
    assert excluded.reason == "brokered: its broker serves the workers of one host"


def test_texts_are_filled_in(tmp_path: Path) -> None:
    (daemon,) = filled_daemons(adapter(tmp_path, BROKER), {"brokered": {"port": 7}}, "matched", "/run/x")
    assert daemon.companion.arguments == (shutil.which("sh"), "/run/x/conf", "--loud=true")
    assert daemon.companion.environment == daemon.for_workers == {"BROKER_CONF": "/run/x/conf"}
    assert daemon.companion.daemon
    assert daemon.files == {"conf": "port 7\nbraces {stay}\nmatched"}
    assert filled_in("{option:none}", {"none": None}, "") == ""


@pytest.mark.parametrize(
    ("given", "profile", "wanted"),
    [
        ({}, "default", 0),
        ({}, "matched", 1),
        ({"with_broker": True}, "default", 1),
        ({"with_broker": False}, "matched", 0),
    ],
)
def test_options_and_profile_decide(
    tmp_path: Path, given: dict[str, bool], profile: str, wanted: int
) -> None:
    conditions = [{"with_broker": [True]}, {"with_broker": [None], "profile": ["matched"]}]
    one = adapter(tmp_path, {**BROKER, "only_if": conditions})
    assert len(daemons_in_use(one, {"brokered": given}, profile)) == wanted


def test_one_condition_needs_no_list() -> None:
    one = json.dumps({**BROKER, "only_if": {"loud": [True]}})
    assert Daemon.model_validate_json(one).only_if == ({"loud": (True,)},)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ready": {}}, "exactly one"),
        ({"ready": {"tcp_port": 1, "file": "/x"}}, "exactly one"),
        ({"ready": {"output": "("}}, "not a regular expression"),
        ({"ready": {"tcp_port": 0}}, "tcp_port"),
        ({"files": {"../x": ""}}, "not a name within"),
        ({"files": {"/etc/x": ""}}, "not a name within"),
        ({"command": []}, "command"),
        ({"leaves": ["/tmp/*"]}, "leaves"),
        ({"only_if": {"absent": [1]}}, "the option 'absent'"),
        ({"command": ["sh", "{option:absent}"]}, "the option 'absent'"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_description_that_cannot_be_meant_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=r"adapter\.json") as refused:
        adapter(tmp_path, {**BROKER, **change})
    assert said in str(refused.value)


def test_a_ready_test_has_a_limit() -> None:
    assert Ready(tcp_port=1).timeout_s > 0
    with pytest.raises(ValidationError):
        Ready(tcp_port=1, timeout_s=0)


def test_a_missing_program_excludes_the_cell_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter(tmp_path, {**BROKER, "command": ["no-such-broker"], "only_if": {"loud": [True]}})
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path))
    matrix = {"adapter": "brokered", "workload": "pingpong"}
    for loud, excluded in ((True, 1), (False, 0)):
        options = {"brokered": {"loud": loud}}
        study = study_from_mapping({"name": "s", "matrix": matrix, "options": options}, "test")
        expansion = expand(study, discover_adapters(study.options), (0, 1))
        assert len(expansion.excluded) == excluded
        for each in expansion.excluded:
            assert "brokered needs the daemon no-such-broker, which is not installed" in each.reason
            assert "package: broker-package" in each.reason


def test_workers_get_the_environment_and_both_ends_share_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter(tmp_path, BROKER, interoperates_with=["other"])
    adapter(tmp_path, BROKER, name="other", interoperates_with=["brokered"])
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path))
    matrix = {"adapter": "brokered+other", "workload": "pingpong", "cpus": "0"}
    study = study_from_mapping({"name": "s", "matrix": matrix}, "test")
    adapters = discover_adapters(study.options)
    (cell,) = expand(study, adapters, (0, 1)).cells
    for plan in worker_plans(study, cell, 0, adapters):
        assert {"BROKER_CONF": "/dev/shm/lagometer/conf"} in [each.environment for each in plan.adapters]
    (daemon,) = wanted_daemons(cell, adapters, "/dev/shm/lagometer")
    assert daemon.companion.arguments[:3] == ("taskset", "-c", "0")


@pytest.mark.parametrize(("port", "count"), [(1883, 1), (1884, 2)])
def test_a_program_that_each_of_both_has_in_its_folder_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int, count: int
) -> None:
    """And twice where the two are not to do the same."""
    daemon = {**BROKER, "command": ["own-broker", "--loud"]}
    adapter(tmp_path, daemon, interoperates_with=["other"])
    adapter(tmp_path, {**daemon, "ready": {"tcp_port": port}}, name="other", interoperates_with=["brokered"])
    for name in ("brokered", "other"):
        program = tmp_path / name / "own-broker"
        program.touch(0o755)
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path))
    matrix = {"adapter": "brokered+other", "workload": "pingpong"}
    study = study_from_mapping({"name": "s", "matrix": matrix}, "test")
    adapters = discover_adapters(study.options)
    (cell,) = expand(study, adapters, (0, 1)).cells
    daemons = wanted_daemons(cell, adapters, "/dev/shm/lagometer")
    assert len(daemons) == count
    assert daemons[0].companion.arguments == (str(tmp_path / "brokered" / "own-broker"), "--loud")


def test_who_stands_on_an_adapter_needs_its_daemons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter(tmp_path, {**BROKER, "command": ["no-such-broker"], "only_if": {"loud": [True]}})
    over = {"over": {"type": "string", "default": "brokered", "description": "on what"}}
    adapter(tmp_path, name="upper", stacks_on="over", options=over)
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path))
    for loud, count in ((True, 1), (False, 0)):
        options = {"brokered": {"loud": loud}}
        upper = discover_adapters(options)["upper"]
        assert len(list(missing_daemons(upper, options, "default"))) == count


def test_adapters_without_daemons_need_nothing(tmp_path: Path) -> None:
    for each in write_adapters(tmp_path).values():
        assert daemons_in_use(each, {}, "default") == ()


@pytest.mark.parametrize(
    ("factors", "messages", "message_bytes"),
    [
        ({}, 2 * 48 + 2 * 8, 64 + 256),  # two readers with queues of 16, two writers
        ({"payload": "1000B", "depth": 100}, 2 * 216 + 2 * 8, 1_024 + 256),
        ({"durability": "transient_local"}, 2 * 48 + 2 * 24, 64 + 256),
        ({"history": "keep_all"}, 2 * 528 + 2 * 8, 64 + 256),
        ({"workload": "pipeline-2", "depth": 1}, 64, 64 + 256),
        ({"payload": "16MB", "history": "keep_all"}, 64, (16 << 20) + 256),  # no more than 1 GiB holds
    ],
)
def test_a_daemon_learns_how_much_room_the_cell_needs(
    tmp_path: Path, factors: dict[str, Any], messages: int, message_bytes: int
) -> None:
    pools = {"pools": "{messages_in_flight} x {message_room_bytes}"}
    one = adapter(tmp_path, {**BROKER, "files": pools})
    matrix = {"adapter": "brokered", "workload": "pipeline-3", "payload": "64B", **factors}
    study = study_from_mapping({"name": "s", "matrix": matrix}, "test")
    (cell,) = expand(study, {"brokered": one}, (0, 1)).cells
    (daemon,) = wanted_daemons(cell, {"brokered": one}, "/run/x")
    assert daemon.files == {"pools": f"{messages} x {message_bytes}"}
    (unknown,) = filled_daemons(one, {}, "default", "/run/x")
    assert unknown.files == {"pools": "1024 x 65792"}


def test_what_killed_daemons_left_is_removed_and_what_is_in_use_stays(
    tmp_path: Path,
) -> None:
    """A lock that no process holds says that nobody uses the name any more, unless it was made just now."""
    pattern = str(tmp_path / "broker-left-*")
    given = adapter(tmp_path / "adapters", {**BROKER, "leaves": [pattern]})
    (wanted,) = filled_daemons(given, {}, "default", "/dev/shm/x")
    long_ago = time.time() - 10 * STALE_S  # noqa: TID251
    names = {kind: tmp_path / f"broker-left-{kind}" for kind in ("stale", "in-use", "young", "unlocked")}
    for kind, path in names.items():
        lock = Path(f"{path}.lock")
        path.touch()
        if kind != "unlocked":
            lock.touch()
        if kind in ("stale", "in-use"):
            os.utime(lock, (long_ago, long_ago))
    with Path(f"{names['in-use']}.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with started_with([wanted]):
            left = {path.name for path in tmp_path.glob("broker-left-*")}
            (tmp_path / "broker-left-new").touch()
    kept = ("in-use", "in-use.lock", "young", "young.lock", "unlocked")
    assert left == {f"broker-left-{name}" for name in kept}
    assert not (tmp_path / "broker-left-new").exists()
    assert names["in-use"].exists()
