# SPDX-License-Identifier: Apache-2.0
"""Links: an emulated network between the nodes. The factor `link` names one for a cell.

The profiles that ship are in `links/`, one file each, with the source of every number. A study can add its
own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lagometer import units
from lagometer.study.capacity import CAPACITY, Capacity, load_capacity
from lagometer.study.document import Entries, Scalar, Tree, read_document
from lagometer.study.link_changes import (
    CHANGES,
    OF_A_PROFILE,
    STEPS_MAX,
    Change,
    Parser,
    read_changes,
    step_count,
)
from lagometer.study.values import Names, Problems, name_parser, named_parts, nearest, parsed, word_parser
from lagometer.units import UnitError

NONE = "none"
DISTRIBUTIONS = ("normal", "uniform", "exponential")
MTU_BYTES = 1500  # of Ethernet, IEEE 802.3
MTU_BYTES_MIN, MTU_BYTES_MAX = 576, 65535  # RFC 791: what every host must accept; the longest packet
QUEUE_FRAMES = 1000  # the default of a profile: `txqueuelen` of an Ethernet device in Linux
FRAME_HEADER_BYTES = 14
BURST_MAX = 1000.0
LOSS_MAX = 0.9
# The delay is this many standard deviations of jitter, so that almost no frame would leave before it arrived.
JITTER_DEVIATIONS = {"normal": 3.0, "uniform": 1.75, "exponential": 1.0}
REORDER_DELAY_NS_MIN, REORDER_JITTERS = 2_000_000, 5
PROGRAMS = ("ip", "tc", "nft", "ethtool", "sysctl")
SOURCES = "sources"

_PACKAGE = Path(__file__).resolve().parent.parent
# In a checkout the folder is next to the package; `pip install` puts it inside.
SHIPPED_FOLDERS = (_PACKAGE.parent / "links", _PACKAGE / "links")
_NAMES = Names(
    key="links",
    a_part="a link",
    taken=(NONE, "a cell without an emulated link"),
    empty="says nothing of the link",
    write="delay: 10ms",
)
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kMG])bit(?:/s)?")
_BITS = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


@dataclass(frozen=True)
class Link:
    """One direction of a link; both directions are alike. 0 means unlimited, or that it does not happen.

    rate_bps: of frames, each with frame_overhead_bytes more than its device counts; queue_bytes: how much may
    wait because of the rate; jitter_ns: the standard deviation of the delay; loss, reorder, duplicate: shares
    of frames; burst: how many frames are lost in a row, on average; changes: later states, in the order of
    time; capacity: a recorded one, whose mean is rate_bps; sources: of the numbers, by their keys.
    """

    rate_bps: int = 0
    delay_ns: int = 0
    jitter_ns: int = 0
    distribution: str = "normal"
    loss: float = 0.0
    burst: float = 1.0
    reorder: float = 0.0
    duplicate: float = 0.0
    mtu_bytes: int = MTU_BYTES
    queue_bytes: int = 0
    frame_overhead_bytes: int = 0
    changes: tuple[Change, ...] = ()
    capacity: Capacity | None = None
    description: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """For manifest.json."""
        changes = [change.as_json() for change in self.changes]
        capacity = self.capacity and self.capacity.as_json()
        fields = {**vars(self), "emulated": True, "changes": changes, "capacity": capacity}
        return {**fields, "sources": dict(self.sources)}


def parse_rate_bps(text: str) -> int:
    """`100Mbit`, in bits per second. Raises UnitError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise UnitError(f"'{text}' is not a rate like 100Mbit or 1Gbit")
    rate_bps = round(float(match[1]) * _BITS[match[2]])
    if not 10_000 <= rate_bps <= 100_000_000_000:
        raise UnitError(f"'{text}' is not between 10kbit and 100Gbit")
    return rate_bps


def _share(upper: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        share = units.parse_share(text)
        if not 0 <= share <= upper:
            raise UnitError(f"'{text}' is not between 0% and {upper:.0%}")
        return share

    return parse


def _burst(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise UnitError(f"'{text}' is not a number of frames") from error
    if not 1 <= value <= BURST_MAX:
        raise UnitError(f"'{text}' is not between 1 and {BURST_MAX:.0f} frames")
    return value


def _bytes(lower: int, upper: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        size_bytes = units.parse_payload_bytes(text)
        if not lower <= size_bytes <= upper:
            raise UnitError(f"'{text}' is not between {lower} B and {upper} B")
        return size_bytes

    return parse


@dataclass(frozen=True)
class LinkKey:
    """A key of a link. field: of `Link`; parse: raises UnitError; description: one sentence."""

    field: str
    parse: Callable[[str], object]
    description: str


LINK_KEYS: Mapping[str, LinkKey] = {
    "rate": LinkKey(
        "rate_bps", parse_rate_bps, "bits per second, like 100Mbit; without it there is no limit"
    ),
    "delay": LinkKey("delay_ns", units.parse_duration_ns, "one way, on average"),
    "jitter": LinkKey("jitter_ns", units.parse_duration_ns, "the standard deviation of the delay"),
    "distribution": LinkKey(
        "distribution",
        word_parser(DISTRIBUTIONS),
        "of the delay: normal, uniform, or exponential (a long tail)",
    ),
    "loss": LinkKey("loss", _share(LOSS_MAX), "the share of frames that is lost, like 5%"),
    "burst": LinkKey("burst", _burst, "how many frames are lost in a row, on average"),
    "reorder": LinkKey("reorder", _share(0.5), "the share of frames that overtakes all others"),
    "duplicate": LinkKey("duplicate", _share(0.5), "the share of frames that arrives twice"),
    "mtu": LinkKey("mtu_bytes", _bytes(MTU_BYTES_MIN, MTU_BYTES_MAX), "the longest packet, like 1500B"),
    "queue": LinkKey(
        "queue_bytes", _bytes(2_000, 1 << 30), "what may wait for the rate; the rest is dropped"
    ),
    "frame_overhead": LinkKey(
        "frame_overhead_bytes",
        _bytes(0, 200),
        "bytes of the rate that each frame uses in addition to its own",
    ),
    "description": LinkKey("description", str, "what the link is like, in words"),
}


def read_links(
    value: Tree, problems: Problems, lines: dict[str, int | None], folder: Path
) -> dict[str, Link]:
    """The key `links`: `{name: {delay: 10ms, loss: 1%}}`. folder: where a study's files are searched."""
    return {
        name: _link(item, f"links.{name}", problems, folder)
        for name, item in named_parts(value, _NAMES, problems, lines)
    }


def shipped_links() -> dict[str, Path]:
    """The profiles that ship, by name."""
    return {
        path.stem: path
        for folder in reversed(SHIPPED_FOLDERS)
        if folder.is_dir()
        for path in sorted(folder.glob("*.yaml"))
    }


def load_link(path: Path) -> Link:
    """Reads the file of one profile. Raises BadInput."""
    problems = Problems(str(path))
    link = _link(read_document(path)[0], "", problems, path.parent)
    problems.raise_if_any()
    return link


def chosen_links(
    names: Iterable[object],
    links: Mapping[str, Link],
    problems: Problems,
    lines: Mapping[str, int | None],
    key: str = "matrix.link",
) -> dict[str, Link]:
    """The links that the factor names, under a key: the study's own, or those that ship."""
    shipped, chosen = shipped_links(), dict(links)
    for name in map(str, names):
        if name in chosen or name == NONE:
            continue
        if name in shipped:
            chosen[name] = load_link(shipped[name])
            continue
        hint = nearest(name, [*links, *shipped])
        problems.add(f"unknown link '{name}'", lines.get(key), key, hint)
    return chosen


def _link(value: Entries, where: str, problems: Problems, folder: Path) -> Link:
    fields: dict[str, Any] = {}
    for key, item in value.entries:
        key_path = f"{where}.{key.text}".lstrip(".")
        if key.text == SOURCES:
            fields[SOURCES] = _sources(item, key_path, problems)
        elif key.text == CHANGES:
            fields[CHANGES] = read_changes(item, key_path, _change_parsers(), problems)
        elif key.text not in (*LINK_KEYS, CAPACITY):
            hint = nearest(key.text, [*LINK_KEYS, CHANGES, CAPACITY, SOURCES])
            problems.add(f"unknown key '{key.text}'", key.line, key_path, hint)
        elif not isinstance(item, Scalar):
            problems.add("takes one value", key.line, key_path, "write it behind the colon")
        elif key.text == CAPACITY:
            fields[CAPACITY] = parsed(item, key_path, partial(load_capacity, folder=folder), problems)
        elif (parsed_value := parsed(item, key_path, LINK_KEYS[key.text].parse, problems)) is not None:
            fields[LINK_KEYS[key.text].field] = parsed_value
    link = Link(**fields)
    if link.capacity is not None:
        if "rate_bps" in fields:
            problems.add("'rate' and 'capacity' are two rates", value.line, where, "leave one of them out")
        link = replace(link, rate_bps=link.capacity.mean_rate_bps)
    for message in _contradictions(link):
        problems.add(message, value.line, where)
    for number, message in _contradictions_later(link):
        problems.add(message, value.line, f"{where}.{CHANGES}[{number}]".lstrip("."))
    if link.rate_bps and not link.queue_bytes:
        link = replace(link, queue_bytes=QUEUE_FRAMES * (link.mtu_bytes + FRAME_HEADER_BYTES))
    return link


def _change_parsers() -> dict[str, Parser]:
    """Parsers of the keys that a change shares with a profile. A change may lose all frames for a while."""
    return {name: LINK_KEYS[name].parse for name in OF_A_PROFILE} | {"loss": _share(1.0)}


def _contradictions_later(link: Link) -> Iterator[tuple[int, str]]:
    """Contradictions from a change on, with its index; also when it repeats after all others."""
    if any(_contradictions(link)):
        return
    now = replace(link, changes=())
    numbered = list(enumerate(link.changes))
    for index, change in [
        *numbered,
        *((index, repeated) for index, repeated in numbered if repeated.every_ns),
    ]:
        changed = {name: getattr(change, name) for name in OF_A_PROFILE.values()}
        values: dict[str, Any] = {name: value for name, value in changed.items() if value is not None}
        now = replace(now, **values)
        if change.rate_bps and link.capacity is not None:
            yield (
                index,
                "changes a rate, which a recorded capacity has at every moment: leave one of them out",
            )
        elif change.rate_bps and not link.rate_bps:
            yield index, "changes a rate that the link does not have: give the profile a `rate` to begin with"
        # With no frames or all frames lost, there are no bursts.
        state = now if 0 < now.loss < 1 else replace(now, burst=1.0)
        contradictions = list(_contradictions(state))
        yield from ((index, message) for message in contradictions)
        if contradictions:
            return


def _sources(value: Tree, where: str, problems: Problems) -> dict[str, str]:
    if not isinstance(value, Entries):
        problems.add("takes `key: source` lines", value.line, where)
        return {}
    return {key.text: item.text for key, item in value.entries if isinstance(item, Scalar)}


def _contradictions(link: Link) -> Iterator[str]:
    """Settings that contradict each other."""
    if link.jitter_ns * JITTER_DEVIATIONS[link.distribution] > link.delay_ns:
        jitter_max = units.duration_text(link.delay_ns / JITTER_DEVIATIONS[link.distribution])
        kind = link.distribution
        yield f"frames would leave before they come: with this delay a {kind} jitter is at most {jitter_max}"
    if link.burst > 1 and not link.loss:
        yield "'burst' is for links with `loss`"
    if link.burst > 1 and link.loss > link.burst / (1 + link.burst):
        yield "so much loss can't come in bursts so short"
    if link.queue_bytes and not link.rate_bps:
        yield "'queue' is for links with `rate`: nothing waits without one"
    if link.queue_bytes and link.queue_bytes < 10 * (link.mtu_bytes + FRAME_HEADER_BYTES):
        yield "'queue' has no room for ten frames of this MTU"
    fewest_ns = max(REORDER_DELAY_NS_MIN, REORDER_JITTERS * link.jitter_ns)
    if link.reorder and link.delay_ns < fewest_ns:
        delay_min = units.duration_text(fewest_ns)
        yield f"'reorder' takes a delay of {delay_min} or more: nothing else can be overtaken"


def too_many_changes(name: str, link: Link, measure_ns: int) -> Iterator[str]:
    """Why a link can't change so often in a measure phase of this length."""
    if (count := step_count(link.changes, measure_ns)) > STEPS_MAX:
        yield (
            f"link '{name}' would change {count:,} times in the measure phase, more than {STEPS_MAX:,}: "
            "make `every` longer, or the phase shorter"
        )


def link_reasons(name: str, link: Link, network: str, hosts: Sequence[tuple[str, bool]]) -> Iterator[str]:
    """Why a link can't be emulated for a cell. hosts: the names of those that have workers, and whether
    each is emulated."""
    if len(hosts) < 2 and network == "host":
        yield f"link '{name}' is for the trial's own network, this is the machine's: set `network: private`"
    if len(hosts) > 1 and not all(emulated for _, emulated in hosts):
        real = " and ".join(host for host, emulated in hosts if not emulated)
        yield f"link '{name}' joins hosts of the launcher netns, and {real} has the machine's network"
    if len(hosts) > 1 and link.mtu_bytes > MTU_BYTES:
        yield f"link '{name}' has an MTU of {link.mtu_bytes} B, an emulated host's cable one of {MTU_BYTES} B"
    if os.geteuid() != 0:
        yield f"link '{name}' is made by root"
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        packages = "Debian packages: iproute2, nftables, ethtool, procps"
        yield f"link '{name}' needs {', '.join(missing)}, which is not installed ({packages})"


parse_link_name = name_parser("a link")
