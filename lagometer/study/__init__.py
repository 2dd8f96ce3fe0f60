# SPDX-License-Identifier: Apache-2.0
"""What to measure: studies, their matrix, cells, workloads, and the available adapters."""

from lagometer.study.adapter import Adapter
from lagometer.study.adapters import discover_adapters
from lagometer.study.cell import Cell, Excluded, Expansion, Factors
from lagometer.study.graph import Edge, Graph, Node, Rule, Stream
from lagometer.study.load import load_study, study_from_mapping
from lagometer.study.matrix import expand, select
from lagometer.study.schema import Study

__all__ = [
    "Adapter",
    "Cell",
    "Edge",
    "Excluded",
    "Expansion",
    "Factors",
    "Graph",
    "Node",
    "Rule",
    "Stream",
    "Study",
    "discover_adapters",
    "expand",
    "load_study",
    "select",
    "study_from_mapping",
]
