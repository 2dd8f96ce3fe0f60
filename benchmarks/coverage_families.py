# SPDX-License-Identifier: Apache-2.0
"""Latencies with known true quantiles: combinations of a correlation between messages and a distribution.

Messages of a trial follow a Gaussian AR(1) process; its coefficient is a family's `phi`. A monotone function
maps its values to latencies (a Gaussian copula), so they have exactly the named distribution. Trials are
independent of each other. All times are in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import integrate, optimize, signal, special

Floats = npt.NDArray[np.float64]

PHIS = (0.0, 0.5, 0.9, 0.99)
SHAPES = ("lognormal", "pareto", "markov", "offset")

TYPICAL_NS = 100_000.0
SPREAD = 0.3  # standard deviation of the logarithm
SPREAD_OF_STATE = 0.2
PARETO_INDEX = 2.0  # its variance is infinite
SLOW_SHARE, SLOW_FACTOR = 0.1, 4.0
SLOW_MESSAGES = 20.0  # mean length of a stay in the slow state
OFFSET_SD_NS = 0.1 * TYPICAL_NS  # half of this was observed between the medians of a vendor's tool


def draw(shape: str, phi: float, trials: int, messages: int, generator: np.random.Generator) -> Floats:
    """The latencies of `trials` independent trials, one per row."""
    normal = _autoregressive(phi, trials, messages, generator)
    if shape == "lognormal":
        return TYPICAL_NS * np.exp(SPREAD * normal)
    if shape == "pareto":
        return TYPICAL_NS * special.ndtr(-normal) ** (-1.0 / PARETO_INDEX)
    if shape == "markov":
        slow = _slow(trials, messages, generator)
        return TYPICAL_NS * np.exp(SPREAD_OF_STATE * normal) * np.where(slow, SLOW_FACTOR, 1.0)
    offsets = OFFSET_SD_NS * generator.standard_normal((trials, 1))
    return TYPICAL_NS * np.exp(SPREAD * normal) + offsets


def true_quantile(shape: str, share: float) -> float:
    """The quantile of a random message of a random trial; by formula or quadrature."""
    if shape == "lognormal":
        return float(TYPICAL_NS * np.exp(SPREAD * special.ndtri(share)))
    if shape == "pareto":
        return float(TYPICAL_NS * (1.0 - share) ** (-1.0 / PARETO_INDEX))
    below = _below_markov if shape == "markov" else _below_offset
    return _solve(below, share)


def _solve(below: Callable[[float], float], share: float) -> float:
    found = optimize.brentq(
        lambda limit: below(limit) - share, TYPICAL_NS / 10.0, TYPICAL_NS * 50.0, xtol=1e-3
    )
    return float(found)


def _below_markov(limit: float) -> float:
    fast = special.ndtr(np.log(limit / TYPICAL_NS) / SPREAD_OF_STATE)
    slow = special.ndtr(np.log(limit / TYPICAL_NS / SLOW_FACTOR) / SPREAD_OF_STATE)
    return float((1.0 - SLOW_SHARE) * fast + SLOW_SHARE * slow)


def _below_offset(limit: float) -> float:
    def density(offset: float) -> float:  # in standard deviations
        rest = limit - OFFSET_SD_NS * offset
        if rest <= 0.0:
            return 0.0
        inside = special.ndtr(np.log(rest / TYPICAL_NS) / SPREAD)
        return float(inside * np.exp(-offset * offset / 2.0) / np.sqrt(2.0 * np.pi))

    return float(integrate.quad(density, -9.0, 9.0, epsabs=1e-10, limit=200)[0])


def _autoregressive(phi: float, trials: int, messages: int, generator: np.random.Generator) -> Floats:
    """Stationary from the first message on, standard normal."""
    shocks = generator.standard_normal((trials, messages))
    shocks[:, 1:] *= np.sqrt(1.0 - phi * phi)
    found: Floats = signal.lfilter([1.0], [1.0, -phi], shocks, axis=1)
    return found


def _slow(trials: int, messages: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which messages find a stationary two-state Markov chain in its slow state."""
    leave = 1.0 / SLOW_MESSAGES
    enter = leave * SLOW_SHARE / (1.0 - SLOW_SHARE)
    chance = generator.random((messages, trials))
    state = np.empty((messages, trials), dtype=np.bool_)
    state[0] = chance[0] < SLOW_SHARE
    for message in range(1, messages):
        state[message] = chance[message] < np.where(state[message - 1], 1.0 - leave, enter)
    return state.T
