# SPDX-License-Identifier: Apache-2.0
"""What a trial sent over its networks, from the packets that its hosts captured, decoded by tshark.

Each packet counts once, where it was sent: on a loopback, or on the link of the host with its source address.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lagometer.agent.capture import LOOPBACK, Captured
from lagometer.run.companions.links import link_done
from lagometer.run.hosts.part import HostOutcome
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store.observed import WIRE_COUNTS

PROGRAM = "tshark"
USER_SPACE = "user-space"  # the back-end of a link whose packets never reach a device in the usual way
NS_PER_S = 1_000_000_000
WALL_MOVED_NS = 1_000_000  # if the readings differ by more, packets can't be assigned to a phase
PAST = "the program that emulates the link takes packets before they are captured: they are not counted"
TOLD_APART_SHARE = 0.99  # of the packets with RTPS must be told apart, or what they are for is not reported
FIELDS = (
    *("frame.number", "frame.time_epoch", "frame.len", "frame.interface_name", "ip.src", "ip.dst"),
    *("udp.dstport", "ip.reassembled_in", "rtps.guidPrefix.src", "rtps.sm.id", "rtps.sm.wrEntityId"),
    *("rtps.sm.seqNumber", "rtps.data_frag.number", "rtps.data_frag.num_fragments"),
)
# Submessages by their id (DDSI-RTPS 2.3, table 9.13).
ACKNACK, HEARTBEAT, GAP, NACK_FRAGMENTS, HEARTBEAT_FRAGMENT = 0x06, 0x07, 0x08, 0x12, 0x13
DATA, DATA_FRAGMENT = 0x15, 0x16
SEALED_BODY = 0x30  # one or more submessages, encrypted (DDS Security 1.1, 7.3.6.2)
# Those that name their writer, and how many sequence numbers tshark reports for each.
SEQUENCES = {
    ACKNACK: 1,
    HEARTBEAT: 2,
    GAP: 2,
    NACK_FRAGMENTS: 1,
    HEARTBEAT_FRAGMENT: 1,
    DATA: 1,
    DATA_FRAGMENT: 1,
}
BUILT_IN = 0xC0  # the two highest bits of the kind of a middleware's own entity (9.3.1.2)
USER_DATA, DISCOVERY, CONTROL, OTHER = "data_bytes", "discovery_bytes", "control_bytes", "other_bytes"
SEALED = "sealed"  # encrypted, so it may be any of these
# What nobody can tell if packets of the measure phase are, and if packets before it are.
BY_PURPOSE = (
    *(USER_DATA, DISCOVERY, CONTROL, OTHER),
    *("data", "fragments", "heartbeats", "acknacks", "resent"),
)
STARTUP = "startup_discovery_bytes"


class CaptureError(Exception):
    """The packets can't be decoded. Says why."""


@dataclass(frozen=True)
class Submessage:
    """One RTPS submessage. sequence: None if it can't be told from others that the message names; fragments:
    the fragment numbers in it, empty if none."""

    kind: int
    writer: int
    sequence: int | None
    fragments: range = range(0)

    @property
    def built_in(self) -> bool:
        """Whether it belongs to the middleware itself: discovery, liveliness."""
        return self.writer & BUILT_IN == BUILT_IN


@dataclass(frozen=True)
class Packet:
    """One frame. time_ns: on CLOCK_REALTIME of its host; reassembled_in: for an IP fragment, the frame that
    completes the packet; submessages: None if RTPS is present and can't be decoded; sealed: whether some are
    encrypted, so that nobody can tell what they are for."""

    number: int
    time_ns: int
    size_bytes: int
    interface: str
    source: str
    destination: str
    reassembled_in: int
    participant: str
    submessages: tuple[Submessage, ...] | None = ()
    sealed: bool = False

    @property
    def sender(self) -> str:
        """The participant that sent it; a signed message names it twice."""
        return self.participant.partition(",")[0]


@dataclass
class _Window:
    """What is counted between two times. rtps: packets with submessages; unclear: those among them whose
    submessages can't be told apart; unnamed: those whose data has no sequence number; sealed: encrypted
    packets of unknown purpose; …_before: before that."""

    counts: Counter[str] = field(default_factory=Counter)
    rtps: int = 0
    unclear: int = 0
    unnamed: int = 0
    sealed: int = 0
    sealed_before: int = 0
    unclear_before: int = 0


def wire_counts(outcome: TrialOutcome, encrypts: bool) -> tuple[dict[str, int], tuple[str, ...]]:
    """Returns the counts of all hosts together, by the names of `WIRE_COUNTS`, and warnings.

    encrypts: whether messages of the workload are encrypted, of any topic. Empty if no packets were captured,
    or if they can't be counted; a warning then says why. Counts that encrypted packets hide are left out.
    """
    hosts = [host for host in outcome.hosts if host.captured is not None and host.packets is not None]
    if not hosts or len(hosts) < len(outcome.hosts) or not outcome.measure_end_ns:
        return {}, ()
    if any(link_done(daemon).get("back_end") == USER_SPACE for _, daemon in outcome.links):
        return {}, (f"capture: {PAST}",)
    total: Counter[str] = Counter()
    hidden: set[str] = set()
    for host in hosts:
        try:
            window = _of_host(host, outcome, encrypts)
        except CaptureError as error:
            return {}, (f"capture: host {host.name}: {error}",)
        total.update(window.counts)
        hidden.update(_hidden(window))
    return {name: total[name] for name in WIRE_COUNTS if name not in hidden}, ()


def _hidden(window: _Window) -> Iterator[str]:
    """Yields the counts that a window can't tell: zeros there would look like figures."""
    unclear = window.rtps - window.unclear < TOLD_APART_SHARE * window.rtps
    if window.sealed or unclear:
        yield from BY_PURPOSE
    elif window.rtps - window.unnamed < TOLD_APART_SHARE * window.rtps:
        yield "resent"
    if window.sealed_before or window.unclear_before:
        yield STARTUP


def _of_host(host: HostOutcome, outcome: TrialOutcome, encrypts: bool) -> _Window:
    assert host.captured is not None and host.packets is not None
    captured = host.captured
    if captured.dropped is None:
        raise CaptureError("it ended before it reported how many packets it dropped")
    if captured.dropped:
        raise CaptureError(
            f"{captured.dropped} packets of {captured.received} found no room: they are not counted"
        )
    first, last = captured.wall_ns
    if abs(last - first) > WALL_MOVED_NS:
        raise CaptureError("the wall clock was set meanwhile, so packets can't be placed in time")
    to_wall_ns = (first + last) // 2 + host.clock.offset_ns
    begin_ns, end_ns = outcome.measure_begin_ns + to_wall_ns, outcome.measure_end_ns + to_wall_ns
    if not host.packets.exists():
        raise CaptureError("its file is missing")
    return counted(sent_here(packets_of(host.packets), captured), begin_ns, end_ns, encrypts)


def sent_here(packets: Iterable[Packet], captured: Captured) -> Iterator[Packet]:
    """Yields the packets that this host sent."""
    return (packet for packet in packets if packet.interface == LOOPBACK or packet.source == captured.address)


def counted(packets: Iterable[Packet], begin_ns: int, end_ns: int, encrypts: bool) -> _Window:
    """Counts what was sent from `begin_ns` to `end_ns`, and the bytes of discovery before that."""
    all_packets = list(packets)
    kinds = {packet.number: _kind(packet) for packet in all_packets}
    # Who does not encrypt messages of the workload encrypts traffic of its own: the keys, when it signs.
    clear = {packet.sender for packet in all_packets if kinds[packet.number] in (USER_DATA, CONTROL)}
    kinds |= {
        packet.number: SEALED if encrypts and packet.sender not in clear else DISCOVERY
        for packet in all_packets
        if packet.sealed and kinds[packet.number] in (DISCOVERY, OTHER)
    }
    window = _Window()
    sent_data: set[tuple[object, ...]] = set()
    for packet in all_packets:
        kind = kinds[packet.number] if not packet.reassembled_in else kinds.get(packet.reassembled_in, OTHER)
        resent = _sent_again(packet, sent_data)
        if packet.time_ns < begin_ns and kind == DISCOVERY:
            window.counts[STARTUP] += packet.size_bytes
        window.sealed_before += kind == SEALED and packet.time_ns < begin_ns
        window.unclear_before += packet.submessages is None and packet.time_ns < begin_ns
        if not begin_ns <= packet.time_ns < end_ns:
            continue
        window.sealed += kind == SEALED
        window.counts["packets"] += 1
        window.counts["bytes"] += packet.size_bytes
        window.counts[OTHER if kind == SEALED else kind] += packet.size_bytes
        window.counts["resent"] += resent
        _count_submessages(packet, window)
    return window


def _count_submessages(packet: Packet, window: _Window) -> None:
    if packet.submessages is None:
        window.rtps += 1
        window.unclear += 1
        return
    window.rtps += bool(packet.submessages)
    window.unnamed += any(each.sequence is None and not each.built_in for each in packet.submessages)
    for submessage in packet.submessages:
        if submessage.built_in:
            continue
        window.counts["data"] += submessage.kind in (DATA, DATA_FRAGMENT)
        window.counts["fragments"] += len(submessage.fragments)
        window.counts["heartbeats"] += submessage.kind in (HEARTBEAT, HEARTBEAT_FRAGMENT)
        window.counts["acknacks"] += submessage.kind in (ACKNACK, NACK_FRAGMENTS)


def _sent_again(packet: Packet, sent_data: set[tuple[object, ...]]) -> int:
    """Returns how many of the packet's data went to the same destination before. Copies for several
    destinations do not count."""
    resent = 0
    for submessage in packet.submessages or ():
        if submessage.kind not in (DATA, DATA_FRAGMENT) or submessage.sequence is None or submessage.built_in:
            continue
        for fragment in submessage.fragments or (0,):
            key = (packet.participant, submessage.writer, submessage.sequence, fragment, packet.destination)
            resent += key in sent_data
            sent_data.add(key)
    return resent


def _kind(packet: Packet) -> str:
    """Returns the purpose of its bytes."""
    submessages = packet.submessages or ()
    user = [submessage for submessage in submessages if not submessage.built_in]
    if any(submessage.kind in (DATA, DATA_FRAGMENT) for submessage in user):
        return USER_DATA
    if user:
        return CONTROL
    return DISCOVERY if submessages else OTHER


def packets_of(path: Path) -> Iterator[Packet]:
    """Yields the packets of a file in order. Raises `CaptureError`."""
    options = [word for name in FIELDS for word in ("-e", name)]
    # In two passes, so that a fragment knows the frame that completes its packet, which comes later.
    command = (PROGRAM, "-2", "-n", "-r", str(path), "-T", "fields", "-E", "separator=/t", *options)
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except FileNotFoundError as error:
        raise CaptureError(f"the program {PROGRAM} is missing: install it") from error
    with process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            yield packet_of(line.rstrip("\n").split("\t"))
        error_lines = process.stderr.read().strip().splitlines()
    if process.returncode != 0:
        raise CaptureError(
            f"{PROGRAM} can't read {path}: {error_lines[-1] if error_lines else f'code {process.returncode}'}"
        )


def packet_of(words: Sequence[str]) -> Packet:
    """Parses the fields of one packet. Raises `CaptureError`."""
    if len(words) != len(FIELDS):
        raise CaptureError(f"{PROGRAM} wrote {len(words)} fields of a packet instead of {len(FIELDS)}")
    fields = dict(zip(FIELDS, words, strict=True))
    if "," in fields["ip.src"]:  # an error message of ICMP quotes a packet: nothing of that was sent again
        fields |= {name: "" for name in FIELDS if name.startswith(("rtps.", "udp."))}
        fields |= {name: fields[name].partition(",")[0] for name in ("ip.src", "ip.dst")}
    seconds, _, fraction = fields["frame.time_epoch"].partition(".")
    return Packet(
        number=int(fields["frame.number"]),
        time_ns=int(seconds) * NS_PER_S + int(fraction.ljust(9, "0")[:9]),
        size_bytes=int(fields["frame.len"]),
        interface=fields["frame.interface_name"],
        source=fields["ip.src"],
        destination=f"{fields['ip.dst']}:{fields['udp.dstport']}",
        reassembled_in=int(fields["ip.reassembled_in"] or 0),
        participant=fields["rtps.guidPrefix.src"],
        submessages=_submessages(fields),
        sealed=SEALED_BODY in _numbers(fields["rtps.sm.id"]),
    )


def _submessages(fields: dict[str, str]) -> tuple[Submessage, ...] | None:
    """Returns the submessages that name a writer; None if the fields don't match the submessages."""
    kinds = [kind for kind in _numbers(fields["rtps.sm.id"]) if kind in SEQUENCES]
    writers = _numbers(fields["rtps.sm.wrEntityId"])
    sequences = _numbers(fields["rtps.sm.seqNumber"])
    firsts, counts = (
        _numbers(fields["rtps.data_frag.number"]),
        _numbers(fields["rtps.data_frag.num_fragments"]),
    )
    fragments_fit = len(firsts) == len(counts) == kinds.count(DATA_FRAGMENT)
    if len(writers) != len(kinds) or not fragments_fit:
        return None
    # A message may name others: a handshake the one that it answers, a bridge's the original.
    named = len(sequences) == sum(SEQUENCES[kind] for kind in kinds)
    submessages = []
    for kind, writer in zip(kinds, writers, strict=True):
        numbers, sequences = sequences[: SEQUENCES[kind]], sequences[SEQUENCES[kind] :]
        fragments = range(0)
        if kind == DATA_FRAGMENT:
            first = firsts.pop(0)
            fragments = range(first, first + counts.pop(0))
        submessages.append(Submessage(kind, writer, numbers[-1] if named else None, fragments))
    return tuple(submessages)


def _numbers(text: str) -> list[int]:
    return [int(word, 0) for word in text.split(",") if word]
