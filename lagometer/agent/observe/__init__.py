# SPDX-License-Identifier: Apache-2.0
"""What is seen from outside while a trial runs: processes, sockets, counters, clocks, wake-ups."""
