# SPDX-License-Identifier: Apache-2.0
"""Campaigns joined: nothing lost, nothing twice, machines kept apart; older folders read, newer refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lagometer.cli.main import main
from lagometer.report.build import build_report
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.merge import merge
from lagometer.store.reader import Campaign, open_campaign

GOLDEN = Path(__file__).parents[2] / "golden" / "campaign-v1"


def copy(target: Path, **environment: Any) -> Campaign:
    """The golden campaign with other facts in its environment."""
    shutil.copytree(GOLDEN, target)
    path = target / form.ENVIRONMENT
    path.write_text(json.dumps(json.loads(path.read_text()) | environment))
    return open_campaign(target)


def run_again(campaign: Campaign) -> Campaign:
    """The same campaign as if it had been measured once more: other times of start."""
    path = campaign.directory / form.JOURNAL
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        entry["started"] = entry["started"].replace("2026", "2027")
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return open_campaign(campaign.directory)


def trial_keys(campaign: Campaign) -> set[tuple[str, int]]:
    return {(entry["cell"], entry["trial"]) for entry in campaign.journal}


def test_a_folder_without_the_newer_columns_is_read_and_shown() -> None:
    campaign = open_campaign(GOLDEN)
    assert list(campaign.cells.columns)[: len(form.cells_schema())] == list(form.cells_schema())
    ends = campaign.cells.filter(pl.col("edge") == form.END_TO_END)
    assert ends["latency_p50_ns"].to_list() == [78056, 16455]
    report = build_report(campaign)
    assert len(report.rows) == 4 and len(report.curves) == 4 and len(report.series) == 4
    columns = (*form.SAMPLES_SCHEMA, "of_a_later_version")
    samples = campaign.samples(campaign.cells["cell"][0], 0, columns)
    assert samples.columns == list(columns) and samples["of_a_later_version"].null_count() == samples.height


def test_a_newer_folder_is_refused_and_told_which_lagometer_would_do(tmp_path: Path) -> None:
    campaign = copy(tmp_path / "newer")
    path = campaign.directory / form.MANIFEST
    path.write_text(json.dumps(campaign.manifest | {"format_version": 2, "lagometer_version": "7.1"}))
    with pytest.raises(
        CampaignError, match=r"format version 2, .* reads up to 1; use lagometer 7\.1 or later"
    ):
        open_campaign(campaign.directory)


def test_a_campaign_merged_with_itself_is_itself(tmp_path: Path) -> None:
    campaign = open_campaign(GOLDEN)
    found = merge([campaign, campaign], tmp_path / "merged")
    merged = open_campaign(tmp_path / "merged")
    assert (found.trials, found.twice) == (2, 2)
    assert trial_keys(merged) == trial_keys(campaign)
    assert merged.cells.drop("machine").equals(campaign.cells)
    for cell, trial in trial_keys(campaign):
        assert (
            merged.samples_path(cell, trial).read_bytes() == campaign.samples_path(cell, trial).read_bytes()
        )


@pytest.mark.parametrize("folder", form.BESIDE)
def test_what_lies_beside_the_samples_goes_along(tmp_path: Path, folder: str) -> None:
    campaign = copy(tmp_path / "one")
    for number, (cell, trial) in enumerate(sorted(trial_keys(campaign))):
        path = campaign.directory / folder / cell / f"{trial}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]))
    merge([campaign], tmp_path / "merged")
    for number, (cell, trial) in enumerate(sorted(trial_keys(campaign))):
        path = tmp_path / "merged" / folder / cell / f"{trial}.parquet"
        assert path.read_bytes() == bytes([number])


def test_what_the_manifest_says_of_a_cell_goes_along(tmp_path: Path) -> None:
    campaign = copy(tmp_path / "one")
    path = campaign.directory / form.MANIFEST
    manifest = json.loads(path.read_text())
    said = {"topics": {"a": {"payload_bytes": 4}}, "bridges": {"relay": "relay"}, "forwarding": [["a", "b"]]}
    for cell in manifest["cells"]:
        cell |= {**said, "bridge": {"name": "toy"}, "defaults": {"depth": 16}}
    path.write_text(json.dumps(manifest))
    merge([open_campaign(campaign.directory)], tmp_path / "merged")
    for cell in open_campaign(tmp_path / "merged").manifest["cells"]:
        assert {**said, "bridge": {"name": "toy"}, "defaults": {"depth": 16}}.items() <= cell.items()


def test_machines_become_a_factor(tmp_path: Path) -> None:
    one = open_campaign(GOLDEN)
    two = copy(tmp_path / "two", machine_id="ffffeeeeddddcccc", hostname="beta", memory_bytes=1)
    found = merge([one, two], tmp_path / "merged")
    merged = open_campaign(tmp_path / "merged")
    assert (found.trials, found.twice) == (4, 0)
    assert {cell.rsplit("/", 1)[1] for cell in merged.cells["cell"]} == {
        "machine-01234567",
        "machine-ffffeeee",
    }
    assert {cell["factors"]["machine"] for cell in merged.manifest["cells"]} == {"01234567", "ffffeeee"}
    assert merged.environment["memory_bytes"] is None and merged.environment["hostname"] == "alpha, beta"
    kept = [
        json.loads((tmp_path / "merged" / s["folder"] / form.ENVIRONMENT).read_text())
        for s in merged.manifest["sources"]
    ]
    assert [each["hostname"] for each in kept] == ["alpha", "beta"]
    report = build_report(merged)
    assert {factor.name for factor in report.factors} >= {"machine"}
    assert len(report.curves) == 2 * len(build_report(one).curves)


def test_a_speed_that_only_one_machine_has_is_not_that_of_all(tmp_path: Path) -> None:
    campaigns = []
    for number, mips in enumerate((3000.0, 2000.0)):
        campaign = copy(tmp_path / str(number), machine_id=str(number) * 16)
        path = campaign.directory / form.MANIFEST
        path.write_text(json.dumps(campaign.manifest | {"machine_speed": {"mips": mips}}))
        campaigns.append(open_campaign(campaign.directory))
    merge(campaigns, tmp_path / "merged")
    merged = open_campaign(tmp_path / "merged")
    assert merged.manifest["machine_speed"] is None
    sources = [tmp_path / "merged" / source["folder"] for source in merged.manifest["sources"]]
    kept = [json.loads((source / form.MANIFEST).read_text())["machine_speed"]["mips"] for source in sources]
    assert kept == [3000.0, 2000.0]
    merge([campaigns[0], campaigns[0]], tmp_path / "same")
    assert open_campaign(tmp_path / "same").manifest["machine_speed"] == {"mips": 3000.0}


def test_the_same_machine_again_is_numbered_on(tmp_path: Path) -> None:
    one = open_campaign(GOLDEN)
    again = run_again(copy(tmp_path / "again"))
    merge([one, again], tmp_path / "merged")
    merged = open_campaign(tmp_path / "merged")
    cells = {cell for cell, _ in trial_keys(one)}
    assert trial_keys(merged) == {(cell, trial) for cell in cells for trial in (0, 1)}
    assert {cell["trials"] for cell in merged.manifest["cells"]} == {2}
    assert merged.cells.height == 2 * one.cells.height
    for entry in merged.journal:
        assert {(row["cell"], row["trial"]) for row in entry["rows"]} == {(entry["cell"], entry["trial"])}
        assert merged.samples(entry["cell"], entry["trial"]).height > 0


def test_merging_what_was_merged_adds_nothing_and_loses_nothing(tmp_path: Path) -> None:
    one = open_campaign(GOLDEN)
    two = copy(tmp_path / "two", machine_id="ffffeeeeddddcccc")
    again = run_again(copy(tmp_path / "again"))
    merge([one, two], tmp_path / "first")
    first = open_campaign(tmp_path / "first")
    found = merge([first, one, again, two, first], tmp_path / "second")
    second = open_campaign(tmp_path / "second")
    assert (found.trials, found.twice) == (6, 8)
    assert trial_keys(first) < trial_keys(second)
    assert len(second.manifest["sources"]) == 3


def test_another_study_is_refused_and_the_difference_named(tmp_path: Path) -> None:
    other = copy(tmp_path / "other")
    study = other.manifest["study"] | {"duration_ns": 7, "seed": 99}
    (other.directory / form.MANIFEST).write_text(json.dumps(other.manifest | {"study": study}))
    with pytest.raises(CampaignError, match="they differ in duration_ns; merge campaigns of one study"):
        merge([open_campaign(GOLDEN), open_campaign(other.directory)], tmp_path / "merged")


def test_a_key_that_an_older_lagometer_did_not_write_has_its_default(tmp_path: Path) -> None:
    other = copy(tmp_path / "other")
    study = other.manifest["study"] | {"discard": 0}
    (other.directory / form.MANIFEST).write_text(json.dumps(other.manifest | {"study": study}))
    both = [open_campaign(GOLDEN), open_campaign(other.directory)]
    with pytest.raises(CampaignError, match="they differ in discard"):
        merge(both, tmp_path / "refused")
    assert merge(both, tmp_path / "merged", {"discard": 0}).trials == 2


def test_a_trial_that_left_no_samples_stays(tmp_path: Path) -> None:
    failed = copy(tmp_path / "failed", machine_id="ffffeeeeddddcccc")
    entry = dict(failed.journal[0]) | {
        "valid": False,
        "reasons": ["worker-died: sink"],
        "trial": 1,
        "rows": [],
    }
    log = failed.samples_path(entry["cell"], 1).with_suffix(".log")
    log.write_text("signal 11")
    with (failed.directory / form.JOURNAL).open("a") as journal:
        journal.write(json.dumps(entry) + "\n")
    merge([open_campaign(GOLDEN), open_campaign(failed.directory)], tmp_path / "merged")
    report = build_report(open_campaign(tmp_path / "merged"))
    assert [(failure.reasons, failure.log) for failure in report.failures] == [
        (["worker-died: sink"], "signal 11")
    ]


def test_the_command_leaves_its_sources_alone_and_overwrites_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "merged"
    with pytest.raises(SystemExit) as ended:
        main(["merge", str(GOLDEN), str(GOLDEN), "--out", str(out), "--json"])
    assert ended.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["trials"], said["twice"]) == (2, 2)
    before = (out / form.MANIFEST).read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(["merge", str(GOLDEN), "--out", str(out)])
    assert ended.value.code == 2 and (out / form.MANIFEST).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged"]
