# SPDX-License-Identifier: Apache-2.0
"""A model of how performance_test 1.0 to 2.3 writes its logs, read from each version's source.

Keys and columns in their order, separators, digits, what is printed for nothing (`inf`, the largest integer,
`-nan`, in JSON 0.0), counts divided by the loop's length and cut to whole numbers, latencies of a row or of
all rows so far, and the arithmetic of their statistics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

UPTIME_S = 5025.817383
MOMENTS = ("min", "max", "mean", "variance")
USAGE = (
    *("ru_utime", "ru_stime", "ru_maxrss", "ru_ixrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt"),
    *("ru_nswap", "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw"),
    "ru_nivcsw",
)


@dataclass(frozen=True)
class Version:
    """What marks a version's log. `integers`: sums in 64-bit integers, variance over n - 1."""

    number: str
    commit: str
    read_as: str
    integers: bool
    reserves: bool
    plugins: bool = False  # the head of 2.x
    sync: bool = False  # the quality of service tells of synchronisation
    shared_memory: bool = True  # the head tells of it
    since_boot: bool = True  # the first row is divided by the time since the machine was started
    cumulative: bool = False  # latencies are of all messages so far
    stale: bool = True  # bytes of a loop without messages are those of the last loop with any


V1_0 = Version(
    "1.0.0",
    "a47d9cb",
    "1.1.0 or before",
    False,
    True,
    sync=True,
    shared_memory=False,
    since_boot=False,
    stale=False,
)
V1_1 = Version("1.1.2", "af1796d", "1.1.1 to 1.1.2", False, True, sync=True, cumulative=True)
V1_4 = Version("1.4.2", "941f10a", "1.2 to 1.4", False, False, cumulative=True)
V1_5 = Version("1.5.2", "eb24da6", "1.5", True, False)
V2_0 = Version("2.0.0", "93b658c", "2.0 to 2.3", True, False, plugins=True, shared_memory=False, stale=False)
V2_3 = Version("2.3.0", "4b308ef", "2.0 to 2.3", True, False, plugins=True, shared_memory=False, stale=False)
VERSIONS = (V1_0, V1_1, V1_4, V1_5, V2_0, V2_3)


@dataclass(frozen=True)
class Second:
    """What happened in one loop: latencies of what arrived, in nanoseconds, and how many did not.

    loop_s: how long it took. A process that only sends has `sends_only`, one that only receives `hears_only`.
    """

    latencies_ns: Sequence[int]
    lost: int = 0
    loop_s: float | None = None
    sends_only: bool = False
    hears_only: bool = False

    @property
    def heard_ns(self) -> Sequence[int]:
        return () if self.sends_only else self.latencies_ns

    @property
    def sent(self) -> int:
        return 0 if self.hears_only else len(self.latencies_ns) + self.lost


@dataclass(frozen=True)
class Printed:
    """A row before it is printed: times, counts per second, and the latencies that its figures are of."""

    begun_s: float
    took_s: float
    received: int
    sent: int
    lost: int
    data: int
    latencies_ns: Sequence[int]


def rows_of(
    version: Version, seconds: Sequence[Second], loop_s: float, size: int, ignored: bool
) -> Iterator[Printed]:
    """The rows. `ignored`: five seconds before them were, so none was divided by the machine's uptime."""
    so_far: list[int] = []
    arrived = 0  # in this loop, or in the last one with any
    ends_s = 5.0 if ignored else 0.0
    before_s = loop_s
    for place, second in enumerate(seconds):
        took_s = second.loop_s or loop_s
        # Up to 1.1.0 counts are divided by the previous loop's time, and the row has the loop's own.
        divisor_s = took_s if version.since_boot else before_s
        begun_s = ends_s + (0.0 if version.since_boot else took_s)
        if version.since_boot and place == 0 and not ignored:
            begun_s, took_s, divisor_s = 2.8e-5, UPTIME_S, UPTIME_S
        ends_s += second.loop_s or loop_s
        before_s = second.loop_s or loop_s
        heard = list(second.heard_ns)
        so_far += heard
        arrived = len(heard) if heard or not version.stale else arrived
        yield Printed(
            begun_s,
            took_s,
            int(len(heard) / divisor_s),
            int(second.sent / divisor_s),
            0 if second.sends_only else int(second.lost / divisor_s),
            int(size * arrived / divisor_s),
            list(so_far) if version.cumulative else heard,
        )


def log_text(
    version: Version,
    seconds: Sequence[Second],
    loop_s: float = 1.00007,
    size: int = 1040,
    ignored: bool = False,
    **head: str,
) -> str:
    """A CSV log."""
    columns = ["T_experiment", "T_loop", "received", "sent", "lost", "relative_loss", "data_received"]
    columns += [f"latency_{moment} (ms)" for moment in MOMENTS]
    if version.reserves:
        columns += [f"{side}_loop_res_{moment} (ms)" for side in ("pub", "sub") for moment in MOMENTS]
    columns += [*USAGE, "cpu_usage (%)"]
    lines = [f"{key}: {value}" for key, value in (head_of(version) | head).items()]
    lines += ["", "---EXPERIMENT-START---", ",\t".join(columns)]
    lines += [",\t\t".join(csv_row(version, row)) for row in rows_of(version, seconds, loop_s, size, ignored)]
    return "\n".join(lines) + "\n"


def json_text(
    version: Version,
    seconds: Sequence[Second],
    loop_s: float = 1.00007,
    size: int = 1040,
    ignored: bool = False,
    **head: Any,
) -> str:
    """A JSON log: all digits, the number of latencies, 0.0 for what is not finite."""
    results = [json_row(version, row) for row in rows_of(version, seconds, loop_s, size, ignored)]
    return json.dumps({**json_head(version), **head, "analysis_results": results}, separators=(",", ":"))


def head_of(version: Version) -> dict[str, str]:
    quality = "Reliability: BEST_EFFORT Durability: VOLATILE History kind: KEEP_LAST History depth: 16"
    head = {
        "Experiment id": "c9bf78b4-d94a-4772-88c4-edd324d7238f",
        "Performance Test Version": version.commit,
        "Logfile name": "log.csv",
    }
    if version.plugins:
        head |= {"Communicator": "rclcpp-single-threaded-executor"}
    else:
        head |= {"Communication mean": "RCLCPP_SINGLE_THREADED_EXECUTOR"}
        head |= {"RMW Implementation": "rmw_cyclonedds_cpp"}
    head |= {
        "DDS domain id": "0",
        "QOS": quality + (" Sync. pub/sub: 0" if version.sync else ""),
        "Publishing rate": "100",
        "Topic name": "test_topic",
        "Msg name": "Array1k",
        "Maximum runtime (sec)": "30",
        "Number of publishers": "1",
        "Number of subscribers": "1",
        "Memory check enabled": "0",
        "With security": "0",
    }
    if version.shared_memory:
        head |= {"Shared memory transfer": "0"}
    head |= {
        "Zero copy transfer": "0",
        "Unbounded message size": "0",
        "Roundtrip Mode": "None" if version.plugins else "NONE",
        "Ignore seconds from beginning": "0",
    }
    return head | ({"rmw_implementation": "rmw_cyclonedds_cpp"} if version.plugins else {})


def json_head(version: Version) -> dict[str, Any]:
    """The head of a JSON log."""
    return {
        "id": "b148d0dd-fc0d-499c-990f-d24db9c9761a",
        "perf_test_version": version.commit,
        "final_logfile_name": "b148d0dd_test_topic_21-03-2022_09-29-56",
        "com_mean_str": "RCLCPP_SINGLE_THREADED_EXECUTOR",
        "rmw_implementation": "rmw_cyclonedds_cpp",
        "dds_domain_id": 0,
        "qos_reliability": "BEST_EFFORT",
        "qos_durability": "VOLATILE",
        "qos_history_kind": "KEEP_LAST",
        "qos_history_depth": 16,
        "rate": 100,
        "topic_name": "test_topic",
        "msg_name": "Array1k",
        "max_runtime": 30,
        "number_of_publishers": 1,
        "number_of_subscribers": 1,
        "with_security": False,
        "is_zero_copy_transfer": False,
        "roundtrip_mode": "NONE",
        **({"execution_strategy": "INTER_THREAD"} if version.plugins else {}),
    }


def json_row(version: Version, row: Printed) -> dict[str, Any]:
    """One of `analysis_results`."""
    least, most, mean, variance = moments_of(version, row.latencies_ns)
    count = len(row.latencies_ns)
    found = {
        "experiment_start": round(row.begun_s * 1e9),
        "loop_start": round(row.took_s * 1e9),
        "num_samples_received": row.received,
        "num_samples_sent": row.sent,
        "num_samples_lost": row.lost,
        "total_data_received": row.data,
        "latency_min": least / 1000 if not count and not version.integers else least,
        "latency_max": most / 1000 if not count and not version.integers else most,
        "latency_n": float(count),
        "latency_mean": mean,
        "latency_M2": variance * (count - int(version.integers)),
        "latency_variance": variance,
    }
    if version.reserves:
        found["pub_loop_time_reserve_min"] = 0.0098
    return {key: value if math.isfinite(value) else 0.0 for key, value in found.items()}


def moments_of(version: Version, latencies_ns: Sequence[int]) -> tuple[float, float, float, float]:
    """Least, greatest, mean and variance, in seconds."""
    return in_integers(latencies_ns) if version.integers else in_doubles(latencies_ns)


def csv_row(version: Version, row: Printed) -> list[str]:
    """The cells of a row."""
    cells = [f"{row.begun_s:.6f}", f"{row.took_s:.6f}", str(row.received), str(row.sent), str(row.lost)]
    cells += [f"{row.lost / row.sent:.2f}" if row.sent else "-nan", str(row.data)]
    cells += [digits(moment * 1000) for moment in moments_of(version, row.latencies_ns)]
    if version.reserves:
        cells += ["0.01", "9.9", "9.4", "0.002", "0", "0", "0", "0"]
    return [*cells, "0.1", "0.1", "9000", *["0"] * 13, "2.5"]


def digits(value: float) -> str:
    """As a C++ stream with a precision of 4 prints it, on x86."""
    return "-nan" if math.isnan(value) else f"{value:.4g}"


def in_doubles(latencies_ns: Sequence[int]) -> tuple[float, float, float, float]:
    """Least, greatest, mean and variance in seconds, up to 1.4."""
    if not latencies_ns:
        return 1.7976931348623157e308 * 1000, -1.7976931348623157e308 * 1000, 0.0, 0.0
    seconds = np.array(latencies_ns) / 1e9
    return seconds.min(), seconds.max(), seconds.mean(), seconds.var()


def in_integers(latencies_ns: Sequence[int]) -> tuple[float, float, float, float]:
    """Likewise, from 1.5 on: sums of nanoseconds wrap around."""
    count = len(latencies_ns)
    least = min(latencies_ns, default=2**63 - 1)
    most = max(latencies_ns, default=-(2**63))
    if not count:
        return least / 1e9, most / 1e9, math.nan, math.nan
    total = wrapped(sum(latencies_ns))
    squares = wrapped(sum(latency * latency for latency in latencies_ns))
    second_moment = float(squares) - float(wrapped(total * total)) / count
    variance = second_moment / (count - 1) if count > 1 else math.nan
    return least / 1e9, most / 1e9, total / count / 1e9, variance / 1e18


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
