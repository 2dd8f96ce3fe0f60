# SPDX-License-Identifier: Apache-2.0
"""`make witness`, second part: an independent witness of the layer `transport`.

dumpcap copies the packets of a trial with `layers: on`. A message's envelope stands in its packets, and the
kernel gave each packet a time, which neither the probe nor the worker knows. On the loopback it lies within
the sending system call, so between the two ends of the layer `transport`. The witness agrees with an adapter
if that is true for at least 99 % of the messages whose packet was found, and if at least 90 % were found. Its
own error is how far the wall clock, which packets carry, moved against the monotonic clock in the trial, plus
the time that a reading of both takes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from results import write_result
from witness import absent_here, carried_out

from lagometer.store.reader import open_campaign

READING_NS = 1_000  # of both clocks together, and the resolution of a packet's time
FOUND_MIN, WITHIN_MIN = 0.9, 0.99
NS_PER_S = 1_000_000_000
ENVELOPE = re.compile(rb"\x67\x4c\x01\x00.{4}(.{8})", re.DOTALL)  # docs/PROTOCOL.md: a message, not a probe
# The adapters whose messages are packets, and with which options; others have no such witness.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "udp": {},
    "tcp": {},
    "cyclonedds": {},
    "cyclonedds11": {},
    "cyclonedds-py": {},
    "fastdds": {"transport": "udp"},
    "rustdds": {},
    "dust_dds": {},
    "zenoh": {},
    "zenoh-py": {},
    "hiroz": {},
    "zeromq": {"transport": "tcp"},
    "nng": {"transport": "tcp"},
    "lcm": {},
    "mqtt": {},
    "ros1": {},
}
SMOKE = ("udp", "cyclonedds")
NO_WITNESS: Mapping[str, str] = {
    "shm, iceoryx, iceoryx2, ecal-py, fastdds by default": "shared memory sends no packets",
    "uds, zeromq and nng by default": "a Unix socket sends no packets",
    "null": "nothing is sent",
}


def packet_times(path: Path) -> dict[int, list[int]]:
    """The times of the packets that hold a message, by its sequence: on CLOCK_REALTIME, in ns."""
    fields = [word for name in ("frame.time_epoch", "udp.payload", "tcp.payload") for word in ("-e", name)]
    command = ["tshark", "-r", str(path), "-T", "fields", *fields]
    times: dict[int, list[int]] = defaultdict(list)
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        seconds, *payloads = line.split("\t")
        whole, _, fraction = seconds.partition(".")
        at_ns = int(whole) * NS_PER_S + int(fraction.ljust(9, "0")[:9])
        for payload in payloads:
            for sequence in ENVELOPE.findall(bytes.fromhex(payload.replace(":", "").replace(",", ""))):
                times[int.from_bytes(sequence, "little")].append(at_ns)
    return times


def compared(directory: Path) -> dict[str, Any]:
    """What the packets of a campaign's only trial say about its layer `transport`."""
    campaign = open_campaign(directory)
    cell, trial = campaign.cells.select("cell", "trial").row(0)
    (host,) = campaign.journal[0]["captured"].values()
    first_ns, last_ns = host["wall_ns"]
    error_ns = abs(last_ns - first_ns) + READING_NS
    (path,) = directory.glob("captures/**/*.pcapng")
    times = packet_times(path)
    layers = pl.read_parquet(campaign.layers_path(cell, trial), glob=False)
    spans = layers.filter(pl.col("layer").cast(pl.String) == "transport").select(
        "sequence", "begin_ns", "end_ns"
    )
    found = [row for row in spans.iter_rows(named=True) if times.get(row["sequence"])]
    before, after = [], []
    for row in found:
        at_ns = [each - (first_ns + last_ns) // 2 for each in times[row["sequence"]]]
        before.append(min(at_ns) - row["begin_ns"])
        after.append(row["end_ns"] - max(at_ns))
    within = (np.minimum(before, after) >= -error_ns) if found else np.zeros(0, dtype=bool)
    return {
        "messages": spans.height,
        "found": len(found) / max(1, spans.height),
        "within": float(within.mean()) if found else 0.0,
        "error_ns": error_ns,
        "call_to_packet_p50_ns": float(np.median(before)) if found else None,
        "packet_to_end_p50_ns": float(np.median(after)) if found else None,
    }


def witnessed(names: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """A row for each adapter; prints each as it arrives."""
    rows = []
    print(f"{'adapter':>13} messages  found  within ± error    call → packet → end of transport, p50, µs")
    with tempfile.TemporaryDirectory(prefix="lagometer-packets-") as name:
        for adapter in names:
            more = {"capture": "on", "options": {adapter: dict(OPTIONS[adapter])}}
            row = compared(carried_out(Path(name), adapter, seconds, "on", {}, **more))
            rows.append({"adapter": adapter, **row, "agrees": agrees(row)})
            sides = (row["call_to_packet_p50_ns"], row["packet_to_end_p50_ns"])
            told = "  ".join("-" if side is None else f"{side / 1000:8.1f}" for side in sides)
            print(
                f"{adapter:>13} {row['messages']:>8} {row['found']:>6.1%} {row['within']:>7.1%} "
                f"± {row['error_ns'] / 1000:.1f} µs {told}  {'ok' if agrees(row) else '-'}",
                flush=True,
            )
    return rows


def agrees(row: Mapping[str, Any]) -> bool:
    """Whether the packets were found, and lie where the layer says."""
    return bool(row["found"] >= FOUND_MIN and row["within"] >= WITHIN_MIN)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="two adapters, trials of half a second")
    parser.add_argument(
        "--adapter", action="append", choices=sorted(OPTIONS), help="this one; may be repeated"
    )
    given = parser.parse_args()
    chosen = SMOKE if given.smoke else given.adapter or tuple(OPTIONS)
    absent = absent_here()
    skipped = {name: absent[name] for name in chosen if name in absent}
    rows = witnessed([name for name in chosen if name not in absent], 0.5 if given.smoke else 3.0)
    for names, reason in {**NO_WITNESS, **skipped}.items():
        print(f"no witness: {names}: {reason}")
    passed = all(agrees(row) for row in rows)
    print(write_result("packets", passed, rows, smoke=given.smoke, skipped=sorted(skipped)))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
