# SPDX-License-Identifier: Apache-2.0
"""The campaign that `probe` writes: shown, reported and compared as any other."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest

from lagometer.cli.main import main
from lagometer.run.program.campaign import Carried, cell_of, warnings, write_campaign
from lagometer.run.program.running import Look
from lagometer.stats.program.edges import programs_of
from lagometer.stats.program.realtime import ClockPair, RealtimeClock
from lagometer.store import probes
from lagometer.store.probes import decode, encode
from lagometer.store.reader import open_campaign

SINCE_1970_NS = 1_700_000_000_000_000_000
CLOCK = RealtimeClock(ClockPair(0, SINCE_1970_NS, 9), ClockPair(10**10, SINCE_1970_NS + 10**10, 9))
CELL = "probed/robot/talker→listener/chatter"


def carried(latency_ns: int, seed: int) -> Carried:
    """Two hundred messages of a talker that a listener took so much later, more or less."""
    noise_ns = np.random.default_rng(seed).integers(0, 2_000, 200).tolist()
    declared = [
        {"text": number, "bytes": len(text), "characters": text.ljust(46, b"\0")}
        for number, text in enumerate((b"rt/chatter", b"String"))
    ]
    wrote: list[tuple[dict[str, int], list[dict[str, object]]]] = []
    took: list[tuple[dict[str, int], list[dict[str, object]]]] = []
    for calls, kind in ((wrote, probes.DECLARE_WRITER), (took, probes.DECLARE_READER)):
        calls.append(({"call": kind, "begin_ns": 1, "end_ns": 2, "object": 5}, list(declared)))
    for number, late_ns in enumerate(noise_ns):
        at = 1_000_000 * (number + 1)
        wrote.append(({"call": probes.API_WRITE, "begin_ns": at, "end_ns": at + 900, "object": 5}, []))
        taken = {"kind": probes.TAKEN, "number": SINCE_1970_NS + at + 450}
        end = at + latency_ns + late_ns
        took.append(({"call": probes.API_TAKE, "begin_ns": end - 9, "end_ns": end, "object": 5}, [taken]))
    logs = [
        decode(encode({1: calls}, process=process, program=[name]))
        for process, (name, calls) in enumerate((("talker", wrote), ("listener", took)))
    ]
    look = Look(logs, CLOCK, stopped=False, unreadable=())
    programs = programs_of(logs, CLOCK)
    return Carried(["robot", "--fast"], "robot", datetime.now(timezone.utc), 1.0, 0, look, programs)


def written(folder: Path, latency_ns: int) -> Path:
    write_campaign([carried(latency_ns, seed) for seed in range(6)], folder)
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code, capsys.readouterr().out


def test_a_campaign_has_a_cell_for_each_edge_and_a_trial_for_each_run(tmp_path: Path) -> None:
    campaign = open_campaign(written(tmp_path / "one", 50_000))
    assert campaign.cells["cell"].unique().to_list() == [CELL]
    assert sorted(campaign.cells["trial"].unique().to_list()) == list(range(6))
    assert set(campaign.cells["edge"]) == {"talker→listener /chatter", "end-to-end"}
    assert campaign.cells["n"].unique().to_list() == [200]
    told = campaign.manifest["probed"]
    assert len(told) == 6 and told[0]["command"] == ["robot", "--fast"]
    assert told[0]["programs"][0]["writers"] == [
        {"topic": "rt/chatter", "type": "String", "guid": "", "qos": None, "messages": 200}
    ]


def test_it_is_shown_reported_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (str(written(tmp_path / name, ns)) for name, ns in (("a", 50_000), ("b", 60_000)))
    code, text = said(capsys, "show", before)
    assert code == 0 and CELL in text and "unattributed" in text
    assert said(capsys, "report", before)[0] == 0
    code, text = said(capsys, "compare", before, after, "--json")
    assert code == 0
    (compared,) = json.loads(text)["cells"]
    assert (compared["cell_a"], compared["verdict"]) == (CELL, "slower")
    assert compared["quantities"]["p50"]["a_ns"] == pytest.approx(51_000, abs=200)
    assert compared["quantities"]["p50"]["b_ns"] == pytest.approx(61_000, abs=200)


@pytest.mark.parametrize(("step_ns", "told"), [(18, False), (-800_000, True)])
def test_a_wall_clock_that_was_set_is_told(step_ns: int, told: bool) -> None:
    run = carried(50_000, 0)
    clock = RealtimeClock(CLOCK.begin, ClockPair(10**10, SINCE_1970_NS + 10**10 + step_ns, 9))
    found = list(warnings(replace(run, look=replace(run.look, clock=clock))))
    assert found == [each for each in found if "the wall clock was set by -800 µs" in each]
    assert len(found) == told


def test_a_topic_can_not_lead_out_of_the_folder() -> None:
    assert cell_of("x", "a→b /../../etc/./passwd") == "probed/x/a→b/etc/passwd"
    assert cell_of("x", "a→b plain (2)") == "probed/x/a→b/plain (2)"
