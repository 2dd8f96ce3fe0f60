# SPDX-License-Identifier: Apache-2.0
"""A network of its own for a child process of a test."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
LOOPBACK_UP = 0x1 | 0x8 | 0x40 | 0x1000  # up, loopback, running, multicast


def own_network() -> None:
    """In a child, before its program runs: nothing but a loopback, so that no packet leaves the machine."""
    assert ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", LOOPBACK_UP))
