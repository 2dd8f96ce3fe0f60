# SPDX-License-Identifier: Apache-2.0
"""The adapter ros2-py, as far as it needs no rclpy: names, in which what ROS does not allow is escaped, and
when a reply is sent."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def adapter() -> ModuleType:
    """The adapter's module; it needs no rclpy to be looked at."""
    path = ROOT / "adapters" / "ros2-py" / "ros2_py.py"
    found = importlib.util.spec_from_file_location("ros2_py", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "keep", "said"),
    [
        ("lagometer/t0", "/", "lagometer/t0"),
        ("relay-1", "_", "relay_x2D1"),
        ("a/b", "_", "a_x2Fb"),
        ("é", "/", "_xC3_xA9"),  # byte by byte, as in C++
    ],
)
def test_names_are_escaped_as_in_cpp(adapter: ModuleType, name: str, keep: str, said: str) -> None:
    assert adapter._graph_name(name, keep) == said


class Service:
    """In the place of rclpy's."""

    def __init__(self) -> None:
        self.sent: list[tuple[object, object]] = []

    def send_response(self, response: object, header: object) -> None:
        self.sent.append((response, header))


@pytest.mark.parametrize("reply_first", [True, False])
def test_a_reply_is_sent_once_its_request_has_both_header_and_reply(
    adapter: ModuleType, reply_first: bool
) -> None:
    """Whichever comes first: the node's own thread may be faster than the executor."""
    service = Service()
    service.send_response = adapter._Request.note_header  # type: ignore[method-assign]
    request = adapter._Request("B", b"abc").prepare(service)
    assert bytes(request[:2]) == b"ab" and len(request) == 3
    if reply_first:
        request.note_response("reply")
    else:
        service.send_response(request, "header")
    assert service.sent == []
    if reply_first:
        service.send_response(request, "header")
    else:
        request.note_response("reply")
    assert service.sent == [("reply", "header")]


def test_between_hosts_it_keeps_to_the_link(adapter: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CYCLONEDDS_URI", raising=False)
    assert adapter._link_variables({"loopback": True}) == {}
    found = adapter._link_variables({"address": "192.168.1.2"})
    assert found["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SUBNET"
    assert '<NetworkInterface address="192.168.1.2"/>' in found["CYCLONEDDS_URI"]
    monkeypatch.setenv("CYCLONEDDS_URI", "file:///own.xml")
    assert set(adapter._link_variables({"address": "192.168.1.2"})) == {"ROS_AUTOMATIC_DISCOVERY_RANGE"}
