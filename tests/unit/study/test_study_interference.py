# SPDX-License-Identifier: Apache-2.0
"""The factor `interference`: its spelling, what is started for it, and where its program is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lagometer.agent.load import Load, Wanted, files_of, stream_kib
from lagometer.run.companions.interference import wanted_load
from lagometer.study import discover_adapters, expand, study_from_mapping
from lagometer.study.interference import kind_and_level, missing_program, parse_interference
from lagometer.units import UnitError


def test_a_level_of_one_is_not_written() -> None:
    spellings = ("none", "cpu", "cpu-1", "io-16")
    assert [parse_interference(text) for text in spellings] == ["none", "cpu", "cpu", "io-16"]
    assert kind_and_level("io-16") == ("io", 16)
    assert parse_interference("cpu-1@base") == "cpu@base" and kind_and_level("io-3@a-2") == ("io", 3)


@pytest.mark.parametrize(
    "text", ["", "gpu", "cpu-", "cpu-0", "cpu-17", "cpu-x", "none-2", "cpu-²", "cpu@", "none@base", "cpu@a b"]
)
def test_what_is_no_interference_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_interference(text)


def test_a_missing_program_excludes_the_cell_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert missing_program("none") is None
    assert "iperf3" in str(missing_program("network-2"))
    matrix = {"adapter": "shm", "workload": "pingpong", "interference": ["none", "cpu"]}
    study = study_from_mapping({"name": "beside", "matrix": matrix}, "test")
    expansion = expand(study, discover_adapters({}), (0, 1))
    assert [cell.factors.interference for cell in expansion.cells] == ["none"]
    assert "needs stress-ng" in expansion.excluded[0].reason


def commands(interference: str, **factors: object) -> tuple[Path | None, tuple[tuple[str, ...], ...]]:
    """The folder for files, and what is started, for one trial."""
    matrix = {"adapter": "shm", "workload": "pingpong", "interference": interference, **factors}
    study = study_from_mapping({"name": "beside", "matrix": matrix}, "test")
    cell = expand(study, discover_adapters({}), (0, 1)).cells[0]
    wanted = wanted_load(study, cell, cell.hosts[0], os.getpid(), 7)
    if wanted is None:
        return None, ()
    with files_of(wanted):
        load = Load(wanted)
        (words,) = load.commands if len(load.commands) == 1 else ((),)
        folder = Path(words[words.index("--temp-path") + 1]) if words else None
        assert folder is None or folder.is_dir()
        return folder, load.commands


def test_generators_are_bounded_and_leave_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lagometer.study.exclusion.missing_program", lambda _: None)
    assert commands("none") == (None, ())
    folder, (stress,) = commands("io-2", cpus="0,1")
    assert stress[:5] == ("taskset", "-c", "0,1", "stress-ng", "--hdd")
    assert {"--hdd-bytes", "--timeout"} < set(stress)
    assert folder is not None and not folder.exists()
    _, (server, client) = commands("network-3")
    assert "127.0.0.1" in server and "-c 127.0.0.1" in client[-1] and "-b 3G" in client[-1]


def test_the_arrays_of_the_memory_generator_exceed_the_largest_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stream_kib(tmp_path) == 8 << 10
    for index, size in enumerate(("48K", "1024K", "262144K")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    assert 12 * stream_kib(tmp_path) == 3 * 262_144
    monkeypatch.setattr("lagometer.study.exclusion.missing_program", lambda _: None)
    _, (stress,) = commands("memory-2")
    assert stress[1:5] == ("--stream", "2", "--stream-l3-size", f"{stream_kib()}K")


def test_what_was_achieved_is_read_from_the_program() -> None:
    load = Load(Wanted("cpu", "cpu", 1, seconds=1))
    line = b"stress-ng: metrc: [3246] cpu        526     1.23     0.21      0.00       428.68 2458.52\n"
    assert load.done([b"stress-ng: info: [1] dispatching\n" + line]).achieved_per_s == 428.68
    assert load.done([b"killed"]).achieved_per_s is None


def test_between_hosts_load_runs_on_the_one_that_is_named() -> None:
    hosts = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": "sink"}}
    matrix = {"adapter": "tcp", "workload": "pipeline-2", "network": "host", "hosts": "robot+base"}

    def of(interference: str) -> list[Wanted | None]:
        given = {"name": "beside", "matrix": {**matrix, "interference": interference}, "hosts": hosts}
        study = study_from_mapping(given, "test")
        cell = expand(study, discover_adapters({}), (0, 1)).cells[0]
        return [wanted_load(study, cell, host, 1, 1) for host in ("robot", "base")]

    robot, base = of("cpu-2@base")
    assert robot is None and base is not None and (base.kind, base.level) == ("cpu", 2)
    ends = of("network@base")
    assert [(end.listens, end.sends_to) for end in ends if end] == [("10.77.0.1", ""), ("", "10.77.0.1")]
    with pytest.raises(IndexError):  # excluded
        of("cpu@other")
