# SPDX-License-Identifier: Apache-2.0
"""docs/methodology/thresholds.md: every number by which something is judged, as the code has it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from lagometer.cli.main import app

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "methodology" / "thresholds.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and "constant" not in line
]
CONSTANT = re.compile(r"`([a-z_.]+)\.([A-Z_]+)` = (\([^)]*\)|[0-9][0-9_.e-]*)")
OPTION = re.compile(r"`(--[a-z]+)` (\S+)")
JUDGING = (
    *sorted((ROOT / "lagometer" / "stats").rglob("*.py")),
    *(ROOT / "lagometer" / "run" / f"{name}.py" for name in ("transport", "order")),
    ROOT / "lagometer" / "agent" / "observe" / "clocks.py",
    ROOT / "lagometer" / "agent" / "link" / "figures.py",
    ROOT / "lagometer" / "agent" / "cpu_groups.py",
    ROOT / "lagometer" / "run" / "devices.py",
    ROOT / "lagometer" / "run" / "wakeup.py",
    *(ROOT / "lagometer" / "run" / "search" / f"{name}.py" for name in ("rate_search", "searching")),
    *(ROOT / "lagometer" / "report" / "samples" / f"{name}.py" for name in ("period", "curves")),
)
# What judges nothing: units, and how exactly or how long something is computed.
NO_THRESHOLDS = {
    "agent.cpu_groups": {"SPIN_NS", "AHEAD_NS", "ATTEMPTS", "STALL_NS"},
    "run.devices": {"SECONDS_MAX", "_PR_SET_PDEATHSIG"},
    "agent.link.figures": {"NS_PER_S", "JITTER_ENDS", "MEDIAN_ERROR"},
    "stats.interval.bootstrap": {"BINS_MAX"},
    "stats.verdict.causes": {"NS_PER_S"},
    "stats.verdict.reasons": {"NAMED_MAX"},
    "stats.cell.cell_estimates": {"INFINITE_NS"},
    "stats.program.endpoints": {"FOREVER_NS"},
    "stats.program.ros1": {"LENGTH_BYTES"},
    "stats.program.heard": {"ENCAPSULATION_BYTES", "NS_PER_S", "INVALID_NS"},
    "stats.program.messages": {"UNKNOWN_NS", "NOT_ONE", "SEVERAL"},
    "stats.trial.rows": {
        *("DELIVERED", "LOST", "OVERWRITTEN", "CENSORED", "REJECTED", "DUPLICATE", "UNMATCHED", "UNANSWERED"),
        "UNREACHABLE",
        "UNKNOWN_NS",
    },
    "stats.interval.power": {
        "TRIALS_FORESEEN",
        "RELABELLED_IN_PAIRS",
        "RELABELLED",
        "TRIED_MAX",
        "RUN",
        "RUNS_MIN",
        "DRAWN",
        "SEED",
        "RESAMPLES",
        "DOUBLINGS",
    },
    "stats.trial.layers": {"VENDOR_FROM", "LAYER_END", "BY_SEQUENCE", "BY_TIME"},
    "stats.trial.sent": {"NOWHERE"},
    "stats.trial.reach": {"FOREVER_NS", "NEVER_NS"},
    "stats.trial.run_queue": {
        *("NOT_KNOWN", "RUNNING", "WAITING", "ASLEEP", "UNKNOWN", "_IN", "_OUT", "_WAKE", "_BORN", "_MOVE"),
    },
    "stats.trial.scheduling": {"INSTEAD_MAX"},
    "stats.cell.scheduling": {"INSTEAD_MAX"},
    "stats.trial.way": {"THREAD_NAME_MAX", "UNKNOWN_THREAD"},
    "stats.trial.calls": {"HOPS_MAX"},
    "stats.trial.hops": {"COMPARED"},
    "stats.trial.timelines": {"SLOWEST", "MESSAGES_MAX", "CALLS_MAX", "STATES_MAX"},
    "stats.interval.sequential": {"TRIALS_FORESEEN"},
    "stats.interval.shares": {
        *("ENUMERATED_MAX", "DRAWN_PER_ALPHA", "DRAWN_MIN", "DRAWN_MAX", "SEED", "TIE", "RATIO_MAX", "STEPS"),
        "MEDIAN",
    },
    "stats.interval.blocks": {"SMALLEST_NS", "ROUNDING", "EQUAL"},
    "run.wakeup": {"NS_PER_S", "GRACE_S", "TEXT_BYTES_MAX"},
    "run.search.rate_search": {"DIGITS"},
    "report.samples.curves": {"_STEPS_PER_NINE", "_BAND_PERMILLE", "_ALWAYS"},
    "report.samples.period": {"MESSAGES_MAX"},
}


def told() -> dict[tuple[str, str], Any]:
    """The values in the table, by module and name."""
    cells = " ".join(row[1] for row in ROWS)
    return {(module, name): ast.literal_eval(value) for module, name, value in CONSTANT.findall(cells)}


def numbers(path: Path) -> Iterator[str]:
    """The names that a module binds to numbers, or tuples of them, at its top."""
    module = importlib.import_module(dotted(path))
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                value = getattr(module, each.id) if isinstance(each, ast.Name) else None
                values = value if isinstance(value, tuple) and value else (value,)
                if all(isinstance(one, int | float) for one in values):
                    assert isinstance(each, ast.Name)
                    yield each.id


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize(("module", "name"), told(), ids=lambda part: part)
def test_the_code_has_what_the_table_says(module: str, name: str) -> None:
    value = getattr(importlib.import_module(f"lagometer.{module}"), name)
    assert value == pytest.approx(told()[module, name])


@pytest.mark.parametrize("path", JUDGING, ids=lambda path: path.stem)
def test_every_number_of_the_code_is_in_the_table(path: Path) -> None:
    module = dotted(path).removeprefix("lagometer.")
    listed = {name for place, name in told() if place == module}
    unlisted = set(numbers(path)) - listed
    assert unlisted == NO_THRESHOLDS.get(module, set()), "docs/methodology/thresholds.md lacks some"


def test_defaults_of_the_search_are_as_told() -> None:
    command: Any = get_command(app)
    defaults = {each.opts[0]: each.default for each in command.commands["search"].params}
    found = OPTION.findall(" ".join(row[1] for row in ROWS))
    assert found == [("--loss", str(defaults["--loss"])), ("--repeats", str(defaults["--repeats"]))]


def test_every_threshold_has_a_source_or_is_called_ours() -> None:
    assert len(ROWS) > 40 and all(len(row) == 3 for row in ROWS)
    for _, constants, source in ROWS:
        assert CONSTANT.search(constants) or OPTION.search(constants), constants
        assert source
        if source.startswith("ours"):
            assert len(source) > len("ours: ") + 20, f"{constants}: why?"
