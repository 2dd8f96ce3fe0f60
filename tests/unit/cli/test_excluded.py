# SPDX-License-Identifier: Apache-2.0
"""What can't run here: each reason once, with its cells."""

from __future__ import annotations

from rich.console import Console

from lagometer.cli.excluded import render_excluded

EXCLUDED = [
    ("ros2/a", "not [built]"),
    ("null/a", "null is for one process"),
    *((f"ros2/{name}", "not [built]") for name in "bcd"),
]


def printed(named_max: int | None) -> str:
    console = Console(width=80, record=True, no_color=True, highlight=False)
    with console.capture() as captured:
        render_excluded(EXCLUDED, console, named_max)
    return captured.get()


def test_each_reason_is_said_once_with_its_cells() -> None:
    assert (
        printed(None)
        == """
excluded 5: these cells can't run here
  not [built]
      ros2/a
      ros2/b
      ros2/c
      ros2/d
  null is for one process
      null/a
"""
    )


def test_of_many_cells_the_first_are_named() -> None:
    assert "      ros2/b\n      and 2 more (--json names all)\n  null" in printed(2)
    assert "more" not in printed(4)


def test_nothing_is_said_of_nothing() -> None:
    console = Console(width=80, record=True)
    with console.capture() as captured:
        render_excluded([], console)
    assert captured.get() == ""
