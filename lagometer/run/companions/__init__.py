# SPDX-License-Identifier: Apache-2.0
"""Processes that run next to the workers: the middleware's daemons, and interference."""
