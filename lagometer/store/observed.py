# SPDX-License-Identifier: Apache-2.0
"""External observations of a trial: the kernel's counters, its clocks, and what carried the messages.

They cover the time from the common start to the last worker's `done`: warm-up, measure and drain. Exceptions
are memory (during the drain) and what daemons used (in the measure phase). Observing costs the measure phase
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Increments of the kernel's counters, one column `kernel_X` each. In a private network they belong to the
# trial; on the host's network, to the machine. Those of softnet always belong to the machine.
KERNEL_COUNTERS: dict[str, str] = {
    "udp_receive_buffer_errors": "datagrams dropped because the receiver's socket buffer was full",
    "udp_receive_errors": "datagrams not delivered for any reason, a full buffer included",
    "udp_send_buffer_errors": "datagrams not sent because the sender's socket buffer was full",
    "ip_reassembly_failed": "datagrams of which a fragment was missing or had no room",
    "tcp_retransmitted": "TCP segments sent again",
    "softnet_dropped": "packets dropped because a CPU's backlog was full",
    "loopback_bytes": "bytes over the loopback, headers included",
    "loopback_packets": "packets over the loopback",
    "link_bytes": "bytes received over every other interface, headers included",
}

# What was sent over the trial's networks in the measure phase, if packets were captured; one column `wire_X`
# each. Bytes count whole frames, including their Ethernet headers. RTPS counters are 0 without RTPS.
WIRE_COUNTS: dict[str, str] = {
    "packets": "frames sent",
    "bytes": "bytes of the frames sent",
    "data_bytes": "bytes of frames with messages of the workload, over RTPS",
    "control_bytes": "bytes of frames with heartbeats and acknowledgements of the workload alone, over RTPS",
    "discovery_bytes": "bytes of frames with the middleware's own traffic alone, over RTPS",
    "other_bytes": "bytes of all other frames",
    "data": "RTPS submessages with messages of the workload, or fragments of them",
    "fragments": "RTPS fragments of messages",
    "heartbeats": "RTPS heartbeats of the workload's writers",
    "acknacks": "RTPS acknowledgements to the workload's writers",
    "resent": "RTPS messages or fragments that went to the same place before",
    "startup_discovery_bytes": "bytes of frames with the middleware's own traffic, before the measure phase",
}


# What the processor counted for the workers and daemons in the measure phase; one column `resources_X` each.
PROCESSOR_COUNTS: dict[str, str] = {
    "cycles": "cycles of the CPUs",
    "instructions": "instructions carried out",
    "cache_misses": "misses of the last cache",
    "tlb_misses": "misses of the data TLB when reading",
}

# What all workers and daemons of a trial cost; one column `resources_X` each. Counts: measure phase.
RESOURCE_COUNTS: dict[str, str] = {
    "processes": "workers and processes of daemons",
    "threads": "their threads, without those of LTTng",
    "rss_bytes": "memory, what is shared counted in each process (RSS)",
    "uss_bytes": "memory that no other process has (USS)",
    "descriptors": "open descriptors",
    "tcp_sockets": "TCP sockets among them",
    "udp_sockets": "UDP sockets among them",
    "unix_sockets": "Unix-domain sockets among them",
    "other_sockets": "other sockets among them",
    "middleware_mapped_bytes": "libraries of the middleware, each once: their size in the address space",
    "middleware_resident_bytes": "of these, what is in memory",
    "abstraction_mapped_bytes": "libraries above the middleware, such as rcl and rmw, each once",
    "abstraction_resident_bytes": "of these, what is in memory",
    "user_ns": "CPU time in programs",
    "system_ns": "CPU time in the kernel",
    "minor_faults": "page faults without a disk",
    "major_faults": "page faults that waited for a disk",
    "voluntary_switches": "times that a thread waited for something",
    "involuntary_switches": "times that a thread lost its CPU to another",
    **PROCESSOR_COUNTS,
    "network_sent_bytes": "bytes sent over all interfaces of the trial's network",
    "network_received_bytes": "bytes received over them",
    "energy_nj": "energy of the machine's processors, in nanojoules",
}


@dataclass(frozen=True)
class Match:
    """What carried the messages of one edge.

    claimed: by the adapters. possible: what the evidence allows. Both use the words of docs/ADAPTERS.md.
    """

    edge: str
    claimed: str | None
    possible: tuple[str, ...]
    evidence: str

    @property
    def agrees(self) -> bool:
        """Whether the claim can be true. Without a claim or evidence, nothing contradicts it."""
        return self.claimed is None or not self.evidence or self.claimed in self.possible

    @property
    def seen(self) -> str | None:
        """The transport as written to the results; several that can't be distinguished are joined by `or`."""
        if self.claimed is not None and self.claimed in self.possible:
            return self.claimed
        return " or ".join(self.possible) or None


@dataclass(frozen=True)
class Clocks:
    """How the system's clocks moved relative to CLOCK_MONOTONIC. A step is null if it can't be read."""

    elapsed_ns: int = 0
    wall_step_ns: int | None = None  # CLOCK_REALTIME: set, or stepped by NTP
    suspended_ns: int | None = None  # CLOCK_BOOTTIME: the machine slept
    slewed_ns: int | None = None  # CLOCK_MONOTONIC_RAW: how far NTP slewed CLOCK_MONOTONIC
    uncertainty_ns: int = 0  # of each of them
    source_before: str | None = None
    source_after: str | None = None


@dataclass(frozen=True)
class MachineLoad:
    """What the machine did in that time, over all CPUs; null if it can't be read."""

    capacity_ns: int | None = None  # number of CPUs times elapsed time
    busy_ns: int | None = None  # spent in processes and interrupts, including the trial's own
    stolen_ns: int | None = None  # given to other machines by a hypervisor
    quota_throttled: int | None = None  # periods in which the control group's CPU quota stopped it
    thermal_throttled: int | None = None  # how often heat slowed a core or package down


@dataclass(frozen=True)
class RealtimeLimit:
    """Real-time threads get `runtime_us` of each period (sched_rt_runtime_us); negative: all of it."""

    runtime_us: int
    period_us: int


@dataclass(frozen=True)
class RealtimeThread:
    """A SCHED_FIFO thread's times in the measure phase: on a CPU, and ready without getting one.

    limit: of the host it runs on; None if the host does not report it.
    """

    worker: str
    name: str
    run_ns: int
    wait_ns: int
    limit: RealtimeLimit | None = None


@dataclass(frozen=True)
class Observed:
    """All external observations of one trial."""

    window_ns: int
    private: bool  # the kernel's counters belong to the trial alone
    kernel: Mapping[str, int] = field(default_factory=dict)  # KERNEL_COUNTERS; missing if not readable
    clocks: Clocks = field(default_factory=Clocks)
    other_clocks: tuple[Clocks, ...] = ()  # those of the other hosts
    load: MachineLoad = field(default_factory=MachineLoad)
    realtime_threads: tuple[RealtimeThread, ...] = ()
    involuntary_switches: int = 0  # of the workers in the measure phase
    matches: tuple[Match, ...] = ()
    interference_cpu_ns: int | None = None  # of the interfering load, None if there was none
    interference_achieved_per_s: float | None = None  # docs/methodology/noise.md
    link_cpu_ns: int | None = None  # of emulated links in the measure phase, None if there was none
    memory_pss_bytes: int | None = (
        None  # of workers and daemons during the drain, without the workers' records
    )
    daemon_cpu_ns: int | None = None  # of the daemons in the measure phase, None if there was none
    daemon_pss_bytes: int | None = None  # their share of `memory_pss_bytes`
    wire: Mapping[str, int] = field(default_factory=dict)  # WIRE_COUNTS; missing if not captured
    resources: Mapping[str, int | None] = field(
        default_factory=dict
    )  # RESOURCE_COUNTS; missing if not observed
