# SPDX-License-Identifier: Apache-2.0
"""ROS 2 through rclpy, over any rmw; README.md lists its limits."""

# long file: an adapter in Python is one module, and this one has topics and services

from __future__ import annotations

import array
import ctypes
import importlib
import importlib.metadata
import itertools
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import ascii_letters, digits
from types import ModuleType
from typing import Any

from lagometer.worker_python.adapter import (
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Probe,
    Qos,
    Reader,
)
from lagometer.worker_python.arrivals import Arrivals, ArrivalsWaitset

NAME = "ros2-py"
EXECUTORS = {"single_threaded": "SingleThreadedExecutor", "multi_threaded": "MultiThreadedExecutor"}
THREADS_MAX = 1024
DEPTH_DEFAULT = 10  # as in rclpy's examples and rclcpp's default: rclpy itself requires a depth
FROM_THE_ENVIRONMENT = (
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_STATIC_PEERS",
    "CYCLONEDDS_URI",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "ZENOH_SESSION_CONFIG_URI",
)
# What carries each rmw's messages, as far as it is known; for others the adapter claims nothing.
BETWEEN_PROCESSES = {"rmw_cyclonedds_cpp": ["udp"], "rmw_fastrtps_cpp": ["shared-memory", "udp"]}
_count = itertools.count()


def probe(options: Mapping[str, Any]) -> Probe:
    """The version of rclpy."""
    _Settings(options)
    _module("rclpy")
    return Probe(importlib.metadata.version("rclpy"), {}, {})


def open_context(configuration: ContextConfiguration) -> Ros2Context:
    """A node in its own context."""
    return Ros2Context(configuration)


class _Settings:
    """Options, checked; both profiles are the same. Raises AdapterError."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.rmw: str | None = None
        self.executor = "single_threaded"
        self.threads: int | None = None
        for key, value in options.items():
            if key == "rmw" and isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_]+", value):
                self.rmw = None if value == "default" else value
            elif key == "executor" and value in EXECUTORS:
                self.executor = value
            elif key == "executor_threads" and (value is None or _is_count(value)):
                self.threads = value
            else:
                raise AdapterError(
                    f"{NAME}: option {key}: {value!r} is not known or out of bounds; known: rmw (default, or "
                    f"the name of an rmw), executor ({' | '.join(EXECUTORS)}), executor_threads (1 to "
                    f"{THREADS_MAX})"
                )
        if self.threads is not None and self.executor != "multi_threaded":
            raise AdapterError(f"{NAME}: executor_threads goes with executor multi_threaded alone")

    def make_executor(self, context: Any) -> Any:
        """The executor that calls all callbacks of a context."""
        kind = getattr(_module("rclpy.executors"), EXECUTORS[self.executor])
        return kind(context=context) if self.threads is None else kind(self.threads, context=context)


def _link_variables(network: Mapping[str, Any]) -> dict[str, str]:
    """The variables of ROS 2 that keep a context to the link between two hosts; none without an address. A
    CYCLONEDDS_URI of the shell stays as it is."""
    address = network.get("address")
    if address is None:
        return {}
    found = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
    if not os.environ.get("CYCLONEDDS_URI"):
        found["CYCLONEDDS_URI"] = (
            f'<CycloneDDS><Domain><General><Interfaces><NetworkInterface address="{address}"/></Interfaces>'
            "</General></Domain></CycloneDDS>"
        )
    return found


class Ros2Context:
    """An rclpy context with one node, and the executor that calls the node's callbacks."""

    def __init__(self, configuration: ContextConfiguration) -> None:
        self._settings = _Settings(configuration.options)
        # The rmw library is loaded once per process, and this variable selects it.
        if self._settings.rmw is not None:
            _refuse_absent(self._settings.rmw)
            os.environ["RMW_IMPLEMENTATION"] = self._settings.rmw
        os.environ.update(_link_variables(configuration.network))
        os.environ["ROS_LOG_DIR"] = str(Path(configuration.runtime_directory) / "ros_log")
        rclpy = _module("rclpy")
        self._one_callback = threading.Lock()  # the futures of replies have no callback group
        self._executor: Any = None
        self._spinning: threading.Thread | None = None
        self._context: Any = _module("rclpy.context").Context()
        try:
            # Each initialisation opens its own log file. A ROS 2 process does that once.
            logs = next(_count) == 0
            self._context.init([], initialize_logging=logs, domain_id=configuration.domain)
            self._rmw = str(_module("rclpy.utilities").get_rmw_implementation_identifier())
            self._refuse_other_rmw()
            name = "lagometer_" + _graph_name(configuration.name, "_")
            self._node: Any = rclpy.create_node(name, context=self._context)
        except RuntimeError as error:  # includes RCLError
            raise AdapterError(f"{NAME}: making a node: {error}") from error

    def create_writer(self, endpoint: EndpointConfiguration) -> Ros2Writer:
        """Creates a publisher."""
        return Ros2Writer(self._node, endpoint)

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> Ros2Reader:
        """Creates a reader; `enable` creates its subscription."""
        return Ros2Reader(self._node, endpoint, self._arrivals(endpoint, on_data), self._spin)

    def create_client(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[Ros2RequestWriter, Ros2Replies]:
        """Creates a client; each request is a `call_async`."""
        kind, topic, qos = _service(request, reply)
        replies = Ros2Replies(self._node, reply, self._arrivals(reply, on_data), self._spin)
        try:
            client = self._node.create_client(kind, topic, qos_profile=qos)
        except (RuntimeError, ValueError) as error:
            raise AdapterError(f"{NAME}: making a client of {topic}: {error}") from error
        return Ros2RequestWriter(client, kind.Request(), request, replies), replies

    def create_server(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[Ros2Requests, Ros2ReplyWriter]:
        """Creates a server; its reader's `enable` creates the service."""
        kind, _, _ = _service(request, reply)
        requests = Ros2Requests(self._node, request, self._arrivals(request, on_data), self._spin)
        return requests, Ros2ReplyWriter(kind.Response, reply)

    def create_waitset(self, readers: Sequence[Reader]) -> ArrivalsWaitset:
        """Creates an object that waits for the readers' callbacks."""
        return ArrivalsWaitset([reader.arrivals for reader in readers if isinstance(reader, _Heard)])

    def describe(self) -> dict[str, Any]:
        """The effective settings, and which rmw library this process has mapped."""
        settings: dict[str, Any] = {
            "RMW_IMPLEMENTATION": {"value": self._rmw, "default": "rmw_fastrtps_cpp"},
            "executor": {
                "value": f"rclpy.executors.{EXECUTORS[self._settings.executor]}",
                "default": f"rclpy.executors.{EXECUTORS['single_threaded']}",
            },
        }
        if self._settings.threads is not None:
            usual = "as many as CPUs, at least 2"
            settings["num_threads"] = {"value": self._settings.threads, "default": usual}
        for name in FROM_THE_ENVIRONMENT:
            if value := os.environ.get(name):
                settings[name] = {"value": value, "default": ""}
        paste = [
            {"file": "the shell that starts the nodes", "text": f"export RMW_IMPLEMENTATION={self._rmw}"}
        ]
        result = {"settings": settings, "observed": {"rmw_library": _mapped(self._rmw)}, "paste": paste}
        if self._rmw in BETWEEN_PROCESSES:
            between = BETWEEN_PROCESSES[self._rmw]
            result["transport"] = {"within_process": ["process"], "between_processes": between}
        return result

    def close(self) -> None:
        """Ends the context and with it the executor's spinning: no callback runs afterwards."""
        self._context.try_shutdown()
        if self._executor is not None and self._spinning is not None:
            self._spinning.join()
            self._executor.shutdown()
        self._node.destroy_node()
        self._context.destroy()

    def _arrivals(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> _Serial:
        return _Serial(endpoint, on_data, self._one_callback)

    def _spin(self) -> None:
        """Starts the executor's thread, once."""
        if self._spinning is None:
            self._executor = self._settings.make_executor(self._context)
            self._executor.add_node(self._node)
            self._spinning = threading.Thread(target=self._run, name="executor")
            self._spinning.start()
        else:
            self._executor.wake()  # to see the new subscription

    def _run(self) -> None:
        try:
            self._executor.spin()
        except Exception:
            # After close() the executor ends with an exception, or fails to make its next wait set.
            if self._context.ok():
                raise

    def _refuse_other_rmw(self) -> None:
        if self._settings.rmw not in (None, self._rmw):
            raise AdapterError(
                f"{NAME}: this process uses {self._rmw} already: one process, one rmw, not "
                f"{self._settings.rmw} as well"
            )


class _Serial(Arrivals[Any]):
    """What a reader has received. Any of the executor's threads may deliver, one at a time."""

    def __init__(
        self, endpoint: EndpointConfiguration, on_data: Callable[[], None], one_callback: threading.Lock
    ) -> None:
        super().__init__(endpoint, on_data)
        self._one_callback = one_callback

    def note(self, message: Any) -> None:
        """As in Arrivals."""
        with self._one_callback:
            super().note(message)


class _Filled:
    """A writer; the application fills the message's own field, which rclpy copies when it converts it."""

    origin = "native"

    def __init__(self, message: Any, endpoint: EndpointConfiguration) -> None:
        self._message = message
        self._topic = "/" + _graph_name(endpoint.topic, "/")
        self._qos = _qos(endpoint.qos)
        self._reshape(endpoint.payload_bytes)

    def borrow(self, size: int) -> memoryview:
        """The field `data` of a message that the application keeps."""
        if len(self._data) != size:
            self._reshape(size)
        return memoryview(self._data)

    def _reshape(self, size: int) -> None:
        self._message.data = array.array("B", bytes(size))
        self._data: Any = self._message.data  # the message's own: it may have copied the given value

    def counters(self) -> dict[str, int]:
        """No counters."""
        return {}

    def describe(self) -> dict[str, Any]:
        """The given profile."""
        return _described(self._qos)


class Ros2Writer(_Filled):
    """A publisher."""

    def __init__(self, node: Any, endpoint: EndpointConfiguration) -> None:
        kind = _message_class(endpoint.type)
        super().__init__(kind(), endpoint)
        try:
            self._publisher: Any = node.create_publisher(kind, self._topic, self._qos)
        except (RuntimeError, ValueError) as error:
            raise AdapterError(f"{NAME}: making a publisher on {self._topic}: {error}") from error

    def commit(self) -> bool:
        """Publishes. rclpy reports that nothing was sent only by an error."""
        try:
            self._publisher.publish(self._message)
        except RuntimeError as error:
            raise AdapterError(f"{NAME}: publishing on {self._topic}: {error}") from error
        return True

    def matched_readers(self) -> int:
        """The rmw's own count."""
        return int(self._publisher.get_subscription_count())


class Ros2RequestWriter(_Filled):
    """A client's writer of requests."""

    def __init__(
        self, client: Any, message: Any, endpoint: EndpointConfiguration, replies: Ros2Replies
    ) -> None:
        super().__init__(message, endpoint)
        self._client, self._replies = client, replies

    def commit(self) -> bool:
        """Sends the request; a callback of its future gets the reply."""
        try:
            self._client.call_async(self._message).add_done_callback(self._replies.note_reply)
        except RuntimeError as error:
            raise AdapterError(f"{NAME}: asking {self._topic}: {error}") from error
        return True

    def matched_readers(self) -> int:
        """Whether the graph has a server; rclpy does not say whether that one has seen the client."""
        return int(self._client.service_is_ready())


class Ros2ReplyWriter(_Filled):
    """A server's writer of replies, each a separate message: the executor may send it later."""

    def __init__(self, kind: Any, endpoint: EndpointConfiguration) -> None:
        self._kind = kind
        self._request: _Request | None = None
        super().__init__(kind(), endpoint)

    def borrow(self, size: int) -> memoryview:
        """The field `data` of a new message."""
        self._message = self._kind()
        self._reshape(size)
        return memoryview(self._data)

    def answer(self, request: _Request) -> None:
        """Keeps the request. Raises AdapterError if it was already answered."""
        if request.response is not None:
            raise AdapterError(f"{NAME}: a request on {self._topic} is answered twice")
        self._request = request

    def commit(self) -> bool:
        """Sends the reply, or leaves it to the executor if the request's callback has not returned."""
        request, self._request = self._request, None
        if request is None:
            raise AdapterError(f"{NAME}: a reply on {self._topic} without a request: call answer()")
        try:
            request.note_response(self._message)
        except RuntimeError as error:
            raise AdapterError(f"{NAME}: replying on {self._topic}: {error}") from error
        return True

    def matched_readers(self) -> int:
        """rclpy does not tell a server about its clients."""
        return 0


class _Heard:
    """A reader that gets its messages through callbacks, which the executor calls."""

    def __init__(
        self, node: Any, endpoint: EndpointConfiguration, arrivals: _Serial, spin: Callable[[], None]
    ) -> None:
        self._node, self._spin = node, spin
        self._topic = "/" + _graph_name(endpoint.topic, "/")
        self._qos = _qos(endpoint.qos)
        self.arrivals = arrivals

    def take(self) -> list[Any]:
        """The field `data` of each message, an array of octets."""
        return self.arrivals.take()

    def counters(self) -> dict[str, int]:
        """This queue's counts; rclpy does not report what the rmw's queue overwrote."""
        return {"overwritten": self.arrivals.overwritten}

    def describe(self) -> dict[str, Any]:
        """The given profile."""
        return _described(self._qos)


class Ros2Reader(_Heard):
    """A subscription; the executor calls its callback with a new message object."""

    def __init__(
        self, node: Any, endpoint: EndpointConfiguration, arrivals: _Serial, spin: Callable[[], None]
    ) -> None:
        self._kind = _message_class(endpoint.type)
        super().__init__(node, endpoint, arrivals, spin)

    def enable(self) -> None:
        """Creates the subscription: it receives from then on."""
        try:
            self._node.create_subscription(self._kind, self._topic, self._on_message, self._qos)
        except (RuntimeError, ValueError) as error:
            raise AdapterError(f"{NAME}: making a subscription on {self._topic}: {error}") from error
        self._spin()

    def _on_message(self, message: Any) -> None:
        self.arrivals.note(message.data)


class Ros2Replies(_Heard):
    """A client's reader of replies."""

    def enable(self) -> None:
        """The client exists; the executor must learn about it."""
        self._spin()

    def note_reply(self, future: Any) -> None:
        """The executor's task for a completed future."""
        self.arrivals.note(future.result().data)


class _Request(array.array):  # type: ignore[type-arg]
    """A request's payload. rclpy provides the sender when the request's callback has returned, and the reply
    may be ready before or after that: whichever comes second sends it."""

    def prepare(self, service: Any) -> _Request:
        """service: the one that received it."""
        self.response: Any = None
        self._header: Any = None
        self._service, self._both = service, threading.Lock()
        return self

    def note_response(self, response: Any) -> None:
        """The node has a reply."""
        with self._both:
            self.response = response
            if self._header is None:
                return
        type(self._service).send_response(self._service, response, self._header)

    def note_header(self, header: Any) -> None:
        """The callback has returned."""
        with self._both:
            self._header = header
            if self.response is None:
                return
        type(self._service).send_response(self._service, self.response, header)


class Ros2Requests(_Heard):
    """A server's reader of requests, and the service."""

    _service: Any = None

    def enable(self) -> None:
        """Creates the service: it answers from then on."""
        kind = _service_class()
        try:
            self._service = self._node.create_service(
                kind, self._topic, self._on_request, qos_profile=self._qos
            )
        except (RuntimeError, ValueError) as error:
            raise AdapterError(f"{NAME}: making a service of {self._topic}: {error}") from error
        # The executor calls it with the callback's result: here a request, which knows its reply.
        self._service.send_response = _Request.note_header
        self._spin()

    def _on_request(self, message: Any, _response: Any) -> _Request:
        request = _Request("B", message.data).prepare(self._service)
        self.arrivals.note(request)
        return request


def _prefixes() -> list[Path]:
    """The distribution of the sourced ROS 2."""
    return [Path(each) for each in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if each]


def _refuse_absent(rmw: str) -> None:
    """Without this check, rcl would end the process when it is loaded."""
    if not any((prefix / "lib" / f"lib{rmw}.so").exists() for prefix in _prefixes()):
        raise AdapterError(f"{NAME}: lib{rmw}.so is in none of AMENT_PREFIX_PATH: install that rmw")


def _module(name: str) -> ModuleType:
    """A module of the sourced ROS 2. The worker ignores PYTHONPATH, so this searches the prefixes that the
    setup script sets, after everything else."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for prefix in _prefixes():
        for place in (f"lib/{version}/site-packages", f"local/lib/{version}/dist-packages"):
            folder = str(prefix / place)
            if folder not in sys.path and Path(folder).is_dir():
                sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise AdapterError(
            f"{NAME}: {error}; source the setup script of a ROS 2 with rclpy for Python "
            f"{sys.version_info.major}.{sys.version_info.minor}, such as /opt/ros/jazzy/setup.sh"
        ) from error


def _message_class(name: str) -> Any:
    if name != "bytes":
        raise AdapterError(f"{NAME}: no payload type {name}; there is bytes alone")
    return _module("std_msgs.msg").UInt8MultiArray


def _service_class() -> Any:
    """lagometer_interfaces/srv/Bytes, which was generated together with the adapter `ros2`."""
    folder = Path(__file__).resolve().parent
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    # An rmw looks up its kind of type support by the library's name, and finds loaded libraries.
    for library in sorted((folder.parent / "ros2").glob("liblagometer_interfaces__*_c.so")):
        ctypes.CDLL(str(library))
    try:
        return _module("lagometer_interfaces.srv").Bytes
    except AdapterError as error:
        raise AdapterError(
            f"{NAME}: services need lagometer_interfaces, which set-up makes where ROS 2 is sourced with its "
            f"generator for Python (rosidl_generator_py): {error}"
        ) from error


def _service(request: EndpointConfiguration, reply: EndpointConfiguration) -> tuple[Any, str, Any]:
    """The type, name and QoS of a service. Raises AdapterError: settings that ROS 2 services do not have."""
    topic = "/" + _graph_name(request.topic, "/")
    if {request.type, reply.type} != {"bytes"}:
        raise AdapterError(f"{NAME}: services support only the payload type bytes: service {topic}")
    qos = _qos(request.qos)
    if qos != _qos(reply.qos):
        raise AdapterError(
            f"{NAME}: requests and replies of a service of ROS 2 have the same QoS: service {topic}"
        )
    return _service_class(), topic, qos


def _graph_name(name: str, keep: str) -> str:
    """Writes what ROS does not allow in a name as _xHH, byte by byte, as in C++.

    `keep`: allowed in addition to letters, digits and the underscore.
    """
    allowed = f"{ascii_letters}{digits}_{keep}".encode()
    return "".join(chr(byte) if byte in allowed else f"_x{byte:02X}" for byte in name.encode())


def _qos(wanted: Qos) -> Any:
    """The requested policies; the rest stays at ROS 2's default."""
    qos = _module("rclpy.qos")
    asked: dict[str, Any] = {"depth": wanted.depth or (DEPTH_DEFAULT if wanted.history is None else 1)}
    if wanted.history == "keep_all":
        asked["history"] = qos.HistoryPolicy.KEEP_ALL
    if wanted.reliability is not None:
        asked["reliability"] = qos.ReliabilityPolicy[wanted.reliability.upper()]
    if wanted.durability is not None:
        asked["durability"] = qos.DurabilityPolicy[wanted.durability.upper()]
    return qos.QoSProfile(**asked)


def _described(profile: Any) -> dict[str, Any]:
    """A profile where it differs from ROS 2's default, and as the code that requests it."""
    keeps_all = profile.history.name == "KEEP_ALL"
    found: dict[str, tuple[Any, Any]] = {
        "history": (profile.history.name, "KEEP_LAST"),
        "reliability": (profile.reliability.name, "RELIABLE"),
        "durability": (profile.durability.name, "VOLATILE"),
    }
    if not keeps_all:
        found["depth"] = (profile.depth, DEPTH_DEFAULT)
    settings = {
        key: {"value": value, "default": usual} for key, (value, usual) in found.items() if value != usual
    }
    code = ", ".join(
        [
            "history=HistoryPolicy.KEEP_ALL" if keeps_all else f"depth={profile.depth}",
            f"reliability=ReliabilityPolicy.{profile.reliability.name}",
            f"durability=DurabilityPolicy.{profile.durability.name}",
        ]
    )
    return {"settings": settings, "paste": [{"file": "the node's code", "text": f"QoSProfile({code})"}]}


def _mapped(rmw: str) -> str | None:
    """The file of the rmw library that this process has mapped."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")
        if path[1] and f"/lib{rmw}.so" in path[1] + path[2]:
            return path[1] + path[2]
    return None


def _is_count(value: object) -> bool:
    return type(value) is int and 1 <= value <= THREADS_MAX
