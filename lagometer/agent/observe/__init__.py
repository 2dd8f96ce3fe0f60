# SPDX-License-Identifier: Apache-2.0
"""Observes a trial from outside while it runs: processes, sockets, counters, clocks, wake-ups."""
