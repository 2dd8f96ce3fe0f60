# SPDX-License-Identifier: Apache-2.0
"""Who understands whom: from campaigns to verdicts, the page, and what adapters declare of each other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from needs import ROOT
from study_adapters import write_adapters

from lagometer.conformance.interoperability import (
    DDS,
    EXCLUDED,
    FAILS,
    KINDS,
    LOG_LINES_MAX,
    PARTIES,
    WIRES,
    WORKS,
    ZENOH,
    Pair,
    Party,
    Verdict,
    again,
    as_json,
    excerpt,
    from_json,
    pairs,
    plain,
    study_of,
    verdicts_of,
    worse,
    write_party,
)
from lagometer.conformance.interoperability_page import contradictions, page
from lagometer.store import format as form
from lagometer.store.reader import Campaign
from lagometer.study.adapters import load_adapter
from lagometer.study.daemons import find_program
from lagometer.study.sidecar import Daemon, Ready, Sidecar

ONE, OTHER = Party("fastdds"), Party("ros2", {"rmw": "rmw_fastrtps_cpp"})
TWO = (ONE, OTHER)
PAIR = Pair("fastdds", "ros2-rmw_fastrtps_cpp", "Image")


def cell(payload: str = "64B", pair: Pair = PAIR) -> str:
    adapter = pair.publisher if pair.publisher == pair.subscriber else f"{pair.publisher}+{pair.subscriber}"
    return f"{adapter}/pipeline-2/{payload}/{pair.kind}/20Hz/reliable"


def trial(
    cell_id: str, *reasons: str, n: int = 10, sent: int = 10, corrupted: int = 0, number: int = 0
) -> dict[str, Any]:
    row = {"edge": "source→sink", "n": n, "sent": sent, "corrupted": corrupted}
    path = f"{form.SAMPLES}/{cell_id}/{number}.parquet"
    return {"cell": cell_id, "trial": number, "reasons": list(reasons), "rows": [row], "path": path}


def campaign(
    folder: Path, *trials: dict[str, Any], excluded: tuple[str, ...] = (), log: str = "one\ntwo\n"
) -> Campaign:
    """A campaign of these trials; whatever failed has this log."""
    sizes = {"64B": 64, "328B": 328, "60KB": 61_440}
    cells = [
        {"id": each["cell"], "factors": {"payload_bytes": sizes[each["cell"].split("/")[2]]}}
        for each in trials
    ]
    for each in trials:
        path = folder / each["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        if each["reasons"]:
            path.with_suffix(".log").write_text(log)
    manifest = {"cells": cells, "excluded": [{"cell": name, "reason": "no such type"} for name in excluded]}
    return Campaign(folder, manifest, {}, form.cells_of_rows([]), trials)


def test_a_pair_that_worked_before_and_fails_is_named() -> None:
    one, other, third = (Pair("a", "b", kind) for kind in KINDS[:3])
    before = {one: Verdict(WORKS), other: Verdict(FAILS, "as ever")}
    now = {one: Verdict(FAILS, "nothing came"), other: Verdict(FAILS, "x"), third: Verdict(FAILS, "new")}
    assert worse(before, now) == [f"a to b, {KINDS[0]}: nothing came"]
    assert worse(before, {one: Verdict(WORKS), other: Verdict(EXCLUDED, "y")}) == []


def test_every_party_meets_every_party_on_its_wire_and_itself() -> None:
    of_wires = [[party for party in PARTIES if party.wire == wire] for wire in WIRES]
    count = sum(len(each) ** 2 for each in of_wires)
    assert all(len(each) >= 2 for each in of_wires)
    assert len(pairs(PARTIES)) == count * len(KINDS)
    adapters = study_of(PARTIES)["matrix"]["adapter"]
    assert len(adapters) == len(set(adapters)) == count
    assert "hiroz-rmw_zenohd+ros2-rmw_zenoh_cpp" in adapters and "hiroz-rmw_zenohd+fastdds" not in adapters
    assert "ros2-rmw_cyclonedds_cpp+ros2-rmw_fastrtps_cpp" in adapters and "dust_dds" in adapters


def test_the_pairs_of_one_party_can_run_alone() -> None:
    adapters = study_of(PARTIES, KINDS, "dust_dds")["matrix"]["adapter"]
    on_its_wire = [party for party in PARTIES if party.wire == DDS]
    assert len(adapters) == 2 * len(on_its_wire) - 1 and all("dust_dds" in each for each in adapters)


def test_a_party_is_the_adapter_under_another_name_that_may_meet_everyone(tmp_path: Path) -> None:
    adapter = write_adapters(tmp_path / "adapters")["shm"]
    write_party(
        tmp_path / "made", Party("shm", {"way": "busy"}), adapter, [Party("shm", {"way": "busy"}), ONE]
    )
    made = load_adapter(tmp_path / "made" / "shm-busy")
    assert (made.name, made.library) == ("shm-busy", adapter.library)
    assert made.sidecar.interoperates_with == ("fastdds",)


def test_the_programs_of_a_party_are_where_its_daemons_are_looked_for(tmp_path: Path) -> None:
    adapter = write_adapters(tmp_path / "adapters")["shm"]
    (adapter.directory / "broker").touch(0o755)
    write_party(tmp_path / "made", Party("shm", {"way": "busy"}), adapter, [ONE])
    made = load_adapter(tmp_path / "made" / "shm-busy")
    broker = Daemon(name="broker", command=("broker",), package="broker", ready=Ready(tcp_port=1883))
    assert find_program(broker, made.directory) == str(made.directory / "broker")


def test_who_is_on_another_wire_is_not_asked_to_understand() -> None:
    other = Party("ros2", {"rmw": "rmw_zenoh_cpp"}, ZENOH)
    of_itself = {Pair(each.name, each.name, kind): Verdict(WORKS) for each in (ONE, other) for kind in KINDS}
    assert list(contradictions(of_itself, (ONE, other), sidecars([], []))) == []
    text = page(of_itself, {}, (ONE, other))
    assert text.count("Over Zenoh:\n\n| from ↓ to → | `ros2-rmw_zenoh_cpp` |\n") == len(KINDS)


def test_a_pair_works_if_every_size_did(tmp_path: Path) -> None:
    good = campaign(tmp_path, trial(cell("64B")), trial(cell("60KB")), excluded=(cell("328B"),))
    assert verdicts_of([good]) == {PAIR: Verdict(WORKS)}
    assert again(good) == []


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (trial(cell("60KB"), n=9), "at 61440 B: lost: source→sink: 9 of 10 messages came"),
        (trial(cell("60KB"), corrupted=1), "at 61440 B: corrupted: source→sink: 1 messages came damaged"),
        (trial(cell("60KB"), "worker-died: sink: SIGABRT"), "at 61440 B: worker-died: sink: SIGABRT"),
    ],
)
def test_a_size_that_does_not_come_whole_is_named(tmp_path: Path, bad: dict[str, Any], why: str) -> None:
    found = campaign(tmp_path, trial(cell("64B")), bad)
    assert verdicts_of([found])[PAIR].why == why
    assert again(found) == [cell("60KB")]


def test_one_that_failed_once_does_not_pass_for_working(tmp_path: Path) -> None:
    first = campaign(tmp_path / "0", trial(cell(), "endpoints-missing: sink"))
    later = campaign(tmp_path / "1", trial(cell()))
    (verdict,) = verdicts_of([first, later]).values()
    assert verdict == Verdict(FAILS, "in 1 of 2 trials: endpoints-missing: sink", ("one", "two"))


def test_a_trial_without_a_log_has_its_reason_alone(tmp_path: Path) -> None:
    """Nobody failed while it ran; its figures are wrong."""
    found = campaign(tmp_path, trial(cell(), "lost: source→sink: 3 messages"))
    next(tmp_path.rglob("*.log")).unlink()
    assert verdicts_of([found]) == {PAIR: Verdict(FAILS, "lost: source→sink: 3 messages")}


def test_a_machine_that_stood_still_tells_nothing_of_the_pair(tmp_path: Path) -> None:
    late = campaign(tmp_path / "0", trial(cell(), "rate-missed: source"))
    assert verdicts_of([late, campaign(tmp_path / "1", trial(cell()))]) == {PAIR: Verdict(WORKS)}
    assert verdicts_of([late])[PAIR].why == "rate-missed: source"


def test_what_is_excluded_in_every_size_is_excluded(tmp_path: Path) -> None:
    found = campaign(tmp_path, excluded=(cell("64B"), cell("328B"), cell("60KB")))
    assert verdicts_of([found]) == {PAIR: Verdict(EXCLUDED, "no such type")}


def test_an_excerpt_is_what_was_said_last_without_what_differs_from_run_to_run() -> None:
    noise = [f"line {number}" for number in range(20)]
    text = "\n".join(["reason: x", "--- sink ---", *noise, "terminate called", "--- source ---", ""])
    assert excerpt(text) == (*noise[-LOG_LINES_MAX + 1 :], "terminate called")
    assert plain("/a/b-1/lib.so: pid 1234 at 0xdeadbeef, 12.5 s") == "lib.so: process N at 0x…, … s"
    assert plain("2026-01-02 03:04:05.678 [Error] \x1b[31mred\x1b[0m") == "… [Error] red"
    assert plain("rt/lagometer/t0 of sensor_msgs/Image") == "rt/lagometer/t0 of sensor_msgs/Image"
    assert len(plain("x" * 1_000)) == 200


def verdicts(**others: Verdict) -> dict[Pair, Verdict]:
    """All pairs of the two work, but those of a publisher that `others` names."""
    return {pair: others.get(pair.publisher, Verdict(WORKS)) for pair in pairs(TWO)}


def test_what_is_kept_comes_back() -> None:
    kept = verdicts(fastdds=Verdict(FAILS, "worker-died", ("a", "b")))
    there = json.loads(json.dumps(as_json(kept, {"fastdds": "2.9.1"})))
    assert from_json(there) == (kept, {"fastdds": "2.9.1"})


def test_the_page_has_a_table_of_each_type_and_each_reason_once() -> None:
    text = page(
        verdicts(fastdds=Verdict(FAILS, "worker-died: <sink>", ("abort",))), {"fastdds": "2.9.1"}, TWO
    )
    for title in ("std_msgs/String", "sensor_msgs/Image", "sensor_msgs/Imu", "sensor_msgs/PointCloud2"):
        assert f"## {title}\n" in text
    assert "| `fastdds` | 2.9.1 |" in text and "| `ros2-rmw_fastrtps_cpp` | not run |" in text
    assert text.count("| `fastdds` | fails [1](#note-1) | fails [1](#note-1) |") == len(KINDS)
    assert text.count("| `ros2-rmw_fastrtps_cpp` | works | works |") == len(KINDS)
    assert text.count("**[1]** fails: worker-died: &lt;sink>") == 1
    assert "```text\nabort\n```" in text


def sidecars(one: list[str], other: list[str]) -> dict[str, Sidecar]:
    """Those of the two, which name these as understanding them."""
    base = load_adapter(ROOT / "adapters" / "null").sidecar
    named = {"fastdds": one, "ros2": other}
    return {name: base.model_copy(update={"interoperates_with": tuple(whom)}) for name, whom in named.items()}


def test_what_adapters_declare_is_held_against_what_was_seen() -> None:
    both = sidecars(["ros2"], ["fastdds"])
    assert list(contradictions(verdicts(), TWO, both)) == []
    (missing,) = contradictions(verdicts(), TWO, sidecars([], ["fastdds"]))
    assert missing == "ros2 understands fastdds, whose interoperates_with does not name it"
    (too_much,) = contradictions(verdicts(fastdds=Verdict(FAILS, "x")), TWO, both)
    assert too_much == "ros2 does not understand fastdds, whose interoperates_with names it"
    of_strings = {pair: verdict for pair, verdict in verdicts().items() if pair.kind == "string"}
    never_run = list(contradictions(of_strings, TWO, both))
    assert never_run[0] == "fastdds to fastdds was never run with Image, Imu, PointCloud2"
    assert len(never_run) == len(TWO) ** 2
    assert list(contradictions({}, TWO, both)) == [], "there is no machine yet on which they ran"


def test_the_page_in_the_repository_is_not_stale() -> None:
    command = [sys.executable, str(ROOT / "tools" / "interoperability.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
