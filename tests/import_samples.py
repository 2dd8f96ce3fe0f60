# SPDX-License-Identifier: Apache-2.0
"""Files as other tools write them, made from latencies that the test knows."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st


def many(values: st.SearchStrategy[int]) -> st.SearchStrategy[list[int]]:
    """Up to some hundreds of values, most often enough for quantiles: a few, repeated, and a few more."""
    few = st.lists(values, min_size=1, max_size=20)
    return st.builds(
        lambda base, times, more: base * times + more, few, st.sampled_from([1, 5, 20, 100]), few
    )


# --- HdrHistogram


def bucket_of(value: int, digits: int, unit: int) -> int:
    """The place of a value's counter, by the definition of the buckets and one value at a time."""
    half = 1 << ((2 * 10**digits - 1).bit_length() - 1)
    value >>= unit.bit_length() - 1
    bucket = 0
    while value >> bucket >= 2 * half:
        bucket += 1
    return (bucket + 1) * half + (value >> bucket) - half


def histogram_text(values: Sequence[int], version: int, digits: int = 3, unit: int = 1, word: int = 8) -> str:
    """A histogram in base64, encoding V0, V1 or V2; `word`: bytes of a count in V0 and V1."""
    counts: dict[int, int] = {}
    for value in values:
        place = bucket_of(value, digits, unit)
        counts[place] = counts.get(place, 0) + 1
    used = [counts.get(place, 0) for place in range(max(counts, default=0) + 1)]
    most = max(values, default=2)
    if version == 2:
        payload = b"".join(zigzag(each) for each in runs(used))
        head = struct.pack(">IIIIqqd", 0x1C849313, len(payload), 0, digits, unit, most, 1.0)
    else:
        payload = b"".join(each.to_bytes(word, "big") for each in used)
        size = word << 4
        head = struct.pack(">IIIIqqd", 0x1C849301 | size, len(payload), 0, digits, unit, most, 1.0)
        if version == 0:
            head = struct.pack(">IIqqq", 0x1C849308 | size, digits, unit, most, len(values))
    body = zlib.compress(head + payload)
    cookie = (0x1C849309 | word << 4, 0x1C849302 | word << 4, 0x1C849314)[version]
    return base64.b64encode(struct.pack(">II", cookie, len(body)) + body).decode()


def runs(counts: Sequence[int]) -> list[int]:
    """Counts, with the negated length of each run of several zeros."""
    found: list[int] = []
    for each in counts:
        if each == 0 and found and found[-1] <= 0:
            found[-1] -= 1 if found[-1] < 0 else 2
        else:
            found.append(each)
    return found


def zigzag(number: int) -> bytes:
    value = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def hlog_text(
    intervals: Sequence[tuple[str, float, Sequence[int]]],
    version: int = 2,
    ratio: float = 1e6,
    head: Sequence[str] = (),
    **shape: int,
) -> str:
    """A log: tag (or nothing), start in seconds and values of each interval."""
    lines = ["#[Histogram log format version 1.3]", *head]
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
    for tag, start_s, values in intervals:
        most = max(values, default=0) / ratio
        line = f"{start_s:.3f},1.000,{most:.3f},{histogram_text(values, version, **shape)}"
        lines.append(f"Tag={tag},{line}" if tag else line)
    return "\n".join(lines) + "\n"


# --- Fast DDS LatencyTest


def rank_of(ordered: Sequence[float], share: float) -> float:
    place = int(len(ordered) * share)
    return ordered[place - 1] if place > 0 else math.nan


def latency_test_table(latencies_us: Mapping[int, Sequence[float]]) -> str:
    """What it prints: half round trips by payload."""
    lines = ["Overhead 0.0231 us", "Printing round-trip times in us, statistics for 10000 samples"]
    lines.append("   Bytes, Samples,   stdev,    mean,     min,     50%,     90%,     99%,  99.99%,     max")
    lines.append("--------,--------,--------,--------,--------,--------,--------,--------,--------,--------,")
    for payload, each in latencies_us.items():
        ordered = sorted(each)
        figures = [float(np.std(ordered)), float(np.mean(ordered)), ordered[0]]
        figures += [rank_of(ordered, share) for share in (0.5, 0.9, 0.99, 0.9999)] + [ordered[-1]]
        lines.append(f"{payload:8d},{len(each):8d}," + ",".join(f"{figure:8.3f}" for figure in figures) + " ")
    return "\n".join(lines) + "\n"


def latency_test_raw(latencies_us: Mapping[int, Sequence[float]]) -> str:
    """What --export_raw_data writes."""
    lines = ["Sample,Payload [Bytes],Latency [us]"]
    sample = 0
    for payload, each in latencies_us.items():
        for latency in each:
            sample += 1
            lines.append(f"{sample},{payload},{latency:g}")
    return "\n".join(lines) + "\n"


# --- RTI Perftest


def rtiperftest_csv(
    latencies: Mapping[int, Sequence[int]],
    intervals: bool = True,
    nanoseconds: bool = False,
    unit: str = "μs",
    first: int | None = None,
    summary: str = "Sample Size",
) -> str:
    """What its publisher prints with -outputFormat csv.

    nanoseconds: decimals, as 4.3 has them in such a build. unit: in the head, of the latencies. first: the
    echo that has no line, which up to 4.1 is among mean, minimum and maximum. summary: how its head begins.
    """
    lines = ["RTI Perftest 4.1.0 (RTI Connext DDS 7.2.0)", "Mode: LATENCY TEST (Ping-Pong test)"]
    for length, each in latencies.items():
        if intervals:
            lines += ["", f"Intervals One-Way Latency for {length} Bytes:"]
            names = ("Latency", "Ave", "Std", "Min", "Max")
            lines.append("Length (Bytes), " + ", ".join(f"{name} ({unit})" for name in names))
            for end in range(1, len(each) + 1):
                so_far = [*([] if first is None else [first]), *each[:end]]
                figures = [
                    each[end - 1],
                    float(np.mean(so_far)),
                    float(np.std(so_far)),
                    min(so_far),
                    max(so_far),
                ]
                if nanoseconds:
                    lines.append(f"{length:14d}," + ",".join(f"{figure:9.3f}" for figure in figures))
                else:
                    latency, mean, sd, least, most = figures
                    lines.append(f"{length:14d},{latency:13d},{mean:9.0f},{sd:9.1f},{least:9d},{most:9d}")
            lines += ["", "One-way Latency Summary:"]
        lines.append(
            f"{summary} (Bytes), "
            + ", ".join(
                f"{name} ({unit})"
                for name in ("Ave", "Std", "Min", "Max", "50%", "90%", "99%", "99.99%", "99.9999%")
            )
        )
        ordered = sorted(each)
        at = [
            ordered[min(len(each) - 1, int(len(each) * share))]
            for share in (0.5, 0.9, 0.99, 0.9999, 0.999999)
        ]
        figures = [float(np.mean(each)), float(np.std(each)), ordered[0], ordered[-1], *at]
        lines.append(f"{length:19d}," + ",".join(f"{figure:9.0f}" for figure in figures))
    return "\n".join([*lines, "Test ended."]) + "\n"


def rtiperftest_samples(values: Sequence[int]) -> str:
    """What -latencyFile writes."""
    return (
        "Sample Number, Value\n" + "".join(f"{place}, {value}\n" for place, value in enumerate(values)) + "\n"
    )


# --- ddsperf


def ddsperf_text(
    seconds: Sequence[Sequence[int]], kind: str = "", peer: str = "robot:4711", lost: int | None = None
) -> str:
    """What it prints of the latencies (ns) of each second; `kind` is ` sublat` with -l."""
    lines = [f"[100] participant {peer}: new"]
    for place, each in enumerate(seconds, start=1):
        prefix = f"[100] {place:.3f} "
        if lost is not None:
            so_far = sum(map(len, seconds[:place]))
            lines.append(
                f"{prefix} size 1024 total {so_far} lost {lost} delta {len(each)} lost 0 "
                "rate 1.00 kS/s 8.19 Mb/s (0.10 kS/s 0.82 Mb/s)"
            )
        if each:
            n, ordered = len(each), sorted(each)
            at = [ordered[n - (n + share - 1) // share] for share in (2, 10, 100)]
            figures = [sum(each) / n, ordered[0], *at, ordered[-1]]
            words = ("mean", "min", "50%", "90%", "99%", "max")
            told = " ".join(
                f"{word} {figure / 1e3:.3f}us" for word, figure in zip(words, figures, strict=True)
            )
            lines.append(f"{prefix}{kind} {peer} size 1024 {told} cnt {n}")
        lines.append(f"{prefix} rss:6.1MB vcsw:2000 ivcsw:3 recvUC:1%+2%")
    return "\n".join(lines) + "\n"


# --- ros2-performance


def ros2_performance_text(rows: Sequence[tuple[str, str, Sequence[int], int, int]], csv: bool = True) -> str:
    """latency_all.txt: node, topic, latencies (us), too late, lost."""
    columns = (
        *("node", "topic", "size_b", "received_msgs", "late_msgs", "too_late_msgs", "lost_msgs"),
        *("mean_us", "sd_us", "min_us", "max_us", "freq_hz", "throughput_Kb_per_sec"),
    )
    lines = [
        "",
        "Subscriptions stats:",
        ",".join(columns) if csv else "".join(f"{each:15}" for each in columns),
    ]
    for node, topic, each, too_late, lost in rows:
        moments = [np.mean(each), np.std(each), min(each), max(each)] if each else [math.nan] * 4
        cells = [node, topic, "100", str(len(each) + too_late), "0", str(too_late), str(lost)]
        cells += [f"{np.round(figure):g}" for figure in moments] + ["100", "9.8"]
        lines.append(",".join(cells) if csv else "".join(f"{cell:15}" for cell in cells))
    lines += ["", "Publishers stats:", lines[2]]
    lines.append(lines[3].replace(lines[3].split(",")[0], "talker", 1) if csv and rows else "")
    return "\n".join(lines) + "\n"
