# SPDX-License-Identifier: Apache-2.0
"""Which cells are excluded by what the agents of their hosts say, and which are not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from study_adapters import write_adapters

from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.link import AgentLink
from lagometer.run.lacking import hosts_asked, without_lacking
from lagometer.study import Adapter, Study, expand, study_from_mapping

HOSTS: dict[str, Any] = {"robot": {}, "base": {"launcher": "ssh", "runs": ["sink"]}}
GOOD = {"code": 0, "said": "{}", "late": False}
BAD = {"code": 1, "said": '{"error":"libzenohc.so: cannot open shared object file"}', "late": False}
LATE = {"code": -9, "said": "it took too long", "late": True}
SIGNAL = {"code": -11, "said": "", "late": False}


class Link:
    """Stands for the link to an agent. results: those that are not good; None: it does not answer."""

    def __init__(self, results: Mapping[str, Any] | None, cpus: tuple[int, ...] = (0, 1)) -> None:
        self._results, self.cpus, self.is_open = results, cpus, True
        self.asked: Mapping[str, Any] = {}

    def there(self, path: str) -> str:
        return path.replace("/adapters/", "/there/")

    def send(self, message: Mapping[str, Any]) -> None:
        self.asked = message["commands"]

    def hear(self, event: str, seconds: float) -> Mapping[str, Any]:
        assert event == "tried"
        if self._results is None:
            raise HostError("its agent did not send 'tried'")
        return {"results": {name: self._results.get(name, GOOD) for name in self.asked}}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("x") / "adapters")


def study(hosts: Mapping[str, Any] = HOSTS, /, **matrix: Any) -> Study:
    matrix = {"workload": "pipeline-3", "network": "host", "hosts": ["robot", "robot+base"], **matrix}
    return study_from_mapping({"name": "test", "hosts": hosts, "matrix": matrix}, source="test")


def found(given: Study, adapters: dict[str, Adapter], **links: Link) -> tuple[list[str], dict[str, str]]:
    """The cells that run, and the reasons of the others."""
    cells = expand(given, adapters, (0, 1)).cells
    running, excluded = without_lacking(given, cells, adapters, cast("Mapping[str, AgentLink]", links))
    return [cell.id for cell in running], {each.cell: each.reason for each in excluded}


def test_only_cells_with_a_node_that_needs_it_on_that_host_are_excluded(adapters: dict[str, Adapter]) -> None:
    robot, base = Link({}), Link({"cyclonedds": BAD})
    given = study(adapter=["cyclonedds", "ros2"])
    running, excluded = found(given, adapters, robot=robot, base=base)
    assert excluded == {
        "cyclonedds/pipeline-3/host/on-robot+base": "host base: lacks cyclonedds: libzenohc.so: cannot open "
        "shared object file"
    }
    assert set(running) == {
        "cyclonedds/pipeline-3/host/on-robot",
        "ros2/pipeline-3/host/on-robot",
    }
    assert (list(robot.asked), list(base.asked)) == (["cyclonedds", "ros2"], ["cyclonedds"])
    *_, probe, library = base.asked["cyclonedds"]
    assert probe == "--probe" and Path(library).parts[-3] == "there"


def test_a_publisher_is_not_asked_for_where_only_its_subscriber_runs(adapters: dict[str, Adapter]) -> None:
    robot, base = Link({}), Link({"cyclonedds": BAD})
    both_here = {"robot": {}, "base": {"runs": ["sink"]}}
    given = study(both_here, adapter="cyclonedds+fastdds", workload="pipeline-2", hosts="robot+base")
    running, excluded = found(given, adapters, robot=robot, base=base)
    assert (list(robot.asked), list(base.asked)) == (["cyclonedds"], ["fastdds"])
    assert len(running) == 1 and not excluded


@pytest.mark.parametrize("answer", [Link(None), Link({"cyclonedds": LATE}), Link({"cyclonedds": "?"})])
def test_what_is_not_known_excludes_nothing(adapters: dict[str, Adapter], answer: Link) -> None:
    running, excluded = found(study(adapter="cyclonedds"), adapters, robot=Link({}), base=answer)
    assert len(running) == 2 and not excluded


def test_a_host_that_is_not_reached_is_not_asked(adapters: dict[str, Adapter]) -> None:
    gone = Link({"cyclonedds": BAD})
    gone.is_open = False
    running, excluded = found(study(adapter="cyclonedds"), adapters, robot=Link({}), base=gone)
    assert len(running) == 2 and not excluded and not gone.asked


def test_a_library_that_ends_the_worker_is_named_with_its_signal(adapters: dict[str, Adapter]) -> None:
    given = study(adapter="cyclonedds", hosts="robot")
    _, excluded = found(given, adapters, robot=Link({"cyclonedds": SIGNAL}))
    assert list(excluded.values()) == ["host robot: lacks cyclonedds: it died of signal 11"]


def test_cpus_are_those_of_the_host(adapters: dict[str, Adapter]) -> None:
    """This machine's do not matter to another one."""
    given = study(adapter="cyclonedds", hosts="base", workload="pipeline-2", cpus=["5", "1,2"])
    assert hosts_asked(given, expand(given, adapters, (0, 1)).cells) == ("base",)
    running, excluded = found(given, adapters, base=Link({}, cpus=(0, 1, 2, 3)))
    assert len(running) == 1 and "1,2" in running[0]
    assert list(excluded.values()) == ["host base: CPU 5 is not available here (there are: 0-3)"]


def test_programs_are_those_of_the_host(adapters: dict[str, Adapter]) -> None:
    given = study(adapter="cyclonedds", hosts="robot+base", workload="pipeline-2", interference="cpu@base")
    base = Link({"the program stress-ng": {"code": 127, "said": "", "late": False}})
    running, excluded = found(given, adapters, robot=Link({}), base=base)
    assert not running and list(excluded.values()) == ["host base: lacks the program stress-ng"]


def test_a_study_without_hosts_asks_nobody(adapters: dict[str, Adapter]) -> None:
    alone = {"name": "test", "matrix": {"adapter": "cyclonedds", "workload": "pipeline-2"}}
    given = study_from_mapping(alone, source="test")
    assert hosts_asked(given, expand(given, adapters, (0, 1)).cells) == ()
