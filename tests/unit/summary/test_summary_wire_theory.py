# SPDX-License-Identifier: Apache-2.0
"""What a link could carry at most, against frames that were counted by hand."""

from __future__ import annotations

import pytest

from lagometer.summary.wire_theory import Network

FAST_ETHERNET = Network(1500, 100_000_000, 24)


@pytest.mark.parametrize(
    ("payload_bytes", "frames"),
    [
        (64, [14 + 20 + 8 + 64]),
        (1472, [14 + 1500]),  # the longest that is not cut
        (1473, [14 + 1500, 14 + 20 + 1]),
        (3000, [14 + 1500, 14 + 1500, 14 + 20 + 8 + 3000 - 2 * 1480]),
        (65_507, [*[14 + 1500] * 44, 14 + 20 + 8 + 65_507 - 44 * 1480]),  # the longest datagram
        (65_508, [*[14 + 1500] * 44, 14 + 20 + 8 + 65_507 - 44 * 1480, 14 + 20 + 8 + 1]),
    ],
)
def test_a_message_takes_the_headers_of_its_fragments(payload_bytes: int, frames: list[int]) -> None:
    assert FAST_ETHERNET.frames_of(payload_bytes) == (len(frames), sum(frames))
    assert FAST_ETHERNET.least_bytes_per_payload_byte(payload_bytes) == sum(frames) / payload_bytes
    # Beside its bytes a frame takes preamble, check sequence and gap of the rate.
    taken_bytes = sum(each + 24 for each in frames)
    theoretical = FAST_ETHERNET.theoretical_bytes_per_s(payload_bytes)
    assert theoretical == pytest.approx(12_500_000 * payload_bytes / taken_bytes)
    assert FAST_ETHERNET.ideal_bytes_per_s == 12_500_000


def test_fragments_but_the_last_are_multiples_of_eight_bytes() -> None:
    assert Network(1006).frames_of(2000) == (3, 2008 + 3 * 34)  # 984 B each, where 986 B would fit
    assert Network(1006).frames_of(978) == (1, 1020)  # what is not cut may fill it


def test_without_a_rate_nothing_is_a_limit() -> None:
    network = Network(1500)
    assert network.ideal_bytes_per_s is None and network.theoretical_bytes_per_s(64) is None
