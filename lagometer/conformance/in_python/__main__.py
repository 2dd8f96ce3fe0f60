# SPDX-License-Identifier: Apache-2.0
"""`python -m lagometer.conformance.in_python`: orders come in as JSON lines, one answer each goes out."""

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
FIRST_DESCRIPTOR = 100  # out of the way of what a client library opens and expects
DESCRIPTORS = 65_536  # as in `lagometer-conformance`: some libraries walk over all that there could be


def main() -> None:
    """Carries out orders until standard input ends."""
    output = fcntl.fcntl(STDOUT, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    # What the client library prints is counted, and does not get between our lines.
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
    os._exit(0)  # the interpreter's own end would wait for threads of the client library


if __name__ == "__main__":
    main()
