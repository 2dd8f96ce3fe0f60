# SPDX-License-Identifier: Apache-2.0
"""Writes the conformance matrix into docs/adapters/matrix.md from results of `lagometer conformance --json`.

python tools/conformance_matrix.py [RESULT.json ...]
    keeps the rows of adapters that did not run again; exit 1 if an ability fails that did not fail before
python tools/conformance_matrix.py --check
    exit 1 if the table does not match the tree
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lagometer.conformance.intermittent import INTERMITTENT, Intermittent, intermittent_of  # noqa: E402
from lagometer.conformance.manual import MANUAL, Manual  # noqa: E402
from lagometer.conformance.matrix import (  # noqa: E402  (the checkout's own, from any folder)
    merged,
    merged_reasons,
    read_reasons,
    read_table,
    rows_of,
    stale_in_form,
    stale_in_intermittent,
    stale_in_verdicts,
    worse,
    write_asks,
    write_manuals,
    write_table,
)
from lagometer.study.own_installation import PRODUCTS  # noqa: E402

PAGE = ROOT / "docs" / "adapters" / "matrix.md"
ASKS_PAGE = ROOT / "docs" / "adapters" / "conformance.md"


def adapters_of_the_tree() -> list[str]:
    """The names in the sidecars below adapters/, and those that need the user's own installation."""
    sidecars = sorted((ROOT / "adapters").glob("*/adapter.json"))
    names = [json.loads(path.read_text(encoding="utf-8"))["name"] for path in sidecars]
    return [*names, *(name for name in PRODUCTS if name not in names)]


def manuals_of_the_tree() -> dict[str, Manual]:
    """The manuals, by adapter."""
    paths = sorted((ROOT / "adapters").glob(f"*/{MANUAL}"))
    return {path.parent.name: Manual.model_validate_json(path.read_bytes()) for path in paths}


def intermittent_of_the_tree() -> dict[str, dict[str, Intermittent]]:
    """What fails in some runs, by adapter and ability."""
    folders = sorted(path.parent for path in (ROOT / "adapters").glob(f"*/{INTERMITTENT}"))
    return {folder.name: intermittent_of(folder) for folder in folders}


def main(arguments: list[str]) -> int:
    """Runs the command line."""
    text = PAGE.read_text(encoding="utf-8")
    adapters = adapters_of_the_tree()
    if arguments == ["--check"]:
        problems = stale_in_form(text, adapters)
        if not problems and write_manuals(text, manuals_of_the_tree()) != text:
            problems = ["what the manuals have is not what adapters/*/manual.json say"]
        problems = problems or stale_in_verdicts(text, manuals_of_the_tree())
        problems = problems or stale_in_intermittent(text, intermittent_of_the_tree())
        asks = ASKS_PAGE.read_text(encoding="utf-8")
        if write_asks(asks) != asks:
            problems.append("what the checks ask for is not what conformance/asks.py says")
        for problem in problems:
            print(f"docs/adapters: the conformance matrix is stale: {problem}", file=sys.stderr)
        if problems:
            print("run `python tools/conformance_matrix.py` (or `make conformance`)", file=sys.stderr)
        return 1 if problems else 0
    before = merged(read_table(text), {}, adapters)
    rows = before
    reasons = read_reasons(text)
    known = intermittent_of_the_tree()
    for name in arguments:
        read = json.loads(Path(name).read_text(encoding="utf-8"))
        rows = merged(rows, rows_of(read, known), adapters)
        reasons = merged_reasons(reasons, read, known)
    page = write_table(text, rows, reasons)
    PAGE.write_text(write_manuals(page, manuals_of_the_tree()), encoding="utf-8")
    ASKS_PAGE.write_text(write_asks(ASKS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    problems = worse(before, rows)
    for problem in problems:
        print(f"docs/adapters/matrix.md: worse than before: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
