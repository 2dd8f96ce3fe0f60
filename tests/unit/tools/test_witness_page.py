# SPDX-License-Identifier: Apache-2.0
"""The page of `make witness`: what its two benchmarks write becomes its tables, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from needs import ROOT

TOOL = "tools/witness_page.py"
PAGE = "docs/methodology/witness.md"
MACHINE = {"machine": "x86_64", "kernel": "6.1", "cpus": 2}
DELAYED = {
    "adapter": "udp",
    "layer": "transport",
    "pairs": 24,
    "difference_ns": 50_400.0,
    "other": "wake",
    "other_ns": -1_200.0,
    "other_bound_ns": 5_000.0,
    "found": True,
    "alone": True,
}
COST = {
    "adapter": "udp",
    "layer": "(probes)",
    "pairs": 6,
    "probe_cost_ns": 1_500.0,
    "probe_cost_low_ns": -300.0,
    "probe_cost_high_ns": 2_600.0,
    "probe_cost_bound_ns": 2_140.0,
    "probe_cost_share": 0.021,
    "within": True,
    "unattributed_p50_share": 0.004,
}
PACKETS = {
    "adapter": "udp",
    "messages": 600,
    "found": 1.0,
    "within": 0.985,
    "error_ns": 1_700,
    "call_to_packet_p50_ns": 4_100.0,
    "packet_to_end_p50_ns": 35_000.0,
    "agrees": False,
}


def test_results_become_tables_between_the_marks(tmp_path: Path) -> None:
    for path in (TOOL, PAGE):
        copy = tmp_path / path
        copy.parent.mkdir(parents=True)
        copy.write_text((ROOT / path).read_text(encoding="utf-8"), encoding="utf-8")
    delays, packets = tmp_path / "witness.json", tmp_path / "packets.json"
    delays.write_text(json.dumps({"machine": MACHINE, "rows": [DELAYED, COST], "skipped": ["lcm"]}))
    packets.write_text(json.dumps({"rows": [PACKETS], "skipped": []}))
    subprocess.run([sys.executable, tmp_path / TOOL, delays, packets], check=True)
    before, after = ((where / PAGE).read_text(encoding="utf-8") for where in (ROOT, tmp_path))
    lines = after.splitlines()
    assert "| `udp` | `transport` | 24 | 50.4 | `wake` -1.2 of ± 5.0 | ✓ |" in lines
    assert "| `udp` | +1.5 (-0.3 to +2.6) | 2.1 | +2.1% | 0.4% | ✓ |" in lines
    assert "| `udp` | 600 | 100.0% | 98.5% | 1.7 | 4.1, 35.0 | **✗** |" in lines
    assert "Not on that machine: lcm." in lines
    head = before.partition("<!-- witness")[0]
    assert after.startswith(head) and after.endswith("<!-- end -->\n")
