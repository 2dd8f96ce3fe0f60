# SPDX-License-Identifier: Apache-2.0
"""The key `links` and the factor: profiles that ship and free ones, what a cell is called, and what cannot
be."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.study import Adapter, Study, expand, load_study, study_from_mapping
from lagometer.study.capacity import load_capacity
from lagometer.study.link_changes import CHANGES, steps_of
from lagometer.study.links import LINK_KEYS, Link, link_reasons, load_link, shipped_links, too_many_changes
from lagometer.units import UnitError

CPUS = (0, 1)
NAMED = {"ethernet-100M", "ethernet-1G", "wifi", "lte", "5g", "lossy-5", "lte-handover", "wifi-roaming"}
RADIO: dict[str, Any] = {
    "radio": {"rate": "20Mbit", "delay": "5ms", "jitter": "1ms", "loss": "1%", "burst": "3"}
}
NETNS: dict[str, Any] = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": ["sink"]}}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("adapters"))


def study(matrix: dict[str, Any], **top: Any) -> Study:
    matrix = {"adapter": "cyclonedds", "workload": "pipeline-3", **matrix}
    return study_from_mapping({"name": "test", "matrix": matrix, **top}, source="test")


def test_every_number_of_a_profile_that_ships_has_a_source() -> None:
    assert set(shipped_links()) == NAMED
    for path in shipped_links().values():
        given = {line.split(":")[0] for line in path.read_text().splitlines() if line[:1].isalpha()}
        numbers = given & {*LINK_KEYS, CHANGES} - {"description"}
        link = load_link(path)
        assert set(link.sources) == numbers and all(len(text) > 9 for text in link.sources.values()), path


def test_a_link_is_a_factor_with_a_name(
    adapters: dict[str, Adapter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: name)
    given = study({"link": ["none", "lossy-5", "radio"]}, links=RADIO)
    found = {cell.factors.link: cell for cell in expand(given, adapters, CPUS).cells}
    assert [cell.id.rsplit("/", 1)[1] for cell in found.values()] == [
        "link-none",
        "link-lossy-5",
        "link-radio",
    ]
    assert found["none"].link is None and found["lossy-5"].link.loss == 0.05  # type: ignore[union-attr]
    radio = Link(20_000_000, 5_000_000, 1_000_000, loss=0.01, burst=3, queue_bytes=1_514_000)
    assert found["radio"].link == radio and found["radio"].columns()["link"] == "radio"
    assert given.as_json()["links"]["radio"]["emulated"] is True  # type: ignore[index]


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"rate": "20"}, "'20' is not a rate like 100Mbit"),
        ({"rate": "1kbit"}, "is not between 10kbit and 100Gbit"),
        ({"loss": "95%"}, "is not between 0% and 90%"),
        ({"loss": "5"}, "has no unit"),
        ({"burst": "4"}, "'burst' is for links with `loss`"),
        ({"loss": "80%", "burst": "2"}, "can't come in bursts so short"),
        ({"delay": "2ms", "jitter": "1ms"}, "a normal jitter is at most 667 µs"),
        ({"queue": "64KB"}, "'queue' is for links with `rate`"),
        ({"rate": "1Mbit", "queue": "4KB"}, "no room for ten frames"),
        ({"reorder": "1%"}, "'reorder' takes a delay of 2.00 ms or more"),
        ({"mtu": "100B"}, "is not between 576 B and 65535 B"),
        ({"distribution": "pareto", "delay": "1ms"}, "unknown value 'pareto'"),
        ({"lost": "5%"}, "unknown key 'lost'"),
        ({"delay": ["1ms", "2ms"]}, "takes one value"),
    ],
)
def test_what_a_link_cannot_be_is_said(link: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        study({"link": "mine"}, links={"mine": link})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("2s", "links.mine.changes: takes a list of changes (write `changes: [{at: 2s, outage: 300ms}]`"),
        (["2s"], "links.mine.changes[0]: is not a change"),
        ([{"outage": "1s"}], "links.mine.changes[0]: does not say when (add `at: 2s`"),
        ([{"at": "2s"}], "links.mine.changes[0]: changes nothing (add `outage: 300ms`"),
        ([{"at": "2s", "lost": "5%"}], "links.mine.changes[0].lost: unknown key 'lost' (did you mean 'loss'"),
        ([{"at": "soon", "loss": "5%"}], "links.mine.changes[0].at"),
        ([{"at": "2s", "loss": "101%"}], "is not between 0% and 100%"),
        ([{"at": "2s", "outage": "0s"}], "is less than 1 ms"),
        (
            [{"at": "2s", "loss": "5%"}, {"at": "1s", "loss": "0%"}],
            "changes[1]: is not later than the change before it (put changes in the order of their times",
        ),
        ([{"at": "2s", "outage": "1s", "every": "1s"}], "its outage never ends before the next"),
        ([{"at": "2s", "rate": "1Mbit"}], "changes[0]: changes a rate that the link does not have"),
        ([{"at": "2s", "jitter": "4ms"}], "changes[0]: frames would leave before they come"),
    ],
)
def test_what_a_change_cannot_be_is_said(changes: object, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        study({"link": "mine"}, links={"mine": {"delay": "5ms", "changes": changes}})
    assert words in " ".join(str(caught.value).split())


def test_changes_become_steps_of_the_measure_phase() -> None:
    changes = [
        {"at": "1s", "outage": "200ms", "every": "2s"},
        {"at": "3s", "delay": "20ms", "rate": "2Mbit"},
        {"at": "4900ms", "outage": "500ms"},
    ]
    given = study(
        {"link": "mine"}, links={"mine": {"rate": "8Mbit", "delay": "5ms", "loss": "1%", "changes": changes}}
    )
    link = given.links["mine"]
    s, ms = 1_000_000_000, 1_000_000
    assert [vars(step) for step in steps_of(link, link.changes, 5 * s)] == [
        {
            "at_ns": at,
            "rate_bps": rate,
            "delay_ns": delay * ms,
            "jitter_ns": 0,
            "loss": loss,
            "outage": loss == 1,
        }
        for at, rate, delay, loss in (
            (1 * s, 8_000_000, 5, 1.0),
            (1200 * ms, 8_000_000, 5, 0.01),
            (3 * s, 2_000_000, 20, 1.0),
            (3200 * ms, 2_000_000, 20, 0.01),
            (4900 * ms, 2_000_000, 20, 1.0),  # it ends behind the phase
        )
    ]
    assert given.as_json()["links"]["mine"]["changes"][2] == {  # type: ignore[index]
        "at_ns": 4900 * ms,
        "outage_ns": 500 * ms,
    }
    assert not list(too_many_changes("mine", link, 900 * s))
    (reason,) = too_many_changes("mine", link, 3600 * s)
    assert "would change 3,603 times in the measure phase, more than 1,000" in reason


def test_a_recorded_capacity_is_a_file_with_its_hash(tmp_path: Path) -> None:
    (tmp_path / "cell.trace").write_text("1\n1\n4\n10\n")
    (tmp_path / "study.yaml").write_text(
        "name: study\nlinks: {cell: {delay: 5ms, capacity: cell.trace}}\n"
        "matrix: {adapter: udp, workload: pipeline-2, link: cell}\n"
    )
    link = load_study(tmp_path / "study.yaml").links["cell"]
    assert link.capacity is not None and link.capacity.times_ms == (1, 1, 4, 10)
    assert link.rate_bps == 4 * 1504 * 800 and link.queue_bytes == 1_514_000
    assert link.as_json()["capacity"] == {
        "name": "cell",
        "sha256": hashlib.sha256(b"1\n1\n4\n10\n").hexdigest(),
        "packets": 4,
        "period_ms": 10,
        "mean_rate_bps": 4_812_800,
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "the file 'x.trace' is neither in"),
        ("", "has 0 lines, not 1 to 2,000,000"),
        ("1\n2.5\n", "line 2 of 'x.trace' is not a whole number of ms, at most a day: '2.5'"),
        ("5\n3\n", "line 2 of 'x.trace' is earlier than the line before it"),
        ("0\n", "'x.trace' ends at 0 ms"),
        ("80000000\n", "has a mean of 0 bit/s, not 10 kbit/s to 1 Gbit/s"),
    ],
)
def test_what_a_recorded_capacity_cannot_be_is_said(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "x.trace").write_text(content)
    with pytest.raises(UnitError) as caught:
        load_capacity("x.trace", tmp_path)
    assert words in str(caught.value)


def test_a_recorded_capacity_has_no_other_rate(tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_text("1\n")
    path = tmp_path / "link.yaml"
    path.write_text("rate: 1Mbit\ncapacity: x.trace\n")
    with pytest.raises(BadInput, match=r"'rate' and 'capacity' are two rates \(leave one of them out"):
        load_link(path)
    path.write_text("capacity: x.trace\nchanges: [{at: 1s, rate: 1Mbit}]\n")
    with pytest.raises(BadInput, match=r"changes\[0\]: changes a rate, which a recorded capacity has"):
        load_link(path)


def test_an_unknown_link_is_named_with_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"unknown link 'wify'.*did you mean 'wifi'"):
        study({"link": "wify"})


def excluded(adapters: dict[str, Adapter], matrix: dict[str, Any], **top: Any) -> str:
    return " ".join(
        each.reason for each in expand(study({"link": "lossy-5", **matrix}, **top), adapters, CPUS).excluded
    )


def test_cells_that_nothing_crosses_are_excluded(adapters: dict[str, Adapter]) -> None:
    assert "this is the machine's: set `network: private`" in excluded(adapters, {"network": "host"})
    assert "all nodes are in one process" in excluded(adapters, {"placement": "single-process"})
    assert "shm does not use the network" in excluded(adapters, {"adapter": "shm"})
    assert "zeromq with transport ipc does not use it" in excluded(adapters, {"adapter": "zeromq"})
    over_tcp = {"options": {"zeromq": {"transport": "tcp"}}}
    assert "zeromq" not in excluded(adapters, {"adapter": "zeromq"}, **over_tcp)
    local = {"robot": {}, "base": {"runs": ["sink"]}}
    both = {"network": "host", "hosts": "robot+base"}
    assert "joins hosts of the launcher netns, and robot and base has the machine's network" in excluded(
        adapters, both, hosts=local
    )
    assert "joins hosts" not in excluded(adapters, both, hosts=NETNS)


def test_what_a_machine_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "nft" else name)
    hosts = [("robot", True), ("base", True)]
    said = list(link_reasons("big", Link(mtu_bytes=9000), "host", hosts))
    assert said == [
        "link 'big' has an MTU of 9000 B, an emulated host's cable one of 1500 B",
        "link 'big' is made by root",
        (
            "link 'big' needs nft, which is not installed "
            "(Debian packages: iproute2, nftables, ethtool, procps)"
        ),
    ]


def test_a_file_with_an_error_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("delay: 1ms\nlos: 5%\n")
    with pytest.raises(BadInput, match=r"odd.yaml:2: los"):
        load_link(tmp_path / "odd.yaml")
