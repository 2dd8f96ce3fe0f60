# SPDX-License-Identifier: Apache-2.0
"""The factors of a study, in the fixed order of a cell's id.

One table defines how each is read, how an id spells it, and what it means. The loader, the ids, the JSON
schema and the test of the documentation all use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from dataclasses import field as dataclass_field
from typing import get_args

from lagometer import units
from lagometer.study import policies
from lagometer.study.bridges import parse_bridge
from lagometer.study.cell import Factors
from lagometer.study.graph import PLACEMENTS
from lagometer.study.hosts import parse_hosts
from lagometer.study.interference import LEVEL_MAX, PROGRAMS, parse_interference
from lagometer.study.links import parse_link_name
from lagometer.study.load_shape import canonical_content, canonical_spread
from lagometer.study.payload import SMALLEST_BYTES, PayloadType
from lagometer.study.schedule import FORMS, canonical_schedule
from lagometer.study.values import count_between, name_parser, text_parser, word_parser
from lagometer.units import UnitError

PAYLOAD_BYTES_MIN = SMALLEST_BYTES
PAYLOAD_BYTES_MAX = 1 << 30
RATE_HZ_MIN = 0.001
RATE_HZ_MAX = 1e6
DEPTH_MAX = 100_000
WORK_NS_MAX = 60 * 10**9
DOMAIN_MAX = 232  # the highest domain in the DDS port mapping
CPU_MAX = 1023
PRIORITY_MAX = 99  # of SCHED_FIFO
PART = "part"

_QUANTITY = {"type": ["string", "number"]}


@dataclass(frozen=True)
class Factor:
    """One factor.

    name: its key in a study; field: of `Factors`; parse: from text, raises UnitError; write: the inverse, in
    the one canonical spelling; description: one sentence; schema: of one value, as JSON Schema; prefix: in a
    cell's id, for values that are bare numbers.
    """

    name: str
    field: str
    parse: Callable[[str], object]
    write: Callable[[object], str]
    description: str
    schema: Mapping[str, object] = dataclass_field(default_factory=lambda: _QUANTITY)
    prefix: str = ""

    def label(self, value: object) -> str:
        """The part of a cell's id for this value."""
        return self.prefix + self.write(value)

    @property
    def default(self) -> object:
        """The value if a study does not set it; None for `adapter` and `workload`, which it must set."""
        default = next(entry.default for entry in fields(Factors) if entry.name == self.field)
        return None if default is MISSING else default


def _payload(text: str) -> int:
    size_bytes = units.parse_payload_bytes(text)
    if size_bytes < PAYLOAD_BYTES_MIN:
        raise UnitError(
            f"'{text}' is smaller than {PAYLOAD_BYTES_MIN} B, the least that tells messages apart"
        )
    if size_bytes > PAYLOAD_BYTES_MAX:
        raise UnitError(f"'{text}' is larger than {units.format_bytes(PAYLOAD_BYTES_MAX)}")
    return size_bytes


def _rate(text: str) -> float:
    rate_hz = units.parse_rate_hz(text)
    if not RATE_HZ_MIN <= rate_hz <= RATE_HZ_MAX:
        raise UnitError(f"'{text}' is not between {RATE_HZ_MIN} Hz and 1 MHz")
    return rate_hz


def parse_work_ns(text: str) -> int:
    """`none`, or `busy-` and a duration such as `busy-1ms`, in nanoseconds. Raises UnitError."""
    if text == "none":
        return 0
    if not text.startswith("busy-"):
        raise UnitError(f"'{text}' is not work; write 'none' or a busy time like 'busy-1ms'")
    work_ns = units.parse_duration_ns(text.removeprefix("busy-"))
    if not 0 < work_ns <= WORK_NS_MAX:
        raise UnitError(f"'{text}' is not between busy-1ns and busy-60s")
    return work_ns


def _write_work(work_ns: object) -> str:
    return f"busy-{units.format_duration(_integer(work_ns))}" if work_ns else "none"


def _cpus(text: str) -> str:
    if text in ("any", "spread"):
        return text
    parts = text.replace(" ", "").split(",")
    if not all(part.isascii() and part.isdigit() and (part == "0" or part[0] != "0") for part in parts):
        raise UnitError(f"'{text}' is not 'any', 'spread' or CPU numbers like '0,1'")
    numbers = [int(part) for part in parts]
    if max(numbers) > CPU_MAX or len(set(numbers)) != len(numbers):
        raise UnitError(f"'{text}' names a CPU twice, or one above {CPU_MAX}")
    return ",".join(str(number) for number in sorted(numbers))


def parse_domains(text: str) -> tuple[int, int | None]:
    """A topic's domain, or `5+10`: that of its publishers and that of its subscribers, across a bridge.
    Raises UnitError."""
    numbers = [count_between(0, DOMAIN_MAX)(number) for number in text.split("+")]
    if len(numbers) > 2:
        raise UnitError(f"'{text}' is not a domain, or two like 5+10")
    if len(numbers) == 2 and numbers[0] == numbers[1]:
        raise UnitError(f"'{text}' crosses to the same domain; write '{numbers[0]}'")
    return numbers[0], numbers[1] if len(numbers) == 2 else None


def _words(name: str, description: str, *valid: str) -> Factor:
    return Factor(name, name, word_parser(valid), str, description, {"enum": list(valid)})


def _adapter(text: str) -> str:
    names = text_parser(text).split("+")
    if len(names) > 2 or not all(names):
        raise UnitError(f"'{text}' is not an adapter or a pair 'publisher+subscriber'")
    if len(names) == 2 and names[0] == names[1]:
        raise UnitError(f"'{text}' pairs an adapter with itself; write '{names[0]}'")
    return text


FACTORS: tuple[Factor, ...] = (
    Factor(
        PART,
        PART,
        text_parser,
        str,
        "the part of the study, from the key `parts`, or none; not written in a matrix",
        {"type": "string"},
    ),
    Factor(
        "adapter",
        "adapter",
        _adapter,
        str,
        "the middleware: an adapter's name, or publisher+subscriber for a mixed pair",
        {"type": ["string", "null"]},
    ),
    Factor(
        "workload",
        "workload",
        text_parser,
        str,
        "the graph: pingpong, roundtrip, pipeline-N, fanout-N, fanin-N, one in workloads/, or a file's path",
        {"type": "string"},
    ),
    Factor(
        "work",
        "work_ns",
        parse_work_ns,
        _write_work,
        "busy time of each relay before it publishes: none, or busy- and a duration",
        {"type": "string", "pattern": "^(none|busy-.+)$"},
    ),
    Factor(
        "work_spread",
        "work_spread",
        canonical_spread,
        str,
        "the distribution of that busy time: none (constant), normal-DEVIATION, lognormal-SIGMA",
        {"type": "string", "pattern": "^(none|normal-.+|lognormal-.+)$"},
        prefix="work-",
    ),
    Factor(
        "payload",
        "payload_bytes",
        _payload,
        lambda value: units.format_bytes(_integer(value)),
        "all bytes of the message's data, from 4B; from 16B on with an envelope of 16 (KB = 1024 B)",
    ),
    Factor(
        "content",
        "content",
        canonical_content,
        str,
        "what payloads are filled with: any (nothing is written), zeros, random, recorded-FILE",
        {"type": "string", "pattern": "^(any|zeros|random|recorded-.+)$"},
        prefix="content-",
    ),
    _words(
        "type",
        "the payload type: bytes (any length), fixed (64B, 1KB, 64KB or 1MB), or a message of ROS 2: string, "
        " Image, Imu (328B) or PointCloud2 (a multiple of 16B)",
        *get_args(PayloadType),
    ),
    Factor(
        "rate",
        "rate_hz",
        _rate,
        lambda value: units.format_rate(float(str(value))),
        "how often each source publishes; a closed loop has none",
    ),
    Factor(
        "schedule",
        "schedule",
        canonical_schedule,
        str,
        f"when sources send, at this mean rate: {FORMS}",
        {"type": "string", "pattern": "^(periodic|poisson|burst-.+|ramp-.+|recorded-.+)$"},
    ),
    Factor(
        "late",
        "late",
        word_parser(("burst", "skip", "shift")),
        str,
        "what a source does with messages that are late by a period or more: send all at once, drop, or move",
        {"enum": ["burst", "skip", "shift"]},
        prefix="late-",
    ),
    _words("reliability", "QoS: may messages be dropped?", "best_effort", "reliable"),
    _words(
        "history",
        "QoS: does a full queue drop its oldest message, or hold the publisher?",
        "keep_last",
        "keep_all",
    ),
    Factor(
        "depth",
        "depth",
        count_between(1, DEPTH_MAX),
        str,
        "QoS: length of the queue with keep_last",
        {"type": "integer", "minimum": 1, "maximum": DEPTH_MAX},
        prefix="depth-",
    ),
    _words("durability", "QoS: does a late subscriber get earlier messages?", "volatile", "transient_local"),
    Factor(
        "deadline_period",
        "deadline_period_ns",
        policies.parse_period_ns,
        policies.write_period,
        "QoS deadline, offered and requested: none, or the longest time between two messages",
        prefix="deadline-",
    ),
    Factor(
        "lifespan",
        "lifespan_ns",
        policies.parse_period_ns,
        policies.write_period,
        "QoS: none, or the age at which the middleware drops a message that nobody took",
        prefix="lifespan-",
    ),
    Factor(
        "liveliness",
        "liveliness",
        policies.canonical_liveliness,
        str,
        "QoS: none, or how a publisher is known to live, and the lease: automatic-1s, manual-1s",
        {"type": "string", "pattern": policies.LIVELINESS_PATTERN},
        prefix="liveliness-",
    ),
    Factor(
        "partition",
        "partition",
        policies.parse_partition,
        str,
        "QoS: none, or the name of the partition that all publishers and subscribers are in",
        {"type": "string"},
        prefix="partition-",
    ),
    Factor(
        "instances",
        "instances",
        policies.parse_instances,
        policies.write_instances,
        "none, or how many instances a topic with a key has: the key is a sequence modulo this number",
        {"type": ["string", "integer"], "pattern": "^none$", "minimum": 1, "maximum": policies.INSTANCES_MAX},
        prefix="instances-",
    ),
    _words(
        "dispatch",
        "how a node learns about messages: listener (middleware's thread), waitset (blocks), poll (spins)",
        "listener",
        "waitset",
        "poll",
    ),
    _words(
        "touch",
        "which bytes the nodes touch on sending and on receiving",
        "header",
        "write",
        "read",
        "write+read",
    ),
    _words(
        "profile",
        "settings: as the vendor ships it, or the same for all as far as each can",
        "default",
        "matched",
    ),
    Factor(
        "placement",
        "placement",
        name_parser("a placement"),  # the loader knows which names the workloads have
        str,
        "how nodes map to processes: these, processes-N (N of them), or one of the workload's `placements`",
        {"anyOf": [{"enum": list(PLACEMENTS)}, {"type": "string"}]},
    ),
    _words(
        "participants",
        "a participant (DDS) or context for each process, or for each node in it",
        "per-process",
        "per-node",
    ),
    Factor(
        "threads",
        "threads",
        word_parser(("per-node", "per-process")),
        str,
        "a dispatch thread (ROS 2: executor) for each node, or one for all nodes of a process, in turn",
        {"enum": ["per-node", "per-process"]},
        prefix="threads-",
    ),
    _words(
        "start",
        "when messages begin: when all are matched, or as soon as the last process is up, in this order",
        "matched",
        "subscriber-first",
        "publisher-first",
    ),
    _words("scheduling", "scheduling policy of the workers: SCHED_OTHER or SCHED_FIFO", "other", "fifo"),
    Factor(
        "cpus",
        "cpus",
        _cpus,
        str,
        "CPU placement: any, spread (worker by worker over the CPUs), or CPUs for every worker, like '0,1'",
        {"type": ["string", "integer"]},
        prefix="cpus-",
    ),
    _words(
        "network", "the trial's own namespaces, or the host's network and shared memory", "private", "host"
    ),
    Factor(
        "domain",
        "domain",
        count_between(0, DOMAIN_MAX),
        str,
        "domain number",
        {"type": "integer", "minimum": 0, "maximum": DOMAIN_MAX},
        prefix="domain-",
    ),
    Factor(
        "bridge",
        "bridge",
        parse_bridge,
        str,
        "what carries topics with two domains (`domain: 5+10`), or with two middlewares (`adapter: "
        "ros1+ros2`), across: none (both ends are in the lower domain), or a program such as zenoh-dds, "
        "zenoh-ros2dds, ddsrouter, ros1-bridge",
        {"type": "string"},
        prefix="bridge-",
    ),
    Factor(
        "security",
        "security",
        word_parser(("none", "sign", "encrypt")),
        str,
        "DDS Security: none, or every message and all of discovery signed, or encrypted",
        {"enum": ["none", "sign", "encrypt"]},
        prefix="security-",
    ),
    Factor(
        "interference",
        "interference",
        parse_interference,
        str,
        f"load beside the workers: none, {', '.join(PROGRAMS)}, -N for N times (to {LEVEL_MAX}), @HOST",
        {
            "type": "string",
            "pattern": f"^(none|({'|'.join(PROGRAMS)})(-[0-9]+)?(@[A-Za-z0-9][A-Za-z0-9._-]*)?)$",
        },
        prefix="interference-",
    ),
    Factor(
        "tuning",
        "tuning",
        word_parser(("none", "latency")),
        str,
        "the machine as it is, or set up for low latency during the trial (by tune-host apply; needs root)",
        {"enum": ["none", "latency"]},
        prefix="tuning-",
    ),
    Factor(
        "hosts",
        "hosts",
        parse_hosts,
        str,
        "where the nodes run: `here`, or names from the key `hosts`, joined by `+`; the first runs what no "
        "other does",
        {"type": "string"},
        prefix="on-",
    ),
    Factor(
        "link",
        "link",
        parse_link_name,
        str,
        "an emulated link between hosts of the launcher netns, or on one host's loopback: none, a profile "
        "that ships (ethernet-100M, ethernet-1G, wifi, wifi-roaming, lte, lte-handover, 5g, lossy-5), or one "
        "from the key `links`",
        {"type": "string"},
        prefix="link-",
    ),
    Factor(
        "variant",
        "variant",
        text_parser,
        str,
        "a set of options by name, from the key `variants`, or none",
        {"type": "string"},
    ),
)
FACTORS_BY_NAME: Mapping[str, Factor] = {factor.name: factor for factor in FACTORS}


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value
