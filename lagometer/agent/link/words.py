# SPDX-License-Identifier: Apache-2.0
"""Puts the figures of a link into words."""

from __future__ import annotations

from lagometer.agent.link.figures import Figure

_NAMES = {"mtu_bytes": "MTU", "burst": "frames lost in a row"}


def in_words(figure: Figure) -> str:
    """Returns what was requested and what was measured, for people."""
    name = _NAMES.get(figure.what, figure.what.rpartition("_")[0] or figure.what)
    allowed = f"{quantity(figure.what, figure.low)} to {quantity(figure.what, figure.high)}"
    measured = "nothing" if figure.measured is None else quantity(figure.what, figure.measured)
    asked = quantity(figure.what, figure.asked)
    return f"{name}: {asked} asked, {measured} measured ({allowed} allowed, n={figure.n})"


def quantity(name: str, value: float) -> str:
    """Returns a number with its unit."""
    if name.endswith("_ns"):
        # Not by lagometer.units, which formats all other durations: an agent uses only the standard library.
        return f"{value / 1e6:.3g} ms"
    if name.endswith("_bps"):
        return f"{value / 1e6:.4g} Mbit/s"
    if name.endswith("_bytes"):
        return f"{value:.0f} B"
    return f"{value:.3g}" if name == "burst" else f"{value * 100:.3g} %"
