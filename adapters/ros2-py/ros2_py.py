# SPDX-License-Identifier: Apache-2.0
"""ROS 2 through rclpy, over any rmw; its limits are in README.md."""

from __future__ import annotations

import array
import contextlib
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
DEPTH_DEFAULT = 10  # of rclpy's examples and of rclcpp's default: rclpy itself demands that one is given
FROM_THE_ENVIRONMENT = (
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_STATIC_PEERS",
    "CYCLONEDDS_URI",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "ZENOH_SESSION_CONFIG_URI",
)
# What each rmw moves messages by, as far as it is known; another claims nothing.
BETWEEN_PROCESSES = {"rmw_cyclonedds_cpp": ["udp"], "rmw_fastrtps_cpp": ["shared-memory", "udp"]}
_count = itertools.count()


def probe(options: Mapping[str, Any]) -> Probe:
    """The version of rclpy."""
    _Settings(options)
    _module("rclpy")
    return Probe(importlib.metadata.version("rclpy"), {}, {})


def open_context(configuration: ContextConfiguration) -> Ros2Context:
    """A node in a context of its own."""
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


class Ros2Context:
    """A context of rclpy's with one node, and the executor that calls the node's callbacks."""

    def __init__(self, configuration: ContextConfiguration) -> None:
        self._settings = _Settings(configuration.options)
        # The rmw library is loaded once in a process, and by this variable.
        if self._settings.rmw is not None:
            _refuse_absent(self._settings.rmw)
            os.environ["RMW_IMPLEMENTATION"] = self._settings.rmw
        os.environ["ROS_LOG_DIR"] = str(Path(configuration.runtime_directory) / "ros_log")
        rclpy = _module("rclpy")
        self._readers: list[Ros2Reader] = []
        self._executor: Any = None
        self._spinning: threading.Thread | None = None
        self._context: Any = _module("rclpy.context").Context()
        try:
            # Each initialisation opens a log file of its own. A process of ROS 2 does it once.
            logs = next(_count) == 0
            self._context.init([], initialize_logging=logs, domain_id=configuration.domain)
            self._rmw = str(_module("rclpy.utilities").get_rmw_implementation_identifier())
            self._refuse_other_rmw()
            name = "lagometer_" + _graph_name(configuration.name, "_")
            self._node: Any = rclpy.create_node(name, context=self._context)
        except RuntimeError as error:  # RCLError is one
            raise AdapterError(f"{NAME}: making a node: {error}") from error

    def create_writer(self, endpoint: EndpointConfiguration) -> Ros2Writer:
        """Makes a publisher."""
        return Ros2Writer(self._node, endpoint)

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> Ros2Reader:
        """Makes a subscription, which comes to be with `enable`."""
        reader = Ros2Reader(self._node, endpoint, on_data, self._spin)
        self._readers.append(reader)
        return reader

    def create_waitset(self, readers: Sequence[Reader]) -> ArrivalsWaitset:
        """Makes something to wait on for the readers' callbacks."""
        return ArrivalsWaitset([reader.arrivals for reader in readers if isinstance(reader, Ros2Reader)])

    def describe(self) -> dict[str, Any]:
        """What is in force, and which library of the rmw this process has mapped."""
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
        """The end of the context ends the executor's spinning: no callback runs afterwards."""
        self._context.try_shutdown()
        if self._executor is not None and self._spinning is not None:
            self._spinning.join()
            self._executor.shutdown()
        self._node.destroy_node()
        self._context.destroy()

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
        with contextlib.suppress(_module("rclpy.executors").ExternalShutdownException):
            self._executor.spin()

    def _refuse_other_rmw(self) -> None:
        if self._settings.rmw not in (None, self._rmw):
            raise AdapterError(
                f"{NAME}: this process uses {self._rmw} already: one process, one rmw, not "
                f"{self._settings.rmw} as well"
            )


class Ros2Writer:
    """A publisher; the application fills the message's own field, which rclpy copies as it converts it."""

    origin = "native"

    def __init__(self, node: Any, endpoint: EndpointConfiguration) -> None:
        kind = _message_class(endpoint.type)
        self._topic = "/" + _graph_name(endpoint.topic, "/")
        self._qos = _qos(endpoint.qos)
        self._message: Any = kind()
        self._reshape(endpoint.payload_bytes)
        try:
            self._publisher: Any = node.create_publisher(kind, self._topic, self._qos)
        except (RuntimeError, ValueError) as error:
            raise AdapterError(f"{NAME}: making a publisher on {self._topic}: {error}") from error

    def borrow(self, size: int) -> memoryview:
        """The field `data` of a message that the application keeps."""
        if len(self._data) != size:
            self._reshape(size)
        return memoryview(self._data)

    def _reshape(self, size: int) -> None:
        self._message.data = array.array("B", bytes(size))
        self._data: Any = self._message.data  # the message's own: it may have copied what it was given

    def commit(self) -> bool:
        """Publishes. rclpy does not say that nothing was sent but by an error."""
        try:
            self._publisher.publish(self._message)
        except RuntimeError as error:
            raise AdapterError(f"{NAME}: publishing on {self._topic}: {error}") from error
        return True

    def matched_readers(self) -> int:
        """As the rmw counts them."""
        return int(self._publisher.get_subscription_count())

    def counters(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    def describe(self) -> dict[str, Any]:
        """The profile that was given."""
        return _described(self._qos)


class Ros2Reader:
    """A subscription, whose callback the executor calls with the message made for it."""

    def __init__(
        self,
        node: Any,
        endpoint: EndpointConfiguration,
        on_data: Callable[[], None],
        spin: Callable[[], None],
    ) -> None:
        self._node, self._spin = node, spin
        self._kind = _message_class(endpoint.type)
        self._topic = "/" + _graph_name(endpoint.topic, "/")
        self._qos = _qos(endpoint.qos)
        self.arrivals: Arrivals[Any] = Arrivals(endpoint, on_data)

    def enable(self) -> None:
        """Makes the subscription: it hears from then on."""
        try:
            self._node.create_subscription(self._kind, self._topic, self._on_message, self._qos)
        except (RuntimeError, ValueError) as error:
            raise AdapterError(f"{NAME}: making a subscription on {self._topic}: {error}") from error
        self._spin()

    def take(self) -> list[Any]:
        """The field `data` of each message, an array of octets."""
        return self.arrivals.take()

    def counters(self) -> dict[str, int]:
        """Of this queue; what the rmw's overwrote, rclpy does not tell."""
        return {"overwritten": self.arrivals.overwritten}

    def describe(self) -> dict[str, Any]:
        """The profile that was given."""
        return _described(self._qos)

    def _on_message(self, message: Any) -> None:
        self.arrivals.note(message.data)


def _prefixes() -> list[Path]:
    """Of the ROS 2 that is sourced."""
    return [Path(each) for each in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if each]


def _refuse_absent(rmw: str) -> None:
    """rcl would end the process as it is loaded."""
    if not any((prefix / "lib" / f"lib{rmw}.so").exists() for prefix in _prefixes()):
        raise AdapterError(f"{NAME}: lib{rmw}.so is in none of AMENT_PREFIX_PATH: install that rmw")


def _module(name: str) -> ModuleType:
    """A module of the ROS 2 that is sourced. The worker does not look where PYTHONPATH points, so what is
    there is found by the prefixes that the setup script names, and after all else."""
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


def _graph_name(name: str, keep: str) -> str:
    """What ROS does not allow in a name is written as _xHH, byte by byte, as in C++.

    `keep`: allowed beside letters, digits and the underscore.
    """
    allowed = f"{ascii_letters}{digits}_{keep}".encode()
    return "".join(chr(byte) if byte in allowed else f"_x{byte:02X}" for byte in name.encode())


def _qos(wanted: Qos) -> Any:
    """What is asked for; what is not stays as ROS 2 has it."""
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
    """A profile, where it differs from ROS 2's default, and as the code that asks for it."""
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
