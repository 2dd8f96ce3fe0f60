# SPDX-License-Identifier: Apache-2.0
"""Does a finding name only what is true? The rack as it is, with nothing wrong in it, raises no other.

It runs studies/rack.yaml, every middleware that is installed, and counts findings by kind and cell. Three
sorts are told apart. *True*: the few kinds in KNOWN, each only in the cells of which it is true, with the
reason. *The machine*: what the machine did to the trials meanwhile; another machine, or another hour, has
others. *False alarms*: all others; one is enough to fail. Preempted trials, which are noise and no finding,
are counted beside those of the machine.

The short form runs the smallest payload as shipped, for a moment each.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from results import ROOT, write_result

from lagometer.run.campaign import Assignment, CampaignRun
from lagometer.store.reader import open_campaign
from lagometer.study import Study, discover_adapters, expand, load_study
from lagometer.summary.data import Finding
from lagometer.summary.summarise import summarise

RACK = ROOT / "studies" / "rack.yaml"
SMOKE_NS = 500_000_000
SMOKE_MATRIX: dict[str, tuple[object, ...]] = {"payload": (64,), "profile": ("default",)}
LARGER = re.compile(r"/[0-9]+[KM]B/")  # a pattern for payloads that the short form has not
TRUE, MACHINE, ALARM = "true", "machine", "ALARM"


@dataclass(frozen=True)
class Holds:
    """A kind that may be raised in the cells of these patterns, since it is true of them."""

    kind: str
    cells: tuple[str, ...]
    reason: str


DATAGRAMS = "1 MB goes in datagrams, and the kernel gives a socket 208 KB unless it is told otherwise"
RATE = "400 messages of 1 MB a second are 420 MB/s, more than some middleware carries on few CPUs"
KNOWN = (
    Holds(
        "best-effort-over-udp",
        ("fastdds/*",),
        "Fast DDS 2.9.1 sends best-effort messages by UDP between processes, as the observed transport shows",
    ),
    Holds("nagle-waits", ("mqtt/*", "ros1/*"), "TCP without TCP_NODELAY waits for late acknowledgements"),
    Holds(
        "lost-in-a-queue",
        ("ecal-py/*",),
        "eCAL overwrites in shared memory what a subscriber has not copied yet, without notice",
    ),
    Holds(
        "middleware-noticed-loss",
        ("fastdds/*/1MB/*", "fastdds/*/64KB/*"),
        "Fast DDS reports the best-effort messages whose datagrams the kernel dropped",
    ),
    Holds("message-exceeds-receive-buffer", ("*/1MB/*",), DATAGRAMS),
    Holds("nothing-received-too-large", ("*/1MB/*",), DATAGRAMS),
    Holds("nothing-received", ("mqtt/*/1MB/*",), f"{RATE}, and at first all wait in the broker"),
    Holds("receive-buffer-overflow", ("*/1MB/*", "*/64KB/*"), f"{DATAGRAMS}; of 64 KB it holds three"),
    *(
        Holds(kind, ("*/1MB/*",), RATE)
        for kind in (
            *("rate-beyond-the-sender", "publish-blocks", "sender-refused", "queue-builds-up"),
            *("depth-bounds-the-sender", "lost-in-a-queue", "still-on-the-way"),
        )
    ),
)
OF_THE_MACHINE = frozenset(
    {
        *("hypervisor-stole-time", "cpu-quota", "too-hot", "clock-stepped", "realtime-throttled"),
        *("not-steady", "waited-for-a-cpu", "no-memory", "worker-killed"),
        "tcp-retransmitted",  # a loopback loses nothing: the other side did not get to run in time
    }
)
# What this kind says where the call was not to blame.
NOT_RUN_IN_TIME = ("rate-beyond-the-sender", "its thread did not get to run in time")


def sort_of(finding: Finding) -> tuple[str, str]:
    """Which of the three sorts a finding is, and why."""
    if finding.kind in OF_THE_MACHINE or (
        finding.kind == NOT_RUN_IN_TIME[0] and NOT_RUN_IN_TIME[1] in finding.what
    ):
        return MACHINE, "what the machine did meanwhile"
    for known in KNOWN:
        in_cells = any(fnmatch.fnmatchcase(finding.cell, pattern) for pattern in known.cells)
        if known.kind == finding.kind and in_cells:
            return TRUE, known.reason
    return ALARM, finding.number


def counted(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """A row for each kind and sort, false alarms first, with the cells in which it was raised."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for finding in findings:
        sort, reason = sort_of(finding)
        row = rows.setdefault(
            (sort, finding.kind),
            {"kind": finding.kind, "sort": sort, "cells": [], "reason": reason, "what": finding.what},
        )
        row["cells"].append(finding.cell)
    order = (ALARM, TRUE, MACHINE)
    return sorted(rows.values(), key=lambda row: (order.index(row["sort"]), row["kind"]))


def shortened(study: Study) -> Study:
    """The short form of the rack."""
    exclude = tuple(each for each in study.exclude if not LARGER.search(each))
    return replace(study, duration_ns=SMOKE_NS, matrix={**study.matrix, **SMOKE_MATRIX}, exclude=exclude)


def measured(study: Study, out: Path) -> dict[str, Any]:
    """Runs the study; what it found, and what it ran."""
    adapters = discover_adapters(study.options)
    expansion = expand(study, adapters)
    if not expansion.cells:
        raise RuntimeError(f"nothing can be measured here: {expansion.excluded[0].reason}")
    CampaignRun(Assignment(study, expansion.cells, expansion.excluded, adapters, out)).carry_out()
    campaign = open_campaign(out)
    summary = summarise(campaign)
    preempted = summary.preemption
    here = {cell.factors.adapter for cell in expansion.cells}
    return {
        "findings": summary.findings,
        "cells": len(expansion.cells),
        "adapters": sorted(here),
        "not_here": sorted({each.cell.partition("/")[0] for each in expansion.excluded} - here),
        "valid": len({row.cell for row in summary.rows if row.trial is None and row.valid}),
        "trials": summary.counts.trials,
        "preempted": 0 if preempted is None else preempted.trials_outstanding,
    }


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Kind, sort, how many cells, the first of them, and the reason below."""
    print(f"{'kind':<32} {'sort':<8} {'cells':>5}  where")
    for row in rows:
        cells = row["cells"]
        more = f" and {len(cells) - 2} more" if len(cells) > 2 else ""
        print(f"{row['kind']:<32} {row['sort']:<8} {len(cells):>5}  {', '.join(cells[:2])}{more}")
        print(f"{'':<48}{row['reason']}")
        if row["sort"] == ALARM:
            print(f"{'':<48}{row['what']}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the rack, prints, writes out/bench/alarms.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="64 B as shipped alone, half a second each")
    parser.add_argument("--out", type=Path, help="keep the campaign in this new folder")
    given = parser.parse_args(arguments)
    study = load_study(RACK)
    with tempfile.TemporaryDirectory(prefix="lagometer-alarms-") as folder:
        out = given.out or Path(folder) / "out"
        result = measured(shortened(study) if given.smoke else study, out)
    rows = counted(result.pop("findings"))
    print_table(rows)
    alarms = sum(len(row["cells"]) for row in rows if row["sort"] == ALARM)
    of_machine = sum(len(row["cells"]) for row in rows if row["sort"] == MACHINE)
    print(
        f"{alarms} false alarms in {result['cells']} cells of {len(result['adapters'])} adapters "
        f"({result['valid']} cells are valid); of the machine: {of_machine}, and {result['preempted']} of "
        f"{result['trials']} trials preempted; not here: {', '.join(result['not_here']) or 'none'}"
    )
    result["alarms"] = alarms
    passed = alarms == 0
    path = write_result("alarms", passed, rows or [{"kind": None, "cells": []}], smoke=given.smoke, **result)
    print(f"{'pass' if passed else 'FAIL'}: {path}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
