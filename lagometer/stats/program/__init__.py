# SPDX-License-Identifier: Apache-2.0
"""Figures of programs that are not ours, from what their probes wrote (docs/methodology/probe.md)."""
