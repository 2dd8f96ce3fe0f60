# SPDX-License-Identifier: Apache-2.0
"""Findings about what the kernel's network dropped or retransmitted."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.summary.findings.buffers import receive_buffer_option, send_buffer_option
from lagometer.summary.findings.evidence import CellEvidence, Said, Trial
from lagometer.units import size_text

UDP_DATAGRAM_BYTES = 65_507  # the most that fits into one, RFC 768 over IPv4
ETHERNET_PAYLOAD_BYTES = 1_472


def network(cell: CellEvidence) -> Iterator[Said]:
    """Everything the kernel's counters explain."""
    yield from _receive_buffer(cell)
    yield from _reassembly(cell)
    yield from _send_buffer(cell)
    yield from _backlog(cell)
    yield from _retransmitted(cell)


def _receive_buffer(cell: CellEvidence) -> Iterator[Said]:
    trials = [
        trial
        for trial in cell.kernel("udp_receive_buffer_errors")[0]
        if not trial.reasons("nothing-received")  # `failures` reports it for these
    ]
    if not trials:
        return
    errors = sum(trial.kernel("udp_receive_buffer_errors") for trial in trials)
    buffer_bytes, payload = cell.receive_buffer_bytes(), cell.payload_bytes
    numbers = [f"{errors:,} receive-buffer errors in the kernel{_whose(trials)}"]
    if buffer_bytes is not None:
        numbers.append(f"a receive buffer holds {size_text(buffer_bytes)}")
    if payload is not None:
        numbers.append(f"a message has {size_text(payload)}")
    if lost := _lost(trials):
        numbers.append(f"{lost:,} messages never arrived" if lost > 1 else "1 message never arrived")
    if again := _sent_again(cell, trials):
        numbers.append(again)
    larger = payload is not None and buffer_bytes is not None and payload > buffer_bytes
    description = (
        "a message is larger than a socket's receive buffer"
        if larger
        else "a socket's receive buffer was full"
    )
    yield Said(
        "message-exceeds-receive-buffer" if larger else "receive-buffer-overflow",
        len(trials),
        f"{description}, and the kernel dropped datagrams; {_what_became(cell, trials)}",
        ", ".join(numbers),
        f"raise the receive buffer: {receive_buffer_option(cell)}, and `sysctl net.core.rmem_max` "
        f"(now {_size(cell.sysctl('net.core.rmem_max'))}) so that the kernel grants it",
        "Cyclone DDS, issue 1304; ROS 2, issue 946; man 7 udp, man 7 socket",
    )


def _what_became(cell: CellEvidence, trials: list[Trial]) -> str:
    """What the drops did to messages of the measure phase; the counter covers warm-up and drain, too."""
    if not sum(trial.count("n") for trial in trials):
        return "no message arrived whole"
    if _lost(trials):
        return "messages never arrived"
    reliability = cell.of_topics("reliability")
    if reliability == "best_effort":
        return "no message was lost, so they were none of the measure phase's"
    if reliability == "reliable":
        return "no message was lost, so they were sent again, which takes time"
    return "no message was lost: they were sent again, or were none of the measure phase's"


def _lost(trials: list[Trial]) -> int:
    return sum(trial.count("lost") + trial.count("censored") for trial in trials)


def _sent_again(cell: CellEvidence, trials: list[Trial]) -> str | None:
    """How many messages went twice, if captured packets show it; no middleware reports it itself."""
    resent = [
        int(count)
        for trial in trials
        if trial.figure("wire_data") and (count := trial.figure("wire_resent")) is not None  # of RTPS alone
    ]
    if resent:
        return f"{sum(resent):,} messages or fragments sent again (captured packets)"
    if _lost(trials) or cell.of_topics("reliability") == "best_effort":
        return None
    if any(trial.figure("wire_packets") for trial in trials):
        return "how many were sent again neither the middleware nor the captured packets tell"
    return "how many were sent again the middleware doesn't report (over RTPS, `capture: on` counts them)"


def _reassembly(cell: CellEvidence) -> Iterator[Said]:
    trials, failed = cell.kernel("ip_reassembly_failed")
    if trials:
        room = cell.sysctl("net.ipv4.ipfrag_high_thresh")
        yield Said(
            "fragments-lost",
            len(trials),
            "IP fragments were missing or had no room, so whole datagrams were dropped",
            f"{failed:,} failed reassemblies{_whose(trials)}, room for fragments {_size(room)}",
            "raise `sysctl net.ipv4.ipfrag_high_thresh`, shorten `net.ipv4.ipfrag_time`, or let the "
            f"middleware cut messages to {ETHERNET_PAYLOAD_BYTES} B itself",
            "ROS 2 documentation, DDS tuning; man 7 ip",
        )


def _send_buffer(cell: CellEvidence) -> Iterator[Said]:
    trials, errors = cell.kernel("udp_send_buffer_errors")
    if trials:
        yield Said(
            "send-buffer-full",
            len(trials),
            "the sender's socket buffer was full, and datagrams were not sent",
            f"{errors:,} send-buffer errors in the kernel{_whose(trials)}",
            f"raise the send buffer: {send_buffer_option(cell)}, and `sysctl net.core.wmem_max` (now "
            f"{_size(cell.sysctl('net.core.wmem_max'))}); or send less at once",
            "man 7 udp, man 7 socket",
        )


def _backlog(cell: CellEvidence) -> Iterator[Said]:
    """The counter covers the whole machine, so it only counts if messages are missing, too."""
    trials = [
        trial for trial in cell.kernel("softnet_dropped")[0] if trial.count("lost") + trial.count("censored")
    ]
    if trials:
        dropped = sum(trial.kernel("softnet_dropped") for trial in trials)
        yield Said(
            "backlog-overflow",
            len(trials),
            "a CPU's queue of received packets was full, and the kernel dropped some",
            f"{dropped:,} packets of the whole machine, "
            f"net.core.netdev_max_backlog {cell.sysctl('net.core.netdev_max_backlog') or 'unknown'}",
            "raise `sysctl net.core.netdev_max_backlog`",
            "Linux, Documentation/admin-guide/sysctl/net.rst",
        )


def _retransmitted(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.kernel("tcp_retransmitted")[0] if trial.private]
    if trials:
        yield Said(
            "tcp-retransmitted",
            len(trials),
            "TCP sent segments again; what waits behind them is late",
            f"{sum(trial.kernel('tcp_retransmitted') for trial in trials):,} segments",
            "look for a full receive window (a slow reader) or a lossy link",
            "RFC 9293; man 7 tcp",
        )


def _whose(trials: list[Trial]) -> str:
    return "" if all(trial.private for trial in trials) else " of the whole machine"


def _size(value_bytes: int | None) -> str:
    return "unknown" if value_bytes is None else size_text(value_bytes)
