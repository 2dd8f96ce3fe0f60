# SPDX-License-Identifier: Apache-2.0
"""The kernel's counters, from files in its form: each by its value and its increment, IPv4 and IPv6 added."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lagometer.agent.observe.counters import NetworkCounters
from lagometer.stats.verdict.causes import LOSS_COUNTERS
from lagometer.store.observed import KERNEL_COUNTERS

SNMP = """\
Ip: Forwarding DefaultTTL InReceives ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs
Ip: 1 64 9001 9002 9003 9004 {ip_reassembly_failed} 9005
Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs InErrs
Tcp: 1 -1 9010 9011 {tcp_retransmitted} 9012
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors
Udp: 9020 9021 {udp_receive_errors} 9022 {udp_receive_buffer_errors} {udp_send_buffer_errors} 9023
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors
UdpLite: 9030 9031 9032 9033 9034 9035 9036
"""
SNMP6 = """\
Ip6InReceives                   \t9040
Ip6ReasmTimeout                 \t9041
Ip6ReasmFails                   \t{ip_reassembly_failed}
Udp6InDatagrams                 \t9042
Udp6InErrors                    \t{udp_receive_errors}
Udp6OutDatagrams                \t9043
Udp6RcvbufErrors                \t{udp_receive_buffer_errors}
Udp6SndbufErrors                \t{udp_send_buffer_errors}
UdpLite6InErrors                \t9044
"""
# One line a CPU, hexadecimal: packets, dropped, times squeezed, …
SOFTNET = """\
0000beef {softnet_dropped:08x} 00000007 00000000 00000000 00000000
000000ff 00000010 00000009 00000000 00000000 00000000
"""
DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
  eth0: {link_bytes} 9051 0 0 0 0 0 0 9052 9053 0 0 0 0 0 0
    lo: 9060 9061 0 0 0 0 0 0 {loopback_bytes} {loopback_packets} 0 0 0 0 0 0
"""
IN_BOTH = (
    "ip_reassembly_failed",
    "udp_receive_errors",
    "udp_receive_buffer_errors",
    "udp_send_buffer_errors",
)


def written(folder: Path, values: Mapping[str, int], values_6: Mapping[str, int]) -> None:
    """A namespace's files with these counts; softnet's second CPU has dropped 16 more."""
    for name, text, given in (
        ("snmp", SNMP, values),
        ("snmp6", SNMP6, values_6),
        ("softnet_stat", SOFTNET, values),
        ("dev", DEV, values),
    ):
        (folder / "net" / name).write_text(text.format(**given))


def test_each_counter_is_read_by_its_value(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    values = {name: 100 + number for number, name in enumerate(KERNEL_COUNTERS)}
    values_6 = {name: 1_000 * number for number, name in enumerate(IN_BOTH, start=1)}
    written(tmp_path, values, values_6)
    counters = NetworkCounters(f"..{tmp_path}")  # type: ignore[arg-type]
    before = counters.read()
    expected = {name: value + values_6.get(name, 0) for name, value in values.items()}
    expected["softnet_dropped"] += 16
    assert {name: before[name] for name in KERNEL_COUNTERS} == expected
    assert (before["udp_sent"], before["tcp_sent"]) == (9022 + 9043, 9011)
    # The same open files tell later what was added.
    written(tmp_path, {name: value + 5 for name, value in values.items()}, values_6)
    after = counters.read()
    assert {name: after[name] - before[name] for name in KERNEL_COUNTERS} == dict.fromkeys(KERNEL_COUNTERS, 5)
    counters.close()


def test_a_machine_without_ipv6_has_the_others(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    values = dict.fromkeys(KERNEL_COUNTERS, 3)
    written(tmp_path, values, values)
    (tmp_path / "net" / "snmp6").unlink()
    (tmp_path / "net" / "softnet_stat").write_text("no such form\n")
    counters = NetworkCounters(f"..{tmp_path}")  # type: ignore[arg-type]
    found = counters.read()
    counters.close()
    assert set(KERNEL_COUNTERS) - set(found) == {"softnet_dropped"}
    assert found["udp_receive_buffer_errors"] == found["ip_reassembly_failed"] == 3


def test_every_counter_that_explains_a_loss_is_read() -> None:
    assert set(LOSS_COUNTERS) <= set(KERNEL_COUNTERS)
