#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker in another language (docs/PROTOCOL.md); LAGOMETER_TEST_SCRIPT tells it where to go wrong."""

import json
import os
import signal
import sys
import time
import zlib

SCRIPT = os.environ.get("LAGOMETER_TEST_SCRIPT", "")


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def stumble(place: str) -> None:
    """Goes wrong if the script names this place, e.g. `garbage@ready`; only the worker at the end does."""
    what, _, where = SCRIPT.partition("@")
    if where != place or PLAN["nodes"][0]["writers"]:
        return
    if what == "garbage":
        sys.stdout.write("[INFO] middleware speaking\n")
    elif what == "endless":
        while True:
            sys.stdout.write("x" * 65536)
    elif what == "chatter":
        for _ in range(400):
            sys.stderr.write("c" * 10_000 + "\n")
    elif what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif what == "leave":
        os._exit(0)
    elif what == "hang":
        signal.pause()
    elif what == "refuse":
        say(event="failed", phase=place, reason="adapter-failed", message="no such thing", missing=[])
        sys.exit(1)
    sys.stdout.flush()


def main() -> None:
    stumble("hello")
    say(event="hello", protocol=1, worker=PLAN["worker"]["index"], pid=os.getpid(), version="test")
    stumble("ready")
    say(event="ready", adapters=[], settings=[], scheduling={}, warnings=[])
    stumble("matched")
    say(event="matched", elapsed_ns=1)
    go = json.loads(sys.stdin.readline())
    phases = PLAN["phases"]
    begin = go["at_ns"] + phases["warmup_ns"]
    end = begin + phases["measure_ns"]
    while time.monotonic_ns() < end + phases["drain_ns"]:
        time.sleep(0.001)
    stumble("done")
    say(event="done", at_ns=go["at_ns"], measure_begin_ns=begin, measure_end_ns=end, drain_end_ns=end)
    block = b"not a block of records"
    wrong = SCRIPT == "checksum@records"
    say(event="records", bytes=len(block), crc32=f"{zlib.crc32(block) ^ wrong:08x}")
    sys.stdout.buffer.write(block)
    sys.stdout.flush()
    stumble("bye")
    say(event="bye")


PLAN = json.loads(sys.stdin.readline())
main()
