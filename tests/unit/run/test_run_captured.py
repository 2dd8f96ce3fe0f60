# SPDX-License-Identifier: Apache-2.0
"""What captured packets amount to: each counted once, by what it is for, and what was sent again."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from needs import need

from lagometer.agent.capture import Captured
from lagometer.run.captured import (
    BY_PURPOSE,
    FIELDS,
    CaptureError,
    Packet,
    counted,
    packet_of,
    packets_of,
    sent_here,
    wire_counts,
)
from lagometer.store.observed import WIRE_COUNTS

USER, BUILT_IN = "0x00000d02", "0x000100c2"


def packet(number: int, **fields: str) -> Packet:
    """The packet that these fields describe, as tshark writes them; a second after the last one."""
    given = {
        "frame.number": str(number),
        "frame.time_epoch": f"{number}.5",
        "frame.len": "100",
        "frame.interface_name": "lo",
        "ip.src": "127.0.0.1",
        "ip.dst": "127.0.0.1",
        "udp.dstport": "7411",
        "rtps.guidPrefix.src": "01",
        **{name.replace("__", "."): value for name, value in fields.items()},
    }
    return packet_of([given.get(name, "") for name in FIELDS])


def data(number: int, sequence: int, writer: str = USER, **fields: str) -> Packet:
    return packet(
        number,
        rtps__sm__id="0x09,0x15",
        rtps__sm__wrEntityId=writer,
        rtps__sm__seqNumber=str(sequence),
        **fields,
    )


def fragment(number: int, first: int, count: int) -> Packet:
    shares = {"rtps__data_frag__number": str(first), "rtps__data_frag__num_fragments": str(count)}
    ids = {"rtps__sm__id": "0x09,0x16", "rtps__sm__wrEntityId": USER, "rtps__sm__seqNumber": "7"}
    return packet(number, **ids, **shares)


def test_packets_count_by_what_they_are_for() -> None:
    heartbeat = {"rtps__sm__id": "0x0e,0x07", "rtps__sm__wrEntityId": USER, "rtps__sm__seqNumber": "1,3"}
    packets = [
        data(1, 1, BUILT_IN, frame__len="400"),
        data(2, 1),
        packet(3, **heartbeat, frame__len="80"),
        packet(4, rtps__sm__id="0x06", rtps__sm__wrEntityId=USER, rtps__sm__seqNumber="3", frame__len="70"),
        data(5, 2, BUILT_IN, frame__len="300"),
        packet(6, frame__len="60"),
        data(9, 2),
    ]
    window = counted(packets, 2 * 10**9, 9 * 10**9, encrypts=True)
    assert dict(window.counts) == {
        "startup_discovery_bytes": 400,
        "packets": 5,
        "bytes": 610,
        "data_bytes": 100,
        "control_bytes": 150,
        "discovery_bytes": 300,
        "other_bytes": 60,
        "data": 1,
        "fragments": 0,
        "heartbeats": 1,
        "acknacks": 1,
        "resent": 0,
    }
    assert (window.rtps, window.unclear) == (4, 0)


def test_what_goes_to_the_same_place_twice_was_sent_again() -> None:
    elsewhere = data(3, 1, udp__dstport="7413")
    window = counted([data(1, 1), data(2, 1), elsewhere, data(4, 2)], 0, 10**12, encrypts=True)
    assert window.counts["resent"] == 1
    fragments = [fragment(1, 1, 2), fragment(2, 3, 2), fragment(3, 2, 2)]
    window = counted(fragments, 0, 10**12, encrypts=True)
    assert (window.counts["fragments"], window.counts["resent"]) == (6, 2)


def test_a_fragment_of_ip_is_for_what_its_datagram_is() -> None:
    first = packet(1, ip__reassembled_in="2", frame__len="1500")
    window = counted([first, data(2, 1)], 0, 10**12, encrypts=True)
    assert (window.counts["data_bytes"], window.counts["other_bytes"]) == (1600, 0)


def unclear(number: int) -> Packet:
    """Two submessages that name one writer."""
    return packet(number, rtps__sm__id="0x15,0x07", rtps__sm__wrEntityId=USER, rtps__sm__seqNumber="1,2")


def handshake(number: int) -> Packet:
    """Of two that make keys: it names the message that it answers, too."""
    return packet(number, rtps__sm__id="0x15", rtps__sm__wrEntityId="0x000201c3", rtps__sm__seqNumber="1,1,0")


def forwarded(number: int) -> Packet:
    """By a bridge that names the original in each message."""
    return packet(number, rtps__sm__id="0x15", rtps__sm__wrEntityId=USER, rtps__sm__seqNumber="1,2")


def test_a_message_that_names_others_is_for_what_its_writer_is() -> None:
    window = counted([handshake(1), handshake(2), forwarded(3)], 2 * 10**9, 10**12, encrypts=False)
    counts = window.counts
    assert (counts["startup_discovery_bytes"], counts["discovery_bytes"], counts["data"]) == (100, 100, 1)
    assert (counts["data_bytes"], counts["resent"], window.unnamed, window.unclear) == (100, 0, 1, 0)


def test_what_an_error_message_quotes_was_not_sent_again() -> None:
    sent = data(1, 1)
    quoted = data(2, 1, ip__src="10.0.0.2,10.0.0.1", ip__dst="10.0.0.1,10.0.0.2", frame__len="182")
    assert (quoted.source, quoted.submessages) == ("10.0.0.2", ())
    window = counted([sent, quoted], 0, 10**12, encrypts=False)
    assert (window.counts["data"], window.counts["data_bytes"], window.counts["other_bytes"]) == (1, 100, 182)


def test_what_cannot_be_told_apart_is_unclear() -> None:
    strange = unclear(1)
    assert strange.submessages is None
    window = counted([strange], 0, 10**12, encrypts=True)
    assert (window.rtps, window.unclear, window.counts["bytes"]) == (1, 1, 100)
    with pytest.raises(CaptureError, match="2 fields"):
        packet_of(["1", "2"])


def sealed(number: int, **fields: str) -> Packet:
    """What an encrypted packet shows: who sent it. The ids are those of DDS Security's prefixes and body."""
    return packet(number, rtps__sm__id="0x33,0x31,0x30,0x32,0x34", **fields)


def test_of_encrypted_packets_only_number_and_bytes_are_known() -> None:
    discovery = data(1, 1, BUILT_IN, frame__len="400")
    packets = [discovery, sealed(2), sealed(3), sealed(4, frame__len="50")]
    window = counted(packets, 3 * 10**9, 10**12, encrypts=True)
    assert (window.counts["packets"], window.counts["bytes"], window.counts["other_bytes"]) == (2, 150, 150)
    assert (window.sealed_before, window.sealed) == (1, 2)
    fragment_of_it = packet(3, ip__reassembled_in="4", frame__len="1500")
    window = counted([discovery, fragment_of_it, sealed(4)], 3 * 10**9, 10**12, encrypts=True)
    assert (window.sealed_before, window.sealed, window.counts["bytes"]) == (0, 2, 1600)


def test_who_only_signs_its_messages_encrypts_keys_alone() -> None:
    """A signed packet names its sender twice: in its header, and for the receiver of what is in it."""
    messages = [sealed(1, frame__len="200"), data(2, 1, rtps__guidPrefix__src="01,01"), sealed(3)]
    window = counted(messages, 2 * 10**9, 10**12, encrypts=True)
    assert (window.sealed_before, window.sealed) == (0, 0)
    assert (window.counts["startup_discovery_bytes"], window.counts["discovery_bytes"]) == (200, 100)
    messages.append(sealed(4, rtps__guidPrefix__src="02"))  # it may encrypt what it says in another domain
    for encrypts in (True, False):
        assert counted(messages, 2 * 10**9, 10**12, encrypts).sealed == encrypts


@pytest.mark.parametrize(
    ("packets", "hidden"),
    [
        ([data(1, 1, BUILT_IN), data(3, 1)], set()),
        ([sealed(1), data(3, 1, rtps__guidPrefix__src="02")], {"startup_discovery_bytes"}),
        ([data(1, 1, BUILT_IN), sealed(3)], set(BY_PURPOSE)),
        ([sealed(1), sealed(3)], {"startup_discovery_bytes", *BY_PURPOSE}),
        ([data(1, 1, BUILT_IN), unclear(3)], set(BY_PURPOSE)),
        ([unclear(1), data(3, 1)], {"startup_discovery_bytes"}),
        ([handshake(1), data(3, 1)], set()),
        ([data(1, 1, BUILT_IN), forwarded(3)], {"resent"}),
    ],
)
def test_what_encryption_hides_is_no_zero(
    tmp_path: Path, packets: list[Packet], hidden: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "none").touch()
    monkeypatch.setattr("lagometer.run.captured.packets_of", lambda _: iter(packets))
    trial = outcome(tmp_path, Captured("", 10, 0, (0, 0)))
    trial.measure_begin_ns, trial.measure_end_ns = 2 * 10**9, 10**12
    counts, warnings = wire_counts(cast("Any", trial), encrypts=True)
    assert set(WIRE_COUNTS) - set(counts) == hidden
    assert (counts["packets"], counts["bytes"], warnings) == (1, 100, ())


def test_the_fragments_of_a_file_are_for_what_their_datagrams_are(tmp_path: Path) -> None:
    """A message of the workload in 41 fragments of IP; one of discovery in two, of which the first precedes
    the measured time."""
    need("tshark")
    begin_ns = 10**18
    message, discovery = rtps(USER, 60_000), rtps(BUILT_IN, 2_500)
    frames = [*fragmented(discovery, 78, begin_ns - 10), *fragmented(message, 77, begin_ns + 100)]
    (tmp_path / "packets").write_bytes(pcapng(frames))
    window = counted(packets_of(tmp_path / "packets"), begin_ns - 5, 2 * begin_ns, encrypts=False)
    assert window.counts["packets"] == 1 + 41 and window.counts["other_bytes"] == 0
    assert window.counts["data_bytes"] == sum(len(frame) for _, frame in frames[2:])
    assert window.counts["startup_discovery_bytes"] == len(frames[0][1])
    assert window.counts["discovery_bytes"] == len(frames[1][1])


def rtps(writer: str, payload_bytes: int) -> bytes:
    """A message with one DATA, in UDP."""
    head = struct.pack(">II", 4, int(writer, 16)) + struct.pack("<iI", 0, 1) + struct.pack(">HH", 1, 0)
    body = struct.pack("<HH", 0, 16) + head + bytes(payload_bytes)
    length = len(body) if len(body) < 1 << 16 else 0
    prefix = b"\x01\x0f" + bytes(9) + b"\x01"
    message = b"RTPS\x02\x03\x01\x0f" + prefix + struct.pack("<BBH", 0x15, 0x05, length) + body
    return struct.pack("!HHHH", 40_000, 7411, 8 + len(message), 0) + message


def fragmented(datagram: bytes, number: int, begin_ns: int) -> list[tuple[int, bytes]]:
    """Its frames on Ethernet, ten nanoseconds apart."""
    frames = []
    for place, offset in enumerate(range(0, len(datagram), 1480)):
        part = datagram[offset : offset + 1480]
        flags = (0x2000 if offset + 1480 < len(datagram) else 0) | offset // 8
        fields = (0x45, 0, 20 + len(part), number, flags, 64, 17)
        head = struct.pack("!BBHHHBBH4s4s", *fields, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
        words = sum(struct.unpack("!10H", head))
        while words >> 16:
            words = (words & 0xFFFF) + (words >> 16)
        head = head[:10] + struct.pack("!H", ~words & 0xFFFF) + head[12:]
        frames.append((begin_ns + 10 * place, bytes(12) + b"\x08\x00" + head + part))
    return frames


def pcapng(frames: list[tuple[int, bytes]]) -> bytes:
    """A file of one interface, with times in nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    options = struct.pack("<HH4s", 2, 4, b"eth0") + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    blocks = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    blocks.append(block(1, struct.pack("<HHI", 1, 0, 0) + options))
    for time_ns, frame in frames:
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), len(frame))
        blocks.append(block(6, head + frame))
    return b"".join(blocks)


def test_a_packet_counts_where_it_was_sent() -> None:
    ours = Captured("10.0.0.1", 3, 0, (0, 0))
    sent = packet(1, frame__interface_name="eth0", ip__src="10.0.0.1")
    received = replace(sent, source="10.0.0.2")
    within = packet(3)
    assert list(sent_here([sent, received, within], ours)) == [sent, within]


def outcome(tmp_path: Path, captured: Captured, back_end: str | None = None) -> Any:
    """What is looked at of a trial's outcome."""
    host = SimpleNamespace(
        name="here", captured=captured, packets=tmp_path / "none", clock=SimpleNamespace(offset_ns=0)
    )
    made = SimpleNamespace(output=json.dumps({"back_end": back_end}), cpu_ns=None, ready_s=None)
    links = [("here", made)] if back_end is not None else []
    return SimpleNamespace(hosts=[host], links=links, measure_begin_ns=1, measure_end_ns=2)


@pytest.mark.parametrize(
    ("captured", "back_end", "why"),
    [
        (Captured("", 10, 2, (0, 0)), None, "2 packets of 10 found no room"),
        (Captured("", None, None, (0, 0)), None, "ended before it reported"),
        (Captured("", 10, 0, (0, 2_000_000)), None, "the wall clock was set"),
        (Captured("", 10, 0, (0, 0)), "user-space", "takes packets before they are captured"),
        (Captured("", 10, 0, (0, 0)), "kernel", "its file is missing"),
    ],
)
def test_what_was_not_captured_whole_is_not_counted(
    tmp_path: Path, captured: Captured, back_end: str | None, why: str
) -> None:
    counts, (warning,) = wire_counts(cast("Any", outcome(tmp_path, captured, back_end)), encrypts=False)
    assert counts == {} and why in warning
