# SPDX-License-Identifier: Apache-2.0
"""Runs programs that are not ours under the probe (docs/methodology/probe.md)."""
