# SPDX-License-Identifier: Apache-2.0
"""What on a host's network passes or blocks messages: its interface, buffers, firewall."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import struct
from pathlib import Path
from typing import Any

from lagometer.agent.observe.synchronisation import said_by

SIOCGIFADDR = 0x8915
SETTINGS = (
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/rmem_default",
    "net/core/wmem_default",
    "net/ipv4/ipfrag_high_thresh",
    "net/ipv4/ipfrag_time",
)
_REFUSING = re.compile(r"\b(drop|reject|DROP|REJECT)\b")


def network_facts(address: str) -> dict[str, Any]:
    """Returns the facts: `link` of the interface with this address (None: no interface has it), `settings`,
    `firewall` (rules and how many of them refuse; None: can't be read)."""
    settings = {}
    for name in SETTINGS:
        with contextlib.suppress(OSError, ValueError):
            settings[name.replace("/", ".")] = int(Path("/proc/sys", name).read_text())
    return {"link": _link(address), "settings": settings, "firewall": _firewall()}


def _link(address: str) -> dict[str, Any] | None:
    for _, name in socket.if_nameindex():
        if address and _address_of(name) == address:
            folder = Path("/sys/class/net", name)
            return {
                "name": name,
                "mtu": _mtu_of(name),
                "speed_mbit": _number(folder / "speed"),
                "wireless": (folder / "wireless").is_dir(),
            }
    return None


def _asked(name: str, request: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return fcntl.ioctl(control, request, struct.pack("256s", name.encode()[:15]))


def _address_of(name: str) -> str:
    with contextlib.suppress(OSError):
        return socket.inet_ntoa(_asked(name, SIOCGIFADDR)[20:24])
    return ""


def _mtu_of(name: str) -> int | None:
    # Not from /sys, which shows the network that mounted it.
    siocgifmtu = 0x8921
    with contextlib.suppress(OSError):
        return int(struct.unpack_from("i", _asked(name, siocgifmtu), 16)[0])
    return None


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        value = int(path.read_text())
        return value if value > 0 else None
    return None


def _firewall() -> dict[str, Any] | None:
    """Returns the rules of nftables and iptables; None if they can't be read."""
    if os.geteuid() != 0:
        return None
    program = next((command for command in ("nft", "iptables-save") if shutil.which(command)), None)
    if program is None:
        return None
    lines = said_by((program, "list", "ruleset") if program == "nft" else (program,)).splitlines()
    rules = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "*", "}"))]
    return {
        "by": program,
        "lines": len(rules),
        "refusing": sum(bool(_REFUSING.search(rule)) for rule in rules),
    }
