# SPDX-License-Identifier: Apache-2.0
"""Gives samples meaning: samples of edges, estimates per cell, and whether a trial can be trusted."""
