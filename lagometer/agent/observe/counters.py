# SPDX-License-Identifier: Apache-2.0
"""The kernel's counters around a trial: network (in the trial's own namespace), CPU time, throttling."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lagometer.store.observed import MachineLoad, RealtimeLimit

NS_PER_S = 1_000_000_000
READ_BYTES = 1 << 16
SYSTEM = Path("/sys/devices/system/cpu")

# our name: (file below /proc/PID/net, group, name); several add up
_SOURCES: dict[str, tuple[tuple[str, str], ...]] = {
    "udp_receive_buffer_errors": (("snmp", "Udp.RcvbufErrors"), ("snmp6", "Udp6RcvbufErrors")),
    "udp_receive_errors": (("snmp", "Udp.InErrors"), ("snmp6", "Udp6InErrors")),
    "udp_send_buffer_errors": (("snmp", "Udp.SndbufErrors"), ("snmp6", "Udp6SndbufErrors")),
    "ip_reassembly_failed": (("snmp", "Ip.ReasmFails"), ("snmp6", "Ip6ReasmFails")),
    "tcp_retransmitted": (("snmp", "Tcp.RetransSegs"),),
    "softnet_dropped": (("softnet_stat", "dropped"),),
    "loopback_bytes": (("dev", "lo.bytes"),),
    "loopback_packets": (("dev", "lo.packets"),),
    "link_bytes": (("dev", "links.bytes"),),
    # not stored: they only distinguish UDP from TCP
    "udp_sent": (("snmp", "Udp.OutDatagrams"), ("snmp6", "Udp6OutDatagrams")),
    "tcp_sent": (("snmp", "Tcp.OutSegs"),),
}


class NetworkCounters:
    """The counters of one network namespace. Their files keep the namespace alive while they are open."""

    def __init__(self, process_id: int) -> None:
        """Opens the counters of the namespace that a process is in. Skips what can't be opened."""
        self._files: dict[str, int] = {}
        for name in ("snmp", "snmp6", "dev", "softnet_stat"):
            with contextlib.suppress(OSError):
                self._files[name] = os.open(f"/proc/{process_id}/net/{name}", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> dict[str, int]:
        """Returns the current counters by our names, as far as the kernel has them."""
        tables: dict[str, Mapping[str, int]] = {}
        for name, descriptor in self._files.items():
            with contextlib.suppress(OSError, ValueError, IndexError):
                tables[name] = _PARSERS[name](os.pread(descriptor, READ_BYTES, 0).decode())
        counters: dict[str, int] = {}
        for name, sources in _SOURCES.items():
            parts = [tables[file][key] for file, key in sources if key in tables.get(file, {})]
            if parts:
                counters[name] = sum(parts)
        return counters

    def close(self) -> None:
        """Releases the namespace."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}


def _parse_snmp(text: str) -> Mapping[str, int]:
    lines = [line.split() for line in text.splitlines()]
    counters = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group = names[0].rstrip(":")
        counters.update(
            {f"{group}.{name}": int(value) for name, value in zip(names[1:], values[1:], strict=True)}
        )
    return counters


def _parse_snmp6(text: str) -> Mapping[str, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def _parse_dev(text: str) -> Mapping[str, int]:
    counters = {"links.bytes": 0}
    for line in text.splitlines()[2:]:
        name, _, values = line.partition(":")
        fields = values.split()
        if name.strip() == "lo":
            counters |= {"lo.bytes": int(fields[8]), "lo.packets": int(fields[9])}
        else:
            counters["links.bytes"] += int(fields[0])
    return counters


def _parse_softnet(text: str) -> Mapping[str, int]:
    return {"dropped": sum(int(line.split()[1], 16) for line in text.splitlines())}


_PARSERS = {
    "snmp": _parse_snmp,
    "snmp6": _parse_snmp6,
    "dev": _parse_dev,
    "softnet_stat": _parse_softnet,
}


def machine_load() -> dict[str, int]:
    """Returns the machine's CPU time and throttling since boot, by the names of `MachineLoad`."""
    load: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        first = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
        user, nice, system, idle, wait, interrupt, soft, steal = (int(field) for field in first)
        tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
        busy = user + nice + system + interrupt + soft
        load["capacity_ns"] = (busy + idle + wait + steal) * tick_ns
        load["busy_ns"], load["stolen_ns"] = busy * tick_ns, steal * tick_ns
    with contextlib.suppress(OSError, ValueError, IndexError):
        load["quota_throttled"] = _quota_throttled()
    counts = [_number(path) for path in _thermal_counters()]
    if counts:
        load["thermal_throttled"] = sum(counts)
    return load


@cache
def _thermal_counters() -> tuple[Path, ...]:
    return tuple(SYSTEM.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))


def load_between(before: Mapping[str, int], after: Mapping[str, int]) -> MachineLoad:
    """Returns the increment of each count of `machine_load`."""
    return MachineLoad(**{name: after[name] - before[name] for name in after if name in before})


def realtime_limit() -> RealtimeLimit | None:
    """Returns how much of each period real-time threads get; None if the kernel does not report it."""
    folder = Path("/proc/sys/kernel")
    try:
        return RealtimeLimit(_number(folder / "sched_rt_runtime_us"), _number(folder / "sched_rt_period_us"))
    except (OSError, ValueError):
        return None


def _quota_throttled() -> int:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup/cpu") if controllers else Path("/sys/fs/cgroup")
        with contextlib.suppress(OSError):
            text = (root / path.lstrip("/") / "cpu.stat").read_text()
            counts = dict(line.split(None, 1) for line in text.splitlines())
            return int(counts["nr_throttled"])
    raise ValueError("no control group limits the CPU")


def _number(path: Path) -> int:
    return int(path.read_text())
