# SPDX-License-Identifier: Apache-2.0
"""An emulated link on one host of a trial: made, measured, and held against what was asked, before a worker
starts.

A program of its own (`python -m lagometer.agent.link JSON`), on the standard library alone.
"""
