# SPDX-License-Identifier: Apache-2.0
"""Emulated links: which commands make them, what is measured of them, and what is concluded from it."""

from __future__ import annotations

import ctypes
import errno
import json
import random
from dataclasses import replace

import pytest

from lagometer.agent.companions import Ended
from lagometer.agent.daemons import Done
from lagometer.agent.emulated import EmulationError
from lagometer.agent.link import commands
from lagometer.agent.link.__main__ import wake_on_time
from lagometer.agent.link.figures import (
    Figure,
    binomial_range,
    delay_figures,
    loss_figures,
    rate_figure,
    share_figure,
)
from lagometer.agent.link.orders import LinkOrders, LinkProfile, LinkStep, own_code, parsed, start_of
from lagometer.agent.link.words import in_words
from lagometer.run.companions.links import link_done, link_reasons, link_warnings

MS = 1_000_000
LTE = LinkProfile("lte", rate_bps=12_000_000, queue_bytes=300_000, delay_ns=35 * MS, jitter_ns=8 * MS)


def as_asked(figures: list[Figure]) -> dict[str, bool]:
    return {each.what: each.as_asked for each in figures}


def test_simple_links_need_a_shaper_and_a_filter_alone() -> None:
    cable = LinkProfile(
        "cable", rate_bps=100_000_000, queue_bytes=1_514_000, frame_overhead_bytes=24, loss=0.05
    )
    assert cable.simple and not LTE.simple and not replace(cable, burst=2.0).simple
    shaper, *filters = commands.kernel_commands(cable, "lo")
    assert " ".join(shaper) == (
        "tc qdisc add dev lo root stab overhead 24 mpu 84 linklayer ethernet "
        "tbf rate 100000000bit burst 12500b limit 1514000b"
    )
    # Lost where frames arrive: the sender's stack would hear of a frame that is dropped on its way out.
    assert "type filter hook ingress device lo priority 0;" in filters[1][-1]
    assert filters[2][6:] == ("numgen", "random", "mod", "1000000", "<", "50000", "counter", "drop")
    assert commands.kernel_commands(LinkProfile("plain"), "lo") == []


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (LTE, "limit 266 delay 35000us 8000us distribution normal rate 12000000bit 0"),
        (replace(LTE, distribution="uniform"), "limit 266 delay 35000us 13856.4us rate 12000000bit 0"),
        (
            LinkProfile("b", delay_ns=MS, loss=0.05, burst=4, reorder=0.02, duplicate=0.01),
            (
                "limit 100000 delay 1000us loss gemodel 1.31579% 25% duplicate 1% reorder 2% "
                "rate 100000000000bit 0"
            ),
        ),
        (
            LinkProfile("l", delay_ns=MS, loss=0.05),
            "limit 100000 delay 1000us loss random 5% rate 100000000000bit 0",
        ),
    ],
)
def test_netem_is_told_the_same(profile: LinkProfile, words: str) -> None:
    """Its arguments alone: not run where the kernel lacks it."""
    (command,) = commands.netem_commands(profile, "eth0")
    assert " ".join(command) == f"tc qdisc add dev eth0 root netem {words}"
    assert commands.netem_can(profile) and not commands.netem_can(
        replace(profile, distribution="exponential")
    )


def test_the_range_of_a_share_is_the_exact_binomial_one() -> None:
    low, high = binomial_range(0.05, 1000, 1e-4)
    chances = {0: 1.0}
    for _ in range(1000):  # the same, by convolution
        chances = {k: chances.get(k, 0) * 0.95 + chances.get(k - 1, 0) * 0.05 for k in range(101)}
    below = [sum(chances[k] for k in range(end + 1)) for end in range(100)]
    assert below[low - 1] <= 5e-5 < below[low]
    assert 1 - below[high] <= 5e-5 < 1 - below[high - 1]
    assert binomial_range(0.0, 1000, 1e-4) == (0, 0)
    assert not share_figure("loss", 0.0, 1, 1000).as_asked and share_figure("loss", 0.05, 50, 1000).as_asked


@pytest.mark.parametrize("distribution", ["normal", "uniform", "exponential"])
def test_delay_and_jitter_are_told_from_one_way_times(distribution: str) -> None:
    draw = random.Random(7)

    def deviations() -> float:
        if distribution == "normal":
            return draw.gauss(0, 1)
        return draw.uniform(-(3**0.5), 3**0.5) if distribution == "uniform" else draw.expovariate(1) - 1

    profile = LinkProfile("x", delay_ns=30 * MS, jitter_ns=5 * MS, distribution=distribution)
    right = [round(30 * MS + 5 * MS * deviations()) for _ in range(200)]
    assert as_asked(delay_figures(profile, right)) == {"delay_ns": True, "jitter_ns": True}
    held_up = [each + 400 * MS if place % 29 == 0 else each for place, each in enumerate(right)]
    assert as_asked(delay_figures(profile, held_up)) == {"delay_ns": True, "jitter_ns": True}
    assert not as_asked(delay_figures(profile, [each + 10 * MS for each in right]))["delay_ns"]
    assert not as_asked(delay_figures(profile, [30 * MS + (each - 30 * MS) // 3 for each in right]))[
        "jitter_ns"
    ]
    assert not as_asked(delay_figures(profile, right[:5]))["delay_ns"]


def test_losses_that_come_together_have_a_wider_range() -> None:
    bursts = LinkProfile("x", loss=0.05, burst=4)
    arrived = ([True] * 76 + [False] * 4) * 60
    assert as_asked(loss_figures(bursts, arrived)) == {"loss": True, "burst": True}
    scattered = ([True] * 19 + [False]) * 240
    assert as_asked(loss_figures(bursts, scattered)) == {"loss": True, "burst": False}
    single = loss_figures(LinkProfile("x", loss=0.05), arrived)[0]
    assert loss_figures(bursts, arrived)[0].high > single.high


def test_the_rate_is_that_of_steady_arrivals() -> None:
    cable = LinkProfile("x", rate_bps=100_000_000, frame_overhead_bytes=24)
    each_ns = 1538 * 80  # 8 bits of 10 ns
    steady = [place * each_ns for place in range(400)]
    assert rate_figure(cable, steady, 1514).measured == pytest.approx(1e8, rel=1e-6)
    stalled = [each + (5 * MS if place > 210 else 0) for place, each in enumerate(steady)]
    assert rate_figure(cable, stalled, 1514).as_asked
    assert not rate_figure(cable, [round(each * 1.1) for each in steady], 1514).as_asked
    assert not rate_figure(cable, steady[:8], 1514).as_asked
    lossy = LinkProfile("x", rate_bps=100_000_000, frame_overhead_bytes=24, loss=0.2)
    assert rate_figure(lossy, [each for place, each in enumerate(steady) if place % 5], 1514).as_asked


def test_a_figure_in_words_has_what_was_asked_and_measured() -> None:
    figure = Figure("delay_ns", 10e6, 2e6, 9e6, 11e6, 100)
    assert in_words(figure) == "delay: 10 ms asked, 2 ms measured (9 ms to 11 ms allowed, n=100)"
    assert "MTU: 1500 B asked, nothing measured" in in_words(Figure("mtu_bytes", 1500, None, 1500, 1500, 0))


def test_orders_survive_the_way_to_the_agent() -> None:
    orders = LinkOrders(
        LTE, "eth0", "10.77.0.1", ("10.77.0.1", "10.77.0.2", "10.77.0.3"), "/lagometer-link", 5
    )
    assert parsed(json.loads(json.dumps(orders.as_json()))) == orders
    assert orders.next == "10.77.0.2" and replace(orders, address="10.77.0.3").next == "10.77.0.1"


class Refusing:
    """A C library whose kernel permits nothing."""

    def prctl(self, *_: object) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1


def test_packets_that_may_not_leave_on_time_measure_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Refusing())
    with pytest.raises(EmulationError, match="timer slack not set: Operation not permitted"):
        wake_on_time()


def test_the_last_line_of_a_link_is_the_reason_of_the_trial() -> None:
    said = "link-differs: lte by user-space: delay: 35 ms asked"
    assert Ended(own_code(said) or "", "link", said).reason("exited with code 1") == said
    assert own_code("Traceback: no") is None and own_code("killed") is None


def done(program: dict[str, int], missed: int = 0) -> Done:
    lines = [
        json.dumps({"back_end": "user-space", "device": "lo"}),
        "link is ready",
        json.dumps({"did": {"program_missed": missed, "program": program}}),
    ]
    return Done("link", (), {}, 1.0, 5_000, None, 2, "\n".join(lines))


CHANGED = {"came": 50, "full": 0, "lost": 0, "carried": 50, "carried_bytes": 5000}


def changed(*late_ns: int | None) -> dict[str, object]:
    changes = [
        {"at_ns": (2 + place) * 1000 * MS, "late_ns": each, **CHANGED} for place, each in enumerate(late_ns)
    ]
    return {"steps": 2, "did": {"program": {"frames": 100, "changes": changes}}}


def test_a_change_that_did_not_come_in_time_fails_the_trial() -> None:
    assert not list(link_reasons(changed(1000, 5 * MS)))
    (late,) = link_reasons(changed(1000, 7_100_000))
    assert late == "link-differs: the change at 3 s came 7.10 ms late, more than 5 ms"
    (missed,) = link_reasons(changed(1000, None))
    assert missed == "link-differs: the change at 3 s was not carried out"
    assert list(link_reasons(changed(1000))) == ["link-differs: nothing is known of 1 of its 2 changes"]
    assert not list(link_reasons(changed(1000, None), ended_early=True))


def test_what_changes_with_time_is_left_to_the_program_with_its_rate() -> None:
    step = LinkStep(2000 * MS, 12_000_000, 35 * MS, 8 * MS, 1.0, outage=True)
    moving = replace(LTE, steps=(step,))
    words = commands.program_arguments(moving, "lo", 3)
    assert words[-1] == "change=2000000000,12000000,35000000,8000000,1.000000000"
    assert "rate_bps=12000000" in words and "queue_bytes=300000" in words
    assert not any(word.startswith("rate_bps") for word in commands.program_arguments(LTE, "lo", 3))
    assert not commands.netem_can(moving) and not replace(LinkProfile("plain"), steps=(step,)).simple
    made = commands.redirect_commands(moving, "lo")
    assert not any("tbf" in command for command in made)
    assert any("tbf" in command for command in commands.redirect_commands(LTE, "lo"))
    orders = LinkOrders(moving, "lo", "127.0.0.1", ("127.0.0.1",), "/lagometer-link")
    assert parsed(json.loads(json.dumps(orders.as_json()))) == orders
    said = b'{"back_end": "user-space"}\n{"realtime": true, "start_descriptor": 7}\nlink is ready\n'
    assert start_of(said) == 7 and start_of(b"link is ready\n[1]\n") is None


def test_frames_that_the_emulation_itself_lost_fail_the_trial() -> None:
    well = link_done(done({"frames": 1000, "late": 5, "overflowed": 0, "unsent": 0}))
    assert well["back_end"] == "user-space" and well["cpu_ns"] == 5_000
    assert not list(link_reasons(well)) and not list(link_warnings(well))
    (reason,) = link_reasons(link_done(done({"frames": 1000, "overflowed": 3, "unsent": 1}, missed=2)))
    assert reason.startswith("link-differs: the emulation itself lost 6 of 1,002 frames")
    (warning,) = link_warnings(link_done(done({"frames": 1000, "late": 50, "late_max_ns": 4_000_000})))
    assert (
        warning == "link-late: 50 of 1,000 frames left the emulated link more than 1 ms late, 4.00 ms at most"
    )
