# SPDX-License-Identifier: Apache-2.0
"""Writes the table of the least layers into docs/methodology/layers.md from adapters/least_layers.json.

python tools/least_layers.py           rewrites the table
python tools/least_layers.py --check   exit 1 if the table does not match the file, or the file the adapters
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lagometer.conformance.least_layers import (  # noqa: E402  (the checkout's own, from any folder)
    contradictions,
    least_layers,
    write_page,
)
from lagometer.study.sidecar import Sidecar  # noqa: E402

PAGE = ROOT / "docs" / "methodology" / "layers.md"
PROMISES = ROOT / "adapters" / "least_layers.json"


def sidecars() -> dict[str, Sidecar]:
    """Those of this checkout, by adapter."""
    paths = sorted((ROOT / "adapters").glob("*/adapter.json"))
    return {path.parent.name: Sidecar.model_validate_json(path.read_bytes()) for path in paths}


def main(arguments: list[str]) -> int:
    """Runs the command line."""
    least = least_layers(PROMISES)
    text = PAGE.read_text(encoding="utf-8")
    page = write_page(text, least)
    problems = list(contradictions(least, sidecars()))
    if arguments == ["--check"] and page != text:
        problems.append(f"{PAGE.relative_to(ROOT)} is stale: run python tools/least_layers.py")
    elif page != text:
        PAGE.write_text(page, encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
