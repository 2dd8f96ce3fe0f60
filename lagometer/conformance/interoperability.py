# SPDX-License-Identifier: Apache-2.0
"""Which middleware interoperates: each publisher with each subscriber, for each ROS 2 message.

The pairs run as cells of ordinary campaigns, regardless of the sidecars' declarations, so that the results
show what does not work. Verdicts are stored as JSON, from which the documentation page is generated.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lagometer.store.reader import Campaign
from lagometer.study.adapter import Adapter
from lagometer.study.adapters import SIDECAR

KINDS = ("string", "Image", "Imu", "PointCloud2")
PAYLOADS = ("64B", "328B", "60KB")  # one fragment, the size of an Imu, and one that most transports fragment
WORKS, FAILS, EXCLUDED = "works", "fails", "excluded"
MACHINE_STOOD_STILL = "rate-missed"  # says nothing about the pair
LOG_LINES_MAX = 6
LOG_CHARACTERS_MAX = 200


DDS, ZENOH = "DDS", "Zenoh"
WIRES = (DDS, ZENOH)


@dataclass(frozen=True)
class Party:
    """An adapter, with options that select another middleware; wire: the protocol of its messages."""

    adapter: str
    options: Mapping[str, str] = field(default_factory=dict)
    wire: str = DDS

    @property
    def name(self) -> str:
        """Its name in a study, and in the tables."""
        return "-".join([self.adapter, *self.options.values()])


PARTIES = (
    Party("cyclonedds"),
    Party("fastdds"),
    Party("rustdds"),
    Party("dust_dds"),
    Party("ros2_rust"),
    Party("ros2", {"rmw": "rmw_cyclonedds_cpp"}),
    Party("ros2", {"rmw": "rmw_fastrtps_cpp"}),
    Party("hiroz", {"router": "rmw_zenohd"}, ZENOH),
    Party("ros2", {"rmw": "rmw_zenoh_cpp"}, ZENOH),
)


@dataclass(frozen=True)
class Pair:
    """A publisher and a subscriber by the names of their parties, and the type of their messages."""

    publisher: str
    subscriber: str
    kind: str


@dataclass(frozen=True)
class Verdict:
    """The result of a pair: WORKS, FAILS or EXCLUDED; why, if it does not work, and an excerpt of the log."""

    verdict: str
    why: str = ""
    log: tuple[str, ...] = ()


Verdicts = dict[Pair, Verdict]


def pairs(parties: Iterable[Party], kinds: Sequence[str] = KINDS) -> list[Pair]:
    """Every party with every party on the same wire, including itself, in every type."""
    return [
        Pair(publisher.name, subscriber.name, kind)
        for publisher, subscriber in _both(parties)
        for kind in kinds
    ]


def _both(parties: Iterable[Party]) -> Iterator[tuple[Party, Party]]:
    party_list = list(parties)
    return (pair for pair in itertools.product(party_list, party_list) if pair[0].wire == pair[1].wire)


def write_party(folder: Path, party: Party, adapter: Adapter, parties: Iterable[Party]) -> None:
    """Makes an adapter for a party: the same library under the party's name, allowed to pair with everyone.

    Links the programs in the adapter's folder, too, since its daemons may be there.
    """
    sidecar = json.loads((adapter.directory / SIDECAR).read_text(encoding="utf-8"))
    sidecar["name"] = party.name
    sidecar["library"] = str(adapter.library)
    sidecar["interoperates_with"] = [other.name for other in parties if other != party]
    directory = folder / party.name
    directory.mkdir(parents=True)
    (directory / SIDECAR).write_text(json.dumps(sidecar), encoding="utf-8")
    for file in adapter.directory.iterdir():
        if file.is_file() and os.access(file, os.X_OK):
            (directory / file.name).symlink_to(file.resolve())


def study_of(
    parties: Sequence[Party], kinds: Sequence[str] = KINDS, with_party: str | None = None
) -> dict[str, Any]:
    """A study of all pairs, or of those with one party, each side in its own process."""
    adapters = [
        publisher.name if publisher == subscriber else f"{publisher.name}+{subscriber.name}"
        for publisher, subscriber in _both(parties)
        if with_party in (None, publisher.name, subscriber.name)
    ]
    return {
        "name": "interoperability",
        "duration": "500ms",
        "warmup": "100ms",
        "drain": "300ms",
        "discovery_timeout": "6s",
        "trials": 1,
        "control": "none",
        "machine_floor": "off",
        "matrix": {
            "adapter": adapters,
            "workload": "pipeline-2",
            "payload": list(PAYLOADS),
            "type": list(kinds),
            "rate": "20Hz",
            "reliability": "reliable",
        },
        "options": {party.name: dict(party.options) for party in parties if party.options},
    }


@dataclass(frozen=True)
class _Trial:
    payload_bytes: int
    reasons: tuple[str, ...]
    log: tuple[str, ...]


def verdicts_of(campaigns: Sequence[Campaign]) -> Verdicts:
    """The results of the pairs in campaigns of one study; the later ones repeat what failed in the first.

    A pair works if each of its trials did, in every size of the type.
    """
    trials_by_pair: dict[Pair, list[_Trial]] = {}
    for campaign in campaigns:
        for pair, trial in _trials(campaign):
            trials_by_pair.setdefault(pair, []).append(trial)
    verdicts = {pair: _judged(trials) for pair, trials in trials_by_pair.items()}
    for pair, reason in _excluded(campaigns[0]):
        verdicts.setdefault(pair, Verdict(EXCLUDED, reason))
    return verdicts


def _pair_of(cell: str) -> Pair:
    adapter, *others = cell.split("/")
    publisher, _, subscriber = adapter.partition("+")
    return Pair(publisher, subscriber or publisher, next(part for part in others if part in KINDS))


def _excluded(campaign: Campaign) -> Iterator[tuple[Pair, str]]:
    for excluded_cell in campaign.manifest.get("excluded", ()):
        yield _pair_of(str(excluded_cell["cell"])), str(excluded_cell["reason"])


def _trials(campaign: Campaign) -> Iterator[tuple[Pair, _Trial]]:
    factors = {str(cell["id"]): cell["factors"] for cell in campaign.manifest["cells"]}
    for entry in campaign.journal:
        cell = str(entry["cell"])
        reasons = [str(reason) for reason in entry["reasons"]] or list(_lost(entry["rows"]))
        log = (campaign.directory / str(entry["path"])).with_suffix(".log")
        text = log.read_text(encoding="utf-8") if log.exists() else ""  # no log if only its figures are wrong
        yield _pair_of(cell), _Trial(int(factors[cell]["payload_bytes"]), tuple(reasons), excerpt(text))


def _lost(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What is wrong with a valid trial: reliable messages that were lost or damaged."""
    for row in rows:
        if row["n"] != row["sent"]:
            yield f"lost: {row['edge']}: {row['n']} of {row['sent']} messages came"
        if row["corrupted"]:
            yield f"corrupted: {row['edge']}: {row['corrupted']} messages came damaged"


def _judged(trials: Sequence[_Trial]) -> Verdict:
    conclusive = [trial for trial in trials if not _stood_still(trial)]
    failed = [trial for trial in conclusive if trial.reasons]
    if conclusive and not failed:
        return Verdict(WORKS)
    if not conclusive:
        return Verdict(FAILS, plain(trials[0].reasons[0]), trials[0].log)
    sizes = {trial.payload_bytes for trial in failed}
    same_sizes = [trial for trial in conclusive if trial.payload_bytes in sizes]
    sizes_text = (
        "" if len(same_sizes) == len(conclusive) else f"at {', '.join(f'{size} B' for size in sorted(sizes))}"
    )
    count_text = "" if len(failed) == len(same_sizes) else f"in {len(failed)} of {len(same_sizes)} trials"
    circumstances = " ".join(part for part in (count_text, sizes_text) if part)
    first = failed[0]
    return Verdict(
        FAILS,
        f"{circumstances}: {plain(first.reasons[0])}" if circumstances else plain(first.reasons[0]),
        first.log,
    )


def _stood_still(trial: _Trial) -> bool:
    return bool(trial.reasons) and all(reason.startswith(MACHINE_STOOD_STILL) for reason in trial.reasons)


def worse(before: Verdicts, after: Verdicts) -> list[str]:
    """The pairs that worked before and fail now, one line each."""
    return [
        f"{pair.publisher} to {pair.subscriber}, {pair.kind}: {verdict.why}"
        for pair, verdict in after.items()
        if verdict.verdict == FAILS and pair in before and before[pair].verdict == WORKS
    ]


def again(campaign: Campaign) -> list[str]:
    """The cells of a campaign that deserve another trial: all that did not work."""
    return [
        str(entry["cell"]) for entry in campaign.journal if entry["reasons"] or list(_lost(entry["rows"]))
    ]


def excerpt(text: str) -> tuple[str, ...]:
    """The most informative part of a trial's log: the workers' last lines, without what varies by run."""
    lines = [plain(line) for line in text.splitlines()]
    worker_lines = [line for line in lines if line and not line.startswith(("---", "reason:"))]
    return tuple(dict.fromkeys(worker_lines[-LOG_LINES_MAX:]))


_DIFFERS = (
    (re.compile(r"(?<![\w.])(?:/[\w.+-]+)+/(?=[\w.+-])"), ""),  # the folders of a path
    (re.compile(r"\b(?:pid|process|PID) \d+"), "process N"),
    (re.compile(r"\b0x[0-9a-f]+\b"), "0x…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?"), "…"),
    (re.compile(r"\b\d{10}\.\d+\b"), "…"),  # seconds since 1970
    (re.compile(r"\x1b\[[0-9;]*m"), ""),  # colours
    (re.compile(r"\b\d+\.\d+ s\b"), "… s"),
)


def plain(line: str) -> str:
    """A line of a log without folders, ids and times."""
    for pattern, replacement in _DIFFERS:
        line = pattern.sub(replacement, line)
    line = line.strip()
    return line if len(line) <= LOG_CHARACTERS_MAX else line[: LOG_CHARACTERS_MAX - 1] + "…"


def as_json(verdicts: Verdicts, versions: Mapping[str, str]) -> dict[str, Any]:
    """The stored form; `versions` by party."""
    listed = [{**asdict(pair), **asdict(verdict)} for pair, verdict in verdicts.items()]
    return {"format": 1, "versions": dict(versions), "pairs": listed}


def from_json(document: Mapping[str, Any]) -> tuple[Verdicts, dict[str, str]]:
    """Verdicts and versions from the stored form."""
    verdicts = {
        Pair(entry["publisher"], entry["subscriber"], entry["kind"]): Verdict(
            entry["verdict"], entry["why"], tuple(entry["log"])
        )
        for entry in document["pairs"]
    }
    return verdicts, dict(document["versions"])
