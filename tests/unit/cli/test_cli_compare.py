# SPDX-License-Identifier: Apache-2.0
"""`lagometer compare`, `baseline`, `explain` and `plan --detect` on folders of campaigns."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from study_adapters import write_adapters

from lagometer.cli import baseline, compare, explain, plan, report
from lagometer.cli.show import comparison as show_comparison
from lagometer.cli.show.findings import mark
from lagometer.errors import BadInput, NotComparable, Regression, SetupMissing
from lagometer.report import page
from lagometer.stats.compare.comparable import Choice, cell_trials, compare_campaigns
from lagometer.stats.interval.confidence import Pool
from lagometer.store.reader import open_campaign

ROOT = Path(__file__).parents[3]
import synthetic_campaign  # noqa: E402

SHAPE = {"payloads_bytes": (64,), "reliabilities": ("best_effort",), "trials": 9, "messages": 120}
SHM = "shm/pipeline-3/64B/500Hz/best_effort/process-per-node"
UDP = "udp/pipeline-3/64B/500Hz/best_effort/process-per-node"


def write(folder: Path, seed: int, slower: float = 1.0, **more: Any) -> Path:
    """A campaign of two cells, all of whose messages are slower by a factor."""
    usual = synthetic_campaign.BASE_LATENCY_NS
    synthetic_campaign.BASE_LATENCY_NS = {name: int(base * slower) for name, base in usual.items()}
    try:
        shape = synthetic_campaign.Shape(**{"adapters": ("shm", "udp"), "seed": seed, **SHAPE, **more})
        made: Path = synthetic_campaign.write_campaign(folder, shape)
    finally:
        synthetic_campaign.BASE_LATENCY_NS = usual
    return made


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("compared")
    return {
        "before": write(folder / "before", 1),
        "again": write(folder / "again", 2),
        "after": write(folder / "after", 3, slower=1.25),
    }


def edited(source: Path, folder: Path, file: str, change: Any) -> Path:
    """A copy of a campaign with something else in one of its JSON files."""
    shutil.copytree(source, folder)
    content = json.loads((folder / file).read_text())
    change(content)
    (folder / file).write_text(json.dumps(content))
    return folder


def carried_out_in_blocks(source: Path, folder: Path) -> Path:
    """A copy of a campaign in which trial k of each cell began before trial k + 1 of any."""
    shutil.copytree(source, folder)
    minute = pl.col("trial").cast(pl.String).str.zfill(2)
    started = pl.format("2026-01-01T00:{}:00+00:00", minute)
    pl.read_parquet(folder / "cells.parquet").with_columns(started=started).write_parquet(
        folder / "cells.parquet"
    )
    return folder


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_slower_campaign_is_found_and_fails_on_demand(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = campaigns["before"], campaigns["after"]
    assert compare.command(before, after, json=True) == 0
    found = told(capsys)
    assert (found["verdict"], [cell["verdict"] for cell in found["cells"]]) == (
        "slower",
        ["slower", "slower"],
    )
    assert 1.15 < found["cells"][0]["quantities"]["p50"]["ratio"] < 1.35
    for folder, side in ((before, "a"), (after, "b")):
        cells = pl.read_parquet(folder / "cells.parquet")
        own = cells.filter((pl.col("cell") == SHM) & (pl.col("edge") == "end-to-end") & pl.col("valid"))
        told_of = found["cells"][0][f"cpu_per_message_{side}"]
        assert told_of["value_ns"] == own["cpu_per_message_ns"].median()
        assert told_of["low_ns"] < told_of["value_ns"] < told_of["high_ns"]
    assert compare.command(before, after, fail_if=["p50 > +10%"]) == Regression.exit_code == 8
    assert f"failed: p50 > +10% is shown: {SHM}" in capsys.readouterr().err
    assert compare.command(before, after, fail_if=["p50 > 100%", "p50 < -5%"]) == 0
    assert compare.command(after, before, fail_if=["p50 < -5%"]) == 8


def test_strict_fails_what_is_not_ruled_out(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, again = campaigns["before"], campaigns["again"]
    assert compare.command(before, again, fail_if=["p50 > +0.1%"]) == 0
    assert compare.command(before, again, fail_if=["p50 > +0.1%"], strict=True) == 8
    assert "is possible" in capsys.readouterr().err
    assert compare.command(before, again, fail_if=["p50 > +40%"], strict=True) == 0


def test_a_condition_that_nobody_can_judge_is_no_pass(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code = compare.command(campaigns["before"], campaigns["after"], fail_if=["p99.9 > +5%"])
    assert code == NotComparable.exit_code == 9
    assert "p99.9 > +5% can't be judged in any cell: A: not enough samples" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["p99", "p99 > 5", "p75 > 5%", "p50 >> 5%", "p50 < -100%", "max > 5%"])
def test_what_is_no_condition_is_bad_input(campaigns: dict[str, Path], text: str) -> None:
    with pytest.raises(BadInput, match="is not a condition"):
        compare.command(campaigns["before"], campaigns["after"], fail_if=[text])


def test_wrong_options_are_bad_input(campaigns: dict[str, Path], tmp_path: Path) -> None:
    before = campaigns["before"]
    for wrong in ({"by": "shm"}, {"by": "shm:"}, {"by": "a:a"}, {"alpha": 0.0}, {"alpha": 0.5}):
        with pytest.raises(BadInput):
            compare.command(before, before, **wrong)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="only one campaign is given"):
        compare.command(before)
    with pytest.raises(BadInput, match="no such folder"):
        compare.command(before, tmp_path / "absent")


def test_another_machine_is_refused_until_it_is_asked_for(
    campaigns: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def move(environment: dict[str, Any]) -> None:
        environment |= {"hostname": "bench-2", "machine_id": "b" * 16, "kernel": "6.6.0"}

    other = edited(campaigns["after"], tmp_path / "other", "environment.json", move)
    here = edited(
        campaigns["before"],
        tmp_path / "here",
        "environment.json",
        lambda each: each.update(machine_id="a" * 16),
    )
    assert compare.command(here, other) == 9
    assert "measured on different machines (A: bench-1, B: bench-2)" in capsys.readouterr().out
    assert compare.command(here, other, across_machines=True) == 0
    text = capsys.readouterr().out
    assert "differs in kernel: 6.1.0 → 6.6.0" in text and "2 slower" in text


HOST = {"launcher": "netns", "emulated": True, "address": "10.77.0.1", "symmetric": False}
LINK = {"rate_bps": 20_000_000, "delay_ns": 5_000_000, "description": "a radio", "sources": {}}


def with_network(host: dict[str, Any], link: dict[str, Any], back_end: str, **study: Any) -> Any:
    """Changes a manifest so that a host and a link have these properties."""

    def change(manifest: dict[str, Any]) -> None:
        manifest["study"] |= {"hosts": {"robot": host}, "links": {"radio": link}, **study}
        manifest["hosts"] = {"robot": {"host": f"at {host['address']}", "machine": "x86_64", "limits": {}}}
        for cell in manifest["cells"]:
            cell["factors"]["link"] = "radio"

    def also_in_journal(source: Path, folder: Path) -> Path:
        made = edited(source, folder, "manifest.json", change)
        lines = [json.loads(line) for line in (made / "journal.jsonl").read_text().splitlines()]
        for line in lines:
            line["links"] = [{"host": "robot", "back_end": back_end}]
        (made / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return made

    return also_in_journal


def test_hosts_and_links_that_only_share_a_name_are_named(campaigns: dict[str, Path], tmp_path: Path) -> None:
    """Ids of cells have the names alone."""
    parts = {"p": {"duration_ns": 1, "capture": True}}
    usual = with_network(HOST, LINK, "kernel", capture=False, parts=parts)
    before = usual(campaigns["before"], tmp_path / "before")
    other_host = {**HOST, "launcher": "ssh", "emulated": False, "destination": "robot", "address": "10.0.0.7"}
    other_link = {**LINK, "rate_bps": 10_000_000, "description": "another text"}
    parts = {"p": {"duration_ns": 2, "capture": True}, "q": {"duration_ns": 3}}
    after = with_network(other_host, other_link, "user-space", capture=True, parts=parts)(
        campaigns["after"], tmp_path / "after"
    )
    comparison = compare_campaigns(open_campaign(before), open_campaign(after))
    assert {(each.what, each.a, each.b) for each in comparison.differences} >= {
        ("host robot: launcher", "netns", "ssh"),
        ("host robot: emulated", True, False),
        ("host robot: address", "10.77.0.1", "10.0.0.7"),
        ("host robot: agent's host", "at 10.77.0.1", "at 10.0.0.7"),
        ("link radio: rate_bps", 20_000_000, 10_000_000),
        ("link radio: emulated by", "kernel", "user-space"),
        ("study: capture", False, True),
        ("part p: duration_ns", 1, 2),
    }
    words = ("host", "link", "part", "study")
    named = [each.what for each in comparison.differences if each.what.startswith(words)]
    assert len(named) == 8, named
    again = usual(campaigns["again"], tmp_path / "again")
    comparison = compare_campaigns(open_campaign(before), open_campaign(again))
    assert not [each.what for each in comparison.differences if each.what.startswith(words)]


def test_private_and_host_networks_are_not_compared(
    campaigns: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = shutil.copytree(campaigns["after"], tmp_path / "host")
    manifest = json.loads((host / "manifest.json").read_text())
    for cell in manifest["cells"]:
        cell["id"] += "/host"
        cell["factors"]["network"] = "host"
    (host / "manifest.json").write_text(json.dumps(manifest))
    cells = pl.read_parquet(host / "cells.parquet").with_columns(pl.col("cell") + "/host")
    cells.write_parquet(host / "cells.parquet")
    assert compare.command(campaigns["before"], host) == 9
    assert "network: private against host" in capsys.readouterr().out


def test_a_cell_without_samples_is_not_compared_and_the_others_are(
    campaigns: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = shutil.copytree(campaigns["after"], tmp_path / "damaged")
    (damaged / "samples" / SHM / "3.parquet").unlink()
    assert compare.command(campaigns["before"], damaged, json=True) == 0
    cells = told(capsys)["cells"]
    assert [cell["verdict"] for cell in cells] == ["not-comparable", "slower"]
    assert "3.parquet: no samples of this trial" in cells[0]["why"]


def test_cells_of_one_campaign_by_a_part_of_their_id(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.command(campaigns["before"], by="shm:udp", json=True) == 0
    found = told(capsys)
    assert [(cell["cell_a"], cell["cell_b"], cell["verdict"]) for cell in found["cells"]] == [
        (SHM, UDP, "slower")
    ]
    assert (found["only_a"], found["only_b"]) == ([], [])
    assert compare.command(campaigns["before"], by="shm:tcp") == 9


def test_what_is_in_one_campaign_only_is_named(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = compare_campaigns(
        open_campaign(campaigns["before"]), open_campaign(campaigns["again"]), Choice(select=("udp/*",))
    )
    assert [cell.cell_a for cell in comparison.cells] == [UDP]
    assert (comparison.only_a, comparison.only_b, comparison.verdict) == ([], [], "no-difference")
    assert comparison.cells[0].notes[0] == "failed trials: A 1 of 9, B 1 of 9"


def test_the_terminal_has_a_verdict_in_a_line_and_a_chart(campaigns: dict[str, Path]) -> None:
    comparison = compare_campaigns(open_campaign(campaigns["before"]), open_campaign(campaigns["after"]))
    console = Console(width=200, no_color=True, highlight=False)
    with console.capture() as captured:
        show_comparison.render(comparison, console)
    lines = captured.get().splitlines()
    line = next(line for line in lines if "p50 slower" in line)
    assert "│" in line and "●" in line and line.index("│") < line.index("●")
    assert re.search(r"[\d.]+ µs \([\d.]+ – [\d.]+ µs\) → [\d.]+ µs \([\d.]+ – [\d.]+ µs\)$", line), line
    cost = lines[lines.index(line) + 2]
    assert re.match(r"  CPU/msg \+\d+\.\d %  [\d.]+ µs \([\d.]+ – [\d.]+ µs\) → [\d.]+ µs \(", cost), cost
    assert "p99 can't be compared: A: not enough samples" in captured.get()
    assert lines[-1].startswith("slower: 2 slower, 2 of 2 cells compared (any false alarm: at most 0.02")


def test_findings_stand_beside_the_compared_cells(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    compare.command(campaigns["before"], campaigns["after"], json=True)
    told = json.loads(capsys.readouterr().out)
    notes: dict[str, dict[str, list[int]]] = {"a": {}, "b": {}}
    for side, by_cell in notes.items():
        for finding in told[f"findings_{side}"]:
            by_cell[finding["cell"]] = sorted({*by_cell.get(finding["cell"], ()), finding["footnote"]})
        for cell in told["cells"]:
            assert cell[f"findings_{side}"] == by_cell.get(cell[f"cell_{side}"], [])
    of_a, of_b = notes["a"][UDP], notes["b"][UDP]
    compare.command(campaigns["before"], campaigns["after"])
    text = capsys.readouterr().out
    assert f"{UDP}  findings: A{mark(of_a)}, B{mark(of_b)}\n" in text
    assert f"  [{of_a[0]}] " in text[text.index("findings in A") :]
    explain.command(f"{campaigns['before']}:{UDP}", f"{campaigns['after']}:{UDP}")
    assert re.search(rf"^A \S*{re.escape(UDP)} \[1[\],]", capsys.readouterr().out, re.MULTILINE)


def test_the_comparison_is_a_page_on_demand(
    campaigns: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle.html"
    bundle.write_text(f'<script type="application/json">{page.PLACEHOLDER}</script>')
    monkeypatch.setattr(page, "BUNDLE", bundle)
    written = tmp_path / "comparison.html"
    assert compare.command(campaigns["before"], campaigns["after"], report=written) == 0
    assert '"verdict":"slower"' in written.read_text().replace('": "', '":"')
    monkeypatch.setattr(page, "BUNDLE", tmp_path / "absent")
    with pytest.raises(SetupMissing):
        compare.command(campaigns["before"], campaigns["after"], report=written)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "--report: . is a folder (give a file, such as report.html)"),
        (".", "--report: . is a folder (give a file, such as report.html)"),
        ("/", "--report: / is a folder (give a file, such as /report.html)"),
        ("absent/page.html", "--report: absent is not a folder (create it, or name another)"),
        ("x" * 300, "can't be written: File name too long"),
    ],
)
def test_a_page_that_can_be_no_file_is_bad_input(
    campaigns: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    """Before the comparison, which takes a while."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lagometer.stats.compare.comparable.compare_campaigns", None)
    with pytest.raises(BadInput) as caught:
        compare.command(campaigns["before"], campaigns["after"], report=Path(name))
    assert said in str(caught.value)
    with pytest.raises(BadInput) as caught:
        report.command(campaigns["before"], Path(name))
    assert said.replace("--report", "--out") in str(caught.value)


def test_baselines_are_kept_listed_and_compared(
    campaigns: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    baseline.save("main", campaigns["before"], kept)
    with pytest.raises(BadInput, match="already"):
        baseline.save("main", campaigns["again"], kept)
    baseline.save("main", campaigns["again"], kept, replace=True)
    assert sorted(path.name for path in kept.iterdir()) == ["main"]  # nothing half made is left
    capsys.readouterr()
    baseline.list_(kept, json=True)
    assert [(row["name"], row["cells"]) for row in told(capsys)["baselines"]] == [("main", 2)]
    assert baseline.compare_("main", campaigns["after"], kept, fail_if=["p50 > +5%"]) == 8
    assert "  CPU/msg +" in capsys.readouterr().out
    assert baseline.compare_("main", campaigns["before"], kept) == 0
    for name, directory in (("absent", campaigns["after"]), ("../up", campaigns["after"])):
        with pytest.raises(BadInput):
            baseline.compare_(name, directory, kept)


def test_an_unfinished_campaign_is_no_baseline(campaigns: dict[str, Path], tmp_path: Path) -> None:
    half = edited(
        campaigns["before"], tmp_path / "half", "manifest.json", lambda each: each.update(state="interrupted")
    )
    with pytest.raises(BadInput, match="not finished"):
        baseline.save("half", half, tmp_path / "kept")


def test_explain_says_where_the_time_goes(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    explain.command(f"{campaigns['before']}:shm*", f"{campaigns['after']}:shm*", json=True)
    found = told(capsys)
    parts = {(part["edge"], part["what"].split(" (")[0]): part for part in found["parts"]}
    sending = "sending, transport and wake-up"
    assert {part["what"].split(" (")[0] for part in found["parts"][:2]} == {sending}
    assert parts["source→relay-1", "taking"]["difference_ns"] == 0.0
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(1.0)
    assert all(part["low_ns"] > 0 for part in found["parts"][:2])
    assert found["comparison"]["verdict"] == "slower"


def test_explain_claims_nothing_where_no_difference_is_shown(
    campaigns: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    explain.command(f"{campaigns['before']}:shm*", f"{campaigns['again']}:shm*")
    assert "no difference between these cells is shown" in capsys.readouterr().out
    explain.command(f"{campaigns['before']}:{SHM}", f":{UDP}")
    text = capsys.readouterr().out
    assert "; CPU/msg +" in text
    assert "adapter: shm → udp" in text and "not shown" not in text


def test_explain_says_what_slowed_the_floor_as_much(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cell at 1 kHz and one at 10 Hz, and shared memory that did the same: both are slower alike."""
    more = {"adapters": ("shm", "cyclonedds")}
    fast = write(tmp_path / "fast", 1, rate_hz=1000, **more)
    slow = write(tmp_path / "slow", 2, 1.25, rate_hz=10, **more)
    sides = f"{fast}:cyclonedds*", f"{slow}:cyclonedds*"
    explain.command(*sides)
    sentence = "the floor (shm) changed by 1."
    assert sentence in capsys.readouterr().out
    explain.command(*sides, json=True)
    found = told(capsys)["floor"]
    assert found["sentence"].startswith(sentence)
    floors = (SHM.replace("500Hz", "1000Hz"), SHM.replace("500Hz", "10Hz"))
    assert (found["floor_a"], found["floor_b"]) == floors
    assert found["verdict"] in ("machine", "both")


def test_explain_claims_nothing_within_what_the_clocks_are_known_to(
    campaigns: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = []
    for name in ("before", "after"):
        folder = shutil.copytree(campaigns[name], tmp_path / name)
        bound = pl.lit(50_000).cast(pl.Int64).alias("clock_bound_ns")
        pl.read_parquet(folder / "cells.parquet").with_columns(bound).write_parquet(folder / "cells.parquet")
        sides.append(f"{folder}:shm*")
    explain.command(*sides, json=True)
    found = told(capsys)
    assert found["comparison"]["verdict"] == "no-difference"
    assert "what lies within that is no difference" in found["comparison"]["notes"][0]
    assert found["floor"] is None
    sending = [part for part in found["parts"] if part["what"].startswith("sending")]
    assert len(sending) == 2
    for part in sending:
        assert part["difference_ns"] - part["low_ns"] > 100_000 < part["high_ns"] - part["difference_ns"]
    explain.command(*sides)
    text = capsys.readouterr().out
    assert "known of A to ± 50.0 µs, B to ± 50.0 µs" in text
    assert "no difference between these cells is shown" in text


def test_explain_wants_one_cell(campaigns: dict[str, Path]) -> None:
    with pytest.raises(BadInput, match="matches 2 cells"):
        explain.command(str(campaigns["before"]), str(campaigns["after"]))
    with pytest.raises(BadInput, match="no cell matches"):
        explain.command(f"{campaigns['before']}:tcp*", str(campaigns["after"]))


def test_plan_says_how_many_trials_show_a_change(
    campaigns: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_adapters(tmp_path / "adapters")
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path / "adapters"))
    factors = {"workload": "pipeline-3", "payload": "64B", "rate": "500Hz", "reliability": "best_effort"}
    matrix = {"adapter": ["shm", "udp"], **factors, "placement": "process-per-node"}
    study = tmp_path / "study.yaml"
    study.write_text(json.dumps({"name": "again", "matrix": matrix}))
    plan.command(study, out=campaigns["before"], detect="5%", json=True)
    five = told(capsys)["detect"]
    plan.command(study, out=campaigns["before"], detect="20%", json=True)
    twenty = told(capsys)["detect"]
    assert five["trials"] == max(cell["trials"] for cell in five["cells"]) > twenty["trials"] >= 6
    assert [cell["trials_found"] for cell in five["cells"]] == [9, 8]
    assert five["trials_p99"] == max(cell["trials_p99"] for cell in five["cells"]) > five["trials"]
    assert five["trials_p99"] > twenty["trials_p99"]
    # As many as a tail needs messages for, where that is more than the change takes.
    for cell in twenty["cells"]:
        samples = cell_trials(open_campaign(campaigns["before"]), cell["cell"])[2]
        assert cell["trials_p99"] >= (Pool(samples).estimate(990).needed_trials or 0)
    assert five["pairs"] == []  # it was carried out cell by cell
    plan.command(study, out=campaigns["before"], detect="5%")
    said = capsys.readouterr().out
    assert f"{five['trials']} trials of each cell" in said
    assert f"{five['trials_p99']} trials of each cell" in said
    in_blocks = carried_out_in_blocks(campaigns["before"], tmp_path / "in-blocks")
    plan.command(study, out=in_blocks, detect="5%", json=True)
    (pair,) = told(capsys)["detect"]["pairs"]
    assert (pair["cell_a"], pair["cell_b"], pair["blocks_found"]) == (SHM, UDP, 8)
    assert pair["trials_p99"] >= pair["trials"] >= 8
    plan.command(study, out=in_blocks, detect="5%")
    assert f"{SHM} and {UDP}: p50 {pair['trials']} trials" in capsys.readouterr().out
    for out, text in ((campaigns["before"], "five"), (tmp_path / "absent", "5%")):
        with pytest.raises(BadInput):
            plan.command(study, out=out, detect=text)
