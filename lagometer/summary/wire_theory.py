# SPDX-License-Identifier: Apache-2.0
"""The most a network could carry: the limit for the payload alone, and the limit of a link with its headers.

At best, a message is one UDP datagram, or several if it is too long for one. IP cuts datagrams into fragments
that fill the MTU. Nothing else counts: no middleware header, no acknowledgement.
"""

from __future__ import annotations

from dataclasses import dataclass

BITS = 8
ETHERNET_BYTES = 14  # addresses and type (IEEE 802.3); a frame's other overhead is the link's own
IP_BYTES = 20  # RFC 791, without options
UDP_BYTES = 8  # RFC 768
FRAGMENT_UNIT_BYTES = 8  # all fragments but the last have a multiple of this size (RFC 791)
DATAGRAM_BYTES_MAX = 65_535 - IP_BYTES - UDP_BYTES
ETHERNET_MTU_BYTES = 1500
LOOPBACK_MTU_BYTES = 65_536


@dataclass(frozen=True)
class Network:
    """The network messages cross. rate_bps: of frames, each with `frame_overhead_bytes` in addition to its
    own bytes; 0: no limit."""

    mtu_bytes: int
    rate_bps: int = 0
    frame_overhead_bytes: int = 0

    @property
    def ideal_bytes_per_s(self) -> float | None:
        """What it would carry if a message were its payload alone."""
        return self.rate_bps / BITS if self.rate_bps else None

    def frames_of(self, payload_bytes: int) -> tuple[int, int]:
        """The least number of frames a message takes, and their bytes as its device counts them."""
        frames, sent_bytes = 0, 0
        for datagram_bytes, count in _datagrams(payload_bytes):
            room_bytes = self.mtu_bytes - IP_BYTES
            whole = datagram_bytes <= room_bytes
            per_frame = room_bytes if whole else room_bytes - room_bytes % FRAGMENT_UNIT_BYTES
            needed = -(-datagram_bytes // per_frame)
            frames += count * needed
            sent_bytes += count * (datagram_bytes + needed * (ETHERNET_BYTES + IP_BYTES))
        return frames, sent_bytes

    def least_bytes_per_payload_byte(self, payload_bytes: int) -> float:
        """Bytes of frames per payload byte."""
        return self.frames_of(payload_bytes)[1] / payload_bytes

    def theoretical_bytes_per_s(self, payload_bytes: int) -> float | None:
        """The largest payload rate it can carry; None without a limit."""
        frames, sent_bytes = self.frames_of(payload_bytes)
        if not self.rate_bps:
            return None
        taken_bytes = sent_bytes + frames * self.frame_overhead_bytes
        return self.rate_bps / BITS * payload_bytes / taken_bytes


def _datagrams(payload_bytes: int) -> list[tuple[int, int]]:
    """The sizes of a message's datagrams, with their headers, and how many of each."""
    full, rest_bytes = divmod(payload_bytes, DATAGRAM_BYTES_MAX)
    datagrams = [(DATAGRAM_BYTES_MAX + UDP_BYTES, full)] if full else []
    return [*datagrams, (rest_bytes + UDP_BYTES, 1)] if rest_bytes else datagrams
