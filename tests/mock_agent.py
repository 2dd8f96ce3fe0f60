# SPDX-License-Identifier: Apache-2.0
"""An agent that is not to be trusted: `python mock_agent.py WRONG COMMAND…` starts a real one with COMMAND,
and passes on what both sides write until it does what WRONG says.

hang:EVENT      says nothing more from this event on; the real agent goes on behind it
die:EVENT       is gone at this event
silent          never says who it is
version         says that it is of another version
clock           names the conductor's clock and tells another time
elsewhere       says that its clock is no other one's, and is honest otherwise
garbage:EVENT   writes what is no frame in this event's place
strange:EVENT   writes an event that nobody knows
numbers:EVENT   writes the event with all numbers and texts replaced
late:COMMAND    gets this command a second late
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

from lagometer.agent.frames import Frames, framed

READ_BYTES = 1 << 16
AHEAD_NS = 3_000_000_000
LATE_S = 1.0


def main(wrong: str, command: list[str]) -> int:
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None and agent.stdout is not None
    frames, how, event = Frames(), wrong.partition(":")[0], wrong.partition(":")[2]
    late = event if how == "late" else ""
    threading.Thread(target=_pass_on, args=(agent.stdin, late), daemon=True).start()
    quiet = how == "silent"
    while data := os.read(agent.stdout.fileno(), READ_BYTES):
        for message, block in frames.feed(data):
            mine = message["event"] == event
            if mine and how == "die":
                print("out of luck", file=sys.stderr, flush=True)
                os._exit(3)
            quiet = quiet or (mine and how == "hang")
            if not quiet:
                _write(_spoilt(how, mine, message), block if "bytes" in message else None)
    return agent.wait()


def _spoilt(how: str, mine: bool, message: dict[str, Any]) -> dict[str, Any] | bytes:
    if how == "version" and message["event"] == "agent":
        return {**message, "version": "9.9.9"}
    if how == "elsewhere" and message["event"] == "agent":
        return {**message, "clock": "elsewhere", "boot": "elsewhere"}
    if how == "clock" and message["event"] == "clock":
        return {**message, "at_ns": message["at_ns"] + AHEAD_NS}
    if mine and how == "garbage":
        return b"Segmentation fault\n"
    if mine and how == "strange":
        return {**message, "event": "gossip"}
    if mine and how == "numbers":
        return {
            "event": message["event"],
            **{name: [None] for name in message if name not in ("event", "bytes")},
        }
    return message


def _write(message: dict[str, Any] | bytes, block: bytes | None) -> None:
    unwritten = message if isinstance(message, bytes) else framed(message, block)
    while unwritten:
        unwritten = unwritten[os.write(1, unwritten) :]


def _pass_on(stdin: Any, late: str) -> None:
    """What the conductor writes, to its end. late: the command that waits."""
    frames = Frames()
    while data := os.read(0, READ_BYTES):
        for message, block in frames.feed(data):
            if message["command"] == late:
                time.sleep(LATE_S)
            stdin.write(framed(message, block if "bytes" in message else None))
            stdin.flush()
    stdin.close()  # on which the real agent ends


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
