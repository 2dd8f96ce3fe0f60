# SPDX-License-Identifier: Apache-2.0
"""What it means: the samples of edges, estimates per cell, and whether a trial can be trusted."""
