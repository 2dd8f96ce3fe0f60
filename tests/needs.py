# SPDX-License-Identifier: Apache-2.0
"""What a test may find absent on a machine: it is skipped, or fails if LAGOMETER_REQUIRE names the thing.

LAGOMETER_REQUIRE is a comma list of what `_RIGHTS` names (rust among it), chromium, programs such as
stress-ng, and adapters of MIDDLEWARE and IN_PYTHON.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lagometer.agent.commands import LaunchError
from lagometer.agent.cpu_limit import hierarchy
from lagometer.agent.observe.hardware import TASK_CLOCK, unavailable
from lagometer.agent.observe.scheduler import unavailable as scheduler_unavailable
from lagometer.installation import scheduler_path
from lagometer.machine.settings import DMA_LATENCY, read, wanted
from lagometer.machine.tuning import Tuner
from lagometer.study.adapters import load_adapter
from lagometer.study.bridges import PROGRAM_FOLDERS
from lagometer.study.daemons import missing_daemons

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("null", "shm", "uds", "tcp", "udp")
STACKED = ("faulty",)  # wraps another adapter, shm unless told
DDS = ("cyclonedds", "fastdds")  # which understand each other
RUST_MINOR = 89  # of Rust 1.x, for the adapters in it: rust-version in adapters/Cargo.toml
_SIDECARS = {
    path.parent.name: json.loads(path.read_text())
    for path in sorted((ROOT / "adapters").glob("*/adapter.json"))
}
# Options with which what is sent arrives, of adapters that promise nothing.
LOSSLESS = {"ecal-py": {"acknowledge_timeout_ms": 1_000}}
BRIDGES = ("lagometer-zenoh-bridge",)  # programs that are built on request alone
SOURCED = ("ros2",)  # was built, but its libraries are found in a shell that has sourced ROS 2 alone
ROUDIS = ("iceoryx", "iox-roudi")  # who has its daemon, of which a machine has one
# Adapters that the worker in Python carries out.
IN_PYTHON = tuple(name for name, sidecar in _SIDECARS.items() if sidecar.get("worker") == "python")
# Whatever else has a folder; most may be absent from a machine.
MIDDLEWARE = tuple(name for name in _SIDECARS if name not in (*FLOORS, *STACKED, *IN_PYTHON))


def require(name: str, available: bool, needs: str) -> None:
    """Skips a test whose need is not met, or fails it where LAGOMETER_REQUIRE names the need."""
    if available:
        return
    if name in os.environ.get("LAGOMETER_REQUIRE", "").split(","):
        pytest.fail(f"LAGOMETER_REQUIRE names {name}, but: {needs}")
    pytest.skip(f"skipped: {needs}")


_turn: list[int] = []  # the open lock of what is one for the whole machine


def take_turn(name: str) -> None:
    """Waits until no other test that runs meanwhile has what is one for the machine; `end_turn` lets the next
    one. A test takes at most one turn."""
    if not _turn:
        lock = ROOT / "build" / f"{name}-of-tests.lock"
        _turn.append(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC))
        fcntl.flock(_turn[0], fcntl.LOCK_EX)


def end_turn() -> None:
    """Called after each test."""
    while _turn:
        os.close(_turn.pop())


def need(name: str) -> None:
    """Skips the test, or fails it, unless this machine has `name`: a right, an adapter, or a program."""
    if name in ROUDIS:
        take_turn("roudi")
    if name == "cpu-groups":  # tests look at all control groups of lagometer
        take_turn(name)
    if name in _RIGHTS:
        obstacle = _RIGHTS[name]()
        require(name, not obstacle, obstacle)
    elif name in (*MIDDLEWARE, *IN_PYTHON):
        require(name, adapter_library(name).exists(), f"the adapter {name}: {why_missing(name)}")
        missing = load_adapter(adapter_library(name).parent).missing
        require(name, missing is None, f"the adapter {name}: {missing}")
        if name in SOURCED:
            needs = f"the adapter {name}: no ROS 2 is sourced in this shell"
            require(name, bool(os.environ.get("AMENT_PREFIX_PATH")), needs)
        absent = list(missing_daemons(load_adapter(adapter_library(name).parent), {}, "default"))
        require(name, not absent, "; ".join(absent))
    elif name in BRIDGES:
        built = any((folder / name).exists() for folder in PROGRAM_FOLDERS)
        require(name, built, f"the program {name}: tools/setup --bridges builds it")
    elif name in (*FLOORS, *STACKED):
        assert adapter_library(name).exists(), f"{adapter_library(name)} is missing: run make setup"
    else:
        require(name, shutil.which(name) is not None, f"the program {name}")


def build_folder() -> Path:
    """Where the programs that measure were built; LAGOMETER_BUILD overrides."""
    return Path(os.environ.get("LAGOMETER_BUILD", ROOT / "build" / "release"))


def guard_build_folder() -> Path:
    """Where the worker was built that aborts when measuring allocates; LAGOMETER_GUARD_BUILD overrides."""
    return Path(os.environ.get("LAGOMETER_GUARD_BUILD", ROOT / "build" / "guard"))


def adapter_library(name: str, build: Path | None = None) -> Path:
    return (build or build_folder()) / "adapters" / name / _SIDECARS[name]["library"]


def why_missing(name: str) -> str:
    path = build_folder() / "adapters" / name / "missing.txt"
    return path.read_text().strip() if path.exists() else f"{adapter_library(name)} was not built"


@cache
def rust_folder() -> Path | None:
    """Where rustc and cargo lie that are new enough: the user's own, or those on PATH."""
    found = shutil.which("rustc")
    own = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin"
    for folder in (own, Path(found).parent if found else own):
        if not (folder / "rustc").exists() or not (folder / "cargo").exists():
            continue
        told = subprocess.run([folder / "rustc", "--version"], capture_output=True, text=True, check=False)
        version = re.match(r"rustc 1\.(\d+)\.", told.stdout)
        if version and int(version[1]) >= RUST_MINOR:
            return folder
    return None


def rust_profile() -> str:
    """Cargo's profile that the adapters in Rust were built with: release, or ci."""
    cache = build_folder() / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.exists() else ""
    found = re.search(r"^LAGOMETER_RUST_PROFILE:STRING=(\w+)$", text, re.MULTILINE)
    return found[1] if found else "release"


def most_reliable(name: str, build: Path | None = None) -> str:
    """The reliability to ask an adapter for where a message should come: best_effort if it knows no other."""
    offered = load_adapter(adapter_library(name, build).parent).sidecar.abilities.reliability
    return "reliable" if "reliable" in offered else "best_effort"


def as_offered(name: str, given: dict[str, Any], build: Path | None = None) -> dict[str, Any]:
    """A plan whose messages should come: endpoints are as reliable as the adapter can make them, and it has
    the options with which it loses nothing where it promises nothing."""
    reliability = most_reliable(name, build)
    for node in given["nodes"]:
        for endpoint in (*node["readers"], *node["writers"]):
            endpoint["qos"] = {**endpoint["qos"], "reliability": reliability}
    for adapter in given["adapters"]:
        adapter["options"] = {**LOSSLESS.get(name, {}), **adapter["options"]}
    return given


# --- rights, and what else is not one program: each says what is missing, empty if nothing is


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@cache
def _no_namespaces() -> str:
    possible = _succeeds("unshare", "-n", "-m", "-i", "-p", "-f", "true") or _succeeds(
        "unshare", "-Ur", "-n", "true"
    )
    return "" if possible else "the right to make network namespaces"


@cache
def _no_mounts() -> str:
    possible = _succeeds("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt")
    return "" if possible else "the right to mount file systems"


def _no_root() -> str:
    return "" if os.geteuid() == 0 else "root"


@cache
def _no_realtime() -> str:
    """What keeps a spinning real-time thread from being started, and stopped by the kernel."""
    if not _succeeds("chrt", "-f", "1", "true"):
        return "the right to SCHED_FIFO"
    if int(read(Path("/"), "proc/sys/kernel/sched_rt_runtime_us") or "-1") <= 0:
        return "a limit on real-time threads (sched_rt_runtime_us)"
    return "" if len(os.sched_getaffinity(0)) >= 2 else "two CPUs"


def _no_tuning() -> str:
    """Not kept: a machine may be tuned at one time and not at another."""
    if obstacle := _no_root():
        return obstacle
    if Tuner().status() is not None:
        return "a machine that is not tuned already (lagometer tune-host revert)"
    root = Path("/")
    unlike = [each.path for each in wanted(root) if not each.obstacle and read(root, each.path) != each.value]
    possible = any(os.access(root / path, os.W_OK) for path in (DMA_LATENCY, *unlike))
    return "" if possible else "a setting of the machine that can be changed"


def _no_rust() -> str:
    return "" if rust_folder() is not None else f"a Rust toolchain, 1.{RUST_MINOR} or newer"


def _no_time_namespaces() -> str:
    words = ["unshare", "--time", "--monotonic", "60", "--fork", "true"]
    works = shutil.which("unshare") is not None and subprocess.run(words, capture_output=True).returncode == 0
    return "" if works else "a time namespace: a kernel that has them, and root"


def _no_counters() -> str:
    why = unavailable({"task clock": TASK_CLOCK})
    return f"perf_event_open ({why['task clock']})" if why else ""


@cache
def _no_scheduler() -> str:
    why = scheduler_unavailable(str(scheduler_path()))
    return f"the scheduler's tracepoints ({why})" if why else ""


def _no_cpu_groups() -> str:
    """What keeps a host from being limited to a device."""
    if obstacle := _no_root():
        return obstacle
    try:
        group = hierarchy().root / f"lagometer-{os.getpid()}-needs"
        group.mkdir()
    except (LaunchError, OSError) as error:
        return f"control groups for CPUs ({error})"
    group.rmdir()
    return ""


def _no_tap() -> str:
    return "" if os.access("/dev/net/tun", os.R_OK | os.W_OK) else "/dev/net/tun, for an emulated link"


def _not_long() -> str:
    return "" if "LAGOMETER_LONG" in os.environ else "LAGOMETER_LONG=1"


_RIGHTS: Mapping[str, Callable[[], str]] = {
    "netns": _no_namespaces,
    "mount": _no_mounts,
    "timens": _no_time_namespaces,
    "root": _no_root,
    "realtime": _no_realtime,
    "tuning": _no_tuning,
    "rust": _no_rust,
    "tun": _no_tap,
    "perf": _no_counters,
    "scheduler": _no_scheduler,
    "cpu-groups": _no_cpu_groups,
    "long": _not_long,
}


def shared_data(name: str) -> Path:
    """A folder of data that others published, too large for the repository; the test is skipped without it.

    It lies in the folder that LAGOMETER_SHARED_DATA names, or in ../shared/data beside the repository.
    """
    folder = Path(os.environ.get("LAGOMETER_SHARED_DATA") or ROOT.parent / "shared" / "data") / name
    require("shared-data", folder.is_dir(), f"{folder.parent.name}/{name} (LAGOMETER_SHARED_DATA)")
    return folder
