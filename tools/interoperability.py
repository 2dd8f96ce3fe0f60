# SPDX-License-Identifier: Apache-2.0
"""Runs each pair of middleware that may match, with ROS 2 messages, and writes docs/INTEROPERABILITY.md.

python tools/interoperability.py [--out DIR] [--only PARTY]... [--with PARTY] [--kind TYPE]...
    keeps the results of pairs that did not run again; exit 1 if a pair fails that worked before
python tools/interoperability.py --check
    exit 1 if the page does not match the results, or the adapters
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lagometer.conformance.interoperability import (  # noqa: E402  (the checkout's own)
    KINDS,
    PARTIES,
    Party,
    Verdicts,
    again,
    as_json,
    from_json,
    pairs,
    study_of,
    verdicts_of,
    worse,
    write_party,
)
from lagometer.conformance.interoperability_page import contradictions, page  # noqa: E402
from lagometer.store.reader import Campaign, open_campaign  # noqa: E402
from lagometer.study.adapters import discover_adapters, load_adapter, probe  # noqa: E402

PAGE = ROOT / "docs" / "INTEROPERABILITY.md"
KEPT = ROOT / "docs" / "interoperability.json"
ATTEMPTS = 2  # for a pair that does not work
TRIALS_FAILED = 3  # the exit code of `lagometer run` for that


def run(
    parties: Sequence[Party], kinds: Sequence[str], out: Path, with_party: str | None = None
) -> tuple[Verdicts, dict[str, str]]:
    """Runs all pairs of these parties, or those with one of them.

    Omits parties whose adapter is missing.
    """
    found = discover_adapters()
    there = [party for party in parties if party.adapter in found and found[party.adapter].built]
    for party in parties:
        if party not in there:
            print(f"{party.name} is left out: {found[party.adapter].missing}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for party in there:
            write_party(Path(folder), party, found[party.adapter], there)
        study = Path(folder) / "study.yaml"
        study.write_text(json.dumps(study_of(there, kinds, with_party)), encoding="utf-8")
        campaigns: list[Campaign] = []
        cells: list[str] = []
        for attempt in range(ATTEMPTS):
            campaigns.append(_campaign(study, Path(folder), out / str(attempt), cells))
            cells = again(campaigns[-1])
            if not cells:
                break
    versions = {party.name: probe(found[party.adapter]).version or "unknown" for party in there}
    return verdicts_of(campaigns), versions


def _campaign(study: Path, adapters: Path, out: Path, cells: Sequence[str]) -> Campaign:
    command = [
        sys.executable,
        "-m",
        "lagometer.cli.main",
        "run",
        str(study),
        "--out",
        str(out),
        "--no-report",
    ]
    command += [word for cell in cells for word in ("--select", cell)]
    others = os.environ.get("LAGOMETER_ADAPTER_PATH", "")
    path = os.pathsep.join(filter(None, [str(adapters), others]))
    result = subprocess.run(command, env={**os.environ, "LAGOMETER_ADAPTER_PATH": path}, check=False)
    if result.returncode not in (0, TRIALS_FAILED):
        sys.exit(result.returncode)
    return open_campaign(out)


def kept() -> tuple[Verdicts, dict[str, str]]:
    """The earlier results."""
    return from_json(json.loads(KEPT.read_text(encoding="utf-8"))) if KEPT.exists() else ({}, {})


def check() -> int:
    """Prints what does not match."""
    verdicts, versions = kept()
    sidecars = {party.adapter: load_adapter(ROOT / "adapters" / party.adapter).sidecar for party in PARTIES}
    problems = list(contradictions(verdicts, PARTIES, sidecars))
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(verdicts, versions, PARTIES):
        problems.append(f"{PAGE.name} is not what {KEPT.name} says")
    for problem in problems:
        print(f"docs/{PAGE.name}: {problem}", file=sys.stderr)
    if problems:
        print("run `python tools/interoperability.py` (or `make interoperability`)", file=sys.stderr)
    return 1 if problems else 0


def main(arguments: Sequence[str]) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = [party.name for party in PARTIES]
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "interoperability")
    parser.add_argument("--only", action="append", choices=names, metavar="PARTY", help=", ".join(names))
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="TYPE", help=", ".join(KINDS))
    parser.add_argument("--with", dest="with_party", choices=names, metavar="PARTY", help="only its pairs")
    given = parser.parse_args(arguments)
    if given.check:
        return check()
    parties = [party for party in PARTIES if given.only is None or party.name in given.only]
    verdicts, versions = kept()
    new_verdicts, new_versions = run(parties, given.kind or KINDS, given.out, given.with_party)
    problems = worse(verdicts, new_verdicts)
    verdicts |= new_verdicts
    ordered = {pair: verdicts[pair] for pair in pairs(PARTIES) if pair in verdicts}
    versions |= new_versions
    text = json.dumps(as_json(ordered, versions), indent=1, ensure_ascii=False)
    KEPT.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(ordered, versions, PARTIES), encoding="utf-8")
    for problem in problems:
        print(f"docs/{PAGE.name}: worse than before: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
