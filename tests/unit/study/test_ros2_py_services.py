# SPDX-License-Identifier: Apache-2.0
"""Services of the adapter ros2-py over a stand-in for rclpy, which answers as rclpy's executor does: it calls
a service back, then sends what the callback returned. Where ROS 2 is, test_services.py has the real one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lagometer.worker_python.adapter import (
    Adapter,
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Qos,
    Services,
    load,
)

ADAPTER = Path(__file__).resolve().parents[3] / "adapters" / "ros2-py" / "ros2_py.py"


class Message:
    def __init__(self) -> None:
        self.data: Any = []


class Bytes:
    Request = type("Request", (Message,), {})
    Response = type("Response", (Message,), {})


class Future:
    def __init__(self) -> None:
        self.then: Callable[[Any], None] | None = None
        self.value: Any = None

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.then = callback

    def result(self) -> Any:
        return self.value


class Service:
    def __init__(self, callback: Callable[[Any, Any], Any]) -> None:
        self.callback = callback

    def send_response(self, response: Any, header: Any) -> None:
        assert isinstance(response, Bytes.Response)
        header.value = response
        header.then(header)


class Node:
    """One service, and its clients. A request is a future, which is its header, too."""

    def __init__(self) -> None:
        self.service: Service | None = None

    def create_service(self, kind: Any, name: str, callback: Any, qos_profile: Any) -> Service:
        assert kind is Bytes and name == "/lagometer/t0" and qos_profile.depth == 10
        self.service = Service(callback)
        return self.service

    def create_client(self, kind: Any, name: str, qos_profile: Any) -> Any:
        assert kind is Bytes and name == "/lagometer/t0" and qos_profile.depth == 10
        self.asked: list[tuple[bytes, Future]] = []

        def call(request: Any) -> Future:
            self.asked.append((bytes(request.data), Future()))
            return self.asked[-1][1]

        return SimpleNamespace(call_async=call, service_is_ready=lambda: self.service is not None)

    def spin(self) -> None:
        """What rclpy's executor does with the oldest request."""
        data, future = self.asked.pop(0)
        request = Bytes.Request()
        request.data = data
        service: Any = self.service
        service.send_response(service.callback(request, Bytes.Response()), future)

    def destroy_node(self) -> None:
        pass


class Profile(SimpleNamespace):
    def __init__(self, **asked: Any) -> None:
        policies = {name: SimpleNamespace(name="?") for name in ("history", "reliability", "durability")}
        super().__init__(**{**policies, **asked})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Any, Node]]:
    """A context of the adapter's, and the node in it."""
    node = Node()
    context = SimpleNamespace(init=lambda *_, **__: None, try_shutdown=lambda: None, destroy=lambda: None)
    executor = SimpleNamespace(
        add_node=lambda _: None, spin=lambda: None, wake=lambda: None, shutdown=lambda: None
    )
    parts: dict[str, dict[str, Any]] = {
        "rclpy": {"create_node": lambda *_, **__: node},
        "rclpy.context": {"Context": lambda: context},
        "rclpy.utilities": {"get_rmw_implementation_identifier": lambda: "rmw_x"},
        "rclpy.executors": {
            "SingleThreadedExecutor": lambda **_: executor,
            "ExternalShutdownException": RuntimeError,
        },
        "rclpy.qos": {"QoSProfile": Profile},
        "lagometer_interfaces": {},
        "lagometer_interfaces.srv": {"Bytes": Bytes},
    }
    for name, has in parts.items():
        module = ModuleType(name)
        vars(module).update(has)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "path", [*sys.path])
    adapter: Adapter = load("ros2-py", str(ADAPTER))
    made = adapter.open_context(ContextConfiguration(0, "client", "default", {}, {}, str(tmp_path)))
    yield made, node
    made.close()


def endpoint(reliability: str | None = None, kind: str = "bytes") -> EndpointConfiguration:
    return EndpointConfiguration("lagometer/t0", kind, 4, Qos(reliability=reliability), "waitset")


@pytest.mark.parametrize("within_callback", [True, False])
def test_each_reply_comes_to_whoever_asked(opened: tuple[Any, Node], within_callback: bool) -> None:
    context, node = opened
    assert isinstance(context, Services)
    writer, replies = context.create_client(endpoint(), endpoint(), lambda: None)
    requests, answers = context.create_server(endpoint(), endpoint(), lambda: None)
    assert writer.matched_readers() == 0
    requests.enable()
    replies.enable()
    assert writer.matched_readers() == 1

    def answer() -> None:
        for request in requests.take():
            answers.answer(request)
            answers.borrow(4)[:] = bytes(reversed(request))
            assert answers.commit()

    heard: Any = requests
    heard.arrivals.wake = answer if within_callback else None
    for payload in (b"abcd", b"efgh"):
        writer.borrow(4)[:] = payload
        assert writer.commit()
        node.spin()
    answer()
    assert [bytes(each) for each in replies.take()] == [b"dcba", b"hgfe"]


def test_what_services_of_ros2_have_not_got_is_refused(opened: tuple[Any, Node]) -> None:
    context, _ = opened
    with pytest.raises(AdapterError, match="only the payload type bytes"):
        context.create_client(endpoint(kind="fixed"), endpoint(), lambda: None)
    _, answers = context.create_server(endpoint(), endpoint(), lambda: None)
    with pytest.raises(AdapterError, match="without a request"):
        answers.commit()
