# SPDX-License-Identifier: Apache-2.0
"""Figures of third-party programs, from what their probes wrote (docs/methodology/probe.md)."""
