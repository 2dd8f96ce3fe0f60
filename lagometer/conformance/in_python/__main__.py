# SPDX-License-Identifier: Apache-2.0
"""`python -m lagometer.conformance.in_python`: reads orders as JSON lines, writes one answer to each."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import sys
import threading

from lagometer.conformance.in_python.peer import Peer
from lagometer.conformance.progress import told

STDOUT = 1
FIRST_DESCRIPTOR = 100  # above the descriptors that a client library opens and expects
DESCRIPTORS = 65_536  # as in `lagometer-conformance`: some libraries iterate over all possible descriptors


def main() -> None:
    """Executes orders until standard input ends."""
    output = fcntl.fcntl(STDOUT, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    # Counts what the client library prints, and keeps it out of our lines.
    os.dup2(os.memfd_create("printed"), STDOUT)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    if (shared := os.environ.get("LAGOMETER_RECORDS_FD")) is not None:
        told.share(int(shared))
    peer = Peer()
    threading.excepthook = peer.thread_died
    for line in sys.stdin:
        pending = memoryview(json.dumps(peer.answer(line)).encode() + b"\n")
        while pending:
            pending = pending[os.write(output, pending) :]
    peer.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a normal exit would wait for the client library's threads


if __name__ == "__main__":
    main()
