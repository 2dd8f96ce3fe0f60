# SPDX-License-Identifier: Apache-2.0
"""`python -m lagometer.agent SUPERVISOR`: serves one conductor on standard input and output, then ends."""

from __future__ import annotations

import sys

from lagometer.agent.serving import serve

if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:]))
