# SPDX-License-Identifier: Apache-2.0
"""Limits that both workers share. Made by `python -m lagometer.run.worker.plan_bounds`: change the models."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """Both included; whole multiples of `step`."""

    low: int
    high: int
    step: int = 1


TEXT_CHARACTERS_MAX = 4_096  # of any text in a plan
NESTING_LEVELS_MAX = 32  # of a plan's JSON
INTERVAL_MEAN_MIN_NS = 1_000  # of a recorded schedule
LINE_BYTES_MAX = 67_108_864  # of standard input
AT_MAX_NS = 4_611_686_018_427_387_904  # the latest common start
CONTENT_FILE_BYTES_MAX = 67_108_864  # of a file that payloads are filled from
RECORDS_BYTES_MAX = 8_589_934_592  # of a worker's records
PROBE_FIRST_NS = 1_000_000  # from the first probe to the second; each interval is a quarter longer
PROBE_SLOWEST_NS = 50_000_000  # between probes, at most
IN_FLIGHT_MAX_NS = 10_000_000  # the largest plausible time in flight of a probe
MATCH_LOOK_NS = 500_000  # how often a worker looks whether it is matched
STANDALONE_HEAD_START_NS = 5_000_000  # before the start that a standalone worker gives itself
STANDALONE_GRACE_NS = 500_000_000  # for which a standalone worker that is matched goes on probing


class Worker:
    """Bounds of a plan's `Worker`."""

    INDEX = Bounds(0, 1_048_576)
    NAME_CHARACTERS = Bounds(1, 4_096)
    HOST_CHARACTERS = Bounds(1, 4_096)
    HOST_NUMBER = Bounds(0, 1_048_576)


class Phases:
    """Bounds of a plan's `Phases`."""

    DISCOVERY_TIMEOUT_NS = Bounds(1, 3_600_000_000_000)
    WARMUP_NS = Bounds(0, 3_600_000_000_000)
    MEASURE_NS = Bounds(1, 86_400_000_000_000)
    DRAIN_NS = Bounds(0, 3_600_000_000_000)


class Scheduling:
    """Bounds of a plan's `Scheduling`."""

    PRIORITY = Bounds(0, 99)
    CPUS_ITEMS = Bounds(0, 4_096)
    CPUS = Bounds(0, 1_023)


class Adapter:
    """Bounds of a plan's `Adapter`."""

    NAME_CHARACTERS = Bounds(1, 4_096)
    LIBRARY_CHARACTERS = Bounds(1, 4_096)
    ENVIRONMENT_CHARACTERS = Bounds(0, 4_096)


class Security:
    """Bounds of a plan's `Security`."""

    IDENTITY_CA_CHARACTERS = Bounds(1, 4_096)
    PERMISSIONS_CA_CHARACTERS = Bounds(1, 4_096)
    CERTIFICATE_CHARACTERS = Bounds(1, 4_096)
    PRIVATE_KEY_CHARACTERS = Bounds(1, 4_096)
    GOVERNANCE_CHARACTERS = Bounds(1, 4_096)
    PERMISSIONS_CHARACTERS = Bounds(1, 4_096)


class Context:
    """Bounds of a plan's `Context`."""

    ADAPTER = Bounds(0, 4_294_967_295)
    DOMAIN = Bounds(0, 4_294_967_295)
    NAME_CHARACTERS = Bounds(1, 4_096)


class Liveliness:
    """Bounds of a plan's `Liveliness`."""

    LEASE_NS = Bounds(1_000, 4_611_686_018_427_387_904)


class Qos:
    """Bounds of a plan's `Qos`."""

    DEPTH = Bounds(1, 1_048_576)
    DEADLINE_NS = Bounds(1_000, 4_611_686_018_427_387_904)
    LIFESPAN_NS = Bounds(1_000, 4_611_686_018_427_387_904)
    PARTITION_CHARACTERS = Bounds(1, 256)
    INSTANCES = Bounds(1, 10_000)


class Endpoint:
    """Bounds of a plan's `Endpoint`."""

    CONTEXT = Bounds(0, 4_294_967_295)
    TOPIC_CHARACTERS = Bounds(1, 4_096)
    PAYLOAD_BYTES = Bounds(4, 1_073_741_824)
    CAPACITY = Bounds(1, 67_108_864)


class Reader:
    """Bounds of a plan's `Reader`."""

    STREAMS_ITEMS = Bounds(0, 4_096)
    STREAMS = Bounds(0, 1_048_576)


class Writer:
    """Bounds of a plan's `Writer`."""

    STREAM = Bounds(0, 1_048_576)
    SUBSCRIBERS = Bounds(0, 65_536)
    SIZES_BYTES_ITEMS = Bounds(0, 65_536)
    SIZES_BYTES = Bounds(4, 1_073_741_824)
    REPLIED_ON = Bounds(0, 4_294_967_295)


class RandomContent:
    """Bounds of a plan's `RandomContent`."""

    SEED = Bounds(0, 18_446_744_073_709_551_615)


class RecordedContent:
    """Bounds of a plan's `RecordedContent`."""

    PATH_CHARACTERS = Bounds(1, 4_096)
    CRC32 = Bounds(0, 4_294_967_295)


class Answers:
    """Bounds of a plan's `Answers`."""

    READER = Bounds(0, 4_294_967_295)
    STREAM = Bounds(0, 1_048_576)


class NormalWork:
    """Bounds of a plan's `NormalWork`."""

    SPREAD_NS = Bounds(0, 3_600_000_000_000)
    SEED = Bounds(0, 18_446_744_073_709_551_615)


class LognormalWork:
    """Bounds of a plan's `LognormalWork`."""

    SIGMA = Bounds(0, 10)
    SEED = Bounds(0, 18_446_744_073_709_551_615)


class RecordedWork:
    """Bounds of a plan's `RecordedWork`."""

    TIMES_NS_ITEMS = Bounds(1, 65_536)
    TIMES_NS = Bounds(0, 3_600_000_000_000)


class Rule:
    """Bounds of a plan's `Rule`."""

    READERS_ITEMS = Bounds(0, 4_096)
    READERS = Bounds(0, 4_294_967_295)
    WORK_NS = Bounds(0, 3_600_000_000_000)
    WRITERS_ITEMS = Bounds(0, 4_096)
    WRITERS = Bounds(0, 4_294_967_295)


class TimerRule:
    """Bounds of a plan's `TimerRule`."""

    PERIOD_NS = Bounds(1_000, 3_600_000_000_000)
    OFFSET_NS = Bounds(0, 3_600_000_000_000)


class MessageRule:
    """Bounds of a plan's `MessageRule`."""

    USES_ITEMS = Bounds(0, 4_096)
    USES = Bounds(0, 4_294_967_295)


class ClosedLoopRule:
    """Bounds of a plan's `ClosedLoopRule`."""

    TIMEOUT_NS = Bounds(1_000, 3_600_000_000_000)
    MESSAGES_MAX = Bounds(0, 9_223_372_036_854_775_807)


class PoissonSchedule:
    """Bounds of a plan's `PoissonSchedule`."""

    SEED = Bounds(0, 18_446_744_073_709_551_615)


class BurstSchedule:
    """Bounds of a plan's `BurstSchedule`."""

    MESSAGES = Bounds(1, 1_048_576)


class RampSchedule:
    """Bounds of a plan's `RampSchedule`."""

    END_PERIOD_NS = Bounds(1_000, 3_600_000_000_000)
    BEGIN_NS = Bounds(0, 3_600_000_000_000)
    DURATION_NS = Bounds(1, 86_400_000_000_000)


class RecordedSchedule:
    """Bounds of a plan's `RecordedSchedule`."""

    INTERVALS_NS_ITEMS = Bounds(1, 1_048_576)
    INTERVALS_NS = Bounds(0, 3_600_000_000_000)


class Node:
    """Bounds of a plan's `Node`."""

    NAME_CHARACTERS = Bounds(1, 4_096)
    INDEX = Bounds(0, 1_048_576)
    CPUS_ITEMS = Bounds(0, 4_096)
    CPUS = Bounds(0, 1_023)
    READERS_ITEMS = Bounds(0, 4_096)
    WRITERS_ITEMS = Bounds(0, 4_096)
    RULES_ITEMS = Bounds(0, 4_096)


class Plan:
    """Bounds of a plan's `Plan`."""

    PROTOCOL = Bounds(1, 1)
    CELL_CHARACTERS = Bounds(0, 4_096)
    TRIAL = Bounds(0, 4_294_967_295)
    RUNTIME_DIRECTORY_CHARACTERS = Bounds(1, 4_096)
    HEAP_OFFSET_BYTES = Bounds(0, 4_080, 16)
    START_NS = Bounds(0, 3_600_000_000_000)
    ADAPTERS_ITEMS = Bounds(1, 4_096)
    CONTEXTS_ITEMS = Bounds(1, 4_096)
    NODES_ITEMS = Bounds(1, 4_096)
