# SPDX-License-Identifier: Apache-2.0
"""`python -m lagometer.worker_python`: replaces `lagometer-worker` for adapters written in Python."""

import sys

from lagometer.worker_python.main import main

sys.exit(main(sys.argv[1:]))
