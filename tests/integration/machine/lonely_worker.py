#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the real worker for a node that only reads, and no other: nobody ever sends it anything."""

import json
import os
import signal
import sys


def read_plan() -> bytes:
    """One line and not a byte more: what follows is for whoever reads next."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    return line


plan = read_plan()
if json.loads(plan)["nodes"][0]["writers"]:
    signal.pause()
reader, writer = os.pipe()
os.write(writer, plan)
os.dup2(reader, 0)
os.set_inheritable(writer, True)  # held by the worker itself: its input does not end
worker = os.environ.get("LAGOMETER_TEST_WORKER")
assert worker is not None, "LAGOMETER_TEST_WORKER names the real worker"
os.execv(worker, [worker, *sys.argv[1:]])
