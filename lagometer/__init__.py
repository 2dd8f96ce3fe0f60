# SPDX-License-Identifier: Apache-2.0
"""Lagometer: the end-to-end latency of modular robot software over publish/subscribe middleware."""

__version__ = "0.1.0"
