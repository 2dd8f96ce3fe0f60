# SPDX-License-Identifier: Apache-2.0
"""Cells of the campaign that is shown which tests name."""

LINKED = "cyclonedds/pipeline-3/64KB/500Hz/reliable/process-per-node"  # no cell of the first view
LIKE = "shm/pipeline-3/64KB/500Hz/best_effort/process-per-node"
GROWING = "cyclonedds/pipeline-3/64B/500Hz/best_effort/process-per-node"  # a queue builds up there
