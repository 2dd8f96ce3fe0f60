# SPDX-License-Identifier: Apache-2.0
"""The key `hosts` and the factor: where nodes run, what a cell is called, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.worker.layout import Place, worker_plans
from lagometer.study import Adapter, Cell, Expansion, Study, expand, load_study, study_from_mapping
from lagometer.study.hosts_file import load_hosts
from lagometer.study.schema_json import study_schema

CPUS = (0, 1)
HOSTS: dict[str, Any] = {"robot": {"launcher": "local"}, "base": {"runs": ["sink", "pong"]}}
SINK: dict[str, Any] = {"robot": {}, "base": {"runs": "sink"}}
BOTH = {"network": "host", "hosts": "robot+base"}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("adapters"))


def study(matrix: dict[str, Any], **top: Any) -> Study:
    matrix = {"adapter": "cyclonedds", "workload": ["pipeline-3", "pingpong"], **matrix}
    return study_from_mapping({"name": "test", "matrix": matrix, **top}, source="test")


def cells_of(expansion: Expansion) -> dict[str, Cell]:
    return {cell.id: cell for cell in expansion.cells}


def said(matrix: dict[str, Any], **top: Any) -> str:
    """What is wrong with this study."""
    with pytest.raises(BadInput) as caught:
        study(matrix, **top)
    return str(caught.value)


def test_one_host_and_several_are_cells_of_one_study(adapters: dict[str, Adapter]) -> None:
    given = study({"network": "host", "hosts": ["robot", "robot+base"]}, hosts=HOSTS)
    cells = cells_of(expand(given, adapters, CPUS))
    assert list(cells) == [
        f"cyclonedds/{workload}/host/on-{hosts}"
        for workload in ("pipeline-3", "pingpong")
        for hosts in ("robot", "robot+base")
    ]
    alone, both = list(cells.values())[:2]
    assert (alone.hosts, both.hosts) == (("robot",), ("robot", "base"))
    assert both.host_of == {"source": "robot", "relay-1": "robot", "sink": "base"}
    assert both.columns()["hosts"] == "robot+base"


def file_of_study(folder: Path, hosts: str) -> Path:
    path = folder / "study.yaml"
    matrix = "{adapter: cyclonedds, workload: pipeline-2, network: host}"
    path.write_text(f"name: test\nhosts: {hosts}\nmatrix: {matrix}\n")
    return path


def test_hosts_may_be_in_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the study, or in the working directory; it is the file that `doctor --hosts` reads."""
    write_adapters(tmp_path / "adapters")
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path / "adapters"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "hosts.yaml").write_text("hosts:\n  robot: {launcher: netns}\n  base: {runs: [sink]}\n")
    given = load_study(file_of_study(tmp_path, "hosts.yaml"))
    same = load_study(file_of_study(elsewhere, "{robot: {launcher: netns}, base: {runs: [sink]}}"))
    assert given.hosts == same.hosts and given.matrix == same.matrix
    assert given.as_json() == same.as_json()
    assert load_hosts(tmp_path / "hosts.yaml")[0] == given.hosts
    assert load_hosts(tmp_path / "study.yaml")[0] == given.hosts
    monkeypatch.chdir(tmp_path)
    assert load_study(file_of_study(elsewhere, "hosts.yaml")).hosts == given.hosts
    described = {"name": "x", "hosts": "hosts.yaml", "matrix": {"adapter": "shm", "workload": "pingpong"}}
    jsonschema.validate(described, study_schema())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "the file 'hosts.yaml' is neither in"),
        ("hosts: {robot: {runs: [sink]}}\nname: x\n", "hosts.yaml:2"),
        ("hosts: {robot: {rums: [sink]}}\n", "did you mean 'runs'?"),
        ("robot: {}\n", "a file of hosts has only `hosts:`"),
        ("hosts: [robot]\n", "has no hosts under it"),
        ("hosts: {robot: {runs: [sinc]}}\n", "did you mean 'sink'?"),
    ],
)
def test_what_is_wrong_with_a_file_of_hosts_names_it(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "hosts.yaml").write_text(text)
    with pytest.raises(BadInput) as caught:
        load_study(file_of_study(tmp_path, "hosts.yaml"))
    assert words in str(caught.value)


def test_a_study_without_hosts_runs_here_and_its_ids_stay(adapters: dict[str, Adapter]) -> None:
    (cell, _) = expand(study({}), adapters, CPUS).cells
    assert cell.id == "cyclonedds/pipeline-3" and cell.hosts == ("here",)
    assert cell.columns()["hosts"] is None


def test_without_the_factor_a_cell_has_all_hosts(adapters: dict[str, Adapter]) -> None:
    given = study({"network": "host"}, hosts=HOSTS)
    assert [cell.factors.hosts for cell in expand(given, adapters, CPUS).cells] == ["robot+base"] * 2
    assert given.as_json()["hosts"]["base"] == {  # type: ignore[index]
        "launcher": "local",
        "emulated": False,
        "address": "",
        "symmetric": False,
        "drift_ppm": 100.0,
        "before": [],
        "runs": ["sink", "pong"],
    }


def test_emulated_hosts_get_addresses_by_their_order_and_plans_have_them(
    adapters: dict[str, Adapter],
) -> None:
    hosts = {
        "robot": {"launcher": "netns"},
        "cloud": {"launcher": "netns", "address": "10.77.0.2"},
        "base": {"launcher": "netns", "runs": "sink"},
    }
    given = study({"workload": "pipeline-3", **BOTH}, hosts=hosts)
    found = {name: (host.address, host.is_emulated) for name, host in given.hosts.items()}
    assert found == {
        "robot": ("10.77.0.1", True),
        "cloud": ("10.77.0.2", True),
        "base": ("10.77.0.3", True),
    }
    (cell,) = expand(given, adapters, CPUS).cells
    networks = [plan.adapters[0].network for plan in worker_plans(given, cell, 0, adapters)]
    assert [each["address"] for each in networks] == ["10.77.0.1", "10.77.0.1", "10.77.0.3"]
    assert all(each["hosts"] == ["10.77.0.1", "10.77.0.3"] for each in networks)
    assert len({each["trial"] for each in networks}) == 1
    again = worker_plans(given, cell, 0, adapters)[0].adapters[0].network
    assert again["trial"] != networks[0]["trial"]


def test_what_reaches_only_its_own_host_is_excluded_between_emulated_hosts(
    adapters: dict[str, Adapter],
) -> None:
    hosts = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": "sink"}}
    matrix = {"adapter": ["shm", "cyclonedds"], "workload": "pipeline-3", "network": "host"}
    found = expand(study({**matrix, "hosts": ["robot", "robot+base"]}, hosts=hosts), adapters, CPUS)
    assert [cell.id.split("/")[0] for cell in found.cells] == ["shm", "cyclonedds", "cyclonedds"]
    (excluded,) = found.excluded
    assert excluded.reason == "shm reaches only the processes of its own host"
    kept = study(
        {**matrix, "adapter": "cyclonedds"}, hosts=hosts, options={"cyclonedds": {"transport": "shm"}}
    )
    (excluded,) = expand(kept, adapters, CPUS).excluded
    assert excluded.reason == "cyclonedds with transport shm reaches only the processes of its own host"
    # What only one host's nodes exchange need not cross.
    hosts["base"]["runs"] = ["source", "relay-1", "sink"]
    alone = study({**matrix, "adapter": "shm", "hosts": "base"}, hosts=hosts)
    assert len(expand(alone, adapters, CPUS).cells) == 1


@pytest.mark.parametrize("factor", [{}, {"hosts": ["robot", "robot+base"]}])
def test_a_host_that_would_run_nothing_is_no_cells(
    adapters: dict[str, Adapter], factor: dict[str, Any]
) -> None:
    """`robot+base` would be another name for what runs on the robot alone."""
    hosts = {"robot": {}, "base": {"runs": ["pong"]}}
    found = expand(study({"network": "host", **factor}, hosts=hosts), adapters, CPUS)
    assert {each.cell: each.reason for each in found.excluded} == {
        "cyclonedds/pipeline-3/host/on-robot+base": "host base runs no node of pipeline-3: write its `runs`"
    }
    assert "cyclonedds/pingpong/host/on-robot+base" in cells_of(found)
    everything = {"robot": {}, "base": {"runs": ["source", "relay-1", "sink"]}}
    (excluded,) = expand(study({"workload": "pipeline-3", **BOTH}, hosts=everything), adapters, CPUS).excluded
    assert excluded.reason == "host robot runs no node of pipeline-3: write its `runs`"


def test_no_link_joins_emulated_hosts_and_others(adapters: dict[str, Adapter]) -> None:
    hosts = {"robot": {}, "base": {"launcher": "netns", "runs": "sink"}}
    (excluded,) = expand(study({"workload": "pipeline-3", **BOTH}, hosts=hosts), adapters, CPUS).excluded
    assert "no link joins robot and base" in excluded.reason


def test_groups_are_placed_as_nodes_are(adapters: dict[str, Adapter], tmp_path: Any) -> None:
    workload = tmp_path / "pair.yaml"
    workload.write_text(
        "name: pair\ngroups: {front: [a, b]}\nnodes:\n"
        "  a: {trigger: timer, publishes: [t]}\n"
        "  b: {trigger: any, subscribes: [t], publishes: [u]}\n"
        "  c: {trigger: any, subscribes: [u]}\n"
    )
    hosts = {"robot": {"runs": ["c"]}, "base": {"runs": ["front"]}}
    matrix = {"workload": str(workload), "placement": "groups", "network": "host"}
    (cell,) = expand(study(matrix, hosts=hosts), adapters, CPUS).cells
    assert cell.host_of == {"a": "base", "b": "base", "c": "robot"}


def test_plans_name_their_host_and_take_its_folder_and_cpus(adapters: dict[str, Adapter]) -> None:
    given = study({"workload": "pipeline-3", "cpus": "spread", **BOTH}, hosts=SINK)
    (cell,) = expand(given, adapters, CPUS).cells
    places = {"robot": Place("/dev/shm/lagometer-1-0", (0,)), "base": Place("/dev/shm/lagometer-2-0", (5,))}
    plans = worker_plans(given, cell, 0, adapters, places=places)
    assert [plan.worker.host for plan in plans] == ["robot", "robot", "base"]
    assert [plan.runtime_directory[-3:] for plan in plans] == ["1-0", "1-0", "2-0"]
    assert [plan.scheduling.cpus for plan in plans] == [[0], [0], [5]]


@pytest.mark.parametrize(
    ("robot", "base", "told"),
    [(True, True, [True, True]), (True, False, [True, False]), (False, False, [True, False])],
)
def test_plans_tell_a_reader_whether_its_publishers_read_its_clock(
    adapters: dict[str, Adapter], robot: bool, base: bool, told: list[bool]
) -> None:
    """Two hosts with other clocks than ours need not have the same; the nodes of one host always do."""
    given = study({"workload": "pipeline-3", **BOTH}, hosts=SINK)
    (cell,) = expand(given, adapters, CPUS).cells
    places = {
        name: Place(f"/dev/shm/lagometer-{name}", CPUS, shares_clock=shares)
        for name, shares in (("robot", robot), ("base", base))
    }
    plans = worker_plans(given, cell, 0, adapters, places=places)
    assert [reader.shares_clock for plan in plans for reader in plan.nodes[0].readers] == told
    standalone = worker_plans(given, cell, 0, adapters, standalone=True, places=places)
    assert not any(reader.shares_clock for plan in standalone for reader in plan.nodes[0].readers)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ({"hosts": "robot+base"}, "robot and base each have a private network: set `network: host`"),
        (
            {**BOTH, "placement": "single-process"},
            "one process can't be on several hosts: source on robot, relay-1 on robot, sink on base",
        ),
        ({**BOTH, "interference": "cpu-2"}, "of several hosts one has the load: write cpu-2@base"),
        (
            {**BOTH, "interference": "cpu@other"},
            "interference 'cpu@other' is for a host that this cell does not have",
        ),
    ],
)
def test_what_cannot_be_on_several_hosts_is_excluded(
    adapters: dict[str, Adapter], matrix: dict[str, Any], reason: str
) -> None:
    given = study({"workload": "pipeline-3", **matrix}, hosts=SINK)
    (excluded,) = expand(given, adapters, CPUS).excluded
    assert reason in excluded.reason


@pytest.mark.parametrize(
    ("matrix", "hosts", "words"),
    [
        ({}, {}, "has no hosts under it"),
        ({"hosts": "robot"}, None, "unknown host 'robot'"),
        ({"hosts": "robit"}, HOSTS, "did you mean 'robot'?"),
        ({"hosts": "robot+robot"}, HOSTS, "names a host twice"),
        ({"hosts": "robot+"}, HOSTS, "is not a list of hosts"),
        ({}, {"robot": {"symmetric": "yes"}}, "is neither true nor false"),
        ({}, {"robot": {"drift_ppm": "much"}}, "is not a number of parts in a million"),
        ({}, {"robot": {"drift_ppm": 0}}, "is not between 0 and 100,000"),
        ({}, {"robot": {"address": "base.local"}}, "is not an address like 192.168.1.2"),
        ({}, {"robot": {"address": "10.0.0.1"}, "base": {"address": "10.0.0.1"}}, "give each host its own"),
        ({}, {"here": {"launcher": "local"}}, "choose another name"),
        ({}, {"robot": {"launcher": "ftp"}}, "known are: local"),
        ({}, {"robot": {"rums": ["sink"]}}, "did you mean 'runs'?"),
        ({}, {"robot": {"runs": ["sinc"]}}, "did you mean 'sink'?"),
        ({}, {"robot": {"runs": ["sink"]}, "base": {"runs": ["sink"]}}, "'sink' already runs on 'robot'"),
        ({}, {"robot": "local"}, "says nothing of the host"),
        ({}, {"robot": {"launcher": ["local"]}}, "takes one word"),
    ],
)
def test_what_is_wrong_with_hosts_is_said(
    matrix: dict[str, Any], hosts: dict[str, Any] | None, words: str
) -> None:
    assert words in said(matrix, **({} if hosts is None else {"hosts": hosts}))


RESTARTS = """
nodes:
  a: {trigger: timer, publishes: [t]}
  b: {trigger: any, subscribes: [t], publishes: [u], restart: 1s, stop: 2s}
  c: {trigger: any, subscribes: [u], restart: 1s, stop: 2s}
groups: {back: [b, c]}
"""


def test_a_node_that_restarts_is_two_on_one_host(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    (tmp_path / "again.yaml").write_text(RESTARTS)
    hosts = {"robot": {}, "base": {"runs": ["back"]}}
    matrix = {"adapter": "cyclonedds", "workload": str(tmp_path / "again.yaml"), "network": "host"}
    found = expand(study({**matrix, "placement": "groups"}, hosts=hosts), adapters, CPUS)
    assert not found.excluded, found.excluded
    (cell,) = found.cells
    assert cell.workers == (("b", "c"), ("b-again", "c-again"), ("a",))
    assert [cell.worker_name(worker) for worker in range(3)] == ["back", "back-again", "a"]
    assert [cell.worker_host(worker) for worker in range(3)] == ["base", "base", "robot"]
    times = [(cell.worker_start_ns(worker), cell.worker_stop_ns(worker)) for worker in range(3)]
    assert times == [(0, 10**9), (10**9, 2 * 10**9), (0, 0)]
    edges = {edge.name for edge in cell.graph.edges()}
    assert edges == {"a→b", "a→b-again", *(f"b{x}→c{y}" for x in ("", "-again") for y in ("", "-again"))}


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("b: {trigger: any, subscribes: [t], restart: 1s, stop: 500ms}", "restarts while it is not there"),
        ("b: {trigger: any, subscribes: [t], restart: 1s, start: 2s}", "restarts while it is not there"),
        (
            "b: {trigger: any, subscribes: [t], restart: 1s}\n  b-again: {trigger: any, subscribes: [t]}",
            "is the name of a node that restarts",
        ),
    ],
)
def test_what_is_wrong_with_a_restart_is_said(tmp_path: Path, node: str, said: str) -> None:
    (tmp_path / "again.yaml").write_text(f"nodes:\n  a: {{trigger: timer, publishes: [t]}}\n  {node}\n")
    with pytest.raises(BadInput, match=said):
        study({"workload": str(tmp_path / "again.yaml")})


@pytest.mark.parametrize(
    ("host", "wrong"),
    [
        ({"launcher": "local", "destination": "pi@base"}, "'destination' is of the launcher ssh"),
        ({"launcher": "ssh", "destination": "-oProxyCommand=x"}, "is not a destination for ssh"),
        ({"launcher": "ssh", "path": "lagometer"}, "is not a path that begins with / or ~/"),
        ({"launcher": "ssh", "config": "config"}, "is not a path that begins with / or ~/"),
    ],
)
def test_keys_of_ssh_are_checked(host: dict[str, str], wrong: str) -> None:
    assert wrong in said(
        {"workload": "pipeline-3", **BOTH}, hosts={"robot": {}, "base": {**host, "runs": "sink"}}
    )


def test_what_cannot_be_behind_ssh_is_excluded(adapters: dict[str, Adapter]) -> None:
    hosts = {"robot": {}, "base": {"launcher": "ssh", "runs": "sink"}}
    matrix = {"adapter": ["shm", "cyclonedds"], "workload": "pipeline-3", **BOTH}
    found = expand(study(matrix, hosts=hosts), adapters, CPUS)
    assert [cell.id.split("/")[0] for cell in found.cells] == ["cyclonedds"]
    (excluded,) = found.excluded
    assert excluded.reason == "shm reaches only the processes of its own host"
    tuned = {**matrix, "adapter": "cyclonedds", "hosts": "base", "tuning": "latency"}
    (excluded,) = expand(study(tuned, hosts=hosts), adapters, CPUS).excluded
    assert "tuning is for the machine that lagometer runs on, and base is another one" in excluded.reason


def test_plans_name_the_files_of_their_own_host(adapters: dict[str, Adapter]) -> None:
    hosts = {"robot": {}, "base": {"launcher": "ssh", "runs": "sink"}}
    given = study({"workload": "pipeline-3", **BOTH}, hosts=hosts)
    (cell,) = expand(given, adapters, CPUS).cells
    places = {"base": Place("/dev/shm/lagometer-1-0", CPUS, lambda path: f"/copy{path}")}
    plans = worker_plans(given, cell, 0, adapters, places=places)
    library = str(adapters["cyclonedds"].library)
    assert [plan.adapters[0].library for plan in plans] == [library, library, f"/copy{library}"]
