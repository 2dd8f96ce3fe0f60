# SPDX-License-Identifier: Apache-2.0
"""Why workers die, hang, don't find each other or get no message with many nodes: the likeliest cause.

What the middleware says itself counts most. Then what the kernel did, then what had run out when the trial
ended, then what discovery lacked. Without any of these the cause is not known, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lagometer.summary.findings.evidence import Json, Trial
from lagometer.units import duration_text, size_text

WORDS_MAX = 160  # of a line that is quoted
FULL_SHARE = 0.9  # of the CPUs' time: nothing was left for anybody
OWN_SHARE = 0.5  # of the CPUs' time: then the trial itself filled them
NEAR_LIMIT = 0.98  # of the descriptors that a process may have
ROOM_MIN_BYTES = 1 << 20  # less than this in /dev/shm has no room for a segment
SLOW = ("endpoints-missing", "worker-hung", "nothing-received")  # what ends a trial that is too slow
STILL_ON = "discovery was still making progress"  # in the reason of a trial with many unmatched workers


@dataclass(frozen=True)
class Ended:
    """A trial that ended. code, reason: the first of the reasons that end trials with many nodes; log: what
    its workers wrote at last."""

    trial: Trial
    code: str
    reason: str
    log: str = ""

    @property
    def reasons(self) -> str:
        """All reasons, one per line."""
        return "\n".join(map(str, self.trial.line.get("reasons") or ()))


@dataclass(frozen=True)
class Cause:
    """what: a clause, after `because`; number: what shows it, empty if the reason itself does."""

    what: str
    number: str
    fix: str


@dataclass(frozen=True)
class _Said:
    """A cause that the middleware, or the library below it, names in words."""

    pattern: re.Pattern[str]
    what: str
    fix: str


_DESCRIPTORS = (
    "a process has no descriptors left",
    "raise the limit on open files (`ulimit -n`), or put fewer nodes into one process",
)
_SHARED_MEMORY = (
    "/dev/shm has no room left",
    "give /dev/shm more room (`mount -o remount,size=…`), or use smaller segments",
)
_MEMORY = (
    "memory ran out",
    "use fewer nodes, smaller queues or fewer processes, or give the machine more memory",
)
# The middleware's own words, and those of libc, C++ and Rust for the errors of the kernel.
_WORDS = (
    _Said(
        re.compile(r"Too many open files|No file descriptors available|\bEMFILE\b|os error 24\b"),
        *_DESCRIPTORS,
    ),
    _Said(
        re.compile(r"free participant index|[Pp]ort numbers? .{0,60}(?:out of range|too high)"),
        "the domain has no port left for another participant of this host",
        "use one participant per process (`participants: per-process`), several domains, or raise the "
        "middleware's highest participant index",
    ),
    _Said(
        re.compile(r"Address already in use|os error 98\b"),
        "a port that it needs is taken",
        "use fewer participants on this host, or several domains; see who has the port (`ss -lunpt`)",
    ),
    _Said(
        re.compile(
            r"(?:thread|pthread_create|fork|clone|system_error).{0,200}?Resource temporarily unavailable",
            re.DOTALL,
        ),
        "no more threads may be created",
        "raise the limit on processes and threads (`ulimit -u`, pids.max), or put more nodes into one "
        "participant",
    ),
    _Said(
        re.compile(
            r"(?:[Ss]hared|shm|[Ss]egment|ftruncate|fallocate|mmap).{0,120}No space left on device"
            r"|No space left on device.{0,120}(?:[Ss]hared|shm|[Ss]egment)"
        ),
        *_SHARED_MEMORY,
    ),
    _Said(
        re.compile(
            r"Cannot allocate memory|std::bad_alloc|\b[Oo]ut of memory\b|\bENOMEM\b|os error 12\b"
            r"|memory allocation of \d+ bytes failed"
        ),
        *_MEMORY,
    ),
    _Said(
        re.compile(r"[Ll]ease (?:has )?expired"),
        "a participant's lease ran out before it was renewed, and its peers dropped it",
        "give the middleware a longer lease, or its participants more CPU time",
    ),
)


def cause_of(ended: Ended, smaller: Sequence[Trial]) -> Cause | None:
    """The likeliest cause of one trial's end; None if nothing shows one. smaller: valid trials with fewer
    nodes."""
    cause = next(_known(ended), None)
    if cause is None and ended.code in SLOW:
        cause = _slow(ended, smaller)
    return cause


def _known(ended: Ended) -> Iterator[Cause]:
    """What ends a trial by itself, from the surest to the least sure."""
    yield from _in_words(ended)
    yield from _by_kernel(ended)
    yield from _run_out(ended)
    if ended.code == "adapter-failed":
        yield Cause("the middleware refuses, and says why", "", "read the reason: it is the middleware's own")


def _slow(ended: Ended, smaller: Sequence[Trial]) -> Cause | None:
    """What makes discovery slow. Several often occur together: without CPU time, receive buffers overflow."""
    causes = [*_no_cpu_left(ended, smaller), *_discovery_lost(ended), *_not_done(ended)]
    if not causes:
        return None
    others = [cause.number for cause in causes[1:] if cause.number and cause.what != causes[0].what]
    return replace(causes[0], number="; also, ".join([causes[0].number, *others]))


def _in_words(ended: Ended) -> Iterator[Cause]:
    for said in _WORDS:
        for text in (ended.reasons, ended.log):
            if match := said.pattern.search(text):
                yield Cause(said.what, f"it says: {_line_around(text, match)}", said.fix)


def _line_around(text: str, match: re.Match[str]) -> str:
    """The line in which the words end, cut to what surrounds them."""
    begin = max(text.rfind("\n", 0, match.end()) + 1, match.end() - WORDS_MAX)
    end = text.find("\n", match.end())
    line = text[begin : end if end >= 0 else len(text)][:WORDS_MAX]
    return f"'{line.strip()}'"


def _by_kernel(ended: Ended) -> Iterator[Cause]:
    """What killed a worker, if the kernel's figures agree."""
    looks = ended.trial.last_looks
    if "SIGKILL" in ended.reasons:
        for look in looks:
            if (kills := _count(look, "oom_kills")) > 0:
                killed = f"the kernel killed {_counted(kills, 'process')} because of it{_of_memory(look)}"
                yield Cause(_MEMORY[0], killed, _MEMORY[1])
    if "SIGBUS" in ended.reasons:
        for look in looks:
            room = look.get("shared_memory")
            if isinstance(room, dict) and _count(room, "free_bytes") < ROOM_MIN_BYTES:
                yield Cause(_SHARED_MEMORY[0], _room_text(room), _SHARED_MEMORY[1])


def _of_memory(look: Json) -> str:
    memory = look.get("memory")
    return f", on a machine with {size_text(_count(memory, 'bytes'))}" if isinstance(memory, dict) else ""


def _room_text(room: Json) -> str:
    free, whole = (_count(room, name) for name in ("free_bytes", "bytes"))
    return f"{size_text(free)} of {size_text(whole)} were free"


def _run_out(ended: Ended) -> Iterator[Cause]:
    """A limit that a living worker had reached."""
    for look in ended.trial.last_looks:
        limit = _count(look, "descriptors_max")
        living = {str(name): _count(each, "descriptors") for name, each in (look.get("living") or {}).items()}
        most = max(living, key=lambda name: living[name], default=None)
        if most is not None and limit > 0 and living[most] >= NEAR_LIMIT * limit:
            yield Cause(_DESCRIPTORS[0], f"{most} had {living[most]:,} of {limit:,} open", _DESCRIPTORS[1])


def _no_cpu_left(ended: Ended, smaller: Sequence[Trial]) -> Iterator[Cause]:
    """The CPUs were busy all the time: with this trial, or at least more than with fewer nodes."""
    fix = "use fewer processes or participants for each CPU, or give them more time (`discovery_timeout`)"
    what = "the CPUs can't keep up with so many"
    looks = ended.trial.last_looks
    for look in looks:
        load = look.get("load") or {}
        capacity, busy, own = _count(load, "capacity_ns"), _count(load, "busy_ns"), _count(look, "cpu_ns")
        if capacity and busy >= FULL_SHARE * capacity and own * len(looks) >= OWN_SHARE * capacity:
            threads = sum(_count(each, "threads") for each in (look.get("living") or {}).values())
            number = (
                f"all CPUs were {busy / capacity:.0%} busy for {duration_text(_count(look, 'window_ns'))}"
            )
            number += f", {own / capacity:.0%} with the trial's own processes"
            yield Cause(what, number + (f" ({threads:,} threads at the end)" if threads else ""), fix)
    share = _busy_share(ended.trial)
    before = [each for trial in smaller if (each := _busy_share(trial)) is not None]
    if not looks and share is not None and share >= FULL_SHARE and before and max(before) < FULL_SHARE:
        yield Cause(
            what, f"all CPUs were {share:.0%} busy, and at most {max(before):.0%} with fewer nodes", fix
        )


def _busy_share(trial: Trial) -> float | None:
    """Of the CPUs' time from the common start on; None if it was not read."""
    capacity, busy = trial.load("capacity_ns"), trial.load("busy_ns")
    return busy / capacity if capacity and busy is not None else None


def _discovery_lost(ended: Ended) -> Iterator[Cause]:
    """Datagrams that the kernel dropped while workers looked for each other."""
    if ended.code != "endpoints-missing":
        return
    networks = [look.get("network") or {} for look in ended.trial.last_looks]
    dropped = sum(_count(network, "udp_receive_buffer_errors") for network in networks)
    if dropped:
        yield Cause(
            "receive buffers overflow during discovery",
            f"{_counted(dropped, 'datagram')} dropped by the kernel before all had met",
            "raise the receive buffers (`sysctl net.core.rmem_max`, and the adapter's option), or start "
            "fewer participants at once",
        )


def _not_done(ended: Ended) -> Iterator[Cause]:
    if STILL_ON in ended.reason:
        fix = "use a longer `discovery_timeout`, or fewer nodes"
        yield Cause("discovery takes longer than the trial waits", "", fix)


def _counted(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"


def _count(values: Json, name: str) -> int:
    """0 if it is not known."""
    value = values.get(name)
    return value if isinstance(value, int) else 0
